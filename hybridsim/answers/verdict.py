"""Should this load get this cache?  yes, no or unsure, from figures alone, in words an admin knows.

The machine with the cache is held against the same disks without it, over the same time: the warm
phase if there is one, else the last fifth of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.outcome import SECOND, Outcome, Phase
from hybridsim.answers.warmup import State, WarmUp
from hybridsim.foundation.codes import Reason
from hybridsim.foundation.printable import shell_line, shell_word
from hybridsim.foundation.units import format_size, human_count
from hybridsim.foundation.wording import latency, of_the_mean, percent, span, times

YES, NO, UNSURE = "yes", "no", "unsure"

WORTH_IT = 1.5  # times lower mean read latency
POINTLESS = 1.15
HARMFUL = 0.95  # the cache costs the disks more than it saves them
MIB = 2**20
MOSTLY = 0.5  # of the reads, or of the requests
MANY = 0.4  # of the requests: writes that the disks are kept busy with
TOUCHED_ONCE = 0.7  # of the reads
NOTICEABLE = 0.1
FEWEST_READS, FEWEST_WRITES = 1000, 100
SHORTEST_NS = 30 * SECOND  # of simulated time
# Of a capture that is advised: ten minutes show something, nobody waits for more than a week.
SHORTEST_S, LONGEST_S = 600, 7 * 86400
AT_WORK = 0.5  # of a capture: less, and its pauses are told
MISSES = (  # why, of how many reads at least it is told, and how
    (Reason.COLD, MOSTLY, "touch data for the first time; no cache has that"),
    (Reason.SEQUENTIAL, MOSTLY, "are sequential: disks are good at those; the cache skips them"),
    (Reason.EVICTED, NOTICEABLE, "want data that was evicted: the cache is too small for them"),
)
BUSY = 0.9  # disks that have no time for more fills


@dataclass(frozen=True)
class Step:
    """What to do next, and the command that does it where there is one."""

    text: str
    command: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer, the sentence that says it, what it rests on, and what to do next."""

    answer: str
    headline: str
    reasons: list[str] = field(default_factory=list)
    advice: list[Step] = field(default_factory=list)
    confidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """All that a verdict may look at."""

    cached: Outcome
    plain: Outcome
    warm_up: WarmUp
    with_cache: Phase  # the judged phase of the cached machine
    without: Phase  # of the plain one, over the same time
    trace: Mapping[str, Any]
    scenario: Mapping[str, Any]
    fidelity: Fidelity

    @property
    def has_cache(self) -> bool:
        """Whether there is a cache at all."""
        return self.scenario.get("cache_pages") != 0

    @property
    def gain(self) -> float | None:
        """How many times lower the mean read latency is."""
        return _ratio(self.without.figures.reads.mean_ns, self.with_cache.figures.reads.mean_ns)

    @property
    def tail_gain(self) -> float | None:
        """How many times lower the 99th percentile of reads is."""
        before, after = (
            phase.figures.reads.percentile(99) for phase in (self.without, self.with_cache)
        )
        return _ratio(before, after)

    @property
    def cache_mode(self) -> str:
        """What a write does to the cache, as scenarios call it."""
        return str(self.scenario.get("cache_mode", "read-only"))

    @property
    def when(self) -> str:
        """The judged phase, as a phrase that begins a sentence."""
        if self.warm_up.state == State.STEADY:
            return "Once warm"
        return "Over the whole run" if self.warm_up.state == State.FLAT else "At the end of the run"

    def missed(self, reason: Reason) -> float:
        """Share of the reads of the judged phase that were no hits for this reason."""
        return self.with_cache.share_of_reads(self.with_cache.figures.read_reasons.get(reason, 0))

    @property
    def writes(self) -> float:
        """Share of writes among the reads and writes."""
        figures = self.cached.whole.figures
        both = figures.reads.count + figures.writes.count
        return figures.writes.count / both if both else 0.0


def judge(case: Case) -> Verdict:
    """Answer for this case."""
    answer, headline = _answer(case)
    return Verdict(
        answer, headline, list(_reasons(case, answer)), list(_advice(case)), _confidence(case)
    )


def _answer(case: Case) -> tuple[str, str]:
    if not case.has_cache:
        return UNSURE, "The scenario has no cache to judge; this is the machine alone."
    if not case.cached.whole.figures.reads.count:
        if number := case.trace.get("reads"):  # of the trace: those of no bytes too
            whose = "The capture's read asks" if number == 1 else f"All {number:,} reads ask"
            return NO, f"{whose} for 0 bytes: there is nothing that a cache could serve."
        return NO, "The capture holds no reads, and this cache serves nothing else."
    if _endless(case):
        return _answer_of_backlog(case)
    if case.gain is None or case.warm_up.state == State.SHORT:
        return UNSURE, f"The capture is too short to tell: {case.warm_up.why}."
    if _is_short(case):
        reads = human_count(case.cached.whole.figures.reads.count)
        why = f"{reads} reads in {span(case.cached.end_ns)}"
        return UNSURE, f"The capture is too short to tell: {why}."
    if case.gain >= WORTH_IT:
        return YES, f"{case.when}, {_compared(case)}."
    if case.missed(Reason.COLD) >= TOUCHED_ONCE:
        once = percent(case.missed(Reason.COLD))
        return NO, f"The data is touched once: {once} of the reads are the first of their data."
    if not case.warm_up.steady and case.warm_up.state != State.RESTLESS:
        return UNSURE, f"The capture is too short to tell: {case.warm_up.why}."
    if case.gain < HARMFUL:
        return NO, f"It slows reads down: {_decapitalised(case.when)}, {_compared(case)}."
    if case.gain < POINTLESS:
        return NO, f"It changes little: {_decapitalised(case.when)}, {_compared(case)}."
    return UNSURE, f"A modest gain, to be held against the price: {_compared(case)}."


def _answer_of_backlog(case: Case) -> tuple[str, str]:
    """Where a queue grows without end its latency says how long the run was, nothing else."""
    busy = percent(case.with_cache.utilisation)
    if not case.with_cache.saturated:
        mean = latency(case.with_cache.figures.reads.mean_ns)
        keep_up = f"with the cache they are {busy} busy and a read takes {mean} on average"
        return YES, f"The disks alone cannot keep up with this load; {keep_up}."
    if not case.without.saturated:
        return NO, f"Alone the disks keep up; with the cache ({busy} busy) they no longer do."
    return UNSURE, "The disks cannot keep up with this load, neither alone nor with the cache."


def _compared(case: Case) -> str:
    before, after = case.without.figures.reads, case.with_cache.figures.reads
    mean = f"a read takes {latency(after.mean_ns)} on average instead of {latency(before.mean_ns)}"
    return f"{mean} ({_change(case.gain)})"


def _change(gain: float | None) -> str:
    if gain is None:
        return "not comparable"
    if gain >= WORTH_IT:
        return f"{times(gain)} less"
    share = 1 - 1 / gain if gain >= 1 else 1 / gain - 1
    return f"{percent(share)} {'less' if gain >= 1 else 'more'}"


def _reasons(case: Case, answer: str) -> Iterator[str]:
    if not case.has_cache:
        if case.without.saturated:
            yield f"It cannot keep up: its disks are {percent(case.without.utilisation)} busy."
        return
    if not case.cached.whole.figures.reads.count:
        yield from _about_writes(case)
        return
    if _endless(case):
        yield from _about_backlog(case)
    else:
        yield from _about_tail(case)
    if case.warm_up.state == State.STEADY:
        warm = span(case.warm_up.warm_ns)
        yield f"It is warm after {warm}; then {_hit(case)} of the reads come from the SSD."
    elif case.warm_up.state == State.FLAT:
        yield f"{_hit(case)} of the reads come from the SSD; no warm-up is to be seen."
    elif case.warm_up.state == State.RESTLESS:
        yield f"{_hit(case)} of the reads come from the SSD; {case.warm_up.why}."
    elif case.warm_up.state != State.SHORT:
        at_least = ", so the gain is a lower bound" if case.warm_up.state == State.RISING else ""
        if answer != UNSURE:  # there it is the headline
            yield f"Not steady yet: {case.warm_up.why}{at_least if answer == YES else ''}."
    yield from _about_misses(case)
    yield from _about_writes(case)
    yield from _about_run_time(case)
    yield _judged_on(case)


def _is_short(case: Case) -> bool:
    return case.cached.end_ns < SHORTEST_NS or case.cached.whole.figures.reads.count < FEWEST_READS


def _about_run_time(case: Case) -> Iterator[str]:
    """Where the load adapts to the machine, how long the same work takes."""
    if case.scenario.get("mode", "open") != "open":
        cached, plain = span(case.cached.last_done_ns), span(case.plain.last_done_ns)
        yield f"All the work of the trace takes {cached} with the cache, {plain} without."


def _judged_on(case: Case) -> str:
    number = case.with_cache.figures.reads.count
    reads = f"{human_count(number)} read{'s' * (number != 1)}"
    share = percent(case.with_cache.span_ns / case.cached.end_ns if case.cached.end_ns else 0.0)
    return f"Judged on {share} of the run ({reads}), {_by_which_model(case.fidelity)}."


def _by_which_model(fidelity: Fidelity) -> str:
    """How much the modelled disks are like those that the trace comes from."""
    if not fidelity.is_known or fidelity.is_other_kind:
        return "with models of drives, not with yours"
    apart = f"{of_the_mean(fidelity.demerit)} from those recorded"
    if fidelity.likeness == "good":
        return f"with a model whose latencies are only {apart}"
    if fidelity.likeness == "fair":
        return f"with a model whose latencies are {apart}"
    return f"with models of drives that are not like yours: latencies are {apart}"


def _hit(case: Case) -> str:
    return percent(case.with_cache.figures.hit_ratio)


def _about_tail(case: Case) -> Iterator[str]:
    before = case.without.figures.reads.percentile(99)
    after = case.with_cache.figures.reads.percentile(99)
    if case.tail_gain is None:
        return
    words = f"p99 of the reads is {latency(after)} instead of {latency(before)}"
    if 0.95 < case.tail_gain < 1.05:
        yield f"{words}: the slowest 1% still come from the disks."
    else:
        yield f"{words} ({_change(case.tail_gain)})."
    spells = max(case.without.overloaded, case.with_cache.overloaded)
    if spells >= 0.05:
        share = percent(spells)
        yield f"For {share} of that time a backlog waited at busy disks; mean and p99 contain it."


def _about_backlog(case: Case) -> Iterator[str]:
    for what, outcome, phase in (
        ("The disks alone", case.plain, case.without),
        ("With the cache, the disks", case.cached, case.with_cache),
    ):
        busy = percent(phase.utilisation)
        if phase.saturated:
            behind = f", and {span(outcome.drain_ns)} behind when the last request came"
            late = behind if outcome.drain_ns > SECOND else ""
            yield f"{what} are {busy} busy{late}; their latency would be that of an endless queue."
        else:
            yield f"{what} are {busy} busy."


def _about_misses(case: Case) -> Iterator[str]:
    for why, least, words in MISSES:
        if case.missed(why) >= least:
            yield f"{percent(case.missed(why))} of the reads {words}."


def _about_writes(case: Case) -> Iterator[str]:
    before, after = (phase.figures.writes for phase in (case.without, case.with_cache))
    gain = _ratio(before.mean_ns, after.mean_ns)
    is_told = min(before.count, after.count) >= FEWEST_WRITES and not _endless(case)
    if is_told and gain is not None and not 0.95 < gain < 1.05:
        now = f"{latency(after.mean_ns)} on average instead of {latency(before.mean_ns)}"
        yield f"Writes take {now} ({_change(gain)})."
    if case.writes < MOSTLY:
        return
    share = percent(case.writes)
    if case.cache_mode in ("write-back", "write-only"):
        yield f"{share} of the requests are writes; those that the cache takes reach disks later."
        return
    yield (
        f"{share} of the requests are writes. A {case.cache_mode} cache sends each to the disks "
        "and waits for them: they gain by reads that the disks no longer do, and lose by fills."
    )


def _advice(case: Case) -> Iterator[Step]:
    if _endless(case):
        yield _against_backlog(case)
    if not case.has_cache:
        text = "Give it a cache: `kind` and `size` under [cache] in the scenario."
        yield Step(text, _replay(case, "--cache page"))
        return
    has_reads = case.cached.whole.figures.reads.count > 0
    settled = case.warm_up.state in (State.FALLING, State.RESTLESS)
    if has_reads and case.warm_up.needed_ns and not settled:
        yield _longer(case, case.warm_up.needed_ns)
    if case.missed(Reason.EVICTED) >= NOTICEABLE:
        yield _larger(case)
    is_dropped = case.cache_mode in ("read-only", "write-around")
    if case.missed(Reason.OVERWRITTEN) >= NOTICEABLE and is_dropped:
        yield Step('Keep what is written: mode = "write-through" under [cache] in the scenario.')
    if case.scenario.get("cache_kind", "page") != "page":
        return  # it decides by itself
    if case.writes >= MANY and case.cache_mode != "write-back":
        text = "Try write-back: writes wait for the SSD alone, which has the only copy for a while."
        yield Step(text, _replay(case, "--cache-mode write-back"))
    if case.missed(Reason.BUSY) >= NOTICEABLE and (case.with_cache.utilisation or 0) < BUSY:
        yield Step("Let more pages be filled at once: `max_fills` under [cache] in the scenario.")
    if case.missed(Reason.NOT_HOT) >= MOSTLY:
        yield Step("Try letting every miss in.", _replay(case, "--admission always"))
    yield from _of_another_model(case)
    if case.missed(Reason.SEQUENTIAL) >= MOSTLY:
        yield Step("What counts as sequential?", "hybridsim explain 'sequential cutoff'")


def _longer(case: Case, needed_ns: int) -> Step:
    """How long to capture: so many times the time in which this capture's load was at work."""
    # Simulated time is not the capture's where the load adapts to the machine.
    lasts = case.trace.get("span_ns", case.cached.end_ns)
    active = min(case.trace.get("active_ns", lasts), lasts)
    times = needed_ns / max(case.cached.end_ns, 1)
    fewest = SHORTEST_S if case.warm_up.state == State.SHORT else 60
    seconds = max(-(-int(times * active) // (60 * SECOND)) * 60, fewest)
    paused = " while the load is at work" if active < AT_WORK * lasts else ""
    if seconds > LONGEST_S:
        seconds = LONGEST_S
        text = f"Capture for {span(seconds * SECOND)}{paused}: even then the cache may not be warm."
    else:
        need = span(seconds * SECOND)
        text = f"Capture for at least {need}{paused}, so that the cache can warm up."
    return Step(text, f"sudo blktrace -d /dev/DISK -w {seconds} -o longer")


def _of_another_model(case: Case) -> Iterator[Step]:
    """Where the modelled disks are not like those of the capture, a way to make them so."""
    fidelity = case.fidelity
    if not fidelity.is_known or fidelity.is_other_kind or fidelity.likeness == "good":
        return
    if not case.scenario.get("is_fitted"):
        text = "Make the model one of your array."
        yield Step(text, f"hybridsim fit {_named(case)} -o array.toml")
    elif case.scenario.get("mode", "open") == "open":
        text = "Let each request wait for those it waited for when captured: programs do."
        yield Step(text, _replay(case, "--mode think"))


def _larger(case: Case) -> Step:
    size = case.scenario.get("cache_bytes")
    if not size:
        return Step("Try twice the cache: double `size` under [cache] in the scenario.")
    twice = 2 * size if size < MIB else -(-2 * size // MIB) * MIB
    return Step("Try twice the cache.", _replay(case, f"--cache-size {format_size(twice)}"))


def _against_backlog(case: Case) -> Step:
    if case.trace.get("has_completions"):
        text = "Let each request wait for those it waited for when captured."
        return Step(text, _replay(case, "--mode think"))
    text = "Keep a fixed number of requests under way instead; the capture has no completions."
    return Step(text, _replay(case, "--mode closed"))


def _named(case: Case) -> str:
    """The trace as a command names it; what came from a pipe must be given again."""
    words = case.trace.get("arguments", [case.trace.get("name", "-")])
    return shell_line("TRACE" if word == "-" else word for word in words)


def _replay(case: Case, option: str) -> str:
    """The command that replays the same again, but for one option."""
    words = ["hybridsim replay", _named(case)]
    if case.scenario.get("file"):
        words += ["--scenario", shell_word(str(case.scenario["file"]))]
    changed = option.split()[0]
    kept = [one for one in case.scenario.get("options", []) if one.split()[0] != changed]
    return " ".join([*words, *kept, option])


def _confidence(case: Case) -> dict[str, Any]:
    end = case.cached.end_ns
    return {
        "judged": case.warm_up.state.value,
        "judged_start_ns": case.with_cache.figures.start_ns,
        "judged_end_ns": case.with_cache.figures.end_ns,
        "share_of_run": case.with_cache.span_ns / end if end else None,
        "reads": case.with_cache.figures.reads.count,
        "mean_read_gain": None if _endless(case) else case.gain,
        "p99_read_gain": None if _endless(case) else case.tail_gain,
        "model_demerit": case.fidelity.demerit if case.fidelity.is_known else None,
    }


def _endless(case: Case) -> bool:
    return case.without.saturated or case.with_cache.saturated


def _ratio(before: float | None, after: float | None) -> float | None:
    return before / after if before and after else None


def _decapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]
