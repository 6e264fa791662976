"""Run the commands of a job as root in the guest, and write their results to the result disk.

Each command's output goes to out/NN.out and, line by line, to the second serial line, on which the
agent also sends heartbeats to the host.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

OUT = Path("/tmp/out")
BEAT_S = 2


def main() -> None:
    """Run the job."""
    line = Path("/dev/ttyS1").open("w", buffering=1)  # noqa: SIM115
    lock = threading.Lock()

    def send(text: str) -> None:
        with lock:
            line.write(text + "\n")

    def beat() -> None:
        while True:
            send(f"LAB-BEAT {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}")
            time.sleep(BEAT_S)

    job = json.loads(Path("/job/job.json").read_text())
    send(f"LAB-UP {os.uname().release}")
    threading.Thread(target=beat, daemon=True).start()
    OUT.mkdir()
    by_serial = {}
    for disk in Path("/sys/block").iterdir():
        if (disk / "serial").exists():
            by_serial[(disk / "serial").read_text().strip()] = f"/dev/{disk.name}"
    places = {name: by_serial[f"lab-{name}"] for name in job["disks"]}
    places["out"] = str(OUT)
    environment = os.environ | {name.upper(): place for name, place in places.items()}
    codes = []
    for name in job["flat"]:
        queue = Path("/sys/block") / Path(places[name]).name / "queue"
        (queue / "rotational").write_text("0")
    for number, words in enumerate(job["commands"]):
        for name, place in places.items():
            words = [word.replace("{" + name + "}", place) for word in words]
        codes.append(run(number, words, environment, job["limit_s"], send))
        if codes[-1]:
            break
    (OUT / "codes.json").write_text(json.dumps(codes))
    (OUT / "dmesg.txt").write_bytes(subprocess.run(["dmesg"], capture_output=True).stdout)
    send("LAB-PACKING")
    with open(by_serial["lab-out"], "wb") as results:
        subprocess.run(["tar", "cf", "-", "-C", str(OUT), "."], stdout=results, check=True)
        os.fsync(results.fileno())
    send("LAB-RESULTS " + json.dumps(codes))


def run(
    number: int,
    words: list[str],
    environment: dict[str, str],
    limit_s: float,
    send: Callable[[str], None],
) -> int:
    """Run one command; return its exit code, 127 if it cannot be started."""
    send(f"LAB-RUN {number}")
    with open(OUT / f"{number:02d}.out", "w") as log:
        try:
            child = subprocess.Popen(
                words,
                cwd="/job",
                env=environment,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            send(f":{words[0]}: {error.strerror}")
            log.write(f"{words[0]}: {error.strerror}\n")
            return 127
        watch = threading.Timer(limit_s, child.kill)
        watch.start()
        assert child.stdout is not None
        for text in child.stdout:
            log.write(text)
            send(":" + text.rstrip("\n"))
        watch.cancel()
        return child.wait()


main()
