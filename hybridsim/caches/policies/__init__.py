"""Cache policies: admission decides which pages enter, replacement which page is evicted.

A policy is a state machine over page ids, created by `new(ids, pages, ...)` for a cache of `pages`
pages; `grown(ids)` returns it with room for more ids.

An admission policy has
    request(offset, length, write)      called for each request, before its pages
    consider(now, page, write, full)    a page is accessed: return whether to admit it if absent
    evicted(page)                       a page was evicted
A replacement policy has
    missed(page)     an absent page is about to be cached; `evict` for it may follow
    evict()          remove and return the victim, a page that is cached; -1 if none is
    admit(page)      the page is cached now, perhaps long after `missed`, perhaps never
    touch(page)      a cached page is accessed
    remove(page)     a cached page was removed, not by `evict`
A class may be both; one object then has both roles.  If it has only one of them, `new` gets
`admits` or `replaces` as False.  Any two policies can be limited by a write budget (budget.py).

A new policy is one file and one line here.  Methods that do nothing, a `remove` from `queues`, and
a `grown` that extends parts and the arrays named by `@by_page`, need not be written in a class with
the decorator `@policy` (defaults.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from hybridsim.foundation.errors import PolicyError
from hybridsim.foundation.registry import Registry

if TYPE_CHECKING:
    from hybridsim.caches.policies.learned import Learned
    from hybridsim.caches.policies.lru import LRU
    from hybridsim.caches.policies.touches import Touches

ADMISSION = Registry(
    {
        "always": "hybridsim.caches.policies.always:Always",
        "learned": "hybridsim.caches.policies.learned:Learned",
        "touches": "hybridsim.caches.policies.touches:Touches",
        "reject-first": "hybridsim.caches.policies.reject_first:RejectFirst",
        "larc": "hybridsim.caches.policies.larc:LARC",
        "tinylfu": "hybridsim.caches.policies.tinylfu:TinyLFU",
        "sievestore": "hybridsim.caches.policies.sievestore:SieveStore",
        "probabilistic": "hybridsim.caches.policies.probabilistic:Probabilistic",
        "request-size": "hybridsim.caches.policies.request_size:RequestSize",
    }
)
REPLACEMENT = Registry(
    {
        "fifo": "hybridsim.caches.policies.fifo:FIFO",
        "clock": "hybridsim.caches.policies.clock:CLOCK",
        "lru": "hybridsim.caches.policies.lru:LRU",
        "slru": "hybridsim.caches.policies.slru:SLRU",
        "2q": "hybridsim.caches.policies.two_q:TwoQ",
        "lfu": "hybridsim.caches.policies.lfu:LFU",
        "arc": "hybridsim.caches.policies.arc:ARC",
        "lirs": "hybridsim.caches.policies.lirs:LIRS",
        "s3-fifo": "hybridsim.caches.policies.s3_fifo:S3FIFO",
        "sieve": "hybridsim.caches.policies.sieve:SIEVE",
        "lhd": "hybridsim.caches.policies.lhd:LHD",
        "learned": "hybridsim.caches.policies.learned:Learned",
        "w-tinylfu": "hybridsim.caches.policies.w_tinylfu:WTinyLFU",
    }
)
OFFLINE = Registry(
    {"belady": "hybridsim.caches.policies.belady:Belady"}
)  # they need the future accesses, so they run only without devices

ADMISSION_METHODS = ("request", "consider", "evicted")
NO_VICTIM = -1
GROWN_FROM, GROWN_TO = 16, 64  # ids, when a policy is tried
REPLACEMENT_METHODS = ("missed", "admit", "touch", "remove", "evict")

__all__ = [
    "ADMISSION",
    "ADMISSION_METHODS",
    "LRU",
    "OFFLINE",
    "REPLACEMENT",
    "REPLACEMENT_METHODS",
    "Learned",
    "Touches",
    "make",
    "pair",
]


def reject_victim(
    replacement: Any, victim: int, page: int, number: int, access: str, cached: int
) -> NoReturn:
    """Raise PolicyError for a victim that the cache does not hold, chosen for `page`.

    Pages are named by their ids, which the policy sees; `number` is that of `page` in the trace,
    `access` says which access was to cache it, and `cached` pages were cached before.
    """
    replacement = getattr(replacement, "replacement", replacement)  # within a write budget
    what = f"page {victim}, which the cache does not hold"
    if victim == NO_VICTIM:
        what = f"no page ({NO_VICTIM} or None), though the cache holds pages"
    raise PolicyError(
        f"{type(replacement).__name__}.evict() returned {what} (to make room for page {page}, "
        f"after {cached} pages were cached; at {access}, page {number} of the trace): it must "
        "remove and return a page that admit() added and that was not removed since"
    )


def make(policy: Any, ids: int, pages: int, parameters: Mapping[str, Any]) -> Any:
    """Return a new policy with those of the parameters that its `new` accepts.

    Raises PolicyError if it is compiled, is not of this package, and its arrays do not grow.
    """
    wanted = inspect.signature(policy.new).parameters
    own = {key: parameters[key] for key in parameters if key in wanted}
    if issubclass(policy, tuple) and not policy.__module__.startswith(__name__):
        check_growth(policy, own)
    return policy.new(ids, pages, **own)


def check_growth(policy: Any, parameters: Mapping[str, Any]) -> None:
    """Raise PolicyError unless a compiled policy that has grown has arrays as large as a new one.

    Compiled code does not check its indices: a page beyond an array would end the process.
    """
    few, many = GROWN_FROM, GROWN_TO
    grown = policy.new(few, few, **parameters).grown(many)
    name, what = policy.__name__, f"{policy.__name__}.grown({many})"
    if type(grown) is not policy:
        raise PolicyError(f"{what} returned {type(grown).__name__}: it must return a {name}")
    for field, wanted in arrays_of(policy.new(many, few, **parameters)).items():
        found = arrays_of(grown)[field]
        if len(found) < len(wanted):
            raise PolicyError(
                f"{what}: {field} has room for {len(found)} ids, that of new({many}, {few}) for "
                f"{len(wanted)}: return self._replace({field}=longer(self.{field}, ids)) "
                "(hybridsim.foundation.arrays)"
            )


def arrays_of(policy: Any, within: str = "") -> dict[str, Any]:
    """Return the arrays of a compiled policy and of its parts, by the path of their field."""
    found: dict[str, Any] = {}
    for name, value in zip(policy._fields, policy):
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            found |= arrays_of(value, f"{within}{name}.")
        elif hasattr(value, "__len__"):
            found[within + name] = value
    return found


def pair(
    admission: Any, replacement: Any, ids: int, pages: int, parameters: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return an admission and a replacement policy; a class specified for both is one object.

    With a `write_budget` both are one object too (budget.py).
    """
    if admission is replacement:
        both = make(admission, ids, pages, parameters)
        policies = both, both
    else:
        policies = (
            make(admission, ids, pages, {**parameters, "replaces": False}),
            make(replacement, ids, pages, {**parameters, "admits": False}),
        )
    budget = parameters.get("write_budget")
    if budget is None or pages == 0:
        return policies
    from hybridsim.caches.policies.budget import Bucket, Budgeted

    bucket = Bucket.new(pages, budget.interval(pages), budget.burst(pages), budget.by_access)
    limited = Budgeted.new(*policies, bucket)
    return limited, limited


def __getattr__(name: str) -> Any:
    for family in (ADMISSION, REPLACEMENT, OFFLINE):
        try:
            return family.by_class(name)
        except AttributeError:
            continue
    raise AttributeError(f"module 'hybridsim.caches.policies' has no attribute {name!r}")
