"""Compare the results of two commits bit for bit.

    python benchmarks/identical.py REVISION [--other REVISION]

Runs every command that writes JSON on the traces of this repository, in a checkout of REVISION and
in the working tree (or a second revision), and compares what they write.  What names the code
itself, or depends on the time of day, is left out: the version, the seconds a run took.  Exit code
1 if a document differs; each difference is printed with its key.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEMO = "traces/demo/rocksdb_mixgraph.blktrace.0.zst"
SPLIT = "traces/blktrace/loop_raw_split_discard_flush"
RANDRW = "traces/blktrace/loop_ext4_mqdl_randrw"
SMQ, BCACHE = "traces/array/dmcache-smq.csv.zst", "traces/array/bcache.csv.zst"
CAPTURES = sorted(path.parent for path in (ROOT / "traces/blktrace").glob("*/requests.csv.zst"))
KINDS = {
    "page": "page",
    "bcache": "bcache",
    "dmcache": "dm-cache",
    "writecache": "dm-writecache",
    "opencas": "open-cas",
}
FIO = "--preset digitalocean-volume --name=a --rw=randrw --direct=1 --ioengine=libaio"
ZIPF = "gen:zipf,requests=3000,span=64MiB"
SITE = "--scenario traces/demo/site.toml"

# name: words of the command; {} is the file that it writes its JSON to, - where it prints it
COMMANDS = {
    "demo": "replay {demo} {site} --json {out}",
    "think": "replay {demo} --mode think --json {out}",
    **{kind: f"replay {{demo}} --cache {name} --json {{out}}" for kind, name in KINDS.items()},
    "save": "replay {split} --save-cache {folder}/cache.npz --json {out}",
    "warm": "replay {split} --warm-start {split} --json {out}",
    "write-back": "replay {demo} --set cache.mode=write-back --json {out}",
    **{
        f"{verb}-{path.name}": f"trace {verb} --json {path.relative_to(ROOT)}"
        for path in CAPTURES
        for verb in ("info", "doctor")
    },
    "hits": "hits {demo} --cache-size 5%,10% --replacement lru,arc,s3-fifo,w-tinylfu,lirs --json",
    "hits-learned": "hits {demo} --admission learned --replacement learned --json",
    "mrc": "mrc {demo} --json",
    "mrc-sampled": "mrc {demo} --sample 25% --json",
    "why": "why {demo} --json",
    "advise": "advise {split} --json {out}",
    "size": "size {split} --require mean<1s --json {out}",
    "sweep": "sweep {split} --vary cache.size=5%,20% --workers 1 --folder {folder} --json {out}",
    "bench": "bench --preset digitalocean-volume --depths 1-4 --requests 200 --json {out}",
    "fio": "fio {fio} --iodepth=4 --size=1G --runtime=1s --output-format=json",
    "fit": "fit {randrw} --json",
    "fit-smq": "fit {smq} --json",
    "fit-bcache": "fit {bcache} --json",
    "workload": "replay {zipf} --json {out}",
    "mail": "replay traces/workloads/mail.toml --json {out}",
    "catalog": "catalog --json",
    "scenario": "scenario show",
    "scenario-demo": "scenario show traces/demo/site.toml",
}
WORDS = {
    "demo": DEMO, "split": SPLIT, "randrw": RANDRW, "smq": SMQ, "bcache": BCACHE, "fio": FIO,
    "zipf": ZIPF, "site": SITE,
}  # fmt: skip
VOLATILE = {"version", "wall_s", "seconds", "elapsed_s", "time", "timestamp", "timestamp_ms", "key"}


def outputs(tree: Path, names: list[str]) -> dict[str, Any]:
    """Run the commands in a tree; return what each wrote, by name."""
    result: dict[str, Any] = {}
    env = os.environ | {"PYTHONPATH": str(tree), "COLUMNS": "80"}
    program = "import sys; from hybridsim.cli import main; sys.exit(main())"
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.json"
            words = COMMANDS[name].format(out=out, folder=folder, **WORDS).split()
            words = [sys.executable, "-c", program, *words]
            done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True)
            text = out.read_text() if out.exists() else done.stdout
            try:
                result[name] = json.loads(text)
            except ValueError:
                result[name] = text + done.stderr.replace(folder, "")
            if done.returncode not in (0, 1, 4) or not text:
                result[name] = {"exit code": done.returncode, "stderr": done.stderr[-500:]}
                print(f"{name}: exit code {done.returncode}: {done.stderr[-300:]}", flush=True)
    return result


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield where two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if key in VOLATILE:
                continue
            if key not in one or key not in other:
                yield f"{path}.{key} is in one only"
            else:
                yield from differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other)):
            yield from differences(left, right, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {str(one)[:80]} != {str(other)[:80]}"


def main() -> None:
    """Compare two trees."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("revision")
    parser.add_argument("--other", help="instead of the working tree")
    parser.add_argument("--only", default="", help="commands whose names begin so")
    args = parser.parse_args()
    names = [name for name in COMMANDS if name.startswith(args.only)]
    with tempfile.TemporaryDirectory() as folder:
        trees = []
        for number, revision in enumerate([args.revision, args.other]):
            tree = ROOT
            if revision:
                tree = Path(folder) / str(number)
                git = ["git", "worktree", "add", "-q", "--detach", str(tree), revision]
                subprocess.run(git, cwd=ROOT, check=True)
            trees.append(tree)
        try:
            one, other = (outputs(tree, names) for tree in trees)
        finally:
            for tree in trees:
                if tree != ROOT:
                    subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT)
    apart = 0
    for name in names:
        result = list(differences(one[name], other[name]))
        apart += bool(result)
        print(f"{name:28} {'identical' if not result else f'{len(result)} differences'}")
        for line in result[:5]:
            print(f"    {line}")
    print(f"{len(names) - apart} of {len(names)} documents are identical")
    sys.exit(apart > 0)


if __name__ == "__main__":
    main()
