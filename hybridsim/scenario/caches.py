"""The kinds of cache that a scenario may have.  A new kind is one file and one line here."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from hybridsim.scenario.bcache import BcacheTable
from hybridsim.scenario.cache import Cache
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.writecache import WritecacheTable

CacheTable = (
    Cache  # fixed pages
    | BcacheTable
    | DmCacheTable
    | OpenCasTable
    | WritecacheTable
)
AnyCache = Annotated[CacheTable, Field(discriminator="kind")]
CACHE_TABLES = get_args(CacheTable)
CACHE_KINDS: tuple[str, ...] = tuple(
    kind for table in CACHE_TABLES for kind in get_args(table.model_fields["kind"].annotation)
)
