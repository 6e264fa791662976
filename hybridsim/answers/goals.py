"""What a cache may be wanted for; judge.py says how each is measured."""

GOALS = ("time", "latency", "p99", "throughput", "disk-time")
