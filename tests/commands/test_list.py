"""`gilscope list`: the catalogs, and what builds can run as one matrix that fits a terminal of 80 columns."""

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands import list_
from gilscope.toolkit.commands.list_ import matrix
from gilscope.toolkit.measure.abilities import Abilities

LABELS = ("3.15", "3.15t", "3.14", "3.14t", "3.13t", "3.13.0-pyenv", "3.12")
GIL = "the GIL is enabled in this process"


def abilities(label):
    return Abilities(
        runners={"threads": None, "free-threaded": None if label.endswith("t") else GIL, "processes-forkserver": None},
        modules={"numpy": None, "aiohttp": "ModuleNotFoundError" if label == "3.12" else None},
        isolated={"numpy": "it does not load there"},
    )


def test_matrix_has_a_row_for_each_model_and_a_line_for_each_reason():
    rows, reasons = matrix({label: abilities(label) for label in ("3.14", "3.14t", "3.12")})
    assert rows == [
        ("models",), (" threads", "yes", "yes", "yes"), (" free-threaded", "(1)", "yes", "(1)"),
        (" processes-forkserver", "yes", "yes", "yes"),
        ("modules",), (" numpy", "yes", "yes", "yes"), (" aiohttp", "yes", "yes", "(2)"),
        ("modules in subinterpreters",), (" numpy", "(3)", "(3)", "(3)"),
    ]
    assert reasons == [f"(1) 3.14, 3.12: {GIL}", "(2) 3.12: ModuleNotFoundError",
                       "(3) 3.14, 3.14t, 3.12: it does not load there"]


def test_module_that_was_not_asked_for_in_a_build_is_told_from_one_that_does_not_load():
    lacking = Abilities(runners={}, modules={"numpy": "not there"}, isolated={})
    rows, _ = matrix({"3.14": abilities("3.14"), "3.15": lacking})
    assert rows[-1][2] == "-"


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(list_, "_ask", lambda _builds: {label: abilities(label) for label in LABELS})


def test_seven_builds_fit_80_columns(asked, capsys):
    assert cli.main(["list", "--builds", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("free-threaded" in line for line in lines) == 1   # one table
    (row,) = [line.split() for line in lines if line.startswith(" free-threaded")]
    assert row[1:] == ["(1)", "yes", "(1)", "yes", "yes", "(1)", "(1)"]
    assert any(line.split() == [*LABELS[:5], "-pyenv", "3.12"] for line in lines)


def test_workloads_are_legible_at_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 80
    (primes,) = [line for line in shown if line.startswith(" primes ")]
    assert " t  count primes" in primes
    assert "a: has an async form for asyncio; t: takes --task-length" in " ".join(shown)
