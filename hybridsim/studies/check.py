"""Hold a running cache against what its simulation promised."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from hybridsim.answers.check.judging import (
    Judged,
    Observed,
    judged,
    observed,
    tolerances,
)
from hybridsim.answers.check.observed import TOTAL_BLOCKS, Snapshot, read, snapshot
from hybridsim.answers.check.promise import Promise
from hybridsim.answers.setup import KINDS
from hybridsim.answers.setup.plan import Site, differing, placeholders
from hybridsim.foundation.codes import Op
from hybridsim.foundation.documents import headed
from hybridsim.foundation.errors import (
    MeasurementError,
    UsageError,
)
from hybridsim.foundation.printable import printable, shell_line
from hybridsim.requests.rows import UNKNOWN
from hybridsim.scenario import Scenario
from hybridsim.studies.replay import read_once, replay
from hybridsim.studies.runs import Report
from hybridsim.studies.setup import saved_document, saved_scenario
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.check/1"
REPLAY, SETUP, ADVICE = "hybridsim.result/", "hybridsim.setup/", "hybridsim.advice/"
SECOND = 10**9
THROTTLE = (
    "Writeback throttling of the disk (wbt) was off in the simulation; Linux has it on: see "
    "wbt_lat_usec in the folder queue of the disk in /sys/block. It delays what the cache writes "
    "back."
)


@dataclass(frozen=True)
class Check:
    """The promise, what was observed, and the answer."""

    promise_file: str
    promise: Promise
    kind: str
    mode: str
    counters: tuple[str, ...]
    capture: str | None
    seen: Observed
    differences: list[str] | None  # of the settings; None: not shown
    judged: Judged

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        settings = {"as_simulated": not self.differences, "differences": self.differences}
        return headed(
            SCHEMA,
            inputs={
                "promise": self.promise_file,
                "trace": self.promise.trace,
                "counters": self.counters,
                "capture": self.capture,
            },
            kind=self.kind,
            mode=self.mode,
            answer=self.judged.answer,
            compared=self.judged.start,
            figures=self.judged.figures,
            observed=self.seen,
            settings=None if self.differences is None else settings,
            reasons=self.judged.reasons,
        )


def check(
    promise_file: str,
    counters: tuple[str, ...] = (),
    capture: Trace | None = None,
    report: Report | None = None,
    *,
    live: tuple[Snapshot, Snapshot] | None = None,
    tolerance: Sequence[str] = (),
) -> Check:
    """Return whether a cache keeps the promise in a file.

    `counters` are two snapshots, one file of samples, or one snapshot since the start of the
    cache; `live` are two snapshots that were taken already.  A capture of the cached device is
    simulated again, with the promised cache.  `tolerance` has the syntax of `--tolerance`.  Raises
    UsageError for a file without a promise, MeasurementError for counters that cannot be read or
    are those of another kind of cache.
    """
    own = tolerances(tolerance)
    promise, copies = promised(promise_file)
    scenario = Scenario.loads(promise.toml, f"{promise_file} (its scenario)")
    kind, page_bytes = scenario.cache.kind, promise.page_bytes
    size_bytes = promise.cache_pages * page_bytes
    differences = None
    seen = Observed()
    pair = live or (read(counters) if counters else None)
    if pair is not None:
        if pair[1].kind != kind:
            raise MeasurementError(
                f"{pair[1].source} has the counters of {pair[1].kind}, {promise_file} promises "
                f"{kind}: check the promise of the cache that runs"
            )
        seen = observed(promise, kind, *pair, size_bytes, copies)
        if not seen.requests and capture is None:
            raise MeasurementError(
                f"{pair[1].source}: no request was counted since the first snapshot: put a load "
                "on the cached device, and save the counters again"
            )
        differences = settings_differ(scenario, promise.cache_pages, pair[1])
    again = None
    if capture is not None:
        again, seen = _captured(capture, scenario, size_bytes, page_bytes, seen, report)
    answer = judged(promise, kind, seen, size_bytes, again, differences, own)
    if (
        scenario.backing.is_one_drive
        and scenario.backing.writeback_throttle == "off"
        and any(each.within is False for each in answer.figures)
    ):
        answer = replace(answer, reasons=[*answer.reasons, THROTTLE])
    name = None if capture is None else capture.name
    files = counters or tuple(each.source for each in live or ())
    return Check(
        promise_file, promise, kind, scenario.cache.write_policy, files, name, seen, differences,
        answer,
    )  # fmt: skip


def promised(file: str) -> tuple[Promise, int]:
    """Return the promise of a file, and how many SSDs hold each byte."""
    shown = printable(file)
    wrong = f"{shown} is not the JSON of hybridsim replay or hybridsim setup (--json FILE)"
    with saved_document(file, wrong) as document:
        schema = str(document["schema"])
        if schema.startswith(ADVICE):
            trace = shell_line(document["inputs"]["trace"]["arguments"])
            options = " ".join(document["recommended"]["options"])
            raise UsageError(
                f"{shown} is advice, which has no course of the figures. Save the promise with: "
                f"hybridsim replay {trace} {options} --json promise.json"
            )
        if schema.startswith(SETUP):
            if document["promise"] is None:
                raise UsageError(
                    f"{shown} was not made of a replay, so it promises no figures: specify the "
                    "JSON of hybridsim replay, or repeat hybridsim setup with it"
                )
            copies = 1 + bool(document["settings"]["drives"]["is_mirrored"])
            return TypeAdapter(Promise).validate_python(document["promise"]), copies
        if not schema.startswith(REPLAY):
            raise UsageError(f"{wrong}: its schema is {printable(schema)}")
        scenario = saved_scenario(str(document["inputs"]["scenario"]["toml"]), file)
        result = Promise.of_result(document, scenario.cache.page_bytes)
    if result.cache_pages <= 0:
        raise UsageError(f"{shown}: its replay has no cache, so nothing was promised")
    return result, 1


def settings_differ(scenario: Scenario, pages: int, last: Snapshot) -> list[str] | None:
    """Return how the settings of a cache differ from the simulated ones; None: not shown."""
    module = KINDS.get(scenario.cache.kind)
    if module is None:
        return None
    site = Site(
        fast=placeholders(scenario.cache.members), distribution="debian13", from_source=True
    )
    try:
        one = module.settings(scenario.cache, pages, site)
        if last.state.count("\n") >= 1:  # a table and a status, or several files
            return list(module.differences(one, last.state))
        blocks = last.counters.get(TOTAL_BLOCKS)
        if blocks is None:
            return None
        name = "chunks" if hasattr(one, "chunks") else "blocks"
        return differing([(name, getattr(one, name), blocks)]) or None
    except (UsageError, ValueError, IndexError):
        return None


def _captured(
    capture: Trace, scenario: Scenario, size_bytes: int, page_bytes: int, seen: Observed,
    report: Report | None,
) -> tuple[Promise, Observed]:  # fmt: skip
    """Simulate the promised cache on a capture, and add what the capture shows."""
    summary = read_once(capture, report)
    if summary.reads + summary.writes == 0:
        raise UsageError(f"{capture.name} has no reads or writes: record it while the load runs")
    site = scenario.with_values({"cache.size": str(size_bytes)})
    result = replay(capture, site, report)
    document = json.loads(result.to_json())
    total = {op: [0, 0] for op in (Op.READ, Op.WRITE)}
    for chunk in capture.chunks():
        for op, sums in total.items():
            chosen = (chunk.op == op) & (chunk.complete_ns != UNKNOWN)
            sums[0] += int(np.sum(chunk.complete_ns[chosen] - chunk.arrival_ns[chosen]))
            sums[1] += int(chosen.sum())
    read_ns, write_ns = (ns / number if number else None for ns, number in total.values())
    shown = {
        "bytes_read": summary.bytes_read,
        "bytes_written": summary.bytes_written,
        "read_mean_ns": read_ns,
        "write_mean_ns": write_ns,
    }
    found: dict[str, Any] = {
        name: value for name, value in shown.items() if getattr(seen, name) is None
    }
    if seen.reads is None:
        found |= {"reads": summary.reads, "writes": summary.writes, "duration_ns": summary.span_ns}
    more = replace(seen, footprint_bytes=summary.footprint_bytes, **found)
    return Promise.of_result(document, page_bytes), more


# A running cache.


def watched(
    kind: str, device: str, fast: tuple[str, ...], passes_s: float,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[Snapshot, Snapshot]:  # fmt: skip
    """Return the state of a running cache now, and after some seconds."""
    first = snapshot(state_of(kind, device, fast), device)
    wait(passes_s)
    return first, snapshot(state_of(kind, device, fast), device)


def state_of(kind: str, device: str, fast: tuple[str, ...]) -> str:
    """Return the text that the command of `monitor` would save; it only reads."""
    name = Path(device).resolve().name
    folder = Path("/sys/class/block")
    lines = ["uptime " + Path("/proc/uptime").read_text()]
    if kind in ("dm-cache", "dm-writecache"):
        mapped = Path(device).name if "/mapper/" in device else _output(
            "dmsetup", "info", "-c", "--noheadings", "-o", "name", device
        ).strip()  # fmt: skip
        lines += [_output("dmsetup", "table", mapped),
                  _output("dmsetup", "status", "--noflush", mapped)]  # fmt: skip
    elif kind == "bcache":
        place = folder / name / "bcache"
        paths = [*sorted(place.glob("stats_total/*")), place / "state", place / "dirty_data"]
        paths += [place / each for each in (*KINDS[kind].SYSFS, *KINDS[kind].SHOWN)]
        lines += [f"{path}:{line}" for path in paths for line in _lines(path)]
    else:
        cache, _, core = name.removeprefix("cas").partition("-")  # cas1-2: core 2 of cache 1
        options = ["-i", cache, "-j", core]
        lines += [
            _output("casadm", "-P", *options, "-o", "csv"),
            _output("casadm", "-P", "-i", cache),
            _output("casadm", "-P", *options),
        ]
    roles = [("cached", device), *(("ssd", each) for each in fast)]
    for role, each in roles:
        for line in _lines(folder / Path(each).resolve().name / "stat"):
            lines.append(f"{role} {line.strip()}")
    return "\n".join(lines)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise MeasurementError(f"cannot read {path}: {error.strerror}") from None


def _output(*words: str) -> str:
    """Return what a command prints that only reads; raise MeasurementError if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasurementError(f"{shell_line(words)}: {error}") from None
    if done.returncode:
        raise MeasurementError(
            f"{shell_line(words)} failed: {done.stderr.strip() or done.stdout.strip()} "
            "(it needs root)"
        )
    return done.stdout
