"""Policies specified by a caller: names in the registry, or classes, with parameters."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from hybridsim.caches.policies import ADMISSION, OFFLINE, REPLACEMENT
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint

REPLACEMENTS: Mapping[str, Any] = ChainMap(REPLACEMENT, OFFLINE)  # type: ignore[arg-type]
PARAMETERS = (  # of all policies in the registry
    "touches", "probability_per_million", "seed", "request_max_bytes", "write_price_per_thousand",
)  # fmt: skip
Policy = str | Any  # a name in the registry, or a class with the interface of those there


def several(one_or_more: Any) -> list[Any]:
    """Return a list or tuple as a list, and any other object as a list of it."""
    if type(one_or_more) in (list, tuple):  # not isinstance: a policy may be a named tuple
        return list(one_or_more)
    return [one_or_more]


def admission_policy(policy: Policy) -> tuple[str, Any]:
    """Return the name and the class of an admission policy; raise UsageError if unknown."""
    return _policy(policy, "admission", ADMISSION)


def replacement_policy(policy: Policy) -> tuple[str, Any]:
    """Return the name and the class of a replacement policy; raise UsageError if unknown."""
    return _policy(policy, "replacement", REPLACEMENTS)


def check(parameters: Mapping[str, Any], admission: Any, replacement: Any) -> None:
    """Raise UsageError for an unknown policy; there may be several of each role.

    Also for a parameter that neither these policies nor any policy in the registry accept.
    """
    classes = [admission_policy(each)[1] for each in several(admission)]
    classes += [replacement_policy(each)[1] for each in several(replacement)]
    known = list(PARAMETERS)
    for cls in classes:
        known += [each for each in inspect.signature(cls.new).parameters if each not in known]
    for name in parameters.keys() - set(known):
        raise UsageError(f"no policy has a parameter {name!r}: {hint(name, known)}")


def _policy(policy: Policy, role: str, known: Mapping[str, Any]) -> tuple[str, Any]:
    if isinstance(policy, type):
        return policy.__name__, policy
    if not isinstance(policy, str):
        kind = type(policy).__name__
        raise UsageError(
            f"a policy is a name or a class; this is an object of {kind}: specify {kind}"
        )
    if policy not in known:
        raise UsageError(f"no {role} policy {policy!r}: {hint(policy, known)}")
    return policy, known[policy]
