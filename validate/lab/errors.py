"""What can go wrong in the lab, beside what `validate.errors` names."""

from __future__ import annotations

from validate.errors import MissingError, RunError

__all__ = ["LabError", "MissingError"]


class LabError(RunError):
    """A guest that does not come up, hangs, or brings no results."""
