"""Run every benchmark of this folder, one after the other."""

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    for script in sorted(Path(__file__).parent.glob("*.py")):
        if script.stem not in ("run", "timing"):
            print(f"\n=== {script.stem} ===", flush=True)
            subprocess.run([sys.executable, str(script)], check=True)
