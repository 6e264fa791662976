"""Policies as specified by a caller: names of the registry, or classes, with parameters."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from hybridsim.caches.policies import ADMISSION, OFFLINE, REPLACEMENT
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint

REPLACEMENTS: Mapping[str, Any] = ChainMap(REPLACEMENT, OFFLINE)  # type: ignore[arg-type]
PARAMETERS = (  # of policies of the registry
    "touches", "probability_per_million", "seed", "request_max_bytes", "write_price_per_thousand",
)  # fmt: skip
Policy = str | Any  # a name of the registry, or a class that can be made like those there


def several(given: Any) -> list[Any]:
    """Return one or several things as a list."""
    return list(given) if type(given) in (list, tuple) else [given]  # an object may be a tuple


def admission_policy(given: Policy) -> tuple[str, Any]:
    """Return the name and the class of an admission policy; raise UsageError for none."""
    return _policy(given, "admission", ADMISSION)


def replacement_policy(given: Policy) -> tuple[str, Any]:
    """Return the name and the class of a replacement policy; raise UsageError for none."""
    return _policy(given, "replacement", REPLACEMENTS)


def check(parameters: Mapping[str, Any], admission: Any, replacement: Any) -> None:
    """Raise UsageError for what is no policy, one or several of each role.

    Also for a parameter that neither they nor any policy of the registry has: it is misspelt.
    """
    classes = [admission_policy(each)[1] for each in several(admission)]
    classes += [replacement_policy(each)[1] for each in several(replacement)]
    known = list(PARAMETERS)
    for cls in classes:
        known += [each for each in inspect.signature(cls.new).parameters if each not in known]
    for name in parameters.keys() - set(known):
        raise UsageError(f"no policy has a parameter {name!r}: {hint(name, known)}")


def _policy(given: Policy, role: str, known: Mapping[str, Any]) -> tuple[str, Any]:
    if isinstance(given, type):
        return given.__name__, given
    if not isinstance(given, str):
        kind = type(given).__name__
        raise UsageError(
            f"a policy is a name or a class; this is an object of {kind}: specify {kind}"
        )
    if given not in known:
        raise UsageError(f"no {role} policy {given!r}: {hint(given, known)}")
    return given, known[given]
