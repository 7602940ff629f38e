"""Shell completion: what a TAB offers, asked of a real bash; other shells read their scripts where they are at hand."""

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.builds.added import remember
from tests.patience import PATIENCE

CASES = {  # the line, up to the cursor -> everything offered, or some of it after "..."
    "gilscope exp": "experiment",
    "gilscope builds ": "install add remove",
    "gilscope run prim": "primes",
    "gilscope run primes --models free": "free-threaded",
    "gilscope run primes --models threads,subi": "threads,subinterpreters",
    "gilscope run --size m": "medium",
    "gilscope run --resume ": "one two",
    "gilscope run --payloads ": "bank:",
    "gilscope run --payloads b": "bank:",
    "gilscope run --rounds ": "",          # nothing of ours, so the shell completes as ever
    "gilscope compare one t": "two",
    "gilscope report m": "many/convoy",
    "gilscope experiment run convoy-": "convoy-interval",
    "gilscope experiment run --resume ": "many",
    "gilscope experiment show ": "many many/convoy",
    "gilscope builds remove ": "mine",
    "gilscope race ": "bank.py results src",
    "gilscope race --notes b": "bank.py",
    "gilscope race --no": "--notes --no-color",
    "gilscope race bank.py --no": "",      # the program's own option
    "gilscope race --build 3.13 b": "bank.py",
    "gilscope race --sarif n": "notes.txt",
    "gilscope gil -m bank n": "",          # the program's own argument
    "gilscope doctor --lock n": "notes.txt",
    "gilscope evaluate s": "src",
}


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    """A folder with a program, runs and experiments, and a gilscope on PATH."""
    monkeypatch.chdir(tmp_path)
    for name in ("results/one/run.json", "results/two/run.json", "results/many/experiments.json",
                 "results/many/convoy/run.json", "src/inner.py", "bank.py", "notes.txt"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setenv("GILSCOPE_DATA", str(tmp_path_factory.mktemp("data")))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    remember("mine", Path(sys.executable))
    return tmp_path


def script(shell, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--print-completion", shell])
    assert left.value.code == 0
    return capsys.readouterr().out


def offered(text, lines):
    """Return what bash offers for each of the lines, in one process."""
    asked = ['ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _gilscope; echo "${COMPREPLY[*]}"; }']
    for line in lines:
        *words, last = line.split(" ")
        asked.append(" ".join(["ask", *words, f'"{last}"']))
    program = "\n".join([text, *asked])
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True,
                          timeout=PATIENCE)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_offers_what_fits(folder, capsys):
    answers = offered(script("bash", capsys), CASES)
    found = {line: " ".join(sorted(answer.split())) for line, answer in zip(CASES, answers, strict=True)}
    assert found == {line: " ".join(sorted(answer.split())) for line, answer in CASES.items()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_offers_builds_also_behind_a_comma(folder, capsys):
    for answer in offered(script("bash", capsys), ["gilscope run --builds m", "gilscope race --build m"]):
        assert answer == "mine"
    (answer,) = offered(script("bash", capsys), ["gilscope run --builds mine,"])
    assert "mine,mine" in answer.split()


def test_files_are_completed_where_there_is_nothing_of_ours(capsys):
    assert script("bash", capsys).rstrip().endswith("complete -o bashdefault -o default -F _gilscope gilscope")


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_script_of_other_shells_calls_what_it_defines(shell, capsys, tmp_path):
    text = script(shell, capsys)
    if shell != "tcsh":
        for kind in ("labels", "builds_list", "models_list", "workloads", "experiments"):
            assert text.count(f"_gilscope_{kind}") >= 2
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=PATIENCE)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
@pytest.mark.parametrize(("line", "completed"), [
    ("gilscope rep", "gilscope report "), ("gilscope run --models thr", "gilscope run --models threads,"),
    ("gilscope race ba", "gilscope race bank.py "), ("gilscope run --payloads ba", "gilscope run --payloads bank:"),
])
def test_zsh_completes_as_somebody_types(folder, capsys, line, completed):
    (folder / "script").write_text(script("zsh", capsys))
    terminal, its_end = pty.openpty()
    shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=its_end, stdout=its_end, stderr=its_end, start_new_session=True,
                             env={**os.environ, "TERM": "dumb", "PS1": "> "})
    os.close(its_end)
    try:
        os.write(terminal, b"autoload -Uz compinit; compinit -u -D; source ./script; echo rea''dy\n")
        read_until(terminal, b"ready\r\n")
        os.write(terminal, f"{line}\t".encode())
        read_until(terminal, completed.encode())
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)


def read_until(terminal, wanted):
    seen = b""
    while wanted not in seen:
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 65536)
