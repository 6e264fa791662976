"""Scenarios: the contents of a file, the sources of values, and errors."""

import subprocess
import sys
import tomllib
from contextlib import suppress

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.cli.replay import replay
from hybridsim.cli.scenario import scenario as command
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.toml.places import Places
from hybridsim.scenario import OPTIONS, Scenario, building
from hybridsim.scenario.machine import CACHE_KINDS
from hybridsim.storage import catalog

SITE = """\
seed = 7
[backing]
kind = "stripe"
members = 2
chunk = "128KiB"
capacity = "500GB"
scheduler = "fcfs"
[backing.drive]
like = "seagate-cheetah-15k7"
overhead = "150us"
[cache]
page = "256KiB"
size = "32GB"
mode = "read-only"
drive = "intel-x25e-32gb"
admission = "touches"
touches = 3
sequential_cutoff = 0
[replay]
mode = "closed"
depth = 64
[price]
date = "2026-11"
hdd_per_gb = 0.02
ssd_per_gb = 0.08
currency = "USD"
"""


def errors(text: str) -> str:
    with pytest.raises(ScenarioError) as error:
        Scenario.loads(text, "site.toml")
    return str(error.value)


# --- contents -----------------------------------------------------------------------------------


def test_the_default_machine_has_the_documented_values():
    default = Scenario.default()
    assert (default.backing.kind, default.backing.members) == ("raid5", 4)
    assert default.backing.drive.kind == "hdd"
    assert default.backing.drive.rpm == 7200
    assert default.backing.chunk_bytes == 65_536
    assert default.backing.capacity == "trace"
    assert (default.backing.window, default.backing.age_limit_ns) == (32, 500_000_000)
    assert (default.cache.kind, default.cache.mode) == ("page", "write-through")
    assert (default.cache.page_bytes, default.cache.size) == (65_536, "10%")
    assert (default.cache.admission, default.cache.replacement) == ("learned", "learned")
    assert (default.cache.sequential_cutoff_bytes, default.cache.max_fills) == (2**20, 8)
    assert default.cache.drive.kind == "ssd"
    assert (default.replay.mode, default.replay.speed, default.seed) == ("auto", 1.0, 1)
    assert default.price is None
    assert Scenario.loads("") == default


def test_a_file_needs_only_the_keys_that_differ():
    site = Scenario.loads(SITE)
    assert site.seed == 7
    assert (site.backing.kind, site.backing.members) == ("stripe", 2)
    assert site.backing.window == 1
    assert site.backing.drive.overhead_ns == 150_000
    assert site.backing.drive.seek_average_ns == 3_400_000
    assert site.backing.drive.name == "Seagate Cheetah 15K.7 ST3600057SS"
    assert site.cache.drive.random_read_iops == 35_000
    assert site.cache.sequential_cutoff_bytes == 0
    assert site.price is not None
    assert site.price.ssd_per_gb == 0.08


def test_a_drive_can_be_fully_specified():
    own = Scenario.loads(
        """
        [backing]
        kind = "single"
        drive.rpm = 5400
        drive.capacity = "4TB"
        drive.seek_track_to_track = "1ms"
        drive.seek_average = "11ms"
        drive.seek_full = "21ms"
        drive.rate_outer = "180MB/s"
        drive.rate_inner = "90MB/s"
        drive.window = 8
        """
    )
    assert own.backing.members == 1
    assert own.backing.drive.like == ""
    assert own.backing.window == own.backing.drive.window == 8


@pytest.mark.parametrize("name", catalog.names())
def test_any_drive_may_be_either_tier(name):
    both = Scenario.default().with_options(backing_drive=name, cache_drive=name)
    assert both.backing.drive == both.cache.drive
    assert both.backing.drive.like == name


def test_raid0_is_an_alias_of_stripe():
    assert Scenario.loads('[backing]\nkind = "raid0"').backing.kind == "stripe"


@pytest.mark.parametrize(
    ("kind", "members", "data"),
    [("linear", 3, 3), ("stripe", 3, 3), ("raid1", 3, 1), ("raid5", 4, 3), ("raid6", 6, 4),
     ("raid10", 4, 2), ("raid10", 3, 1.5)],
)  # fmt: skip
def test_the_capacity_of_a_level_excludes_copies_and_parity(kind, members, data):
    backing = Scenario.default().with_options(backing=kind, members=members).backing
    volume = 12 * 65536
    assert backing.member_bytes(volume) == volume / data
    drive = backing.model_copy(update={"capacity": "768KiB"})  # twelve chunks per member
    assert drive.member_bytes(int(data * volume)) == volume
    with pytest.raises(ScenarioError, match="the array holds"):
        drive.member_bytes(int(data * volume) + 1)


@pytest.mark.parametrize(
    ("kind", "members", "lost", "survives"),
    [
        ("stripe", 4, [0], False),
        ("raid1", 3, [0, 1], True),
        ("raid1", 3, [0, 1, 2], False),
        ("raid5", 4, [3], True),
        ("raid5", 4, [0, 3], False),
        ("raid6", 5, [0, 3], True),
        ("raid6", 5, [0, 3, 4], False),
        ("raid10", 4, [0, 3], True),  # of different pairs
        ("raid10", 4, [2, 3], False),
        ("raid10", 3, [0, 2], False),  # pairs rotate: 0 1, 2 0, 1 2
    ],
)
def test_an_array_survives_the_losses_of_its_level(kind, members, lost, survives):
    text = f'[backing]\nkind = "{kind}"\nmembers = {members}\n'
    one, *others = lost
    for failures in (f"failed = {lost}", f"failed = {others}\nrebuild = {{member = {one}}}"):
        if survives:
            assert Scenario.loads(text + failures).backing.members == members
        else:
            assert "data" in errors(text + failures)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("failed = [4]", "3:10: there is no member 4: members are 0 to 3"),
        ("failed = [2]\nrebuild = {member = 2}", "3:10: a member may be listed once, and not both"),
        ('rebuild = {member = 2, min = "2GB/s"}', "3:30: min cannot exceed max"),
        ("rebuild = {membre = 2}", "'membre': did you mean 'member'?"),
        ('layout = "far"', '3:10: layout "far" needs kind = "raid10"'),
        ("members = 2", "3:11: raid5 needs at least 3 members, not 2"),
    ],
)
def test_impossible_arrays_are_refused(text, message):
    assert message in errors('[backing]\nkind = "raid5"\n' + text)


def test_a_scenario_is_immutable():
    default = Scenario.default()
    with pytest.raises(AttributeError):
        default.seed = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        default.cache.touches = 2


def test_member_capacity_covers_the_volume():
    backing = Scenario.default().backing
    assert backing.member_bytes(3 * 65_536) == 65_536
    assert backing.member_bytes(3 * 65_536 + 1) == 2 * 65_536
    small = Scenario.default().with_options(capacity="1GB").backing
    assert small.member_bytes(10**9) == 10**9 // 65_536 * 65_536
    too_large = r"the trace touches 3\.73 GiB, the array holds 2\.79 GiB"
    with pytest.raises(ScenarioError, match=too_large):
        small.member_bytes(4 * 10**9)
    whole = Scenario.default().with_options(capacity="drive").backing
    assert whole.member_bytes(0) == 8 * 10**12 // 65_536 * 65_536


def test_the_number_of_pages_follows_from_the_cache_size():
    cache = Scenario.default().cache
    assert cache.pages(100 * 65_536) == 10
    assert cache.pages(1) == 1
    assert Scenario.default().with_options(cache_size="1GiB").cache.pages(0) == 16_384
    assert Scenario.default().with_options(cache="none").cache.pages(10**9) == 0


# --- sources of values --------------------------------------------------------------------------


CONTROLLER = """
[backing.controller]
write_memory = "1GiB"
protected = false
"""


@pytest.mark.parametrize("text", ["", SITE, CONTROLLER])
def test_the_output_of_show_loads_as_the_same_scenario(text):
    site = Scenario.loads(text)
    assert Scenario.loads(site.to_toml()) == site


def test_show_marks_the_source_of_each_value():
    shown = Scenario.loads(SITE, "site.toml").with_options(cache_size="16GB").to_toml()
    source = {}
    for line in shown.splitlines():
        if " = " in line:
            setting, _, comment = line.removeprefix("# ").partition("  #")
            source.setdefault(setting.strip(), comment.strip())
    assert source["seed = 7"] == "site.toml:1"
    assert source['chunk = "128KiB"'] == "site.toml:5"
    assert source['overhead = "150us"'] == "site.toml:10"
    assert source['rate_outer = "204MB/s"'] == "catalog, read: device_datasheets.csv"
    assert source['like = "intel-x25e-32gb"'] == "site.toml:15"
    assert source['size = "16GB"'] == "--cache-size"
    assert source["max_fills = 8"] == "default"


def test_only_backing_and_cache_have_a_drive():
    with pytest.raises(ScenarioError, match=r"host\.drive: unknown key 'drive'"):
        Scenario.default().with_values({"host.drive.x": 1})


def test_a_drive_named_on_the_command_line_replaces_the_files():
    site = Scenario.loads(SITE, "site.toml").with_options(backing_drive="seagate-cheetah-15k5")
    shown = [" ".join(line.split()) for line in site.to_toml().splitlines()]
    assert 'like = "seagate-cheetah-15k5" # --backing-drive' in shown
    assert '# head_switch = "1us" # catalog, measured: DIXtrac extraction, DiskSim 4.0' in shown
    assert Scenario.loads(site.to_toml()) == site


def test_options_override_the_file():
    site = Scenario.loads(SITE).with_options(members=4, backing="raid5", speed=2.0, mode=None)
    assert (site.backing.kind, site.backing.members) == ("raid5", 4)
    assert site.replay.speed == 2.0
    assert site.cache.mode == "read-only"
    again = site.with_options(members=5)
    assert (again.backing.kind, again.backing.members) == ("raid5", 5)


def test_errors_of_options_name_the_option():
    with pytest.raises(ScenarioError) as error:
        Scenario.loads(SITE).with_options(cache_size="64uz", cache_drive="pm883", members=0)
    assert str(error.value) == (
        "3 problems in the scenario\n"
        "--cache-drive: unknown drive 'pm883': did you mean 'samsung-pm883-960gb'?\n"
        "--members: members must be at least 1, not 0\n"
        "--cache-size: unknown size unit 'uz': choose from "
        "B, k, m, g, t, KiB, MiB, GiB, TiB, PiB, kB, MB, GB, TB, PB"
    )
    with pytest.raises(TypeError, match="did you mean 'cache_size'"):
        Scenario.default().with_options(cachesize="1GB")


def test_every_option_sets_something_that_exists():
    unset = {"preset": "alibaba-ssd", "max_iops": 1, "max_bandwidth": "1MB/s"}
    default = Scenario.default().with_options(**unset)
    kinds = [
        tomllib.loads(default.with_options(cache=one).to_toml())
        for one in ("page", "dm-cache", "dm-writecache", "open-cas")
    ]
    for section, *keys in OPTIONS.values():
        assert all(section in shown for shown in kinds)
        assert all(any(key in shown[section] for shown in kinds) for key in keys)


# --- errors -------------------------------------------------------------------------------------

ALL_WRONG = """\
seed = "x"
[backing]
kind = "radi6"
membres = 3
window = 0
\t[backing.drive]
\tlike = "seagate-exos-x81"
\trmp = 7200
[cache]
page = "64uz"
mode = "writethrough"
drive = { kind = "ssd", capacity = "1TB", read_latncy = "80us" }
[replays]
"""

ALL_ERRORS = """\
11 problems in the scenario
site.toml:1:8: seed must be a whole number without quotes, not 'x'
  1 | seed = "x"
    |        ^
site.toml:3:8: kind cannot be 'radi6': did you mean 'raid6'?
  3 | kind = "radi6"
    |        ^
site.toml:4:1: unknown key 'membres': did you mean 'members'?
  4 | membres = 3
    | ^
site.toml:5:10: window must be at least 1, not 0
  5 | window = 0
    |          ^
site.toml:7:9: unknown drive 'seagate-exos-x81': did you mean 'seagate-exos-x18'?
  7 | \tlike = "seagate-exos-x81"
    | \t       ^
site.toml:8:2: unknown key 'rmp': did you mean 'rpm'?
  8 | \trmp = 7200
    | \t^
site.toml:10:8: unknown size unit 'uz': choose from B, k, m, g, t, KiB, MiB, GiB, \
TiB, PiB, kB, MB, GB, TB, PB
  10 | page = "64uz"
     |        ^
site.toml:11:8: mode cannot be 'writethrough': did you mean 'write-through'?
  11 | mode = "writethrough"
     |        ^
site.toml:12:1: missing: write_latency, random_read_iops, random_write_iops, sequential_read, \
sequential_write
  12 | drive = { kind = "ssd", capacity = "1TB", read_latncy = "80us" }
     | ^
site.toml:12:43: unknown key 'read_latncy': did you mean 'read_latency'?
  12 | drive = { kind = "ssd", capacity = "1TB", read_latncy = "80us" }
     |                                           ^
site.toml:13:2: unknown key 'replays': did you mean 'replay'?
  13 | [replays]
     |  ^"""


def test_all_errors_are_reported_in_one_pass():
    assert errors(ALL_WRONG) == ALL_ERRORS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 3 4", "site.toml:1:7: not TOML: expected newline or end of document"),
        ("[cache]\nsize = 64GB", 'words and numbers with units need quotes: size = "64GB"'),
        ("[price]\ndate = 2026-11", 'need quotes: date = "2026-11"'),
        ("[cache", "site.toml:1:7: not TOML: expected ']'"),
        ("cache = 3", "site.toml:1:9: cache must be a table, not 3"),
        ("backing = 3", "site.toml:1:11: backing must be a table, not 3"),
        ("[backing]\nmembers = 2", "site.toml:2:11: raid5 needs at least 3 members, not 2"),
        ('[backing]\nkind = "single"\nmembers = 2', 'site.toml:3:11: "single" has 1 member'),
        ("[backing]\nmembers = true", "members must be a whole number without quotes, not True"),
        ('[backing]\nscheduler = "fcfs"\nwindow = 3', "fcfs needs window = 1"),
        (
            '[backing]\nscheduler = "sptf"\ndrive = "samsung-980-pro-1tb"',
            "site.toml:2:13: only hard disks choose by the position of their heads: leave it out",
        ),
        (
            '[backing.drive]\nlike = "samsung-980-pro-1tb"\nkind = "hdd"',
            "site.toml:3:8: samsung-980-pro-1tb of the catalog is of kind 'ssd': leave out `kind`",
        ),
        ('[backing]\nchunk = "1000B"', "site.toml:2:9: a chunk must be a multiple of 512 bytes"),
        ('[backing]\ncapacity = "4k"', "a member must hold at least one chunk (64KiB)"),
        (
            '[backing]\nstroke = "short"\ncapacity = "9TB"',
            "site.toml:3:12: more than the drive holds (8TB)",
        ),
        ('[backing]\ncapacity = "disk"', "site.toml:2:12: 'disk' is not a size"),
        ("[backing]\ndrive = 3", "a drive must be a name of the catalog or a table, not 3"),
        ('[backing.drive]\nkind = "tape"', "site.toml:2:8: kind cannot be 'tape': one of"),
        (
            '[backing.drive]\nlike = "seagate-exos-x18"\nseek_average = "1ms"',
            "site.toml:3:16: no a",
        ),
        ('[backing.controller]\nlin = "4k"', "unknown key 'lin': did you mean 'line'?"),
        ('[backing.controller]\nline = "3k"', "a line must be a power of two"),
        ('[backing.controller]\nwindow = "1000B"', "a window must be a multiple of 512 bytes"),
        ('[backing.controller]\nread_memory = "1MiB"', "minimum is two windows (2MiB); 0 turns"),
        ('[backing.controller]\nwrite_memory = "1k"', "site.toml:2:16: less than one line (4KiB)"),
        ('[backing.controller]\nlow_water = "90%"', "low_water must be below high_water (80%)"),
        ('[backing.controller]\nhigh_water = "101%"', "'101%' is not a share: '0%' to '100%'"),
        (
            '[backing]\nchunk = "2k"\n[backing.controller]',
            "a chunk must be a multiple of the controller's line",
        ),
        ('[cache]\nsize = "4TB"', "site.toml:2:8: 4TB is more than the drive holds (1920GB)"),
        ('[cache]\nsize = "4TB"', "take a larger drive, or 3 (members = 3)"),
        ('[cache]\nsize = "4k"', 'less than one page (64KiB): for no cache use kind = "none"'),
        ('[cache]\nsize = "64"', "less than one page (64KiB): did you mean 64GiB?"),
        ('[cache]\nsize = "0%"', "'0%': a share must be above 0%"),
        ('[cache]\nadmission = "learnt"', "did you mean 'learned'?"),
        ("[replay]\nspeed = 0", "site.toml:2:9: speed must be at least 0.001"),
        ("[replay]\nspeed = inf", "speed must be"),
        ('[replay]\nspeed = "2x"', "speed must be a number without quotes, not '2x'"),
        ("[price]\ndate = '2026-11'\nhdd_per_gb = 1\ncurrency = 'USD'", "missing: ssd_per_gb"),
        ("[backing.drive]\nrpm = 7200", "missing: capacity"),
        ('[cache.drive]\nkind = "ssd"\nrpms = 7200', "unknown key 'rpms': choose from kind, like"),
        ('[cache.drive]\nkind = "ssd"\n[cache.drive.flash]\ndyes = 3', "'dyes': choose from gc"),
        ("[[cache]]\nsize = '1GB'", "cache must be a table"),
        ("seed = " + "9" * 5000, "not TOML"),
        ("seed = " + "[" * 5000, "nested too deep"),
        ("a." * 900 + "a = 1", "nested too deep"),
        ("[cache]\nadmission = []", "site.toml:2:13: no policy '[]'"),
        ('[cache]\nwrite_budget = "1e999999999 DWPD"', "is not a number of drive writes"),
        (
            '[backing.drive]\nlike = "samsung-pm883-960gb"\nflash.over_provisioning = 7',
            "site.toml:3:27: 7 is not a percentage: write for example '10%'",
        ),
        ('"a\\u001b[2J" = 1', r"unknown key 'a\x1b[2J'"),
        ("[cache]\nsize = '" + "a" * 9999 + "'", "a ...\n"),
    ],
)
def test_an_error_names_its_place_and_the_correction(text, message):
    assert message in errors(text)


def test_a_mistyped_required_key_is_one_error_not_two():
    text = errors("[price]\ndate = 'x'\nhdd_per_gb = 1\nsdd_per_gb = 1\ncurrency = 'USD'")
    assert text.startswith("site.toml:4:1: unknown key 'sdd_per_gb': did you mean 'ssd_per_gb'?")
    assert "missing" not in text


def test_an_unreadable_file_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ScenarioError, match=r"cannot read .*: No such file"):
        Scenario.load(tmp_path / "none.toml")
    with pytest.raises(ScenarioError, match=r"cannot read .*: Is a directory"):
        Scenario.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"a = '\xe4'")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        Scenario.load(tmp_path / "latin.toml")


def test_a_file_with_a_byte_order_mark_and_crlf_is_read():
    assert Scenario.loads("\ufeffseed = 3\r\n[cache]\r\nsize = '1GB'\r\n").seed == 3


def test_show_reproduces_a_fully_specified_drive():
    own = Scenario.default().backing.drive.model_copy(update={"like": ""})
    lines = [
        f"{key} = {value!r}"
        for key, value in own.model_dump(exclude_none=True, by_alias=True).items()
    ]
    text = "[backing.drive]\n" + "\n".join(lines).replace("False", "false")
    assert (
        Scenario.loads(Scenario.loads(text.replace("like = ''", "")).to_toml()).backing.drive == own
    )


# --- no text gives a traceback ------------------------------------------------------------------

MARKS = st.sampled_from([*"[]{}=.,#0\"'\n\t\\é", '"""', "-1", "1e9", "inf", "1979-05-27"])
WORDS = st.sampled_from(["true", "[[cache]]", "drive", "like", "kind", "cache.drive"])


@st.composite
def mutations(draw):
    text = draw(st.sampled_from([SITE, ALL_WRONG, Scenario.default().to_toml()]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 2, 10, 40])))
        text = text[:start] + draw(MARKS | WORDS | st.text(max_size=3)) + text[end:]
    return text


@settings(max_examples=100, deadline=None)
@given(mutations())
def test_a_mutated_scenario_is_read_or_refused_with_an_error(text):
    with suppress(ScenarioError):
        site = Scenario.loads(text, "site.toml")
        assert Scenario.loads(site.to_toml()) == site


# --- line and column ----------------------------------------------------------------------------


def leaves(value, path=()):
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, below in items:
            yield from leaves(below, (*path, key))


@settings(max_examples=100, deadline=None)
@given(mutations())
def test_every_key_of_a_valid_text_is_located(text):
    text = text.replace("\r\n", "\n")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    places = Places(text)
    assert all(path in places.keys for path in leaves(table) if path)


def test_keys_are_located_in_every_toml_notation():
    places = Places(
        "a.b . 'c d' = 1\n"
        'x = { y = [1, { z = """]\n}""" }], "q\\u00e9" = 2 } # [no]\n'
        "[[t]]\nk = 1979-05-27 07:32:00\n"
        "[[t]]\nk = [ # ]\n  'it''',\n  2,\n]\n[t.u]\nv = '''a'''\n".replace("'it'''", "'it'")
    )
    assert places.line_column(("a", "b", "c d")) == (1, 15)
    assert places.line_column(("a", "b", "c d"), "key") == (1, 7)
    assert places.line_column(("x", "y", 1, "z")) == (2, 21)
    assert places.line_column(("x", "qé"), "key") == (3, 10)
    assert places.line_column(("t", 0, "k")) == (5, 5)
    assert places.line_column(("t", 1, "k", 1)) == (9, 3)
    assert places.line_column(("t", 1, "u", "v")) == (12, 5)
    assert places.line_column(("t", 1, "u", "missing")) == (11, 4)
    assert places.line_column(("nothing",)) == (1, 1)


# --- the command --------------------------------------------------------------------------------


def test_the_commands_show_and_check_work(tmp_path):
    run = CliRunner().invoke
    shown = run(command, ["show"])
    assert shown.exit_code == 0
    file = tmp_path / "site.toml"
    file.write_text(shown.output, encoding="utf-8")
    checked = run(command, ["check", str(file)])
    assert checked.output == (
        f"{file}: ok (4 x HGST Ultrastar 7K8 HUS728T8TALE6L4, raid5; "
        "cache 10% write-through on Samsung PM9A3 1.92TB)\n"
    )
    for words in (["show"], ["check"]):
        assert "Examples:\n    hybridsim scenario" in run(command, [*words, "--help"]).output


def test_help_and_check_do_not_import_numpy():
    program = (
        "import sys; from hybridsim.cli.scenario import scenario; "
        "assert 'pydantic' not in sys.modules; "
        "from hybridsim.scenario import Scenario; Scenario.default(); "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("replacement", REPLACEMENT)
def test_the_policy_of_a_report_is_what_the_short_key_takes(replacement):
    for admission in ADMISSION:
        site = Scenario.default().with_options(admission=admission, replacement=replacement)
        short = Scenario.default().with_values({"cache.policy": site.cache.policy})
        assert (short.cache.admission, short.cache.replacement) == (admission, replacement)


def test_policy_names_are_those_of_the_registries():
    for name in ADMISSION:
        assert Scenario.default().with_options(admission=name).cache.admission == name
    for name in REPLACEMENT:
        assert Scenario.default().with_options(replacement=name).cache.replacement == name
    scenario = Scenario.loads(
        '[cache]\nadmission = "probabilistic"\nprobability = "2.5%"\nrequest_max = "8KiB"'
    )
    parameters = scenario.cache.policy_parameters
    assert parameters["probability_per_million"] == 25_000
    assert parameters["request_max_bytes"] == 8192
    assert "did you mean 'arc'?" in errors('[cache]\nreplacement = "arx"')
    assert "is not a probability" in errors('[cache]\nprobability = "0%"')


@pytest.mark.parametrize(("admission", "replacement"), [("larc", "arc"), ("tinylfu", "s3-fifo")])
def test_a_machine_is_built_with_the_specified_policies(admission, replacement):
    site = Scenario.default().with_options(admission=admission, replacement=replacement)
    cache = building.machine(site, "open", 1 << 30, 100).cache
    assert type(cache.admission) is ADMISSION[admission]
    assert type(cache.replacement) is REPLACEMENT[replacement]


def test_the_command_line_accepts_every_kind_of_cache():
    option = next(one for one in replay.params if one.name == "cache")
    assert sorted(option.type.choices) == sorted(CACHE_KINDS)
