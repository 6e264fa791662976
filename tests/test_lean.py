"""Methods are compiled by jit/lean: the same results as numba's compiler and as plain Python."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from hybridsim import jit
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import kernel, lean, loop, method, state_machine

pytestmark = pytest.mark.skipif(not jit.compiled, reason="NUMBA_DISABLE_JIT is set")

EDGES = [0, 1, 2, 3, 7, 8, 63, 100, 2**31 - 1]
SIGNED = [*EDGES, -1, -2, -7, -8, -(2**31)]
VALUES = {
    np.int64: [*SIGNED, 2**62, 2**63 - 1, -(2**63)],
    np.int32: SIGNED,
    np.uint8: [0, 1, 2, 7, 8, 200, 255],
    np.uint64: [*EDGES, 2**63, 2**64 - 1],
    np.bool_: [False, True],
    np.float64: [0.0, -0.0, 1.5, -2.5, 1e300, np.inf, -np.inf, np.nan],
}
WHOLE = [np.int64, np.int32, np.uint8, np.uint64, np.bool_]


def whole_numbers(a, b, out):
    for i in range(len(a)):
        for j in range(len(b)):
            x, y = a[i], b[j]
            out[0, i, j] = x + y
            out[1, i, j] = x - y
            out[2, i, j] = x * y
            out[3, i, j] = x & y
            out[4, i, j] = x | y
            out[5, i, j] = x ^ y
            out[6, i, j] = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y)
            out[7, i, j] = (x > y) + 2 * (x >= y)
            out[8, i, j] = x and y
            out[9, i, j] = 5 if x or not y else 6
            out[10, i, j] = np.int64(x) >> (np.int64(y) & 63)
            out[11, i, j] = np.int64(x) << (np.int64(y) & 63)
            out[12, i, j] = int(x)


def divided(a, b, out):
    for i in range(len(a)):
        for j in range(len(b)):
            x, y = a[i], b[j]
            out[0, i, j] = x // y
            out[1, i, j] = x % y
            out[2, i, j] = min(x, y)
            out[3, i, j] = max(x, y, 3)
            out[4, i, j] = -x
            out[5, i, j] = ~x
            out[6, i, j] = x // 8 + x % 8 + x // 10 + x % 10
            out[7, i, j] = -abs(np.int64(x)) // 7


def fractions(a, b, out):
    for i in range(len(a)):
        for j in range(len(b)):
            x, y = a[i], b[j]
            out[0, i, j] = x + y
            out[1, i, j] = x - y * 0.5
            out[2, i, j] = x / y
            out[3, i, j] = min(x, y)
            out[4, i, j] = max(x, y)
            out[5, i, j] = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y)
            out[6, i, j] = -x
            out[7, i, j] = x if x > y else y
            out[8, i, j] = float(x) * 3


def of_both(function, a, b, dtype):
    """Return the results of numba's compiler and of ours."""
    results = []
    for compiled in (njit(error_model="numpy")(function), jit.fresh(loop(function))):
        out = np.zeros((13, len(a), len(b)), dtype)
        compiled(a, b, out)
        results.append(out)
    return results


def is_ours(function):
    """Return whether this function, or what a loop calls, was not left to numba."""
    found = [each for (one, _), each in lean.library._functions.items() if one is function]
    return found and all(isinstance(each, lean.Compiled) for each in found)


@pytest.mark.parametrize("function", [whole_numbers, divided, fractions])
@pytest.mark.parametrize(
    ("one", "other"),
    [(np.int64, np.int64), (np.int32, np.int64), (np.uint8, np.int64), (np.uint64, np.uint64),
     (np.uint8, np.uint8), (np.bool_, np.int32), (np.float64, np.int64), (np.float64, np.float64)],
)  # fmt: skip
def test_operators_are_those_of_numba(function, one, other):
    """Overflow, division by zero, rounding down, NaN, and mixed signs included."""
    is_whole = {one, other} <= set(WHOLE)
    if is_whole == (function is fractions) or (function is divided and np.bool_ in (one, other)):
        pytest.skip("not an operation of these types")
    a, b = (np.array(VALUES[each], each) for each in (one, other))
    theirs, ours = of_both(function, a, b, np.int64 if is_whole else np.float64)
    assert is_ours(function)
    assert theirs.tobytes() == ours.tobytes()


@state_machine
class Part(NamedTuple):
    scale: int
    share: float
    level: tuple[int, ...]
    rows: Ints  # two axes
    small: np.ndarray
    marks: np.ndarray
    nothing: None

    @method
    def both(self, number):
        """Return two numbers, one of them narrow."""
        return self.rows[number, -1] * self.scale, self.small[number]

    @method
    def row(self, number):
        return self.rows[number]

    @method
    def spent(self, number):
        if self.nothing is None or self.nothing.missing:
            return number * self.share
        return self.nothing.missing

    @method
    def first(self, wanted):
        found = -1
        for at in range(len(self.small)):
            if self.small[at] == wanted:
                found = at
                break
        else:
            found = -2
        return found


@state_machine
class Whole(NamedTuple):
    one: Part
    out: Ints

    @method
    def go(self, turns):
        at = 0
        for turn in range(turns):
            if turn % 7 == 3:
                continue
            wide, narrow = self.one.both(turn % 4)
            row = self.one.row(turn % 4)
            row[0] += narrow
            other = self.one.rows[(turn + 1) % 4]
            row[1], other[1] = other[1], row[1]
            self.out[at] = wide + row[0] - len(row)
            at += 1
            for start in self.one.level:
                if start > turn:
                    break
                self.out[at] ^= start + square(turn)
            if 1 < turn < 5 <= turn * turn or self.one.marks[turn % 4]:
                self.one.marks[(turn + 2) % 4] = not self.one.marks[(turn + 1) % 4]
            self.out[at] += int(self.one.spent(turn)) + self.one.first(turn)
        while True:
            at += 1
            if at >= len(self.out):
                break
            self.out[at:] = at
        self.out[-3:-1] = 17
        shape = self.one.rows.shape
        return at, shape[0] * 10 + shape[1], self.one.first(12)


@kernel
def square(number):
    number *= number
    return TABLE[number % 3] + number


TABLE = (5, 7, 11)


@loop
def go(machine, turns):
    return machine.go(turns)


def a_machine():
    part = Part(
        3, 0.75, (2, 4, 8), np.arange(12).reshape(4, 3), np.array([9, -3, 12, 7], np.int32),
        np.array([True, False, False, True]), None,
    )  # fmt: skip
    return Whole(part, np.zeros(40, np.int64))


def test_statements_are_those_of_python():
    results = []
    for how in (go.py_func, jit.fresh(go)):
        machine = a_machine()
        returned = how(machine, 20)
        results.append((returned, [each.tolist() for each in (machine.out, *machine.one[3:6])]))
    assert results[0] == results[1]
    assert is_ours(Whole.go.function)


@state_machine
class Fancy(NamedTuple):
    values: Ints

    @method
    def total(self):
        return self.values.sum()  # numba compiles it

    @method
    def twice(self):
        return 2 * self.total() + square(3)


@loop
def twice(machine):
    return machine.twice()


def test_what_it_does_not_know_is_left_to_numba_with_what_calls_it():
    machine = Fancy(np.arange(5))
    assert jit.fresh(twice)(machine) == twice.py_func(machine) == 2 * 10 + 5 + 9
    assert not is_ours(Fancy.total.function)
    assert not is_ours(Fancy.twice.function)
    assert is_ours(square.function)


@loop
def many_rows(rows, out):
    for i in range(len(out)):
        out[i] = last_of(rows[i % len(rows)]) + last_of(rows[0])


@kernel
def last_of(row):
    return row[-1]


def test_rows_of_arrays_that_are_not_contiguous_are_left_to_numba():
    rows = np.arange(20).reshape(4, 5)
    for each in (rows, rows.T, rows[:, ::2]):
        theirs, ours = np.zeros(9, np.int64), np.zeros(9, np.int64)
        many_rows.py_func(each, theirs)
        jit.fresh(many_rows)(each, ours)
        assert theirs.tolist() == ours.tolist()
