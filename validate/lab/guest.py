"""A guest: QEMU with Debian's kernel, disks, and commands to run as root inside.

    run([["fio", "--filename={slow}", ...]], disks=[Disk("slow", 1 << 30)], out=Path("results"))

There is no network and nothing of the host but the disks.  Commands are lists of words; in each
word `{slow}` stands for the device of the disk `slow`, `{out}` for the folder that is handed out.
The same places are in the environment as SLOW and OUT.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from validate.lab import image, job, machine
from validate.lab.errors import LabError
from validate.lab.machine import Disk
from validate.lab.places import lab_folder
from validate.lab.processes import Folder, StoppedError, folder_below, stop
from validate.lab.setup import Lab, set_up

__all__ = ["Disk", "Finished", "run"]

BOOT_S = 300  # software emulation takes 10, on a machine much too busy 60
PROBE_S = 10  # where KVM works a guest is up in 2
SILENCE_S = 120  # the agent beats every 2 s
QUIET_S = 30  # then it is said that something goes on
OUT_BYTES = 4 << 30  # sparse
Hear = Callable[[str], None]


def unheard(line: str) -> None:
    """Let a line pass."""


@dataclass(frozen=True)
class Finished:
    """What a guest has done: exit codes of the commands, and NN.out of each in `out`."""

    out: Path  # NN.out of each command, dmesg.txt, and what the commands put into {out}
    codes: list[int]  # up to the first command that failed
    boot_s: float
    wall_s: float
    accelerator: str


def run(
    commands: Sequence[Sequence[str]],
    disks: Sequence[Disk] = (),
    out: Path = Path("lab-out"),
    *,
    server: Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
    memory_mb: int = 1024,
    cpus: int = 2,
    limit_s: float = 600,
    hear: Hear = unheard,
    say: Hear = unheard,
) -> Finished:
    """Boot a guest, run the commands in turn until one fails, and bring what they made to `out`.

    `server` is a command that serves the disks that are to be served, and leaves what it wrote down
    in `out/disks`.  `files` lie where the commands run.  `hear` gets each line that they print,
    `say` what the lab itself is doing.  Raises LabError where the guest does not come up, falls
    silent, or is not done after `limit_s`.
    """
    lab = set_up(say)
    how = accelerator(lab, say)
    with folder_below(lab_folder() / "runs") as folder, contextlib.ExitStack() as stack:
        job.pack(folder.path / "job.tar", commands, disks, files or {}, limit_s)
        _make_disks(folder, disks)
        if server:
            stack.callback(stop, _served(folder, server, disks))
        started = time.monotonic()
        words = machine.command(lab, disks, memory_mb, cpus, how)
        try:
            boot_s, codes = _powered(lab, folder, words, (BOOT_S, limit_s), hear, say)
        except StoppedError:
            raise
        except LabError as error:
            raise LabError(f"{error}{_kept(folder, out)}") from None
        wall_s = time.monotonic() - started
        job.unpack(folder.path / "out.img", out)
        stack.close()
        _bring_books(folder, disks, out)
        return Finished(out, codes, boot_s, wall_s, how)


def accelerator(lab: Lab, say: Hear) -> str:
    """Return kvm where a guest comes up with it, else tcg; what was found out is remembered.

    That there is a /dev/kvm does not say that it works: within a virtual machine it may be too slow
    to boot, or fail.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    memory = lab_folder() / "accelerator.json"
    question = f"{lab.kernel_version} {lab.emulator[-1]} on {os.uname().release}"
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(memory.read_text())
        if known["question"] == question:
            return str(known["answer"])
    say("trying KVM")
    answer = "kvm"
    with folder_below(lab_folder() / "runs") as folder:
        job.pack(folder.path / "job.tar", [["true"]], [], {}, PROBE_S)
        _make_disks(folder, [])
        try:
            words = machine.command(lab, [], 512, 1, "kvm")
            _powered(lab, folder, words, (PROBE_S, PROBE_S), unheard)
        except LabError as error:
            answer = "tcg"
            say(f"KVM does not work here ({error}): software emulation")
    memory.write_text(json.dumps({"question": question, "answer": answer}))
    return answer


def _make_disks(folder: Folder, disks: Sequence[Disk]) -> None:
    image.sparse(folder.path / "out.img", OUT_BYTES)
    for disk in disks:
        if not disk.is_served:
            image.sparse(folder.path / f"{disk.name}.img", disk.size_bytes)


def _served(
    folder: Folder, server: Sequence[str], disks: Sequence[Disk]
) -> subprocess.Popen[bytes]:
    """Start the server, and wait until each disk can be had."""
    package = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    how = {"stdout": subprocess.DEVNULL, "env": os.environ | {"PYTHONPATH": paths}}
    child = folder.start("server", server, **how)
    until = time.monotonic() + BOOT_S
    for disk in disks:
        while disk.is_served and not (folder.path / f"{disk.name}.sock").exists():
            if child.poll() is not None or time.monotonic() > until:
                stop(child)
                why = folder.log("server").strip() or f"no answer within {BOOT_S} s"
                raise LabError(f"disk {disk.name} cannot be served: {why}")
            time.sleep(0.02)
    return child


def _powered(
    lab: Lab,
    folder: Folder,
    words: Sequence[str],
    patience_s: tuple[float, float],
    hear: Hear,
    say: Hear = unheard,
) -> tuple[float, list[int]]:
    """Run QEMU to its end; return when the guest was up, and its commands' exit codes."""
    image.initramfs(Path(lab.busybox), Path(lab.modules), folder.path / "initrd")
    started = time.monotonic()
    how = {"stdout": subprocess.PIPE, "env": machine.environment(lab)}
    qemu = folder.start("qemu", words, **how)
    try:
        return _watched(qemu, started, *patience_s, hear, say)
    finally:
        stop(qemu)


def _watched(
    qemu: subprocess.Popen[bytes],
    started: float,
    boot_limit_s: float,
    limit_s: float,
    hear: Hear,
    say: Hear = unheard,
) -> tuple[float, list[int]]:
    """Listen to the guest until it ends; LabError where it does not come up, hangs, or is slow."""
    assert qemu.stdout is not None
    pipe = qemu.stdout.fileno()
    heard, spoke, boot_s, codes, rest = started, started, 0.0, None, b""
    while True:
        ready = select.select([pipe], [], [], 1.0)[0]
        now = time.monotonic()
        if ready:
            some = os.read(pipe, 65536)
            *lines, rest = (rest + some).split(b"\n")
            heard = now
            for line in (each.decode(errors="replace").rstrip("\r") for each in lines):
                word, _, what = line.partition(" ")
                if word == "LAB-UP":
                    boot_s = now - started
                    say(f"the guest is up after {boot_s:.0f} s")
                elif word == "LAB-RESULTS":
                    codes = [int(code) for code in json.loads(what)]
                elif line.startswith(":"):
                    hear(line[1:])
                    spoke = now
            if not some:
                if codes is None:
                    raise LabError("the guest ended without results")
                return boot_s, codes
        if now - spoke > QUIET_S:
            say(f"... {now - started:.0f} s")
            spoke = now
        if not boot_s and now - started > boot_limit_s:
            raise LabError(f"the guest did not come up within {boot_limit_s} s")
        if now - heard > SILENCE_S:
            raise LabError(f"the guest has been silent for {SILENCE_S} s: it hangs")
        if now - started > limit_s + boot_limit_s:
            raise LabError(f"the guest was not done after {limit_s:.0f} s")


def _bring_books(folder: Folder, disks: Sequence[Disk], out: Path) -> None:
    """Keep what the server wrote down of its disks."""
    for disk in disks:
        for name in (f"{disk.name}.requests.npy", f"{disk.name}.model.json"):
            if (folder.path / name).exists():
                (out / "disks").mkdir(exist_ok=True)
                shutil.move(folder.path / name, out / "disks" / name)


def _kept(folder: Folder, out: Path) -> str:
    """Keep console and emulator's log beside the results; return where, in words."""
    out.mkdir(parents=True, exist_ok=True)
    console = folder.path / "console.txt"
    text = console.read_text(errors="replace") if console.exists() else ""
    text += folder.log("qemu") + folder.log("server")
    (out / "console.txt").write_text(text)
    last = "\n  ".join([line for line in text.splitlines() if line.strip()][-3:])
    return f". Its console is in {out / 'console.txt'}; it ends:\n  {last}"
