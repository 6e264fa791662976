"""The file of results, by the hash of all their inputs."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import hybridsim

PACKAGE = Path(hybridsim.__file__).parent
TIMED_SOURCES = (
    "foundation/*.py", "answers/*.py", "engine/*.py", "caches/**/*.py", "storage/**/*.py",
    "storage/catalog/**/*.toml", "scenario/**/*.py", "jit/*.py", "requests/*.py", "traces/*.py",
)  # fmt: skip
COMPUTED_BY = ("hybridsim.jit.mixing", "hybridsim.jit.instructions")
CACHED_SOURCES = (
    "requests/pages.py", "engine/residency.py", "answers/warmup.py", "caches/streams.py",
)  # fmt: skip


class Kept:
    """Results by the hash of all their inputs, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            rows = map(json.loads, path.read_text().splitlines())
            self._rows = {row["key"]: row for row in rows}

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a stored result, or None."""
        return self._rows.get(key)

    def add(self, row: dict[str, Any]) -> dict[str, Any]:
        """Store a result."""
        self._rows[row["key"]] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        return row


def key(level: str, about: Any, paths: Iterable[Path]) -> str:
    """Return the hash of all inputs of a result, and of the code of these files."""
    inputs = [level, about, [code_digest(path) for path in sorted(paths)]]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


@cache
def code_digest(path: Path) -> str:
    """Return a hash of a file's code, which does not depend on comments."""
    text = path.read_text()
    code = ast.dump(ast.parse(text)) if path.suffix == ".py" else text
    return hashlib.sha256(code.encode()).hexdigest()


def version(level: str, policy: Any) -> set[Path]:
    """Return the source files that a result of this policy depends on."""
    patterns = TIMED_SOURCES if level == "timed" else CACHED_SOURCES
    return policy.sources.union(*(PACKAGE.glob(pattern) for pattern in patterns))


def of_class(policy: Any) -> set[Path]:
    """Return the files of a policy: its own, those in its own folder, and imported ones."""
    own = Path(sys.modules[policy.__module__].__file__ or "")
    result: set[Path] = set()
    ahead = [own] if own.parent.name == "policies" else list(own.parent.glob("*.py"))
    while ahead:
        path = ahead.pop()
        if path not in result:
            result.add(path)
            ahead += imported(path)
    return result


def imported(path: Path) -> list[Path]:
    """Return the files of policies, and of their helpers, that a file imports."""
    nodes = ast.walk(ast.parse(path.read_text()))
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    names = [
        name for name in names if name.startswith(("hybridsim.caches.policies.", *COMPUTED_BY))
    ]
    files = [PACKAGE.parent / f"{name.replace('.', '/')}.py" for name in names]
    return [file for file in files if file.exists()]
