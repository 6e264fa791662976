"""Find and read result folders.  To add a format, add its two functions to FORMS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from validate import layout
from validate.twin import commanded, foreign, recorded
from validate.twin.record import Record, RecordError

FORMS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Record]], ...] = (
    (recorded.is_recorded, recorded.read),
    (foreign.is_foreign, foreign.read),
    (commanded.is_commanded, commanded.read),
)


def record(folder: Path) -> Record:
    """Return the run of a result folder; raise RecordError if it is none, or is incomplete."""
    for is_of_form, read in FORMS:
        if is_of_form(folder):
            return read(folder)
    raise RecordError(
        f"{folder}: is not a result folder: {layout.ENVIRONMENT} is missing; "
        "`validate build`, `attach` and `lab` write it"
    )


def runs(
    places: Iterable[str], on_skip: Callable[[RecordError], None] = lambda error: None
) -> Iterator[Path]:
    """Yield the result folders among `places`, and those directly inside the other places.

    An incomplete run inside a place is skipped, and reported to `on_skip`.  Raises RecordError for
    a place without runs, and for an incomplete run that is itself a place.
    """
    for place in places:
        folder = Path(place)
        if not folder.is_dir():
            raise RecordError(f"{place}: no such folder")
        inside = sorted(each for each in folder.iterdir() if each.is_dir())
        folders = [folder] if _is_run(folder) else [each for each in inside if _is_run(each)]
        if not folders:
            raise RecordError(f"{place}: no run in it; a run has {layout.ENVIRONMENT}")
        for each in folders:
            try:
                record(each)
            except RecordError as error:
                if each == folder:
                    raise
                on_skip(error)
                continue
            yield each
            if _is_run(each / layout.RESTART):
                yield each / layout.RESTART


def _is_run(folder: Path) -> bool:
    return (folder / layout.FIO_JSON).exists() and any(
        is_of_form(folder) for is_of_form, _ in FORMS
    )
