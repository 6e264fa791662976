"""The saved state of a watch, from which it goes on after it was killed.

A file in NumPy's format npz: `about`, a JSON of the settings, and arrays by number, which are the
leaves of nested tuples in order.  Nothing in it is executed, and it is replaced as a whole, also
in a power cut.  What came since then is in a journal beside it.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.writing import whole_file
from hybridsim.studies.watch.journal import Journal
from hybridsim.studies.watch.pieces import Piece

SAVE_EVERY_S = 30.0
VERSION = 2
JOURNAL = ".journal"  # suffix


def leaves(tree: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield the arrays and numbers of nested tuples, in order; an array in several places once.

    None, a part that a machine does not have, is no leaf.
    """
    seen = set() if seen is None else seen
    if tree is None:
        return
    if isinstance(tree, tuple):
        for each in tree:
            yield from leaves(each, seen)
    elif not isinstance(tree, np.ndarray):
        yield tree
    elif id(tree) not in seen:
        seen.add(id(tree))
        yield tree


def regrown(tree: Any, saved: Iterator[Any], known: dict[int, Any] | None = None) -> Any:
    """Return nested tuples of the same shape with other leaves; arrays may have another length.

    What was one array in several places is one again.  Raises ValueError for leaves of another
    kind.
    """
    known = {} if known is None else known
    if tree is None:
        return None
    if isinstance(tree, tuple):
        parts = [regrown(each, saved, known) for each in tree]
        return type(tree)._make(parts) if hasattr(tree, "_make") else tuple(parts)
    if id(tree) in known and isinstance(tree, np.ndarray):
        return known[id(tree)]
    leaf = next(saved)
    if isinstance(tree, np.ndarray):
        if leaf.dtype != tree.dtype or leaf.ndim != tree.ndim:
            raise ValueError("an array of another kind")
        known[id(tree)] = leaf
        return leaf
    if leaf.ndim:
        raise ValueError("an array in place of a number")
    return type(tree)(leaf[()])


class Kept:
    """A file that is written now and then, and a journal of what came since."""

    def __init__(self, path: str) -> None:
        """Use a file, which need not exist."""
        self.path = path
        self._journal = Journal(path + JOURNAL)
        self._saved_s = -math.inf

    def not_usable(self) -> str | None:
        """Return the first of its files, or their folder, that this process may not write."""
        folder = str(Path(self.path).absolute().parent)
        if not os.access(folder, os.W_OK | os.X_OK):
            return folder
        there = [each for each in (self.path, self._journal.path) if Path(each).exists()]
        return next((each for each in there if not os.access(each, os.R_OK | os.W_OK)), None)

    def is_due(self) -> bool:
        """Return whether there was no save yet, or the last one is some time ago."""
        return time.monotonic() - self._saved_s >= SAVE_EVERY_S

    def save(self, setting: list[Any], about: dict[str, Any], state: Any) -> None:
        """Write the file, completely or not at all; the journal begins anew."""
        token = secrets.token_hex(8)
        head = json.dumps(
            {"version": VERSION, "setting": setting, "about": about, "journal": token}
        )
        arrays = {f"{at:05d}": np.asarray(leaf) for at, leaf in enumerate(leaves(state))}
        with whole_file(self.path, durable=True) as file:
            np.savez(file, about=np.array(head), **arrays)  # type: ignore[arg-type]
        self._journal.begin(token)
        self._saved_s = time.monotonic()

    def close(self) -> None:
        """Leave the files to others."""
        self._journal.close()

    def add(self, piece: Piece) -> None:
        """Note a piece that came since the last save."""
        self._journal.add(piece)

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces that came after the saved state, before the watch was killed."""
        head, _ = self._read()
        return self._journal.pieces(str(head["journal"])) if head else iter(())

    def load(self, setting: list[Any]) -> tuple[dict[str, Any], list[Any]] | None:
        """Return `about` and the leaves of the saved state; None: there is no file.

        From now on the state is that of this watch alone.  Raises UsageError for a file that cannot
        be read, that is of other caches, or that another watch uses.
        """
        self._journal.claim()
        head, arrays = self._read()
        if not head:
            return None
        if head["setting"] != setting:
            raise UsageError(
                f"--state {printable(self.path)} is of other caches: specify the same options, or "
                "remove it"
            )
        return head["about"], arrays

    def status(self) -> str:
        """Return the saved state of the real cache beside; "": there is none."""
        head, _ = self._read()
        return str(head["about"].get("status", "")) if head else ""

    def _read(self) -> tuple[dict[str, Any], list[Any]]:
        if not Path(self.path).exists():
            return {}, []
        try:
            with np.load(self.path, allow_pickle=False) as file:
                head = json.loads(str(file["about"]))
                if head["version"] != VERSION:
                    raise ValueError(f"its version is {head['version']}, not {VERSION}")
                head["about"].items()
                head["setting"].copy()
                head["journal"].encode()
                return head, [file[name] for name in sorted(set(file.files) - {"about"})]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError,
                zipfile.BadZipFile) as error:  # fmt: skip
            raise UsageError(
                f"--state {printable(self.path)}: not a state that `watch` saved ({error}): "
                "remove it"
            ) from None
