"""Regression tests of cases in which `validate` once overwrote data of others.

As root they use real loop devices; without root only the tests with files run.  Random
interleavings are in test_validate_interleaved.py.
"""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from validate import devices, request, site
from validate.errors import NotOursError, UnsafeError
from validate.experiment import parse
from validate.steps import Scene, ends
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


def why_no_loop_device():
    """Return why loop devices cannot be used, or ""."""
    if os.geteuid() != 0:
        return "needs root"
    done = subprocess.run(["losetup", "-f"], capture_output=True, text=True, check=False)
    there = done.returncode == 0 and Path(done.stdout.strip()).exists()
    return "" if there else f"no loop devices: {done.stderr.strip()}"


@pytest.fixture
def loop(tmp_path):
    """A loop device of 16 MiB of zeros."""
    reason = why_no_loop_device()
    if reason:
        pytest.skip(reason)
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
    system = System(state=tmp_path / "state")
    yield system
    devices.release_claim(system)


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
    """Call a function in a child process that is then killed."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            work()
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)


class TestADevice:
    @pytest.mark.parametrize("has_room", [True, False])
    @pytest.mark.parametrize("at", [0, 700_000, 16 * MIB - 100, 8 * MIB])
    def test_written_to_after_the_check_is_refused_and_kept(self, loop, system, at, has_room):
        step = occupy(loop, system, has_room=has_room)
        put(loop, at, PRECIOUS)
        with pytest.raises(UnsafeError, match="holds data"), site.site(system) as here:
            here.do(step)
        assert get(loop, at, len(PRECIOUS)) == PRECIOUS
        assert site.clean(system) == []

    def test_refused_by_a_run_that_was_killed_is_kept(self, loop, system):
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
    def test_reused_after_a_kill_is_kept(self, loop, system, at):
        step = occupy(loop, system)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        assert get(loop, 0, 18) == b"hybridsim validate"
        put(loop, at, PRECIOUS)
        (message,) = site.clean(system)
        assert "left as it is" in message
        assert get(loop, at, len(PRECIOUS)) == PRECIOUS

    def test_marked_by_a_run_that_was_killed_is_zeroed(self, loop, system):
        step = occupy(loop, system)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        (message,) = site.clean(system)
        assert message.startswith("undone: claim and mark")
        assert not any(get(loop, 0, 16 * MIB))

    def test_with_an_incomplete_mark_is_zeroed(self, loop, system):
        step = occupy(loop, system)
        put(loop, 0, step._mark("beginning")[:1536])
        step.undo(system)
        assert not any(get(loop, 0, 16 * MIB))

    def test_with_a_mark_of_another_run_is_kept(self, loop, system):
        step = occupy(loop, system)
        other = Occupy(loop, "slow", step.identity, "cd" * 16)
        put(loop, 0, other._mark("beginning"))
        with pytest.raises(NotOursError, match="left as it is"):
            step.undo(system)
        assert get(loop, 0, 4096) == other._mark("beginning")

    def test_is_claimed_from_the_check_to_the_change(self, loop, system):
        """The question to the user is between them."""
        build = request.BuildRequest(parse(TEXT), [loop], None, [loop], None, system)
        request.check(build)
        with pytest.raises(OSError, match="busy"):
            os.open(loop, os.O_RDWR | os.O_EXCL)
        done = subprocess.run(["mke2fs", "-q", "-F", loop], capture_output=True, check=False)
        assert done.returncode
        with site.site(system) as here:
            here.do(occupy(loop, system))
            with pytest.raises(OSError, match="busy"):
                os.open(loop, os.O_RDWR | os.O_EXCL)
        assert not any(get(loop, 0, 16 * MIB))

    def test_content_of_a_load_is_accepted_by_the_next_run(self, loop, system):
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

    def test_sealed_content_of_a_load_at_the_ends_is_zeroed(self, loop, system):
        step = occupy(loop, system, has_room=False)
        with site.site(system) as here:
            here.do(step)
            ends.begin_load(here.scene)
            put(loop, 512, b"of the load" * 400)
        assert not any(get(loop, 0, MIB))

    def test_write_to_an_end_after_the_seal_is_kept(self, loop, system, monkeypatch):
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
    def test_existing_file_is_kept(self, tmp_path, system, content):
        """An empty file, or one of the same size, was once removed as ours."""
        step = self.step(tmp_path)
        Path(step.path).write_bytes(content)
        with pytest.raises(UnsafeError, match="is there already"), site.site(system) as here:
            here.do(step)
        assert Path(step.path).read_bytes() == content
        with contextlib.suppress(NotOursError):
            step.undo(system)
        assert Path(step.path).read_bytes() == content

    def test_file_that_replaced_ours_is_kept(self, tmp_path, system):
        step = self.step(tmp_path)
        with site.site(system) as here:
            here.do(step)
            os.unlink(step.path)
            Path(step.path).write_bytes(bytes(4 * MIB + 4096))
        assert Path(step.path).stat().st_size == 4 * MIB + 4096

    @pytest.mark.parametrize("name", ["a.img", "busy"])
    def test_file_that_replaces_ours_right_before_the_removal_is_kept(
        self, tmp_path, system, name, monkeypatch
    ):
        """Between the check and the removal; also if another file gets the name at once."""
        step, other = self.step(tmp_path), tmp_path / "other"
        step.do(Scene(system))
        rename = os.rename

        def replaced(old, new):
            monkeypatch.undo()
            other.write_bytes(PRECIOUS)
            rename(other, old)
            rename(old, new)
            if name == "busy":
                Path(old).write_bytes(b"newer")

        monkeypatch.setattr(os, "rename", replaced)
        monkeypatch.setattr(os, "unlink", lambda path: pytest.fail(f"unlinked {path}"))
        with pytest.raises(NotOursError, match="kept"):
            step.undo(system)
        contents = sorted(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert contents == ([PRECIOUS] if name == "a.img" else [PRECIOUS, b"newer"])
        with contextlib.suppress(NotOursError):
            step.undo(system)
        assert sorted(p.read_bytes() for p in tmp_path.iterdir() if p.is_file()) == contents

    def test_written_to_by_others_after_a_kill_is_kept(self, tmp_path, system):
        step = self.step(tmp_path)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        put(step.path, MIB, PRECIOUS)
        (message,) = site.clean(system)
        assert f"rm {step.path}" in message
        assert get(step.path, MIB, len(PRECIOUS)) == PRECIOUS

    def test_created_by_a_run_that_was_killed_is_removed(self, tmp_path, system):
        step = self.step(tmp_path)

        def work():
            with site.site(system) as here:
                here.do(step)
                os.kill(os.getpid(), 9)

        killed(work)
        site.clean(system)
        assert not Path(step.path).exists()
