"""How the program begins and ends."""

import pytest
from click.testing import CliRunner

from hybridsim.answers.metrics import ConservationError
from hybridsim.cli import cli, main
from hybridsim.cli.arguments import argument, command, flag, joined, option
from hybridsim.foundation.units import parse_size


def test_a_fault_of_a_model_is_one_line_and_its_traceback_comes_with_debug(monkeypatch, capsys):
    def fail(**_):
        raise ConservationError("a request completed before it was issued")

    monkeypatch.setattr(cli, "main", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    shown = capsys.readouterr().err
    assert shown.startswith(
        "hybridsim: fault of a model (hybridsim --debug ... shows where): a req"
    )
    assert len(shown.splitlines()) == 1
    monkeypatch.setenv("HYBRIDSIM_DEBUG", "1")
    with pytest.raises(ConservationError):
        main()


def test_the_default_of_a_parameter_is_its_option_or_several_of_which_one_value_is_made():
    @command("hybridsim measure --size 1KiB")
    def measure(
        size: int = option("--size SIZE", "Size.", "4KiB", parse=parse_size),
        both: tuple = joined(dict, quick=flag("--quick", "Soon."), name=argument()),
    ) -> None:
        """Measure."""
        print(size, both)

    run = CliRunner().invoke
    assert run(measure, ["a"]).output == "4096 {'quick': False, 'name': 'a'}\n"
    assert run(measure, ["a", "--quick", "--size", "1k"]).output.startswith("1024 {'quick': True")
    assert str(run(measure, ["a", "--size", "x"]).exception).startswith("--size: ")
    assert "hybridsim measure --size 1KiB" in run(measure, ["--help"]).output
