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
from typing import Any, NamedTuple

from hybridsim.foundation.errors import HybridsimError, RecordingError, UsageError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_signals() -> Iterator[Event]:
    """Yield an event that the first signal sets; restore the signal handlers at the end."""
    stop = Event()

    def note(*_: Any) -> None:
        stop.set()

    before = {each: signal.signal(each, note) for each in SIGNALS}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


ROOT = 0
DONE, FAILED = b"+", b"-"  # first byte of a reply


class User(NamedTuple):
    """Whom a process runs as."""

    name: str
    uid: int
    gid: int
    home: str


def user_to_become(name: str | None) -> User | None:
    """Return the user to become: `name`, or who called sudo; None: nothing changes.

    Raises UsageError for a name that does not exist, or one that only root could become.
    """
    own = os.geteuid()
    if name is None:
        caller = os.environ.get("SUDO_UID", "")
        if own != ROOT or not caller.isdigit() or int(caller) == ROOT:
            return None
        try:
            found = pwd.getpwuid(int(caller))
        except KeyError:
            raise UsageError(
                f"the user {caller}, who called sudo, is not in the list of users: specify --user"
            ) from None
    else:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise UsageError(f"--user {name}: there is no such user") from None
    if found.pw_uid == own:
        return None
    if own != ROOT:
        raise UsageError(f"--user {name}: only root may become another user")
    return User(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir)


def become(user: User) -> None:
    """Give up root for good; raise RecordingError if the system refuses."""
    try:
        os.initgroups(user.name, user.gid)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    except OSError as error:
        raise RecordingError(
            f"root cannot become {user.name} here ({error.strerror}): specify --user root to "
            "remain root"
        ) from None
    os.environ["HOME"] = user.home


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
