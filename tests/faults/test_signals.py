"""Signals at every place of every command: nothing of it is left, nothing is shown that is not for the user."""

import os
import pty
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gilscope.toolkit.commands.stopping import SIGNALLED
from tests.conformance.builds import ROOT
from tests.faults.calling import draw
from tests.faults.commands import COMMANDS, LITTLE, Disturbed, needs_shim, project
from tests.measure.children import still_alive
from tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.newest

WAYS = {"INT": (signal.SIGINT,), "TERM": (signal.SIGTERM,), "HUP": (signal.SIGHUP,), "KILL": (signal.SIGKILL,),
        "double INT": (signal.SIGINT, signal.SIGINT)}
# Where a command is stopped, when it begins that function for the N-th time, and how.
POINTS = [
    ("run", "builds/find.py:find_builds", 1, "INT"),
    ("run", "measure/preparation.py:prepare", 1, "HUP"),
    ("run", "measure/trial.py:try_out", 1, "TERM"),
    ("run", "store/keeping.py:Store.create", 1, "TERM"),
    ("run", "measure/measured_process.py:MeasuredProcess.__init__", 6, "double INT"),   # some of a round have started
    ("run", "measure/measured_process.py:MeasuredProcess.send", 3, "INT"),
    ("run", "measure/measured_process.py:end_all", 4, "TERM"),
    ("run", "store/keeping.py:Store.save", 2, "KILL"),
    ("run", "store/header.py:replace_file", 3, "HUP"),
    ("race", "commands/race/command.py:run", 1, "TERM"),
    ("race", "commands/race/command.py:_report", 1, "INT"),
    ("gil", "commands/gil/command.py:run", 1, "HUP"),
    ("gil", "gil/diagnosis.py:diagnose", 1, "double INT"),
    ("experiment", "commands/experiment.py:_go_through", 1, "INT"),
    ("experiment", "measure/measured_process.py:end_all", 2, "KILL"),
    ("evaluate", "commands/evaluate.py:_targets", 1, "HUP"),
    ("evaluate", "processes/supervised.py:Supervised.__init__", 1, "TERM"),
    ("doctor", "commands/doctor/command.py:_targets", 1, "INT"),
    ("builds", "builds/inspection.py:inspect_all", 1, "TERM"),
    ("report", "commands/report/runs.py:load_runs", 1, "KILL"),
    ("compare", "commands/compare.py:_within", 1, "INT"),
]


@pytest.mark.parametrize(("name", "place", "number", "way"), [
    pytest.param(*point, marks=[pytest.mark.slow] * (COMMANDS[point[0]].seconds > 5)) for point in POINTS])
def test_command_that_is_stopped_at_a_point_leaves_nothing(name, place, number, way, tmp_path):
    signals = " ".join(str(int(each)) for each in WAYS[way])
    disturbed = Disturbed(project(tmp_path), COMMANDS[name].words, point=f"{place} {number} {signals}")
    code = disturbed.process.wait(PATIENCE)
    said = disturbed.said()
    assert "Traceback" not in said, said
    assert code == (-signal.SIGKILL if way == "KILL" else SIGNALLED + WAYS[way][0]), said
    assert_nothing_left(disturbed, way, said)


def assert_nothing_left(disturbed, way, said):
    if way == "KILL":      # whoever is killed cannot clean up: the next one does
        assert not still_alive(disturbed.mark)
        assert Disturbed(disturbed.folder, ("report",), disturbed.temporary).process.wait(PATIENCE) == 0
    assert not disturbed.left(), said
    disturbed.temporary.rmdir()


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "way", "number"), [
    (name, way, number) for number in range(7) for name in COMMANDS for way in WAYS])
def test_command_that_is_stopped_at_a_random_moment_leaves_nothing(name, way, number, tmp_path):
    chance = draw("stopped", name, way, number)
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
    assert_nothing_left(disturbed, way, said)


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
    ended = [(0, 0)]
    # Polled: waiting for it has no limit.
    assert wait_until(lambda: ended.append(os.waitpid(pid, os.WNOHANG)) or ended[-1] != (0, 0))
    assert os.waitstatus_to_exitcode(ended[-1][1]) == SIGNALLED + signal.SIGHUP
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


@pytest.mark.parametrize(("model", "how"), [
    ("processes-spawn", signal.SIGKILL), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("processes-spawn", signal.SIGTERM), ("processes-forkserver", signal.SIGKILL),
        ("processes-forkserver", signal.SIGTERM)))])
def test_semaphores_of_a_hanging_cell_go(model, how, tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(HANGS))
    disturbed = Disturbed(tmp_path, ("run", "mine:work", "--payload", "'began'", "--tasks", "2", "--models", model,
                                     "--label", "one", *LITTLE))
    assert wait_until(lambda: disturbed.process.poll() is not None or (tmp_path / "began").exists())
    assert disturbed.process.poll() is None, disturbed.said()
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
