"""How to reproduce the figures."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hybridsim.show.html.blocks import Block, Code, CopyJson, Section, Table


def section(document: Mapping[str, Any]) -> Section:
    """Return the command, the complete scenario, versions and hashes."""
    inputs = document.get("inputs", {})
    scenario = inputs.get("scenario", document.get("scenario", {}))
    blocks: list[Block] = []
    if document.get("command"):
        blocks.append(Code("The command", str(document["command"])))
    tool = document.get("tool", {})
    rows = [["result", str(document["schema"])]]
    rows += [[name, str(value)] for name, value in tool.items()]
    if scenario.get("toml"):
        rows.append(["scenario, SHA-256", digest(scenario["toml"])])
    trace = inputs.get("trace", {})
    if trace.get("requests_sha256"):
        rows.append(["requests, SHA-256", trace["requests_sha256"]])
    blocks.append(Table("Versions and hashes", ["", ""], rows))
    if scenario.get("toml"):
        blocks.append(Code("The complete scenario, with all defaults", scenario["toml"], True))
    blocks.append(CopyJson())
    lead = "The same command gives the same figures, to the nanosecond, on any machine."
    return Section("reproduce", "How to reproduce", blocks, lead)


def digest(toml: str) -> str:
    """Return the SHA-256 of a scenario; file names in it may be other than UTF-8."""
    return hashlib.sha256(toml.encode("utf-8", "surrogateescape")).hexdigest()
