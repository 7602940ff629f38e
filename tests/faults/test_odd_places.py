"""Pipes, devices, loops and folders that somebody takes away: said in a sentence, and nothing waits or fills memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.bounded_reading import parse_json, read_bytes, read_text
from gilscope.toolkit.builds.logged_command import log_end
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.errors import BadFileError, UnknownNameError
from gilscope.toolkit.evaluate.packages.distributions import damage
from gilscope.toolkit.evaluate.project.racing import races, tests
from gilscope.toolkit.evaluate.requirements.declared import find_extras
from gilscope.toolkit.evaluate.requirements.locks import read_lock
from gilscope.toolkit.evaluate.requirements.requirements_file import requirement_lines
from gilscope.toolkit.experiments.gil_trace.experiment import read_trace
from gilscope.toolkit.gil.records import BadRecordError, read_folder
from gilscope.toolkit.race.report.settings import settings
from gilscope.toolkit.site.figure_files import is_drawing
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.faults import hostile_functions
from tests.faults.calling import call, faults_of, limited
from tests.faults.commands import HOST
from tests.patience import PATIENCE

EXAMPLE = ROOT / "results" / "example"


def odd(kind, path):
    """Put something at `path` that is no regular file of a usual size."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**40)   # without a block of its own
    return path


def extras(path):
    return find_extras(path.parent, {})


KINDS = ("pipe", "endless", "loop", "folder", "huge")


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_of_a_size_are_read(kind, tmp_path):
    with limited(), pytest.raises(OSError, match=r"regular file|back to itself|no more is read"):
        read_bytes(odd(kind, tmp_path / "file"))


def test_what_may_be_read_is_read_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert read_bytes(path, 1000) == b"x" * 1000
    with pytest.raises(OSError, match="no more is read"):
        read_bytes(path, 999)
    path.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(path)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "[" * 10**6, '{"a":' * 10**6, "", "x", "1" * 5000])
def test_json_is_what_other_programs_write(text):
    with limited(), pytest.raises(ValueError):
        parse_json(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("read", [
    settings, read_lock, requirement_lines, extras, is_drawing, damage,
], ids=["settings of race", "lock", "requirements", "settings of setuptools", "figure", "library"])
def test_files_of_a_project_are_read_to_an_end(read, kind, tmp_path):
    path = odd(kind, tmp_path / ("setup.cfg" if read is extras else "pylock.toml"))
    with limited():
        try:
            assert read(path) is not None
        except BadFileError as error:
            assert str(path) in str(error)   # noqa: PT017 - where settings are no file, there are none


@pytest.mark.parametrize("kind", KINDS)
def test_lock_that_is_no_file_is_refused_by_the_command(kind, tmp_path):
    called = call("doctor", "--lock", str(odd(kind, tmp_path / "pylock.toml")), "--offline")
    assert (called.code, [*faults_of(called)]) == (2, [])


@pytest.mark.parametrize("kind", KINDS)
def test_run_whose_header_is_no_file_is_told_so_by_its_name(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "one").mkdir(parents=True)
    odd(kind, tmp_path / "results" / "one" / "run.json")
    called = call("report", "one")
    assert (called.code, [*faults_of(called)]) == (2, [])
    assert "one/run.json cannot be read" in called.errors


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "huge"])   # a large wheel is one
def test_wheel_that_is_no_file_is_refused(kind, tmp_path):
    with limited(), pytest.raises(UnknownNameError, match=r"is no wheel|there is no file"):
        checked(str(odd(kind, tmp_path / "x-1.0-py3-none-any.whl")), paths=True)


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"together": "x", "failing": 1, "alone": 2}', '{"calls": null}'])
def test_what_a_test_has_written_over_is_as_if_it_were_not_there(text, tmp_path):
    (tmp_path / tests.TOLD).write_text(text)
    assert tests.read_record(tmp_path) == tests.ThreadedTests()
    (tmp_path / races.TOLD).write_text(text)
    assert races._calls(races._told(tmp_path)) == 0


@pytest.mark.parametrize("kind", [*KINDS[:-1], pytest.param(KINDS[-1], marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["run.json", "3.13.json", ".lock"])
@pytest.mark.parametrize("words", [("report",), ("report", "odd"), pytest.param(
    ("compare", "odd", "--builds", "3.13,3.13t"), marks=pytest.mark.slow)])
def test_odd_file_in_results_costs_only_its_run(words, name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for label in ("odd", "whole"):
        shutil.copytree(EXAMPLE, tmp_path / "results" / label, ignore=lambda *_: ["experiments", "first-look",
                        "own-function", "second-worker", ".lock"])
    (tmp_path / "results" / "loop").symlink_to("loop")
    (tmp_path / "results" / "odd" / name).unlink(missing_ok=True)
    odd(kind, tmp_path / "results" / "odd" / name)
    called = call(*words)
    assert [*faults_of(called)] == []
    assert called.code == (0 if words == ("report",) or name == ".lock" else 2)
    if words == ("report",):
        assert "whole" in called.out


def command(*words, **options):
    return subprocess.run([sys.executable, "-m", "gilscope", *words], capture_output=True, text=True, check=False,
                          timeout=PATIENCE, **{"cwd": ROOT, **options})


@pytest.mark.parametrize("folder", ["gone", "a file"])
def test_temporary_folder_that_cannot_be_used_is_said(folder, tmp_path, monkeypatch):
    place = tmp_path / "tmp"
    if folder == "a file":
        place.write_text("")
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(place))
    code = ("import sys, tempfile; tempfile._candidate_tempdir_list = lambda: [sys.argv[1]]\n"
            "from gilscope.toolkit.cli import main\n"
            "sys.exit(main(['run', 'primes', '--quick', '--label', 'x']))")
    done = subprocess.run([sys.executable, "-c", code, str(place)], cwd=tmp_path, env={**os.environ,
                          "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (3, "")
    assert "TMPDIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("report",), ("report", "x"), ("list",), ("--help",)])
def test_current_folder_that_is_gone_is_said(words, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(["sh", "-c", shell, "sh", str(gone), sys.executable, "-m", "gilscope", *words],
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
                          timeout=PATIENCE)
    assert "Traceback" not in done.stderr
    assert done.returncode in {0, 2}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("words", [("report", str(EXAMPLE), "--json"),
                                   ("compare", str(EXAMPLE), "--builds", "3.13,3.13t", "--fail-on", "900%")])
def test_full_device_is_no_finding(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "gilscope", *words], cwd=ROOT, stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_report_on_a_full_disk_is_3(option):
    done = command("report", str(EXAMPLE), option, "/dev/full")
    assert (done.returncode, "No space left on device" in done.stderr) == (3, True)
    assert "Traceback" not in done.stderr


RACY = """
import sys, threading
count = 0
def add():
    global count
    for _ in range(100): count += 1
threads = [threading.Thread(target=add) for _ in range(int(sys.argv[1]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.newest
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize(("threads", "ends", "code"), [(2, 5, 66), (1, 5, 5), (1, 0, 3)])
def test_report_that_cannot_be_written_hides_neither_race_nor_exit_code(threads, ends, code, tmp_path):
    (tmp_path / "racy.py").write_text(RACY)
    done = command("race", "--json=/dev/full", "--sarif=/dev/full", "racy.py", str(threads), str(ends), cwd=tmp_path,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == code, done.stderr
    assert done.stderr.count("cannot write /dev/full: No space left on device") == 2
    assert ("data race" in done.stderr) == (code == 66)


def test_end_of_a_log_is_read_without_the_rest(tmp_path):
    log = odd("huge", tmp_path / "log")
    with log.open("ab") as file:
        file.write(b"\none\ntwo\xff\n")
    with limited():
        assert log_end(log, 2) == "  one\n  two\ufffd"
    for kind in set(KINDS) - {"huge"}:
        with limited():
            assert "cannot be read" in log_end(odd(kind, tmp_path / kind))


@pytest.mark.parametrize("kind", KINDS)
def test_recording_that_is_no_file_is_refused(kind, tmp_path):
    odd(kind, tmp_path / "1-2.gil")
    with limited():
        if kind == "huge":   # its beginning says that its process was killed before it had one
            assert read_folder(tmp_path) == []
            return
        with pytest.raises(BadRecordError, match=r"regular file|back to itself"):
            read_folder(tmp_path)


@pytest.mark.parametrize("content", [
    "", "{}", "[]", '{"traceEvents": 3}', '{"traceEvents": [{}]}', '{"traceEvents": ["x"]}', "[" * 10**6,
    ('{"traceEvents": [{"name": "thread_name", "tid": 1, "ph": "M", "args": {"name": "CPU"}},'
     ' {"name": "x", "ph": "X", "tid": 1, "ts": "soon", "dur": 1}]}'),
    *KINDS,
])
def test_trace_of_a_cell_that_is_none_is_named(content, tmp_path):
    path = tmp_path / "trace.json"
    if content in KINDS:
        odd(content, path)
    else:
        path.write_text(content)
    with limited(), pytest.raises(BadFileError, match=r"trace\.json"):
        read_trace(path, ("x",))


READER_GONE = """
import os, sys
near, far = os.pipe()
os.dup2(far, 2)
os.close(far)
os.close(near)
os.execv(sys.executable, [sys.executable, "-m", "gilscope", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_reader_that_has_gone_ends_no_measuring(tmp_path):
    """As `gilscope run 2>&1 | head -1` does; what fails in the first round is said on the way."""
    (tmp_path / "mine.py").write_text(hostile_functions.source("raises"))
    done = subprocess.run([sys.executable, "-c", READER_GONE, "run", "mine:work", "--payload", "20000", "--tasks", "2",
                           "--models", "threads", "--workers", "2", "--quick", "--rounds", "2", "--label", "x", *HOST],
                          cwd=tmp_path, check=False, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT)},
                          stdout=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert "LookupError: gone" in done.stdout
    assert load_run(tmp_path / "results" / "x").rounds_done == 2
