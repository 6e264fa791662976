"""How the program ends."""

import pytest

from hybridsim.answers.metrics import ConservationError
from hybridsim.cli import cli, main


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
