"""Reproducible damage to scenario files from a seed: mistakes of editing and of transfer."""

from __future__ import annotations

import re
from random import Random

from damaged import mutated
from scenario_texts import scenario_text

VALUES = [
    *("0", "-1", "1", "9" * 30, "9" * 5000, "1e400", "-0.0", "nan", "inf", "-inf", "0.5", "1e-320"),
    *("true", "false", '""', '" "', "''", '"nan"', '"-1"', '"0%"', '"%"', '"101%"', '"1e3%"'),
    *('"1"', '"1 parsec"', '"5MB/s"', '"5s"', '"5 DWPD"', '"1e999999999 DWPD"', '"0 DWPD"'),
    *('"1/3 DWPD"', '"nan DWPD"', '"5XB/day"', f'"{"9" * 400}TB/day"', f'"{"9" * 5000}GB"'),
    *('"p50 1ms, p50 2ms"', '"p 1s"', '"p1e-9 1ns"', '"p50"', '","', '"auto"', '"drive"', '"none"'),
    *("[]", "[[]]", "[1]", "[1, 2]", '["a"]', "[[1, 2], [0, 1]]", "[nan]", "[true]", "[[[]]]"),
    *("{}", "{a = 1}", "{kind = 1}", '{like = ""}', "{like = 1}", '{kind = "x"}', "{like = {}}"),
    *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "0x7f"),
    *('"\\u0000"', '"\\u001b[2J"', '"\\n"', '"\\u202e"', '"😀"', '"' + "a" * 100_000 + '"'),
    *('"raid5"', '"single"', '"hdd"', '"page"', '"bcache"', '"simulated"', '"1 B/s"', '"1ns"'),
    *('"9223372036854775807"', '"8EiB"', '"300000TB"', '"1B"', '"512"', '"100000d"', '"99999h"'),
    *("[[0, 1, 0, 0]]", "[[0, inf, 0, 0]]", "[[0, 1e300, nan, 0]]", "[[1, 0.5], [2, inf]]"),
    *("[0, 0, 0, 0, 0]", "[nan, 0, 0, 0, 0]", "[1e308, 1e308, 1, 1, 1]", '{"" = 1}', "", "="),
]
LINES = [
    *("unknown = 1", "[unknown]", "[cache.unknown]", "[backing.drive.x.y]", "[[cache]]", "[cache]"),
    *("[[backing.drive]]", "kind = 1", "cache = 1", 'cache.drive = "x"', "[backing.controller]"),
    *("[]", "[a", "a", "= 1", "a =", "\x00", "\x1b[31m", "[host]\n[host]", "preset = 1"),
    *('preset = ""', 'preset = "../secret"', 'preset = "alibaba-ssd"', "price = {}", "[price]"),
    *("[backing.rebuild]", "[cache.drive.flash]", "[backing]\nfailed = [0, 0, 99]", "'' = 1"),
    *("a.b.c = 1\na.b = 2", '"a\\nb" = 1', "[cache]\n'kind\u2028' = 1", "[[replay]]\n[[replay]]"),
]
PAIR = re.compile(r"(?m)^(\s*[\w.\"']+\s*=\s*)(.+)$")
NUMBER = re.compile(r"\d+")


def damaged_scenario(number: int | str) -> bytes:
    """Return the scenario file of a seed with one or two mistakes; it may still be valid."""
    rng = Random(f"damage {number}")
    text = scenario_text(rng.randrange(10**9))
    for _ in range(rng.choice([1, 1, 2, 4])):
        text = rng.choice([value, value, value, digits, line, doubled, nested])(text, rng)
    return encoded(text, rng)


def value(text: str, rng: Random) -> str:
    """Replace the value of a key."""
    matches = [*PAIR.finditer(text)]
    if not matches:
        return text + f"seed = {rng.choice(VALUES)}\n"
    at = rng.choice(matches)
    return text[: at.start(2)] + rng.choice(VALUES) + text[at.end(2) :]


def digits(text: str, rng: Random) -> str:
    """Replace a number anywhere in the text."""
    matches = [*NUMBER.finditer(text)]
    if not matches:
        return text
    at = rng.choice(matches)
    other = rng.choice(["", "0", "00", "-1", "3", "999999999999", "1.5", "1e9", "_", "9" * 25])
    return text[: at.start()] + other + text[at.end() :]


def line(text: str, rng: Random) -> str:
    """Insert a line."""
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(LINES))
    return "\n".join(lines)


def doubled(text: str, rng: Random) -> str:
    """Duplicate or delete a line."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    lines[at : at + 1] = rng.choice([[], [lines[at]] * 2])
    return "\n".join(lines)


def nested(text: str, rng: Random) -> str:
    """Nest tables or lists."""
    if rng.random() < 0.8:
        return text
    depth = rng.choice([3, 50, 120, 200, 300, 400, 480, 900, 5000, 100_000])
    opening, closing = rng.choice([("[", "]"), ("{a = ", "}"), ("[{a = ", "}]")])
    inner = opening * depth + "1" + closing * rng.choice([depth, depth, 0])
    dotted = ".".join(["a"] * min(depth, 5000))
    key = rng.choice(["x", "seed", "cache.kind", "backing.drive", "backing.drive.zones", dotted])
    many = rng.choice([f"{key} = {inner}\n", f"{dotted} = 1\n", f"[{dotted}]\n", f"[[{dotted}]]\n"])
    return rng.choice([many + text, text + "\n" + many])


def encoded(text: str, rng: Random) -> bytes:
    """Change the encoding or the line ends, or truncate the text."""
    data = text.encode()
    match rng.randrange(12):
        case 0:
            return b"\xef\xbb\xbf" + data
        case 1:
            return text.encode(rng.choice(["utf-16", "utf-16-le", "latin-1"]), "replace")
        case 2:
            return data.replace(b"\r\n", b"\n").replace(b"\n", rng.choice([b"\r\n", b"\r"]))
        case 3:
            return data[: rng.randrange(len(data) + 1)]
        case 4:
            return mutated(data, rng) if data else data
    return data
