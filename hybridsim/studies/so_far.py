"""The verdict on what has arrived of a stream, now and then until it ends.

Each is a replay of all that has arrived, so the time between two grows with their cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hybridsim.answers.result import Result
from hybridsim.foundation.errors import ScenarioError, TraceError, UsageError
from hybridsim.scenario import Scenario
from hybridsim.studies.replay import replay
from hybridsim.traces.trace import Trace

EVERY_S = 10.0  # at least, between two answers, and before the first one
SHARE = 0.2  # of the time that answers may take


class SoFar:
    """Takes what has arrived, and replays it if that is due."""

    def __init__(self, scenario: Scenario, goal: str, show: Callable[[Result], None]) -> None:
        """Replay with a scenario and a goal; `show` gets the results."""
        self._scenario, self._goal, self._show = scenario, goal, show
        self._due_s = time.monotonic() + EVERY_S

    def __call__(self, trace: Trace) -> None:
        """Replay a trace if that is due; what is too little for an answer is waited for."""
        begun_s = time.monotonic()
        if begun_s < self._due_s or trace.sample is not None:
            return
        try:
            self._show(replay(trace, self._scenario, goal=self._goal))
        except (TraceError, ScenarioError, UsageError):  # an event may still be to come
            pass
        finally:
            ended_s = time.monotonic()
            self._due_s = ended_s + max(EVERY_S, (ended_s - begun_s) * (1 / SHARE - 1))
