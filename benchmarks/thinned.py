"""Coverage of the errors that `mrc` states for thinned captures: ten traces at 1, 3 and 10 %.

    HYBRIDSIM_DATA=shared/data python benchmarks/thinned.py [NAME ...]

Each trace is thinned with six seeds at each rate; the miss ratio of LRU at 2 to 40 % of the pages
is compared with that of all requests.  Caches of fewer than 8 pages in the sample are left out.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np

from hybridsim import Trace, miss_ratio_curve
from hybridsim.foundation.errors import UsageError
from hybridsim.studies.record_thinned import thin
from hybridsim.traces.thinned.thinner import Settings

DATA = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "traces"
DEMO = Path(__file__).parents[1] / "traces/demo/rocksdb_mixgraph.blktrace.0.zst"
TRACES = {  # path or workload, bytes of a region
    "wsrch": (str(DATA / "wsrch-small.trace"), 1 << 16),
    "tpcc": (str(DATA / "tpcc-small.trace"), 1 << 16),
    "cloudPhysics": (str(DATA / "cloudPhysicsIO.vscsi.zst"), 1 << 16),
    "rocksdb": (str(DEMO), 1 << 16),
    "OLTP": (str(DATA / "OLTP.lis.zst"), 1 << 12),
    "P2": (str(DATA / "P2.lis.zst"), 1 << 12),
    "zipf0.9": ("gen:zipf,theta=0.9,requests=1M,span=64GiB,rate=500", 1 << 20),
    "zipf1.1": ("gen:zipf,theta=1.1,requests=1M,span=64GiB,rate=500", 1 << 20),
    "hot": ("gen:hot-spot,requests=1M,span=32GiB,hot=5%,rate=500,every=5m", 1 << 20),
    "random": ("gen:random,requests=1M,span=8GiB,rate=500", 1 << 20),
}
RATES, SEEDS, SHARES = (0.01, 0.03, 0.1), 6, (0.02, 0.05, 0.1, 0.2, 0.4)


def main() -> None:
    """Print for each trace how many estimates lie within their errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *TRACES], metavar="NAME")
    names = parser.parse_args().names
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.thin"
        for name in names or TRACES:
            trace, region = Trace.read(TRACES[name][0]), TRACES[name][1]
            whole = miss_ratio_curve(trace)
            sizes = [max(int(whole.distinct * share), 1) for share in SHARES]
            off, errors, refused = [], [], 0
            for rate in RATES:
                fitting = [size for size in sizes if size * rate >= 8]
                for seed in range(SEEDS if fitting else 0):
                    thin(trace, path, Settings(rate=rate, region_bytes=region, seed=seed))
                    try:
                        curve = miss_ratio_curve(Trace.read(path), sizes=fitting)
                    except UsageError:
                        refused += 1
                        continue
                    truth = [whole.at(int(size)) for size in curve.pages]
                    off += np.abs(curve.miss_ratio - truth).tolist()
                    errors += curve.error.tolist()
            inside = int((np.array(off) <= np.array(errors)).sum())
            print(
                f"{name:14}{inside:>4} of {len(off):<4} median error {np.median(errors):.3f}, "
                f"median difference {np.median(off):.3f}, refused {refused}",
                flush=True,
            )


if __name__ == "__main__":
    main()
