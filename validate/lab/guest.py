"""A guest: QEMU with Debian's kernel, disks, and commands to run as root inside.

    run([["fio", "--filename={slow}", ...]], disks=[Disk("slow", 1 << 30)], out=Path("results"))

The guest has no network, and no access to the host but its disks.  Commands are lists of words; in
each word `{slow}` is replaced by the device of the disk `slow`, and `{out}` by the folder that is
returned.  The environment variables SLOW and OUT have the same values.
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
from validate.lab.processes import Folder, StoppedError, folder_below, put_before, stop
from validate.lab.setup import Lab, set_up

__all__ = ["Boot", "Disk", "Finished", "run", "run_in_turn"]

BOOT_S = 300  # software emulation needs 10 s, on a very busy machine 60 s
PROBE_S = 10  # with KVM a guest is up in 2 s
SILENCE_S = 120  # the agent sends a heartbeat every 2 s
QUIET_S = 30  # without output, a progress message is printed
OUT_BYTES = 4 << 30  # sparse
OnLine = Callable[[str], None]


def ignore(line: str) -> None:
    """Ignore a line."""


class EndedError(LabError):
    """A guest ended without results."""


@dataclass(frozen=True)
class Boot:
    """The commands of one boot of a guest, and the folder of its results."""

    commands: Sequence[Sequence[str]]
    out: Path
    may_crash: bool = False


@dataclass(frozen=True)
class Finished:
    """The results of a guest."""

    out: Path  # NN.out of each command, dmesg.txt, and the files in {out}
    codes: list[int]  # up to the first command that failed; none after a crash
    boot_s: float
    wall_s: float
    accelerator: str
    # The host's time when the guest's clock was 0, by its heartbeats; exact to some milliseconds.
    zero_unix_s: float = 0.0


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
    kernel: str = "",
    on_output: OnLine = ignore,
    progress: OnLine = ignore,
) -> Finished:
    """Boot a guest, run the commands in turn until one fails, and copy their results to `out`.

    `server` is a command that serves the disks with `is_served`; its logs are moved to `out/disks`.
    `files` are put into the working folder of the commands.  `kernel` is a release as 6.12; "" is
    the Debian's own.  `on_output` gets each line that they
    print, `progress` messages of the lab.  Raises LabError if the guest does not start, hangs, or
    is not done after `limit_s`.
    """
    boot = Boot(commands, out)
    return run_in_turn(
        [boot], disks, out, server=server, files=files, memory_mb=memory_mb, cpus=cpus,
        limit_s=limit_s, kernel=kernel, on_output=on_output, progress=progress,
    )[0]  # fmt: skip


def run_in_turn(
    boots: Sequence[Boot],
    disks: Sequence[Disk],
    out: Path,
    *,
    server: Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
    memory_mb: int = 1024,
    cpus: int = 2,
    limit_s: float = 600,
    kernel: str = "",
    on_output: OnLine = ignore,
    progress: OnLine = ignore,
) -> list[Finished]:
    """Boot guests one after another on the same disks, which keep their data, as `run` does.

    A boot with `may_crash` may end without results, as after `echo b > /proc/sysrq-trigger`: what
    it had in flight is lost, as are its results, and its codes are empty.  `limit_s` is that of
    each boot; `out` gets the logs of the disks.
    """
    lab = set_up(progress, kernel)
    how = accelerator(lab, progress)
    finished = []
    with folder_below(lab_folder() / "runs") as folder, contextlib.ExitStack() as stack:
        _make_disks(folder, disks)
        if server:
            stack.callback(stop, _served(folder, server, disks))
        words = machine.command(lab, disks, memory_mb, cpus, how)
        for boot in boots:
            (folder.path / "out.img").unlink(missing_ok=True)
            image.sparse(folder.path / "out.img", OUT_BYTES)
            job.pack(folder.path / "job.tar", boot.commands, disks, files or {}, limit_s)
            started = time.monotonic()
            try:
                boot_s, codes, zero_unix_s = _powered(
                    lab, folder, words, (BOOT_S, limit_s), on_output, progress
                )
            except StoppedError:
                raise
            except EndedError as error:
                if not boot.may_crash:
                    raise LabError(f"{error}{_save_logs(folder, boot.out)}") from None
                boot_s, codes, zero_unix_s = 0.0, [], 0.0
            except LabError as error:
                raise LabError(f"{error}{_save_logs(folder, boot.out)}") from None
            wall_s = time.monotonic() - started
            if codes:
                job.unpack(folder.path / "out.img", boot.out)
            finished.append(Finished(boot.out, codes, boot_s, wall_s, how, zero_unix_s))
        stack.close()
        _move_disk_logs(folder, out)
    return finished


def accelerator(lab: Lab, progress: OnLine) -> str:
    """Return kvm if a guest boots with it, else tcg; the answer is cached.

    The existence of /dev/kvm is not enough: inside a virtual machine KVM may fail or be too slow.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    cache = lab_folder() / "accelerator.json"
    question = f"{lab.kernel_version} {lab.emulator[-1]} on {os.uname().release}"
    with contextlib.suppress(OSError, ValueError):
        cached = json.loads(cache.read_text())
        if cached["question"] == question:
            return str(cached["answer"])
    progress("trying KVM")
    answer = "kvm"
    with folder_below(lab_folder() / "runs") as folder:
        job.pack(folder.path / "job.tar", [["true"]], [], {}, PROBE_S)
        image.sparse(folder.path / "out.img", OUT_BYTES)
        try:
            words = machine.command(lab, [], 512, 1, "kvm")
            _powered(lab, folder, words, (PROBE_S, PROBE_S), ignore)
        except LabError as error:
            answer = "tcg"
            progress(f"KVM does not work here ({error}): using software emulation")
    cache.write_text(json.dumps({"question": question, "answer": answer}))
    return answer


def _make_disks(folder: Folder, disks: Sequence[Disk]) -> None:
    for disk in disks:
        if not disk.is_served:
            image.sparse(folder.path / f"{disk.name}.img", disk.size_bytes)


def _served(
    folder: Folder, server: Sequence[str], disks: Sequence[Disk]
) -> subprocess.Popen[bytes]:
    """Start the server, and wait until each disk is available."""
    package = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    how = {"stdout": subprocess.DEVNULL, "env": os.environ | {"PYTHONPATH": paths}}
    child = folder.start("server", server, **how)
    until = time.monotonic() + BOOT_S
    for disk in disks:
        while disk.is_served and not (folder.path / f"{disk.name}.sock").exists():
            if child.poll() is not None or time.monotonic() > until:
                stop(child)
                reason = folder.log("server").strip() or f"no answer within {BOOT_S} s"
                raise LabError(f"disk {disk.name} cannot be served: {reason}")
            time.sleep(0.02)
    return child


def _powered(
    lab: Lab,
    folder: Folder,
    words: Sequence[str],
    patience_s: tuple[float, float],
    on_output: OnLine,
    progress: OnLine = ignore,
) -> tuple[float, list[int], float]:
    """Run QEMU to its end.

    Return the seconds to boot, the commands' exit codes, and the host's time at the guest's 0.
    """
    image.initramfs(Path(lab.busybox), Path(lab.modules), folder.path / "initrd")
    started = time.monotonic()
    how = {"stdout": subprocess.PIPE, "env": machine.environment(lab)}
    qemu = folder.start("qemu", words, **how)
    try:
        return _watched(qemu, started, *patience_s, on_output, progress)
    finally:
        stop(qemu)


def _watched(
    qemu: subprocess.Popen[bytes],
    started: float,
    boot_limit_s: float,
    limit_s: float,
    on_output: OnLine,
    progress: OnLine = ignore,
) -> tuple[float, list[int], float]:
    """Read the guest's serial line until it ends; raise LabError on a timeout."""
    assert qemu.stdout is not None
    pipe = qemu.stdout.fileno()
    last_data, last_output, boot_s, codes, rest = started, started, 0.0, None, b""
    zero_unix_s = float("inf")
    while True:
        ready = select.select([pipe], [], [], 1.0)[0]
        now = time.monotonic()
        if ready:
            data = os.read(pipe, 65536)
            *lines, rest = (rest + data).split(b"\n")
            last_data = now
            for line in (each.decode(errors="replace").rstrip("\r") for each in lines):
                word, _, what = line.partition(" ")
                if word == "LAB-UP":
                    boot_s = now - started
                    put_before(qemu.pid, machine.PROCESSOR_THREAD)
                    progress(f"the guest is up after {boot_s:.0f} s")
                elif word == "LAB-BEAT":
                    zero_unix_s = min(zero_unix_s, time.time() - float(what))
                elif word == "LAB-RESULTS":
                    codes = [int(code) for code in json.loads(what)]
                elif line.startswith(":"):
                    on_output(line[1:])
                    last_output = now
            if not data:
                if codes is None:
                    raise EndedError("the guest ended without results")
                return boot_s, codes, zero_unix_s
        if now - last_output > QUIET_S:
            progress(f"running for {now - started:.0f} s")
            last_output = now
        if not boot_s and now - started > boot_limit_s:
            raise LabError(f"the guest did not come up within {boot_limit_s} s")
        if now - last_data > SILENCE_S:
            raise LabError(f"the guest has been silent for {SILENCE_S} s: it hangs")
        if now - started > limit_s + boot_limit_s:
            raise LabError(f"the guest was not done after {limit_s:.0f} s")


def _move_disk_logs(folder: Folder, out: Path) -> None:
    """Move the logs that the server wrote of its disks to the results."""
    for pattern in ("*.requests.npy", "*.model.json", "*.served.json"):
        for path in sorted(folder.path.glob(pattern)):
            (out / "disks").mkdir(parents=True, exist_ok=True)
            shutil.move(path, out / "disks" / path.name)


def _save_logs(folder: Folder, out: Path) -> str:
    """Write console and logs to the results; return their path and last lines, in words."""
    out.mkdir(parents=True, exist_ok=True)
    console = folder.path / "console.txt"
    text = console.read_text(errors="replace") if console.exists() else ""
    text += folder.log("qemu") + folder.log("server")
    (out / "console.txt").write_text(text)
    last = "\n  ".join([line for line in text.splitlines() if line.strip()][-3:])
    return f". Its console is in {out / 'console.txt'}; its last lines:\n  {last}"
