"""Where a package comes from, when it is built: its addresses, and a README whose pictures and links work elsewhere.

The home is that of the clone (`git remote`), or that of the source distribution. Without one README stays as it is.
"""

import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Home(MetadataHookInterface):
    """Fills in `urls` and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, and the README with whole addresses."""
        root = Path(self.root)
        text, home = (root / "README.md").read_text(encoding="utf-8"), home_of(root)
        metadata["urls"] = {}
        if home:
            pages = {"Changelog": "CHANGELOG.md", "Documentation": "docs/index.md"}
            metadata["urls"] = {"Repository": home, "Issues": f"{home}/issues"}
            metadata["urls"] |= {name: f"{home}/blob/main/{page}" for name, page in pages.items()}
            text = re.sub(r"!\[([^]]*)\]\((?!https?:)", rf"![\1]({home}/raw/main/", text)
            text = re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:|#)", rf"[\1]({home}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def home_of(root: Path) -> str:
    """The address of the repository, empty if it has none."""
    info = root / "PKG-INFO"
    if info.exists():
        found = re.search(r"^Project-URL: Repository, (\S+)$", info.read_text(encoding="utf-8"), re.M)
        return found[1] if found else ""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    remote = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    found = re.fullmatch(r"(?:https://|ssh://git@|git@)([^/:]+)[/:](.+?)(?:\.git)?/?", remote)
    return f"https://{found[1]}/{found[2]}" if found else ""
