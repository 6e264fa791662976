"""The version of hybridsim, and the folder it is installed in."""

from pathlib import Path

__version__ = "1.0.0"

PACKAGE = Path(__file__).parents[1]
