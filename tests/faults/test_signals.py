"""Signals at random moments of every command: nothing of it is left, nothing is shown that is not for the user."""

import os
import pty
import random
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gilscope.toolkit.commands.stopping import SIGNALLED
from tests.conformance.builds import ROOT
from tests.conftest import SEED
from tests.faults.commands import COMMANDS, LITTLE, Disturbed, needs_shim, project
from tests.measure.children import still_alive
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest

WAYS = {"INT": (signal.SIGINT,), "TERM": (signal.SIGTERM,), "HUP": (signal.SIGHUP,), "KILL": (signal.SIGKILL,),
        "double INT": (signal.SIGINT, signal.SIGINT)}
TRIES = 7 if os.environ.get("GILSCOPE_FAULTS") == "full" else 1    # 9 commands, 5 ways: 315 of them
CASES = [(name, way, number) for number in range(TRIES) for name in COMMANDS for way in WAYS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way", "number"), CASES)
def test_stopped_command_leaves_nothing(name, way, number, tmp_path):
    chance = random.Random(f"{SEED} {name} {way} {number}")
    command = COMMANDS[name]
    disturbed = Disturbed(project(tmp_path), command.words)
    disturbed.wait_until_it_handles_signals(signal.SIGHUP)
    # Also early, where imports take the time.
    time.sleep(chance.uniform(0, chance.choice((0.3, command.seconds))))
    group = chance.random() < 0.5
    for each in WAYS[way]:
        disturbed.send(each, group=group)
        time.sleep(chance.uniform(0, 0.2) if len(WAYS[way]) > 1 else 0)
    code = disturbed.process.wait(PATIENCE)
    said = disturbed.said()
    # A program's own traceback is the program's, as is what Python says of a Ctrl-C that meets its start.
    assert ("/toolkit/" if command.runs else "Traceback") not in said, said
    stopped = {SIGNALLED + WAYS[way][0], -WAYS[way][0]}
    # Python alone ends so, too, if a signal meets its start, or a second one its end.
    if command.runs and ("Fatal Python error: init_" in said or "lost sys.stderr" in said):
        stopped.add(1)
    assert code in stopped | command.codes, said
    if way == "KILL":      # whoever is killed cannot clean up: the next one does
        assert Disturbed(tmp_path, ("report",), disturbed.temporary).process.wait(PATIENCE) == 0
    assert not disturbed.left(), said
    disturbed.temporary.rmdir()


READY = """
    import os, time
    print("ready", os.getpid(), flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("command", ["race", "gil"])
def test_program_ends_with_the_terminal_whose_session_gilscope_leads(command, tmp_path):
    needs_shim(command)
    (tmp_path / "program.py").write_text(textwrap.dedent(READY))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(sys.executable, [sys.executable, "-m", "gilscope", command, "program.py"],
                  {**os.environ, "PYTHONPATH": str(ROOT)})
    said = b""
    while b"\n" not in said.partition(b"ready")[2]:
        said += os.read(terminal, 4096)
    program = int(said.partition(b"ready")[2].split()[0])
    os.close(terminal)
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline
        time.sleep(0.01)   # polled: waiting for it has no limit
    assert os.waitstatus_to_exitcode(ended[1]) == SIGNALLED + signal.SIGHUP
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_who_ignores_a_signal_is_not_stopped_by_it(number, tmp_path):
    disturbed = Disturbed(tmp_path, COMMANDS["report"].words, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    disturbed.wait_until_it_handles_signals(signal.SIGTERM)
    disturbed.send(number)
    assert disturbed.process.wait(PATIENCE) == 0
    disturbed.temporary.rmdir()


HANGS = """
    import multiprocessing, time

    def work(number):
        if multiprocessing.parent_process():
            open(number, "w").close()
            time.sleep(600)
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["processes-spawn", "processes-forkserver"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_semaphores_of_a_hanging_cell_go(model, how, tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(HANGS))
    disturbed = Disturbed(tmp_path, ("run", "mine:work", "--payload", "'began'", "--tasks", "2", "--models", model,
                                     "--label", "one", *LITTLE))
    while not (tmp_path / "began").exists():
        assert disturbed.process.poll() is None, disturbed.said()
        time.sleep(0.01)   # polled: a worker's worker tells nobody else
    there = list(Path("/dev/shm").glob(f"sem.gilscope-*-{disturbed.process.pid}-*"))
    disturbed.send(how)
    disturbed.process.wait(PATIENCE)
    if how == signal.SIGKILL:
        assert not still_alive(disturbed.mark)
        assert list(disturbed.temporary.iterdir())
        assert Disturbed(tmp_path, ("list",), disturbed.temporary).process.wait(PATIENCE) == 0
    assert there
    assert not disturbed.left()
    disturbed.temporary.rmdir()
