"""Every drive of the catalog is complete, has sources for its values, and builds a device."""

import pytest

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.units import parse_size
from hybridsim.storage import catalog
from hybridsim.storage.drives import DRIVES

NOT_IN_FILES = {"kind", "like", "name", "flash"}


@pytest.mark.parametrize("name", catalog.names())
def test_an_entry_has_all_keys_and_builds_a_device(name):
    entry = catalog.load(name)
    model = DRIVES[entry.kind]
    fields = model.model_fields.items()
    keys = {fact.alias or key for key, fact in fields} - NOT_IN_FILES
    needed = {fact.alias or key for key, fact in fields if fact.is_required()} - NOT_IN_FILES
    assert needed <= set(entry.rows) <= keys
    values = {key: row.value for key, row in entry.rows.items()}
    model.model_validate({"kind": entry.kind, "name": entry.name, **values})


@pytest.mark.parametrize("name", catalog.names())
def test_every_value_has_a_mark_of_its_reliability(name):
    for key, row in catalog.load(name).rows.items():
        assert row.mark in catalog.MARKS, key
        assert row.source or row.mark == "assumed", key


def test_names_are_sorted_by_kind():
    assert catalog.names() == [name for kind in sorted(DRIVES) for name in catalog.names(kind)]
    assert "samsung-pm883-960gb" in catalog.names("ssd")
    assert len(set(catalog.names())) == len(catalog.names())


def test_the_error_for_a_mistyped_name_suggests_the_right_one():
    with pytest.raises(ScenarioError, match="did you mean 'seagate-cheetah-15k5'"):
        catalog.load("seagate-cheeta-15k5")
    with pytest.raises(ScenarioError, match="did you mean 'samsung-pm883-960gb'"):
        catalog.load("PM883")
    with pytest.raises(ScenarioError, match=r"choose from .*dec-rz26, hgst-ultrastar-7k8, "):
        catalog.load("zzz")


def test_the_ssd_of_the_published_figures_has_its_datasheet_values():
    rows = catalog.load("intel-x25e-32gb").rows
    assert parse_size(rows["capacity"].value) == 32 * 10**9
    assert rows["random_read_iops"].value == 35_000
