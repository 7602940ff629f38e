"""The command line: every mistake ends with exit code 2 and a way out, and nothing is begun."""

import argparse
import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands import stopping
from gilscope.toolkit.commands.options.common import (
    LIST_VALUES,
    counts,
    duration,
    growth,
    positive,
    share,
    task_lengths,
)
from gilscope.toolkit.errors import BuildError, ToolkitError
from tests.conformance.builds import ROOT, run_child
from tests.patience import PATIENCE

HOST = f"host={sys.executable}"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*argv):
    """Return the exit code, also where argparse leaves by itself."""
    try:
        return cli.main(argv)
    except SystemExit as left:
        return left.code


@pytest.mark.parametrize(("argv", "words"), [
    (["run", "countdwn"], ["unknown workload 'countdwn'; did you mean 'countdown'?", "gilscope list"]),
    (["run", "countdown", "--models", "subinterpeters"],
     ["unknown model 'subinterpeters'; did you mean 'subinterpreters'?"]),
    (["doctr"], ["unknown command 'doctr'; did you mean 'doctor'?", "gilscope --help"]),
    (["run", "countdown", "--builds", "9.99"], ["9.99", "gilscope measures CPython 3.12 to 3.15", "gilscope builds"]),
    (["run", "countdown", "--build", "host"], ["host", "LABEL=PATH"]),
    (["run", "countdown", "--build", "host=/nowhere/python"], ["/nowhere/python"]),
    (["run", "countdown", "--build", f"run={sys.executable}"], ["cannot be called 'run'"]),
    (["run", "countdown", "--build", f"fleet={sys.executable}"], ["cannot be called 'fleet'"]),
    (["run", "countdown", "--build", HOST, "--label", "../up"], ["'../up' cannot be a label"]),
    (["run", "countdown", "--build", HOST, "--label", ""], ["argument --label: it is empty"]),
    (["run", "countdown", "--budget", "5 parsecs"],
     ["--budget", "'5 parsecs' is not a duration; write it like 250ms, 10s"]),
    (["run", "countdown", "--budget", "0"], ["'0' is not a positive duration"]),
    (["run", "countdown", "--timeout", "-1s"], ["--timeout"]),
    (["run", "countdown", "--workers", "0,1"], ["every number must be at least 1"]),
    (["run", "countdown", "--workers", "two"], ["'two' is not a list of numbers; write it like 1,2,4"]),
    (["run", "countdown", "--rounds", "0"], ["--rounds"]),
    (["run", "countdown", "--rounds", "1,2"], ["'1,2' is not a whole number from 1 on"]),
    (["run", "countdown", "--resolution", "200%"], ["is not a positive percentage below 100%; write it like 2%"]),
    (["run", "countdwn", "--resolution", "2"], ["--resolution: '2' has no unit: write 2%"]),
    (["run", "countdwn", "--resolution", "0.02"], ["'0.02' has no unit: write 2% or 0.02%"]),
    (["run", "countdwn", "--resolution", "2s"], ["'2s' is not a percentage; write it like 2%"]),
    (["run", "countdwn", "--task-length", "1"], ["--task-length: '1' has no unit: write 1us, 1ms or 1s"]),
    (["run", "countdwn", "--task-length", "1,10ms"], ["'1' has no unit"]),
    (["run", "countdwn", "--budget", "5"], ["--budget: '5' has no unit: write 5s, 5m or 5h"]),
    (["run", "countdwn", "--budget", "5%"], ["'5%' is not a duration"]),
    (["run", "countdwn", "--timeout", "1e3"], ["'1e3' has no unit: write 1000s"]),
    (["compare", "a", "b", "--fail-on", "5"], ["--fail-on: '5' has no unit: write 5%"]),
    (["compare", "a", "b", "--fail-on=-5%"], ["'-5%' is not a percentage"]),
    (["race", "--confirm-timeout", "5", "x.py"], ["--confirm-timeout: '5' has no unit"]),
    (["experiment", "run", "nowhere", "--budget", "5"], ["--budget: '5' has no unit"]),
    (["doctor", "nowhere.whl"], ["nowhere.whl: there is no such file"]),
    (["doctor", "."], ["there is no wheel and no sdist in this folder; for a project: gilscope evaluate ."]),
    (["doctor", "./six/"], ["six: there is no such file"]),
    (["doctor", "--timeout", "5", "--lock", "nowhere"], ["--timeout: '5' has no unit"]),
    (["evaluate", "nowhere", "--budget", "5"], ["--budget: '5' has no unit"]),
    (["run", "countdown", "--task-length", "1ms,long"], ["--task-length"]),
    (["run", "countdown", "--size", "huge"], ["--size"]),
    (["run", "countdown", "--quick", "--rigorous"], ["not allowed with"]),
    (["run", "countdown", "--payload", "1"], ["--payload is for a function of yours"]),
    (["run", "mod:f", "--payload", "1", "--payloads", "mod:p"], ["--payload, the same for all tasks, not both"]),
    (["run", "mod:f", "--payload", "nonsense"], ["'nonsense' is not a Python literal", "\"'text'\""]),
    (["run", "mywork.py", "--quick"], ["'mywork.py' is a file: name the function: mywork:FUNCTION"]),
    (["run", "mywork.py"], ["`gilscope race` and `gilscope gil` run whole programs"]),
    (["scale", "mywork.py"], ["'mywork.py' is a file: name the function: mywork:FUNCTION"]),
    (["run", "src/mywork.py"], ["name the function: mywork:FUNCTION, with --path src"]),
    (["run", "mod.f", "--payload", "1"], ["'mod.f': a function of yours is named with a colon: mod:f"]),
    (["run", "countdown", "--rounds", "0"], ["from 1 on; `gilscope run --help` shows the options"]),
    (["run", "mod:f", "--payload", ""], ["argument --payload: it is empty"]),
    (["run", "mod:f:g", "--payload", "1"], ["'mod:f:g' does not have the form package.module:name"]),
    (["run", "mod:", "--payload", "1"], ["'mod:' does not have the form package.module:name"]),
    (["run", "mod.py:f", "--payload", "1"], ["name the module, not the file: mod"]),
    (["run", "src/mod.py:f", "--payload", "1"], ["name the module, not the file: mod:f, with --path src"]),
    (["run", "mod:f", "--payload", "1", "--path", "nowhere", "--build", HOST],
     ["--path nowhere: there is no such folder"]),
    (["run", ".mod:f", "--payload", "1"], ["'.mod:f' does not have the form package.module:name"]),
    (["run", "mod:f", "--payloads", "p"], ["'p' does not have the form package.module:name"]),
    (["run", "mod:f", "other:g", "--payload", "1"], ["one function of yours at a time"]),
    (["run", "mod:f", "countdown", "--payload", "1"], ["one function of yours at a time"]),
    (["run", "mod:f", "--payload", "1", "--task-length", "1ms"], ["--task-length is for gilscope's own workloads"]),
    *(([*words, empty], ["it is empty"]) for empty in ("", " ") for words in (
        ["doctor"], ["doctor", "lxml"], ["doctor", "--lock"], ["doctor", "--explain"], ["evaluate"], ["report"],
        ["evaluate", ".", "--tests"], ["evaluate", ".", "--workload"], ["evaluate", ".", "--lock"], ["compare", "a"],
        ["run", "mod:f", "--with"], ["run", "mod:f", "--requirements"], ["run", "mod:f", "--path"], ["run"])),
    *((["doctor", value], ["looks like a value", f"{value}>=0"]) for value in (
        "nan", "NaN", "inf", "true", "None", "3", "3.14t", "1e6", "10s", "on")),
    (["doctor", "-1"], []),
    (["run", "mod:f", "--payload", "1", "--with", "nan"], ["looks like a value"]),
    (["run", "mod:f", "--payload", "1", "--with=-1"], ["a package, so nothing was installed\n"]),
    (["run", "mod:f", "--payload", "1", "--with", "a b"], ["is no requirement"]),
    (["run", "--resume", ""], ["argument --resume: it is empty"]),
    (["run", "countdown", "--builds", ""], ["argument --builds: it is empty"]),
    (["run", "countdown", "--models", ","], ["--models: the list is empty"]),
    *(([*words], [f"{words[-3]} takes one word, its values separated by commas without spaces: {words[-3]} {like};"])
      for words, like in (
        (["run", "primes", "--builds", "3.14", "3.14t"], "3.14,3.14t"),
        (["run", "primes", "--builds", "3.14,", "3.14t"], "3.14,3.14t"),
        (["run", "primes", "--workers", "1", "2"], "1,2"),
        (["run", "primes", "--models", "threads", "processes"], "threads,processes"),
        (["run", "primes", "--task-length", "1ms", "10ms"], "1ms,10ms"),
        (["doctor", "lxml", "--builds", "3.14t", "3.15t"], "3.14t,3.15t"),
        (["evaluate", ".", "--builds", "3.14t", "3.15t"], "3.14t,3.15t"),
        (["scale", "mod:f", "--builds", "3.14t", "3.15t"], "3.14t,3.15t"),
        (["experiment", "run", "--builds", "3.14", "3.14t"], "3.14,3.14t"),
        (["compare", "x", "--models", "threads", "asyncio"], "threads,asyncio"),
        (["list", "--builds", "3.14", "3.14t"], "3.14,3.14t"))),
    (["run", "--builds=3.14 3.14t", "primes"], ["without spaces: --builds 3.14,3.14t;"]),
    (["run", "--workers=1", "2", "4", "--size", "huge"], ["without spaces: --workers 1,2,4;"]),
    (["run", "--resume", "x", "--dry-run"], ["--dry-run cannot be changed in a run that has begun"]),
    (["run", "--resume", "x", "--seed", "0"], ["--seed cannot be changed"]),
    (["run", "countdown", "--resume", "x", "--workers", "2", "--quick"],
     ["WORKLOAD, --workers, --quick or --rigorous cannot be changed"]),
    (["run", "--add-session", "nowhere"], ["no run called 'nowhere'", "none yet"]),
    (["run", "--add-session", "x", "--resume", "y"], ["name one of them"]),
    (["run", "--add-session", "x", "--seed", "0"], ["--seed cannot be changed", "without --add-session"]),
    (["run", "--resume", "x", "--sessions", "3", "--every", "2h"], ["--sessions, --every cannot be changed"]),
    (["run", "primes", "--sessions", "3"], ["--sessions 3 needs --every TIME"]),
    (["run", "primes", "--every", "2h"], ["--every needs --sessions N"]),
    (["run", "primes", "--sessions", "2", "--every", "2h", "--fleet", "local:2"], ["a fleet's run has one session"]),
    (["run", "--resume", "nowhere"], ["no run called 'nowhere'", "none yet"]),
    (["report", "nowhere"], ["no run called 'nowhere'"]),
    (["compare", "nowhere", "elsewhere"], ["nowhere"]),
    (["report", "x", "--format", "pdf"], ["--format"]),
    ([], ["usage: gilscope", "measure workloads under every model", "exit codes:"]),
    (["measure"], ["measure"]),
])
def test_mistake_ends_with_2_and_a_hint(argv, words, capsys, folder):
    assert call(*argv) == 2
    captured = capsys.readouterr()
    for word in words:
        assert word in captured.err
    assert captured.out == ""
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", [
    ["--builds", "3.14, 3.14t"], ["--builds", "3.14,3.14t", "primes"], ["--workers", "2", "primes"],
    ["--models", "threads", "primes"], ["--models", "threads, asyncio"], ["--workers", "1, 2"],
    ["--task-length", "1ms,10ms"],
])
def test_list_with_commas_and_a_word_after_it_are_no_mistake(words):
    args = cli.make_parser(("run",)).parse_args(["run", *words])
    assert args.workload == [each for each in words if each == "primes"]


def test_every_option_that_takes_a_list_says_so_where_spaces_separate_its_values():
    lists = {word for action in _options(cli.make_parser()) for word in action.option_strings
             if action.metavar in {"LABELS", "NAMES", "COUNTS", "TIMES", "A,B"}}
    assert lists == set(LIST_VALUES)


def test_help_of_every_command_is_there(capsys):
    for argv in (["--help"], *([command, "--help"] for command in ("run", "compare", "report", "builds", "list"))):
        assert call(*argv) == 0
        assert "usage: gilscope" in capsys.readouterr().out


def test_options_of_a_run_are_told_with_unit_and_default(capsys):
    call("run", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("--rounds N", "default: 12", "--timeout TIME", "default: 60s", "--builds LABELS"):
        assert words in shown


def test_version_is_told(capsys):
    assert call("--version") == 0
    assert capsys.readouterr().out.startswith("gilscope 0.")


@pytest.mark.parametrize("shell", cli.SHELLS)
def test_shell_completion_is_printed(shell, capsys):
    assert call("--print-completion", shell) == 0
    assert "gilscope" in capsys.readouterr().out


def test_bash_completes_commands_options_and_files(capsys):
    assert call("--print-completion", "bash") == 0
    program = capsys.readouterr().out + """
        ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _shtab_gilscope; echo "${COMPREPLY[@]}"; }
        ask gilscope exp; ask gilscope builds ""; ask gilscope run --size m; ask gilscope race --no-c
        complete -p gilscope
    """
    command = ["bash", "--norc", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    *offered, registered = done.stdout.splitlines()
    assert offered == ["experiment", "install add remove", "medium", "--no-color"]
    assert "-o default" in registered   # files, where there is nothing of ours


def test_catalogs_are_listed(capsys):
    assert call("list") == 0
    shown = capsys.readouterr().out
    for name in ("countdown", "free-threaded", "processes-forkserver"):
        assert name in shown


def test_catalogs_are_listed_for_scripts(capsys):
    assert call("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "countdown" in {each["name"] for each in found["workloads"]}
    assert "threads" in {each["name"] for each in found["models"]}
    assert found["builds"] == {}


def test_no_runs_are_said(capsys):
    assert call("report") == 0
    assert "results yet; `gilscope run --quick` makes one" in capsys.readouterr().out


@pytest.mark.parametrize(("error", "code", "shown"), [
    (ToolkitError("wrong name"), 2, "gilscope: wrong name\n"),
    (BuildError("no compiler"), 3, "gilscope: no compiler\n"),
    (KeyboardInterrupt(), 130, "gilscope: interrupted\n"),
    (stopping.StoppedError(signal.SIGTERM), 143, "gilscope: interrupted\n"),
])
def test_errors_become_exit_codes(error, code, shown, monkeypatch, capsys):
    def fail(_args):
        raise error

    monkeypatch.setattr("gilscope.toolkit.commands.report.command.run", fail)
    assert call("report") == code
    assert capsys.readouterr().err == shown


def commanded(monkeypatch, run):
    monkeypatch.setattr("gilscope.toolkit.commands.report.command.run", run)
    before = [signal.getsignal(number) for number in stopping.NUMBERS]
    code = call("report")
    assert [signal.getsignal(number) for number in stopping.NUMBERS] == before
    return code


@pytest.mark.parametrize("number", stopping.NUMBERS)
def test_later_signals_do_not_cut_the_cleaning_up_short(number, monkeypatch):
    cleaned = []

    def stopped(_args):
        try:
            signal.raise_signal(number)
        finally:
            for later in (signal.SIGHUP, signal.SIGINT, signal.SIGHUP):
                signal.raise_signal(later)
            cleaned.append(True)

    assert commanded(monkeypatch, stopped) == 128 + number
    assert cleaned


def test_what_fails_after_a_signal_comes_of_it(monkeypatch, capsys):
    def stopped(_args):
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            raise OSError(errno.EIO, "the terminal is gone")

    assert commanded(monkeypatch, stopped) == 129
    assert capsys.readouterr().err == "gilscope: interrupted\n"


def test_signal_in_a_finalizer_is_told_again(monkeypatch, capsys):
    class Late:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def busy(_args):
        late = Late()
        del late
        threading.Event().wait(600)

    assert commanded(monkeypatch, busy) == 143
    assert capsys.readouterr().err == "gilscope: interrupted\n"


def test_third_ctrl_c_waits_for_nothing():
    program = """
        import os, signal, threading
        from gilscope.toolkit.commands.stopping import SignalStop
        SignalStop().begin()
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            os.set_blocking(1, False)
            signal.set_wakeup_fd(1)   # a byte for each signal that has come
            print("cleaning", flush=True)
            threading.Event().wait()
        """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as started:
        assert started.stdout.readline() == b"cleaning\n"
        for _ in range(100_000):
            started.send_signal(signal.SIGINT)   # on busy cores, hundreds may be one
            if not started.stdout.read(1):
                break
        else:
            started.kill()
        assert started.wait(timeout=PATIENCE) == 130


def test_our_own_mistakes_are_no_finding_and_leave_a_file_to_attach(monkeypatch, capsys, tmp_path):
    def fail(_args):
        raise AssertionError("ours\x1b[31m\n::error::injected")

    monkeypatch.setattr("gilscope.toolkit.commands.report.command.run", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert call("report") == 3
    (line,) = capsys.readouterr().err.splitlines()
    (file,) = tmp_path.iterdir()
    assert r"failed, which is a bug: AssertionError: ours\x1b[31m\n::error::injected; " in line
    assert str(file) in line
    written = file.read_text()
    assert "Traceback (most recent call last)" in written
    assert "in fail" in written


def test_our_own_mistakes_are_said_where_nothing_can_be_written(monkeypatch, capsys, tmp_path):
    def fail(_args):
        raise AssertionError("ours")

    monkeypatch.setattr("gilscope.toolkit.commands.report.command.run", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert call("report") == 3
    assert "the traceback could not be written anywhere" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "words"), [
    (OSError(errno.ENOSPC, "No space left on device", "/some/file"), "(/some/file): No space left on device"),
    (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
    (MemoryError(), "not enough memory"),
])
def test_what_a_machine_lacks_is_a_sentence_and_no_mistake_of_a_user(error, words, monkeypatch, capsys, tmp_path):
    def fail(_args):
        raise error

    monkeypatch.setattr("gilscope.toolkit.commands.report.command.run", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert call("report") == 3
    assert words in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_machine_without_a_usable_temporary_folder_is_no_mistake_of_a_user(monkeypatch, capsys, tmp_path):
    def fail(_args):
        tempfile.mkdtemp()

    monkeypatch.setattr("gilscope.toolkit.commands.report.command.run", fail)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "gone")])
    assert call("report") == 3
    assert "make room there, or name another folder in TMPDIR" in capsys.readouterr().err


EXAMPLE = str(ROOT / "results" / "example")


TELLS_STREAMS = """import os, sys
os.write(9, repr([sys.stdin is None, sys.stdout is None, sys.stderr is None]).encode())"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_program_finds_closed_what_was_closed(closed, folder):
    (folder / "prog.py").write_text(TELLS_STREAMS)

    def told(command):
        subprocess.run(f"{command} prog.py {closed} 9>told", shell=True, cwd=folder, check=True, timeout=PATIENCE,
                       capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        return (folder / "told").read_text()

    alone = told(sys.executable)
    assert "True" in alone
    assert told(f"{sys.executable} -m gilscope race") == alone


@pytest.mark.parametrize("words", ["run noop", "builds", "evaluate .", "race {prog}"])
def test_folder_that_has_been_removed_is_said(words, folder):
    (folder / "prog.py").write_text("")
    (folder / "gone").mkdir()
    done = subprocess.run(
        f"cd gone && rmdir ../gone && {sys.executable} -m gilscope {words.format(prog=folder / 'prog.py')}", shell=True,
        cwd=folder, check=False, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (
        2, "gilscope: the current folder was removed; change to another one\n")


def shell(command, folder, gone=-1):
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE,
                          cwd=folder, pass_fds=[] if gone < 0 else [gone],
                          env={**os.environ, "PYTHONPATH": str(ROOT), "G": f"{sys.executable} -m gilscope",
                               "EXAMPLE": EXAMPLE, "GONE": str(gone)})
    return done.returncode, done.stdout, done.stderr


def test_reader_of_the_first_line_gets_it(tmp_path):
    assert shell("set -o pipefail; $G report $EXAMPLE | head -1", tmp_path) == (
        0, "3.13 and 3.13t, AMD EPYC with 2 cores, 4 rounds: speed-up over serial of the same build, 2 workers\n", "")


def test_gate_judges_without_a_reader_and_files_are_written(tmp_path):
    words = "compare $EXAMPLE --builds 3.13,3.13t --fail-on 5% --json out.json"
    code, *_ = shell(f"set -o pipefail; $G {words} 2>/dev/null | true", tmp_path)
    assert code == 1
    assert json.loads((tmp_path / "out.json").read_text())["gate"]["past"] > 0


FULL = "gilscope: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(("words", "streams", "code", "said"), [
    ("list", ">&$GONE", 0, ""), ("report $EXAMPLE", ">&$GONE", 0, ""), ("report $EXAMPLE --json", ">&$GONE", 0, ""),
    ("builds --help", ">&$GONE", 0, ""), ("report nowhere", "2>&$GONE", 2, ""), ("report nowhere", "2>&-", 2, ""),
    ("list", ">/dev/full", 3, FULL), ("report $EXAMPLE", ">/dev/full", 3, FULL), ("report $EXAMPLE", ">&-", 0, ""),
    (f"builds --build {HOST}", "<&-", 0, ""), (f"builds --build {HOST}", ">&-", 0, ""),
    (f"builds --build {HOST}", "2>&-", 0, ""), (f"builds --build {HOST}", "<&- >&- 2>&-", 0, ""),
])
def test_stream_that_cannot_be_used_is_no_traceback_and_nothing_lands_in_another(words, streams, code, said, tmp_path):
    if "/dev/full" in streams and not Path("/dev/full").exists():
        pytest.skip("there is no full device")
    reading, gone = os.pipe()
    os.close(reading)
    try:
        found, out, err = shell(f"$G {words} {streams}", tmp_path, gone)
    finally:
        os.close(gone)
    assert (found, err) == (code, said)
    assert bool(out) == (code == 0 and not re.search("(?<!2)>", streams))


ENCODINGS = {"utf-8": {"PYTHONIOENCODING": "utf-8"}, "ascii": {"PYTHONIOENCODING": "ascii"},
             "C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}}


@pytest.mark.parametrize(("name", "options"), [
    ("utf-8", ["--full"]), ("ascii", ["--full"]), ("ascii", ["--markdown"]), ("ascii", ["--json"]), ("C", ["--full"]),
    *(pytest.param(*case, marks=pytest.mark.slow)
      for case in [("utf-8", ["--markdown"]), ("utf-8", ["--json"]), ("C", ["--markdown"]), ("C", ["--json"])])])
def test_output_fits_its_encoding(name, options, tmp_path):
    spelled = "±" if name == "utf-8" else "+-"
    command = [sys.executable, "-m", "gilscope", "report", str(ROOT / "results" / "example"), *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, timeout=PATIENCE,
                          env={**kept, "PYTHONPATH": str(ROOT), **ENCODINGS[name]})
    assert (done.returncode, done.stderr) == (0, b"")
    assert (spelled in done.stdout.decode("utf-8")) == (options != ["--json"])
    if spelled == "+-":
        assert done.stdout.isascii()


def test_text_of_others_that_an_encoding_lacks_is_escaped(tmp_path):
    command = [sys.executable, "-m", "gilscope", "experiment", "list"]   # it cites a title in Polish
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, timeout=PATIENCE,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"we\\u017a asyncio" in done.stdout


@pytest.mark.parametrize(("parse", "text", "value"), [
    (counts, "4,1,2,2", (1, 2, 4)), (positive, "3", 3), (share, "5%", 0.05), (share, " 0.5 %", 0.005),
    (growth, "5%", 0.05), (growth, "0", 0.0), (growth, "250%", 2.5), (task_lengths, "100ms,1ms", (0.001, 0.1)),
    (duration, "5m", 300.0), (duration, "1.5 s", 1.5), (duration, ".5h", 1800.0), (duration, "1e3ms", 1.0),
])
def test_option_values_are_read(parse, text, value):
    assert parse(text) == pytest.approx(value)


def test_every_option_with_a_unit_refuses_a_bare_number():
    """An option that is new, or read otherwise, cannot take a number for seconds again."""
    kinds = {"TIME", "TIMES", "DURATION", "PERCENT"}
    found = [action for action in _options(cli.make_parser()) if action.metavar in kinds]
    assert {word for action in found for word in action.option_strings} >= {
        "--budget", "--timeout", "--confirm-timeout", "--task-length", "--resolution", "--fail-on"}
    for action in found:
        with pytest.raises(argparse.ArgumentTypeError, match="has no unit"):
            action.type("3")


def _options(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)
        else:
            yield action


@pytest.mark.parametrize(("words", "unwanted", "most"), [
    # Modules and not times: what is imported is what a start costs.  A bare start has about 30.
    (["--version"], {"argparse", "re", "gilscope.toolkit.commands.run.command"}, 60),
    (["run", "--help"], {"shtab", "rich", "pyperf", "gilscope.toolkit.commands.run.running"}, 175),
    (["--help"], {"shtab", "rich", "pyperf", "gilscope.toolkit.commands.run.command"}, 135),
    (["report", str(ROOT / "results" / "example")],
     {"pyperf", "jinja2", "packaging", "gilscope.toolkit.experiments", "gilscope.toolkit.site",
      "gilscope.toolkit.commands.fleet", "gilscope.toolkit.redaction", "gilscope.workloads.catalog"}, 300),
])
def test_commands_import_nothing_that_they_do_not_need(words, unwanted, most):
    code = ("import sys\nfrom gilscope.toolkit.cli import main\n"
            "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)")
    done = run_child(sys.executable, "-c", code, *words)
    modules = set(done.stderr.split())
    assert "gilscope" in done.stdout
    assert not modules & unwanted
    assert len(modules) < most


@pytest.mark.parametrize("name", ["mywork", "shop.orders", "shop"])
def test_module_under_run_is_answered_with_the_form_of_a_function(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "shop").mkdir()
    for file in ("mywork.py", "shop/orders.py", "shop/__init__.py", "primes.py"):
        (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path)
    assert call("run", name) == 2
    assert f"'{name}' is a module: name the function: {name}:FUNCTION; " in capsys.readouterr().err
    assert call("run", "primes", "nowhere") == 2
    assert "unknown workload 'nowhere'" in capsys.readouterr().err     # primes is one of gilscope's
