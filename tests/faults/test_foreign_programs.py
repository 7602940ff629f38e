"""Real programs whose names and exceptions want to be more than text, through the commands as users call them."""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from gilscope.toolkit.gil import preload
from tests.conformance.builds import ROOT
from tests.faults.hostile_texts import UNSEEN, is_safe
from tests.patience import PATIENCE

NASTY = "x\n::error file=x.py,line=1::injected\x1b[31m\x9b1m\x07\u202e|<b>[bold]##[error]\u2028"
RACY = f"""
    import threading

    def work():
        for _ in range(300):
            box.n += 1
            table[{NASTY!r}] = table.get({NASTY!r}, 0) + 1

    box, table = type("C" + {NASTY!r}, (), {{"n": 0}})(), {{}}
    work.__name__ = work.__qualname__ = {NASTY!r}
    threads = [threading.Thread(target=work, name="w" + {NASTY!r}) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""
FAILS = f"""
    import multiprocessing, threading

    def work(number):
        if threading.current_thread() is not threading.main_thread():
            raise ValueError({NASTY!r})
        if multiprocessing.parent_process() is not None:
            raise ValueError("x" * 5_000_000)
        return sum(range(20_000))

    def always(number):
        raise ValueError("x" * 5_000_000 + {NASTY!r})

    def payloads():
        return [1, 2]
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the programs; the first is called so, too."""
    (tmp_path / f"::warning::{NASTY.replace('/', '')}.py").write_text(textwrap.dedent(RACY))
    (tmp_path / "fails.py").write_text(textwrap.dedent(FAILS))
    return tmp_path


def call(folder, *words):
    done = subprocess.run([sys.executable, "-m", "gilscope", *words], cwd=folder, capture_output=True, check=False,
                          timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


DESTROYS = """
    import glob, os, shutil, sys, threading

    n = 0

    def add():
        global n
        for _ in range(300):
            n += 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    folder, = glob.glob(os.environ["TMPDIR"] + "/gilscope-race-*")
    files = [os.path.join(folder, each) for each in os.listdir(folder)]
    for each in files:
        os.unlink(each)
        match sys.argv[1]:
            case "pipe":
                os.mkfifo(each)
            case "zeroes":
                os.symlink("/dev/zero", each)
            case "folder":
                os.makedirs(each + "/inner")
            case "junk":
                text = b"\\xff{{{\\n[]\\n5\\n" + b'{"t": "race"}\\n{"t": 5}\\n' + b"[" * 100_000 + b"\\n"
                open(each, "wb").write(text)
    if sys.argv[1] == "nothing":
        shutil.rmtree(folder)
"""


@pytest.mark.parametrize(("kind", "options"), [
    ("pipe", ()), ("junk", ("--json", "found.json")),
    *(pytest.param(kind, options, marks=pytest.mark.slow) for kind, options in (
        ("zeroes", ("--json", "found.json")), ("folder", ("--confirm", "1")), ("nothing", ()),
        ("nothing", ("--confirm", "1")), ("junk", ("--confirm", "1"))))])
def test_a_program_that_destroys_what_was_found_is_told_of_and_not_waited_for(kind, options, tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(textwrap.dedent(DESTROYS))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    code, _, errors = call(tmp_path, "race", *options, "program.py", kind)
    assert code == 3, errors
    if "--json" in options:
        errors += (tmp_path / "found.json").read_text()
    assert "the program has changed the checker's files" in errors
    assert "gilscope itself" not in errors
    assert not list((tmp_path / "tmp").iterdir())


NO_ROOM = """
    import resource, signal, sys, threading

    n = 0

    def add():
        global n
        for _ in range(300):
            n += 1

    def race():
        threads = [threading.Thread(target=add) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    limit, size = getattr(resource, sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(limit, (size, resource.getrlimit(limit)[1]))
    race()
"""


@pytest.mark.parametrize(("limit", "size"), [
    ("RLIMIT_FSIZE", "300"), ("RLIMIT_NOFILE", "3"), pytest.param("RLIMIT_FSIZE", "0", marks=pytest.mark.slow)])
def test_a_race_for_which_there_is_no_room_is_told(limit, size, tmp_path):
    """Stands for a full disk, and for a program that has opened as many files as it may."""
    (tmp_path / "program.py").write_text(textwrap.dedent(NO_ROOM))
    # Without the limit first: a module of ours that is imported under it would leave a truncated .pyc for later tests.
    assert call(tmp_path, "race", "program.py", "RLIMIT_FSIZE", str(2**30))[0] == 66
    code, _, errors = call(tmp_path, "race", "program.py", limit, size)
    assert code == 3, errors
    assert "some or all records are lost" in errors


def program(folder):
    return next(each.name for each in folder.iterdir() if "warning" in each.name)


def test_race(folder):
    code, out, err = call(folder, "race", "--sarif", "r.sarif", "--html", "r.html", "--json=r.json",
                          program(folder))
    assert (code, out) == (66, "")
    assert not is_safe(err)
    assert "w" + NASTY in {race["first"]["thread"] for race in json.loads((folder / "r.json").read_text())["races"]}
    for name in ("r.sarif", "r.json"):
        assert not is_safe((folder / name).read_text())
    check_page(folder / "r.html")


def check_page(file):
    """Check that a page shows the names, as text."""
    page = file.read_text()
    assert not {*page} & {*UNSEEN} - {"\n"}
    assert "&lt;b&gt;[bold]" in page
    assert "<b>" not in page


def test_gil(folder):
    if reason := preload.unavailable():
        pytest.skip(reason)
    code, out, err = call(folder, "gil", "--full", "--trace", "t.json", "--html", "g.html", program(folder))
    assert (code, out) == (0, "")
    assert "Where each thread's time went" in err
    assert not is_safe(err)
    assert not is_safe((folder / "t.json").read_text())
    check_page(folder / "g.html")


@pytest.mark.slow
def test_run_and_its_reports(folder):
    build = f"host={sys.executable}"
    code, out, err = call(folder, "run", "fails:always", "--payloads", "fails:payloads", "--build", build, "--quick")
    assert code == 2
    assert not is_safe(out + err)
    assert re.search(r"5,000,0\d\d characters", err)
    assert len(err) < 5000
    code, out, err = call(folder, "run", "fails:work", "--payloads", "fails:payloads", "--build", build, "--label", "x",
                          "--rounds", "1", "--workers", "2", "--models", "threads,processes-spawn")
    assert code == 3
    assert r"::error file=x.py,line=1::injected" not in out   # the first line of an exception is told
    said = [out, err, *(call(folder, *words)[1] for words in (
        ["report"], ["report", "x"], ["report", "x", "--markdown"], ["report", "x", "--json"],
        ["report", "x", "--publish", "p"]))]
    assert all(each.strip() for each in said)
    said += [each.read_text() for each in (folder / "p").iterdir()]
    assert len(said) > 10
    for each in said:
        assert not is_safe(each)
        assert len(each) < 100_000
    assert not {*(folder / "results" / "x" / "run.json").read_text()} & {*UNSEEN}
