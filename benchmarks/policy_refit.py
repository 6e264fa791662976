"""Leave one family out: constants of the learned policy chosen without a family, judged on it.

    HYBRIDSIM_DATA=shared/data python benchmarks/policy_refit.py [--results FILE]

Of the constants below each is changed alone, in the source (policy_changed.py), and run on the
tuned traces of every family.  For a family left out a constant takes the value with the least disk
time on the other families (each family counts the same), if that gains at least WORTH; all that
were changed so go together, and the policy with them is run on the judged traces of the family.
Printed are the choices, and disk time over the best baseline's of the shipped policy and of that
choice.  The constants are two whose change mattered most (ablations.py, LEARNED.md), and two
that resemble a generator of tuned loads: the region of 1 MiB and its paces.  Those that define the
objective (the price, what a fill reads) are not among them, nor are capacities (samples, ages).

The families and their judged traces were settled before any candidate was run.  All shipped
constants but the paces were chosen on OLTP, rocksdb_mixgraph, mariadb_moving_hot and hot spots of
seed 1 alone: for other families they are already a choice without that family.  The paces were
chosen in view of the tuned traces of all families.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
from policy_changed import Patch, keep, rows_of
from policy_table import BASELINES, LEARNED, Cell, baselines, disk_ns, mean
from policy_traces import KIB, Traced, all_traces
from policy_unseen import FAMILIES, SERVER_SEED, booked, listed, server

WORTH = 0.001  # of the disk time
SHIPPED: list[Patch] = []
Constant = tuple[str, str, dict[str, str]]  # file, text, value: text in its place
CONSTANTS: dict[str, Constant] = {
    "samples at which a class is halved": (
        "reuse.py", "FORGET = 256 * WEIGHT",
        {str(n): f"FORGET = {n} * WEIGHT" for n in (64, 1024)},
    ),
    "pages sampled of a request": (
        "reuse.py", "fours = (pages + 3) >> 2",
        {"1": "fours = pages", "16": "fours = (pages + 15) >> 4"},
    ),
    "region": (
        "habits.py", "REGION_BITS = 20",
        {"256 KiB": "REGION_BITS = 18", "4 MiB": "REGION_BITS = 22"},
    ),
    "paces of hot and warm regions": (
        "habits.py", "HOT, WARM = 64, 96",
        {"half an octave each": "HOT, WARM = 48, 80", "two more": "HOT, WARM = 80, 112"},
    ),
}  # fmt: skip
COMMON, SMALL = 64 * KIB, 4 * KIB
Cells = list[tuple[Traced, int, tuple[float, ...]]]


def tuned() -> dict[str, Cells]:
    """Return the cells that constants are chosen on, by family."""
    known = {each.name: each for each in all_traces()}
    result: dict[str, Cells] = {
        name: [(server(kind, 1), COMMON, (0.05,)) for kind in kinds]
        for name, kinds in FAMILIES.items()
    }
    result["lists"] = [(listed(1), 512, (0.1,))]
    result["databases"].append((booked(1), COMMON, (0.1,)))
    if "OLTP" in known:
        result["lists"].append((known["OLTP"], 512, (0.01, 0.1)))
        rocksdb, mariadb = known["rocksdb_mixgraph"], known["mariadb_moving_hot"]
        result["key-value"] = [(rocksdb, COMMON, (0.01, 0.1)), (rocksdb, SMALL, (0.05,))]
        result["databases"].append((mariadb, COMMON, (0.01, 0.1)))
    result["hot spots"] = [
        (known["steady 1"], SMALL, (0.05,)), (known["scans 1"], SMALL, (0.1,)),
        (known["moving 1"], COMMON, (0.01, 0.1)), (known["bursts 1"], COMMON, (0.05,)),
    ]  # fmt: skip
    return result


def judged() -> dict[str, Cells]:
    """Return the cells that a choice is judged on, by the family that was left out."""
    every = (0.01, 0.05, 0.1, 0.2)
    known = {each.name: each for each in all_traces() if not each.is_tuned}
    result: dict[str, Cells] = {
        name: [(server(kind, SERVER_SEED), COMMON, every) for kind in kinds]
        for name, kinds in FAMILIES.items()
    }
    result["lists"] = [(listed(5), 512, every)]
    result["databases"] += [(booked(5), page, every) for page in (SMALL, COMMON)]
    for family, names in (
        ("lists", ("P2",)), ("databases", ("pg_zipf",)), ("files", ("fileserver_newhot",)),
        ("traces of virtual machines", ("cloudPhysics",)),
        ("hot spots", ("steady 2", "moving 2", "scans 2", "bursts 2")),
    ):  # fmt: skip
        for name in names:
            if name in known:
                pages = known[name].pages
                result.setdefault(family, []).extend((known[name], page, every) for page in pages)
    return result


def parts() -> dict[str, list[Patch]]:
    """Return the patches of each candidate."""
    result: dict[str, list[Patch]] = {}
    for name, (file, text, values) in CONSTANTS.items():
        for value, new in values.items():
            result[f"{name}: {value}"] = [(file, text, new)]
    return result


def joined(names: tuple[str, ...]) -> tuple[str, list[Patch]]:
    """Return the name of several candidates as one, and their patches."""
    known = parts()
    name = " + ".join(sorted(names)) or "as shipped"
    return name, [patch for each in names for patch in known[each]]


def chosen(gains: dict[str, dict[str, float]], left_out: str) -> tuple[str, ...]:
    """Return the candidates for a family left out, from gains by candidate and family."""
    result = []
    for name, (_, _, values) in CONSTANTS.items():
        mine = {
            f"{name}: {value}": mean_gain(gains[f"{name}: {value}"], left_out) for value in values
        }
        best = min(mine, key=lambda each: mine[each])
        if mine[best] <= -WORTH:
            result.append(best)
    return tuple(result)


def mean_gain(by_family: dict[str, float], left_out: str) -> float:
    """Return the mean of the logarithms of all families but one."""
    return float(np.mean([gain for family, gain in by_family.items() if family != left_out]))


def stored_bests() -> dict[Cell, float]:
    """Return the least disk time of the baselines in ns, of the cells of policies_cells.csv."""
    result: dict[Cell, float] = {}
    text = (Path(__file__).parent / "policies_cells.csv").read_text().splitlines()
    for row in csv.DictReader(line for line in text if not line.startswith("#")):
        cell = (row["trace"], int(row["page_bytes"]), float(row["share"]))
        result[cell] = 1e6 * min(float(ms) for name, ms in row.items() if name in BASELINES)
    return result


def cells_of(mine: Cells) -> list[Cell]:
    """Return the cells by trace, page and share."""
    return [(traced.name, page, share) for traced, page, shares in mine for share in shares]


def show(line: str) -> None:
    """Print a line as soon as it is known."""
    print(line, flush=True)


def refit(results: Path) -> None:
    """Print the gains of all candidates, then the table."""
    everything = tuned()
    gains: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        keep(folder, [cell for mine in everything.values() for cell in mine])
        base = rows_of(SHIPPED, folder, results, {LEARNED})
        names = {family: {t.name for t, _, _ in mine} for family, mine in everything.items()}
        show("| changed | " + " | ".join(everything) + " | mean |")
        show("|---" * (len(everything) + 2) + "|")
        for part, patches in parts().items():
            rows = rows_of(patches, folder, results, {LEARNED})
            gains[part] = {
                family: float(np.mean([
                    np.log(disk_ns(rows[at][LEARNED]) / disk_ns(base[at][LEARNED]))
                    for at in base if at[0] in mine
                ]))
                for family, mine in names.items()
            }  # fmt: skip
            each = [f"{100 * gain:+.2f}" for gain in gains[part].values()]
            show(f"| {part} | {' | '.join(each)} | {100 * mean_gain(gains[part], ''):+.2f} |")
    show(f"\nBy all families: {joined(chosen(gains, ''))[0]}\n")
    show("| family left out | cells | shipped | without it | within 2 % | worst | changed |")
    show("|---|---|---|---|---|---|---|")
    stored = stored_bests()
    for family, mine in judged().items():
        without, patches = joined(chosen(gains, family))
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            keep(folder, mine)
            shipped = rows_of(SHIPPED, folder, results, {LEARNED})
            refitted = rows_of(patches, folder, results, {LEARNED})
        others = [cell for cell in mine if not stored.keys() & set(cells_of([cell]))]
        best = {at: stored[at] for at in shipped if at in stored}
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            keep(folder, others)
            theirs = rows_of(SHIPPED, folder, results, BASELINES) if others else {}
        best |= {at: min(map(disk_ns, baselines(rows))) for at, rows in theirs.items()}
        ratios = [
            [disk_ns(rows[at][LEARNED]) / best[at] for at in best] for rows in (shipped, refitted)
        ]
        means = " | ".join(f"{mean(each):.3f}" for each in ratios)
        near = ", ".join(str(sum(ratio <= 1.02 for ratio in each)) for each in ratios)
        worst = ", ".join(f"{max(each):.3f}" for each in ratios)
        show(f"| {family} | {len(best)} | {means} | {near} | {worst} | {without} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("policies.jsonl"))
    refit(parser.parse_args().results.absolute())


if __name__ == "__main__":
    main()
