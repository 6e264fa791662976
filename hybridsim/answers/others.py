"""Other caches that were tried where a verdict is no or unsure, in the verdict's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hybridsim.answers.forecast import UNSURE, YES
from hybridsim.answers.verdict import Step, Verdict, command_line, goal_option, search_line
from hybridsim.foundation.documents import Document
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import factor


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
    best = max(good, key=lambda each: each.low or 0.0, default=None)
    search = search_line(scenario, trace, goal)
    if best is not None and best.installable:
        text = "Look at the best of these, or let hybridsim advise search all kinds."
        command = command_line("replay", scenario, trace, [*best.options, *goal_option(goal)])
    elif best is not None:
        text = "Let hybridsim advise search the caches that can be installed."
        command = search
    else:
        sentence += " None of them is worth it for sure."
        tried = [
            _words(command_line("replay", scenario, trace, [*each.options, *goal_option(goal)]))
            for each in others
        ]
        advice = [each for each in advice if _words(each.command or "") not in tried]
        text = "Let hybridsim advise search all kinds of cache."
        command = search
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
