"""Processes that ask: how their ends are told, and that nothing of them stays."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.packages.imports import ImportRequest, import_run
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.processes.test_supervised import gone, told

HERE = Path(sys.executable)


def imported(folder, text, **options):
    (folder / "thing.py").write_text(text)
    return import_run(HERE, ImportRequest(roots=("thing",)), path=[str(folder)], **options)


@pytest.mark.parametrize(("text", "kind", "reason"), [
    ("x = 1", "done", ""),
    ("import os; os.abort()", "crash", "crashed with SIGABRT"),
    ("import os; os._exit(3)", "exit", "ended with exit code 3"),
    ("import os; os._exit(0)", "exit", "ended before everything was imported"),
    ("import atexit, os; atexit.register(os._exit, 4)", "exit", "ended with exit code 4"),
])
def test_endings(tmp_path, text, kind, reason):
    run = imported(tmp_path, text)
    assert (run.kind, run.reason) == (kind, reason)


def test_exceptions_up_to_exit_are_answers(tmp_path):
    run = imported(tmp_path, "raise SystemExit('not without a licence')")
    assert (run.kind, run.failed) == ("done", (("thing", "SystemExit: not without a licence"),))


@pytest.mark.parametrize(("ending", "kept"), [("SIGKILL", False), ("SIGTERM", False), ("SIGABRT", True)])
def test_answer_of_a_process_that_was_ended_from_outside_is_not_kept(tmp_path, ending, kept):
    # What a Ctrl-C ends must not be a crash of the package's in the next call.
    memo = tmp_path / "memo"
    run = imported(tmp_path, f"import os, signal; os.kill(os.getpid(), signal.{ending})", memo=memo)
    assert run.reason == f"crashed with {ending}"
    assert memo.exists() == kept


def test_a_hang_says_where_and_leaves_nobody_behind(tmp_path):
    program = f"""
import os, subprocess, sys, time
process = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
open({str(tmp_path / 'pid')!r}, 'w').write(str(process.pid))
def waits():
    time.sleep(600)
waits()
"""
    for limit in (1.0, 20.0, 120.0):   # a busy machine takes longer until it hangs
        run = imported(tmp_path, program, limit=limit)
        if "in waits" in run.output:
            break
    assert (run.kind, run.during) == ("hang", "thing")
    assert "in waits" in run.output
    assert gone(int((tmp_path / "pid").read_text()))


def test_settings_of_the_users_shell_do_not_reach_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    run = imported(tmp_path, "import sys, os\nassert '/nowhere' not in sys.path\n"
                             "assert not [name for name in os.environ if name.startswith('PYTHON')]\n"
                             "assert 'gilscope' not in sys.modules\nassert sys.argv[1:] == []\n")
    assert run.imported == ("thing",), run.failed


def test_stopping_ends_what_runs(tmp_path):
    (tmp_path / "thing.py").write_text(
        f"import os, time\nopen({str(tmp_path / 'fresh')!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(tmp_path / 'fresh')!r}, {str(tmp_path / 'pid')!r})\ntime.sleep(600)\n")
    program = f"""
from pathlib import Path
import sys
from gilscope.toolkit.evaluate.packages.imports import ImportRequest, all_at_once, import_run
request = ImportRequest(roots=("thing",))
all_at_once(lambda _: import_run(Path(sys.executable), request, path=[{str(tmp_path)!r}]), ["a"])
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE)
    (asking,) = told(tmp_path / "pid")
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert b"KeyboardInterrupt" in complaint
    assert gone(asking)
