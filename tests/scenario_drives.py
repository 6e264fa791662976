"""Random drives as scenario tables: by name, by name with changes, or fully specified."""

from __future__ import annotations

from random import Random
from typing import Any

from hybridsim.storage import catalog

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
US, MS = 10**3, 10**6
Table = dict[str, Any]


class RandomValues:
    """Random values, each in one of the notations that a scenario accepts."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def size(self, *choices: int) -> int | str:
        number = self.rng.choice(choices)
        ways: list[int | str] = [number, str(number), f"{number}B", f" {number} b "]
        for unit, factor in (("KiB", KIB), ("k", KIB), ("MiB", MIB), ("g", GIB), ("kB", 1000)):
            if number * 4 % factor == 0 and number * 4 >= factor:
                ways.append(f"{number / factor:.2f}{unit}")
        return self.rng.choice(ways)

    def time(self, *choices: int) -> int | str:
        number = self.rng.choice(choices)
        if number == 0:
            return self.rng.choice([0, "0s", "0ns"])
        units = [("ns", 1), ("us", US), ("µs", US), ("ms", MS), ("s", 10**9), ("h", 3600 * 10**9)]
        ways = [f"{number // factor}{unit}" for unit, factor in units if number % factor == 0]
        return self.rng.choice([*ways, f"{number} ns"])

    def rate(self, *choices: int) -> str:
        number = self.rng.choice(choices)
        ways = [f"{number}B/s", f"{number} b/s"]
        ways += [f"{number // 10**6}MB/s"] if number % 10**6 == 0 else []
        return self.rng.choice(ways)

    def share(self, low: int, high: int) -> str:
        number = self.rng.randint(low, high)
        return self.rng.choice([f"{number}%", f"{number}.0%", f" {number} %"])

    def some(self, table: Table, share: float = 0.4) -> Table:
        """Return a random subset of the keys."""
        often = self.rng.choice([0.1, share, 1.0])
        return {key: value for key, value in table.items() if self.rng.random() < often}

    def yes(self) -> bool:
        return self.rng.random() < 0.5


class Drives(RandomValues):
    """Random drives with consistent values."""

    def drive(self, section: str) -> tuple[Any, str]:
        """Return a drive's scenario table and the kind of the drive."""
        kind = self.rng.choice(["hdd", "hdd", "ssd", "volume"] if section == "backing" else ["ssd"])
        kind = self.rng.choice([kind, kind, kind, "hdd", "ssd", "volume"])
        name = self.rng.choice(catalog.names(kind))
        way = self.rng.randrange(3)
        if way == 0:
            return name, kind
        if way == 1:
            return {"like": name, **self.changes(kind)}, kind
        own = {"hdd": self.disk, "ssd": self.ssd, "volume": self.volume}[kind]()
        usual = {"backing": "hdd", "cache": "ssd"}[section]
        return own if kind == usual and self.yes() else {"kind": kind, **own}, kind

    def changes(self, kind: str) -> Table:
        """Return values that any drive of a kind may have."""
        named = {"name": self.rng.choice(["", "mine", "a # b"])}
        if kind == "hdd":
            return self.some(named | self.buffers())
        return self.some(named | ({} if kind == "volume" else self.safety()))

    def buffers(self) -> Table:
        return {
            "write_settle": self.time(0, MS),
            "reacquire": self.time(0, 50 * US),
            "overhead": self.time(0, 150 * US),
            "hit_overhead": self.time(0, 70 * US),
            "write_overhead": self.time(0, 300 * US),
            "write_hit_overhead": self.time(0, 200 * US),
            "destage_rule": self.rng.choice(["shares", "turns"]),
            "overhead_after_write": self.time(0, 200 * US),
            "hit_overhead_after_write": self.time(0, 200 * US),
            "write_overhead_after_read": self.time(0, 200 * US),
            "write_hit_overhead_after_read": self.time(0, 200 * US),
            "interface": self.rate(10**8, 600 * 10**6),
            "window": self.rng.choice([1, 32, 1024]),
            "order": self.rng.choice(["sptf", "sstf", "clook"]),
            "aging": self.rng.choice([0, 0.006, 1]),
            "age_limit": self.time(0, 500 * MS),
            "read_ahead": self.size(0, 512, MIB),
            "segments": self.rng.choice([1, 8, 1024]),
            "read_behind": self.size(0, 64 * KIB),
            "read_tracks": self.yes(),
            "read_watermark": self.rng.choice([0, 50, 100]),
            "write_watermark": self.rng.choice([0, 50, 100]),
            "read_ahead_to": self.rng.choice(["buffer", "track", "next track"]),
            "segment": self.size(512, 64 * KIB, 2 * MIB),
            "write_cache": self.size(0, 4096, 8 * MIB),
            "write_cache_ranges": self.rng.choice([1, 256, 65_536]),
            "destage_window": self.rng.choice([1, 32, 65_536]),
            "flush": self.time(0, 5 * MS),
            "power_loss_protection": self.yes(),
            "media_cache": self.size(0, 0, MIB, 64 * MIB),
            "media_cache_at": self.rng.choice(["outer", "middle", "inner"]),
            "media_cache_padding": self.size(0, 4096, MIB),
            "media_cache_write": self.size(64 * KIB, MIB, 32 * MIB),
            "media_cache_entries": self.rng.choice([2, 16, 1000]),
            "media_cache_idle": self.time(0, 5 * MS, 1000 * MS),
            "media_cache_map": self.rng.choice([1, 100]),
            "media_cache_map_write": self.time(0, 24 * MS),
            "media_cache_piece": self.time(0, MS),
            "media_cache_run": self.size(0, 64 * KIB, GIB),
            "band": self.size(64 * KIB, MIB, 32 * MIB),
        }

    def disk(self) -> Table:
        cylinders = self.rng.choice([20_000, 10**6])
        needed: Table = {
            "rpm": self.rng.choice([1000, 5400, 7200, 15_000]),
            "capacity": self.size(50 * 10**9, 18 * 10**12, 8 * GIB),
        }
        way = self.rng.randrange(3)
        if way == 0:
            times = (self.time(800 * US), self.time(8_500 * US), self.time(18 * MS))
            needed |= dict(zip(("seek_track_to_track", "seek_average", "seek_full"), times))
        elif way == 1:
            needed["seek_table"] = [[1, 0.8], [cylinders // 2, 9], [cylinders - 1, 18.5]]
            needed |= self.some({"write_seek_table": [[1, 1.8], [cylinders - 1, 19.5]]})
        else:
            needed["seek_fit"] = [0.8, 0.05, 400, 2, 0.0005 if cylinders < 10**6 else 1e-5]
        if self.yes():
            needed["zones"] = [[0, 500, 30, 60], [cylinders // 2, 250.0, 20, 40.5]]
            needed["cylinders"] = cylinders
        else:
            needed |= {"rate_outer": self.rate(105 * 10**6), "rate_inner": self.rate(52 * 10**6)}
            needed |= {"cylinders": cylinders} if way else {}
        platters = {
            "surfaces": self.rng.choice([1, 4, 64]),
            "head_switch": self.time(0, 500 * US),
            "skew": self.time(0, MS),
        }
        return needed | self.changes("hdd") | self.some(platters)

    def safety(self) -> Table:
        return {
            "suspend": self.time(0, 20 * US),
            "power_loss_protection": self.yes(),
            "flush": self.time(0, 5 * MS),
            "blocking_flush": self.yes(),
            "fua": self.yes(),
            "volatile_cache": self.yes(),
            "endurance": self.size(10**15, 0),
        }

    def ssd(self) -> Table:
        read_rate, write_rate = self.rng.choice([(550, 500), (3500, 1000), (7000, 4000)])
        latency = self.rng.choice([80, 120]) * US
        read_iops = self.rng.choice([10_000, 90_000, 900_000])
        fastest = max(read_iops, read_rate * 10**6 // 4096)
        dies = fastest * latency // 10**9 + self.rng.choice([1, 32])
        program = self.rng.choice([4, 16]) * KIB
        needed = {
            "capacity": self.size(240 * 10**9, 2 * 10**12, 8 * GIB),
            "read_latency": self.time(latency),
            "write_latency": self.time(20 * US, 60 * US),
            "random_read_iops": read_iops,
            "random_write_iops": write_rate * 10**6 // 131_072 + self.rng.choice([0, 10_000]),
            "sequential_read": self.rate(read_rate * 10**6),
            "sequential_write": self.rate(write_rate * 10**6),
            "dies": dies,
        }
        optional = {
            "program_size": self.size(program),
            "read_step": self.time(0, 10 * US),
            "write_buffer": self.size(4096, 16 * MIB),
            "write_rule": self.rng.choice(["streams", "requests"]),
            "flash": self.flash(dies),
        }
        parts = self.changes("ssd") | self.some(optional)
        if "flash" not in parts:
            lanes = {"page_size": self.size(16 * KIB), "write_lanes": self.rng.choice([0, 1, 12])}
            lanes |= {"wake_up": self.time(0, 5 * US), "sleep_after": self.time(0, 20 * US)}
            parts |= self.some({"map_unit": self.size(16 * KIB)} | lanes)
        last = self.slc(write_rate) if self.yes() else self.some({"program_load": self.time(US)})
        return needed | parts | last

    def slc(self, write_rate: int) -> Table:
        """Return the keys of an SLC cache, of which three go together."""
        native = write_rate * 10**6 // 4
        slc = {
            "slc_cache": self.size(64 * KIB, GIB),
            "native_write": self.rate(native),
            "native_write_iops": native // 131_072 + self.rng.choice([0, 5000]),
        }
        refill = {"slc_refill": self.rate(400 * 10**6), "slc_idle": self.time(0, 5 * MS)}
        refill |= {"slc_dynamic": self.size(0, GIB), "filled": self.rng.choice(["0%", "40%"])}
        folded = {"folded_write": self.rate(native // 2)} if self.yes() else {}
        refill |= {"folding_write": self.rate(native // 2)}
        if folded and self.yes():
            folded |= {"erased": self.size(64 * KIB, GIB), "cell_bits": self.rng.choice([3, 4])}
        return slc | folded | self.some(refill)

    def flash(self, dies: int) -> Table:
        is_log = self.yes()
        return (
            {"gc": "simulated" if is_log else "closed-form"}
            | self.some(
                {
                    "over_provisioning": self.share(1, 300),
                    "placement": "in-turn"
                    if is_log
                    else self.rng.choice(["in-turn", "by-address"]),
                    "filled": self.yes(),
                    "channels": self.rng.randint(1, min(dies, 8)),
                    "channel_rate": self.rate(800 * 10**6),
                    "channel_command": self.time(0, 400),
                    "read": self.time(0, 50 * US),
                    "program": self.time(0, 200 * US),
                    "erase": self.time(0, 5 * MS),
                    "block": self.size(4 * MIB, 16 * KIB),
                },
                1.0,
            )
            | ({} if dies >= 8 else {"channels": 1})
        )

    def volume(self) -> Table:
        needed = {
            "capacity": self.size(10 * GIB, 10**12),
            "read_latency": self.rng.choice(
                ["500us", "p50 480us, p99 2ms", "p0.1 1ns,p99.9 1s", "p99 1s"]
            ),
            "write_latency": self.rng.choice(["1 ms", "p50   480us", "p25 1us, p75 1us"]),
        }
        latency = {"stream_rate": self.rate(10**9), "io_unit": self.size(0, 16 * KIB)}
        latency |= {"burst": self.time(0, 100 * MS), "random_unit": self.size(0, 64 * KIB)}
        stall = (
            {"stall": self.time(5 * MS), "stall_every": self.time(40 * MS)} if self.yes() else {}
        )
        for key in ("read_iops_max", "write_iops_max"):
            latency[key] = self.rng.choice([1, 3000, 10**9])
        for key in ("read_bandwidth_max", "write_bandwidth_max"):
            latency[key] = self.rate(10**6, 10**9)
        iops = {"iops": self.rng.choice([100, 3000]), "iops_per_gib": self.rng.choice([0, 3])}
        iops |= {"iops_min": self.rng.choice([0, 100]), "iops_max": 16_000}
        bandwidth = {"bandwidth": self.rate(125 * 10**6), "bandwidth_per_gib": self.rate(10**6)}
        bandwidth |= {"bandwidth_max": self.rate(10**9)}
        if self.yes():
            iops |= {"iops_peak": 20_000, "iops_credits": self.rng.choice([1, 5_400_000])}
            bandwidth |= {"bandwidth_peak": self.rate(2 * 10**9)}
            bandwidth |= {"bandwidth_credits": self.size(GIB, 1)}
            bandwidth |= {"bandwidth_peak_per_gib": self.rate(10**8, 10**10)}
            bandwidth |= {"bandwidth_credits_per_gib": self.size(0, GIB)}
        groups = [group for group in (iops, bandwidth) if self.yes()]
        needed |= stall
        return needed | self.some(latency) | {k: v for group in groups for k, v in group.items()}
