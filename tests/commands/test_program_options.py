"""What `race` and `gil` take beside a program: no option swallows it, and nothing unchecked ends with exit code 0."""

import os
import signal
import subprocess
import sys
from argparse import ArgumentTypeError

import pytest

from gilscope.toolkit.commands.options.programs import ProgramFileOption, interpreter_flags, output_file, saved
from gilscope.toolkit.gil import preload
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE


def gilscope(folder, *words, **options):
    return subprocess.run(
        [sys.executable, "-P", "-m", "gilscope", *words], cwd=folder, capture_output=True, text=True, check=False,
        timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT)}, **{"input": "", **options})


def needs_shim(command):
    if command == "gil" and (reason := preload.unavailable()):
        pytest.skip(reason)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "prog.py").write_text("print('ran')\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", ["race", "gil"])
@pytest.mark.parametrize(("words", "said"), [
    (["--json", "-", "prog.py"], "end the command with 3>&1"),
    (["--json=-", "prog.py"], "end the command with 3>&1"),
    (["--json", "", "prog.py"], "it is empty; leave it out"),
    (["--json=empty", "prog.py"], "cannot write 'empty': it is a folder"),
    (["--json=prog.py", "prog.py"], "cannot write 'prog.py': it is a program"),
    (["--json=gone/a.json", "prog.py"], "there is no folder 'gone'"),
    (["--python-args=--version", "prog.py"], "with '--version' the interpreter would not run the program"),
    (["--json", "out.json"], "no program to run"),
    (["--build", "3.14=a", "--build", "3.13=b", "prog.py"],
     "--build: it was given twice, as 3.14=a and 3.13=b: a program is run under one build at a time"),
    ([""], "no script ''"),
    (["gone.py"], "no script 'gone.py'\n"),
    (["prog"], "no script 'prog'; did you mean prog.py?"),
    (["shop.orders"], "no script 'shop.orders'; to run a module, write `gilscope COMMAND -m shop.orders`"),
    (["shop:total"], "`gilscope run shop:total` measures a function, and `gilscope COMMAND -m shop` runs its module"),
    (["prog.py:total"], "`gilscope run prog:total` measures a function, and `gilscope COMMAND prog.py` runs the file"),
    (["empty"], "'empty' is a folder without __main__.py"),
    (["-m", ""], "write the name of a module"),
])
def test_what_would_check_nothing_is_refused_before_anything_runs(folder, command, words, said):
    done = gilscope(folder, command, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said.replace("COMMAND", command) in done.stderr
    assert (folder / "prog.py").read_text() == "print('ran')\n"


@pytest.mark.parametrize("command", ["race", "gil"])
@pytest.mark.parametrize(("text", "is_said"), [
    ("raise SystemExit(2)", True),                       # it refuses the option
    ("raise SystemExit(1)", True), ("", True),           # it does not know it, and no such file is there
    ("# takes --json", False), ("open('out.json', 'w').close()", False)])
def test_option_that_came_too_late_is_said_where_it_is_not_the_programs(folder, command, text, is_said):
    needs_shim(command)
    (folder / "prog.py").write_text(text)
    done = gilscope(folder, command, "prog.py", "--verbose", "--json=out.json")
    assert done.returncode in {0, 1, 2}
    assert ("--json=out.json was passed to the program" in done.stderr) is is_said


def test_word_after_the_option_for_a_file_is_no_dash(folder):
    assert gilscope(folder, "race", "--sarif", "-", "prog.py").returncode == 2


@pytest.mark.parametrize(("word", "contents", "is_file"), [
    ("out.json", "x", True), ("/dev/null", None, True), ("new", None, True), ("new.txt", None, True),
    ("empty_file", "", True), ("earlier", '{"schema": 1}', True),
    ("program", "import sys", False), ("notes.txt", "mine", False), ("gone.py", None, False), ("empty", None, False),
    ("-m", None, False), ("--", None, False)])
def test_word_after_json_is_a_file_unless_it_may_be_the_program(folder, monkeypatch, word, contents, is_file):
    monkeypatch.chdir(folder)
    if contents is not None:
        (folder / word).write_text(contents)
    assert ProgramFileOption(["--json"], "json", suffix=".json").is_value(word) is is_file


def test_two_forms_of_gil_cannot_both_replace_its_text(folder):
    done = gilscope(folder, "gil", "--markdown", "--json", "prog.py")
    assert done.returncode == 2
    assert "--json and --markdown cannot both be on standard error" in done.stderr


def test_interpreter_that_never_began_the_program_is_no_clean_run(folder):
    done = gilscope(folder, "race", "--build", "odd=/bin/true", "prog.py")
    assert done.returncode == 3
    assert "nothing was checked" in done.stderr


def test_empty_standard_input_is_no_clean_run(folder):
    done = gilscope(folder, "race", "-")
    assert done.returncode == 2
    assert "standard input is empty" in done.stderr
    assert gilscope(folder, "race", "-", "a", input="import sys; print(sys.argv)").stdout == "['-', 'a']\n"


def _as_in_the_background():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)   # a shell ignores it, too, for what it starts in the background
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


@pytest.mark.parametrize("command", ["race", "gil"])
def test_program_inherits_what_it_would_from_the_shell(folder, command):
    needs_shim(command)
    (folder / "prog.py").write_text(
        "import signal\nprint([signal.getsignal(n) == signal.SIG_IGN for n in (1, 2, 3, 15)],"
        " signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n")
    alone = subprocess.run([sys.executable, "prog.py"], cwd=folder, capture_output=True, text=True, check=True,
                           preexec_fn=_as_in_the_background, timeout=PATIENCE)
    assert "[True, True, False, True]" in alone.stdout
    assert gilscope(folder, command, "prog.py", preexec_fn=_as_in_the_background).stdout == alone.stdout


@pytest.mark.parametrize("command", ["race", "gil"])
def test_report_goes_behind_the_programs_output_through_another_stream(folder, command):
    needs_shim(command)
    done = subprocess.run(
        f"{sys.executable} -P -m gilscope {command} --json=/dev/fd/3 prog.py 3>&1", shell=True, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0
    assert done.stdout.startswith("ran\n{\n")


RACY = """
import sys, threading
class Sum: value = 0
def add():
    Sum.value += 1
threads = [threading.Thread(target=add) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize(("command", "program", "code"), [
    ("race", RACY, 66), ("race --json", RACY, 66), ("gil", "raise SystemExit(7)", 7)])
def test_reader_of_the_report_that_has_gone_changes_no_exit_code(folder, command, program, code):
    needs_shim(command)
    (folder / "prog.py").write_text(program)
    with subprocess.Popen([sys.executable, "-P", "-m", "gilscope", *command.split(), "prog.py"], cwd=folder,
                          stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}) as started:
        started.stderr.close()
        assert started.wait(timeout=PATIENCE) == code


def test_report_to_a_log_that_is_open_cuts_nothing_off(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as file:
        file.write("before\n")
        file.flush()
        saved(f"/dev/fd/{file.fileno()}", "report\n")
        file.write("after\n")
    assert log.read_text() == "before\nreport\nafter\n"


def test_stream_that_is_not_open_is_refused():
    ends = os.pipe()
    for end in ends:
        os.close(end)
    with pytest.raises(ArgumentTypeError, match=f"end the command with {ends[1]}>FILE"):
        output_file(f"/dev/fd/{ends[1]}")


@pytest.mark.parametrize(("text", "words"), [
    ("", ()),
    ("-O -W error", ("-O", "-W", "error")),
    ("-bb -Xdev --check-hash-based-pycs always", ("-bb", "-Xdev", "--check-hash-based-pycs", "always")),
])
def test_flags_of_the_interpreter_are_words(text, words):
    assert interpreter_flags(text) == words


@pytest.mark.parametrize("text", ["-c 1", "-m this", "-V", "-Vu", "-h", "--help-env", "-", "other.py", "-X", "'"])
def test_flags_that_keep_the_interpreter_from_the_program_are_refused(text):
    with pytest.raises(ArgumentTypeError):
        interpreter_flags(text)
