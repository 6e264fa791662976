"""Safety of `validate` as root on a real kernel; test_validate_situations.py runs it in a guest.

    python3 -m unittest guest_validate      (SLOW and FAST are two empty disks)

It needs only Python's standard library and the tools of the guest.
"""

import contextlib
import fcntl
import io
import json
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from validate import cli, fio, journal, layout, planning, sampling, site
from validate import experiment as experiments
from validate import request as requests
from validate.devices import is_read_only, set_read_only
from validate.system import System

SLOW, FAST = os.environ.get("SLOW", ""), os.environ.get("FAST", "")
MIB = 1 << 20
WORK = Path("/tmp/try")
STATE = WORK / "state"
EXPERIMENT = """
name = "t"
[cache]
kind = "{kind}"
size = "{size}"
[origin]
size = "256MiB"
{origin}
[load]
duration = "{seconds}s"
job = '''
[hot]
rw={rw}
bs={bs}
iodepth=4
norandommap
'''
"""


def sh(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if check and done.returncode:
        raise AssertionError(f"{words}: {done.stdout} {done.stderr}")
    return done.stdout.strip()


def validate(*words):
    """Run the command line; return its exit code and its output."""
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        try:
            code = cli.main([*words, "--state", str(STATE)])
        except SystemExit as end:
            code = end.code
    return code, output.getvalue()


def experiment(kind="dm-cache", seconds=1, rw="randread", bs="4k", origin="", size=""):
    size = size or {"bcache": "300MiB"}.get(kind, "32MiB")
    path = WORK / f"{kind}-{seconds}-{rw.replace(':', '-')}.toml"
    path.write_text(
        EXPERIMENT.format(kind=kind, seconds=seconds, rw=rw, bs=bs, origin=origin, size=size)
    )
    return str(path)


def build(*more, slow=SLOW, fast=FAST, toml=None, erase=None, out="results", yes=True):
    words = ["build", toml or experiment(), "--slow", slow, "--fast", fast, "-o", str(WORK / out)]
    for device in (slow, fast) if erase is None else erase:
        words += ["--erase", device]
    return validate(*words, *(["-y"] if yes else []), *more)


def child(work):
    """Call a function in a child process; return its process ID."""
    number = os.fork()
    if number:
        return number
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
            code = work()
    except BaseException:
        code = 99
    os._exit(code)


def end_of(number):
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def wait(until, seconds=90, what=""):
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def running(name):
    numbers = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and (process / "comm").read_text().strip() == name:
                if (process / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    numbers.append(int(process.name))
    return numbers


def has_begun(out="results"):
    return (WORK / out / layout.BEGIN).exists() and bool(running("fio"))


def digest(device, length=4 * MIB):
    with open(device, "rb") as stream:
        return hash(stream.read(length))


def is_empty(device):
    size = int(sh("blockdev", "--getsize64", device))
    with open(device, "rb") as stream:
        first = stream.read(MIB)
        stream.seek(size - MIB)
        return not any(first) and not any(stream.read(MIB))


def wipe(device):
    sh("blkdiscard", "-f", "-z", device)


class Situation(unittest.TestCase):
    def setUp(self):
        WORK.mkdir(exist_ok=True)
        shutil.rmtree(WORK / "results", ignore_errors=True)
        self.undo = contextlib.ExitStack()
        self.addCleanup(self.undo.close)

    def mapped(self):
        return sh("dmsetup", "ls")

    def assert_nothing_is_left(self):
        self.assertNotIn("hsval", self.mapped())
        self.assertEqual(list(Path("/sys/fs/bcache").glob("*-*")), [])
        self.assertEqual(list(Path("/sys/class/block").glob("md*")), [])
        self.assertEqual(running("fio") + running("blktrace"), [])
        self.assertEqual(list(STATE.glob("*.journal")), [])
        self.assertEqual(list(Path("/sys/class/block").glob("loop*/loop")), [])
        self.assertTrue(is_empty(SLOW) and is_empty(FAST))

    def refused(self, result, *words, code=3):
        """Assert that a run was refused with one message that says what to do."""
        self.assertEqual(result[0], code, result[1])
        for word in words:
            self.assertIn(word, result[1])
        self.assertNotIn("Traceback", result[1])
        self.assertNotIn("hsval", self.mapped())
        self.assertEqual(list(STATE.glob("*.journal")), [])


class ADeviceThatSomebodyNeeds(Situation):
    def mount(self, device, options=()):
        target = WORK / "mnt"
        target.mkdir(exist_ok=True)
        sh("mount", *options, device, str(target))
        self.undo.callback(sh, "umount", str(target))

    def ext4(self, device):
        self.undo.callback(wipe, SLOW)
        sh("mke2fs", "-q", "-F", "-t", "ext4", device, "64M")

    def partition(self):
        self.undo.callback(sh, "blockdev", "--rereadpt", SLOW, check=False)
        self.undo.callback(wipe, SLOW)
        sh("sfdisk", "-q", SLOW, input="label: gpt\n,300M\n,300M\n")
        sh("blockdev", "--rereadpt", SLOW, check=False)
        wait(Path(f"{SLOW}2").exists, what="partitions")

    def test_mounted_device(self):
        self.ext4(SLOW)
        self.mount(SLOW, ("-o", "ro"))  # a read-write mount would change the disk
        before = digest(SLOW)
        self.refused(build(), "is mounted at /tmp/try/mnt", "umount")
        self.assertEqual(digest(SLOW), before)

    def test_mounted_in_another_namespace(self):
        self.ext4(SLOW)
        holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", f"mount {SLOW} /mnt && echo && exec sleep 60"],
            stdout=subprocess.PIPE,
        )
        self.undo.callback(holder.wait)
        self.undo.callback(holder.kill)
        self.undo.callback(holder.stdout.close)
        holder.stdout.readline()
        self.refused(build(), "exclusively", "in a container", "end that")

    def test_unmounted_file_system(self):
        self.ext4(SLOW)
        self.refused(build(), "an ext2/3/4 file system", "wipefs")

    def test_active_swap(self):
        self.undo.callback(wipe, FAST)
        sh("mkswap", FAST)
        sh("swapon", FAST)
        self.undo.callback(sh, "swapoff", FAST)
        self.refused(build(), "swap space", f"swapoff {FAST}")

    def test_inactive_swap(self):
        self.undo.callback(wipe, FAST)
        sh("mkswap", FAST)
        self.refused(build(), "holds swap space")

    def test_a_disk_with_partitions(self):
        self.partition()
        self.refused(build(), "has the partitions", "wipefs")

    def test_partition_beside_a_mounted_one(self):
        self.partition()
        self.ext4(f"{SLOW}1")
        self.mount(f"{SLOW}1")
        self.refused(build(slow=f"{SLOW}2"), f"is a partition of {Path(SLOW).name}", "mounted")

    def test_a_disk_and_its_own_partition(self):
        self.partition()
        self.refused(build(slow=SLOW, fast=f"{SLOW}2"), "one is a part of the other")

    def test_a_physical_volume(self):
        self.undo.callback(wipe, SLOW)
        sh("pvcreate", "-qq", "--devices", SLOW, SLOW)
        self.refused(build(), "an LVM physical volume")

    def test_a_volume_group_in_use(self):
        self.undo.callback(wipe, SLOW)
        for words in (
            ["pvcreate", SLOW],
            ["vgcreate", "vg", SLOW],
            ["lvcreate", "-L64M", "-nlv", "vg"],
        ):
            sh(words[0], "-qq", "--devices", SLOW, *words[1:])
        self.undo.callback(sh, "dmsetup", "remove", "vg-lv")
        self.refused(build(), "is in use by dm-", "remove that first")

    def test_a_running_array_and_a_stopped_one(self):
        self.undo.callback(wipe, SLOW)
        sh("mdadm", "--create", "/dev/md9", "--run", "--level=0", "--force", "-n1", SLOW)
        self.refused(build(), "is in use by md9")
        sh("mdadm", "--stop", "/dev/md9")
        self.refused(build(), "a member of an md RAID")

    def test_member_of_another_cache(self):
        self.undo.callback(wipe, SLOW)
        sh("make-bcache", "-B", SLOW)
        self.refused(build(), "a bcache superblock")
        sh("modprobe", "bcache")
        Path("/sys/fs/bcache/register").write_text(SLOW)
        bcache = Path(f"/sys/class/block/{Path(SLOW).name}/bcache")
        wait((bcache / "dev").exists, what="bcache")
        self.undo.callback(wait, lambda: not bcache.exists(), what="end of bcache")
        self.undo.callback((bcache / "stop").write_text, "1")
        self.refused(build(), "is in use by bcache")

    def test_below_a_mapped_device(self):
        sh("dmsetup", "create", "theirs", input=f"0 2048 linear {SLOW} 0\n")
        self.undo.callback(sh, "dmsetup", "remove", "theirs")
        self.refused(build(), "is in use by dm-")

    def test_open_without_a_claim_in_another_process(self):
        with open(SLOW, "rb") as shared, subprocess.Popen(["sleep", "60"], stdin=shared) as holder:
            self.refused(build(), "is open in sleep", str(holder.pid))
            holder.kill()

    def test_data_without_a_signature(self):
        self.undo.callback(wipe, FAST)
        size = int(sh("blockdev", "--getsize64", FAST))
        with open(FAST, "r+b", buffering=0) as stream:
            stream.seek(size - 4096)
            stream.write(b"precious")
        self.refused(build(), "data at its end", "zero both its ends")

    def test_root_disk(self):
        image = next(
            f"/dev/{disk.name}" for disk in Path("/sys/block").iterdir()
            if (disk / "serial").exists() and (disk / "serial").read_text() == "lab-root"
        )  # fmt: skip
        result = build(slow=image)
        self.refused(result, image)

    def test_read_only(self):
        set_read_only(SLOW, True)
        self.undo.callback(set_read_only, SLOW, False)
        self.refused(build(), "is read-only", "--setrw")


class ADeviceThatIsNotMeant(Situation):
    def test_not_named_twice(self):
        self.refused(build(erase=[]), f"--erase {SLOW} --erase {FAST}", "will be lost")
        self.refused(build(erase=[SLOW]), f"--erase {FAST}")
        self.refused(build(erase=[SLOW, FAST, "/dev/null"]), "not among the devices")

    def test_the_same_device_by_two_names(self):
        link = WORK / "link"
        link.symlink_to(SLOW)
        self.undo.callback(link.unlink)
        self.refused(build(slow=SLOW, fast=str(link)), "are the same device")

    def test_link_changed_after_the_check(self):
        link, other = WORK / "link", WORK / "link2"
        link.symlink_to(SLOW)
        self.undo.callback(lambda: [x.unlink(missing_ok=True) for x in (link, other)])
        whole = journal.Journal.begin.__func__

        def swapped(cls, identity, system):
            other.symlink_to(FAST)
            other.replace(link)
            return whole(cls, identity, system)

        journal.Journal.begin = classmethod(swapped)
        self.undo.callback(setattr, journal.Journal, "begin", classmethod(whole))
        code, output = build(slow=str(link))
        self.assertEqual(code, 3, output)
        self.assertIn("is no longer the device that was checked", output)
        self.assert_nothing_is_left()

    def test_path_that_is_not_a_block_device(self):
        self.refused(build(slow="/dev/null"), "is not a block device")
        self.refused(build(slow="/dev/nonesuch"), "no such device", "lsblk")
        self.refused(build(slow="/tmp"), "is not a block device")

    def test_too_small(self):
        toml = WORK / "large.toml"
        text = Path(experiment()).read_text()
        toml.write_text(text.replace("256MiB", "256GiB"))
        self.refused(build(toml=str(toml)), "the origin needs 256 GiB")

    def test_path_with_shell_metacharacters(self):
        folder = WORK / "a b;touch pwned$(touch pwned)`touch pwned`:x"
        folder.mkdir(exist_ok=True)
        self.undo.callback(shutil.rmtree, folder)
        link = folder / "disk"
        link.symlink_to(SLOW)
        code, output = build(slow=str(link), out="results")
        self.assertEqual(code, 0, output)
        self.assertFalse(list(Path().rglob("pwned")) + list(WORK.rglob("pwned")))
        self.assert_nothing_is_left()

    def test_without_consent(self):
        code, output = build(yes=False)
        self.assertEqual(code, 2)
        self.assertIn("add --yes", output)

    def test_dry_run_changes_nothing(self):
        code, output = build("--dry-run", erase=[])
        self.assertEqual(code, 0, output)
        self.assertIn("everything on it will be lost", output)
        self.assertFalse((WORK / "results").exists())


class SomethingIsMissing(Situation):
    def test_fio(self):
        whole = System.program
        System.program = lambda self, name: None if name == "fio" else whole(self, name)
        self.undo.callback(setattr, System, "program", whole)
        self.refused(build(), "fio: not installed", "apt install fio", code=4)

    def test_kernel_module(self):
        sh("modprobe", "-r", "dm-cache-smq", check=False)
        sh("mount", "-t", "tmpfs", "none", "/lib/modules")
        self.undo.callback(sh, "umount", "/lib/modules")
        self.refused(build(), "has no module dm-cache", "apt install linux-image", code=4)

    def test_root(self):
        toml = experiment()
        WORK.chmod(0o755)
        Path(toml).chmod(0o644)

        def as_nobody():
            build(
                "--dry-run", toml=toml
            )  # loads all modules: their folder is readable by root only
            os.seteuid(65534)
            return build(toml=toml)[0]

        self.assertEqual(end_of(child(as_nobody)), 4)

    def test_space_for_the_results(self):
        small = WORK / "small"
        small.mkdir(exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "size=8m", "none", str(small))
        self.undo.callback(sh, "umount", str(small))
        self.refused(build(out="small/r"), "free space", code=4)

    def test_folder_for_the_results(self):
        (WORK / "results").mkdir()
        (WORK / "results/of-monday").write_text("precious")
        self.refused(build(), "is not empty", code=2)
        self.refused(build(out="../../proc/r"), "cannot be written", code=4)
        self.assertEqual((WORK / "results/of-monday").read_text(), "precious")

    def test_folder_for_the_journal(self):
        global STATE
        before, STATE = STATE, Path("/proc/state")
        self.undo.callback(globals().__setitem__, "STATE", before)
        code, output = build()
        self.assertEqual(code, 4, output)
        self.assertIn("--state", output)

    def test_space_for_the_journal(self):
        STATE.mkdir(exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "size=4k", "none", str(STATE))
        self.undo.callback(sh, "umount", str(STATE))
        (STATE / "fill").write_bytes(bytes(4096))
        code, output = build()
        self.assertIn(code, (4, 5), output)
        self.assertIn("o space left", output)
        self.assertNotIn("hsval", self.mapped())

    def test_another_run_is_active(self):
        STATE.mkdir(exist_ok=True)
        with (STATE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            code, output = build()
        self.assertEqual(code, 4)
        self.assertIn("another run is active", output)


class TheRunFails(Situation):
    def test_fio_refuses_its_job(self):
        code, output = build(toml=experiment(bs="1000"))
        self.assertEqual(code, 5, output)
        self.assertIn("fio failed", output)
        self.assert_nothing_is_left()

    def test_fio_hangs(self):
        self.undo.callback(setattr, fio, "GRACE_S", fio.GRACE_S)
        fio.GRACE_S = 2

        def stop():
            wait(has_begun)
            for number in running("fio"):
                os.kill(number, signal.SIGSTOP)
            return 0

        stopper = child(stop)
        code, output = build(toml=experiment(seconds=4))
        end_of(stopper)
        self.assertEqual(code, 5, output)
        self.assertIn("did not end", output)
        self.assert_nothing_is_left()

    def test_device_fails_during_the_load(self):
        def fail():
            wait(has_begun)
            name = next(x.split()[0] for x in sh("dmsetup", "ls").splitlines() if "origin" in x)
            sh("dmsetup", "wipe_table", name)
            return 0

        failer = child(fail)
        code, output = build(toml=experiment(seconds=6))
        self.assertEqual(end_of(failer), 0)
        self.assertEqual(code, 5, output)
        self.assert_nothing_is_left()

    def test_the_disk_of_the_results_fills_up(self):
        small = WORK / "small"
        small.mkdir(exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "size=40m", "none", str(small))
        self.undo.callback(sh, "umount", str(small))
        whole = sampling.Sampler.wait

        def fill(sampler):
            whole(sampler)
            with contextlib.suppress(OSError), (small / "fill").open("wb", buffering=0) as stream:
                while True:
                    stream.write(bytes(65536))

        sampling.Sampler.wait = fill
        self.undo.callback(setattr, sampling.Sampler, "wait", whole)
        code, output = build(out="small/r")
        self.assertNotEqual(code, 0, output)
        self.assertIn("full", output)
        self.assertNotIn("Traceback", output)
        self.assert_nothing_is_left()

    def test_signals(self):
        for number in site.SIGNALS:
            with self.subTest(number):
                shutil.rmtree(WORK / "results", ignore_errors=True)
                run = child(lambda: build(toml=experiment(seconds=60))[0])
                wait(has_begun, what="fio")
                os.kill(run, number)
                self.assertEqual(end_of(run), 130)
                self.assert_nothing_is_left()

    def test_signals_during_the_cleanup(self):
        run = child(lambda: build(toml=experiment(seconds=60))[0])
        wait(has_begun, what="fio")
        for _ in range(3):
            os.kill(run, signal.SIGINT)
            time.sleep(0.1)
        self.assertEqual(end_of(run), 130)
        self.assert_nothing_is_left()


class Killed(Situation):
    """Kill a run at each point; `clean` or the next run must undo its steps."""

    def killed_at(self, count, work):
        """Run in a child that kills itself at point `count`.

        The points are before and after each line of the journal, and after each command of an undo.
        """
        write_line, remaining = journal.Journal.write, [count]

        def count_down():
            remaining[0] -= 1
            if remaining[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def write(self, entry):
            count_down()
            write_line(self, entry)
            count_down()

        whole = System.run

        def run(self, *words, **more):
            try:
                return whole(self, *words, **more)
            finally:
                if {"remove", "--stop"} & set(words[0]):
                    count_down()

        def killed():
            journal.Journal.write, System.run = write, run
            return work()

        return end_of(child(killed))

    def each_kill(self, kind, minimum, slow=SLOW, fast=FAST):
        """Kill a run at each point, with more than `minimum` points; `clean` must undo it."""
        text = Path(experiment(kind)).read_text()
        if kind == "none":
            text = text.replace('size = "32MiB"\n', "")
        loaded = experiments.parse(text)

        def work():
            system = System(state=STATE)
            request = requests.BuildRequest(loaded, [slow], fast, [], None, system)
            requests.check(request)
            with site.site(system) as here:
                places = [*request.places, None]
                plan = planning.plan(loaded, places[:1], places[1], here.scene.facts["id"])
                for step in plan.steps:
                    here.do(step)
            return 0

        for count in range(1, 120):
            code = self.killed_at(count, work)
            if code != -signal.SIGKILL:
                self.assertEqual(code, 0)
                self.assertGreater(count, minimum)
                return
            with self.subTest(kill=count):
                code, output = validate("clean")
                self.assertEqual(code, 0, output)
                self.assert_nothing_is_left()
                for device in (SLOW, FAST):  # data between the ends would be refused after a kill
                    wipe(device)
        self.fail("the run did not end")

    def test_while_a_dm_cache_is_built_and_removed(self):
        self.each_kill("dm-cache", 28)

    def test_while_a_dm_writecache_is_built_and_removed(self):
        self.each_kill("dm-writecache", 24)

    def test_while_a_bcache_is_built_and_removed(self):
        self.each_kill("bcache", 22)

    def test_with_files_instead_of_devices(self):
        self.each_kill("none", 9, str(WORK / "s.img"), None)
        self.assertEqual(list(WORK.glob("*.img")), [])

    def test_while_fio_runs(self):
        run = child(lambda: build(toml=experiment(seconds=60))[0])
        wait(has_begun, what="fio")
        os.kill(run, signal.SIGKILL)
        end_of(run)
        wait(lambda: not running("fio"), what="fio ends with its parent")
        code, output = validate("clean")
        self.assertEqual(code, 0, output)
        self.assert_nothing_is_left()

    def test_next_run_undoes_the_steps(self):
        self.assertEqual(self.killed_at(9, lambda: build()[0]), -signal.SIGKILL)
        shutil.rmtree(WORK / "results", ignore_errors=True)
        code, output = build()
        self.assertEqual(code, 0, output)
        self.assertIn("left by a run that was killed: undone", output)
        self.assert_nothing_is_left()

    def test_content_that_others_wrote_after_the_kill_is_kept(self):
        self.assertEqual(self.killed_at(4, lambda: build()[0]), -signal.SIGKILL)
        self.undo.callback(wipe, SLOW)
        sh("mke2fs", "-q", "-F", "-t", "ext4", SLOW, "64M")
        before = digest(SLOW)
        code, output = validate("clean")
        self.assertEqual(code, 0, output)
        self.assertIn("holds an ext2/3/4 file system, which is not ours: left as it is", output)
        self.assertEqual(digest(SLOW), before)
        self.assertEqual(validate("clean"), (0, "nothing to undo\n"))

    def test_mapped_device_without_a_journal_is_removed(self):
        sh("dmsetup", "create", "theirs", input="0 2048 zero\n")
        self.undo.callback(sh, "dmsetup", "remove", "theirs")
        sh("dmsetup", "create", "hsval-0123-x", "-u", "HSVAL-0123-x", input="0 2048 zero\n")
        code, output = validate("clean")
        self.assertEqual(code, 0, output)
        self.assertIn("hsval-0123-x", output)
        self.assertIn("theirs", self.mapped())
        self.assertNotIn("hsval", self.mapped())


class ACacheThatExists(Situation):
    def cache(self):
        for name, start, size in (("meta", 0, 16384), ("data", 16384, 65536)):
            sh("dmsetup", "create", name, input=f"0 {size} linear {FAST} {start}\n")
            self.undo.callback(sh, "dmsetup", "remove", name)
        table = (
            f"0 524288 cache /dev/mapper/meta /dev/mapper/data {SLOW} 128 1 writethrough smq 0\n"
        )
        sh("dmsetup", "create", "mine", input=table)
        self.undo.callback(wipe, FAST)
        self.undo.callback(wipe, SLOW)
        self.undo.callback(sh, "dmsetup", "remove", "--retry", "mine")
        return "/dev/mapper/mine"

    def attach(self, device, *more, toml=None):
        return validate("attach", toml or experiment(), "--device", device, "-y", "-o",
                        str(WORK / "results"), *more)  # fmt: skip

    def test_cache_is_measured_and_read_only_meanwhile(self):
        device = self.cache()

        def look():
            wait(has_begun)
            try:
                with open(device, "r+b", buffering=0) as stream:
                    stream.write(bytes(4096))
            except OSError:
                return 7
            return 0

        looker = child(look)
        code, output = self.attach(device, toml=experiment(seconds=4))
        write_code = end_of(looker)
        self.assertEqual(code, 0, output)
        self.assertEqual(write_code, 7)
        self.assertFalse(is_read_only(device))
        self.assertIn("writethrough, 32 MiB in blocks of 64 KiB, smq", output)
        self.assertTrue((WORK / "results/dmcache-status.log").read_text())
        self.assertIn("mine", self.mapped())

    def test_a_writecache_and_its_settings(self):
        table = f"0 524288 writecache s {SLOW} {FAST} 4096 2 high_watermark 70\n"
        self.undo.callback(wipe, FAST)
        self.undo.callback(wipe, SLOW)
        sh("dmsetup", "create", "mine", input=table)
        self.undo.callback(sh, "dmsetup", "remove", "--retry", "mine")
        toml = experiment("dm-writecache", seconds=2)
        code, output = self.attach("/dev/mapper/mine", toml=toml)
        self.assertEqual(code, 0, output)
        self.assertIn("dm-writecache, writeback, 1 GiB in blocks of 4 KiB", output)
        self.assertTrue((WORK / "results/writecache-status.log").read_text())
        cache = json.loads((WORK / "results/environment.json").read_text())["cache"]
        self.assertEqual(cache["high_watermark_percent"], 70)
        self.assertFalse(is_read_only("/dev/mapper/mine"))

    def test_writeback_throttle_is_restored_after_the_run_and_after_a_kill(self):
        place = Path(f"/sys/class/block/{Path(SLOW).name}/queue/wbt_lat_usec")
        place.write_text("60000")
        self.undo.callback(place.write_text, "-1")
        toml = experiment(seconds=1, origin='writeback_throttle = "off"')
        code, output = build(toml=toml)
        self.assertEqual(code, 0, output)
        self.assertIn(f"switch off the writeback throttling of {SLOW}", output)
        origin = json.loads((WORK / "results/environment.json").read_text())["origin"]
        self.assertEqual(origin["throttle_us"], 0)
        self.assertEqual(place.read_text().strip(), "60000")
        toml = experiment(seconds=60, origin='writeback_throttle = "off"')
        run = child(lambda: build(toml=toml, out="other")[0])
        wait(lambda: has_begun("other"), what="fio")
        self.assertEqual(place.read_text().strip(), "0")
        os.kill(run, signal.SIGKILL)
        end_of(run)
        wait(lambda: not running("fio"), what="end of fio")
        self.assertEqual(validate("clean")[0], 0)
        self.assertEqual(place.read_text().strip(), "60000")

    def test_read_only_flag_is_restored_after_a_kill(self):
        device = self.cache()
        run = child(lambda: self.attach(device, toml=experiment(seconds=60))[0])
        wait(has_begun, what="fio")
        os.kill(run, signal.SIGKILL)
        end_of(run)
        wait(lambda: not running("fio"), what="end of fio")
        self.assertTrue(is_read_only(device))
        self.assertEqual(validate("clean")[0], 0)
        self.assertFalse(is_read_only(device))

    def test_bcache_and_its_settings(self):
        sh("modprobe", "bcache")
        self.undo.callback(wipe, FAST)
        self.undo.callback(wipe, SLOW)
        sh("make-bcache", "-C", FAST, "-B", SLOW)
        for device in (FAST, SLOW):
            Path("/sys/fs/bcache/register").write_text(device)
        there = Path(f"/sys/class/block/{Path(SLOW).name}/bcache")
        wait((there / "cache").exists, what="bcache")
        whole = (there / "cache").resolve()
        self.undo.callback(wait, lambda: not whole.exists(), what="end of the set")
        self.undo.callback((whole / "stop").write_text, "1")
        (there / "sequential_cutoff").write_text(str(MIB))
        code, output = self.attach("/dev/bcache0", toml=experiment("bcache", seconds=2))
        self.assertEqual(code, 0, output)
        self.assertIn("bcache, writethrough, 1 GiB in buckets of 512 KiB, lru", output)
        cache = json.loads((WORK / "results/environment.json").read_text())["cache"]
        self.assertEqual(cache["sequential_cutoff_bytes"], MIB)
        last = (WORK / "results/bcache-stats.log").read_text().splitlines()[-1].split()
        reads = json.loads((WORK / "results/fio.json").read_text())["jobs"][0]["read"]["total_ios"]
        self.assertEqual(
            sum(map(int, last[1:5])), reads
        )  # includes reads that bypass a congested cache
        self.assertEqual(validate("clean")[0], 0)
        self.assertTrue((there / "cache").exists())  # the user's cache keeps running

    def test_a_cached_logical_volume(self):
        only = ["-qq", "--devices", f"{SLOW},{FAST}"]
        self.undo.callback(wipe, FAST)
        self.undo.callback(wipe, SLOW)
        sh("vgcreate", *only, "vg", SLOW, FAST)
        self.undo.callback(sh, "vgremove", "-ff", "-y", *only, "vg")
        sh("lvcreate", *only, "-an", "-Zn", "-L", "256M", "-n", "lv", "vg", SLOW)
        sh("lvcreate", *only, "-an", "-Zn", "-L", "64M", "-n", "fast", "vg", FAST)
        sh("lvconvert", "-y", *only, "--type", "cache", "--cachevol", "fast", "vg/lv")
        sh("lvchange", *only, "-ay", "vg/lv")
        self.undo.callback(sh, "lvchange", *only, "-an", "vg/lv")
        code, output = self.attach("/dev/mapper/vg-lv")
        self.assertEqual(code, 0, output)
        self.assertIn(f"slow: {SLOW}", output)
        self.assertIn(f"fast: {FAST}", output)

    def test_in_use(self):
        device = self.cache()
        sh("mke2fs", "-q", "-F", "-t", "ext4", device, "64M")
        target = WORK / "mnt"
        target.mkdir(exist_ok=True)
        sh("mount", device, str(target))
        self.undo.callback(sh, "umount", str(target))
        self.refused(self.attach(device), "is mounted at", "--in-use")
        code, output = self.attach(device, "--in-use")
        self.assertEqual(code, 0, output)
        (target / "file").write_text("it can still be written to")

    def test_a_load_that_writes(self):
        device = self.cache()
        writing = experiment(rw="randwrite")
        self.refused(self.attach(device, toml=writing), f"--erase {device}")
        sh("mke2fs", "-q", "-F", "-t", "ext4", device, "64M")
        result = self.attach(device, "--erase", device, toml=writing)
        self.refused(result, "an ext2/3/4 file system")

    def test_device_that_is_not_the_specified_cache(self):
        self.refused(self.attach(SLOW), "is not a cache")
        device = self.cache()
        result = self.attach(device, toml=experiment("bcache"))
        self.refused(result, 'kind = "dm-cache"', code=2)


class AFile(Situation):
    def test_existing_file_is_never_changed(self):
        path = WORK / "theirs.img"
        path.write_text("precious")
        self.undo.callback(path.unlink)
        result = build(slow=str(path), fast=str(WORK / "f.img"), erase=[])
        self.refused(result, "is there already")
        self.assertEqual(path.read_text(), "precious")

    def test_folder_is_missing(self):
        result = build(slow=str(WORK / "none/s.img"), fast=str(WORK / "f.img"), erase=[])
        self.refused(result, "its folder does not exist", code=4)

    def test_a_raid_of_files(self):
        toml = experiment(origin="raid = 5")
        slow = [word for name in "abc" for word in ("--slow", str(WORK / f"{name}.img"))]
        code, output = validate(
            "build", toml, *slow, "--fast", str(WORK / "f.img"), "-y", "-o", str(WORK / "results")
        )
        self.assertEqual(code, 0, output)
        self.assertEqual(list(WORK.glob("*.img")), [])
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
