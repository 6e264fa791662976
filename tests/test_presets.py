"""Presets: whole systems by name, overridden by a scenario."""

import pytest
from click.testing import CliRunner

from hybridsim.cli.scenario import scenario as command
from hybridsim.foundation.errors import ScenarioError
from hybridsim.scenario import Scenario
from hybridsim.scenario.machine import preset_text
from hybridsim.storage.catalog import systems


@pytest.mark.parametrize("name", systems())
def test_every_preset_is_a_valid_scenario_with_sources(name):
    site = Scenario.loads(f'preset = "{name}"')
    assert site == Scenario.default().with_options(preset=name)
    assert Scenario.loads(site.to_toml()) == site
    assert preset_text(name).startswith("# ")
    for line in preset_text(name).splitlines():
        if "=" in line and line.split()[0] in ("members", "max_iops", "size"):
            assert "# " in line, line


def test_presets_of_the_reference_documents_have_their_values():
    ultra = Scenario.loads('preset = "alibaba-8x-ultra"')
    assert (ultra.backing.kind, ultra.backing.members, ultra.backing.chunk_bytes) == (
        "stripe",
        8,
        65_536,
    )
    assert (ultra.backing.drive.sustained_iops, ultra.host.max_iops) == (5000, 23_500)
    maxiq = Scenario.loads('preset = "adaptec-maxiq-3x-sata"')
    assert maxiq.cache.pages(1) == 121_561
    oracle = Scenario.loads('preset = "oracle-balanced-20x1tb"')
    assert oracle.backing.members * oracle.backing.drive.sustained_iops == 500_000


def test_a_file_overrides_its_preset():
    site = Scenario.loads(
        'preset = "alibaba-8x-ultra"\nseed = 5\n'
        '[backing]\nmembers = 4\n[backing.drive]\ncapacity = "100GiB"\n[host]\noverhead = "9us"\n'
    )
    assert (site.seed, site.backing.members, site.backing.kind) == (5, 4, "stripe")
    assert site.backing.drive.like == "alibaba-ultra"
    assert site.backing.drive.sustained_iops == 2600
    assert (site.host.max_iops, site.host.overhead_ns) == (23_500, 9000)


def test_a_drive_by_name_replaces_the_drive_of_the_preset():
    site = Scenario.loads('preset = "alibaba-8x-ultra"\n[backing]\ndrive = "aws-gp3"')
    assert site.backing.drive.like == "aws-gp3"
    assert site.backing.drive.iops == 3000


def test_options_override_file_and_preset():
    site = Scenario.loads('preset = "alibaba-8x-ultra"\n[backing]\nmembers = 4')
    assert site.with_options(members=2).backing.members == 2
    assert site.with_options(preset="oracle-balanced-20x1tb").backing.members == 4


def test_show_marks_the_source_of_each_value():
    shown = Scenario.loads('preset = "digitalocean-volume"\n[host]\nmax_iops = 9', "my.toml")
    lines = shown.to_toml().splitlines()
    (kind,) = [line for line in lines if line.startswith('kind = "single"')]
    (host,) = [line for line in lines if line.startswith("max_iops")]
    assert kind.endswith("# preset digitalocean-volume")
    assert host.endswith("# my.toml:3")


def test_the_error_for_a_mistyped_preset_suggests_the_right_one():
    with pytest.raises(ScenarioError) as error:
        Scenario.loads('preset = "digitalocan-volume"\n[cache]\nsize = "1q"', "my.toml")
    assert "2 problems" in str(error.value)
    assert (
        "my.toml:1:10: unknown preset 'digitalocan-volume': did you mean 'digitalocean-volume'?"
        in str(error.value)
    )
    with pytest.raises(ScenarioError, match="--preset: unknown preset 'x': choose from adaptec-"):
        Scenario.default().with_options(preset="x")
    with pytest.raises(ScenarioError, match="preset must be a name in quotes, not 3"):
        Scenario.loads("preset = 3")


def test_a_cloud_volume_is_a_single_member_of_full_capacity():
    site = Scenario.loads('[backing]\ndrive = "aws-gp3"')
    assert (site.backing.kind, site.backing.members, site.backing.capacity) == (
        "single",
        1,
        "drive",
    )
    with pytest.raises(
        ScenarioError, match=r"use larger volumes \(capacity in \[backing.drive\]\)"
    ):
        site.backing.member_bytes(2**50)


def test_show_accepts_a_preset():
    done = CliRunner().invoke(command, ["show", "--preset", "google-local-ssd-4x"])
    assert done.exit_code == 0
    assert 'preset = "google-local-ssd-4x"' in done.output
