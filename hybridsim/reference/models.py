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
from hybridsim.reference.admission import (
    Larc,
    Probabilistic,
    RejectFirst,
    RequestSize,
    SieveStore,
    TinyLfu,
)
from hybridsim.reference.clock import Clock
from hybridsim.reference.device import Device
from hybridsim.reference.flash import Flash
from hybridsim.reference.hdd import Hdd
from hybridsim.reference.policies import Admission, Fifo, Lru, Replacement, Touches
from hybridsim.reference.replacement import (
    Arc,
    Lfu,
    Lhd,
    Lirs,
    S3Fifo,
    SecondChance,
    Sieve,
    Slru,
    TwoQ,
    WTinyLfu,
)
from hybridsim.reference.ssd import Ssd
from hybridsim.reference.volume import Volume

# All but the learned policy, which may be both (`Machine.make_replacement`).  Functions of the
# pages of the cache, those of ADMISSION also of the policy's own parameters.
ADMISSION: dict[str, Callable[..., Admission]] = {
    "always": lambda pages: Touches(1),
    "touches": lambda pages, n: Touches(n),
    "reject-first": RejectFirst,
    "larc": Larc,
    "tinylfu": TinyLfu,
    "sievestore": SieveStore,
    "probabilistic": lambda pages, per_million, seed: Probabilistic(per_million, seed),
    "request-size": lambda pages, most_bytes: RequestSize(most_bytes),
}
REPLACEMENT: dict[str, Callable[[int], Replacement]] = {
    "fifo": lambda pages: Fifo(),
    "clock": lambda pages: SecondChance(),
    "lru": lambda pages: Lru(),
    "slru": Slru,
    "2q": TwoQ,
    "lfu": lambda pages: Lfu(),
    "arc": Arc,
    "lirs": Lirs,
    "s3-fifo": S3Fifo,
    "sieve": lambda pages: Sieve(),
    "lhd": Lhd,
    "w-tinylfu": WTinyLfu,
}
# Functions of clock, parameters and the number of the member in its array.
DEVICES: dict[type, Callable[[Clock, Any, int], Device]] = {
    HddParameters: lambda clock, parameters, member: Hdd(clock, parameters),
    SsdParameters: lambda clock, parameters, member: Ssd(clock, parameters),
    FlashParameters: lambda clock, parameters, member: Flash(clock, parameters),
    VolumeParameters: Volume,
}
