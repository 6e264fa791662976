"""The base class of all tables of a scenario, and their types of quantities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from hybridsim.foundation.units import (
    format_rate,
    format_size,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
)

Size = Annotated[int, BeforeValidator(parse_size), PlainSerializer(format_size)]
Time = Annotated[int, BeforeValidator(parse_time), PlainSerializer(format_time)]
Rate = Annotated[int, BeforeValidator(parse_rate), PlainSerializer(format_rate), Field(gt=0)]


class ContradictionError(ValueError):
    """Values that are valid each by itself but not together: (key to change, what is wrong)."""

    def __init__(self, contradictions: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(message for _, message in contradictions))
        self.contradictions = contradictions


def key_of(name: str) -> str:
    """Return the key of a field: its name without the unit, which the value in a file has."""
    return name.removesuffix("_bytes").removesuffix("_ns")


class Part(BaseModel):
    """A table of a scenario: closed, immutable, and checked as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=key_of)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, what is wrong) for values that contradict each other."""
        yield from ()

    @model_validator(mode="after")
    def _agree(self) -> Part:
        contradictions = list(self.contradictions())
        if contradictions:
            raise ContradictionError(contradictions)
        return self
