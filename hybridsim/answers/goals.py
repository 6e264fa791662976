"""The goals of a cache; judge.py defines how each is measured."""

GOALS = ("time", "latency", "p99", "throughput", "disk-time")
