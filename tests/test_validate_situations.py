"""Run guest_validate.py in a guest: dangerous situations, as root, on a real kernel.

Software emulation takes minutes: run with -m long.  HYBRIDSIM_LAB=0 skips the tests, and so does a
system on which the lab is not available, with the reason.
"""

import io
import os
import re
import tarfile
from pathlib import Path

import pytest

from validate.errors import MissingError

ROOT = Path(__file__).parents[1]
GIB = 1 << 30
DEVICES = ("ADeviceThatSomebodyNeeds", "ADeviceThatIsNotMeant")
FAILURES = ("SomethingIsMissing", "TheRunFails", "ACacheThatExists", "AFile")
LIMIT_S = 1200

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.environ.get("HYBRIDSIM_LAB") == "0", reason="HYBRIDSIM_LAB=0: no guest is started"
    ),
]


def code():
    """Return a tar file with `validate` and guest_validate.py."""
    files = [ROOT / "tests/guest_validate.py", *(ROOT / "validate").glob("*.py")]
    for part in ("collecting", "commands", "steps"):
        files += (ROOT / "validate" / part).glob("*.py")
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path in files:
            tar.add(path, path.relative_to(ROOT))
    return stream.getvalue()


def run(classes, out):
    guest = pytest.importorskip("validate.lab.guest")
    names = [f"guest_validate.{name}" for name in classes]
    words = ["env", "PYTHONPATH=/root:/root/tests", "python3", "-m", "unittest", "-v", *names]
    try:
        done = guest.run(
            [["tar", "xf", "/job/code.tar", "-C", "/root"], words],
            [guest.Disk("slow", 2 * GIB), guest.Disk("fast", GIB)],
            out,
            files={"code.tar": code()},
            limit_s=LIMIT_S,
        )
    except MissingError as error:
        pytest.skip(f"the lab is not available here: {error}")
    output = (out / "01.out").read_text()
    assert done.codes == [0, 0], output
    return int(re.search(r"Ran (\d+) tests", output)[1])


def test_devices_in_use_or_not_meant_are_refused(tmp_path):
    assert run(DEVICES, tmp_path) >= 25


def test_failures_leave_nothing_behind(tmp_path):
    assert run(FAILURES, tmp_path) >= 20


def test_clean_after_a_kill_at_each_point(tmp_path):
    assert run(("Killed",), tmp_path) >= 8
