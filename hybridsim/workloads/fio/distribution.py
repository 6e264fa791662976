"""random_distribution and file_service_type: the choice of blocks and of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.pattern import Distribution, Pattern, Service
from hybridsim.workloads.fio.reader import Reader


class Served(NamedTuple):
    """The order in which a job accesses its files."""

    service: Service = Service.ROUNDROBIN
    requests: int = 1
    shape: float = 0.0


SERVICES = {
    "roundrobin": Service.ROUNDROBIN,
    "sequential": Service.SEQUENTIAL,
    "random": Service.RANDOM,
    "zipf": Service.ZIPF,
    "pareto": Service.PARETO,
    "normal": Service.NORMAL,
    "gauss": Service.NORMAL,
}
SHAPES = {Service.ZIPF: "1.1", Service.PARETO: "0.2", Service.NORMAL: "0"}


def served(reader: Reader) -> Served:
    """Return file_service_type: the order, with its number of requests or its shape."""

    def parse(text: str) -> Served:
        kind, _, rest = text.partition(":")
        if kind not in SERVICES:
            raise ValueError(f"{text}: unknown service type; use {', '.join(SERVICES)}")
        service = SERVICES[kind]
        if service not in SHAPES:
            return Served(service, max(1, options.plain(rest or "1")))
        shape = options.decimal(rest.partition(":")[0] or str(SHAPES[service]))
        if ":" in rest:
            raise ValueError(f"{text}: a center is supported only in random_distribution")
        _check(kind, shape)
        return Served(service, 1, shape)

    return reader.read("file_service_type", parse, Served())


def _check(kind: str, shape: float) -> None:
    """Refuse the shapes that fio refuses."""
    if kind == "zipf" and shape == 1:
        raise ValueError("zipf:1 is not defined; use zipf:0.999 or zipf:1.001")
    if kind == "pareto" and not 0 < shape < 1:
        raise ValueError(f"pareto:{shape:g}: must be more than 0 and less than 1")
    if kind in ("normal", "gauss") and not 0 <= shape < 100:
        raise ValueError(f"{kind}:{shape:g}: the deviation must be 0 to 99 percent")


def distributed(reader: Reader, pattern: Pattern) -> Pattern:
    """Return the pattern with random_distribution applied."""

    def parse(text: str) -> Pattern:
        kind, _, rest = text.partition(":")
        shapes = {
            "zipf": (Distribution.ZIPF, "1.1"),
            "pareto": (Distribution.PARETO, "0.2"),
            "normal": (Distribution.NORMAL, "0"),
        }
        if kind == "random":
            return pattern
        if kind in shapes:
            which, default = shapes[kind]
            shape, _, center = (rest or default).partition(":")
            number, middle = options.decimal(shape), options.decimal(center or "0")
            _check(kind, number)
            if not 0 <= middle <= 1:
                raise ValueError(f"{text}: the center must be 0 to 1")
            return replace(
                pattern,
                distribution=which,
                shape=number,
                center=middle if center else None,
            )
        if kind not in ("zoned", "zoned_abs"):
            names = "random, zipf, pareto, normal, zoned or zoned_abs"
            raise ValueError(f"{text}: unknown distribution; use {names}")
        is_percent = kind == "zoned"
        if "," in rest:
            raise ValueError(
                f"{text}: zones by direction: fio 3.33 itself refuses them, whatever its manual "
                "says; use one list of zones"
            )
        zones = _zones(rest, is_percent)
        which = Distribution.ZONED if is_percent else Distribution.ZONED_ABS
        return replace(pattern, distribution=which, zones=(zones,) * 3)

    return reader.read("random_distribution", parse, pattern)


def _filled(percents: Sequence[str]) -> list[int]:
    """Return the percents; empty ones share the remainder equally."""
    # As in fio, digits after a point are cut off, and a share of 0 is one that is left out.
    specified = [int(options.decimal(each or "0")) or None for each in percents]
    rest = max(0, 100 - sum(each or 0 for each in specified))
    if specified == [None]:
        return [0]  # as in fio: the one zone is its first block
    return [rest // specified.count(None) if each is None else each for each in specified]


def _zones(text: str, is_percent: bool) -> tuple[tuple[int, int], ...]:
    parts = [part.split("/") for part in text.split(":") if part]
    parts = [[*part, ""][:2] for part in parts]
    if not parts:
        raise ValueError(f"{text!r} is not a list of zones; expected for example 60/10:40/90")
    if is_percent:
        sizes = _filled([size for _, size in parts])
        zones = [(options.size(share), size) for (share, _), size in zip(parts, sizes)]
    else:
        zones = [(options.plain(share), options.size(size)) for share, size in parts]
    if sum(share for share, _ in zones) != 100:
        raise ValueError(f"{text!r}: the shares of accesses must add up to 100")
    if is_percent and sum(size for _, size in zones) > 100:
        raise ValueError(f"{text!r}: the zones cover more than 100 percent of the file")
    return tuple(zones)
