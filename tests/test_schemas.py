"""JSON output matches its schemas exactly: no missing and no additional keys."""

import json
import os
import re
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

import numpy as np
import pytest
import stored_schemas
from click.testing import CliRunner
from html_documents import compare_document
from jsonschema import Draft202012Validator

from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.fitting.answer import Estimate, Fit
from hybridsim.answers.result import plain
from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.histogram import BINS, TOP_NS, VALUES, Distribution, bin_of
from hybridsim.show import schemas
from hybridsim.show.schemas import filled
from hybridsim.storage import catalog

ROOT = Path(__file__).parent.parent
# Not from --json: a saved cache, and a folder of results (see validate/environment.py)
OTHERS = {"cache", "validate"}

LOAD = "gen:zipf,requests=400,span=16MiB"
COMMANDS = {
    "replay": "replay small.csv --save-cache state.npz --require hit>1% --html x.html",
    "warm": "replay small.csv --warm-start state.npz --set backing.rebuild={member=1}",
    "plain": "replay small.csv --cache none",
    "volume": f"replay {LOAD} --seeds 2 --preset digitalocean-volume --cache page",
    "bcache": "replay small.csv --cache bcache --cache-size 64MiB",
    "dm-cache": "replay small.csv --cache dm-cache --cache-size 8MiB",
    "dm-writecache": "replay small.csv --cache dm-writecache --cache-size 8MiB",
    "events": "replay small.csv --cache dm-cache --cache-size 8MiB --cache-mode write-back "
    "--event at=500ms,reboot=unclean,down=1m --event at=1s,ssd=dies --html events.html",
    "open-cas": "replay small.csv --cache open-cas --cache-size 8MiB",
    "size": "size small.csv --require hit>1%",
    "advise": "advise small.csv",
    "fleet": f"advise small.csv {LOAD} --fleet all --workers 1 --folder fleet --cache bcache",
    "bench": "bench bare.toml --depths 1 --requests 20",
    "setup": "setup --cache bcache --cache-size 64MiB",
    "setup of a result": "setup dm-cache.json",
    "check": "check dm-cache.json counters-1.txt counters-2.txt --capture small.csv",
    "setup of size": "setup size.json --distribution debian13 --from-source",
    "setup of advice": "setup advise.json --from-source",
    "explore": "explore small.csv --points 6 --check 2 --cache page --mode open --workers 1 "
    "--folder kept -o x.html",
    "sweep": "sweep small.csv --vary cache.size=5%,20% --workers 1 --seeds 2 --folder kept",
}
PRINTED = {
    "hits": "hits small.csv --ram 64KiB,8MiB --cache-size 5%,50% --admission learned",
    "within a budget": "hits small.csv --write-budget 5%",
    "bounds": "bounds iostat.txt",
    "mrc": "mrc small.csv",
    "why": "why small.csv",
    "catalog": "catalog",
    "drive": "catalog show hgst-ultrastar-7k8",
    "system": "catalog show adaptec-maxiq-sata",
    "trace": "trace info small.csv",
    "doctor": "trace doctor small.csv",
    "thinned": "trace thin small.csv -o small.thin --rate 100%",
    "hits of a sample": "hits small.thin --cache-size 50%",
    "unreadable": "trace doctor bare.toml",
    "likeness": "trace fit small.csv",
}
PROGRAM = """
import contextlib, json, sys
from hybridsim.cli import cli
to_a_file, printed = json.load(sys.stdin)
for name, line in to_a_file.items():
    cli.main([*line.split(" "), "--json", f"{name}.json"], standalone_mode=False)
for name, line in printed.items():
    with open(f"{name}.json", "w") as file, contextlib.redirect_stdout(file):
        with contextlib.suppress(SystemExit):
            cli.main([*line.split(" "), "--json"], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return documents of runs so short that interpreting takes less time than compiling."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "bare.toml").write_text('[cache]\nkind = "none"\n')
    CliRunner().invoke(cli, ["trace", "convert", LOAD, str(folder / "small.csv")])
    for number, counts in enumerate(("0/128 0 0 0 0 0 0 0", "9/128 90 90 9 9 0 9 0"), 1):
        text = (
            f"uptime {number}0.5 1.0\n0 9 cache 8 9/99 128 {counts} 1 writethrough 0 smq 0 rw -\n"
        )
        (folder / f"counters-{number}.txt").write_text(text)
    heads = "Device r/s rkB/s r_await w/s wkB/s w_await %util"
    (folder / "iostat.txt").write_text(f"{heads}\nsda 90.5 900.0 8.5 10.0 80.0 20.0 60.0\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
        input=json.dumps([COMMANDS, PRINTED]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    kept = (folder / "kept" / "results.jsonl").read_text().splitlines()
    documents = {
        name: json.loads((folder / f"{name}.json").read_text()) for name in COMMANDS | PRINTED
    }
    stored = (folder / "fleet" / "results.jsonl").read_text().splitlines()
    return documents | {"point": json.loads(kept[0]), "stored advice": json.loads(stored[0])}


def wrong(document):
    """Return the violations of the schema that the document names."""
    name = re.fullmatch(r"hybridsim\.(\w+)/\d+", document["schema"])[1]
    errors = Draft202012Validator(schemas.load(name)).iter_errors(document)
    return [f"{each.json_path}: {each.message[:200]}" for each in errors]


@pytest.mark.parametrize("name", [*COMMANDS, *PRINTED, "point", "stored advice"])
def test_json_output_matches_its_schema(name, written):
    assert wrong(written[name]) == []


def test_a_comparison_matches_its_schema(tmp_path):
    assert wrong(compare_document(tmp_path)) == []


def test_a_validation_matches_its_schema(tmp_path):
    from test_validate_report import Tolerances, compare, document, held, measured

    assert wrong(document([held(compare(measured(), measured(), Tolerances()), tmp_path)])) == []


def test_every_catalog_entry_matches_its_schema():
    for name in [*catalog.names(), *catalog.systems()]:
        output = CliRunner().invoke(cli, ["catalog", "show", name, "--json"]).output
        assert wrong(json.loads(output)) == [], name


def test_a_fit_matches_its_schema():
    known = [
        Estimate("backing", "members", 4),
        Estimate("backing.drive", "rpm", 7200.0, "rpm", 7100.0, 7300.0, True, "of the services"),
        Estimate("backing", "scheduler", "fcfs", determined=False),
    ]
    latencies = Distribution.of([10**6, 2 * 10**6])
    model = Fit("run.csv", "A disk.", known, 2, ["so"], Fidelity(latencies, latencies))
    assert wrong(plain(model.to_dict())) == []
    assert wrong(plain(Fit("run.csv", "A disk.", [], 0).to_dict())) == []


def histograms(document):
    """Yield every latency histogram in a document, with its maximum."""
    if isinstance(document, dict):
        if "bins" in document and "max_ns" in document:
            yield document["bins"], document["max_ns"]
        for each in document.values():
            yield from histograms(each)


def test_keys_of_a_histogram_are_bin_starts_up_to_the_maximum(written):
    description = schemas.load("result")["$defs"]["bins"]["description"]
    edges = np.flatnonzero(np.diff(bin_of(np.arange(4096)))) + 1  # the start of a bin
    middle = (edges[:-1] + edges[1:]) // 2
    assert set(VALUES[: len(edges)]) > set(middle.tolist())
    last = 127 << 27  # the start of the last bin
    assert bin_of(np.array([last - 1, last])).tolist() == [BINS - 2, BINS - 1]
    assert "middle of the bin, as in fio's json+" in description
    assert "end" not in description
    assert f"The last bin, {VALUES[-1]}, holds every latency from {last} ns on." in description
    assert VALUES[-1] == (last + TOP_NS + 1) // 2
    all_histograms = list(histograms(written["replay"]))
    assert len(all_histograms) > 3
    for bins, max_ns in all_histograms:
        keys = np.array(list(map(int, bins)), np.int64)
        assert VALUES[bin_of(keys)].tolist() == keys.tolist()
        assert not bins or bin_of(keys).max() == bin_of(np.array([max_ns]))[0]


def test_additional_and_missing_keys_are_violations(written):
    document = written["replay"]
    assert wrong({**document, "new": 1})
    assert wrong({**document, "phases": {**document["phases"], "new": {}}})
    assert wrong({key: document[key] for key in document if key != "wear"})


def objects(schema):
    """Yield every schema of an object with fixed keys."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for each in schema.values():
            yield from objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from objects(each)


@pytest.mark.parametrize("name", schemas.names())
def test_every_schema_is_valid_and_closed(name):
    schema = schemas.load(name)
    Draft202012Validator.check_schema(schema)
    for each in objects(schema):
        assert each["additionalProperties"] is False
        assert set(each.get("required", [])) <= set(each["properties"])


def test_schemas_are_those_of_the_last_release_or_known_to_differ():
    """A new key is stored by `python tests/stored_schemas.py`, which prints what changes.

    If a key vanishes or changes, the number of its document changes with it.
    """
    stored, now = stored_schemas.FILE.read_text().splitlines(), stored_schemas.lines()
    assert [*unified_diff(stored, now, "stored", "now", n=0, lineterm="")] == []


def test_a_changed_schema_differs_from_the_stored_one(monkeypatch):
    load = schemas.load

    def changed(name):
        schema = load(name)
        if name == "bench":
            schema["properties"]["points"]["items"]["properties"]["depth"] = {"type": "number"}
        return schema

    monkeypatch.setattr(schemas, "load", changed)
    differing = {*stored_schemas.lines()} ^ {*stored_schemas.FILE.read_text().splitlines()}
    place = "hybridsim.bench/1.points[].depth"
    assert differing == {f"{place} integer", f"{place} number"}


def test_a_class_gives_the_keys_of_its_fields():
    schema = {
        "class": "hybridsim.answers.bounds:Case",
        "descriptions": {"mode": "Of caches."},
        "properties": {"best_ns": {"type": "integer"}, "more": {"type": "string"}},
    }
    assert filled({"items": schema})["items"] == {
        "type": "object",
        "properties": {
            "mode": {"type": "string", "description": "Of caches."},
            "now_ns": {"type": "number"},
            "best_ns": {"type": "integer"},
            "worst_ns": {"type": "number"},
            "gain_at_least": {"type": "number"},  # a property that its `_more` names
            "gain_at_most": {"type": "number"},
            "more": {"type": "string"},
        },
        "required": [
            "mode",
            "now_ns",
            "best_ns",
            "worst_ns",
            "gain_at_least",
            "gain_at_most",
            "more",
        ],
        "additionalProperties": False,
    }


def test_an_object_has_no_other_keys_and_all_of_its_own_unless_it_says_so():
    number = {"type": "number"}
    schema = {
        "properties": {
            "own": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a"]},
            "more": {"like": "part", "properties": {"c": number}, "description": "A part and c."},
        },
        "$defs": {"part": {"type": "object", "properties": {"a": number}}},
        "type": "object",
    }
    whole = filled(schema)
    assert whole["required"] == ["own", "more"]
    assert whole["properties"]["own"]["required"] == ["a"]
    assert whole["properties"]["more"] == {
        "type": "object",
        "properties": {"a": number, "c": number},
        "required": ["a", "c"],
        "additionalProperties": False,
        "description": "A part and c.",
    }
    assert all(each["additionalProperties"] is False for each in objects(whole))


def test_every_document_has_a_schema_of_its_version():
    used = set()
    for package in ("hybridsim", "validate"):
        for path in (ROOT / package).rglob("*.py"):
            used |= set(re.findall(r'= "hybridsim\.(\w+/\d+)"', path.read_text()))
    versions = [schemas.load(name)["properties"]["schema"]["const"] for name in schemas.names()]
    described = {version.removeprefix("hybridsim.") for version in versions}
    assert {each for each in used if each.partition("/")[0] not in OTHERS} == described


def test_the_command_prints_the_schemas():
    listed = CliRunner().invoke(cli, ["schema"]).output
    assert all(f"hybridsim.{name}/" in listed for name in schemas.names())
    output = CliRunner().invoke(cli, ["schema", "validation"]).output
    assert json.loads(output) == schemas.load("validation")
    with pytest.raises(UsageError, match="did you mean 'result'"):
        CliRunner().invoke(cli, ["schema", "results"], catch_exceptions=False)


def test_a_key_of_a_plain_type_is_one_string():
    keys = {"n": "integer", "p99_ns": "integer|null: Nanoseconds.", "names": "[string]: Sorted."}
    assert filled({"type": "object", "properties": keys})["properties"] == {
        "n": {"type": "integer"},
        "p99_ns": {"type": ["integer", "null"], "description": "Nanoseconds."},
        "names": {"type": "array", "items": {"type": "string"}, "description": "Sorted."},
    }
