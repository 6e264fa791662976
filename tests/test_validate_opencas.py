"""Open CAS in `validate`: its programs, its caches as casadm lists them, and its samples."""

import pytest
from fake_blocks import Blocks

from validate import devices, journal, opencas, planning, site
from validate import experiment as experiments
from validate.collecting import Subject, of
from validate.errors import ExperimentError, MissingError, RunError
from validate.planning import Place
from validate.steps import Scene, as_object, from_object
from validate.steps.opencas import StartOpenCas
from validate.system import System

MIB = 1 << 20
LISTED = """\
type,id,disk,status,write policy,device
core pool,-,-,-,-,-
core,-,/dev/disk/by-id/wwn-0,Detached,-,-
cache,1,/dev/disk/by-id/theirs,Running,wt,-
core,1,/dev/disk/by-id/wwn-1,Active,-,/dev/cas1-1
core,4,/dev/disk/by-id/wwn-2,Active,-,/dev/cas1-4
cache,7,/dev/disk/by-id/ours,Running,wb,-
core,1,/dev/disk/by-id/wwn-3,Active,-,/dev/cas7-1
"""


class Answers(System):
    """A machine whose programs print what the test says."""

    def __init__(self, tmp_path, *answers):
        super().__init__(sys=tmp_path / "sys", proc=tmp_path / "proc", dev=tmp_path / "dev")
        self.answers, self.asked = list(answers), []

    def run(self, words, **more):
        self.asked.append(" ".join(words))
        answer = self.answers.pop(0) if self.answers else ""
        if isinstance(answer, Exception):
            raise answer
        return answer


def loaded(system):
    (system.sys / "module/cas_cache").mkdir(parents=True)
    return system


class TestPrograms:
    def build(self, folder, *names):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")
        return str(folder)

    def test_are_in_a_folder_or_where_they_were_built(self, tmp_path):
        flat = self.build(tmp_path / "a", "casadm", "cas_bd.ko", "cas_cache.ko")
        tree = self.build(
            tmp_path / "b", "casadm/casadm", "modules/cas_disk/cas_disk.ko",
            "modules/cas_cache/cas_cache.ko",
        )  # fmt: skip
        assert opencas.program(flat) == f"{flat}/casadm"
        assert opencas.program(tree) == f"{tree}/casadm/casadm"
        assert [path.name for path in opencas.modules(flat)] == ["cas_bd.ko", "cas_cache.ko"]
        assert [path.name for path in opencas.modules(tree)] == ["cas_disk.ko", "cas_cache.ko"]
        assert opencas.program("") == "casadm"

    def test_that_are_incomplete_are_refused(self, tmp_path):
        place = self.build(tmp_path / "a", "cas_cache.ko")
        with pytest.raises(MissingError, match="has no casadm"):
            opencas.program(place)
        with pytest.raises(MissingError, match=r"cas_bd\.ko or cas_disk\.ko, and cas_cache\.ko"):
            opencas.modules(place)

    def test_modules_are_loaded_in_order_and_only_once(self, tmp_path):
        place = self.build(tmp_path / "a", "casadm", "cas_bd.ko", "cas_cache.ko")
        system = Answers(tmp_path)
        opencas.load(place, system)
        assert system.asked == [f"insmod {place}/cas_bd.ko", f"insmod {place}/cas_cache.ko"]
        opencas.load(place, loaded(Answers(tmp_path)))
        again = Answers(tmp_path)
        opencas.load("", again)
        assert again.asked == []

    def test_modules_of_another_kernel_are_refused(self, tmp_path):
        place = self.build(tmp_path / "a", "casadm", "cas_bd.ko", "cas_cache.ko")
        system = Answers(tmp_path, RunError("Invalid module format"))
        with pytest.raises(MissingError, match="was it built for this kernel"):
            opencas.load(place, system)

    def test_a_kernel_without_the_modules_is_refused(self, tmp_path):
        system = Answers(tmp_path, RunError("not found"))
        with pytest.raises(MissingError, match="--open-cas DIR"):
            opencas.load("", system)


class TestCaches:
    def test_each_exported_object_is_of_the_cache_above_it(self, tmp_path):
        system = loaded(Answers(tmp_path, LISTED, LISTED))
        cores = opencas.cores("casadm", system)
        assert [(each.cache_id, each.core_id, each.exported) for each in cores] == [
            (1, 1, "/dev/cas1-1"), (1, 4, "/dev/cas1-4"), (7, 1, "/dev/cas7-1"),
        ]  # fmt: skip
        assert opencas.cache_id("casadm", "/dev/disk/by-id/ours", system) == 7

    @pytest.mark.parametrize("text", ["No caches running\n", ""])
    def test_none_is_running(self, tmp_path, text):
        assert opencas.cores("casadm", loaded(Answers(tmp_path, text))) == []

    def test_without_the_module_casadm_is_not_asked(self, tmp_path):
        system = Answers(tmp_path)
        assert opencas.cache_id("casadm", "/dev/disk/by-id/ours", system) is None
        assert system.asked == []

    def test_only_the_cache_that_was_started_by_our_link_is_stopped(self, tmp_path):
        data = tmp_path / "dev/disk/by-id/hsval-1-cas-data"
        mine = LISTED.replace("/dev/disk/by-id/ours", str(data))
        step = StartOpenCas("hsval-1-cas", "", "wt", 4096, (), "cached")
        system = loaded(Answers(tmp_path, mine, mine))
        step.undo(system)
        assert system.asked[2:] == ["casadm --stop-cache --cache-id 7 --no-data-flush"]
        others = Answers(tmp_path, LISTED)
        step.undo(others)
        assert [words.split()[1] for words in others.asked] == ["--list-caches"]

    def test_settings_are_those_that_casadm_shows(self):
        shown = "Write Policy              wb\nCleaning Policy    acp\nCache line size   8 [KiB]\n"
        assert opencas.main_settings(shown) == ("wb", 8192, "acp")
        with pytest.raises(RunError, match="cleaning policy"):
            opencas.main_settings(shown.replace("Cleaning", "Promotion"))


class TestSamples:
    def subject(self, system):
        words = opencas.statistics("casadm", opencas.CachedOrigin(1, 2, "", "", "/dev/cas1-2"))
        return Subject(system, "open-cas", {}, statistics=words)

    def test_header_and_line_are_those_of_casadm(self, tmp_path):
        text = "Occupancy [4KiB Blocks],Dirty [4KiB Blocks]\n17,4\n"
        system = Answers(tmp_path, text, text)
        samples = next(each for each in of(self.subject(system)) if each.file == "cas-stats.csv")
        assert samples.header() == "Uptime,Occupancy [4KiB Blocks],Dirty [4KiB Blocks]"
        assert (samples.separator, samples.sample()) == (",", ["17,4"])
        assert system.asked[0] == "casadm --stats --cache-id 1 --core-id 2 --output-format csv"

    def test_output_without_a_row_is_refused(self, tmp_path):
        system = Answers(tmp_path, "Cache Id 1 does not exist\n")
        samples = next(each for each in of(self.subject(system)) if each.file == "cas-stats.csv")
        with pytest.raises(RunError, match="a header and one row"):
            samples.sample()


class TestKeys:
    def parsed(self, keys):
        text = f"""
name = "t"
[cache]
kind = "open-cas"
{keys}
[load]
duration = "9s"
job = '''
[a]
rw=randread
'''
"""
        return experiments.parse(text).cache

    def test_are_options_of_casadm(self):
        cache = self.parsed(
            'mode = "wb"\nsize = "64MiB"\nline = "16KiB"\npromotion = "nhit"\n'
            "insertion_threshold = 4\ntrigger_threshold_percent = 10\n"
            'sequential_cutoff = "2MiB"\nsequential_cutoff_policy = "always"\n'
            'cleaning = "alru"\nwake_up = "2s"\nstaleness_time = "1m"\nactivity_threshold = "5ms"'
        )
        assert (cache.mode, cache.block_bytes) == ("wb", 16384)
        assert planning.open_cas_parameters(cache) == (
            "promotion --policy nhit",
            "promotion-nhit --threshold 4 --trigger 10",
            "cleaning --policy alru",
            "cleaning-alru --wake-up 2 --staleness-time 60 --activity-threshold 5",
            "seq-cutoff --threshold 2048 --policy always",
        )

    def test_that_are_missing_leave_casadms_defaults(self):
        assert planning.open_cas_parameters(self.parsed('size = "64MiB"')) == ()

    def test_acp_counts_in_milliseconds(self):
        cache = self.parsed('cleaning = "acp"\nwake_up = "30ms"\nflush_max_buffers = 7')
        assert planning.open_cas_parameters(cache) == (
            "cleaning --policy acp", "cleaning-acp --wake-up 30 --flush-max-buffers 7",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("keys", "words"),
        [('line = "2KiB"', "line: Open CAS has lines of 4KiB"),
         ('size = "32MiB"', "size: write 48MiB or more"),
         ('wake_up = "10ms"', "wake_up: is not a multiple of 1s"),
         ('cleaning = "acp"\nstaleness_time = "9s"', "staleness_time: is of alru"),
         ('cleaning = "nop"\nflush_max_buffers = 1', "cleaning: nop has neither"),
         ('mode = "writeback"', "mode: 'writeback' is unknown"),
         ("insertion_threshold = 1", "insertion_threshold: 1 is not from 2 to 1000")],
    )  # fmt: skip
    def test_that_casadm_refuses_are_problems(self, keys, words):
        with pytest.raises(ExperimentError) as raised:
            self.parsed(keys)
        assert words in str(raised.value)

    def test_programs_are_beside_the_experiment_or_named_by_the_command(self, tmp_path):
        text = TEXT.replace('size = "48MiB"', 'size = "48MiB"\nprograms = "cas"')
        what = experiments.parse(text, "t.toml", tmp_path)
        assert what.cache.programs == str(tmp_path / "cas")
        other = experiments.with_programs(what, tmp_path / "other")
        assert other.cache.programs == str(tmp_path / "other")
        assert experiments.with_programs(what, None) == what


# A run on a machine simulated with files.

TEXT = """
name = "t"
[cache]
kind = "open-cas"
size = "48MiB"
[load]
duration = "1s"
job = '''
[a]
rw=randwrite
'''
"""


@pytest.fixture
def machine(tmp_path):
    made = Blocks.make(tmp_path / "machine")
    made.add("sda", "8:0", 64 * MIB, "naa.1")
    made.add("sdb", "8:16", 48 * MIB, "naa.2")
    return made


def plan_of(machine, identity):
    """Return the plan of a run on both disks, which are claimed as by `request.check`."""
    chosen = [devices.find(str(machine.dev / name), machine) for name in ("sda", "sdb")]
    places = [Place(each.path, each.size_bytes, each.identity(machine)) for each in chosen]
    return planning.plan(experiments.parse(TEXT), places[:1], places[1], identity)


def test_each_step_is_the_same_from_the_journal(machine):
    for step in plan_of(machine, "0" * 12).steps:
        assert from_object(as_object(step)) == step


def test_caches_of_others_stay_while_ours_is_built_and_removed(machine):
    theirs = machine.dev / "disk/by-id/theirs"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to(machine.add("sdc", "8:32", MIB))
    machine.run(["casadm", "--start-cache", "--cache-device", str(theirs)])
    with site.site(machine) as here:
        for step in plan_of(machine, here.scene.facts["id"]).steps:
            here.do(step)
        cores = opencas.cores("casadm", machine)
        assert [each.cache_id for each in cores] == [2]
        assert here.scene.roles["cached"] == "252:2"
        assert len(list(theirs.parent.iterdir())) == 3
    assert opencas.cores("casadm", machine) == []
    assert opencas.cache_id("casadm", str(theirs), machine) == 1
    assert list(theirs.parent.iterdir()) == [theirs]


def test_a_cache_of_a_killed_run_is_stopped_by_another_process(machine):
    steps = plan_of(machine, "0" * 12).steps
    scene = Scene(machine, facts={"id": "0" * 12})
    one = journal.Journal.begin("0" * 12, machine)
    for number, step in enumerate(steps):
        one.write({"doing": as_object(step), "number": number})
        step.do(scene)
    one.close()
    devices.release_claim(machine)
    again = Blocks(sys=machine.sys, proc=machine.proc, state=machine.state, uid=0,
                   dev=machine.dev, root=machine.root)  # fmt: skip
    site.clean(again)
    assert opencas.cores("casadm", again) == []
    assert not list((again.dev / "disk/by-id").iterdir())
    assert not (again.dev / "cas1-1").exists()


def test_a_restart_loads_the_cache_instead_of_making_it(machine):
    asked, run = [], machine.run
    machine.run = lambda words, **more: asked.append(words) or run(words, **more)
    with site.site(machine) as here:
        steps = plan_of(machine, here.scene.facts["id"])
        for step in steps.steps:
            here.do(step)
        here.undo(steps.cache[-1])
        assert opencas.cores("casadm", machine) == []
        here.do(steps.cache[-1])
        assert len(opencas.cores("casadm", machine)) == 1
    started = [words for words in asked if words[1] == "--start-cache"]
    assert [words[-1] == "--load" for words in started] == [False, True]
    assert ["--cache-mode" in words for words in started] == [True, False]
