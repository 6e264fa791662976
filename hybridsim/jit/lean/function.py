"""A whole function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.body import Body, assembled
from hybridsim.jit.lean.source import tree_of
from hybridsim.jit.lean.statements import RESULT, block, leave
from hybridsim.jit.lean.translation import AgainError, Translation
from hybridsim.jit.lean.values import Number, Unsupported

TRIES_MAX = 20  # to find the kinds of the variables; each makes one of them wider


@dataclass(frozen=True)
class Compiled:
    """A function in LLVM's language."""

    symbol: str  # its name there
    takes: Sequence[Any]  # kinds
    returns: Any
    head: str  # from the type of the result on
    text: str
    constants: Sequence[str]
    declared: frozenset[str]
    machines: frozenset[Any]
    callees: Sequence[Compiled]

    @property
    def definition(self) -> str:
        """The definition of the function, and of its constants."""
        whole = f"define linkonce_odr {self.head} nounwind {{\nentry:\n{self.text}\n}}"
        return "\n".join([*self.constants, whole])


def compiled(
    function: Callable[..., Any],
    takes: tuple[Any, ...],
    symbol: str,
    compile_: Callable[[Any, tuple[Any, ...]], Compiled],
) -> Compiled:
    """Translate a function for arguments of these kinds; raise Unsupported if numba has to."""
    tree = tree_of(function)
    found = tree.args
    if found.defaults or found.kwonlyargs or found.vararg or found.kwarg or found.posonlyargs:
        raise Unsupported("parameters with defaults")
    names = [each.arg for each in found.args]
    if len(names) != len(takes):
        raise Unsupported("other arguments")
    variables: dict[str, Any] = dict(zip(names, takes))
    for _ in range(TRIES_MAX):
        t = Translation(function, variables, compile_, Body(symbol))
        parameters = _take(t, names, takes)
        try:
            block(t, tree.body)
            if t.body.is_open:
                leave(t, Number(kinds.NONE, ""))
        except AgainError:
            continue
        return _finished(t, takes, parameters)
    raise Unsupported("variables of changing types")


def _take(t: Translation, names: Sequence[str], takes: Sequence[Any]) -> list[str]:
    """Make variables of the arguments; return the parameters."""
    parameters = []
    for n, (name, kind) in enumerate(zip(names, takes)):
        operands = [f"%a{n}.{m}" for m in range(len(kinds.leaves(kind)))]
        parameters += [
            f"{kinds.llvm(leaf)} {text}" for leaf, text in zip(kinds.leaves(kind), operands)
        ]
        t.assign(name, assembled(kind, operands))
    return parameters


def _finished(t: Translation, takes: Sequence[Any], parameters: Sequence[str]) -> Compiled:
    body, returns = t.body, t.variable_kinds[RESULT]
    machines = {*body.machines, *kinds.machines_in(takes)}
    return Compiled(
        body.symbol, takes, returns,
        f'{kinds.returned(returns)} @"{body.symbol}"({", ".join(parameters)})',
        "\n".join([*body.entry, *body.lines]),
        body.constants, frozenset(body.declared), frozenset(machines), t.callees,
    )  # fmt: skip
