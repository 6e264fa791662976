"""Giving up root: `watch` goes on as another user once tracing is set up."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_record_thinned import loop_device, tracefs, write_pages

from hybridsim.foundation.errors import RecordingError, UsageError
from hybridsim.traces.recording.privileges import Keeper, user_to_become

__all__ = ["loop_device"]  # a fixture
ROOT = Path(__file__).parents[1]
NOBODY = pwd.getpwnam("nobody")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class TestUser:
    @pytest.fixture
    def root(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.delenv("SUDO_UID", raising=False)
        return monkeypatch

    def test_it_is_who_called_sudo(self, root):
        root.setenv("SUDO_UID", str(NOBODY.pw_uid))
        assert user_to_become(None).pw_name == "nobody"
        assert user_to_become("root") is None

    @pytest.mark.parametrize("caller", ["", "0", "x"])
    def test_nothing_changes_for_root_itself(self, root, caller):
        root.setenv("SUDO_UID", caller)
        assert user_to_become(None) is None
        assert user_to_become("nobody").pw_uid == NOBODY.pw_uid

    def test_who_called_sudo_must_be_known(self, root):
        root.setenv("SUDO_UID", "4294967294")
        with pytest.raises(UsageError, match="specify --user"):
            user_to_become(None)

    def test_a_name_must_exist(self, root):
        with pytest.raises(UsageError, match="there is no such user"):
            user_to_become("nobody-of-this-name")

    def test_others_cannot_become_another_user(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY.pw_uid)
        monkeypatch.setenv("SUDO_UID", "1")
        assert user_to_become(None) is None
        assert user_to_become("nobody") is None
        with pytest.raises(UsageError, match="only root may"):
            user_to_become("root")


class TestKeeper:
    def test_it_does_the_tasks_of_its_start(self):
        def fail():
            raise UsageError("no such cache")

        keeper = Keeper({"who": lambda: str(os.getpid()), "fail": fail})
        assert keeper.ask("who") == str(keeper._pid)
        with pytest.raises(RecordingError, match="no such cache"):
            keeper.ask("fail")
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(keeper._pid, each)
        assert keeper.ask("who") == str(keeper._pid)
        keeper.close()
        with pytest.raises(ProcessLookupError):
            os.kill(keeper._pid, 0)

    def test_one_that_ended_is_reported(self):
        keeper = Keeper({"die": lambda: os._exit(1)})
        with pytest.raises(RecordingError, match="has ended"):
            keeper.ask("die")
        keeper.close()


@as_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_a_system_that_refuses_is_reported():
    code = (
        "from hybridsim.traces.recording.privileges import become, user_to_become\n"
        "become(user_to_become('nobody'))"
    )
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-setuid", "--inh-caps", "-setuid", sys.executable, "-c",
         code], cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "root cannot become nobody here" in done.stderr
    assert "--user root" in done.stderr


@pytest.mark.skipif(not tracefs(), reason="needs root and tracefs")
class TestWatch:
    @pytest.fixture
    def folder(self, tmp_path):
        """A folder of nobody; pytest's own are closed to others."""
        for each in (tmp_path, *tmp_path.parents):
            if not (mode := each.stat().st_mode) & 0o001:
                os.chmod(each, (mode & 0o777) | 0o011)
        place = tmp_path / "of-nobody"
        place.mkdir()
        os.chown(place, NOBODY.pw_uid, NOBODY.pw_gid)
        return place

    def start(self, device, *options):
        return subprocess.Popen(
            [sys.executable, "-m", "hybridsim", "watch", device, "--cache-size", "1MiB", "--every",
             "1s", "--json", *options],
            cwd=ROOT, env={**os.environ, "SUDO_UID": str(NOBODY.pw_uid)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def first_line(self, watching, device):
        """Return the first line, of requests that are made until it comes."""
        os.set_blocking(watching.stdout.fileno(), False)
        for at in range(300):
            write_pages(device, [at])
            if text := watching.stdout.readline():
                return json.loads(text)
            assert watching.poll() is None, watching.stderr.read()
        raise AssertionError("nothing was printed")

    def instance(self, device):
        places = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
        root = next(each for each in places if (each / "instances").is_dir())
        return root / "instances" / f"hybridsim-{Path(device).name}"

    def test_it_goes_on_as_the_user_who_called_sudo(self, loop_device, folder):
        state = folder / "state.npz"
        watching = self.start(loop_device, "--state", str(state))
        first = self.first_line(watching, loop_device)
        status = Path(f"/proc/{watching.pid}/status").read_text()
        own = SimpleNamespace(
            **dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        )
        assert own.Uid.split() == [str(NOBODY.pw_uid)] * 4
        assert own.Gid.split() == [str(NOBODY.pw_gid)] * 4
        assert set(own.Groups.split()) <= {str(NOBODY.pw_gid)}
        assert int(own.CapEff, 16) == int(own.CapPrm, 16) == 0
        watching.kill()  # what the kernel traces from now on waits for the next start
        watching.wait()
        assert self.instance(loop_device).is_dir()
        assert state.stat().st_uid == NOBODY.pw_uid
        again = self.start(loop_device, "--state", str(state))
        second = self.first_line(again, loop_device)
        assert second["seconds"] > first["seconds"]
        again.send_signal(signal.SIGINT)
        assert again.wait() == 0, again.stderr.read()
        assert not self.instance(loop_device).exists()

    @pytest.mark.parametrize("place", ["journal", "folder"])
    def test_a_state_that_the_user_cannot_write_is_refused(self, loop_device, folder, place):
        state = folder / "state.npz"
        if place == "journal":
            wrong = folder / "state.npz.journal"
            wrong.touch(0o600)
        else:
            wrong = folder
            os.chown(folder, 0, 0)
        done = self.start(loop_device, "--state", str(state), "--for", "1s")
        _, errors = done.communicate()
        assert done.returncode
        text = "".join(errors.split())
        assert f"nobodycannotwrite{wrong}:changeitsowner" in text
        assert not self.instance(loop_device).exists()
