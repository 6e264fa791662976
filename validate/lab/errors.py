"""Errors of the lab, in addition to those of `validate.errors`."""

from __future__ import annotations

from validate.errors import MissingError, RunError

__all__ = ["LabError", "MissingError"]


class LabError(RunError):
    """A guest that does not start, hangs, or returns no results."""
