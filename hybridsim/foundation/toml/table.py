"""The base class of all tables of a scenario, and their types of quantities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from hybridsim.foundation.units import (
    format_rate,
    format_size,
    format_time,
    parse_percent,
    parse_rate,
    parse_size,
    parse_time,
)

Size = Annotated[int, BeforeValidator(parse_size), PlainSerializer(format_size)]
Time = Annotated[int, BeforeValidator(parse_time), PlainSerializer(format_time)]
Rate = Annotated[int, BeforeValidator(parse_rate), PlainSerializer(format_rate), Field(gt=0)]


P = TypeVar("P")


def percentage(wanted: str, most: int = 1, is_above_0: bool = False) -> BeforeValidator:
    """Return a validator of texts such as "10%"; `wanted` words what another text is not."""

    def check(text: Any) -> str:
        share = parse_percent(text)
        if share < 0 or share > most or (is_above_0 and share == 0):
            raise ValueError(f"{text!r} is not {wanted}")
        return str(text)

    return BeforeValidator(check)


Share = Annotated[str, percentage("a share: '0%' to '100%'")]


def word_or(check: Callable[[Any], Any], *words: str) -> BeforeValidator:
    """Return a validator that accepts some words, and what `check` accepts and returns."""
    return BeforeValidator(lambda value: value if value in words else check(value))


def size_text(value: Any) -> str:
    """Return the text of a size; raise ValueError if it is none."""
    size = parse_size(value)
    return str(value) if isinstance(value, str) else format_size(size)


class ContradictionError(ValueError):
    """Values that are valid each by itself but not together: (key to change, what is wrong)."""

    def __init__(self, contradictions: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(message for _, message in contradictions))
        self.contradictions = contradictions


def key_of(name: str) -> str:
    """Return the key of a field: its name without the unit, which the value in a file has."""
    return name.removesuffix("_bytes").removesuffix("_ns")


def _coded(kind: Any, value: Any) -> Any:
    """Return a parameter of a model: a code for a word."""
    if isinstance(kind, type) and issubclass(kind, IntEnum) and isinstance(value, str):
        return kind[value.upper().replace("-", "_")]
    return value


class Part(BaseModel):
    """A table of a scenario: closed, immutable, and checked as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=key_of)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, what is wrong) for values that contradict each other."""
        yield from ()

    def parameters_of(self, kind: type[P], **derived: Any) -> P:
        """Return the parameters of a model: `derived`, and the keys that have their names.

        What is neither, or has no value, has its default in the model.
        """
        known: dict[str, Any] = kind.__annotations__  # of a NamedTuple
        if is_dataclass(kind):
            known = {each.name: each.type for each in fields(kind)}
        own = {
            name: _coded(of, getattr(self, name, None))
            for name, of in known.items()
            if name not in derived
        }
        return kind(**{name: each for name, each in own.items() if each is not None}, **derived)

    @model_validator(mode="after")
    def _agree(self) -> Part:
        contradictions = list(self.contradictions())
        if contradictions:
            raise ContradictionError(contradictions)
        return self
