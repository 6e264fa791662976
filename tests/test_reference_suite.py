"""The suite of the reference documents: its commands are verbatim, and its checks are correct."""

import os
import shlex
from pathlib import Path

import pytest

from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.jobfile import read

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
DATA = Path(os.environ.get("HYBRIDSIM_DATA", Path(__file__).parents[2] / "shared" / "data"))
DOCUMENTS = DATA.parent / "seeds"


@pytest.fixture
def reference(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import reference

    return reference


def test_every_command_is_parsed(reference, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in reference.COMMANDS:
        if command.job_file:
            (tmp_path / command.job_file[0]).write_text(command.job_file[1])
        jobs = jobs_of(read(shlex.split(reference.joined(command.text))[1:]))
        assert len(jobs) == 1, command.text
        assert jobs[0].is_direct
        assert jobs[0].depth == int(jobs[0].specified["iodepth"])


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the reference documents are not at hand")
def test_every_command_occurs_in_a_document(reference):
    pages = [path.read_text() for path in DOCUMENTS.iterdir()]
    written = " ".join(" ".join(page.split()) for page in pages)
    for command in reference.COMMANDS:
        whole = command.job_file[1] if command.job_file else command.text
        assert " ".join(whole.split()) in written, whole


def test_figures_are_checked_by_tolerance_and_guarantees_by_bound(reference):
    command = reference.COMMANDS[0]
    near = reference.Published("IOPS", 100, "IOPS", 0.05)
    assert reference.compared(command, near, 104.9).is_met
    assert not reference.compared(command, near, 94).is_met
    promise = reference.Published("clat mean", 5, "ms", at_most=True)
    assert reference.compared(command, promise, 0.5).is_met
    assert not reference.compared(command, promise, 5.1).is_met
    figure = reference.Published("clat stddev", 900, "us", None)
    assert reference.compared(command, figure, 11).is_met is None


def test_no_figure_is_listed_twice(reference):
    """The result of a command is not a row of systems.py again."""
    import systems

    figures = [figure for system in systems.SYSTEMS for figure in system()]
    left = [figure for figure in figures if not reference.covered(figure)]
    assert 20 < len(left) < len(figures)
    assert not any(figure.system == "alibaba-8x-ultra" for figure in left)
    assert any(figure.load.depth == 4 for figure in left)


def test_every_basis_is_defined(reference):
    bases = {one.basis for command in reference.COMMANDS for one in command.figures}
    assert bases <= set(reference.BASES)
