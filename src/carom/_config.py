"""What `import carom` switches on in JAX: 64-bit floats and the persistent compilation cache."""

import os
from pathlib import Path

import jax

__version__ = "0.2.0"


def cache_folder() -> Path:
    """The folder of carom's compiled programs: `CAROM_CACHE` if it names one, else the user's cache folder."""
    chosen = os.environ.get("CAROM_CACHE", "")
    if chosen not in ("", "1"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "carom" / "jax"


def configure() -> None:
    """Apply the defaults; `CAROM_X64=0` and `CAROM_CACHE=0` opt out."""
    if os.environ.get("CAROM_X64", "1") != "0":
        jax.config.update("jax_enable_x64", True)
    if os.environ.get("CAROM_CACHE", "1") != "0" and getattr(jax.config, "jax_compilation_cache_dir") is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


configure()
