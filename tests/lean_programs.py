"""Random functions in the language that methods are written in, as Python text.

Each takes a machine of arrays and three numbers, and returns numbers; it may also change the
arrays.  Nothing in it is undefined: shifts are below 64 bits, indices are within the arrays, a
fraction is within range where it becomes an integer.  Integers may overflow.
"""

from __future__ import annotations

from random import Random

ITEMS = 8  # of each array
INTEGERS = ("0", "1", "2", "3", "5", "7", "8", "-1", "-7", "255", "65535", "LARGE")
FRACTIONS = ("0.0", "1.5", "-2.5", "1e300", "0.1", "HALF")
HEADER = """
import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hybridsim.jit import kernel, loop, method, state_machine

class codes(IntEnum):
    SEVEN = 7

LARGE = 1234567890
HALF = 0.5
TABLE = (3, -5, 1 << 30, 11)

@state_machine
class Part(NamedTuple):
    small: np.ndarray
    bytes_: np.ndarray
    level: tuple[int, ...]

    @method
    def at(self, n):
        return self.small[n], self.bytes_[-n - 1]

    @method
    def least(self, n, limit):
        for each in self.level:
            if each > limit:
                return each
        return n

@state_machine
class Machine(NamedTuple):
    ints: np.ndarray
    same: np.ndarray  # the memory of ints
    unsigned: np.ndarray
    flags: np.ndarray
    floats: np.ndarray
    rows: np.ndarray
    records: np.ndarray
    factor: int
    share: float
    mode: codes
    nothing: None
    part: Part
"""


class Program:
    """A function while its text grows."""

    def __init__(self, random: Random, name: str, callees: list[str]) -> None:
        self.random = random
        self.name = name
        self.callees = callees
        self.lines: list[str] = []
        self.loops = 0
        self.names = 0

    def text(self) -> str:
        """Return the text of the function."""
        for name, start in (("n", "i"), ("k", "j * 3"), ("f", "x"), ("b", "i > j")):
            self.lines.append(f"    {name} = {start}")
        self.block(1, self.random.randint(3, 7))
        self.lines.append(f"    return n, k + {self.integer(1)}, f, b, {self.integer(2)}")
        return "\n".join([f"@kernel\ndef {self.name}(m, i, j, x):", *self.lines, ""])

    def pick(self, *choices: str) -> str:
        """Return one of some texts."""
        return self.random.choice(choices)

    # Expressions; `depth` is how many operators may nest.

    def index(self, depth: int) -> str:
        """Return an index within an array, some of them negative."""
        inner = self.integer(depth - 1)
        return self.pick(f"({inner}) & 7", f"({inner}) % 8 - 8", f"({inner}) % 8", "3", "-2", "-1")

    def integer(self, depth: int) -> str:
        """Return an expression of a signed integer."""
        if depth <= 0 or self.random.random() < 0.15:
            return self.pick(*INTEGERS, "i", "j", "n", "k", "n", "k", "m.factor", "m.mode")
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        if not any(map(str.isalpha, a + b)):  # Python computes that, without limit
            b = self.pick("i", "n", "LARGE")
        kind = self.random.randrange(20)
        if kind < 5:
            return f"({a} {self.pick('+', '-', '&', '|', '^')} {b})"
        if kind < 8:
            return f"({a} {self.pick('//', '%')} {b})"
        if kind == 8:
            return self.pick(
                f"({a} >> ({b} & {self.pick('7', '63')}))", f"(({a} & 1023) << ({b} & 15))",
                f"({a} * {b})", f"({a} << ({b} & 63))", f"(({a} & 1023) * (-5 | {b} & 1023))",
            )  # fmt: skip
        if kind == 9:
            return f"{self.pick('-', '~', '+')}({a})"
        if kind == 10:
            return f"{self.pick('min', 'max')}({a}, {b}, {self.integer(0)})"
        if kind == 11:
            return f"({a} if {self.truth(depth - 1)} else {b})"
        if kind == 12:
            return f"({a} {self.pick('and', 'or')} {b})"
        if kind == 13:
            return f"m.{self.pick('ints', 'same', 'part.small')}[{self.index(depth)}]"
        if kind == 14:
            return f"m.rows[({a}) & 1, {self.pick(f'({b}) % 3', '-1')}]"
        if kind == 15:
            return f"np.int64({self.unsigned(depth - 1)} & LARGE)"
        if kind == 16:
            fraction = self.fraction(depth - 1)
            return f"whole({fraction})"
        if kind == 17:
            return self.pick(
                f"abs(np.int64({a}))", f"({self.truth(depth - 1)}) * ({b} & 1023)",
                f"len(m.{self.pick('ints', 'rows')})", f"m.part.least({a}, {b})",
                f"TABLE[({a}) & 3]", "m.rows.shape[1]",
            )  # fmt: skip
        if kind == 18:
            return f"m.records[{self.index(depth)}].{self.pick('wide', 'narrow')}"
        return (
            f"({a} {self.pick('//', '%', '+')} {self.pick('8', '10', '-3', '64')})"
            if any(map(str.isalpha, a))
            else b
        )

    def unsigned(self, depth: int) -> str:
        """Return an expression of an unsigned integer."""
        item = self.pick(
            f"m.unsigned[{self.index(depth)}]", f"m.part.bytes_[{self.index(depth)}]",
            f"np.uint64({self.integer(depth - 1)})",
        )  # fmt: skip
        if depth <= 0:
            return item
        other = self.unsigned(depth - 1)
        return self.pick(item, f"({item} {self.pick('&', '|', '^')} {other})",
                         f"({item} {self.pick('//', '%')} {other})",
                         f"{self.pick('min', 'max')}({item}, {other})")  # fmt: skip

    def fraction(self, depth: int) -> str:
        """Return an expression of a floating-point number."""
        if depth <= 0 or self.random.random() < 0.15:
            return self.pick(*FRACTIONS, "x", "f", "m.share", "m.floats[0]")
        a, b = self.fraction(depth - 1), self.fraction(depth - 1)
        kind = self.random.randrange(9)
        if kind < 3:
            return f"({a} {self.pick('+', '-', '*', '/')} {b})"
        if kind == 3:
            return f"{self.pick('min', 'max')}({a}, {b})"
        if kind == 4:
            return f"({self.integer(depth - 1)} {self.pick('/', '*', '+')} {b})"
        if kind == 5:
            return f"m.floats[{self.index(depth)}]"
        if kind == 6:
            return f"({a} if {self.truth(depth - 1)} else {b})"
        if kind == 7:
            return f"{self.pick('float', 'np.float64')}({self.integer(depth - 1)})"
        return self.pick(f"-{a}", f"math.log(max(0.5, {a}))", f"math.exp(-{a})", f"+{a}")

    def truth(self, depth: int) -> str:
        """Return an expression of a boolean."""
        order = self.pick("<", "<=", "==", "!=", ">", ">=")
        if depth <= 0 or self.random.random() < 0.1:
            return self.pick("b", f"i {order} j", f"m.flags[{self.pick('2', '-3')}]", "n > 0")
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        kind = self.random.randrange(10)
        if kind < 3:
            return f"({a} {order} {b})"
        if kind == 3:
            return f"({self.fraction(depth - 1)} {order} {self.fraction(depth - 1)})"
        if kind == 4:
            return f"({self.unsigned(depth - 1)} {order} {self.pick(a, self.unsigned(depth - 1))})"
        if kind == 5:
            return f"({a} {order} {b} {self.pick('<', '!=', '>=')} {self.integer(depth - 1)})"
        if kind == 6:
            return f"(not {self.truth(depth - 1)})"
        if kind == 7:
            return f"bool({self.pick(a, self.fraction(depth - 1))})"
        if kind == 8:
            return self.pick("m.nothing is None", "m.part is not None", "m.mode == codes.SEVEN")
        operator = self.pick("and", "or", "&", "|", "^")
        return f"({self.truth(depth - 1)} {operator} {self.truth(depth - 1)})"

    # Statements.

    def add(self, level: int, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * level + text)

    def block(self, level: int, number: int) -> None:
        """Add statements."""
        for _ in range(number):
            self.statement(level)

    def statement(self, level: int) -> None:
        """Add a statement."""
        kind = self.random.randrange(18 if level < 4 else 11)
        if kind < 2:
            self.add(level, f"{self.pick('n', 'k')} = ({self.integer(3)}) % LARGE - 99")
        elif kind == 2:
            self.add(level, f"f = {self.fraction(3)}")
        elif kind == 3:
            self.add(level, f"b = {self.truth(3)}")
        elif kind == 4:
            change = self.pick("+=", "-=", "^=", "|=", "&=", "//=", "%=")
            name = self.pick("n", "k")
            self.add(level, f"{name} {change} {self.integer(2)}")
            self.add(level, f"{name} %= {self.pick('-LARGE', 'LARGE')}")
        elif kind == 5:
            array = self.pick("ints", "same", "unsigned", "part.small", "part.bytes_")
            self.add(level, f"m.{array}[{self.index(2)}] = ({self.integer(2)}) % LARGE")
        elif kind == 6:
            self.add(level, self.pick(
                f"m.floats[{self.index(2)}] = {self.fraction(2)}",
                f"m.flags[{self.index(2)}] = {self.truth(2)}",
                f"m.floats[{self.index(2)}] = {self.integer(2)}",
            ))  # fmt: skip
        elif kind == 7:
            array = self.pick("ints", "same", "part.small", "part.bytes_")
            change = self.pick("+=", "-=", "^=", "//=")
            self.add(level, f"m.{array}[{self.index(2)}] {change} ({self.integer(2)}) & 65535")
        elif kind == 8:
            one, other = self.index(1), self.index(1)
            self.add(level, f"m.ints[{one}], m.same[{other}] = m.same[{other}], m.ints[{one}]")
            self.add(level, "n, k = k, n")
        elif kind == 9:
            self.add(
                level,
                f"m.records[{self.index(1)}].{self.pick('wide', 'narrow')} = {self.integer(2)}",
            )
            self.add(
                level,
                f"m.records[{self.index(1)}].{self.pick('wide', 'narrow')} += {self.integer(1)}",
            )
        elif kind == 10:
            self.called(level)
        elif kind < 14:
            self.add(level, f"if {self.truth(2)}:")
            self.block(level + 1, self.random.randint(1, 2))
            if self.random.random() < 0.3:
                self.add(level, f"elif {self.truth(2)}:")
                self.block(level + 1, 1)
            if self.random.random() < 0.5:
                self.add(level, "else:")
                self.block(level + 1, self.random.randint(1, 2))
        else:
            self.repeated(level)

    def called(self, level: int) -> None:
        """Add a call of another function, a row of an array, or a part of it that is filled."""
        kind = self.random.randrange(4)
        if kind == 0 and self.callees:
            callee = self.random.choice(self.callees)
            numbers = f"{self.integer(1)}, {self.integer(1)}, {self.fraction(1)}"
            self.add(level, f"n, k, f, b, _ = {callee}(m, {numbers})")
        elif kind == 1:
            self.names += 1
            row = f"row{self.names}"
            self.add(level, f"{row} = m.rows[({self.integer(1)}) & 1]")
            self.add(level, f"{row}[{self.pick('0', '-1', 'n & 1')}] += {self.integer(1)}")
            self.add(level, f"k += {row}[1] + len({row})")
        elif kind == 2:
            array, part = self.pick("ints", "part.small"), self.pick(":", "2:5", "-3:", ":n", "k:")
            self.add(level, f"m.{array}[{part}] = {self.integer(1)}")
        else:
            self.add(level, f"k, narrow = m.part.at(({self.integer(1)}) & 7)")
            self.add(level, "n += narrow * 3")

    def repeated(self, level: int) -> None:
        """Add a loop."""
        self.names += 1
        at = f"a{self.names}"
        head = self.random.randrange(5)
        if head == 0:
            self.add(level, f"for {at} in range({self.integer(1)} % 5):")
        elif head == 1:
            self.add(level, f"for {at} in range(3, -2, -1):")
        elif head == 2:
            self.add(level, f"for {at} in {self.pick('(1, 5, -9)', 'm.part.level')}:")
        elif head == 3:
            self.add(level, f"for {at} in m.{self.pick('ints', 'part.small')}:")
        else:
            self.add(level, f"{at} = 0")
            self.add(level, f"while {self.pick('True', self.truth(1))}:")
            self.add(level + 1, f"{at} += 1")
            self.add(level + 1, f"if {at} > 4:")
            self.add(level + 2, "break")
        self.add(level + 1, f"n ^= {at}")
        self.block(level + 1, self.random.randint(1, 2))
        if self.random.random() < 0.4:
            self.add(level + 1, f"if {self.truth(1)}:")
            self.add(level + 2, self.pick("break", "continue", f"return n, k, f, b, {at}"))
            self.add(level + 1, f"k -= {at}")
        if head < 4 and self.random.random() < 0.3:
            self.add(level, "else:")
            self.add(level + 1, f"n += {self.integer(1)}")


def programs_text(seed: int, functions: int) -> tuple[str, list[str]]:
    """Return a module with random functions, and their names; each may call earlier ones."""
    random = Random(seed)
    names = [f"program{n}" for n in range(functions)]
    parts = [HEADER, "@kernel\ndef whole(x):\n    return int(x) if -1e9 < x < 1e9 else 7\n"]
    parts += [
        Program(random, name, names[max(0, n - 3) : n]).text() for n, name in enumerate(names)
    ]
    return "\n".join(parts), names


def loop_text(names: list[str]) -> str:
    """Return a loop that calls the functions of these names in turn, and keeps the results."""
    lines = ["@loop", "def go(m, i, j, x, ints, floats):"]
    for n, name in enumerate(names):
        lines.append(f"    n, k, f, b, last = {name}(m, i, j, x)")
        lines.append(f"    ints[{n}, 0], ints[{n}, 1], ints[{n}, 2], ints[{n}, 3] = n, k, b, last")
        lines.append(f"    floats[{n}] = f")
    return "\n".join(lines) + "\n"
