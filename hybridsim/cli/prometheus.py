"""Figures for Prometheus over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from hybridsim.foundation.errors import UsageError

Address = tuple[str, int]


def address_of(listen: str) -> Address:
    """Return host and port of `--listen`; raise UsageError for anything else."""
    host, _, port = listen.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise UsageError(f"--listen {listen}: write HOST:PORT, such as 127.0.0.1:9100")
    return host.strip("[]") or "127.0.0.1", int(port)


def serving(address: Address, text: Callable[[], str]) -> Any:
    """Start a server of /metrics in a thread; raise UsageError for an address it cannot take.

    `text` returns the figures in Prometheus' text format.
    """
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            found = self.path.split("?")[0] == "/metrics"
            body = (text() if found else "see /metrics\n").encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: scrapes come every few seconds."""

    try:
        server = ThreadingHTTPServer(address, Handler)
    except OSError as error:
        host, port = address
        raise UsageError(f"--listen {host}:{port}: {error.strerror or error}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if address[1] == 0:
        click.echo(f"listening on port {server.server_port}", err=True)
    return server
