"""Serve a volume with a cache from its devices: claims, the cache, clients, an orderly end."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import IO, Any

from hybridsim.engine.serving import Decisions
from hybridsim.foundation.errors import DeviceError, UsageError
from hybridsim.foundation.units import human_size
from hybridsim.foundation.writing import write_text
from hybridsim.scenario import Cache, Scenario
from hybridsim.scenario.building import Place, page_cache
from hybridsim.serving import claims, nbd
from hybridsim.serving.cache import Device, Figures, Medium, ServedCache
from hybridsim.serving.generations import DATA_FROM, Generations
from hybridsim.serving.server import Server, listen_tcp, listen_unix
from hybridsim.traces.formats.requests_csv import HEADER, LETTERS

SLOTS = 256  # requests in progress
PAGES_MIN = 8
SETTINGS = (  # what else decides, as a scenario names it
    "touches", "probability", "request_max", "write_price", "write_budget", "sequential_cutoff",
    "max_fills", "fill", "fill_when", "fill_rate",
)  # fmt: skip
MODES = ("read-only", "write-around", "write-through")


@dataclass(frozen=True)
class Setting:
    """What is to be served, and how."""

    slow: str
    fast: str
    site: Scenario  # its cache: page, policy, mode
    state: Path  # folder
    socket: Path | None
    port: int | None
    threads: int = 16
    direct: bool = False  # files past the kernel's page cache
    erase: str | None = None
    record: str | None = None  # CSV file of the requests
    json_file: str | None = None
    every_s: float = 10.0
    apart: bool = False  # the data of a read follow after the head of its answer


@dataclass
class Ready:
    """A cache that serves."""

    uri: str
    volume_bytes: int
    cache_bytes: int
    pages_warm: int
    why_empty: str
    fill: str  # how a missed page is read, by the word of the table
    figures: Figures
    is_closed: bool = False  # whether the next start can keep the pages


def checked(table: Any) -> Cache:
    """Return the table `cache` of a scenario; raise UsageError if it cannot be served."""
    if not isinstance(table, Cache) or table.kind != "page":
        raise UsageError("serve has the page cache only: specify --set cache.kind=page")
    if table.mode not in MODES:
        raise UsageError(
            f"mode {table.mode}: serve keeps only clean copies on the SSD: specify one of "
            + ", ".join(MODES)
        )
    for name, is_set in (
        ("sub_page", table.sub_page),
        ("discards", table.discards),
        ("fill_piece", table.fill_piece_bytes not in (0, table.page_bytes)),
    ):  # fmt: skip
        if is_set:
            raise UsageError(f"cache.{name} cannot be served: leave it out")
    return table


@contextlib.contextmanager
def served(setting: Setting) -> Iterator[Ready]:
    """Serve until the end of the block; raises HybridsimError if that is not possible.

    An error within the block, too, ends it in order.
    """
    table = checked(setting.site.cache)
    with contextlib.ExitStack() as stack:
        slow = _claimed(setting.slow, setting.direct)
        stack.callback(slow.release)
        fast = _claimed(setting.fast, setting.direct)
        stack.callback(fast.release)
        claims.all_different(slow, fast)
        block = max(slow.block_bytes, fast.block_bytes)
        if table.page_bytes % block:
            raise UsageError(f"--page {table.page_bytes}: must be a multiple of {block} bytes here")
        pages = (fast.size_bytes - DATA_FROM) // table.page_bytes
        if pages < PAGES_MIN:
            least = human_size(DATA_FROM + PAGES_MIN * table.page_bytes)
            raise DeviceError(f"{fast.path}: has {human_size(fast.size_bytes)}; at least {least}")
        volume_bytes = slow.size_bytes // block * block
        kept_if = {"page_bytes": table.page_bytes, "pages": pages, "volume_bytes": volume_bytes,
                   "admission": table.admission, "replacement": table.replacement}  # fmt: skip
        generations = Generations(fast, setting.state, kept_if)
        generations.check_replaceable(setting.erase)
        if slow.why_unknown or fast.why_unknown:
            time.sleep(nbd.SETTLES_S)
        listener = _listener(setting)
        stack.callback(listener.close)
        warm, why_empty = generations.kept(slow)
        cache = page_cache(table, Place(pages, volume_bytes, setting.site.seed, warm))
        decisions = Decisions(cache, volume_bytes, SLOTS, nbd.LONGEST_BYTES)
        generations.open()
        media = Medium(slow), Medium(fast, DATA_FROM)
        served_cache = ServedCache(decisions, *media, SLOTS, setting.threads)
        served_cache.figures.pages_warm = len(warm.kept)
        export = nbd.Export(volume_bytes, block_bytes=block, can_zero=False, is_shared=True)
        record = stack.enter_context(_recorder(setting.record))
        server = Server(served_cache, export, listener, record, setting.apart)
        uri = f"nbd://127.0.0.1:{listener.getsockname()[1]}"
        if setting.socket:
            uri = f"nbd+unix:///?socket={setting.socket}"
            stack.callback(setting.socket.unlink, missing_ok=True)
        ready = Ready(uri, volume_bytes, pages * table.page_bytes, len(warm.kept), why_empty,
                      table.fill, served_cache.figures)  # fmt: skip
        server.start()
        try:
            yield ready
        finally:
            server.stop()
            served_cache.drain()
            if not served_cache.figures.is_detached:
                with contextlib.suppress(OSError, UsageError):
                    generations.close(decisions.cache, slow)
                    ready.is_closed = True


def run(setting: Setting, stop: Event, show: Callable[[Ready], None]) -> Ready:
    """Serve until `stop` is set; write the figures meanwhile and at the end."""
    what = {"slow": setting.slow, "fast": setting.fast, "cache": _described(setting.site)}

    def write() -> None:
        if setting.json_file:
            text = json.dumps(ready.figures.document(what), indent=1)
            write_text(setting.json_file, text + "\n")

    with served(setting) as ready:
        show(ready)
        while not stop.wait(setting.every_s):
            write()
    write()
    return ready


def _described(site: Scenario) -> dict[str, Any]:
    table = checked(site.cache)
    values = table.model_dump(by_alias=True, exclude_none=True)
    settings = {name: values[name] for name in SETTINGS if name in values}
    return {"kind": "page", "page_bytes": table.page_bytes, "mode": table.mode,
            "admission": table.admission, "replacement": table.replacement,
            "settings": settings}  # fmt: skip


def _claimed(name: str, direct: bool) -> Device:
    return nbd.open_export(name) if nbd.is_uri(name) else claims.claim(name, direct)


def _listener(setting: Setting) -> Any:
    return listen_tcp(setting.port) if setting.port is not None else listen_unix(setting.socket)  # type: ignore[arg-type]


@contextlib.contextmanager
def _recorder(path: str | None) -> Iterator[Callable[[int, int, int], None] | None]:
    """Yield a function that appends a request to a CSV file of `hybridsim trace convert`."""
    if path is None:
        yield None
        return
    begin_ns, lock = time.monotonic_ns(), Lock()
    try:
        file: IO[str] = open(path, "w", encoding="ascii")  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"--record {path}: {error.strerror}") from None

    def record(op: int, offset: int, length: int) -> None:
        with lock:
            now_ns = time.monotonic_ns() - begin_ns
            file.write(f"{now_ns},{LETTERS[op]},{offset},{length},,\n")  # type: ignore[index]

    with file:
        file.write(HEADER + "\n")
        yield record
