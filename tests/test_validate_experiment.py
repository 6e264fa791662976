"""Experiments of `validate`: parsing, problems, fio jobs and plans."""

import pytest

from validate import experiment, jobfile, planning, sizes
from validate.errors import ExperimentError
from validate.planning import Place

TEXT = """
name = "hot"
[cache]
kind = "dm-cache"
size = "512MiB"
[origin]
size = "8GiB"
[load]
duration = "150s"
job = '''
[hot]
rw=randread
random_distribution=zoned:80/3:20/97
'''
"""
DEVICE = {"number": "8:0", "name": "sda", "size": "1", "boot": "b", "sequence": "", "hardware": ""}
GIB = 1 << 30


def problems(text):
    with pytest.raises(ExperimentError) as raised:
        experiment.parse(text, "e.toml")
    return str(raised.value)


def changed(**lines):
    """Return TEXT with the lines of some keys replaced."""
    text = TEXT
    for key, new in lines.items():
        old = next(line for line in text.splitlines() if line.startswith(f"{key} ="))
        text = text.replace(old, new)
    return text


PAGE = TEXT.replace('"dm-cache"', '"page"\npolicy = "larc+arc"\nmax_fills = 4')


class TestPageCache:
    def test_keys_are_those_of_the_page_cache(self):
        cache = experiment.parse(PAGE).cache
        assert (cache.policy, cache.mode, cache.block_bytes) == ("larc+arc", "write-through", 65536)
        assert cache.settings == (("max_fills", "4"),)
        assert experiment.parse(PAGE).fast_bytes == 513 << 20

    @pytest.mark.parametrize(("more", "why"), [
        ("[restart]\nduration = '60s'", "starts empty"), ("[collect]\ntrace = true", "trace"),
    ])  # fmt: skip
    def test_what_a_served_cache_does_not_have_is_a_problem(self, more, why):
        assert why in problems(PAGE + more)

    def test_sizes_are_needed_and_whole_pages(self):
        assert "size" in problems(PAGE.replace('size = "8GiB"', ""))
        assert "not a multiple of the page" in problems(PAGE.replace("512MiB", "32800KiB"))

    def test_wrong_keys_are_problems(self):
        assert "unknown key" in problems(PAGE.replace("max_fills", "fill_max"))
        assert "neither a text nor a number" in problems(PAGE.replace("= 4", "= [4]"))

    def test_build_names_what_serves_it(self):
        with pytest.raises(ExperimentError, match="hybridsim serve"):
            planning.plan(experiment.parse(PAGE), [Place("/dev/sda")], None, "0")


class TestParsing:
    def test_units_and_defaults_of_an_experiment(self):
        parsed = experiment.parse(TEXT)
        assert parsed.cache.size_bytes == 512 << 20
        assert parsed.cache.block_bytes == 256 << 10
        assert parsed.cache.mode == "writethrough"
        assert parsed.load.duration_s == 150
        assert parsed.fast_bytes == (512 + 8) << 20

    @pytest.mark.parametrize(
        ("text", "value"),
        [("4k", 4096), ("1MiB", 1 << 20), ("1MB", 10**6), ("1.5g", 3 << 29), (7, 7)],
    )
    def test_size_of_valid_text(self, text, value):
        assert sizes.size_of(text) == value

    @pytest.mark.parametrize("text", ["", "4x", "-1", "1.1B", "k", None, True, "4 K B"])
    def test_size_of_invalid_text_raises(self, text):
        with pytest.raises(ValueError, match=r"not a size|not a whole number"):
            sizes.size_of(text)

    def test_bcache_settings_by_sysfs_path(self):
        parsed = experiment.parse(
            changed(kind='kind = "bcache"\nsequential_cutoff = 0\ncongested_read_threshold = "2ms"')
        )
        of_device, of_set = planning.bcache_settings(parsed.cache)
        assert of_device == {"cache_mode": "writethrough", "sequential_cutoff": "0"}
        assert of_set["congested_read_threshold_us"] == "2000"

    def test_options_of_a_writecache_are_arguments_of_its_table(self):
        text = changed(
            kind='kind = "dm-writecache"\nhigh_watermark_percent = 60\nautocommit_ms = 500'
        )
        parsed = experiment.parse(text).cache
        assert (parsed.mode, parsed.block_bytes) == ("writeback", 4096)
        assert planning.writecache_options(parsed) == (
            "high_watermark", "60", "autocommit_time", "500",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("key", "words"),
        [("high_watermark_percent = 40", "(45) is above the high one (40)"),
         ("low_watermark_percent = 51", "(51) is above the high one (50)")],
    )  # fmt: skip
    def test_watermarks_of_a_writecache_are_in_order(self, key, words):
        text = changed(kind=f'kind = "dm-writecache"\n{key}')
        assert f"[cache] {key.split()[0]}: the low watermark {words}" in problems(text)

    def test_blocks_of_a_writecache_fit_into_a_page(self):
        assert "[cache] block: dm-writecache has blocks" in problems(
            changed(kind='kind = "dm-writecache"\nblock = "8KiB"')
        )

    @pytest.mark.parametrize(
        ("text", "target_us"), [("auto", None), ("off", 0), ("75ms", 75_000), ("2500us", 2500)]
    )
    def test_throttle_of_the_slow_devices(self, text, target_us):
        parsed = experiment.parse(changed(size='size = "512MiB"').replace(
            "[origin]", f'[origin]\nwriteback_throttle = "{text}"'))  # fmt: skip
        assert parsed.origin.throttle_us == target_us

    def test_throttle_that_is_no_time_is_a_problem(self):
        text = TEXT.replace("[origin]", '[origin]\nwriteback_throttle = "none"')
        assert "[origin] writeback_throttle: 'none' is none of auto, off" in problems(text)

    def test_job_file_is_read_relative_to_the_experiment(self, tmp_path):
        (tmp_path / "hot.fio").write_text("[a]\nrw=randwrite\n")
        text = TEXT.partition("job =")[0] + 'file = "hot.fio"\n'
        assert experiment.parse(text, "e.toml", tmp_path).load.job.writes


class TestProblems:
    def test_all_problems_are_reported_at_once_with_their_lines(self):
        text = changed(size='siez = "512MiB"', duration='duration = "soon"', kind='kind = "bcash"')
        lines = problems(text).splitlines()
        assert any(line.startswith("e.toml:4: [cache] kind: 'bcash'") for line in lines)
        assert any("did you mean size?" in line for line in lines)
        assert any("e.toml:9: [load] duration: 'soon' is not a time" in line for line in lines)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"name": 'name = "../x"'}, "letters, digits"),
            ({"name": ""}, "is required"),
            ({"size": 'size = "512.1MiB"'}, "whole number"),
            ({"kind": 'kind = "dm-cache"\nmode = "writearound"'}, "writethrough, writeback"),
            ({"kind": 'kind = "dm-cache"\nblock = "4KiB"'}, "32 KiB"),
            ({"kind": 'kind = "bcache"\nbucket = "1MiB"'}, "bcache needs 513"),
            ({"kind": 'kind = "bcache"\nbucket = "768KiB"'}, "not a power of two"),
            ({"duration": 'duration = "150s"\nfile = "x"'}, "specify one fio job"),
            ({"duration": "duration = 150"}, "write for example '150s'"),
        ],
    )
    def test_message_names_problem_and_remedy(self, change, words):
        assert words in problems(changed(**change))

    def test_invalid_toml(self):
        assert "not TOML" in problems("name = ")

    def test_missing_file(self, tmp_path):
        with pytest.raises(ExperimentError, match="cannot read"):
            experiment.load(tmp_path / "none.toml")


class TestJobsOfFio:
    """fio runs as root: it must not run programs, name files, or expand anything with a shell."""

    @pytest.mark.parametrize(
        "line",
        [
            "filename=/dev/sda", "directory=/etc", "exec_prerun=rm -rf /", "exec_postrun=x",
            "ioengine=external:/tmp/x.so", "write_bw_log=/etc/passwd", "bs=$(id)", "bs=`id`",
            "bs=${HOME}", "read_iolog=x", "include other.fio", "bs=4k;id", "mem=mmap:/dev/sda",
            "replay_redirect=/dev/sda", "runtime=9", "verify_state_save=1", "unlink=1",
        ],
    )  # fmt: skip
    def test_unsafe_options_are_refused(self, line):
        with pytest.raises(ExperimentError, match="line 2"):
            jobfile.parse(f"[a]\n{line}\n", "a.fio")

    @pytest.mark.parametrize(
        ("rw", "writes"),
        [("read", 0), ("randread:8", 0), ("randwrite", 1), ("randrw", 1), ("rw", 1), ("trim", 1),
         ("readwrite", 1), ("randtrim", 1), ("trimwrite", 1)],
    )  # fmt: skip
    def test_writes_is_detected_from_rw(self, rw, writes):
        job = jobfile.parse(f"; a comment\n[global]\nbs=4k\n[a]\nrw={rw}\n", "a.fio")
        assert job.writes == bool(writes)

    def test_settings_precede_the_jobs(self):
        text = jobfile.parse("[a]\nrw=read\nnorandommap\n", "a.fio").rendered(
            {"filename": "/dev/x"}
        )
        assert text == "[global]\nfilename=/dev/x\n\n[a]\nrw=read\nnorandommap\n"

    def test_file_without_a_job_is_refused(self):
        with pytest.raises(ExperimentError, match="no job"):
            jobfile.parse("[global]\nbs=4k\n", "a.fio")


class TestPlans:
    def steps(self, text, slow, fast):
        plan = planning.plan(experiment.parse(text), slow, fast, "0" * 12)
        return [type(step).__name__ for step in plan.steps]

    def test_plan_of_two_devices(self):
        slow, fast = Place("/dev/a", 16 * GIB, DEVICE), Place("/dev/b", GIB, DEVICE)
        assert self.steps(TEXT, [slow], fast) == [
            "Occupy", "MapLinear", "Occupy", "MapLinear", "MapLinear", "MapCache",
        ]  # fmt: skip

    def test_plan_of_a_writecache_maps_the_device_that_it_formats(self):
        text = changed(kind='kind = "dm-writecache"')
        slow, fast = Place("/dev/a", 16 * GIB, DEVICE), Place("/dev/b", 512 << 20, DEVICE)
        assert self.steps(text, [slow], fast) == [
            "Occupy", "MapLinear", "Occupy", "MapLinear", "MapWritecache",
        ]  # fmt: skip

    def test_plan_of_an_open_cas_that_has_the_whole_device_zeroes_its_ends(self):
        text = changed(kind='kind = "open-cas"')
        slow = Place("/dev/a", 16 * GIB, DEVICE)
        whole, larger = (Place("/dev/b", size, DEVICE) for size in (512 << 20, GIB))
        below = ["Occupy", "MapLinear", "Occupy", "MapLinear"]
        assert self.steps(text, [slow], whole) == [
            *below, "ZeroPart", "LinkDevices", "StartOpenCas",
        ]  # fmt: skip
        assert self.steps(text, [slow], larger) == [*below, "LinkDevices", "StartOpenCas"]

    def test_plan_of_files_and_a_raid(self):
        text = changed(kind='kind = "bcache"').replace("[origin]", "[origin]\nraid = 5")
        files = [Place(f"/x/{name}") for name in "abc"]
        names = self.steps(text, files, Place("/x/f"))
        assert names == [
            *["CreateFile", "AttachLoop"] * 3, "MakeRaid", "MapLinear", "CreateFile", "AttachLoop",
            "FormatBcache", "StartBcache",
        ]  # fmt: skip

    def test_size_of_raid_members(self):
        parsed = experiment.parse(TEXT.replace("[origin]", "[origin]\nraid = 6"))
        share = planning.slow_bytes(parsed, 6) - planning.RAID_ROOM
        assert 2 * GIB <= share <= 2 * GIB + (1 << 20)

    @pytest.mark.parametrize(
        ("more", "slow", "fast", "words"),
        [
            ("", 2, True, "name one"),
            ("\nraid = 5", 2, True, "needs 3"),
            ("", 1, False, "needs a fast device"),
        ],
    )
    def test_wrong_number_of_devices_is_refused(self, more, slow, fast, words):
        parsed = experiment.parse(TEXT.replace("[origin]", f"[origin]{more}"))
        with pytest.raises(ExperimentError, match=words):
            planning.check_number(parsed, slow, fast)
