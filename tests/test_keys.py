"""A key of a cache is stated once: one name, one default, no second list of parameters."""

import ast
import inspect
import textwrap
from dataclasses import MISSING, fields
from enum import IntEnum

import pytest

from hybridsim.caches import Bcache, DmCache, DmWritecache, OpenCas, PageCache
from hybridsim.foundation.cache_parameters import (
    BcacheParameters,
    CacheParameters,
    DmCacheParameters,
    OpenCasParameters,
    WritecacheParameters,
)
from hybridsim.scenario import Scenario
from hybridsim.scenario.caches import CACHE_TABLES
from hybridsim.scenario.fast_tier import FastTier

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
