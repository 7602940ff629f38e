"""The main job as a user runs it: in a folder of theirs, with real processes, killed and resumed."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import threading
import uuid

import pytest

from gilscope.toolkit.measure.run_status import read_status
from gilscope.toolkit.model import Cell
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.measure.children import MARK, USERCODE, busy_cores, gil_on, still_alive
from tests.patience import PATIENCE, wait_until


class Folder:
    """A user's folder, and `gilscope` called in it."""

    def __init__(self, path, temporary):
        self.path = path
        self.temporary = temporary   # what is killed cannot clean up after itself
        self.mark = uuid.uuid4().hex
        self.at = []   # words before a command: where it runs

    def start(self, *argv, streams=None, **environment):
        command = [*self.at, sys.executable, "-m", "gilscope", *argv]
        inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        return subprocess.Popen(
            command, cwd=self.path, text=True, start_new_session=True,
            **streams or {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
            env={**inherited, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), MARK: self.mark,
                 **environment})

    def call(self, *argv, **environment):
        with self.start(*argv, **environment) as started:
            out, err = started.communicate(timeout=PATIENCE)
        assert "Traceback" not in err, err
        return started.returncode, out, err

    def measure(self, *argv, label, **environment):
        """Call `gilscope run` with the host's Python as the only build, as little as a run can be."""
        return self.call("run", *self.little(*argv, label=label), **environment)

    def little(self, *argv, label):
        return [*argv, "--build", f"host={sys.executable}", "--quick", "--rounds", "2", "--workers", "2", "--label",
                label]

    def run(self, label):
        return load_run(self.path / "results" / label)

    def module(self, name, code):
        (self.path / f"{name}.py").write_text(textwrap.dedent(code))


@pytest.fixture
def folder(tmp_path, tmp_path_factory):
    made = Folder(tmp_path, tmp_path_factory.mktemp("temporary"))
    yield made
    assert not still_alive(made.mark)


def rounds_of(run):
    return {each.cell: [one.round for one in each.observations] for each in run.measurements}


def wait_for(path, command):
    """Wait until `path` is there; `command` must not end before."""
    assert wait_until(path.exists, command)


def test_run_prints_a_table_and_keeps_its_values(folder):
    code, out, err = folder.measure("noop", "--models", "threads,subinterpreters", "--seed", "5",
                                    "--status-file", "status.json", label="first")
    assert code == 0, err
    for words in ("noop", "serial", "threads", "host", "2 rounds", "speed-up over serial"):
        assert words in out
    assert "results in results/first" in err
    run = folder.run("first")
    assert (run.stopped, run.rounds_done, run.seed, run.failures) == ("rounds", 2, 5, ())
    assert set(rounds_of(run)) == set(run.cells)
    assert all(rounds == [0, 1] for rounds in rounds_of(run).values())
    status = read_status(folder.path / "status.json")
    assert (status.round, status.rounds, status.done, status.cells, status.error) == (2, 2, len(run.cells),
                                                                                      len(run.cells), "")
    serial = Cell(workload="noop", runner="serial", workers=1, build="host")
    assert {serial, Cell(workload="noop", runner="threads", workers=2, build="host")} <= set(run.cells)
    shown = subprocess.run([sys.executable, "-m", "pyperf", "show", "results/first/host.json"], cwd=folder.path,
                           capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert serial.name in shown.stdout

    assert folder.call("report", "first")[:2] == (0, out)   # all of it is derived from what is kept
    assert "Noise floor" in folder.call("report", "first", "--full")[1]
    code, listed, said = folder.call("report")
    assert (code, said) == (0, "")
    assert listed.splitlines()[2].startswith("first ")
    code, _, err = folder.measure("noop", label="first")
    assert code == 2
    assert "results/first exists already: choose another --label" in err
    code, _, err = folder.call("run", "--resume", "first")
    assert code == 2
    assert "first has its 2 rounds" in err


@pytest.mark.newest
def test_run_has_a_further_session(folder):
    assert folder.measure("noop", "--models", "threads", label="twice")[0] == 0
    code, out, err = folder.call("run", "--add-session", "twice")
    assert code == 0, err
    assert "session 2 of 2 of twice" in err
    run = folder.run("twice")
    assert [session.first_round for session in run.sessions] == [0, 2]
    assert set(map(tuple, rounds_of(run).values())) == {(0, 1, 2, 3)}
    assert {one.session for each in run.measurements for one in each.observations if one.round > 1} == {2}
    assert "4 rounds" in out


@pytest.mark.slow
@pytest.mark.newest
def test_sessions_begin_by_themselves_and_go_on_after_ctrl_c(folder):
    waiting = folder.start("run", *folder.little("noop", "--models", "serial", "--sessions", "2", "--every", "1h",
                                                 label="night"))
    lines = []
    while not any("starts at" in line for line in lines):
        lines.append(waiting.stderr.readline())
        assert lines[-1], lines
    assert folder.run("night").stopped == "rounds"   # nothing is open or locked
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=PATIENCE)
    assert "night has 1 of 2 sessions; to go on: gilscope run --resume night" in err
    header = json.loads((folder.path / "results/night/run.json").read_text())
    header["options"]["every"] = 0.5   # so that the next one is due
    (folder.path / "results/night/run.json").write_text(json.dumps(header))
    code, _, err = folder.call("run", "--resume", "night")
    assert code == 0, err
    assert len(folder.run("night").sessions) == 2
    code, _, err = folder.call("run", "--resume", "night")
    assert (code, "night has its 4 rounds" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.newest
def test_run_that_is_complete_can_have_more_rounds(folder):
    assert folder.measure("noop", "--models", "serial", label="more")[0] == 0
    code, _, err = folder.call("run", "--resume", "more", "--rounds", "3")
    assert code == 0, err
    assert set(map(tuple, rounds_of(folder.run("more")).values())) == {(0, 1, 2)}


@pytest.mark.slow
def test_run_beside_busy_programs_stops_names_them_and_can_go_on(folder):
    folder.module("work", """
        def divisors(n):
            return sum(d for d in range(1, n) if n % d == 0)
    """)
    work = ("work:divisors", "--payload", "300000", "--tasks", "4", "--models", "processes-forkserver")
    with busy_cores() as name:
        code, out, err = folder.call("run", *work, "--build", f"host={sys.executable}", "--quick", "--workers", "2",
                                     "--rounds", "5", "--label", "busy", GILSCOPE_STARVED="")
    assert (code, out) == (3, ""), err
    before, after = re.findall(r"now: (.*)", err)   # before the first round, and at the end
    assert name in before
    assert name in after
    assert "gilscope run --resume busy --wait-quiet" in err
    assert err.endswith("other programs used the cores that the cells needed: the run was stopped\n")
    run = folder.run("busy")
    assert (run.stopped, run.rounds_done) == ("starved", 2)
    assert "starved" in folder.call("report", "busy")[1]
    code, _, err = folder.call("run", "--resume", "busy")   # as others may still be busy here, they do not stop it
    assert code == 0, err
    assert folder.run("busy").rounds_done == 5


def test_dry_run_writes_nothing(folder):
    code, out, _ = folder.call("run", "countdown", "--dry-run", "--build", f"host={sys.executable}", "--models",
                               "free-threaded,threads")
    assert code == 0
    assert "1 workload: countdown" in out
    assert ("not measured: " in out) == gil_on()   # a build without a GIL has `threads`, too, as the control
    assert list(folder.path.iterdir()) == []


@pytest.mark.newest
def test_user_function_needs_five_lines(folder):
    folder.module("mine", """
        def work(number):
            return sum(range(number))
        def payloads():
            return [100_000] * 4
    """)
    code, out, err = folder.measure("mine:work", "--payloads", "mine:payloads", "--models", "threads,processes-fork",
                                    label="mine")
    assert code == 0, err
    assert "mine:work" in out
    assert {cell.runner for cell in folder.run("mine").cells} == {"serial", "threads", "processes-fork"}


@pytest.mark.newest
def test_crash_of_one_model_costs_the_others_nothing(folder):
    folder.module("fragile", """
        import ctypes, threading
        def work(number):
            if threading.current_thread() is not threading.main_thread():
                print("last words", flush=True)
                ctypes.string_at(0)
            return number
    """)
    code, out, err = folder.measure("fragile:work", "--payload", "1", "--models", "threads,processes-fork",
                                    label="fragile")
    assert code == 3
    assert "crashed with SIGSEGV" in out
    assert "crashed with SIGSEGV" in err
    run = folder.run("fragile")
    assert {(failure.cell.runner, failure.kind) for failure in run.failures} == {("threads", "crash")}
    assert "last words" in run.failures[0].output
    measured = {each.cell.runner: len(each.observations) for each in run.measurements}
    assert measured == {"serial": 2, "processes-fork": 2}


@pytest.mark.newest
def test_wrong_result_is_a_failed_cell(folder):
    folder.module("wrong", """
        import threading
        def work(number):
            return number + (threading.current_thread() is not threading.main_thread())
        def check(results):
            assert results == [1], "not one"
    """)
    code, out, _ = folder.measure("wrong:work", "--payload", "1", "--tasks", "1", "--check", "wrong:check", "--models",
                                  "threads",
                                  label="wrong")
    assert code == 3
    assert "not one" in out
    assert {failure.kind for failure in folder.run("wrong").failures} == {"wrong-result"}


def test_function_that_raises_everywhere_is_refused_once_with_its_payload_and_place(folder):
    folder.module("bad", """
        def work(number):
            return 1 // number
    """)
    code, _, err = folder.measure("bad:work", "--payload", "0", "--models", "threads,processes-fork", label="bad")
    assert code == 2
    assert err.count("ZeroDivisionError") == 1
    assert "bad:work raises for payload 0 (of 16, counted from 0): 0\n  bad.py:3 in work  return 1 // number" in err
    assert not (folder.path / "results").exists()


@pytest.mark.parametrize(("name", "words"), [
    ("mine:missing", "mine has no 'missing'"), ("mine:square", "mine:square is a generator function"),
    ("mni:work", "there is no module 'mni'"),
])
def test_function_that_cannot_be_measured_is_refused_before_anything_is_kept(name, words, folder):
    folder.module("mine", "def square(number):\n    yield number * number\n")
    code, _, err = folder.measure(name, "--payload", "1", label="refused")
    assert code == 2
    assert words in err
    # On a slow machine, each of these steps takes many seconds before that sentence.
    begun, imported = err.index("looking for builds of CPython\n"), err.index(f"importing {name.partition(':')[0]} in ")
    assert begun < imported < err.index(words)
    assert not (folder.path / "results").exists()


@pytest.mark.newest
def test_module_named_as_ours_is_refused(folder):
    (folder.path / "code").mkdir()
    folder.module("code/gilscope", "def work(number):\n    return number\n")
    code, _, err = folder.measure("mine:work", "--payload", "1", "--path", "code", label="shadow")
    assert code == 2
    assert "has the name of gilscope itself" in err


@pytest.mark.newest
def test_results_that_cannot_be_written_are_said(folder):
    (folder.path / "results").touch()
    code, _, err = folder.measure("noop", "--models", "serial", label="nowhere")
    assert code == 2
    assert "cannot write results to" in err


def gated(folder, function="work"):
    return folder.start("run", *folder.little(f"gated:{function}", "--payloads", "gated:places", "--models", "threads",
                                              "--path", str(USERCODE), label="gated"), GATED_PLACE=str(folder.path))


@pytest.mark.newest
def test_killed_run_goes_on_where_it_was(folder):
    with gated(folder) as command:
        wait_for(folder.path / "waiting", command)
        command.kill()
        command.communicate()
    assert not still_alive(folder.mark)
    before = folder.run("gated")
    assert (before.rounds_done, before.stopped) == (1, "killed")
    (folder.path / "go").touch()
    code, out, err = folder.call("run", "--resume", "gated", GATED_PLACE=str(folder.path))
    assert code == 0, err
    assert "2 rounds" in out
    after = folder.run("gated")
    assert rounds_of(after) == {cell: [0, 1] for cell in before.cells}
    assert {each.cell: each.observations[0] for each in after.measurements} == {
        each.cell: each.observations[0] for each in before.measurements}


@pytest.mark.newest
def test_run_whose_answers_are_clear_goes_on_when_more_is_asked(folder):
    folder.measure("noop", "--models", "serial", label="clear")
    header = folder.path / "results" / "clear" / "run.json"
    fields = json.loads(header.read_text())
    header.write_text(json.dumps(fields | {
        "stopped": "answered", "answered": fields["cells"], "looks": 1, "rounds_planned": 9}))
    code, _, err = folder.call("run", "--resume", "clear")
    assert code == 2
    assert "every answer of clear is clear" in err
    code, out, err = folder.call("run", "--resume", "clear", "--resolution", "1%", "--rounds", "3")
    assert code == 0, err
    assert "3 rounds" in out
    run = folder.run("clear")
    assert (run.looks, run.answered, run.options["settings"]["resolution"]) == (1, (), 0.01)
    assert rounds_of(run) == {cell: [0, 1, 2] for cell in run.cells}


@pytest.mark.slow
@pytest.mark.newest
def test_run_killed_in_its_first_round_can_go_on(folder):
    with gated(folder, "wait_at_once") as command:
        wait_for(folder.path / "waiting", command)
        command.kill()
        command.communicate()
    (folder.path / "go").touch()
    code, _, err = folder.call("run", "--resume", "gated", GATED_PLACE=str(folder.path))
    assert code == 0, err
    assert set(map(tuple, rounds_of(folder.run("gated")).values())) == {(0, 1)}


@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_run_leaves_no_process_and_keeps_its_rounds(stop, folder):
    with gated(folder) as command:
        wait_for(folder.path / "waiting", command)
        command.send_signal(stop)
        out, err = command.communicate(timeout=PATIENCE)
    assert not still_alive(folder.mark)
    assert out == ""
    run = folder.run("gated")
    assert run.rounds_done == 1
    assert all(rounds[0] == 0 for rounds in rounds_of(run).values())
    assert command.returncode == 128 + stop
    assert "to continue: gilscope run --resume gated" in err
    assert "Traceback" not in err
    assert run.stopped == "interrupted"


def test_run_that_is_interrupted_before_its_first_value_says_that_there_is_nothing_to_resume(folder):
    folder.module("gate", f"""
        import pathlib, time
        def wait():
            pathlib.Path({str(folder.path / "waiting")!r}).touch()
            time.sleep(600)
    """)
    with folder.start("run", "gate:wait", "--build", f"host={sys.executable}", "--models", "serial") as command:
        wait_for(folder.path / "waiting", command)
        command.send_signal(signal.SIGINT)
        err = command.communicate(timeout=PATIENCE)[1]
    assert "stopped before the first value: nothing is kept" in err
    assert command.returncode == 128 + signal.SIGINT


# What a shell with job control does: the command has a process group, which has the terminal.
SHELL = """import fcntl, os, signal, subprocess, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
command = subprocess.Popen(sys.argv[2:], process_group=0)
os.tcsetpgrp(0, command.pid)
status = os.waitpid(command.pid, os.WUNTRACED)[1]
open(sys.argv[1] + ".part", "w").write(f"{command.pid} {os.WIFSTOPPED(status)}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(command.pid, 0)[1]))
"""


@pytest.mark.newest
def test_run_that_is_stopped_by_ctrl_z_goes_on(folder):
    terminal, theirs = pty.openpty()
    said = []

    def read():
        with contextlib.suppress(OSError):   # how Linux tells that nobody has the terminal any more
            while said.append(os.read(terminal, 2**16)) or said[-1]:
                pass

    folder.at = [sys.executable, "-c", SHELL, str(folder.path / "stopped")]
    command = folder.start("run", *folder.little("gated:wait_for_go", "--payloads", "gated:places", "--models",
                                                 "threads", "--path", str(USERCODE), label="gated"),
                           streams=dict.fromkeys(("stdin", "stdout", "stderr"), theirs), GATED_PLACE=str(folder.path))
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    with command:
        wait_for(folder.path / "waiting", command)
        os.write(terminal, b"\x1a")
        wait_for(folder.path / "stopped", command)
        pid, stopped = (folder.path / "stopped").read_text().split()
        (folder.path / "go").touch()   # what is measured has a session of its own: it goes on
        os.killpg(int(pid), signal.SIGCONT)
        assert command.wait(PATIENCE) == 0, b"".join(said).decode()
    reader.join(PATIENCE)
    os.close(terminal)
    assert stopped == "True"
    run = folder.run("gated")
    assert (run.rounds_done, run.stopped, run.failures) == (2, "rounds", ())


@pytest.mark.newest
def test_run_that_is_being_written_is_not_touched(folder):
    with gated(folder) as command:
        wait_for(folder.path / "waiting", command)
        code, _, err = folder.call("run", "--resume", "gated")
        assert code == 2
        assert "another gilscope is writing" in err
        (folder.path / "go").touch()
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=PATIENCE)


@pytest.mark.slow
@pytest.mark.newest
def test_two_runs_at_once_do_not_mix(folder):
    runs = {"one": "serial", "two": "threads"}
    started = [folder.start("run", *folder.little("noop", "--models", model, label=label))
               for label, model in runs.items()]
    for command in started:
        with command:
            _, err = command.communicate(timeout=PATIENCE)
            assert command.returncode == 0, err
    assert {cell.runner for cell in folder.run("one").cells} == {"serial"}
    assert {cell.runner for cell in folder.run("two").cells} == {"serial", "threads"}
    for label in runs:
        assert all(rounds == [0, 1] for rounds in rounds_of(folder.run(label)).values())


@pytest.mark.slow
@pytest.mark.newest
def test_damaged_run_is_refused_by_name(folder):
    assert folder.measure("noop", "--models", "serial", label="cut")[0] == 0
    path = folder.path / "results" / "cut" / "host.json"
    path.write_text(path.read_text()[:100])
    for argv in (("report", "cut"), ("run", "--resume", "cut", "--rounds", "3")):
        code, out, err = folder.call(*argv)
        assert (code, out) == (2, "")
        assert "results/cut/host.json is cut off or not a pyperf suite" in err


@pytest.mark.slow
@pytest.mark.newest
def test_request_is_kept_with_the_run(folder):
    folder.module("mine", "def work(number):\n    return number\n")
    code, _, err = folder.measure("mine:work", "--payload", "(1, 'a')", "--tasks", "3", "--models", "serial",
                                  label="asked")
    assert code == 0, err
    options = json.loads((folder.path / "results" / "asked" / "run.json").read_text())["options"]
    assert options["selection"]["user"]["payload"] == "(1, 'a')"
    assert options["selection"]["user"]["tasks"] == 3
    assert options["settings"]["rounds"] == 2
