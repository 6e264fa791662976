"""Figures in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COUNTERS = ("_total", "_sum", "_count")  # ends of the names of counters; others are gauges
ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
# Name without the prefix, what it is, and its value, or several with their labels.
Metric = tuple[str, str, Any]


def exposition(metrics: Iterable[Metric], **labels: object) -> str:
    """Return metrics as text, all with these labels; values that are None are left out."""
    out: list[str] = []
    for name, text, values in metrics:
        rows = values if isinstance(values, list) else [({}, values)]
        known = [(_labels({**labels, **own}), each) for own, each in rows if each is not None]
        if known:
            kind = "counter" if name.endswith(COUNTERS) else "gauge"
            out += [f"# HELP hybridsim_{name} {text}", f"# TYPE hybridsim_{name} {kind}"]
            out += [f"hybridsim_{name}{own} {each}" for own, each in known]
    return "\n".join(out) + "\n"


def _labels(labels: Mapping[str, object]) -> str:
    words = [f'{name}="{str(each).translate(ESCAPED)}"' for name, each in labels.items()]
    return f"{{{','.join(words)}}}" if words else ""
