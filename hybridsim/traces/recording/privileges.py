"""Signals of a recording, and giving up root: a child keeps it for the tasks that need it later."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Event

from hybridsim.foundation.errors import HybridsimError, RecordingError, UsageError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_signals() -> Iterator[Event]:
    """Yield an event that the first signal sets; restore the signal handlers at the end."""
    stop = Event()
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in SIGNALS}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


ROOT = 0
DONE, FAILED = b"+", b"-"  # first byte of a reply


def user_to_become(name: str | None) -> pwd.struct_passwd | None:
    """Return the user to become: `name`, or who called sudo; None: nothing changes.

    Raises UsageError for a name that does not exist, or one that only root could become.
    """
    own, caller = os.geteuid(), os.environ.get("SUDO_UID", "")
    if name is None and (own != ROOT or not caller.isdigit() or int(caller) == ROOT):
        return None
    try:
        found = pwd.getpwuid(int(caller)) if name is None else pwd.getpwnam(name)
    except KeyError:
        who = f"the user {caller}, who called sudo, is not in the list of users: specify --user"
        raise UsageError(f"--user {name}: there is no such user" if name else who) from None
    if found.pw_uid == own:
        return None
    if own != ROOT:
        raise UsageError(f"--user {name}: only root may become another user")
    return found


def become(user: pwd.struct_passwd) -> None:
    """Give up root for good; raise RecordingError if the system refuses."""
    try:
        os.initgroups(user.pw_name, user.pw_gid)
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    except OSError as error:
        raise RecordingError(
            f"root cannot become {user.pw_name} here ({error.strerror}): specify --user root to "
            "remain root"
        ) from None
    os.environ["HOME"] = user.pw_dir


class Keeper:
    """A child process that remains root: it does the tasks that it got at its start, by name.

    It ends when its parent does, however that ends, and signals of a terminal do not end it.
    """

    def __init__(self, tasks: Mapping[str, Callable[[], str]]) -> None:
        """Start it."""
        self._connection, other = Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._connection.close()
            _keep(other, tasks)
        other.close()

    def ask(self, name: str) -> str:
        """Return the result of a task; raise RecordingError if it failed."""
        try:
            self._connection.send_bytes(name.encode())
            reply = self._connection.recv_bytes()
        except (EOFError, OSError):
            raise RecordingError("the process that remains root has ended") from None
        if reply.startswith(FAILED):
            raise RecordingError(reply[1:].decode())
        return reply[1:].decode()

    def close(self) -> None:
        """End it."""
        self._connection.close()
        os.waitpid(self._pid, 0)


def _keep(connection: Connection, tasks: Mapping[str, Callable[[], str]]) -> None:
    """Do tasks until the other end is closed; never return."""
    try:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        while True:
            name = connection.recv_bytes().decode()
            try:
                reply = DONE + tasks[name]().encode()
            except (HybridsimError, OSError) as error:
                reply = FAILED + str(error).encode()
            connection.send_bytes(reply)
    finally:
        os._exit(0)
