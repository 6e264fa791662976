"""Which folders are runs, and what they tell: one line a form.  To add one: `reads` and `read`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from validate import layout
from validate.twin import foreign, recorded
from validate.twin.record import Record, RecordError

FORMS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Record]], ...] = (
    (recorded.is_recorded, recorded.read),
    (foreign.is_foreign, foreign.read),
)


def record(folder: Path) -> Record:
    """Return what a run's folder tells; RecordError where it is none, or tells too little."""
    for reads, read in FORMS:
        if reads(folder):
            return read(folder)
    raise RecordError(
        f"{folder}: no result of a run: {layout.ENVIRONMENT} is missing; "
        "`validate build`, `attach` and `lab` write it"
    )


Hear = Callable[[RecordError], None]


def runs(places: Iterable[str], passed_over: Hear = lambda error: None) -> Iterator[Path]:
    """Yield the folders of runs: those named, and those just inside a folder that is none itself.

    Of the latter one that came to no end is passed over, and told.  Raises RecordError for a place
    without runs, and for one that is named and tells too little.
    """
    for place in places:
        folder = Path(place)
        if not folder.is_dir():
            raise RecordError(f"{place}: no such folder")
        inside = sorted(each for each in folder.iterdir() if each.is_dir())
        found = [folder] if _is_run(folder) else [each for each in inside if _is_run(each)]
        if not found:
            raise RecordError(f"{place}: no run in it; a run has {layout.ENVIRONMENT}")
        for each in found:
            try:
                record(each)
            except RecordError as error:
                if each == folder:
                    raise
                passed_over(error)
                continue
            yield each
            if _is_run(each / layout.RESTART):
                yield each / layout.RESTART


def _is_run(folder: Path) -> bool:
    return (folder / layout.FIO_JSON).exists() and any(reads(folder) for reads, _ in FORMS)
