"""The files of the demo: its capture and its machine."""

from __future__ import annotations

import os

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.version import PACKAGE

CAPTURE = "rocksdb_mixgraph.blktrace.0.zst"
SITE = "site.toml"


def demo_file(name: str) -> str:
    """Return the path of a demo file: beside the package in a clone, inside it in a wheel."""
    for folder in (PACKAGE / "traces", PACKAGE.parent / "traces"):
        path = folder / "demo" / name
        if path.is_file():
            relative = os.path.relpath(path)
            return str(path) if relative.startswith("..") else relative
    raise UsageError(f"the file {name} of the demo is missing: reinstall hybridsim")
