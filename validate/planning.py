"""Plan the steps that build the cache of an experiment on the user's devices."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from validate.errors import ExperimentError
from validate.experiment import WAKE_UNIT_US, WRITECACHE, Cache, Experiment
from validate.sizes import MIB
from validate.steps import PREFIX, Step, uuid_of
from validate.steps.bcache import FormatBcache, StartBcache
from validate.steps.ends import ROOM, Occupy
from validate.steps.files import AttachLoop, CreateFile
from validate.steps.mapper import MapCache, MapLinear, MapWritecache
from validate.steps.opencas import LinkDevices, StartOpenCas, ZeroPart
from validate.steps.raid import MakeRaid

RAID_ROOM = 256 * MIB  # bytes that md may reserve on each member
MEMBERS_MIN = {0: 2, 1: 2, 5: 3, 6: 4, 10: 2}
REDUNDANT = {0: 0, 5: 1, 6: 2}  # members of redundancy, by level


@dataclass(frozen=True)
class Place:
    """A device, or a file to create, that the user specified."""

    path: str
    size_bytes: int = 0  # of a device
    identity: dict[str, str] | None = None  # of a device; None for a file


@dataclass
class Plan:
    """The steps in order: those below the cache, then the cache."""

    below: list[Step] = field(default_factory=list)
    cache: list[Step] = field(
        default_factory=list
    )  # the last step is undone and repeated for a warm restart
    slow_roles: list[str] = field(default_factory=list)
    fast_role: str = ""

    @property
    def steps(self) -> list[Step]:
        """All steps in order."""
        return self.below + self.cache


def plan(experiment: Experiment, slow: Sequence[Place], fast: Place | None, identity: str) -> Plan:
    """Return the plan; raise ExperimentError if devices and experiment do not fit."""
    steps = Plan()
    names = Names(identity)
    check_number(experiment, len(slow), fast is not None)
    _slow_side(steps, experiment, slow, names)
    if fast is not None:
        _fast_side(steps, experiment.cache, fast, names)
    steps.cache = _cache(experiment.cache, names)
    if experiment.cache.kind == "open-cas" and fast is not None and fast.identity is not None:
        if not _room(fast, experiment.fast_bytes):
            steps.cache.insert(0, ZeroPart(names.name("data"), names.uuid("data")))
    return steps


@dataclass(frozen=True)
class Names:
    """The names, UUIDs and tokens of a run."""

    identity: str

    def name(self, role: str) -> str:
        """Return the name of the mapped device or array with a role."""
        return f"{PREFIX}-{self.identity}-{role}"

    def uuid(self, role: str) -> str:
        """Return the UUID of a mapped device."""
        return f"{PREFIX.upper()}-{self.identity}-{role}"

    def token(self) -> str:
        """Return a new random token."""
        return secrets.token_hex(16)


def check_number(experiment: Experiment, slow: int, has_fast: bool) -> None:
    """Raise ExperimentError if there are too few or too many devices."""
    level, kind = experiment.origin.raid_level, experiment.cache.kind
    if kind == "page":
        raise ExperimentError(
            "a page cache is served by `hybridsim serve`: use `validate lab run`; on your devices, "
            "start it, run fio on its export, and compare its --json "
            "(hybridsim/docs/how-to/serve.md)"
        )
    if level is None and slow != 1:
        raise ExperimentError(f"{slow} slow devices: name one, or write raid = 5 in [origin]")
    if level is not None and slow < MEMBERS_MIN[level]:
        raise ExperimentError(
            f"{slow} slow devices: RAID {level} needs {MEMBERS_MIN[level]}: repeat --slow"
        )
    if kind != "none" and not experiment.cache.size_bytes:
        raise ExperimentError("the size of the cache is missing: write size in [cache]")
    if kind == "none" and has_fast:
        raise ExperimentError('kind = "none" uses no fast device: remove --fast')
    if kind != "none" and not has_fast:
        raise ExperimentError(f"{kind} needs a fast device: name one with --fast")


def slow_bytes(experiment: Experiment, number: int) -> int:
    """Return the bytes needed on each slow device; 0 if the experiment has no size."""
    level, size = experiment.origin.raid_level, experiment.origin.size_bytes
    if level is None or not size:
        return size
    usable = number / 2 if level == 10 else number - REDUNDANT[level] if level != 1 else 1
    chunk = experiment.origin.chunk_bytes
    return int(-(-size // usable) // chunk + 1) * chunk + RAID_ROOM


def _slow_side(steps: Plan, experiment: Experiment, slow: Sequence[Place], names: Names) -> None:
    size, level = experiment.origin.size_bytes, experiment.origin.raid_level
    is_mapped = bool(size) and (level is not None or size != _size_of(slow[0], size))
    top = "whole" if is_mapped else "origin"
    room = 0 if level is not None else _room(slow[0], size)
    if level is None:
        steps.slow_roles = [top]
        steps.below += _taken(slow[0], top, size, names, has_room=room > 0)
    else:
        steps.slow_roles = [f"slow{at}" for at in range(len(slow))]
        for place, role in zip(slow, steps.slow_roles):
            size_bytes = slow_bytes(experiment, len(slow))
            steps.below += _taken(place, role, size_bytes, names, has_room=False)
        steps.below.append(
            MakeRaid(
                names.name("array"), uuid_of(names.identity), level,
                experiment.origin.chunk_bytes, tuple(steps.slow_roles), top,
            )
        )  # fmt: skip
    if is_mapped:
        steps.below.append(
            MapLinear(names.name("origin"), names.uuid("origin"), top, room, size, "origin")
        )


def _fast_side(steps: Plan, cache: Cache, fast: Place, names: Names) -> None:
    need = cache.metadata_bytes + cache.size_bytes
    # While a dm-writecache or Open CAS is removed, it writes; the part keeps the device from others
    # meanwhile.
    is_shared = bool(cache.metadata_bytes) or cache.kind in ("dm-writecache", "open-cas")
    is_mapped = is_shared or need != _size_of(fast, need)
    steps.fast_role = "fast" if is_mapped else "data"
    room = _room(fast, need)
    steps.below += _taken(fast, steps.fast_role, need, names, has_room=room > 0)
    parts = {
        "metadata": (room, cache.metadata_bytes),
        "data": (room + cache.metadata_bytes, cache.size_bytes),
    }
    if is_mapped:
        steps.below += [
            MapLinear(names.name(role), names.uuid(role), "fast", start, size, role)
            for role, (start, size) in parts.items()
            if size
        ]


def _size_of(place: Place, file_bytes: int) -> int:
    return place.size_bytes if place.identity is not None else file_bytes


def _room(place: Place, need_bytes: int) -> int:
    """Return the bytes to leave free at each end of a device; 0 for files or without room."""
    fits = place.identity is not None and place.size_bytes >= need_bytes + 2 * ROOM
    return ROOM if need_bytes and fits else 0


def _taken(place: Place, role: str, file_bytes: int, names: Names, *, has_room: bool) -> list[Step]:
    token = names.token()
    if place.identity is not None:
        uuid = uuid_of(names.identity)
        return [Occupy(place.path, role, place.identity, token, uuid, has_room)]
    return [CreateFile(place.path, file_bytes, token), AttachLoop(place.path, role, token)]


def _cache(cache: Cache, names: Names) -> list[Step]:
    if cache.kind == "dm-cache":
        return [
            MapCache(
                names.name("cached"), names.uuid("cached"), cache.mode, cache.policy,
                cache.block_bytes, cache.migration_threshold_sectors, "cached",
            )
        ]  # fmt: skip
    if cache.kind == "dm-writecache":
        name, uuid = names.name("cached"), names.uuid("cached")
        return [MapWritecache(name, uuid, cache.block_bytes, writecache_options(cache), "cached")]
    if cache.kind == "open-cas":
        prefix = names.name("cas")
        return [
            LinkDevices(prefix),
            StartOpenCas(
                prefix, cache.programs, cache.mode, cache.block_bytes,
                open_cas_parameters(cache), "cached",
            ),
        ]  # fmt: skip
    if cache.kind == "bcache":
        uuid = uuid_of(names.identity)
        settings, of_set = bcache_settings(cache)
        return [
            FormatBcache(uuid, cache.bucket_bytes, cache.policy),
            StartBcache(uuid, settings, of_set, "cached"),
        ]
    return []


def open_cas_parameters(cache: Cache) -> tuple[str, ...]:
    """Return what is set by casadm: texts of a name and its options."""
    cleaning = cache.cleaning or "alru"
    unit_us = WAKE_UNIT_US.get(cleaning, 1)
    wake_up = None if cache.wake_up_us is None else cache.wake_up_us // unit_us
    cutoff = cache.sequential_cutoff_bytes
    options: dict[str, dict[str, object]] = {
        "promotion": {"policy": cache.promotion},
        "promotion-nhit": {
            "threshold": cache.insertion_threshold,
            "trigger": cache.trigger_threshold_percent,
        },
        "cleaning": {"policy": cache.cleaning},
        f"cleaning-{cleaning}": {
            "wake-up": wake_up,
            "staleness-time": cache.staleness_time_s,
            "flush-max-buffers": cache.flush_max_buffers,
            "activity-threshold": cache.activity_threshold_ms,
        },
        "seq-cutoff": {
            "threshold": None if cutoff is None else cutoff >> 10,
            "policy": cache.sequential_cutoff_policy,
        },
    }
    texts = []
    for name, values in options.items():
        words = [word for key, value in _texts(values).items() for word in (f"--{key}", value)]
        texts += [" ".join([name, *words])] if words else []
    return tuple(texts)


def writecache_options(cache: Cache) -> tuple[str, ...]:
    """Return the optional arguments of a dm-writecache's table: names and values in turn."""
    values = {word: getattr(cache, name) for word, name in WRITECACHE.items()}
    return tuple(word for pair in _texts(values).items() for word in pair)


def bcache_settings(cache: Cache) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of the cached device and those of its set, by path in sysfs."""
    of_device = {
        "cache_mode": cache.mode,
        "sequential_cutoff": cache.sequential_cutoff_bytes,
        "writeback_percent": cache.writeback_percent,
        "writeback_delay": cache.writeback_delay_s,
    }
    of_set = {
        "congested_read_threshold_us": cache.congested_read_us,
        "congested_write_threshold_us": cache.congested_write_us,
        "cache0/cache_replacement_policy": cache.policy,
    }
    return _texts(of_device), _texts(of_set)


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
