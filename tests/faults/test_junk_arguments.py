"""Command lines that make no sense: a sentence and exit code 2, no traceback, and no file that was not asked for."""

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.run.request import make_selection, make_settings
from tests.faults.calling import CHOSEN, call, draw, everything_below, faults_of
from tests.faults.junk import junk, spelled

BATCH, BATCHES = 50, 40   # 2,000 cases; the first batches every time
WHOLE = ("report", "compare", "list_")   # commands that read at most; of others the parser and the checks of options
MAY_WRITE = ("--json", "--markdown", "--publish")


@pytest.fixture
def harmless(monkeypatch, tmp_path):
    """Let no command begin what junk may happen to ask for, and let none write but in a folder of its own."""
    real = cli._run

    def run(args):
        if args.run.__module__ == cli.__name__:   # --version
            return real(args)
        command = args.run.__module__.split(".")[3]
        if command not in WHOLE:
            args.run = lambda asked: only_checked(command, asked)
        return real(args)

    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(cli, "_run", run)
    home = tmp_path / "home"
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):   # where gilscope may keep what it needs
        monkeypatch.setenv(name, str(tmp_path / "own"))
    for name in ("HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(home))
    home.mkdir()
    return tmp_path


def left_in(folder):
    return everything_below(folder / "here") | everything_below(folder / "home")


def only_checked(command, args):
    if command == "run":
        make_selection(args)
        make_settings(args)
    return 0


@pytest.mark.newest
@pytest.mark.parametrize("batch", [*range(4), *(
    pytest.param(batch, marks=pytest.mark.nightly) for batch in range(4, BATCHES))])
def test_junk_is_refused_in_a_sentence(batch, harmless):
    wrong = []
    for number in range(BATCH):
        words = junk(draw("junk", batch, number))
        before = left_in(harmless)
        called = call(*words)
        found = [*faults_of(called)]
        if not any(each.startswith(MAY_WRITE) for each in words) and left_in(harmless) != before:
            found.append(f"it left {sorted(left_in(harmless).keys() - before.keys())}")
        wrong += [f"{spelled(words)}: {each}" for each in found]
    assert not wrong, f"seed {CHOSEN}\n" + "\n".join(wrong)
