"""A key is stated once: one name, one default, no second list of parameters."""

import ast
import inspect
import textwrap
from dataclasses import MISSING, fields
from enum import IntEnum
from typing import get_args

import pytest

from hybridsim.caches import Bcache, DmCache, DmWritecache, OpenCas, PageCache
from hybridsim.cli.replay import replay
from hybridsim.foundation.cache_parameters import (
    BcacheParameters,
    CacheParameters,
    DmCacheParameters,
    OpenCasParameters,
    WritecacheParameters,
)
from hybridsim.foundation.machine_parameters import (
    ArrayParameters,
    ControllerParameters,
    FlashParameters,
    HddParameters,
    HostParameters,
    JobParameters,
    SsdParameters,
    ThrottleParameters,
    VolumeParameters,
)
from hybridsim.foundation.toml.table import key_of
from hybridsim.requests import jobs
from hybridsim.requests.host import Host
from hybridsim.requests.jobs import Jobs
from hybridsim.scenario import Backing, Cache, Scenario
from hybridsim.scenario.fast_tier import FastTier
from hybridsim.scenario.key_help import named
from hybridsim.scenario.machine import CACHE_TABLES, Replay, tables
from hybridsim.scenario.machine import Host as HostTable
from hybridsim.scenario.options import OPTIONS
from hybridsim.storage.controller import Controller
from hybridsim.storage.devices import HDD, SSD, Flash, Volume
from hybridsim.storage.raid import Tier
from hybridsim.storage.throttle import Throttle

PARTS = {  # by the kind in its file: the model's parameters, and the engine's state machine
    "page": (CacheParameters, PageCache),
    "bcache": (BcacheParameters, Bcache),
    "dm-cache": (DmCacheParameters, DmCache),
    "dm-writecache": (WritecacheParameters, DmWritecache),
    "open-cas": (OpenCasParameters, OpenCas),
}
UNITS = ("_bytes", "_ns", "_us", "_pages", "_blocks", "_lines")
# Parameters that are no keys: sizes, the seed, what no user sets, and what a warm start brings.
NO_KEY = {
    "pages", "blocks", "lines", "buckets", "granule_bytes", "budget", "kept", "preload", "seed",
    "part_bytes", "margin_lines", "backfills_max", "backfills_resume", "open_buckets",
    "clean_window",
}  # fmt: skip
# Keys that the model does not have: the tier, names, and what other parameters are computed from.
OF_TIER = {"kind", "size", "members", "chunk", "drive"}
NOT_IN_MODEL = {
    "policy", "touches", "probability", "request_max", "write_price", "write_budget", "clean_order",
}  # fmt: skip


def without_unit(name):
    return next((name.removesuffix(unit) for unit in UNITS if name.endswith(unit)), name)


def table_of(kind):
    return next(
        table for table in CACHE_TABLES if kind in str(table.model_fields["kind"].annotation)
    )


def words_of(field):
    """Return the words that a key takes."""
    return {word for word in get_args(field.annotation) if isinstance(word, str)}


def keys_of(table):
    return {field.alias: name for name, field in table.model_fields.items()}


@pytest.mark.parametrize("kind", PARTS)
def test_a_parameter_has_the_name_of_its_key(kind):
    table, (model, _) = table_of(kind), PARTS[kind]
    keys = keys_of(table).keys() - OF_TIER - NOT_IN_MODEL
    names = {each.name for each in fields(model)} - NO_KEY
    assert {name if name in keys else without_unit(name) for name in names} == keys


@pytest.mark.parametrize("kind", PARTS)
def test_a_key_has_one_default(kind):
    """The table takes its default from the model, where the model has one for the same thing."""
    table, (model, _) = table_of(kind), PARTS[kind]
    defaults = {each.name: each.default for each in fields(model)}
    source = ast.parse(textwrap.dedent(inspect.getsource(table)))
    checked = 0
    for node in ast.walk(source):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            name = node.target.id
            if defaults.get(name, MISSING) is MISSING or name == "replacement":
                continue  # "learned" is the page cache's, unless another admission is chosen
            text = ast.unparse(node.value)
            if text != "None" and "%" not in text:  # no limit: 0; a share becomes pages
                assert f"Model.{name}" in text, f"{kind}: {name} = {text}"
                checked += 1
    assert checked or kind == "dm-cache"


@pytest.mark.parametrize("kind", PARTS)
def test_an_engine_lists_no_parameters(kind):
    keys = {without_unit(name) for name in keys_of(table_of(kind))}
    given = inspect.signature(PARTS[kind][1].new).parameters
    assert not {without_unit(name) for name in given} & (keys - {"admission", "replacement"})


@pytest.mark.parametrize("kind", PARTS)
def test_every_value_of_a_table_reaches_the_model(kind):
    table = Scenario.loads(f'[cache]\nkind = "{kind}"\nsize = "1GiB"').cache
    result = table.parameters(1000, seed=7)
    for name in (each.name for each in fields(result) if each.name not in NO_KEY):
        value, own = getattr(result, name), getattr(table, name, MISSING)
        if isinstance(own, str) and isinstance(value, IntEnum):
            assert value.name.lower().replace("_", "-") in (own, f"linux-{own.replace('.', '-')}")
        elif own is not MISSING and not callable(own) and "%" not in str(own):
            assert value == (own or 0) or name == "admission"
    assert getattr(result, "seed", 7) == 7


def test_keys_are_names_without_their_units():
    for table in (FastTier, *CACHE_TABLES):
        for name, field in table.model_fields.items():
            allowed = (name, without_unit(name), "block", "flush_max_buffers")
            assert field.alias in allowed, name


# --- drives, arrays, the host and the load --------------------------------------------------------

# By the engine's state machine: the parameters that it shares with the reference.
MODELS = {
    HDD: HddParameters,
    SSD: SsdParameters,
    Flash: FlashParameters,
    Volume: VolumeParameters,
    Tier: ArrayParameters,
    Controller: ControllerParameters,
    Throttle: ThrottleParameters,
    Host: HostParameters,
    Jobs: JobParameters,
}


@pytest.mark.parametrize("machine", MODELS, ids=lambda each: each.__name__)
def test_a_state_machine_is_built_of_the_shared_parameters(machine):
    given = inspect.signature(machine.new).parameters
    taken = [name for name, each in given.items() if MODELS[machine].__name__ in each.annotation]
    assert taken in (["parameters"], ["model"])
    names = {name.strip("_") for name in MODELS[machine].__annotations__}
    assert not given.keys() & names


@pytest.mark.parametrize(
    ("table", "model"), [(Backing, ArrayParameters), (HostTable, HostParameters)]
)
def test_a_key_of_the_array_or_the_host_has_one_default(table, model):
    values = {name: field.default for name, field in table.model_fields.items()}
    known = {name: getattr(model, name) for name in values if hasattr(model, name)}
    assert known
    source = inspect.getsource(table)
    for name, default in known.items():
        assert (values[name] or None) == (default or None)
        assert not default or f"{model.__name__}.{name}" in source


def test_the_columns_of_jobs_are_their_parameters():
    for number, each in enumerate(fields(JobParameters)):
        name = each.name.upper()
        assert getattr(jobs, name) == number


def test_no_table_names_a_key_that_its_field_names():
    for table in tables():
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(table.model)))):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
                alias = {each.arg: ast.unparse(each.value) for each in node.value.keywords}
                assert alias.get("alias") != repr(key_of(node.target.id))


def test_options_of_the_command_line_have_the_words_and_defaults_of_their_keys():
    """raid0 is another word for stripe, as mdadm's."""
    options = {option.name: option for option in replay.params}
    words = {
        "cache": {word for each in CACHE_TABLES for word in words_of(each.model_fields["kind"])},
        "backing": words_of(Backing.model_fields["kind"]) - {"stripe"} | {"raid0"},
        "mode": words_of(Replay.model_fields["mode"]),
        "cache_mode": words_of(Cache.model_fields["mode"]),
    }
    for name, known in words.items():
        assert set(options[name].type.choices) == known, name
    for name, option in options.items():
        _, states_one, default = (option.help or "").partition("default: ")
        if states_one:
            ((_, key),) = named(".".join(OPTIONS[name]))
            assert key.default == f'"{default.rstrip(".")}"'
