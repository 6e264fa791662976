"""Servers for the checker of `serve`, forked from one process that has everything loaded.

Reads a line of JSON for each server from standard input and answers with its process id.  The rates
of the errors that a device has are among the values of the line.
"""

import errno
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from hybridsim.cli.arguments import machine
from hybridsim.serving import nbd
from hybridsim.serving.cache import Medium
from hybridsim.serving.claims import Claim
from hybridsim.serving.generations import DATA_FROM
from hybridsim.studies import serve
from hybridsim.traces.recording.privileges import on_signals


def setting_of(values):
    words = [f"cache.policy={values['policy']}", f"cache.mode={values['mode']}",
             f"cache.page={values['page']}", f"cache.fill={values['fill']}",
             "cache.sequential_cutoff=0"]  # fmt: skip
    return serve.Setting(
        values["slow"], values["fast"], machine(None, words), Path(values["state"]),
        Path(values["socket"]), None, threads=6, json_file=values["json"], every_s=3600,
    )  # fmt: skip


def fail_at_random(fast_share, slow_share):
    """Make reads and writes of a device late or fail, writes also after a part of the data or all.

    Late ones let others overtake them that need not wait for them.
    """
    read, write = Medium.read, Medium.write

    def fails(medium):
        if random.random() < 0.05:
            time.sleep(random.choice((0.001, 0.02)))
        share = fast_share if medium.start == DATA_FROM else slow_share
        return random.random() < share

    def failing_read(self, where, offset):
        if fails(self):
            raise OSError(errno.EIO, "as wanted")
        read(self, where, offset)

    def failing_write(self, data, offset, durable=False):
        if fails(self):
            blocks = len(data) // 1024
            write(self, data[: random.randint(0, blocks) * 1024], offset)
            raise OSError(errno.EIO, "as wanted")
        write(self, data, offset, durable)

    Medium.read, Medium.write = failing_read, failing_write


def look_away(path):
    """Make writes to a file by others invisible, as if they happened below the host."""
    stamp = Claim.stamp
    Claim.stamp = lambda self: [path] if self.path == path else stamp(self)


def child(values):
    random.seed()
    if values["is_remote"]:
        nbd.SETTLES_S = 1.0  # both servers are here
    if values["is_blind"]:
        look_away(values["fast"])
    wanted = setting_of(values)

    def show(ready):
        if values["is_late"]:
            fail_at_random(values["fast_errors"], values["slow_errors"])
        Path(values["ready"]).write_text(json.dumps([ready.pages_warm, ready.why_empty]))

    with on_signals() as stop:
        serve.run(wanted, stop, show)


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # none is waited for
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                child(json.loads(line))
                code = 0
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(code)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
