"""Safety of `validate` that can be tested without root, on a machine simulated with files.

The tests that need root and a kernel are in guest_validate.py; test_validate_situations.py runs it.
"""

import ast
import errno
import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from validate import cli, guards, journal, signatures, site, tracepoints
from validate.attached import bcache_size
from validate.devices import Device, of_number
from validate.errors import (
    InterruptedRunError,
    MissingError,
    NotOursError,
    RunError,
    UnsafeError,
)
from validate.steps import STEPS, as_object, from_object
from validate.steps.ends import Occupy
from validate.steps.files import TRAILER, CreateFile
from validate.system import System

ROOT = Path(__file__).parents[1]
OWN = [
    path for path in sorted((ROOT / "validate").rglob("*.py"))
    if not {"lab", "twin", "report"} & set(path.relative_to(ROOT / "validate").parts)
]  # fmt: skip
MIB = 1 << 20


class TestTheCode:
    def test_needs_the_standard_library_only(self):
        """It runs in a guest that has nothing else."""
        allowed = sys.stdlib_module_names | {"validate"}
        for path in OWN:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    assert name.split(".")[0] in allowed, f"{path.name}: {name}"

    def test_never_runs_a_shell(self):
        for path in sorted((ROOT / "validate").rglob("*.py")):
            text = path.read_text()
            assert "shell=True" not in text, path
            for word in ("os.system", "os.popen", "getoutput", "create_subprocess_shell"):
                assert word not in text, path

    def test_help_has_examples(self):
        for command in ("build", "attach", "clean"):
            done = subprocess.run(
                [sys.executable, "-m", "validate", command, "--help"],
                capture_output=True, text=True, cwd=ROOT, check=True,
            )  # fmt: skip
            assert "xample" in done.stdout


# Signatures on a device.

PLACES = {
    "GPT": (512, b"EFI PART"),
    "ext2/3/4": (1080, b"\x53\xef"),
    "XFS": (0, b"XFSB"),
    "Btrfs": (65600, b"_BHRfS_M"),
    "LVM": (512, b"LABELONE"),
    "md RAID": (4096, b"\xfc\x4e\x2b\xa9"),
    "bcache": (4120, signatures.BCACHE),
    "LUKS": (0, b"LUKS\xba\xbe"),
    "swap": (4086, b"SWAPSPACE2"),
    "ZFS": (256 * 1024 + 128 * 1024 + 5 * 1024, (0x00BAB10C).to_bytes(8, "little")),
    "DOS partition table": (510, b"\x55\xaa"),
    "dm-cache": (32, (0o6142003).to_bytes(8, "little")),
    "an Open CAS cache": (4, (0x187E1CA6).to_bytes(4, "little")),
    "NTFS": (3, b"NTFS    "),
    "data at its beginning": (700_000, b"x"),
    "data at its end": (8 * MIB - 5, b"x"),
    "Intel RAID": (8 * MIB - 1024, b"Intel Raid ISM Cfg Sig. "),
}


def reader(size, *pieces):
    image = bytearray(size)
    for at, data in pieces:
        image[at : at + len(data)] = data
    return lambda offset, length: bytes(image[offset : offset + length])


@pytest.mark.parametrize("name", PLACES)
def test_content_of_a_device_is_recognised(name):
    assert any(name in each for each in signatures.contents(reader(8 * MIB, PLACES[name]), 8 * MIB))


@pytest.mark.parametrize("of", [64 * 1024, 8192])
def test_md_superblock_at_the_end_is_recognised(of):
    size = 8 * MIB + 3 * 4096
    at = size // 65536 * 65536 - 65536 if of == 65536 else (size // 512 - 16) // 8 * 8 * 512
    assert signatures.contents(reader(size, (at, signatures.MD)), size) == [
        "a member of an md RAID"
    ]


@pytest.mark.parametrize("size", [4096, MIB, 8 * MIB])
def test_zeros_count_as_empty(size):
    assert signatures.contents(reader(size), size) == []


# A machine simulated with files.


class Machine(System):
    """Device nodes are files that hold MAJOR:MINOR."""

    def number_of(self, path):
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError):
            return None
        return text if text.replace(":", "").isdigit() and ":" in text else None

    def block(self, number):
        return (self.sys / "dev/block" / number).resolve()


@pytest.fixture
def machine(tmp_path):
    """A machine with a disk sda with two partitions, and an unused disk sdb."""
    made = Machine(sys=tmp_path / "sys", proc=tmp_path / "proc", state=tmp_path / "state", uid=0)
    (made.proc / "self").mkdir(parents=True)
    (made.proc / "77/fd").mkdir(parents=True)
    (made.proc / "77/comm").write_text("vi\n")
    (made.proc / "swaps").write_text("Filename Type Size\n")
    (made.proc / "self/mountinfo").write_text("22 1 0:5 / /sys rw - sysfs none rw\n")
    (tmp_path / "dev").mkdir()
    disk(made, "sda", "8:0")
    disk(made, "sda1", "8:1", "sda")
    disk(made, "sda2", "8:2", "sda")
    disk(made, "sdb", "8:16")
    return made


def disk(machine, name, number, parent=""):
    folder = machine.sys / "devices" / parent / name
    for each in ("holders", "slaves"):
        (folder / each).mkdir(parents=True)
    (folder / "dev").write_text(number + "\n")
    (folder / "size").write_text(str(16 * MIB // 512))
    (folder / "ro").write_text("0\n")
    if parent:
        (folder / "partition").write_text("1\n")
    for place, key in (("dev/block", number), ("class/block", name)):
        (machine.sys / place).mkdir(parents=True, exist_ok=True)
        (machine.sys / place / key).symlink_to(folder)
    (machine.sys.parent / "dev" / name).write_text(number)


def device(machine, number):
    return of_number(number, machine)


def mounted(machine, number, place, source="/dev/x"):
    with (machine.proc / "self/mountinfo").open("a") as stream:
        stream.write(f"30 1 {number} / {place} rw shared:1 - ext4 {source} rw\n")


class TestADeviceIsRefused:
    def test_unused_device_is_accepted(self, machine):
        guards.check(device(machine, "8:16"), machine)

    def test_mounted_device(self, machine):
        mounted(machine, "8:16", "/srv/my\\040data")
        with pytest.raises(UnsafeError, match="is mounted at /srv/my data: umount"):
            guards.check(device(machine, "8:16"), machine)

    def test_mounted_file_system_with_its_own_device_number(self, machine):
        """Btrfs has such numbers: the source in mountinfo names the device."""
        mounted(machine, "0:44", "/srv", str(machine.sys.parent / "dev/sdb"))
        with pytest.raises(UnsafeError, match="is mounted at /srv"):
            guards.check(device(machine, "8:16"), machine)

    def test_disk_with_a_mounted_partition(self, machine):
        mounted(machine, "8:2", "/home")
        with pytest.raises(UnsafeError, match=r"is mounted at /home \(sda2\)"):
            guards.check(device(machine, "8:0"), machine)

    def test_partition_beside_the_root_file_system(self, machine):
        mounted(machine, "8:2", "/")
        with pytest.raises(UnsafeError, match="is a partition of sda, which holds the running"):
            guards.check(device(machine, "8:1"), machine)

    def test_indirect_holder_is_mounted(self, machine):
        disk(machine, "md0", "9:0")
        disk(machine, "dm-0", "253:0")
        (machine.sys / "devices/sdb/holders/md0").symlink_to(machine.sys / "devices/md0")
        (machine.sys / "devices/md0/holders/dm-0").symlink_to(machine.sys / "devices/dm-0")
        mounted(machine, "253:0", "/srv")
        with pytest.raises(UnsafeError, match=r"(?s)\(dm-0\).*in use by dm-0, md0"):
            guards.check(device(machine, "8:16"), machine)

    def test_active_swap(self, machine):
        path = machine.sys.parent / "dev/sda2"
        (machine.proc / "swaps").write_text(f"Filename Type\n{path} partition 1 0 -2\n")
        with pytest.raises(UnsafeError, match="swapoff"):
            guards.check(device(machine, "8:2"), machine)

    def test_open_in_another_process(self, machine):
        (machine.proc / "77/fd/3").symlink_to(machine.sys.parent / "dev/sdb")
        with pytest.raises(UnsafeError, match=r"is open in vi \(77\)"):
            guards.check(device(machine, "8:16"), machine)

    def test_read_only_device(self, machine):
        (machine.sys / "devices/sdb/ro").write_text("1\n")
        with pytest.raises(UnsafeError, match="--setrw"):
            guards.check(device(machine, "8:16"), machine)

    def test_disk_with_partitions(self, machine):
        with pytest.raises(UnsafeError, match="has the partitions sda1, sda2"):
            guards.check(device(machine, "8:0"), machine)

    def test_all_reasons_are_reported(self, machine):
        mounted(machine, "8:1", "/home")
        with pytest.raises(UnsafeError) as raised:
            guards.check(device(machine, "8:0"), machine)
        assert len(str(raised.value).splitlines()) == 2

    def test_same_device_by_two_names(self, machine):
        one = device(machine, "8:16")
        with pytest.raises(UnsafeError, match="are the same device"):
            guards.all_different([one, one])
        with pytest.raises(UnsafeError, match="a part of the other"):
            guards.all_different([device(machine, "8:1"), device(machine, "8:0")])

    def test_erase_must_name_all_devices_and_no_others(self, machine):
        one, names = device(machine, "8:16"), machine.sys.parent / "dev"
        guards.named_twice([one], [str(names / "sdb")], machine)
        with pytest.raises(UnsafeError, match="--erase /dev/sdb"):
            guards.named_twice([one], [], machine)
        with pytest.raises(UnsafeError, match="not among"):
            guards.named_twice([one], [str(names / "sdb"), str(names / "sda")], machine)

    def test_device_that_is_gone(self, machine):
        with pytest.raises(UnsafeError, match="is it gone"):
            device(machine, "8:48")


# Steps.


@dataclass(frozen=True)
class Note:
    """Append +name to a file on `do`, and -name on `undo`."""

    path: str
    name: str
    fails: bool = False
    stays: bool = False

    def describe(self):
        return f"note {self.name}"

    def do(self, scene):
        with Path(self.path).open("a") as stream:
            stream.write(f"+{self.name} ")
        if self.fails:
            raise RunError("it fails")

    def undo(self, system):
        with Path(self.path).open("a") as stream:
            stream.write(f"-{self.name} ")
        if self.stays:
            raise RunError("it stays")


@dataclass
class Bench:
    """A machine to execute steps on, and the log of the steps."""

    system: System
    path: Path = field(default_factory=Path)

    def do(self, *steps):
        """Execute steps in one run; call arguments that are functions."""
        with site.site(self.system) as here:
            for step in steps:
                step() if callable(step) else here.do(step)

    def note(self, name, **more):
        return Note(str(self.path), name, **more)

    @property
    def log(self):
        return self.path.read_text().split()


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setitem(STEPS, "Note", __name__)
    return Bench(System(state=tmp_path / "state", uid=0), tmp_path / "log")


class TestSteps:
    def test_are_undone_in_reverse_order(self, bench):
        bench.do(*map(bench.note, "abc"))
        assert bench.log == ["+a", "+b", "+c", "-c", "-b", "-a"]
        assert list(bench.system.state.glob("*.journal")) == []

    def test_failed_step_is_undone_too(self, bench):
        with pytest.raises(RunError, match="it fails"):
            bench.do(bench.note("a"), bench.note("b", fails=True))
        assert bench.log == ["+a", "+b", "-b", "-a"]

    def test_unexpected_error_undoes_them(self, bench):
        with pytest.raises(ZeroDivisionError):
            bench.do(bench.note("a"), lambda: 1 // 0)
        assert bench.log == ["+a", "-a"]

    def test_journal_is_kept_if_undo_fails(self, bench):
        with pytest.raises(RunError, match="validate clean"):
            bench.do(bench.note("a"), bench.note("b", stays=True))
        assert bench.log == ["+a", "+b", "-b", "-a"]
        assert len(list(bench.system.state.glob("*.journal"))) == 1

    @pytest.mark.parametrize("number", site.SIGNALS)
    def test_signal_ends_the_run_between_two_steps(self, number, bench):
        before = signal.getsignal(signal.SIGINT)  # ignored, if the tests run in the background
        kill = partial(os.kill, os.getpid(), number)
        with pytest.raises(InterruptedRunError, match=number.name):
            bench.do(bench.note("a"), kill, bench.note("b"))
        assert bench.log == ["+a", "-a"]
        assert signal.getsignal(signal.SIGINT) is before

    @pytest.mark.parametrize("steps", [1, 2, 3])
    def test_next_run_undoes_the_steps_of_a_killed_run(self, steps, bench):
        child = os.fork()
        if child == 0:
            bench.do(*map(bench.note, "abc"[:steps]), lambda: os.kill(os.getpid(), signal.SIGKILL))
        os.waitpid(child, 0)
        assert not any(word.startswith("-") for word in bench.log)
        bench.do()
        assert bench.log == [f"+{x}" for x in "abc"[:steps]] + [f"-{x}" for x in "cba"[3 - steps :]]

    def test_step_is_in_the_journal_before_it_is_executed(self, bench):
        seen = []

        @dataclass(frozen=True)
        class Look(Note):
            def do(self, scene):
                (path,) = bench.system.state.glob("*.journal")
                seen.append(path.read_text())

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(STEPS, "Look", __name__)
            with site.site(bench.system) as here:
                here.do(Look(str(bench.path), "a"))
        assert '"step": "Look"' in seen[0]

    def test_step_is_not_executed_if_the_journal_cannot_be_written(self, bench, monkeypatch):
        with site.site(bench.system) as here:

            def full(*_):
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(os, "fsync", full)
            with pytest.raises(RunError, match="the step was not executed"):
                here.do(bench.note("a"))
            monkeypatch.undo()
        assert not bench.path.exists()

    def test_one_run_at_a_time(self, bench):
        second = journal.exclusive(bench.system)
        with journal.exclusive(bench.system), pytest.raises(MissingError, match="another run"):
            second.__enter__()

    def test_are_restored_from_the_journal(self):
        step = Occupy("/dev/x", "slow", {"number": "8:0"})
        assert from_object(as_object(step)) == step

    def test_incomplete_line_of_the_journal_is_ignored(self, bench):
        one = journal.Journal.begin("a", bench.system)
        one.write({"doing": as_object(bench.note("a"))})
        with one.path.open("a") as stream:
            stream.write('{"doing": {"st')
        assert [entry for entry in one.entries() if "doing" in entry] == [
            {"doing": as_object(bench.note("a"))}
        ]
        one.close()


class TestAfterAReboot:
    """Only a serial number identifies a device then."""

    def identity(self, machine):
        identity = device(machine, "8:16").identity(machine)
        return identity | {"boot": "another"}

    def test_device_without_serial_number_is_left_alone(self, machine):
        with pytest.raises(NotOursError, match="cannot be identified after a reboot"):
            Occupy("/dev/sdb", "slow", self.identity(machine)).undo(machine)

    def test_undo_succeeds_if_the_device_is_gone(self, machine):
        identity = self.identity(machine) | {"hardware": "naa.5000c500"}
        Occupy("/dev/sdb", "slow", identity).undo(machine)

    def test_device_is_found_by_serial_number_under_another_number(self, machine):
        (machine.sys / "devices/sdb/wwid").write_text("naa.5000c500\n")
        identity = self.identity(machine) | {"number": "8:0", "name": "sda"}
        assert Occupy("/dev/sda", "slow", identity)._find_again(machine).number == "8:16"


class TestFiles:
    def test_existing_file_is_left_alone(self, bench, tmp_path):
        path = tmp_path / "theirs"
        path.write_text("precious")
        with pytest.raises(UnsafeError), site.site(bench.system) as here:
            here.do(CreateFile(str(path), MIB))
        assert path.read_text() == "precious"

    def test_own_file_is_removed_and_a_link_is_not_followed(self, bench, tmp_path):
        step = CreateFile(str(tmp_path / "ours"), MIB, "0" * 32)
        with site.site(bench.system) as here:
            here.do(step)
            assert (tmp_path / "ours").stat().st_size == MIB + TRAILER
            assert (tmp_path / "ours").stat().st_blocks * 512 <= TRAILER
        assert not (tmp_path / "ours").exists()
        target = tmp_path / "target"
        target.write_bytes(bytes(MIB))
        (tmp_path / "ours").symlink_to(target)
        step.undo(bench.system)
        assert target.exists()
        assert (tmp_path / "ours").is_symlink()


class TestMessages:
    """Each error is one message that says what to do, with its exit code."""

    def run(self, *words):
        stderr = io.StringIO()
        with redirect_stderr(stderr):
            code = cli.main(words)
        assert "Traceback" not in stderr.getvalue()
        return code, stderr.getvalue()

    def test_missing_experiment(self):
        assert self.run("build", "none.toml", "--slow", "/dev/x")[0] == 2

    def test_missing_device(self):
        toml = str(ROOT / "validate/examples/dmcache-hot.toml")
        code, output = self.run("build", toml, "--slow", "/dev/none", "--fast", "/dev/nil", "-n")
        assert code == 3
        assert "there is no such device: `lsblk`" in output

    def test_plan_with_files_is_shown(self, tmp_path):
        toml = str(ROOT / "validate/examples/bcache-hot.toml")
        words = ("--slow", str(tmp_path / "s"), "--fast", str(tmp_path / "f"), "-n")
        code, output = self.run("build", toml, *words)
        assert code == 0
        assert "start bcache" in output
        assert list(tmp_path.iterdir()) == []

    def test_missing_program(self, tmp_path):
        missing = System(state=tmp_path)
        missing.program = lambda name: None
        with pytest.raises(MissingError, match="apt install bcache-tools fio"):
            missing.need("fio", "make-bcache")


def test_parsers_of_kernel_text_and_device_nodes():
    assert tracepoints.processors("0-2,5,7-8") == [0, 1, 2, 5, 7, 8]
    assert bcache_size("512.0k") == 512 << 10
    assert bcache_size("4.0M") == 4 << 20
    assert bcache_size("0") == 0
    assert Device("/x", "cciss!c0d0", "1:1", Path(), 0).node == "/dev/cciss/c0d0"
