"""Mutation tests: benchmarks/mutants.py on a small file, with tests that are made."""

import json
import sys
import textwrap
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def mutants(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import mutants

    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return mutants


def changed(mutants, tmp_path, source):
    """What becomes of a piece of source, as pairs of a line before and after."""
    (tmp_path / "one.py").write_text(textwrap.dedent(source))
    result = [
        mutants.shown(each) for each in mutants.mutants_of("one.py") if mutants.is_python(each)
    ]
    return {(each["before"], each["after"]) for each in result}


@pytest.mark.parametrize(
    ("before", "afters"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a is not b", {"x = a is b"}),
        ("x = a - b", {"x = a + b"}),
        ("x = a << b", {"x = a >> b"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = (a)"}),
        ("x = 3", {"x = 4", "x = 2"}),
        ("x = 0.5", {"x = 1.0"}),
        ("x = True", {"x = False"}),
        ("x = 'name'", {"x = 'name_'"}),
        ("x = f(a, b)", {"x = f(b, a)"}),
        ("x = min(a, b)", {"x = max(a, b)"}),
        ("x[0] = a", {"pass", "x[1] = a"}),
        ("x += a", {"pass", "x -= a"}),
        ("x = y[i]", {"x = y[i - 1]"}),
        ("f(a)", {"pass"}),
        ("x: int = a or b", {"x: int = a and b"}),
    ],
)
def test_a_line_is_changed_in_each_way(mutants, tmp_path, before, afters):
    assert changed(mutants, tmp_path, before) == {(before, after) for after in afters}


@pytest.mark.parametrize(
    "source",
    [
        '"""Words."""',
        "import os",
        "x: dict[str, int]",
        "__all__ = ['a']",
        "assert x < 1",
        "x = f'{a + b}'",
        "x = 'a sentence with 3 words'",
        "prefetch(x, 3)",
        "x = np.zeros(n + m)",
    ],
)
def test_what_changes_nothing_but_words_or_speed_is_left(mutants, tmp_path, source):
    assert not changed(mutants, tmp_path, source)


def test_functions_are_known_by_their_qualified_names(mutants, tmp_path):
    source = """
    A = 2
    class Cache:
        def take(self, n: int = 5) -> int:
            def more():
                return n > 1
            return n
        @property
        def full(self):
            raise ValueError("é" + str(7))
    """
    (tmp_path / "one.py").write_text(textwrap.dedent(source))
    within = {(each.line, each.within) for each in mutants.mutants_of("one.py")}
    assert within == {
        (2, ""),
        (4, "Cache.take"),
        (6, "Cache.take.<locals>.more"),
        (7, "Cache.take"),
        (10, "Cache.full"),
    }


def test_tests_are_taken_from_each_file_the_quickest_first(mutants):
    reach = mutants.Reach(
        {
            "a.py::slow": {"seconds": 9.0, "reached": ["m.py:f"]},
            "a.py::quick": {"seconds": 1.0, "reached": ["m.py:f", "m.py:g"]},
            "b.py::one": {"seconds": 2.0, "reached": ["m.py:f.<locals>.<lambda>"]},
            "b.py::other": {"seconds": 0.1, "reached": ["m.py:g"]},
        }
    )
    mutant = mutants.Mutant("m.py", 1, 0, 1, "x", "f", "constant")
    assert list(reach.tests(mutant, 100)) == ["a.py::quick", "b.py::one", "a.py::slow"]
    assert list(reach.tests(mutant, 4)) == ["a.py::quick", "b.py::one"]
    assert list(reach.tests(mutant, 0.5)) == ["a.py::quick"]  # one at least
    assert not reach.tests(mutant._replace(within="h"), 100)
    assert len(reach.tests(mutant._replace(within=""), 100)) == 4


@pytest.fixture
def tree(mutants, tmp_path):
    """A package of one function, and tests of which one sees its result and one does not."""
    (tmp_path / "tree" / "hybridsim").mkdir(parents=True)
    (tmp_path / "tree" / "tests").mkdir()
    (tmp_path / "tree" / "hybridsim" / "__init__.py").write_text("")
    for place in (tmp_path / "hybridsim", tmp_path / "tree" / "hybridsim"):
        place.mkdir(exist_ok=True)
        (place / "one.py").write_text(
            "def count(n):\n    i = 0\n    while i < n:\n        i += 1\n    return i\n"
        )
    (tmp_path / "tree" / "tests" / "test_one.py").write_text(
        "import pytest\n"
        "from hybridsim.one import count\n"
        "@pytest.fixture(scope='module')\n"
        "def found():\n    return count(3)\n"
        "def test_first(found):\n    pass\n"
        "def test_second(found):\n    assert found == 3\n"
        "def test_blind():\n    count(3)\n"
        "def test_sees():\n    assert count(3) == 3\n"
    )
    monkey = pytest.MonkeyPatch()
    for name in [name for name in sys.modules if name.startswith("hybridsim")]:
        monkey.delitem(sys.modules, name)
    yield tmp_path / "tree"
    monkey.undo()


def test_a_mutant_is_killed_by_a_test_that_fails(mutants, tree):
    out = tree.parent / "reach.json"
    mutants.in_child(60, tree, ["tests/test_one.py"], mutants.Watch(reach=out))
    tests = json.loads(out.read_text())
    names = [f"tests/test_one.py::test_{name}" for name in ("first", "second", "blind", "sees")]
    assert list(tests) == names
    for each in tests.values():  # what a fixture calls that tests share is called by each of them
        assert each["reached"] == ["hybridsim/one.py:count"]
    all_of_them = {each.after: each for each in mutants.mutants_of("hybridsim/one.py")}
    more = all_of_them["(i) + 1"]
    assert mutants.run(more, dict.fromkeys(names, 0.01), tree)["by"] == names[1]
    assert mutants.run(more, dict.fromkeys(names[2:], 0.01), tree)["by"] == names[3]
    assert mutants.run(more, {names[2]: 0.01}, tree)["survived"]
    assert mutants.run(more, {}, tree)["survived"]
    assert "def count" in (tree / "hybridsim" / "one.py").read_text()
    assert (tree / "hybridsim" / "one.py").read_text() == (
        tree.parent / "hybridsim" / "one.py"
    ).read_text()


def test_a_mutant_in_memory_meets_what_it_meets_in_a_file(mutants, tree):
    names = [f"tests/test_one.py::test_{name}" for name in ("blind", "sees")]
    server = mutants.Server(tree, ["tests/test_one.py"])
    try:
        for mutant in mutants.mutants_of("hybridsim/one.py"):
            if mutant.kind not in ("constant", "returned"):
                continue  # some of these never end
            for tests in ({names[0]: 0.01}, dict.fromkeys(names, 0.01)):
                at_once = server.ask(mutant, tests, 60)
                anew = mutants.run_anew(mutant, tests, tree, 60)
                assert at_once == anew
        assert mutants.run(mutant, {names[0]: 0.01}, tree, server)["survived"]
        assert server.ask(mutant._replace(within=""), tests, 60)["status"] is None
    finally:
        server.end()


# benchmarks/planted.py: bugs planted in the models, and who catches them.


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import planted

    return planted


SHARED = ("device", "models")  # interfaces


def test_each_module_of_the_reference_has_compiled_files(planted):
    package = BENCHMARKS.parent / "hybridsim"
    modules = {path.stem for path in (package / "reference").glob("*.py")}
    data = {name.removesuffix(".py") for name in planted.DATA}
    assert modules - data - set(SHARED) == planted.COUNTERPARTS.keys()
    files = [file for several in planted.COUNTERPARTS.values() for file in several]
    assert len(set(files)) == len(files)
    assert not [file for file in files if not (package / file).exists()]


def bug(line, module="volume", **by):
    phases = {phase: {"by": by.get(phase, ""), "tests": 3} for phase in by}
    where = {"file": "storage/devices/volume.py", "line": line, "within": "f"}
    return where | {"before": f"was {line}", "after": "is", "module": module, "phases": phases}


def test_bugs_are_counted_by_who_catches_them(planted):
    kept = {
        "a": bug(1, reference="t::x", independent="", unit=""),
        "b": bug(2, reference="t::x", independent="", unit="t::y"),
        "c": bug(3, reference="", independent="", unit=""),
        "d": bug(4, module="host", reference="", independent="t::z", unit=""),
        "e": bug(5, reference="t::x"),  # its other runs did not end in time
    }
    lines = list(planted.table(kept))
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:4]}
    assert (
        rows
        == {
            "volume": ["3", "2", "2", "1", "0", "1"],
            "host": ["1", "1", "0", "0", "1", "0"],
            "all": ["4", "3", "2", "1", "1", "1"],
        }
        or lines
    )
    only = lines.index("\ncaught by only the reference:")
    assert "was 1" in lines[only + 1]
    assert "was 3" in lines[only + 3]


def test_the_order_of_tests_begins_with_the_fastest_and_keeps_to_the_budget(planted):
    reach = planted.Reach({})
    reach.seconds = {"a.py::one": 2, "a.py::two": 1, "b.py::one": 5}
    assert list(planted.in_order(set(reach.seconds), reach, 4)) == ["a.py::two", "a.py::one"]


def test_a_test_compares_if_it_calls_a_model_of_the_reference(planted):
    data = "hybridsim/reference/parameters.py:Request.__post_init__"
    assert not planted.calls_a_model({"reached": [data, "hybridsim/storage/x.py:f"]})
    assert planted.calls_a_model({"reached": [data, "hybridsim/reference/ssd.py:Ssd.submit"]})
