"""Random programs compiled by jit/lean compute what an interpreter of typed numbers computes.

Numba computes other than Python where a signed number overflows, and not always the same; that
single operators are numba's is tested in test_lean.py.
"""

import contextlib
import importlib.util
from itertools import count

import lean_interpreter
import numpy as np
import pytest
from lean_programs import ITEMS, loop_text, programs_text
from numba import typeof, types
from numba.core.registry import cpu_target

from hybridsim import jit
from hybridsim.jit import lean

pytestmark = pytest.mark.skipif(not jit.compiled, reason="NUMBA_DISABLE_JIT is set")

FUNCTIONS = 12  # in a module
EDGES = [0, 1, -1, 7, -8, 2**31, -(2**63), 2**63 - 1]
UNSIGNED = [0, 1, 2, 255, 2**32, 2**63, 2**64 - 1, 77]
FRACTIONS = [0.0, -0.0, 1.5, -2.5, 1e300, np.inf, -np.inf, np.nan]
RECORD = np.dtype([("wide", np.int64), ("narrow", np.uint8)])
ARGUMENTS = [(5, -3, 0.75), (-(2**63), 2**63 - 1, -1e9), (2**31, 8, np.nan)]
loaded = count()


def imported(folder, text):
    """Return a module of this text."""
    name = f"lean_module{next(loaded)}"
    file = folder / f"{name}.py"
    file.write_text(text)
    specification = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def a_machine(module, seed):
    """Return a machine of random numbers, among them the largest and the least."""
    random = np.random.default_rng(seed)
    ints = random.permutation(np.array(EDGES))
    records = np.zeros(ITEMS, RECORD)
    records["wide"] = random.permutation(EDGES)
    records["narrow"] = random.integers(0, 256, ITEMS)
    part = module.Part(
        random.integers(-(2**31), 2**31, ITEMS).astype(np.int32),
        random.integers(0, 256, ITEMS).astype(np.uint8),
        (2, 40, 900),
    )
    return module.Machine(
        ints, ints, random.permutation(np.array(UNSIGNED, np.uint64)),
        random.integers(0, 2, ITEMS).astype(bool), random.permutation(FRACTIONS),
        random.integers(-9, 9, (2, 3)), records, int(random.integers(-5, 99)),
        float(random.normal()), module.codes.SEVEN, None, part,
    )  # fmt: skip


def bits(number):
    """Return a number so that equal is equal to the bit; NaNs are alike."""
    return "nan" if number != number else np.float64(number).tobytes()


def contents(machine):
    """Return all that a machine's arrays hold."""
    return [
        contents(each) if hasattr(each, "_fields")
        else list(map(bits, each)) if each.dtype == np.float64 else each.tolist()
        for each in machine if hasattr(each, "_fields") or isinstance(each, np.ndarray)
    ]  # fmt: skip


def by_machine_code(loop, machine, arguments, functions):
    """Return what a loop computes."""
    ints, fractions = np.zeros((functions, 4), np.int64), np.zeros(functions)
    loop(machine, *arguments, ints, fractions)
    return [*map(list, zip(*ints.T.tolist(), map(bits, fractions)))], contents(machine)


def by_interpreter(module, names, machine, arguments):
    """Return what the functions compute."""
    rows, shown = [], lean_interpreter.shown(machine)
    arguments = [lean_interpreter.typed(each) for each in arguments]
    with np.errstate(all="ignore"):
        for name in names:
            *wholes, fraction, is_so, last = getattr(module, name)(shown, *arguments)
            whole = [
                lean_interpreter.as_kind(lean_interpreter.typed(each), types.int64).value
                for each in (*wholes, is_so, last)
            ]
            rows.append([*whole, bits(fraction.value)])
    return rows, contents(machine)


def supported(module, names):
    """Return the functions that jit/lean compiles, with all that they call."""
    cpu_target.typing_context.refresh()  # numba does so before it compiles
    kinds = typeof(a_machine(module, 0)), types.int64, types.int64, types.float64
    found = []
    for name in names:
        with contextlib.suppress(lean.Unsupported):
            lean.for_numba(getattr(module, name).function, kinds)
            found.append(name)
    return found


def compared(folder, seed):
    """Assert that the programs of a seed compute the same; return how many did."""
    text, names = programs_text(seed, FUNCTIONS)
    interpreted = lean_interpreter.load(text)
    names = supported(imported(folder, text), names)
    module = imported(folder, f"{text}\n{loop_text(names)}")
    loop = jit.fresh(module.go)
    for n, arguments in enumerate(ARGUMENTS):
        ours = by_machine_code(loop, a_machine(module, n), arguments, len(names))
        wanted = by_interpreter(interpreted, names, a_machine(module, n), arguments)
        assert ours == wanted, f"seed {seed}, arguments {arguments}"
    made = [
        each for (one, _), each in lean._functions.items()
        if (one.__module__, one.__name__) == (module.__name__, "go")
    ]  # fmt: skip
    assert [type(each) for each in made] == [lean.Compiled]
    return len(names)


@pytest.fixture
def as_machines(monkeypatch):
    """Optimize each loop as that of a machine."""
    monkeypatch.setattr(jit, "MANY", 1)


@pytest.mark.parametrize("seed", range(2))
def test_programs_compute_what_the_interpreter_computes(tmp_path, as_machines, seed):
    assert compared(tmp_path, seed) > FUNCTIONS // 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_thousands_of_programs(tmp_path, as_machines, seed):
    compared(tmp_path, seed)
