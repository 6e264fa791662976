"""Sizes of the jobs of a recorded run that its job file does not specify."""

import pytest

from validate.twin import recorded

DEVICE_BYTES = 8 << 30
GLOBAL = "[global]\nfilename=/dev/dm-0\n"


def sizes(text):
    """The last size of each job, which is the one that counts; that of [global] without one."""
    result, common = {}, ""
    for section in recorded.sized(text, DEVICE_BYTES).split("[")[1:]:
        name, _, lines = section.partition("]")
        own = [line[5:] for line in lines.split() if line.startswith("size=")]
        common = own[-1] if name == "global" and own else common
        if name != "global":
            result[name] = own[-1] if own else common
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{GLOBAL}[a]\nrw=read\n[b]\n", {"a": 8 << 30, "b": 8 << 30}),
        (f"{GLOBAL}[a]\noffset=4g\n[b]\n", {"a": 4 << 30, "b": 8 << 30}),
        (f"{GLOBAL}[a]\noffset = 25%\n\n[b]\n", {"a": 6 << 30, "b": 8 << 30}),
        (f"{GLOBAL}offset=1g\n[a]\n[b]\noffset=2g\n", {"a": 7 << 30, "b": 6 << 30}),
        (f"{GLOBAL}[a]\noffset=4g\nsize=1g\n", {"a": "1g"}),
        (f"{GLOBAL}size=2g\n[a]\noffset=4g\n", {"a": "2g"}),
    ],
)
def test_a_job_without_a_size_goes_from_its_offset_to_the_end(text, expected):
    assert sizes(text) == {name: str(one) for name, one in expected.items()}
