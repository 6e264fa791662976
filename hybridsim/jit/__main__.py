"""Make machine code for a wheel: see code_folder.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hybridsim.jit.code_folder import CPU, FEATURES, INTO, KEPT

CACHES = ("page", "bcache", "dm-cache", "dm-writecache", "open-cas")
LOAD = "gen:zipf,requests=3000,read=70%"
COMMANDS = (
    ("demo",),
    *(("replay", LOAD, "--cache", kind) for kind in CACHES),
    ("hits", LOAD),
    ("mrc", LOAD),
)


def main() -> None:
    """Fill the folder."""
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else KEPT
    with tempfile.TemporaryDirectory(prefix="hybridsim-") as empty:
        own = {
            "HYBRIDSIM_CACHE_DIR": empty,
            INTO: str(into),
            "NUMBA_CPU_NAME": CPU,
            "NUMBA_CPU_FEATURES": ",".join(f"+{each}" for each in FEATURES),
        }
        for command in COMMANDS:
            print("hybridsim", *command, file=sys.stderr, flush=True)
            subprocess.run(
                [sys.executable, "-m", "hybridsim", *command],
                env=os.environ | own, stdout=subprocess.DEVNULL, check=True,
            )  # fmt: skip
    size = sum(each.stat().st_size for each in into.rglob("*.nb?"))
    print(f"{into}: {size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
