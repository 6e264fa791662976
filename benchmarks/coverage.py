"""How often each printed interval holds the truth: what is promised, and what is found.

    HYBRIDSIM_DATA=... python benchmarks/coverage.py [GROUP ...] [--loads 630] [--warm 21]
            [--disks 300] [--samples 3] [--first 20000] [--keep FOLDER] [--only-kept] [--json]

    replay  replay, advise, size, sweep, compare, on generated loads (coverage_replays.py)
    money   the time that a cache saves and its cost, on a third of these
    warm    the time until a cache is warm, the same
    real    the model's error on all real runs, leaving out one experiment (coverage_models.py)
    disks, stripes, fio, unusual
            the parameters that `fit` finds of simulated disks, arrays and fio results, --disks of
            each; a third of the stripes is refused; "unusual" are fio results of disks with 0.85
            to 1.18 times their speed, as `fit` takes usual speeds to be frequent
    curves  mrc --sample, by policy and rate, --samples of each trace

A promise of 90 % is kept by 87 to 97 % of the cases, one of 95 % by 90 to 98 %; the forecast on
loads without drift, `size`, costs (which may have no upper end) and the model's error of a kind of
cache left out promise at least that.  Cases are not distinguished by what their interval turned
out to be, as a cost with two ends or a usual speed of rotation that was taken: no interval promises
anything for these alone, and their shares are for information.
The forecast on captured traces is judged by decisions.py, a thinned capture by thinned.py.  Without
a name: all.

The whole takes hours.  With --keep it is done in pieces, whose cases are written to a folder under
the name of what was judged, with its first seed; pieces that are there are not done again, and
--only-kept prints the table of those.  Pieces are of the code that made them: after a change of an
interval, delete those that it concerns.  Seeds, and samples of curves, follow from --first alone;
choose another after constants were chosen on these.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from coverage_cases import Case, Row, keep, kept, rows
from coverage_models import curves_of, fitted, real, traces
from coverage_replays import bill, one_case, warmed

LOADS, DISKS = 10, 20  # seeds of a piece
Piece = tuple[str, Callable[[], Iterable[Case]]]  # its name, and what yields its cases


def main() -> None:
    """Print the table."""
    options = parsed()
    found = list(table(options))
    if options.json:
        print(json.dumps([asdict(row) | {"found": row.found, "met": row.met} for row in found],
                         indent=1))  # fmt: skip
    else:
        show(found)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", help=", ".join(GROUPS))
    parser.add_argument("--loads", type=int, default=630, help="a third of them in closed loop")
    parser.add_argument("--warm", type=int, default=21, help="loads, of ten runs each")
    parser.add_argument("--disks", type=int, default=300)
    parser.add_argument("--samples", type=int, default=3, help="of each curve")
    parser.add_argument("--first", type=int, default=20_000, help="seed of the first case")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="of the pieces")
    parser.add_argument("--only-kept", action="store_true", help="the table of what is there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    for name in options.groups:
        if name not in GROUPS:
            parser.error(f"no group {name}: {', '.join(GROUPS)}")
    if options.only_kept and not options.keep:
        parser.error("--only-kept needs --keep")
    return options


def table(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of the groups that were chosen."""
    pieces = chain.from_iterable(GROUPS[name](options) for name in options.groups or GROUPS)
    yield from rows(done(pieces, options.keep, options.only_kept))


def replay(options: argparse.Namespace) -> Iterator[Piece]:
    """Yield the pieces of loads."""
    for first, seeds in _parts(options.first, options.loads, LOADS):
        yield f"replay {first}", lambda seeds=seeds: chain.from_iterable(map(one_case, seeds))


def money(options: argparse.Namespace) -> Iterator[Piece]:
    """Yield the pieces of costs."""
    for first, seeds in _parts(options.first, max(options.loads // 3, 1), LOADS):
        yield f"money {first}", lambda seeds=seeds: chain.from_iterable(map(bill, seeds))


def warm(options: argparse.Namespace) -> Iterator[Piece]:
    """Yield the pieces of warm-up times, a load each."""
    for number in range(options.first, options.first + options.warm):
        yield f"warm {number}", lambda number=number: warmed(number)


def models(options: argparse.Namespace) -> Iterator[Piece]:
    """Yield the piece of the model's error, which takes seconds."""
    yield "real", real


def fits(kind: str) -> Callable[[argparse.Namespace], Iterator[Piece]]:
    """Return what yields the pieces of disks, stripes or fio results."""

    def pieces(options: argparse.Namespace) -> Iterator[Piece]:
        for first, seeds in _parts(options.first, options.disks, DISKS):
            yield f"fit {kind} {first}", lambda seeds=seeds: fitted(kind, seeds)

    return pieces


def curves(options: argparse.Namespace) -> Iterator[Piece]:
    """Yield the pieces of curves, a trace each."""
    salts = range(options.first, options.first + options.samples)
    for name, numbers in traces(options.first):
        what = f"curves {name} {options.first} to {salts[-1]}"
        yield what, lambda numbers=numbers: curves_of(numbers(), salts)


def _parts(first: int, count: int, each: int) -> Iterator[tuple[int, range]]:
    for start in range(first, first + count, each):
        yield start, range(start, min(start + each, first + count))


def done(pieces: Iterable[Piece], folder: Path | None, only_kept: bool) -> Iterator[Case]:
    """Yield the cases of all pieces, from their files where they are there."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    for name, made in pieces:
        path = folder / f"{name.replace(' ', '-')}.json" if folder and name != "real" else None
        cases = kept(path) if path else None
        if cases is None:
            if only_kept and path:
                continue
            cases = list(made())
            if path:
                keep(path, cases)
            print(f"# {name}", file=sys.stderr, flush=True)
        yield from cases


def show(found: list[Row]) -> None:
    """Print the rows; those without a promise of their own are shares only."""
    print(f"{'interval':76}{'promised':>9}{'found':>8}{'cases':>7}{'half-width':>12}{'met':>5}")
    for row in found:
        promised = "" if row.promised is None else f"{row.promised:.0%}"
        met = "" if row.promised is None else "yes" if row.met else "no"
        print(f"{row.what:76}{promised:>9}{row.found:>8.1%}{row.cases:>7}"
              f"{row.half_width:>12.3f}{met:>5}")  # fmt: skip
    promises = [row for row in found if row.promised is not None]
    print(f"{sum(row.met for row in promises)} of {len(promises)} kept")


GROUPS: dict[str, Callable[[argparse.Namespace], Iterator[Piece]]] = {
    "replay": replay,
    "money": money,
    "warm": warm,
    "real": models,
    "disks": fits("disks"),
    "stripes": fits("stripes"),
    "fio": fits("fio"),
    "unusual": fits("unusual"),
    "curves": curves,
}

if __name__ == "__main__":
    main()
