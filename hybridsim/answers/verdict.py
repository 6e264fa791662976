"""The verdict on a cache, yes, no or unsure, with its reasons and next steps as text.

The decision is that of judge.py, which compares the same requests on both machines.  If a machine
is saturated, no gain is defined; then the answer depends on which machine keeps up.

Where it is no or unsure, other caches are tried; what they would gain stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.forecast import HORIZON, NO, UNSURE, YES, is_certain
from hybridsim.answers.judge import Judgement, in_time
from hybridsim.answers.outcome import SECOND
from hybridsim.answers.warmup import State
from hybridsim.foundation.codes import Reason
from hybridsim.foundation.documents import Document
from hybridsim.foundation.printable import shell_line, shell_word
from hybridsim.foundation.units import format_size, human_count, human_size
from hybridsim.foundation.wording import factor, latency, of_the_mean, percent, ranged, span, times

if TYPE_CHECKING:
    from hybridsim.answers.result import Result

TIMES = 1.5  # larger changes are printed as a factor, smaller ones in per cent
CHANCE = (
    "The gain is {} times, not {} as measured: what the disks' own buffers happened to hold does "
    "not count"
)
SAME = 0.05  # smaller changes are not reported
MIB = 2**20
MOSTLY = 0.5  # of the reads, or of the requests
MANY = 0.4  # of the requests: share of writes at which write-back is recommended
NOTICEABLE = 0.1
FEW = 0.01  # share of the requests: fewer reads or writes are not on the first screen
NO_CHANGE = "no change"
APART = 1.15  # ratio of the gains of two phases from which on both are printed
SHORTEST_NS = 30 * SECOND  # simulated time that is enough to extrapolate wear
# Limits of the advised capture: ten minutes to a week.
SHORTEST_S, LONGEST_S = 600, 7 * 86400
AT_WORK = 0.5  # active share of a capture below which its pauses are mentioned
MISSES = (  # reason, minimum share of the reads, text
    (Reason.COLD, MOSTLY, "touch data for the first time: no cache can hold it yet"),
    (
        Reason.SEQUENTIAL,
        MOSTLY,
        "are sequential: disks are fast at these, so they bypass the cache",
    ),
    (Reason.EVICTED, NOTICEABLE, "need data that was evicted: the cache is too small for them"),
)
THINK = "Replay in mode think: requests then wait for each other, as in the capture."
BUSY = 0.9  # utilisation of disks that have no time for more fills
OF_CACHE = ("--cache", "--admission", "--replacement", "--set cache.")  # options


@dataclass(frozen=True)
class Step:
    """A recommended step, and its command if there is one."""

    text: str
    command: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer, its headline, the reasons and the next steps.

    action, effect, risks and basis are the paragraphs of the first screen in the terminal.
    """

    answer: str
    headline: str
    reasons: list[str] = field(default_factory=list)
    advice: list[Step] = field(default_factory=list)
    confidence: dict[str, Any] = field(default_factory=dict)
    action: str = ""
    effect: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    basis: list[str] = field(default_factory=list)
    is_certain: bool = True  # the answer; else it is what is probable
    condition: str = ""  # under which the machine was judged: "with the SSD dead from 13 s on"

    def __repr__(self) -> str:
        return f"<Verdict {self.answer}: {self.headline}>"

    def under(self, condition: str) -> Verdict:
        """Return the verdict of a machine that lost its cache; none on the cache itself."""
        return replace(
            self,
            headline=f"{condition[:1].upper()}{condition[1:]}: {self.headline}",
            advice=[],
            action="That is no verdict on the cache itself: replay without --event for one.",
            condition=condition,
        )


def judge(result: Result) -> Verdict:
    """Return the verdict on a result, whatever its verdict is so far."""
    answer, headline = _answer(result)
    is_sure = _endless(result) or is_certain(answer, result.judgement.low, result.judgement.high)
    return Verdict(
        answer,
        headline,
        list(_reasons(result)),
        list(_advice(result, is_perhaps=answer == YES and not is_sure)),
        _confidence(result),
        _action(result, answer),
        list(_effect(result, headline)),
        list(_risks(result)),
        [f"Compared: {_compared(result)}."] if result._has_cache else [],
        is_sure,
    )


def _mode(result: Result) -> str:
    return str(result.scenario.get("cache_mode", "read-only"))


def _machine(result: Result) -> str:
    return str(result.scenario.get("cache") or "this cache")


def _missed(result: Result, reason: Reason) -> float:
    """Return the share of the reads of the judged phase that were not hits for this reason."""
    phase = result.phases["warm"]
    return phase.share_of_reads(phase.figures.read_reasons.get(reason, 0))


def _action(result: Result, answer: str) -> str:
    """Return what to do, in one sentence."""
    if not result._has_cache:
        return "Specify a cache: this machine has none."
    named = f": {_machine(result)}" if result.scenario.get("cache") else ""
    if answer == YES:
        return f"Use this cache{named}."
    if answer == NO:
        return f"Do not buy this cache{named}."
    if _endless(result):
        return "This replay cannot decide: neither machine keeps up with the load."
    longer = _record_longer(result)
    may = "even that may not" if _capture_s(result) == LONGEST_S else "that may"
    enough = f"; {may} be enough" if result.judgement.more_ns else ""
    return f"{longer[:1].upper()}{longer[1:]} before you decide{enough}."


def _record_longer(result: Result) -> str:
    """Return the advice to record longer, with the duration of the whole capture."""
    lasts_ns, active_ns = _lasts_ns(result)
    paused = " while the load is active" if active_ns < AT_WORK * max(lasts_ns, 1) else ""
    do = "generate" if result.trace.get("format") == "workload" else "record"
    return f"{do} {span(_capture_s(result) * SECOND)} in total{paused}"


def _effect(result: Result, headline: str) -> Iterator[str]:
    """Yield the gain with its interval, the most important sentence first."""
    judgement = result.judgement
    if not result._has_cache:
        mean = result.phases["none"].figures.reads.mean_ns
        if mean is not None and not result.phases["none"].saturated:
            yield f"Without a cache a read takes {latency(mean)} on average."
        return
    if _endless(result) or not judgement.pairs["whole"].plain.both.count or judgement.too_short:
        yield headline
        return
    yield f"{_saved(judgement)}{_worse_tail(judgement)}."
    if judgement.measured is not None:
        yield f"{CHANCE.format(factor(judgement.gain), factor(judgement.measured))}."
    yield from _about_trend(result)
    yield from _about_phases(result)
    yield from _about_requests(result, FEW)


def _risks(result: Result) -> Iterator[str]:
    """Yield the risks, the most important first."""
    if not result._has_cache:
        return
    if not _endless(result):
        yield from _about_dirt(result)
    if _mode(result) == "write-back":
        yield "Write-back: dirty data are lost if the SSD fails, unless it is mirrored."
    if result.warm_up.state not in (State.STEADY, State.FLAT, State.SHORT) and result.warm_up.why:
        yield f"The cache is not steady: {result.warm_up.why}."
    fidelity = result.fidelity
    if not fidelity.is_known or fidelity.is_other_kind:
        yield "The drives are models that were not checked against yours."
    elif fidelity.likeness != "good":
        apart = of_the_mean(fidelity.demerit)
        yield f"The disk models differ from your disks: latencies differ by {apart}."


def _answer(result: Result) -> tuple[str, str]:
    if not result._has_cache:
        return UNSURE, "The scenario has no cache: the figures are those of the disks alone."
    if _endless(result):
        return _answer_of_backlog(result)
    judgement = result.judgement
    if not judgement.pairs["whole"].plain.both.count:
        if number := result.trace.get("reads"):  # all requests are of 0 bytes
            whose = "The only read is" if number == 1 else f"All {number:,} reads are"
            return NO, f"{whose} of 0 bytes: a cache has nothing to serve."
        return NO, "The capture has no reads and no writes: a cache has nothing to serve."
    if judgement.too_short:
        return UNSURE, f"The capture is too short for a decision: {judgement.too_short}."
    gained = f"{_saved(judgement)}{_worse_tail(judgement)}"
    if judgement.answer == YES:
        return YES, f"{gained}."
    if judgement.answer == NO:
        return NO, f"Not worth its cost: {_machine(result)}. {gained}."
    return UNSURE, f"Not yet: {_record_longer(result)}. {gained}."


def _saved(judgement: Judgement) -> str:
    """Return the gain in terms of the goal, with the interval of its forecast or else its own."""
    before, after = judgement.judged.plain, judgement.judged.cached
    low, high, later = factor(judgement.low), factor(judgement.high), judgement.forecast
    forecast = "" if later is None else f"forecast {factor(later.gain)}, "
    change = f"{_change(judgement.gain)}; {forecast}90%: {low} to {high}"
    if judgement.goal == "p99":
        return f"p99 of all requests is {_tails(judgement)}: {change}"
    if judgement.goal == "disk-time":
        now, then = (span(each.disk_ns or 0) for each in (after, before))
        return f"The disks are busy for {now} instead of {then}: {change}"
    if in_time(judgement.goal, judgement.adapts):
        now, then = _with_ends(judgement, "took")
        return f"The second half of the work takes {now} instead of {then}: {change}"
    now, then = _with_ends(judgement, "all")
    return f"A request takes {now} on average instead of {then}: {change}"


def _with_ends(judgement: Judgement, name: str) -> Iterator[str]:
    """Yield a mean of the judged half, with the cache and without, with its interval if known."""
    pair = judgement.judged
    for side, each in (("cached", pair.cached), ("none", pair.plain)):
        if known := judgement.means[side].get(name):
            yield ranged(known.value, known.low, known.high)
        elif name == "took":
            yield span(each.took_ns)
        else:
            requests = {"read": each.reads, "write": each.writes, "all": each.both}
            yield latency(requests[name].mean_ns)


def _worse_tail(judgement: Judgement) -> str:
    """Return the change of p99 if it gets worse while the mean gets better."""
    tail = judgement.judged.gain("p99")
    if judgement.goal == "p99" or tail is None or tail > 1 - SAME or (judgement.gain or 0) < 1:
        return ""
    return f", but the slowest 1% get slower: {_tails(judgement)}"


def _tails(judgement: Judgement) -> str:
    pair = judgement.judged
    now, then = (latency(each.both.percentile(99)) for each in (pair.cached, pair.plain))
    return f"{now} instead of {then}"


def _answer_of_backlog(result: Result) -> tuple[str, str]:
    """Return answer and headline for an endless queue: its latencies depend on the run's length."""
    busy = percent(result.phases["warm"].utilisation)
    if not result.phases["warm"].saturated:
        mean = latency(result.phases["warm"].figures.reads.mean_ns)
        keep_up = f"with the cache they are {busy} busy and a read takes {mean} on average"
        return YES, f"The disks alone cannot keep up with this load; {keep_up}."
    if not result.phases["none"].saturated:
        their = f"with the cache ({busy} busy) they do not"
        return NO, f"The disks alone keep up with the load; {their}."
    return UNSURE, "The disks cannot keep up with this load, neither alone nor with the cache."


def _change(gain: float | None) -> str:
    if gain is None:
        return "not comparable"
    if gain >= TIMES:
        return f"{times(gain)} less"
    if abs(1 - 1 / gain) < 0.0005:
        return NO_CHANGE
    share = 1 - 1 / gain if gain >= 1 else 1 / gain - 1
    return f"{percent(share)} {'less' if gain >= 1 else 'more'}"


def _reasons(result: Result) -> Iterator[str]:
    if not result._has_cache:
        if result.phases["none"].saturated:
            busy = percent(result.phases["none"].utilisation)
            yield f"It cannot keep up with the load: its disks are {busy} busy."
        return
    if _endless(result):
        yield from _about_backlog(result)
    else:
        yield from _about_trend(result)
        yield from _about_requests(result)
        yield from _about_phases(result)
        yield from _about_dirt(result)
    has_reads = result.cached.whole.figures.reads.count > 0
    if has_reads:
        yield from _about_reads(result)
    yield from _about_writes(result)
    if has_reads and result.scenario.get("mode", "open") != "open":
        cached, plain = span(result.cached.last_done_ns), span(result.plain.last_done_ns)
        yield f"The whole trace takes {cached} with the cache, {plain} without."
    yield f"Based on {_compared(result)}, {_by_which_model(result.fidelity)}."


def _about_reads(result: Result) -> Iterator[str]:
    """Yield when the reads are served by the SSD, and why others are not."""
    state, why = result.warm_up.state, result.warm_up.why
    hits = f"{percent(result.phases['warm'].figures.hit_ratio)} of the reads come from the SSD"
    if state == State.STEADY:
        yield f"It is warm after {span(result.warm_up.warm_ns)}; then {hits}."
    elif state == State.FLAT:
        yield f"{hits}; no warm-up is visible."
    elif state == State.RESTLESS:
        yield f"{hits}; {why}."
    elif state != State.SHORT:
        at_least = ", so the gain is a lower bound" if state == State.RISING else ""
        yield f"Not steady yet: {why}{at_least}."
    for reason, minimum, text in MISSES:
        if _missed(result, reason) >= minimum:
            yield f"{percent(_missed(result, reason))} of the reads {text}."


def _about_requests(result: Result, fewest: float = 0.0) -> Iterator[str]:
    """Yield figures of the judged reads and of the writes, each with its baseline.

    Kinds with at most a share of `fewest` of the requests are left out.
    """
    pair = result.judgement.judged
    both = pair.cached.both.count
    for name, before, after in (
        ("read", pair.plain.reads, pair.cached.reads),
        ("write", pair.plain.writes, pair.cached.writes),
    ):
        if after.count <= fewest * both:
            continue
        now, then = _with_ends(result.judgement, name)
        mean = f"{now} on average instead of {then}"
        now, then = latency(after.percentile(99)), latency(before.percentile(99))
        slowest = f"stays {now}" if now == then else f"is {now} instead of {then}"
        yield f"{name.capitalize()}s take {mean}; p99 {slowest}."
    spells = max(result.phases["none"].overloaded, result.phases["warm"].overloaded)
    if spells >= 0.05:
        share = percent(spells)
        yield f"For {share} of that time the disks had a backlog; mean and p99 include it."


def _about_phases(result: Result) -> Iterator[str]:
    """Yield the gains of the filling and the warm phase if they differ much."""
    judgement = result.judgement
    gains = {
        name: each.gain(judgement.goal, judgement.adapts) for name, each in judgement.pairs.items()
    }
    filling, warm = gains.get("filling"), gains.get("warm")
    if filling and warm and max(filling / warm, warm / filling) >= APART:
        first, last = ("while the cache fills", "once it is full or warm")
        if not result.warm_up.steady:
            first, last = ("before the last fifth of the run", "in it")
        yield (
            f"The gain is {factor(filling)} times {first}, {factor(warm)} times {last}, "
            f"and {factor(gains['whole'])} times over the whole run."
        )


def _about_trend(result: Result) -> Iterator[str]:
    """Yield the reason why the forecast differs from the gain of this capture."""
    later = result.judgement.forecast
    if later is None:
        return
    over = (
        f"The forecast, for the {span(round(HORIZON * result.judgement.span_ns))} that follow, is"
    )
    if later.change <= 1 / APART:
        yield f"{over} lower: dirty data will fill the cache."
    elif later.trend >= APART:
        yield f"{over} higher: the cache is still filling."
    elif later.trend <= 1 / APART:
        yield f"{over} lower: the hit ratio is falling."


def _about_dirt(result: Result) -> Iterator[str]:
    """Yield the growth of the dirty data, if it is not steady."""
    judgement = result.judgement
    if judgement.dirty_is_steady and judgement.changes_ns is None:
        return
    grown = f"Dirty data grew by {percent(judgement.dirty_grown)} of the written data"
    if judgement.changes_ns is not None:
        soon = span(max(-(-judgement.changes_ns // (60 * SECOND)), 1) * 60 * SECOND)
        yield f"{grown}; in about {soon} the cache has no room for more and writes get slower."
    else:
        charged = factor(judgement.charged)
        yield f"{grown}; with the cost of writing them back the gain is {charged} times."


def _compared(result: Result) -> str:
    pair = result.judgement.judged
    reads, writes = (human_count(each.count) for each in (pair.cached.reads, pair.cached.writes))
    return f"the second half of the requests ({reads} reads, {writes} writes)"


def _by_which_model(fidelity: Fidelity) -> str:
    """Return how close the modelled latencies are to the recorded ones."""
    if not fidelity.is_known or fidelity.is_other_kind:
        return "with models of drives that were not checked against yours"
    model = {
        "good": "a model whose latencies differ by only",
        "fair": "a model whose latencies differ by",
        "poor": "models of drives that are not like yours: latencies differ by",
    }
    apart = of_the_mean(fidelity.demerit)
    return f"with {model[fidelity.likeness]} {apart} from the recorded ones"


def _about_backlog(result: Result) -> Iterator[str]:
    for what, outcome, phase in (
        ("The disks alone", result.plain, result.phases["none"]),
        ("With the cache, the disks", result.cached, result.phases["warm"]),
    ):
        busy = percent(phase.utilisation)
        late = ""
        if phase.saturated:
            if outcome.drain_ns > SECOND:
                late = f", with {span(outcome.drain_ns)} of work queued when the last request came"
            late += "; the latency only depends on the length of the run"
        yield f"{what} are {busy} busy{late}."


def _about_writes(result: Result) -> Iterator[str]:
    if result.cached.whole.writes < MOSTLY:
        return
    share = percent(result.cached.whole.writes)
    if _mode(result) in ("write-back", "write-only"):
        yield f"{share} of the requests are writes; cached writes reach the disks later."
        return
    yield (
        f"{share} of the requests are writes. A {_mode(result)} cache sends each to the disks "
        "and waits for them: they gain from reads that the SSD serves, and lose from fills."
    )


def _advice(result: Result, is_perhaps: bool) -> Iterator[Step]:
    """Yield the next steps; `is_perhaps`: the answer is a yes that may be wrong."""
    if is_perhaps:
        text = "Another may gain more: let hybridsim advise search all kinds of cache."
        yield Step(text, search_line(result.scenario, result.trace, result.judgement.goal))
    if _endless(result):
        yield _against_backlog(result)
    if not result._has_cache:
        text = "A scenario has `kind` and `size` under [cache]; or choose a kind here:"
        yield Step(text, _replay(result, "--cache page"))
        return
    judgement = result.judgement
    is_captured = result.trace.get("format") != "workload"
    if judgement.answer == UNSURE and judgement.more_ns and is_captured and not _endless(result):
        seconds = _capture_s(result)
        text = f"This captures {span(seconds * SECOND)}:"
        yield Step(text, f"sudo blktrace -d /dev/DISK -w {seconds} -o longer")
    if _missed(result, Reason.EVICTED) >= NOTICEABLE:
        yield _larger(result)
    is_dropped = _mode(result) in ("read-only", "write-around")
    if _missed(result, Reason.OVERWRITTEN) >= NOTICEABLE and is_dropped:
        yield Step('Cache written data: mode = "write-through" under [cache] in the scenario.')
    if result.scenario.get("cache_kind", "page") != "page":
        return  # these caches have policies of their own
    if result.cached.whole.writes >= MANY and _mode(result) != "write-back":
        text = "Try write-back: writes wait only for the SSD, which then holds the only copy."
        yield Step(text, _replay(result, "--cache-mode write-back"))
    if (
        _missed(result, Reason.BUSY) >= NOTICEABLE
        and (result.phases["warm"].utilisation or 0) < BUSY
    ):
        yield Step("Allow more concurrent fills: `max_fills` under [cache] in the scenario.")
    if _missed(result, Reason.NOT_HOT) >= MOSTLY:
        yield Step("Try admitting every miss.", _replay(result, "--admission always"))
    yield from _of_another_model(result)
    if _missed(result, Reason.SEQUENTIAL) >= MOSTLY:
        text = "Check which reads count as sequential."
        yield Step(text, "hybridsim explain 'sequential cutoff'")


def _capture_s(result: Result) -> int:
    """Return the total seconds to capture, with the replayed time that is missing.

    Idle time does not count.
    """
    lasts_ns, active_ns = _lasts_ns(result)
    pace = float(result.scenario.get("speed", 1.0))  # arrivals may be replayed faster than recorded
    lasts_ns = max(lasts_ns, 1)
    needed_ns = (lasts_ns + (result.judgement.more_ns or 0) * pace) * active_ns / lasts_ns
    minimum_s = SHORTEST_S if result.judgement.too_short else 60
    return min(max(-(-int(needed_ns) // (60 * SECOND)) * 60, minimum_s), LONGEST_S)


def _lasts_ns(result: Result) -> tuple[int, int]:
    """Return the time of the capture, and that in which its load was active."""
    lasts_ns = int(result.trace.get("span_ns", result.cached.end_ns))
    return lasts_ns, min(int(result.trace.get("active_ns", lasts_ns)), lasts_ns)


def _of_another_model(result: Result) -> Iterator[Step]:
    """Yield a step towards a better model of the disks, if the latencies differ."""
    fidelity = result.fidelity
    if not fidelity.is_known or fidelity.is_other_kind or fidelity.likeness == "good":
        return
    if not result.scenario.get("is_fitted"):
        command = f"hybridsim fit {_named(result.trace)} -o array.toml"
        yield Step("Fit the model to your array.", command)
    elif result.scenario.get("mode", "open") == "open":
        yield Step(THINK, _replay(result, "--mode think"))


def _larger(result: Result) -> Step:
    size = result.scenario.get("cache_bytes")
    if not size:
        return Step("Try a cache of twice the size: double `size` under [cache] in the scenario.")
    twice = 2 * size if size < MIB else -(-2 * size // MIB) * MIB
    option = f"--cache-size {format_size(twice)}"
    return Step("Try a cache of twice the size.", _replay(result, option))


def _against_backlog(result: Result) -> Step:
    if result.trace.get("has_completions"):
        return Step(THINK, _replay(result, "--mode think"))
    text = "Replay with a fixed queue depth, as the capture has no completions."
    return Step(text, _replay(result, "--mode closed"))


def _named(trace: Mapping[str, Any]) -> str:
    """Return the trace as arguments of a command, with TRACE in place of a pipe."""
    words = trace.get("arguments", [trace.get("name", "-")])
    return shell_line("TRACE" if word == "-" else word for word in words)


def command_line(
    name: str, scenario: Mapping[str, Any], trace: Mapping[str, Any], options: Iterable[str]
) -> str:
    """Return a command on this trace and scenario file with these options."""
    words = ["hybridsim", name, _named(trace)]
    if scenario.get("file"):
        words += ["--scenario", shell_word(str(scenario["file"]))]
    return " ".join([*words, *options])


def search_line(scenario: Mapping[str, Any], trace: Mapping[str, Any], goal: str) -> str:
    """Return the command that searches all caches for this trace and array."""
    kept = [one for one in scenario.get("options", []) if not one.startswith(OF_CACHE)]
    return command_line("advise", scenario, trace, [*kept, *goal_option(goal)])


def _replay(result: Result, option: str) -> str:
    """Return the command of the same replay with one option changed."""
    changed = option.split()[0]
    kept = [one for one in result.scenario.get("options", []) if one.split()[0] != changed]
    kept += goal_option(result.judgement.goal)
    return command_line("replay", result.scenario, result.trace, [*kept, option])


def goal_option(goal: str) -> list[str]:
    """Return the option of a goal; none for the default."""
    return [] if goal == "time" else [f"--goal {goal}"]


def _confidence(result: Result) -> dict[str, Any]:
    end, judgement = result.cached.end_ns, result.judgement
    figures, before = result.phases["warm"].figures, result.phases["none"].figures.reads
    gains = {
        "mean_read_gain": _ratio(before.mean_ns, figures.reads.mean_ns),
        "p99_read_gain": _ratio(before.percentile(99), figures.reads.percentile(99)),
        "gain": judgement.gain,
        "forecast": judgement.expected,
        "low": judgement.low,
        "high": judgement.high,
    }
    return {
        "judged": result.warm_up.state.value,
        "judged_start_ns": figures.start_ns,
        "judged_end_ns": figures.end_ns,
        "share_of_run": result.phases["warm"].span_ns / end if end else None,
        "reads": figures.reads.count,
        **(dict.fromkeys(gains) if _endless(result) else gains),
        "model_demerit": result.fidelity.demerit if result.fidelity.is_known else None,
    }


def _endless(result: Result) -> bool:
    return result.phases["none"].saturated or result.phases["warm"].saturated


def _ratio(before: float | None, after: float | None) -> float | None:
    return before / after if before and after else None


@dataclass(frozen=True)
class Other(Document):
    """A cache that was tried, and its gain over the disks alone on the same requests."""

    kind: str
    mode: str
    size_bytes: int
    answer: str
    gain: float | None  # forecast; without one, that of the capture
    low: float | None
    high: float | None
    options: tuple[str, ...]  # of the command line, for a replay of it
    installable: bool  # whether a product has it

    def words(self, scenario: Mapping[str, Any]) -> str:
        """Return what differs from the machine of a scenario, and the gain."""
        parts = []
        if self.size_bytes != scenario.get("cache_bytes"):
            parts.append(human_size(self.size_bytes))
        if self.mode != scenario.get("cache_mode"):
            parts.append(self.mode)
        gain = "gain unknown"
        if self.gain is not None:
            gain = f"gain {factor(self.gain)}"
            if self.low is not None and self.high is not None:
                gain += f" ({factor(self.low)} to {factor(self.high)})"
        return f"{', '.join(parts)}: {gain}"


def beside(
    verdict: Verdict,
    others: Sequence[Other],
    scenario: Mapping[str, Any],
    trace: Mapping[str, Any],
    goal: str,
) -> Verdict:
    """Return a verdict with what others would gain, and the step towards the best of them."""
    if not others:
        return verdict
    listed = "; ".join(each.words(scenario) for each in others)
    sentence = f"Tried beside it: {listed}."
    good = [each for each in others if each.answer == YES]
    advice = list(verdict.advice)
    command = search_line(scenario, trace, goal)
    best = max(good, key=lambda each: each.low or 0.0, default=None)

    def replay(other: Other) -> str:
        return command_line("replay", scenario, trace, [*other.options, *goal_option(goal)])

    if best is not None and best.installable:
        text = "Look at the best of these, or let hybridsim advise search all kinds."
        command = replay(best)
    elif best is not None:
        text = "Let hybridsim advise search the caches that can be installed."
    else:
        sentence += " None of them is worth it for sure."
        tried = [_words(replay(each)) for each in others]
        advice = [each for each in advice if _words(each.command or "") not in tried]
        text = "Let hybridsim advise search all kinds of cache."
    is_second = verdict.answer == UNSURE and not good and bool(advice)  # after the longer capture
    advice.insert(int(is_second), Step(text, command))
    return replace(
        verdict,
        action=f"{verdict.action} {sentence}",
        reasons=[sentence, *verdict.reasons],
        advice=advice,
    )


def _words(command: str) -> set[str]:
    """Return the words of a replay's command but for the mode, which all that were tried have."""
    return set(re.sub(r" --mode \w+", "", command).split())
