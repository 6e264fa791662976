"""What every table of a scenario has in common, and the quantities that tables are made of."""

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
    """Values that are each possible but not together: (key to mend, what is wrong)."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(message for _, message in found))
        self.found = found


class Part(BaseModel):
    """A table of a scenario: closed, immutable, and checked as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, what is wrong) for values that do not go together."""
        yield from ()

    @model_validator(mode="after")
    def _agree(self) -> Part:
        found = list(self.contradictions())
        if found:
            raise ContradictionError(found)
        return self
