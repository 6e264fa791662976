"""What `validate` refuses or leaves, it leaves whole: attacks that once cost data, one by one.

On real loop devices, as root; elsewhere on files alone.  test_validate_interleaved.py has the
random ones.
"""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from validate import devices, request, site
from validate.errors import NotOursError, UnsafeError
from validate.experiment import parse
from validate.steps import ends
from validate.steps.ends import Occupy
from validate.steps.files import CreateFile
from validate.system import System

MIB = 1 << 20
PRECIOUS = b"VALUABLE RAW DATABASE"
TEXT = """
name = "t"
[cache]
kind = "none"
[load]
duration = "1s"
job = '''
[a]
rw=randread
bs=4k
'''
"""


def loop_devices_are_here():
    if os.geteuid() != 0:
        return "needs root"
    done = subprocess.run(["losetup", "-f"], capture_output=True, text=True, check=False)
    there = done.returncode == 0 and Path(done.stdout.strip()).exists()
    return "" if there else f"no loop devices: {done.stderr.strip()}"


@pytest.fixture
def loop(tmp_path):
    """A loop device of 16 MiB of zeros."""
    why = loop_devices_are_here()
    if why:
        pytest.skip(why)
    image = tmp_path / "disk.img"
    image.write_bytes(b"")
    os.truncate(image, 16 * MIB)
    words = ["losetup", "-f", "--show", str(image)]
    node = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    yield node
    subprocess.run(["losetup", "-d", node], check=True)


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(ends, "PATIENCE_S", 0.1)
    made = System(state=tmp_path / "state")
    yield made
    devices.let_go(made)


def put(node, at, data):
    with open(node, "r+b", buffering=0) as stream:
        stream.seek(at)
        stream.write(data)


def get(node, at, length):
    with open(node, "rb") as stream:
        stream.seek(at)
        return stream.read(length)


def occupy(node, system, **more):
    identity = devices.find(node, system).identity(system)
    return Occupy(node, "slow", identity, "ab" * 16, "", **more)


def killed(work):
    """Do something in a process that is killed at its end."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            work()
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)


class TestADevice:
    @pytest.mark.parametrize("has_room", [True, False])
    @pytest.mark.parametrize("at", [0, 700_000, 16 * MIB - 100, 8 * MIB])
    def test_that_was_written_to_after_the_check_is_refused_and_left(
        self, loop, system, at, has_room
    ):
        step = occupy(loop, system, has_room=has_room)
        put(loop, at, PRECIOUS)
        with pytest.raises(UnsafeError, match="holds data"), site.site(system) as here:
            here.do(step)
        assert get(loop, at, len(PRECIOUS)) == PRECIOUS
        assert site.clean(system) == []

    def test_that_was_refused_and_whose_run_was_killed_is_left(self, loop, system):
        step = occupy(loop, system)
        put(loop, 0, PRECIOUS)

        def work():
            with site.site(system) as here:
                here.journal.write({"doing": site.as_object(step)})
                os.kill(os.getpid(), 9)

        killed(work)
        site.clean(system)
        assert get(loop, 0, len(PRECIOUS)) == PRECIOUS

    @pytest.mark.parametrize("at", [0, 4096, 16 * MIB - len(PRECIOUS), 8 * MIB])
    def test_that_was_reused_after_a_kill_is_left(self, loop, system, at):
        step = occupy(loop, system)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        assert get(loop, 0, 18) == b"hybridsim validate"
        put(loop, at, PRECIOUS)
        (told,) = site.clean(system)
        assert "left as it is" in told
        assert get(loop, at, len(PRECIOUS)) == PRECIOUS

    def test_that_was_marked_and_killed_is_given_back(self, loop, system):
        step = occupy(loop, system)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        (told,) = site.clean(system)
        assert told.startswith("undone: take")
        assert not any(get(loop, 0, 16 * MIB))

    def test_whose_mark_was_cut_short_is_given_back(self, loop, system):
        step = occupy(loop, system)
        put(loop, 0, step._mark("beginning")[:1536])
        step.undo(system)
        assert not any(get(loop, 0, 16 * MIB))

    def test_with_a_mark_of_another_run_is_left(self, loop, system):
        step = occupy(loop, system)
        other = Occupy(loop, "slow", step.identity, "cd" * 16)
        put(loop, 0, other._mark("beginning"))
        with pytest.raises(NotOursError, match="left as it is"):
            step.undo(system)
        assert get(loop, 0, 4096) == other._mark("beginning")

    def test_is_held_from_the_check_to_the_change(self, loop, system):
        """The question to the user is between them."""
        asked = request.BuildRequest(parse(TEXT), [loop], None, [loop], None, system)
        request.check(asked)
        with pytest.raises(OSError, match="busy"):
            os.open(loop, os.O_RDWR | os.O_EXCL)
        done = subprocess.run(["mke2fs", "-q", "-F", loop], capture_output=True, check=False)
        assert done.returncode
        with site.site(system) as here:
            here.do(occupy(loop, system))
            with pytest.raises(OSError, match="busy"):
                os.open(loop, os.O_RDWR | os.O_EXCL)
        assert not any(get(loop, 0, 16 * MIB))

    def test_what_a_run_left_between_the_ends_is_known_to_the_next(self, loop, system):
        step = occupy(loop, system)
        with site.site(system) as here:
            here.do(step)
            ends.begin_load(here.scene)
            put(loop, 8 * MIB, bytes(range(256)) * 16)
        with site.site(system) as here:
            here.do(step)
        put(loop, 8 * MIB, PRECIOUS)
        with pytest.raises(UnsafeError, match="in its middle"), site.site(system) as here:
            here.do(step)
        assert get(loop, 8 * MIB, len(PRECIOUS)) == PRECIOUS

    def test_whose_ends_the_load_used_is_cleared_of_what_was_there_when_it_was_held(
        self, loop, system
    ):
        step = occupy(loop, system, has_room=False)
        with site.site(system) as here:
            here.do(step)
            ends.begin_load(here.scene)
            put(loop, 512, b"of the load" * 400)
        assert not any(get(loop, 0, MIB))

    def test_whose_ends_were_written_to_as_it_was_let_go_is_left_there(
        self, loop, system, monkeypatch
    ):
        step = occupy(loop, system, has_room=False)
        whole = Occupy.seal

        def seal(self, system):
            whole(self, system)
            put(loop, 1024, PRECIOUS)

        monkeypatch.setattr(Occupy, "seal", seal)
        with site.site(system) as here:
            here.do(step)
            ends.begin_load(here.scene)
            put(loop, 0, b"of the load" * 400)
        assert get(loop, 1024, len(PRECIOUS)) == PRECIOUS
        assert not any(get(loop, 0, 1024))


class TestAFile:
    def step(self, tmp_path):
        return CreateFile(str(tmp_path / "a.img"), 4 * MIB, "12" * 16)

    @pytest.mark.parametrize("content", [b"", bytes(4 * MIB), bytes(4 * MIB + 4096), PRECIOUS])
    def test_that_was_there_already_is_left(self, tmp_path, system, content):
        """One that is empty, or just as large, was once taken for ours."""
        step = self.step(tmp_path)
        Path(step.path).write_bytes(content)
        with pytest.raises(UnsafeError, match="is there already"), site.site(system) as here:
            here.do(step)
        assert Path(step.path).read_bytes() == content
        with contextlib.suppress(NotOursError):
            step.undo(system)
        assert Path(step.path).read_bytes() == content

    def test_that_replaced_ours_is_left(self, tmp_path, system):
        step = self.step(tmp_path)
        with site.site(system) as here:
            here.do(step)
            os.unlink(step.path)
            Path(step.path).write_bytes(bytes(4 * MIB + 4096))
        assert Path(step.path).stat().st_size == 4 * MIB + 4096

    def test_that_others_wrote_to_after_a_kill_is_left(self, tmp_path, system):
        step = self.step(tmp_path)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        put(step.path, MIB, PRECIOUS)
        (told,) = site.clean(system)
        assert f"rm {step.path}" in told
        assert get(step.path, MIB, len(PRECIOUS)) == PRECIOUS

    def test_that_a_killed_run_made_is_removed(self, tmp_path, system):
        step = self.step(tmp_path)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        site.clean(system)
        assert not Path(step.path).exists()
