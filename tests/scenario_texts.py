"""Random scenario files as users write them: any table, any key, any notation of a number.

All are valid: contradictory values are not drawn.  The same seed gives the same text.
"""

from __future__ import annotations

from random import Random
from typing import Any

from scenario_drives import GIB, KIB, MIB, MS, US, Drives, Table
from toml_texts import Writer

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.scenario.backing import KINDS, Kind
from hybridsim.storage import catalog


def scenario_text(number: int | str) -> str:
    """Return the scenario file of a seed."""
    rng = Random(f"scenario {number}")
    return Writer(rng).text(Drawn(rng).scenario())


def survives_a_loss(kind: Kind) -> bool:
    """Return whether arrays of a kind survive the loss of a member."""
    return kind.copies != 1 or kind.parities > 0


class Drawn(Drives):
    """Tables with consistent values."""

    def scenario(self) -> Table:
        tables = {
            "seed": self.rng.choice([0, 1, 7, 2**63 - 1]),
            "host": self.host(),
            "replay": self.replay(),
            "price": self.price(),
        }
        if self.rng.random() < 0.15:  # overrides of a preset must be consistent with it
            return {"preset": self.rng.choice(catalog.systems()), **self.some(tables)}
        whole = self.some(tables | {"backing": self.backing(), "cache": self.cache()}, 0.8)
        return whole | ({"event": self.events(whole)} if self.rng.random() < 0.2 else {})

    def events(self, tables: Table) -> list[Table]:
        """Return events that can happen to a machine, in any order."""
        backing = tables.get("backing", {"kind": "raid5", "members": 4})
        kind = tables.get("cache", {}).get("kind", "page")
        events: list[Table] = [{"at": self.time(0, MS), "backup": self.rate(10**6, 3 * 10**9)}]
        restarts = kind in ("dm-cache", "bcache", "dm-writecache")
        if restarts or kind == "none":
            how = {"reboot": self.rng.choice(["clean", "unclean"]), "at": self.time(0, 10**9)}
            events.append(how | self.some({"down": self.time(0, 60 * 10**9)}))
        if kind != "none":
            last = {"detach": True} if restarts and self.yes() else {"ssd": "dies"}
            events.append({"at": self.time(2 * 10**9, 3600 * 10**9), **last})
        about = KINDS[str(backing["kind"]).replace("raid0", "stripe")]
        if survives_a_loss(about) and not {"failed", "rebuild"} & backing.keys():
            member = self.rng.randrange(backing["members"])
            fails = {"at": self.time(0, 10**9), "disk": "fails"}
            events.append(fails | ({"member": member} if member or self.yes() else {}))
            pace = {"min": self.rate(10**6, 10**3), "max": self.rate(10**8, 10**6)}
            events.append({"at": self.time(2 * 10**9), "rebuild": True, **self.some(pace)})
        self.rng.shuffle(events)
        return events

    def host(self) -> Table:
        return self.some(
            {
                "max_iops": self.rng.choice([1, 23_500, 10**9]),
                "max_bandwidth": self.rate(10**6, 3 * 10**9, 1),
                "overhead": self.time(0, 17_000, MS),
                "hold": self.time(0, 120_000, MS),
                "hold_from": self.rng.choice([1, 5, 10**6]),
                "hold_within": self.time(0, 300_000, MS),
            }
        )

    def replay(self) -> Table:
        return self.some(
            {
                "mode": self.rng.choice(["auto", "open", "closed", "think"]),
                "speed": self.rng.choice([1, 1.0, 0.001, 2.5, 1e6]),
                "depth": self.rng.choice([1, 32, 65_536]),
            }
        )

    def price(self) -> Table:
        return {
            "date": self.rng.choice(["2026-11", 'the "first"', "März\t\\ \x7f", ""]),
            "hdd_per_gb": self.rng.choice([0, 0.02, 1e-9]),
            "ssd_per_gb": self.rng.choice([0, 0.08, 12]),
            "currency": self.rng.choice(["USD", "€", "'"]),
        }

    def backing(self) -> Table:
        drive, kind_of_drive = self.drive("backing")
        kind = self.rng.choice([*KINDS, "raid0"])
        about = KINDS["stripe" if kind == "raid0" else kind]
        members = 1 if kind == "single" else self.rng.randint(about.min_members, 8)
        chunk = self.rng.choice([16, 64, 65, 128]) * KIB
        layout = self.rng.choice(["near", "far", "offset"]) if kind == "raid10" else "near"
        optional = {
            "chunk": self.size(chunk),
            "capacity": self.rng.choice(["trace", "drive", self.size(40 * GIB, 7 * GIB + 512)]),
            "layout": layout,
            "rmw_level": self.rng.randint(0, 2),
            "write_cache": self.rng.choice(["drive", "off"]),
            "queue_depth": self.rng.choice([0, 1, 65_536]),
            "path_latency": self.time(0, 300 * US),
            "age_limit": self.time(0, MS, 60 * 10**9),
            "stroke": "short" if kind_of_drive == "hdd" and self.yes() else "full",
            "drive": drive,
            "controller": self.controller(),
            **self.scheduler(kind_of_drive),
        }
        table = {"kind": kind, "members": members, **self.some(optional)}
        table |= self.lost(about, members)
        if table.get("stroke") == "short":  # it must fit
            table["capacity"] = "drive"
        if "controller" in table:  # its lines divide a chunk
            table["chunk"] = self.size(64 * KIB, 128 * KIB)
        throttles = ["auto", "off"]
        if members == 1 and "controller" not in table:
            throttles.append(self.time(2 * MS, 75 * MS))
        return table | self.some({"writeback_throttle": self.rng.choice(throttles)})

    def scheduler(self, kind_of_drive: str) -> Table:
        scheduler = self.rng.choice(["ncq", "sptf", "sstf", "clook", "fcfs"])
        if kind_of_drive != "hdd" and scheduler != "fcfs":
            scheduler = "ncq"
        if scheduler == "fcfs":
            return {"scheduler": "fcfs", "window": 1} if self.yes() else {}
        return {"scheduler": scheduler, "window": self.rng.choice([1, 4, 1024])}

    def lost(self, about: Any, members: int) -> Table:
        """Return members that an array can lose."""
        if not survives_a_loss(about) or self.rng.random() < 0.7:
            return {}
        table: Table = {}
        gone = self.rng.randrange(members)
        if self.yes():
            table["failed"] = [gone]
        else:
            pace = {"min": self.rate(10**6, 10**3), "max": self.rate(10**8, 10**6)}
            table["rebuild"] = {"member": gone, **self.some(pace)}
        return table

    def controller(self) -> Table:
        high = self.rng.randint(2, 100)
        window = self.rng.choice([64 * KIB, MIB, 4 * MIB])
        marks = {"high_water": f"{high}%", "low_water": self.share(0, high - 1)}
        return self.some(
            {
                "read_memory": self.size(0, 8 * MIB, 128 * MIB),
                "window": self.size(window),
                "read_ahead": self.size(0, 1, 4 * MIB),
                "sequential_after": self.rng.choice([1, 3, 65_536]),
                "streams": self.rng.choice([1, 32, 1024]),
                "write_memory": self.size(0, 16 * KIB, 48 * MIB),
                "line": self.size(512, 4096, 16 * KIB),
                "protected": self.yes(),
                "oldest_first_above": self.share(0, 100),
                "idle": self.time(0, 100 * MS),
                "max_destages": self.rng.choice([1, 64, 4096]),
                "latency": self.time(0, 50 * US),
                "rate": self.rate(10**9, 333_333_333),
            }
        ) | (marks if self.yes() else {})

    # Caches.

    def cache(self) -> Table:
        kinds = {
            "none": self.pages,
            "page": self.pages,
            "bcache": self.bcache,
            "dm-cache": self.dm_cache,
            "dm-writecache": self.writecache,
            "open-cas": self.open_cas,
        }
        kind = self.rng.choice(["page", *kinds])
        tier = {
            "size": self.rng.choice(["10%", "0.5 %", "250%", self.size(GIB, 3 * GIB // 2 + 512)]),
            "members": self.rng.choice([1, 2, 64]),
            "chunk": self.size(64 * KIB, 512, 65 * KIB),
            "drive": self.drive("cache")[0],
        }
        table = kinds[kind]() | self.some(tier)
        return table if kind == "page" and self.yes() else {"kind": kind, **table}

    def pages(self) -> Table:
        low, high = sorted(self.rng.sample(range(1, 101), 2))
        table = self.some(
            {
                "page": self.size(512, 4096, 64 * KIB, 65 * KIB, MIB),
                "mode": self.rng.choice(
                    ["read-only", "write-around", "write-through", "write-back"]
                ),
                "admission": self.rng.choice([*ADMISSION]),
                "touches": self.rng.choice([1, 2, 255]),
                "probability": self.share(1, 100),
                "request_max": self.size(0, 64 * KIB),
                "replacement": self.rng.choice([*REPLACEMENT]),
                "write_price": self.rng.choice([0, 0.5, 1000, 1e-9]),
                "write_budget": self.rng.choice(["500GB/day", "1 DWPD", "0.3dwpd", "5%", "1TB/d"]),
                "sequential_cutoff": self.size(0, MIB),
                "max_fills": self.rng.choice([1, 8, 65_536]),
                "fill": self.rng.choice(["re-read", "piggyback"]),
                "fill_when": self.rng.choice(["background", "foreground"]),
                "fill_piece": self.size(0, 512, 64 * KIB),
                "fill_rate": self.rate(10**6, 10**9),
                "sub_page": self.yes(),
                "discards": self.yes(),
                "clean_idle": self.time(0, 10**9),
                "clean_order": self.rng.choice(["oldest", "elevator"]),
                "clean_merge": self.size(0, 512 * KIB),
                "max_cleans": self.rng.choice([1, 8, 64]),
                "clean_rate": self.rate(10**6, 10**9),
                "preload_idle": self.time(100 * US, 20 * MS),
                "preload_chunk": self.size(0, MIB, 256 * MIB),
                "preload_gap": self.size(0, 256 * KIB),
                "preload_reads": self.rng.choice([1, 4, 64]),
                "preload_rate": self.rate(1, 50 * 10**6),
            }
        )
        if self.yes():
            table |= {"dirty_high": f"{high}%", "dirty_low": f"{low}%"}
            table |= {"clean_above": self.share(0, low)}
        return table

    def bcache(self) -> Table:
        return self.some(
            {
                "bucket": self.rng.choice(["auto", self.size(4096, 64 * KIB, MIB)]),
                "block": self.size(512, 4096),
                "mode": self.rng.choice(["writethrough", "write-back", "writearound", "none"]),
                "replacement": self.rng.choice(["lru", "fifo", "random"]),
                "sequential_cutoff": self.size(0, 4 * MIB),
                "congested_read": self.time(0, 2 * MS),
                "congested_write": self.time(0, 20 * MS),
                "writeback_percent": self.rng.choice([0, 10, 40]),
                "writeback_delay": self.time(0, 30 * 10**9),
                "kernel": self.rng.choice(["6.1", "6.12"]),
                "gc_nodes": self.rng.randint(1, 100),
            }
        )

    def dm_cache(self) -> Table:
        return self.some(
            {
                "block": self.rng.choice(["auto", self.size(32 * KIB, 96 * KIB, MIB)]),
                "mode": self.rng.choice(["writethrough", "write-back", "passthrough"]),
                "policy": "smq",
                "migration_threshold": self.rng.choice(["auto", self.size(512, MIB)]),
                "worker_delay": self.time(0, 10**7),
            }
        )

    def writecache(self) -> Table:
        low, high = sorted(self.rng.sample(range(101), 2))
        marks = {"high_watermark": f"{high}%", "low_watermark": f"{low}%"}
        return self.some(
            {
                "block": self.size(512, 1024, 4096),
                "pause_writeback": self.time(0, 3 * 10**9),
                "pass_time": self.time(0, 10**7),
                "autocommit_blocks": self.rng.choice([1, 65_536]),
                "autocommit_time": self.time(1, 10**9),
            }
        ) | (marks if self.yes() else {})

    def open_cas(self) -> Table:
        return self.some(
            {
                "line": self.size(4 * KIB, 8 * KIB, 64 * KIB),
                "mode": self.rng.choice(["wt", "wb", "wa", "wi", "wo", "pt", "write-back"]),
                "promotion": self.rng.choice(["always", "nhit"]),
                "insertion_threshold": self.rng.choice([2, 3, 1000]),
                "trigger_threshold": self.share(0, 100),
                "sequential_cutoff_policy": self.rng.choice(["full", "always", "never"]),
                "sequential_cutoff": self.size(1024, MIB),
                "cleaning": self.rng.choice(["alru", "acp", "nop"]),
                "wake_up": self.rng.choice(["auto", "1ms", "20 s"]),
                "flush_max_buffers": self.rng.choice(["auto", 1, 10_000]),
                "staleness_time": self.time(0, 120 * 10**9),
                "activity_threshold": self.time(0, 10**10),
                "stats_interval": self.time(0, 10**10),
                "stats_start": self.time(0, 10**10),
                "queues": self.rng.choice([1, 2, 1024]),
            }
        )
