"""A headless Chromium, driven over WebDriver with the standard library only."""

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "" if CHROMIUM and DRIVER else "no chromium with its chromedriver is installed"


class Browser:
    """One window."""

    def __init__(self, address: str, session: str) -> None:
        self._at = f"{address}/session/{session}"

    def ask(self, path, data=None, method="POST"):
        return _ask(f"{self._at}/{path}", data, method)

    def open(self, path, width=1366, height=900, dark=False):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.devtools("Emulation.setEmulatedMedia", features=scheme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)
        self.ask("url", {"url": Path(path).absolute().as_uri()})

    def devtools(self, command, **parameters):
        return self.ask("goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script):
        return self.ask("execute/sync", {"script": script, "args": []})

    def screenshot(self, path, whole=True):
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        reply = self.devtools("Page.printToPDF", printBackground=True)
        Path(path).write_bytes(base64.b64decode(reply["data"]))

    def complaints(self):
        """Return the browser's console messages: errors and violations of the security policy."""
        return [each["message"] for each in self.ask("se/log", {"type": "browser"})]


@contextmanager
def browser():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait(address)
            chromium = {"binary": CHROMIUM, "args": [*SWITCHES, f"--user-data-dir={profile}"]}
            wanted = {"goog:chromeOptions": chromium, "goog:loggingPrefs": {"browser": "ALL"}}
            asked = {"capabilities": {"alwaysMatch": wanted}}
            window = Browser(address, _ask(f"{address}/session", asked)["sessionId"])
            yield window
            window.ask("", None, "DELETE")
        finally:
            driver.terminate()
            driver.wait()


def _wait(address):
    for _ in range(100):
        try:
            if _ask(f"{address}/status", None, "GET")["ready"]:
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    raise TimeoutError("chromedriver does not answer")


def _ask(url, data, method="POST"):
    body = json.dumps(data).encode() if data is not None else None
    asked = urllib.request.Request(url.rstrip("/"), body, method=method)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.loads(answer.read())["value"]
