"""Regular expressions on user text take linear time: none can split a text in several ways.

If one repetition can give up characters to a later one, the matcher tries all splits of a text
that does not match: in quadratic time, or worse.  Possessive repetitions (`++`) give up
nothing.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CALLS = {"compile", "match", "search", "fullmatch", "sub", "split", "findall", "finditer"}
ALL = frozenset(range(256))
parser, names = re._parser, re._constants
UNBOUNDED = names.MAXREPEAT
SHORT = {
    # Texts of limited length, or from the system.
    r"(?P<prefix>.+)\.blktrace\.(?P<cpu>\d+)(\.(gz|zst|xz|bz2))*": "a file's name",
    r"You have (\d+) .*dropped events": "a line of blktrace",
    r"field:[^;]*?(\w+)(?:\[\w*\])?;": "a file of the kernel",
    rb"\0depends=([^\0]*)\0": "a module of the kernel",
}


def patterns():
    """Yield every expression in the source with its position."""
    for folder in ("hybridsim", "validate"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "re"
                    and node.func.attr in CALLS
                    and isinstance(node.args[0], ast.Constant)
                ):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.args[0].value


def letters(items):
    """Return the characters below 256 that an expression may match."""
    matched = set()
    for kind, value in items:
        if kind in (names.LITERAL, names.NOT_LITERAL):
            one = {value}
            matched |= one if kind == names.LITERAL else ALL - one
        elif kind == names.ANY:
            matched |= ALL - {10}
        elif kind == names.IN:
            matched |= of_set(value)
        elif kind in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
            matched |= letters(value[2])
        elif kind == names.SUBPATTERN:
            matched |= letters(value[3])
        elif kind == names.ATOMIC_GROUP:
            matched |= letters(value)
        elif kind == names.BRANCH:
            matched |= set().union(*map(letters, value[1]))
    return matched


def of_set(parts):
    matched, is_not = set(), False
    for kind, value in parts:
        if kind == names.NEGATE:
            is_not = True
        elif kind == names.LITERAL:
            matched.add(value)
        elif kind == names.RANGE:
            matched |= set(range(value[0], value[1] + 1))
        else:
            word = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(value).split("_")[-1]]
            these = {each for each in ALL if re.match(word, chr(each), re.ASCII)}
            matched |= ALL - these if "NOT" in str(value) else these
    return ALL - matched if is_not else matched


def flat(items):
    """Yield the parts of an expression in order, with groups flattened."""
    for kind, value in items:
        if kind == names.SUBPATTERN:
            yield from flat(value[3])
        else:
            yield kind, value


REPEATS = (names.MAX_REPEAT, names.MIN_REPEAT)


def shared(items, behind=()):
    """Yield pairs of repetitions that can match the same text: nested or in sequence."""
    parts = list(flat(items))
    for at, (kind, value) in enumerate(parts):
        rest = [*parts[at + 1 :], *behind]
        if kind == names.BRANCH:
            for one in value[1]:
                yield from shared(one, rest)
        elif kind == names.ATOMIC_GROUP:
            yield from shared(value)
        elif kind == names.POSSESSIVE_REPEAT:
            yield from shared(value[2])
        elif kind in REPEATS:
            again = [(kind, value)] if value[1] == UNBOUNDED else []
            if again and is_simple(value[2]):
                yield from reached(letters(value[2]), rest)
            else:
                yield from shared(value[2], [*again, *rest])


def is_simple(items):
    """Return whether a repetition repeats a single character of a set."""
    parts = list(flat(items))
    return len(parts) == 1 and parts[0][0] not in (*REPEATS, names.BRANCH)


def reached(mine, parts):
    """Yield repetitions that may start in a text of these characters; then "" at a separator."""
    for kind, value in parts:
        if kind == names.BRANCH:
            ways = [list(reached(mine, list(flat(one)))) for one in value[1]]
            yield from (each for way in ways for each in way if each)
            if all("" in way for way in ways):
                yield ""
                return
        elif kind in (*REPEATS, names.POSSESSIVE_REPEAT):
            inside = list(reached(mine, list(flat(value[2]))))
            if value[1] == UNBOUNDED and letters(value[2]) & mine and "" not in inside:
                yield f"{value[2]} can take what one before it took"
            yield from (each for each in inside if each)
            if value[0] > 0 and "" in inside:
                yield ""
                return
        elif is_needed((kind, value)) and not letters([(kind, value)]) & mine:
            yield ""
            return


def is_needed(part):
    kind, value = part
    if kind in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
        return value[0] > 0
    return kind in (names.LITERAL, names.NOT_LITERAL, names.ANY, names.IN)


EXPRESSIONS = list(patterns())


def test_all_expressions_of_the_source_are_collected():
    assert len(EXPRESSIONS) > 60


@pytest.mark.parametrize(("place", "expression"), EXPRESSIONS, ids=[at for at, _ in EXPRESSIONS])
def test_no_two_repetitions_match_the_same_text(place, expression):
    if expression not in SHORT:
        assert not any(shared(parser.parse(expression)))


@pytest.mark.parametrize(
    "expression",
    [r"\s*(\D*?)\s*", r"(a+)+b", r"=\s*([^\"]+?)\s*(#.*)?$", r"(?:[ \t]|\s*)*x", r"\d+\w*\d+y"],
)
def test_quadratic_expressions_are_detected(expression):
    assert any(shared(parser.parse(expression)))


@pytest.mark.parametrize("expression", [r"\s*+(\w++)=\s*+", r"(?:\d+_)*x", r"\d+, \d+(, \d+)*\s*$"])
def test_linear_expressions_are_not_reported(expression):
    assert not any(shared(parser.parse(expression)))
