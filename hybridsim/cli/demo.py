"""`hybridsim demo`: a replay of a real capture that ships with hybridsim."""

from __future__ import annotations

from hybridsim.cli.arguments import Outputs, command, outputs
from hybridsim.cli.running import run


@command("hybridsim demo", "hybridsim demo --json demo.json --html demo.html")
def demo(out: Outputs = outputs("json too", "html", "details")) -> None:
    """Replay a real capture of a database with an SSD cache and without.

    The capture is from a key-value store (RocksDB) with random reads around a hot spot; see
    traces/README.md.  It is replayed with its recorded think times.
    """
    from hybridsim.scenario import Scenario
    from hybridsim.traces.example import CAPTURE, SITE, demo_file
    from hybridsim.traces.trace import Trace

    run(Trace.read(demo_file(CAPTURE)), Scenario.load(demo_file(SITE)), out)
