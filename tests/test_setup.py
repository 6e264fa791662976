"""`hybridsim setup`: the printed commands set what was simulated, and nothing runs them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import setup_read_back as read_back
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from setup_read_back import commands

from hybridsim import Scenario
from hybridsim.answers.setup import KINDS, bcache, plan
from hybridsim.answers.setup.plan import DISTRIBUTIONS, EXTENT_BYTES, SECTIONS, Site, partition
from hybridsim.cli import cli
from hybridsim.cli.setup import PARTS, SYSTEMS
from hybridsim.foundation.errors import HybridsimError, UsageError
from hybridsim.foundation.units import parse_percent
from hybridsim.studies.setup import choose, price_list

ROOT = Path(__file__).parent.parent
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
FAST = ("/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1", "/dev/nvme3n1")


# Settings of random scenarios go into commands and come back from them.


def one_of(*values):
    return st.sampled_from(values)


SETTINGS = {
    "dm-cache": {
        "size": one_of("1GiB", "1000MiB", "123456789", "64GiB", "3TiB"),
        "block": one_of("auto", "32KiB", "64KiB", "96KiB", "1MiB"),
        "mode": one_of("writethrough", "writeback", "passthrough"),
        "migration_threshold": one_of("auto", "0B", "1MiB", "999999", "16MiB"),
    },
    "bcache": {
        "size": one_of("1GiB", "300MiB", "64GiB", "1000000000"),
        "bucket": one_of("auto", "4KiB", "128KiB", "512KiB"),
        "block": one_of("512B", "1KiB", "4KiB"),
        "mode": one_of("writethrough", "writeback", "writearound", "none"),
        "replacement": one_of("lru", "fifo", "random"),
        "sequential_cutoff": one_of("0B", "4MiB", "1000000", "4095MiB"),
        "congested_read": one_of("0ms", "2ms", "1500ns"),
        "congested_write": one_of("0ms", "20ms"),
        "writeback_percent": one_of(0, 10, 40),
        "writeback_delay": one_of("0s", "30s", "1h"),
    },
    "dm-writecache": {
        "size": one_of("1GiB", "300MiB", "64GiB", "1000000000"),
        "block": one_of("512B", "4KiB"),
        "high_watermark": one_of("50%", "100%", "7%"),
        "low_watermark": one_of("0%", "7%"),
        "autocommit_blocks": one_of(1, 65536),
        "autocommit_time": one_of("1s", "1ms", "30s"),
        "pause_writeback": one_of("3s", "0s", "1500ms"),
    },
    "open-cas": {
        "size": one_of("1GiB", "300MiB", "64GiB", "1000000000"),
        "line": one_of("4KiB", "16KiB", "64KiB"),
        "mode": one_of("wt", "wb", "wa", "wo", "pt"),
        "promotion": one_of("always", "nhit"),
        "insertion_threshold": one_of(2, 3, 1000),
        "trigger_threshold": one_of("0%", "80%", "100%"),
        "sequential_cutoff_policy": one_of("full", "always", "never"),
        "sequential_cutoff": one_of("1KiB", "1MiB", "100MiB"),
        "cleaning": one_of("alru", "acp", "nop"),
        "wake_up": one_of("auto", "1s", "10s"),
        "flush_max_buffers": one_of("auto", 1, 10_000),
        "staleness_time": one_of("1s", "120s"),
        "activity_threshold": one_of("0s", "10s", "1500ms"),
    },
}


@st.composite
def machines(draw, kind):
    """Draw a scenario with this kind of cache, and devices for it."""
    values = {f"cache.{name}": draw(each) for name, each in SETTINGS[kind].items()}
    members = draw(one_of(1, 1, 2))
    values |= {"cache.kind": kind, "cache.members": members, "cache.drive.capacity": "4TB"}
    values["cache.chunk"] = draw(one_of("64KiB", "4KiB"))
    fast = FAST[: members * draw(one_of(1, 2))]
    slow = draw(one_of("/dev/sdb", "/dev/disk/by-id/wwn-0x5000"))
    if kind.startswith("dm-"):
        slow = draw(one_of(slow, "vg-1/data"))
    try:
        scenario = Scenario.default().with_values(values)
    except HybridsimError:
        scenario = None  # a bucket too large for the size
    return scenario, Site(slow, fast, "debian13", from_source=True)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_commands_set_what_was_simulated(kind, data):
    """Commands are parsed into the same settings, and these into a scenario of the same kind."""
    scenario, site = data.draw(machines(kind))
    if scenario is None:
        return
    one = plan(scenario, None, site)
    parsed, keys = read_back.KINDS[kind]
    assert parsed(one.section("install").script()) == one.settings
    again = scenario.with_values(keys(one.settings))
    assert plan(again, None, site).settings == one.settings
    installed, simulated = again.cache.pages(0), scenario.cache.pages(0)
    size = installed * again.cache.page_bytes - simulated * scenario.cache.page_bytes
    if kind == "bcache":
        assert -one.settings.bucket_bytes < size <= 0  # buckets are whole, in both
    else:
        stripes = scenario.cache.members if kind == "dm-cache" else 1
        rounding = EXTENT_BYTES * stripes if kind != "open-cas" else MIB
        assert 0 <= size < rounding + scenario.cache.page_bytes
    assert again.cache.write_policy == scenario.cache.write_policy == one.mode
    assert parameters(again) == parameters(scenario)


def parameters(scenario):
    """Return what the engine is given of a cache, whatever its size."""
    table = scenario.cache
    if table.kind == "dm-cache":
        return table.page_bytes, table.mode, table.migration_threshold_bytes // 512
    if table.kind == "bcache":
        return (
            table.bucket_bytes(table.pages(0)), table.block_bytes, table.mode, table.replacement,
            table.sequential_cutoff_bytes, table.congested_read_ns // 1000,
            table.congested_write_ns // 1000, table.writeback_percent, table.writeback_delay_ns,
        )  # fmt: skip
    if table.kind == "dm-writecache":
        marks = table.watermarks(10_000)
        commits = table.autocommit_blocks, table.autocommit_time_ns
        return table.page_bytes, marks, table.pause_writeback_ns, commits
    nhit = (table.insertion_threshold, int(10_000 * parse_percent(table.trigger_threshold)))
    cleaner = (table.wake_up_ns, table.flush_max_buffers)
    alru = (table.staleness_time_ns, table.activity_threshold_ns)
    return (
        table.line_bytes, table.mode, table.promotion, table.sequential_cutoff_policy,
        table.sequential_cutoff_bytes, table.cleaning, table.promotion == "nhit" and nhit,
        table.cleaning != "nop" and cleaner, table.cleaning == "alru" and alru,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_section_is_a_script(kind, data):
    """A shell parses it; each command is a known tool, and devices appear as specified."""
    scenario, site = data.draw(machines(kind))
    if scenario is None:
        return
    one = plan(scenario, None, site)
    assert [each.name for each in one.sections] == [
        name for name in SECTIONS if name != "build" or kind == "open-cas"
    ]
    for section in one.sections:
        script = section.script()
        assert script.startswith("set -eu\n")
        done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert site.slow.split("/")[-1] in one.section("install").script()
    assert all(each in one.section("install").script() for each in site.fast)


def test_settings_that_no_command_sets_are_refused():
    """What is simulated but cannot be set is an error that names it, never another value."""
    for values, word in (
        ({"kind": "bcache", "writeback_delay": "1500ms"}, "writeback_delay"),
        ({"kind": "dm-writecache", "block": "2KiB"}, "cache.block"),
        ({"kind": "dm-writecache", "high_watermark": "50.5%"}, "high_watermark"),
        ({"kind": "dm-writecache", "pause_writeback": "1s"}, "pause_writeback"),
        ({"kind": "open-cas", "mode": "wi"}, "'wi'"),
        ({"kind": "open-cas", "sequential_cutoff": "1500"}, "sequential_cutoff"),
        ({"kind": "open-cas", "wake_up": "1500ms"}, "wake_up"),
        ({"kind": "open-cas", "wake_up": "2h"}, "wake_up"),
        ({"kind": "open-cas", "cleaning": "acp", "wake_up": "11s"}, "wake_up"),
        ({"kind": "dm-cache", "migration_threshold": "3TiB"}, "migration_threshold"),
    ):
        scenario = Scenario.default().with_values(
            {f"cache.{name}": value for name, value in {"size": "1GiB", **values}.items()}
        )
        with pytest.raises(UsageError, match=word):
            plan(scenario, None, Site(fast=FAST[:1], from_source=True))


def test_lvm_and_its_limits():
    """A million chunks and eight chunks of migration threshold are LVM's limits."""
    site = Site(fast=FAST[:1])
    many = Scenario.default().with_values(
        {"cache.kind": "dm-cache", "cache.size": "64GiB", "cache.block": "32KiB"}
    )
    script = plan(many, None, site).section("install").script()
    assert "--config allocation/cache_pool_max_chunks=2097152" in script
    few = many.with_values({"cache.block": "auto"})
    assert "max_chunks" not in plan(few, None, site).section("install").script()
    low = few.with_values({"cache.migration_threshold": "512KiB"})  # 8 chunks are 1 MiB
    script = plan(low, None, site).section("install").script()
    assert "--cachesettings migration_threshold=2048" in script
    assert "dmsetup message cached-data 0 migration_threshold 1024" in script
    assert plan(low, None, site).settings.migration_threshold == 1024
    removal = plan(low, None, site).section("remove").script()
    assert "systemctl disable hybridsim-dm-cache.service" in removal


def test_the_number_of_ssds_is_that_of_the_simulation():
    two = Scenario.default().with_values(
        {"cache.kind": "dm-cache", "cache.size": "1GiB", "cache.members": 2}
    )
    with pytest.raises(UsageError, match="specify 2, or 4 for a mirror"):
        plan(two, None, Site(fast=FAST[:1]))
    striped = plan(two, None, Site(fast=FAST[:2]))
    assert "--type striped -i 2 -I 64k" in striped.section("install").script()
    mirrored = plan(two, None, Site(fast=FAST))
    assert "--type raid10 -m 1 -i 2 -I 64k" in mirrored.section("install").script()


def test_a_threshold_below_one_chunk_is_a_warning():
    """The kernel then never writes back when idle."""
    low = Scenario.default().with_values(
        {"cache.kind": "dm-cache", "cache.mode": "writeback", "cache.size": "1GiB",
         "cache.block": "2MiB", "cache.migration_threshold": "1MiB"}
    )  # fmt: skip
    site = Site(fast=FAST[:1])
    assert "never writes dirty chunks back" in " ".join(plan(low, None, site).warnings)
    enough = low.with_values({"cache.migration_threshold": "2MiB"})
    assert "never writes dirty" not in " ".join(plan(enough, None, site).warnings)


def test_dirty_data_without_a_mirror_are_a_warning():
    back = Scenario.default().with_options(
        cache="dm-cache", cache_mode="write-back", cache_size="1GiB"
    )
    alone = " ".join(plan(back, None, Site(fast=FAST[:1])).warnings)
    assert "on the SSD alone" in alone
    assert "After a crash" in alone
    assert "on the SSD alone" not in " ".join(plan(back, None, Site(fast=FAST[:2])).warnings)


@pytest.mark.parametrize("mode", ["write-through", "write-back"])
def test_what_open_cas_loses_in_a_crash_is_a_warning(mode, tmp_path):
    """The warning agrees with the model: dirty data are recovered, and nothing else."""
    file = tmp_path / "result.json"
    load = "gen:zipf,theta=1.2,read=80%,span=64MiB,requests=400,rate=100"
    options = ["--cache", "open-cas", "--cache-mode", mode, "--cache-size", "32MiB"]
    event = ["--mode", "open", "--event", "at=2s,reboot=unclean"]
    done = CliRunner().invoke(cli, ["replay", load, *options, *event, "--json", str(file)])
    assert done.exit_code == 0, done.output
    [crash] = json.loads(file.read_text())["events"]
    assert crash["cached_bytes"] > crash["dirty_bytes"]
    assert crash["cached_after_bytes"] == crash["dirty_after_bytes"] == crash["dirty_bytes"]
    text = " ".join(printed(*options, "--from-source").split())
    assert "recovers only dirty data" in text
    assert ("comes up empty" in text) == (crash["cached_after_bytes"] == 0)


# What a distribution lacks, and what a device name may be.


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_distribution_lacks_is_an_error_with_the_alternatives(name, kind):
    scenario = Scenario.default().with_options(cache=kind, cache_size="1GiB")
    site = Site(fast=FAST[:1], distribution=name)
    lacks = kind == "open-cas" or (kind == "bcache" and name.startswith("rhel"))
    if not lacks:
        assert plan(scenario, None, site).kind == kind
        return
    with pytest.raises(UsageError) as error:
        plan(scenario, None, site)
    text = str(error.value)
    assert "dm-cache or dm-writecache" in text
    assert ("bcache or" in text) == (kind == "open-cas" and not name.startswith("rhel"))
    assert ("--from-source" in text) == (kind == "open-cas")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "specify a RESULT.json, or the cache"),
        (["--cache", "dm-writecache", "--cache-mode", "write-through"], "leave it out"),
        (["--cache", "open-cas", "--cache-mode", "read-only"], "choose from write-around, write-"),
        (["--cache", "page"], "bcache, dm-cache, dm-writecache, open-cas"),
        (["--cache", "bcache"], "specify --cache-size in bytes"),
        (["--cache", "bcache", "--cache-size", "10%"], "specify --cache-size in bytes"),
        (["--cache", "bcache", "--cache-size", "1GiB", "--slow", "sdb"], "not the path"),
        (["--cache", "bcache", "--cache-size", "1GiB", "--slow", "/dev/sdb; reboot"], "not the"),
        (["--cache", "bcache", "--cache-size", "1GiB", "--fast", "$(reboot)"], "not the path"),
        (["--cache", "bcache", "--cache-size", "1GiB", "--slow", "vg/lv"], "takes a device"),
        (["--cache", "bcache", "--cache-size", "1GiB", "--slow", "/dev/a", "--fast", "/dev/a"],
         "specified twice"),
        (["--cache", "bcache", "--cache-size", "1GiB", "--script", "build"], "no section"),
        (["missing.json"], "cannot read missing.json"),
        (["wrong.json"], "is not the JSON of hybridsim replay"),
        (["other.json"], "hybridsim.mrc/1"),
        (["old.json"], "another version"),
        (["negative.json"], "no pages"),
        (["rate.json"], "is not the JSON of hybridsim replay"),
        (["old.json", "--cache", "bcache"], "one or the other"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_error(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.json").write_text("[" * 100_000)
    Path("other.json").write_text('{"schema": "hybridsim.mrc/1"}')
    old = {"toml": "[cache]\nkind = 'gone'\n", "cache_pages": 3}
    document = {"schema": "hybridsim.result/1", "verdict": {"answer": "yes"},
                "inputs": {"scenario": old, "trace": {"name": "a"}}}  # fmt: skip
    Path("old.json").write_text(json.dumps(document))
    negative = replayed("bcache", "write-back")
    negative["inputs"]["scenario"]["cache_pages"] = -300_000
    Path("negative.json").write_text(json.dumps(negative))
    dirty = {"end_bytes": 1, "p99_bytes": 1, "flush_bytes_per_s": "fast", "flush_ns": 1}
    Path("rate.json").write_text(json.dumps(replayed("bcache", "write-back", dirty=dirty)))
    done = CliRunner().invoke(cli, ["setup", *options])
    assert isinstance(done.exception, HybridsimError)
    assert words in str(done.exception)


def test_choices_of_the_command_are_those_of_the_plan():
    assert tuple(DISTRIBUTIONS) == SYSTEMS
    assert PARTS == SECTIONS


# The text cannot be run by accident.


def printed(*options):
    done = CliRunner().invoke(cli, ["setup", *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def everything(folder):
    """Return the options of one setup of each kind, with names that a shell would act upon."""
    (folder / "a'b`c.json").write_text(json.dumps(replayed("bcache", "write-back")))
    sized = ["--cache-size", "1GiB", "--from-source"]
    yield from (["--cache", kind, "--cache-mode", mode, *sized]
                for kind in KINDS for mode in ("write-through", "write-back")
                if kind != "dm-writecache")  # fmt: skip
    yield ["--cache", "dm-writecache", *sized]
    yield ["--cache", "dm-cache", *sized, "--set", "cache.migration_threshold=0B"]
    yield [str(folder / "a'b`c.json")]


def replayed(kind, mode, **more):
    """Return a document of a replay, as far as setup reads it."""
    scenario = Scenario.default().with_options(cache=kind, cache_mode=mode)
    about = {"toml": scenario.to_toml(), "cache_pages": 300_000}
    return {
        "schema": "hybridsim.result/1",
        "inputs": {"scenario": about, "trace": {"name": "a'b$(reboot)\n> c"}},
        "verdict": {"answer": "yes"},
        **more,
    }


def test_a_shell_that_reads_the_text_runs_nothing(tmp_path):
    """Whatever is printed: all commands are comments, and the first line stops a shell."""
    folder = tmp_path / "tools"
    folder.mkdir()
    tools = {words[0] for scenario in KINDS for words in commands(script_of(scenario))}
    for tool in tools - {"set", "for", "test", "done", "echo", "B"}:
        (folder / tool.split("/")[-1].partition("=")[0]).symlink_to("/bin/false")
    (tmp_path / "here").mkdir()
    for options in everything(tmp_path):
        text = printed(*options)
        for line in text.splitlines():
            assert line.startswith("# ") or not set(line) & set("'\"`$<>|&\\"), line
        for shell in ("sh", "bash"):
            done = subprocess.run(
                [shutil.which(shell), "-x"], input=text, cwd=tmp_path / "here", text=True,
                env={"PATH": str(folder)}, capture_output=True,
            )  # fmt: skip
            assert done.returncode
            assert not [line for line in done.stderr.splitlines() if line.startswith("+ ")]
    assert not list((tmp_path / "here").iterdir())


def script_of(kind):
    scenario = Scenario.default().with_options(cache=kind, cache_size="1GiB")
    one = plan(scenario, None, Site(fast=FAST[:1], from_source=True))
    return "\n".join(each.script() for each in one.sections)


def test_a_section_is_printed_as_a_script():
    options = ("--cache", "dm-cache", "--cache-size", "1GiB", "--slow", "vg/data")
    script = printed(*options, "--script", "install")
    assert script.startswith("set -eu\n")
    assert "vgextend vg /dev/FAST" in script
    assert "vgcreate" not in script
    document = json.loads(printed(*options, "--json", "-"))
    assert {each["name"]: each["script"] for each in document["sections"]}["install"] == script
    assert document["destroyed"] == ["/dev/FAST"]


def test_a_saved_replay_gives_size_and_flush(tmp_path):
    dirty = {"end_bytes": 3 * GIB, "p99_bytes": 4 * GIB, "flush_bytes_per_s": 1e6,
             "flush_ns": 3_221 * 10**9, "flush_p99_ns": 4_295 * 10**9}  # fmt: skip
    file = tmp_path / "result.json"
    file.write_text(json.dumps(replayed("bcache", "write-back", dirty=dirty)))
    document = json.loads(printed(str(file), "--json", "-"))
    assert document["settings"]["size_bytes"] == 300_000 * 4096 // (512 * KIB) * 512 * KIB
    assert document["dirty"] == dirty
    assert document["settings"]["mode"] == "writeback"
    text = " ".join(printed(str(file)).split())
    assert "3.00 GiB were dirty at the end of the replay, 4.00 GiB at the p99: 53m 41s" in text


def sized(answer, needs_no_ssd=False):
    scenario = Scenario.default().with_options(cache="bcache", cache_mode="write-back")
    return {
        "schema": "hybridsim.size/2",
        "inputs": {"scenario": {"toml": scenario.to_toml()}, "trace": {"name": "a"}},
        "answer": answer,
        "needs_no_ssd": needs_no_ssd,
    }


def test_the_answer_of_size_is_built(tmp_path):
    file = tmp_path / "size.json"
    file.write_text(json.dumps(sized({"size_bytes": 64 * MIB})))
    document = json.loads(printed(str(file), "--json", "-"))
    assert document["settings"]["size_bytes"] == 64 * MIB
    assert document["settings"]["mode"] == "writeback"
    assert document["promise"] is None


@pytest.mark.parametrize(
    ("needs_no_ssd", "words"),
    [(True, "the disks alone meet the requirements"), (False, "no size meets the requirements")],
)
def test_size_without_an_answer_builds_nothing(needs_no_ssd, words, tmp_path):
    file = tmp_path / "size.json"
    file.write_text(json.dumps(sized(None, needs_no_ssd)))
    with pytest.raises(UsageError, match=words):
        CliRunner().invoke(cli, ["setup", str(file)], catch_exceptions=False)


# Whole drives, from a price list.

PRICES = """\
name,capacity,price,endurance
small,250GB,45,150TB
large,1TB,79,600TB

durable,960GB,140,1752TB
unrated,2TB,60,
"""


def offers():
    return price_list(PRICES, "prices.csv")


def test_the_cheapest_drives_that_fit_are_chosen():
    found = choose(offers(), 100 * GIB, 2, True, 10**9, "USD")
    assert (found.fits.name, found.fits.cost, found.lasts) == ("small", 90, None)
    assert found.fits.years == pytest.approx(150_000 / 365.25)
    larger = choose(offers(), 300 * GIB, 1, False, None, "USD")
    assert (larger.fits.name, larger.fits.years) == ("unrated", None)
    assert choose(offers(), 3 * 10**12, 1, False, None, "USD").fits is None


def test_what_is_left_unpartitioned_needs_a_larger_drive():
    need = 240 * 10**9
    assert choose(offers()[:2], need, 1, False, None, "USD").fits.name == "small"
    spared = choose(offers()[:2], need, 1, False, None, "USD", spare=0.2)
    assert (spared.fits.name, spared.need_bytes) == ("large", 300 * 10**9)


def test_the_life_counts_the_hours_of_the_load_and_names_what_lasts():
    per_day = 400 * 10**9
    rated = offers()[:3]
    all_day = choose(rated, 500 * 10**9, 1, False, per_day, "USD")
    assert all_day.fits.years == pytest.approx(1500 / 365.25)
    assert all_day.lasts.name == "durable"
    hours = choose(rated, 500 * 10**9, 1, False, per_day, "USD", duty=8 / 24)
    assert hours.fits.years == pytest.approx(4500 / 365.25)
    assert hours.lasts is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a price list"),
        ("name,price\nx,3\n", "not a price list"),
        ("name,capacity,price\n", "no drives"),
        ("name,capacity,price\nx,1TB,cheap\n", "p.csv:2: could not convert"),
        ("name,capacity,price\nx,1XB,3\n", "p.csv:2: "),
        ("name,capacity,price\nx,0B,3\n", "p.csv:2: the capacity must be above 0"),
        ("name,capacity,price\nx,1TB,-3\n", "p.csv:2: the capacity must be above 0"),
        ("name,capacity,price\nx\n", "p.csv:2: "),
    ],
)
def test_a_wrong_price_list_is_one_error_with_its_line(text, words):
    with pytest.raises(UsageError, match=words):
        price_list(text, "p.csv")


def test_the_command_prints_what_to_buy(tmp_path):
    (tmp_path / "prices.csv").write_text(PRICES)
    file = tmp_path / "result.json"
    wear = {"bytes_per_day": 4e12}
    file.write_text(json.dumps(replayed("bcache", "write-back", wear=wear)))
    options = [str(file), "--prices", str(tmp_path / "prices.csv"), "--duty", "12h"]
    fast = ["--fast", "/dev/sdc", "--fast", "/dev/sdd"]
    text = " ".join(printed(*options, *fast, "--spare", "10%").split())
    assert "buy 2 x small, mirrored: USD 90.00; 10% of each is left unpartitioned" in text
    assert "with 12h of this load a day each lasts 2.5 months" in text
    document = json.loads(printed(*options, "--json", "-"))
    assert document["buy"]["written_per_day"] == 4e12
    assert document["buy"]["duty"] == 0.5
    for wrong in (["--duty", "25h"], ["--duty", "x"], ["--spare", "100%"], ["--spare", "x"]):
        with pytest.raises(UsageError):
            CliRunner().invoke(cli, ["setup", str(file), *wrong], catch_exceptions=False)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("/dev/sdb", "/dev/sdb1"),
        ("/dev/nvme0n1", "/dev/nvme0n1p1"),
        ("/dev/disk/by-id/nvme-X_1", "/dev/disk/by-id/nvme-X_1-part1"),
    ],
)
def test_names_of_partitions(device, expected):
    assert partition(device) == expected


# The tools know the options, and the kernel shows the settings.

TOOLS = ("lvcreate", "lvconvert", "lvchange", "vgcreate", "vgextend", "vgreduce", "pvremove",
         "make-bcache", "lsblk", "wipefs", "blockdev", "mdadm", "sfdisk")  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tools_have_the_printed_options(tool):
    """Each option of a printed command stands in the help of the tool, where it is installed."""
    path = shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{tool} is not installed")
    more = {"mdadm": ["--help-options", "--create --help", "--misc --help"],
            "lvconvert": ["--longhelp"]}.get(tool, [])  # fmt: skip
    text = "".join(
        subprocess.run(
            [path, *option.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ).stdout
        for option in ("--help", *more)
    )
    names = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))
    used: set[str] = set()
    for kind in KINDS:
        for values in ({}, {"cache.members": 2}):
            for number in (1, 2):
                scenario = Scenario.default().with_options(cache=kind, cache_size="1GiB")
                fast = FAST[: len(values or "1") * number * (2 if values else 1)]
                one = plan(scenario.with_values(values) if values else scenario, None,
                           Site(fast=fast, from_source=True))  # fmt: skip
                for section in one.sections:
                    for words in commands(section.script()):
                        if words[0] == tool:
                            used |= {each.partition("=")[0] for each in words[1:]
                                     if re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", each)}  # fmt: skip
    missing = {each for each in used if each not in names and each[:2] not in names}
    if tool.startswith(("lv", "vg", "pv")):
        missing -= {"-Wn", "-Zn"}  # -W|--wipesignatures y|n
    assert not missing


DM_CACHE = """\
0 2088960 cache 253:2 253:1 253:3 128 2 metadata2 writeback smq 2 migration_threshold 4096
0 2088960 cache 8 19/3072 128 200/2560 0 0 0 0 0 200 200 3 metadata2 writeback \
no_discard_passdown 2 migration_threshold 4096 smq 0 rw -
"""
WRITECACHE = """\
0 2088960 writecache s 253:2 253:1 4096 6 high_watermark 60 low_watermark 50 \
autocommit_blocks 1000
0 2088960 writecache 0 41820 41820 0 0 0 0 0 0 0 0 0 0 0
"""
BCACHE = """\
/sys/class/block/vda/bcache/state:clean
/sys/class/block/vda/bcache/cache_mode:writethrough [writeback] writearound none
/sys/class/block/vda/bcache/sequential_cutoff:976.5k
/sys/class/block/vda/bcache/writeback_percent:40
/sys/class/block/vda/bcache/writeback_delay:5
/sys/class/block/vda/bcache/cache/congested_read_threshold_us:0
/sys/class/block/vda/bcache/cache/congested_write_threshold_us:5
/sys/class/block/vda/bcache/cache/cache0/cache_replacement_policy:lru fifo [random]
/sys/class/block/vda/bcache/cache/bucket_size:128.0k
/sys/class/block/vda/bcache/cache/block_size:4.0k
/sys/class/block/vda/bcache/cache/cache0/nbuckets:1280
"""
SHOWN = {  # by a Debian 12 guest: text, and the settings that were set
    "dm-cache": (DM_CACHE, {"size": "160MiB", "mode": "writeback", "migration_threshold": "2MiB"}),
    "dm-writecache": (
        WRITECACHE,
        {"size": "163MiB", "high_watermark": "60%", "low_watermark": "50%",
         "autocommit_blocks": 1000, "autocommit_time": "1s"},
    ),
    "bcache": (
        BCACHE,
        {"size": "160MiB", "bucket": "128KiB", "block": "4KiB", "mode": "writeback",
         "replacement": "random", "sequential_cutoff": "1000000", "congested_read": "0ms",
         "congested_write": "5us", "writeback_percent": 40, "writeback_delay": "5s"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHOWN)
def test_the_state_of_a_kernel_is_held_against_the_settings(kind):
    """It equals what was set; any other setting is a difference that names it."""
    text, values = SHOWN[kind]
    scenario = Scenario.default().with_values(
        {"cache.kind": kind, **{f"cache.{name}": value for name, value in values.items()}}
    )
    site = Site(fast=FAST[:1])
    assert KINDS[kind].differences(plan(scenario, None, site).settings, text) == []
    others = {"mode": "write-through", "size": "100MiB", "block": "512B", "high_watermark": "70%",
              "low_watermark": "10%", "autocommit_blocks": 7, "autocommit_time": "2s",
              "replacement": "lru", "migration_threshold": "4MiB", "bucket": "64KiB",
              "sequential_cutoff": "2MiB", "congested_read": "1ms", "congested_write": "1ms",
              "writeback_percent": 7, "writeback_delay": "8s"}  # fmt: skip
    for name in values:
        changed = scenario.with_values({f"cache.{name}": others[name]})
        found = KINDS[kind].differences(plan(changed, None, site).settings, text)
        assert found, name
    assert KINDS[kind].differences(plan(scenario, None, site).settings, "")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0.0k"), (512, "0.5k"), (1000000, "976.5k"), (1023 << 10, "0.9M"), (4 << 20, "4.0M")],
)
def test_sizes_are_compared_as_bcache_writes_them(size, text):
    assert bcache.human(size) == text


# The RAM of the metadata.


def test_ram_is_that_of_the_kernels_structures():
    """Figures of the kernel's documents, and of real runs."""
    site = Site(fast=FAST[:1], from_source=True)

    def ram(kind, size, **values):
        scenario = Scenario.default().with_options(cache=kind, cache_size=size)
        scenario = scenario.with_values({f"cache.{k}": v for k, v in values.items()} or {"seed": 1})
        return plan(scenario, None, site).ram.size_bytes

    # lvmcache(7): slightly over 2 GiB for 100 GiB, a little over 16 GiB in blocks of 512 bytes.
    assert 2.0 < ram("dm-writecache", "100GiB") / GIB < 2.2
    assert 16 < ram("dm-writecache", "100GiB", block="512B") / GIB < 17.5
    # casadm's metadata footprint of real caches of 4 KiB lines, in MiB.
    for lines, footprint in ((12_352, 18.5), (19_424, 18.8), (31_616, 19.3), (55_936, 20.2)):
        found = ram("open-cas", f"{lines * 4}KiB") / MIB
        assert abs(found - footprint) < 0.2
    # 24 bytes a chunk and a quarter more for hotspot blocks: 1,048,576 chunks.
    assert 30 < ram("dm-cache", "64GiB", block="64KiB") / 2**20 < 36


# In a guest: build, read back, use, remove, with the printed scripts.

GUEST = [
    ("dm-cache", {"size": "160MiB", "mode": "writeback", "block": "64KiB"}, 1, "device"),
    ("dm-cache", {"size": "100MiB", "mode": "writethrough", "block": "32KiB",
                  "migration_threshold": "64KiB"}, 2, "volume"),
    ("dm-writecache", {"size": "150MiB", "high_watermark": "60%", "low_watermark": "20%",
                       "autocommit_blocks": 1000}, 1, "device"),
    ("dm-writecache", {"size": "100MiB", "block": "512B"}, 2, "volume"),
    ("bcache", {"size": "160MiB", "mode": "writeback", "bucket": "128KiB", "block": "4KiB",
                "sequential_cutoff": "0B", "writeback_percent": 40, "replacement": "fifo",
                "congested_read": "0ms"}, 1, "device"),
    ("bcache", {"size": "160MiB", "mode": "writethrough", "congested_write": "5ms"}, 1, "device"),
    ("bcache", {"size": "300MiB", "mode": "writearound", "replacement": "random"}, 1, "device"),
    ("bcache", {"size": "300MiB", "mode": "writeback"}, 2, "device"),
]  # fmt: skip
# There is neither udev nor systemd in the guest.  These name an array's partition, and run a unit.
UDEVADM = """#!/bin/sh
array=$(readlink -f /dev/md/cache) && ln -sf "${array}p1" /dev/md/cache1
exit 0
"""
SYSTEMCTL = """#!/bin/sh
case "$1" in
enable) sh -c "$(sed -n 's/^ExecStart=//p' "/etc/systemd/system/$3")" ;;
esac
"""


@pytest.mark.long
@pytest.mark.parametrize(("kind", "values", "ssds", "slow"), GUEST)
def test_the_scripts_run_forth_and_back_in_a_guest(kind, values, ssds, slow, tmp_path):
    """The kernel shows the settings; the data are there under the cache and after its removal."""
    from validate.errors import MissingError
    from validate.lab import guest, setup
    from validate.lab.machine import Disk

    if os.environ.get("HYBRIDSIM_LAB") == "0":
        pytest.skip("HYBRIDSIM_LAB=0: no guest is started")
    try:
        setup.set_up(print)
    except MissingError as error:
        pytest.skip(f"the lab is not available here: {error}")
    scenario = Scenario.default().with_values(
        {"cache.kind": kind, **{f"cache.{name}": value for name, value in values.items()}}
    )
    fast = ("/dev/vdb", "/dev/vdc")[:ssds]
    site = Site("/dev/vda" if slow == "device" else "vg/data", fast)
    one = plan(scenario, None, site)
    files = {f"{each.name}.sh": each.script().encode() for each in one.sections}
    files |= {"systemctl": SYSTEMCTL.encode(), "udevadm": UDEVADM.encode()}
    data = one.site.slow if slow == "volume" else "cached/data"
    device = "/dev/bcache0" if kind == "bcache" else f"/dev/{data}"
    files["all.sh"] = GUEST_RUN.replace("DEVICE", device).encode()
    disks = [Disk("slow", 1 << 30), Disk("fast", 600 * MIB), Disk("second", 600 * MIB)]
    done = guest.run(
        [["sh", "all.sh", slow, kind]], disks, tmp_path, files=files, memory_mb=1024,
        limit_s=600, on_output=print,
    )  # fmt: skip
    output = (tmp_path / "00.out").read_text()
    assert done.codes == [0], output[-3000:]
    shown = output.partition("VERIFY\n")[2].partition("VERIFIED\n")[0]
    assert KINDS[kind].differences(one.settings, shown) == []
    assert "SAME UNDER THE CACHE" in output
    assert "SAME AFTER REMOVAL" in output
    assert "REMOVED" in output


GUEST_RUN = """
set -eu
export PATH=/tmp/bin:$PATH LVM_SUPPRESS_FD_WARNINGS=1 MDADM_NO_UDEV=1
mkdir -p /tmp/bin /usr/local/sbin /etc/systemd/system
cp systemctl udevadm /tmp/bin; chmod 755 /tmp/bin/*
for m in dm-mod dm-cache dm-cache-smq dm-writecache dm-raid raid1; do modprobe $m; done
if [ "$1" = volume ]; then
  vgcreate vg /dev/vda; lvcreate -y -n data -L 800m vg
  dd if=/dev/urandom of=/dev/vg/data bs=1M count=20 oflag=direct
  before=$(dd if=/dev/vg/data bs=1M count=20 iflag=direct | sha256sum)
fi
sh check.sh
echo INSTALL; sh install.sh
echo VERIFY; sh verify.sh; echo VERIFIED
if [ "$1" = volume ]; then
  [ "$(dd if=DEVICE bs=1M count=20 iflag=direct | sha256sum)" = "$before" ]
fi
dd if=/dev/urandom of=/tmp/data bs=64k count=300
dd if=/tmp/data of=DEVICE bs=64k oflag=direct
written=$(sha256sum < /tmp/data)
[ "$(dd if=DEVICE bs=64k count=300 iflag=direct | sha256sum)" = "$written" ]
echo SAME UNDER THE CACHE
sh remove.sh
[ "$(dd if=DEVICE bs=64k count=300 iflag=direct | sha256sum)" = "$written" ]
echo SAME AFTER REMOVAL
test -z "$(wipefs -n /dev/vdb)"
! dmsetup table | grep -E ' (cache|writecache) '
if [ "$2" = bcache ]; then [ "$(cat /sys/block/vda/bcache/state)" = "no cache" ]; fi
echo REMOVED
"""
