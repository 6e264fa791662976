"""Methods are compiled by jit/lean: the same results as numba's compiler and as plain Python."""

import importlib.util
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from hybridsim import jit
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import kernel, lean, loop, method, state_machine
from hybridsim.jit.instructions import along, octave, prefetch

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
    found = [each for (one, _), each in lean._functions.items() if one is function]
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
class Ahead(NamedTuple):
    columns: tuple[Ints, Ints]
    out: Ints

    @method
    def by_lean(self, first):
        prefetch(self.columns, first)
        prefetch(self.out, first)
        for i in range(len(self.out)):
            self.out[i] = octave(first + i)
        return octave((1 << 62) + first)

    @method
    def by_numba(self, first):
        prefetch(self.columns, first)
        return octave(self.out.sum())


@loop
def look_ahead(machine, first):
    return machine.by_lean(first), machine.by_numba(first)


def test_instructions_of_the_processor_are_those_of_python():
    """Octaves are the same, and what is fetched ahead, of one array or of several, is as it was."""
    results = []
    for how in (look_ahead.py_func, jit.fresh(look_ahead)):
        machine = Ahead((np.arange(3), np.arange(5)), np.zeros(70, np.int64))
        results.append((how(machine, 0), how(machine, 990), machine.out.tolist()))
    assert results[0] == results[1]
    assert results[0][0] == (62, 8)  # the sum of the octaves of 0 to 69 is 294
    assert is_ours(Ahead.by_lean.function)
    assert not is_ours(Ahead.by_numba.function)


@state_machine
class Chained(NamedTuple):
    links: Int32s

    @method
    def by_lean(self, first):
        total = 0
        for entry in along(first, self.links):
            self.links[entry] = -1  # as one that is freed: the link is read before
            if entry == 2:
                continue
            if entry == 4:
                break
            total = 10 * total + entry
        else:
            total += 1000
        return total

    @method
    def by_numba(self, first):
        total = 0
        for entry in along(first, self.links):
            total = 10 * total + entry
        return total + self.links.sum()


@loop
def follow(machine, first):
    return machine.by_numba(first), machine.by_lean(first)


def test_chains_are_those_of_python():
    """A loop along links is a loop over Python's generator, with `continue`, `break`, `else`."""
    results = []
    for how in (follow.py_func, jit.fresh(follow)):
        found = []
        for first in (3, 0, -1, 5):
            machine = Chained(np.array([1, 4, -1, 2, 3, 3], np.int32))
            found.append((*map(int, how(machine, first)), machine.links.tolist()))
        results.append(found)
    assert results[0] == results[1]
    assert [each[1] for each in results[0]] == [1003, 1, 1000, 1053]
    assert is_ours(Chained.by_lean.function)
    assert not is_ours(Chained.by_numba.function)


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


@kernel
def mixed(numbers, at, unused, seed):
    """Return a number that depends on much; too long for LLVM to repeat it where it is called."""
    result = seed
    for each in numbers:
        if each % 3 == 0:
            result = (result & 0xFFFF) * 31 + each // (at + 1)
        elif each % 3 == 1:
            result ^= ((result & 0xFFFF) << 7) + numbers[at]
        else:
            result -= each * numbers[(at + result % 2) % len(numbers)]
        if result % 5 == 1:
            result += numbers[result % len(numbers)] % (each + 1)
        elif result % 7 == 2:
            result = (result >> 3) - TABLE[each % 3]
        if result % 11 == 4 and each != at:
            result ^= numbers[(each + at) % len(numbers)] // 3
        elif result % 13 == 5 or each == seed:
            result += TABLE[(result + each) % 3] * 17 - numbers[at] % 7
    return result


@state_machine
class Numbers(NamedTuple):
    values: Ints

    @method
    def one(self):
        """All of it is compiled by jit/lean, which sees all calls of mixed()."""
        return mixed(self.values, 1, 0, 5) + mixed(self.values, 2, 0, 5)

    @method
    def other(self):
        """Numba compiles this, and calls mixed()."""
        first = self.values.sum() % 3
        return mixed(self.values, first, 8, 9) + mixed(self.values, 0, first, 4)


@loop
def one_loop(machine):
    return machine.one()


@loop
def other_loop(machine):
    return machine.other()


def test_loops_of_one_process_do_not_share_what_llvm_made_of_their_methods():
    """LLVM drops a parameter that is always the same; another loop must not call the result."""
    machine = Numbers(np.arange(20))
    for each in (one_loop, other_loop):
        assert jit.fresh(each)(machine) == each.py_func(machine)
    assert is_ours(mixed.function)
    assert is_ours(Numbers.one.function)
    assert not is_ours(Numbers.other.function)


TEXT = """
from typing import NamedTuple
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import loop, method, state_machine

@state_machine
class Machine(NamedTuple):
    values: Ints

    @method
    def go(self):
        return self.values[0] * FACTOR

@loop
def go(machine):
    return machine.go()
"""


def module_with(file, factor):
    file.write_text(TEXT.replace("FACTOR", str(factor)))
    specification = importlib.util.spec_from_file_location("again", file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@state_machine
class Pair(NamedTuple):
    one: NamedTuple
    other: NamedTuple

    @method
    def go(self):
        return self.one.go() * 100 + self.other.go()


@loop
def go_both(machine):
    return machine.go()


def test_classes_of_one_name_are_compiled_each_for_itself(tmp_path):
    """As after a cell of a notebook was run again."""
    machines = [
        module_with(tmp_path / f"again{factor}.py", factor).Machine(np.array([7]))
        for factor in (2, 3)
    ]
    assert jit.fresh(go_both)(Pair(*machines)) == 1421
    assert all(is_ours(type(each).go.function) for each in machines)


def test_a_file_that_was_edited_is_not_compiled(tmp_path):
    """The process goes on with what it has imported, as Python and numba do."""
    file = tmp_path / "again.py"
    module = module_with(file, 2)
    file.write_text(TEXT.replace("FACTOR", "3"))
    assert jit.fresh(module.go)(module.Machine(np.array([7]))) == 14
    assert not is_ours(module.Machine.go.function)


class Mode(IntEnum):
    ONE = 1
    TWO = 2


@state_machine
class WithMode(NamedTuple):
    mode: Mode
    values: Ints

    @method
    def go(self):
        found = self.values[self.mode] if self.mode == Mode.TWO else -1
        return found + self.is_one(Mode.ONE) * 10 + self.is_one(self.mode) * 100

    @method
    def is_one(self, mode):
        return mode == Mode.ONE


@loop
def go_with_mode(machine):
    return machine.go()


def test_an_enumerated_field_is_an_integer():
    for mode in Mode:
        machine = WithMode(mode, np.array([5, 6, 7]))
        assert jit.fresh(go_with_mode)(machine) == go_with_mode.py_func(machine)
    assert is_ours(WithMode.go.function)
    assert is_ours(WithMode.is_one.function)
