"""Are the decisions right?  Answers from the first 30 % of traces, held against the rest.

    HYBRIDSIM_DATA=... python benchmarks/decisions.py FOLDER [--quick] [--workers N]
                                                      [--only NAME] [--json FILE] [--machines]
                                                      [--shown]

Each trace of decision_traces runs on the disks alone and on the candidates of decision_runs: nine
kinds and modes of cache, four sizes.  What they do with the first 30 % of the requests is what the
tool sees; what they do with the rest, the cache as it is by then, is the truth.  The gain is the
judge's (hybridsim/answers/judge.py): plain over cached of the same requests.  FOLDER keeps the
runs: an interrupted benchmark goes on where it was, and the judge alone takes seconds.  --shown
saves a third of the time: captures of other lengths than 30 % are judged by the formula.

    right, wrong   "yes" is wrong where the truth is below 1.05, "no" where it is 1.25 or more
    unsure         "not yet", whatever the truth is
    certain        answers that read "yes" or "no", not "probably", of all; of these, how many are
                   wrong, and of the probable ones
    regret         how many times more the best candidate gains than the chosen one, less 1; chosen
                   is what advise chooses: the largest cautious forecast (the largest gain where
                   the capture is too short for one), or no cache where that is below 1
    lost           regret in time: what the best one saves more, over what the disks alone take
    bought         the regret where nothing is bought unless the answer for the chosen one is yes
    alike          traces whose load goes on alike: requests and bytes a second, and what the disks
                   alone take for a request, stay within a factor CHANGED of those of the second
                   half of the capture; the regret of these, and of the others
    trial          the regret over the last 35 % of a trace of one who has tried all machines on the
                   35 % before, and takes the best one; ours over the same: what a change of the
                   load costs whoever decides before it
    tau            Kendall's, of the predicted and realised gains of a trace's candidates
    flips          answers that change from yes to no or back (of the same machine, by the seed of
                   the workload; or by the length of what the tool sees); as came: of the latter
                   those that what came later (as long as the forecast reaches) allows both, as the
                   gain itself had changed or is between 1.05 and 1.25
    too short      machines of captures with too few requests, or nearly all at once: unsure
    coverage       realised gains that lie in the interval of the forecast, nominally 90 %, of the
                   others; of chosen: of the machines that are chosen
    width          median ratio of its ends
    error          median of the forecast's error, in either direction

The table has a row for each part: families that rules were tuned on, those that they are judged on,
and unseen ones (decision_unseen.py).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from decision_runs import SHOWN, Machine, Runs, border, collected
from decision_traces import part_of
from scipy.stats import kendalltau

from hybridsim.answers.forecast import HORIZON, NO, UNSURE, YES, is_certain
from hybridsim.answers.judge import Judgement, judge

LENGTHS = (0.15, 0.225)  # of captures whose answers are held against those of SHOWN
IS_YES, IS_NO = 1.25, 1.05  # of the truth
CHANGED = 2.0  # times; nearly all traces of the tuned half are below 1.4 or above 2.4
WRITE_BACK = ("wb", "writecache")


@dataclass(frozen=True)
class Decided:
    """What the judge says of one machine, and what came true."""

    case: str
    family: str
    same: str
    kind: str
    rank: int  # of its size among those of the trace
    size_bytes: int
    answer: str
    measured: float  # gain of the capture
    gain: float  # that is forecast
    low: float
    high: float
    cautious: float  # what machines are chosen by
    truth: float
    halves: tuple[float, float]  # the same of the first and of the second half of what came
    drift: float  # times; by which the load changes after the capture
    sooner: tuple[tuple[str, float], ...]  # answers from LENGTHS, and what came after these

    @property
    def is_right(self) -> bool:
        """Whether the answer is one that the truth allows."""
        return allows(self.truth, self.answer)

    @property
    def is_wrong(self) -> bool:
        """Whether the answer is the opposite of the truth."""
        return self.answer != UNSURE and not self.is_right


def allows(truth: float, answer: str) -> bool:
    """Return whether an answer is right, given what came."""
    return (answer == YES and truth >= IS_NO) or (answer == NO and truth < IS_YES)


def decided(runs: Runs) -> list[Decided]:
    """Judge all machines of a trace."""
    adapts = runs.mode != "open"
    sizes = sorted({each.machine.size_bytes for each in runs.cached})
    cuts = [border(runs.requests, share) for share in (SHOWN, *LENGTHS)]
    alone = [runs.plain.side(0, cut) for cut in cuts]
    offs = [runs.off(share) for share in (SHOWN, *LENGTHS)]
    ends = [min(round(cut * (1 + HORIZON)), runs.requests) for cut in cuts]
    middle, drift = (cuts[0] + runs.requests) // 2, runs.drift(cuts[0])
    parts = [(cuts[0], runs.requests), (cuts[0], middle), (middle, runs.requests),
             *zip(cuts[1:], ends[1:])]  # fmt: skip
    before_ns = [runs.plain.cost_ns(*part, adapts) for part in parts]
    result = []
    for each in runs.cached:
        judged, *sooner = (
            judge(plain, each.side(0, cut)._replace(off=off), adapts)
            for plain, cut, off in zip(alone, cuts, offs)
        )
        after_ns = [each.cost_ns(*part, adapts) for part in parts]
        if not before_ns[0] or not after_ns[0]:
            continue
        truth, first, second, *sooner_truths = (
            before / max(after, 1) for before, after in zip(before_ns, after_ns)
        )
        machine: Machine = each.machine
        result.append(
            Decided(
                runs.case.name, runs.case.family, runs.case.same, machine.kind,
                sizes.index(machine.size_bytes), machine.size_bytes, judged.answer,
                judged.gain or 1.0, judged.expected or 1.0, judged.low or 0.0,
                judged.high or math.inf, chosen_by(judged), truth, (first, second), drift,
                tuple((one.answer, came) for one, came in zip(sooner, sooner_truths)),
            )
        )  # fmt: skip
    return result


def chosen_by(judged: Judgement) -> float:
    """Return what advise chooses machines by; of a capture that is too short, its gain."""
    return (judged.gain if judged.cautious is None else judged.cautious) or 0.0


def regret(of: Sequence[Decided], only_yes: bool = False) -> float:
    """Return how much more the best of some machines gains than the chosen one."""
    chosen = max(of, key=lambda each: each.cautious)
    is_bought = chosen.answer == YES if only_yes else chosen.cautious > 1
    return max(1.0, *(each.truth for each in of)) / (chosen.truth if is_bought else 1.0) - 1


def lost(of: Sequence[Decided]) -> float:
    """Return the same in time: the share of what the disks alone take that the best saves more."""
    chosen = max(of, key=lambda each: each.cautious)
    taken = 1 / chosen.truth if chosen.cautious > 1 else 1.0
    return taken - min(1.0, *(1 / each.truth for each in of))


def tried(of: Sequence[Decided]) -> tuple[float, float]:
    """Return regrets over the second half of what came: of a trial of all, and of the chosen."""
    best = max(1.0, *(each.halves[1] for each in of))
    by_trial = max(of, key=lambda each: each.halves[0])
    chosen = max(of, key=lambda each: each.cautious)
    bought = by_trial.halves[0] > 1, chosen.cautious > 1
    gains = [x.halves[1] if is_it else 1.0 for x, is_it in zip((by_trial, chosen), bought)]
    return best / gains[0] - 1, best / gains[1] - 1


def by(of: Iterable[Decided], *names: str) -> list[list[Decided]]:
    """Group by attributes."""

    def key(each: Decided) -> list[str]:
        return [str(getattr(each, name)) for name in names]

    return [list(group) for _, group in itertools.groupby(sorted(of, key=key), key)]


def mode_picks(of: Sequence[Decided]) -> tuple[int, int]:
    """Return how often the better of write-through and write-back is picked, and of how many."""
    right = pairs = 0
    for same in by(of, "case", "rank"):
        known = {each.kind: each for each in same}
        for kind in ("page", "bcache", "dm-cache", "open-cas"):
            through, back = known.get(f"{kind} wt"), known.get(f"{kind} wb")
            if through and back and not 1 / 1.05 < through.truth / back.truth < 1.05:
                pairs += 1
                right += (through.gain > back.gain) == (through.truth > back.truth)
    return right, pairs


def flips(answers: Iterable[tuple[str, str]]) -> tuple[float, float]:
    """Return the shares of pairs of answers that contradict, and that differ at all."""
    pairs = list(answers)
    if not pairs:
        return 0.0, 0.0
    against = sum({a, b} == {YES, NO} for a, b in pairs)
    return against / len(pairs), sum(a != b for a, b in pairs) / len(pairs)


def summed_up(of: list[Decided]) -> dict[str, float]:
    """Return the figures of one row of the table."""
    cases = by(of, "case")
    taus = [kendalltau([x.gain for x in one], [x.truth for x in one]).statistic for one in cases]
    regrets = np.array([regret(one) for one in cases])
    losts = np.array([lost(one) for one in cases])
    bought = np.array([regret(one, only_yes=True) for one in cases])
    sizes = np.array([regret(one) for one in by(of, "case", "kind")])
    kinds = np.array([regret(one) for one in by(of, "case", "rank")])
    seeds = flips(
        (a.answer, b.answer)
        for one in by([x for x in of if x.same], "same", "kind", "rank")
        for a, b in itertools.combinations(one, 2)
    )
    pairs_of = [(each, *one) for each in of for one in each.sooner]
    lengths = flips((each.answer, sooner) for each, sooner, _ in pairs_of)
    flipped = [x for x in pairs_of if {x[0].answer, x[1]} == {YES, NO}]
    as_came = [each.is_right and allows(came, sooner) for each, sooner, came in flipped]
    is_alike = np.array([one[0].drift < CHANGED for one in cases])
    trials = np.array([tried(one) for one in cases])
    right, pairs = mode_picks(of)
    known = [x for x in of if np.isfinite(x.high)]
    answered = [x for x in of if x.answer != UNSURE]
    certain, probable = (
        [x for x in answered if is_certain(x.answer, x.low, x.high) == wanted]
        for wanted in (True, False)
    )
    picks = [max(one, key=lambda each: each.cautious) for one in cases]
    count = len(of)
    return {
        "traces": len(cases), "machines": count,
        "right": sum(x.is_right for x in of) / count,
        "wrong": sum(x.is_wrong for x in of) / count,
        "unsure": sum(x.answer == UNSURE for x in of) / count,
        "certain": len(certain) / count,
        "certain wrong": sum(x.is_wrong for x in certain) / max(len(certain), 1),
        "probable wrong": sum(x.is_wrong for x in probable) / max(len(probable), 1),
        "regret": float(np.median(regrets)), "regret 95%": float(np.quantile(regrets, 0.95)),
        "regret max": float(regrets.max()),
        "regret > 10%": float(np.mean(regrets > 0.1)),
        "alike": float(is_alike.mean()),
        "alike 95%": quantile(regrets[is_alike]), "alike > 10%": share(regrets[is_alike]),
        "changed > 10%": share(regrets[~is_alike]),
        "trial 95%": quantile(trials[:, 0]), "ours 95%": quantile(trials[:, 1]),
        "trial > 10%": share(trials[:, 0]), "ours > 10%": share(trials[:, 1]),
        "lost": float(np.median(losts)), "lost 95%": float(np.quantile(losts, 0.95)),
        "bought": float(np.median(bought)), "bought 95%": float(np.quantile(bought, 0.95)),
        "size 95%": float(np.quantile(sizes, 0.95)), "kind 95%": float(np.quantile(kinds, 0.95)),
        "mode picked": right / pairs if pairs else 1.0,
        "tau": float(np.nanmean(taus)),
        "seed flips": seeds[0], "seed changes": seeds[1],
        "length flips": lengths[0], "length changes": lengths[1],
        "flips as came": float(np.mean(as_came)) if as_came else 0.0,
        "too short": 1 - len(known) / count,
        "coverage": sum(x.low <= x.truth <= x.high for x in known) / max(len(known), 1),
        "of chosen": float(np.mean([x.low <= x.truth <= x.high for x in picks])),
        "width": float(np.median([x.high / max(x.low, 1e-9) - 1 for x in known])),
        "error": float(np.median([abs(np.log(x.truth / x.gain)) for x in known])),
    }  # fmt: skip


def quantile(regrets: np.ndarray) -> float:
    """Return the 95th percentile; 0 of none."""
    return float(np.quantile(regrets, 0.95)) if len(regrets) else 0.0


def share(regrets: np.ndarray) -> float:
    """Return the share of regrets of more than 10 %; 0 of none."""
    return float(np.mean(regrets > 0.1)) if len(regrets) else 0.0


def table(rows: dict[str, dict[str, float]]) -> str:
    """Return the rows side by side, a figure a line."""
    names = list(next(iter(rows.values())))
    lines = [f"{'':16}" + "".join(f"{each:>10}" for each in rows)]
    for name in names:
        cells = [row[name] for row in rows.values()]
        whole = name in ("traces", "machines")
        shown = (
            f"{x:.0f}" if whole else f"{x:.2f}" if name == "tau" else f"{x:.1%}" for x in cells
        )
        lines.append(f"{name:16}" + "".join(f"{each:>10}" for each in shown))
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="keeps the runs")
    parser.add_argument("--quick", action="store_true", help="one trace in six, two sizes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shown", action="store_true", help="forecasts after 30 % alone")
    parser.add_argument("--only", default="", help="traces whose names contain this")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--machines", action="store_true", help="each wrong or unsure answer too")
    options = parser.parse_args()
    cases = collected(
        options.folder, decided, options.quick, options.workers, options.only, options.shown
    )
    result = [each for case in cases for each in case]
    parts = {
        name: [x for x in result if part_of(x.family) == name]
        for name in ("tuned", "judged", "unseen")
    }
    rows = {name: summed_up(part) for name, part in parts.items() if part}
    if options.machines:
        for each in result:
            if each.is_wrong or each.answer == UNSURE:
                print(f"{each.answer:6} {each.gain:6.2f} [{each.low:.2f}, {each.high:.2f}] "
                      f"truth {each.truth:6.2f}  {each.case}: {each.kind} "
                      f"{each.size_bytes >> 20} MiB")  # fmt: skip
    print(table(rows))
    if options.json:
        text = json.dumps({"rows": rows, "machines": [asdict(x) for x in result]}, indent=1)
        options.json.write_text(text)


if __name__ == "__main__":
    main()
