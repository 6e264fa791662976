"""One document of every kind that has a report, from synthetic runs."""

from functools import cache

import numpy as np
from fakes import SCENARIO, TRACE, Load, result
from test_bench import bench_of
from test_compare import job, put, warming
from test_size import sizing

from hybridsim.answers.result import plain
from hybridsim.requests.rows import Requests
from hybridsim.studies.compare import compare
from hybridsim.traces.summary import AddressMap

SECOND = 10**9
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028 ' \" & {{ 7 * 7 }}"
LOAD = Load(seconds=300, iops=200, hit_ratio=lambda share: 0.9 * (1 - np.exp(-share * 20)))


def requests(arrival_ns, offset_bytes, op):
    n = len(arrival_ns)
    known = {
        "arrival_ns": np.asarray(arrival_ns, np.int64),
        "offset_bytes": np.asarray(offset_bytes, np.int64),
        "op": np.asarray(op, np.uint8),
        "length_bytes": np.full(n, 4096, np.int64),
    }
    names = Requests.__annotations__
    return Requests(**{name: known.get(name, np.zeros(n, np.int64)) for name in names})


def address_map():
    rng = np.random.default_rng(1)
    addresses = AddressMap()
    offsets = rng.integers(0, 1 << 20, 500) * 4096
    addresses.add(
        requests(np.sort(rng.integers(0, 300 * SECOND, 500)), offsets, rng.integers(0, 2, 500))
    )
    return addresses.to_dict()


@cache
def replayed(mode="open", name=HOSTILE, pages=16384):
    trace = {**TRACE, "name": name, "format": "blktrace", "address_map": address_map()}
    more = {"cache_bytes": pages * 65536, "toml": "seed = 1", "cache_pages": pages}
    return result(LOAD, trace, {**SCENARIO, "mode": mode, **more})


def replay_document(**how):
    return plain(replayed(**how).to_dict())


def size_document():
    return plain(sizing(["hit>50%", "dwpd<100"]).to_dict())


def bench_document():
    return plain(bench_of(drift=-0.5).to_dict())


def compare_document(folder):
    for name, p99_ms, t90_s in (("real", 30, 20), ("simulated", 60, 24)):
        (folder / name).mkdir()
        put(folder / name / "fio.json", job(p99_ms=p99_ms))
        (folder / name / "x_iops.1.log").write_text(warming(60, t90_s))
    return compare(str(folder / "real"), str(folder / "simulated")).to_dict()


def all_documents(folder):
    return {
        "replay": replay_document(),
        "think": replay_document(mode="think"),
        "no cache": replay_document(pages=0),
        "size": size_document(),
        "bench": bench_document(),
        "compare": compare_document(folder),
    }
