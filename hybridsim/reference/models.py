"""The models by the names of what they model; a new model is one file and one line here.

A policy's name is that of scenarios; a device is found by the class of its parameters.
"""

from collections.abc import Callable
from typing import Any

from hybridsim.foundation.machine_parameters import (
    FlashParameters,
    HddParameters,
    SsdParameters,
    VolumeParameters,
)
from hybridsim.reference import policies
from hybridsim.reference.clock import Clock
from hybridsim.reference.device import Device
from hybridsim.reference.flash import Flash
from hybridsim.reference.hdd import Hdd
from hybridsim.reference.ssd import Ssd
from hybridsim.reference.volume import Volume

# All but the learned policy, which may be both (`Machine.make_replacement`).  Functions of the
# pages of the cache, those of ADMISSION also of the policy's own parameters.
ADMISSION: dict[str, Callable[..., policies.Admission]] = {
    "always": lambda pages: policies.Touches(1),
    "touches": lambda pages, n: policies.Touches(n),
    "reject-first": policies.RejectFirst,
    "larc": policies.Larc,
    "tinylfu": policies.TinyLfu,
    "sievestore": policies.SieveStore,
    "probabilistic": lambda pages, per_million, seed: policies.Probabilistic(per_million, seed),
    "request-size": lambda pages, most_bytes: policies.RequestSize(most_bytes),
}
REPLACEMENT: dict[str, Callable[[int], policies.Replacement]] = {
    "fifo": lambda pages: policies.Fifo(),
    "clock": lambda pages: policies.SecondChance(),
    "lru": lambda pages: policies.Lru(),
    "slru": policies.Slru,
    "2q": policies.TwoQ,
    "lfu": lambda pages: policies.Lfu(),
    "arc": policies.Arc,
    "lirs": policies.Lirs,
    "s3-fifo": policies.S3Fifo,
    "sieve": lambda pages: policies.Sieve(),
    "lhd": policies.Lhd,
    "w-tinylfu": policies.WTinyLfu,
}
# Functions of clock, parameters and the number of the member in its array.
DEVICES: dict[type, Callable[[Clock, Any, int], Device]] = {
    HddParameters: lambda clock, parameters, member: Hdd(clock, parameters),
    SsdParameters: lambda clock, parameters, member: Ssd(clock, parameters),
    FlashParameters: lambda clock, parameters, member: Flash(clock, parameters),
    VolumeParameters: Volume,
}
