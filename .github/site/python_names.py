"""The page of the Python API: the public names of the package, with signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import hybridsim
from hybridsim import plot

PLAIN = ("__version__", "plot")


def pages() -> dict[str, str]:
    """Return the page by its address."""
    parts = [f"# Python\n\n{_text(hybridsim)}\n"]
    for name in hybridsim.__all__:
        if name not in PLAIN:
            parts += _entry(f"hybridsim.{name}", getattr(hybridsim, name), "##")
    parts.append(f"## hybridsim.plot\n\n{_text(plot)}\n")
    for name in plot.__all__:
        parts += _entry(f"plot.{name}", getattr(plot, name), "###")
    return {"reference/python.md": "\n".join(parts)}


def _entry(name: str, thing: Any, level: str) -> Iterator[str]:
    """Yield the text of a function, or of a class with its public members."""
    if not inspect.isclass(thing):
        yield f"{level} {name}\n\n{_signed(name, thing)}\n"
        return
    yield f"{level} {name}\n\n{_text(thing)}\n"
    for member, value in vars(thing).items():
        if not member.startswith("_") and not _is_field(thing, member):
            yield from _member(f"{name.rpartition('.')[2]}.{member}", value, f"{level}#")


def _is_field(cls: type, member: str) -> bool:
    return dataclasses.is_dataclass(cls) and member in {f.name for f in dataclasses.fields(cls)}


def _member(name: str, value: Any, level: str) -> Iterator[str]:
    plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if isinstance(plain, property):
        yield f"{level} {name}\n\n{_text(plain)}\n"
    elif inspect.isfunction(plain):
        yield f"{level} {name}\n\n{_signed(name, plain)}\n"


def _signed(name: str, thing: Any) -> str:
    signature = inspect.signature(thing)
    line = f"{name.removeprefix('hybridsim.')}{_bare(signature)}"
    if len(line) > 88:
        inner = ",\n    ".join(_arguments(signature))
        line = f"{name.removeprefix('hybridsim.')}(\n    {inner},\n)"
        if signature.return_annotation is not inspect.Signature.empty:
            line += f" -> {signature.return_annotation}"
    return f"```text\n{line}\n```\n\n{_text(thing)}"


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred |= each.kind is each.VAR_POSITIONAL
        yield _bare(each)


def _bare(thing: inspect.Signature | inspect.Parameter) -> str:
    """Return it as in the source, its types without quotes and without functions as defaults."""
    return re.sub(
        r"<function .*? at 0x\w+>|Ellipsis",
        "...",
        re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(thing)),
    )


def _text(thing: Any) -> str:
    """Return the docstring; what is indented in it is code or a list, and stays so."""
    return textwrap.dedent(inspect.getdoc(thing) or "").strip()
