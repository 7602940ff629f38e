"""`gilscope race` beside another one, and stopped and continued by a terminal."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.race.whole.replacing import replacing
from tests.race.whole.test_command_runs import RACY, environment, words

MODULES = 12
KEPT = 4      # entries: each process evicts what the other has just stored or is about to load
SMALL_CACHE = f"from gilscope.toolkit.race.loading import cache; cache.MOST_ENTRIES = {KEPT}"
# Imports its modules in step with the other program, by pipes with names, and races in the last of them.
IN_STEP = """
    import importlib, sys, threading
    mine, other, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(mine, "r+b", buffering=0) as heard, open(other, "r+b", buffering=0) as said:
        try:
            for number in range(count):
                said.write(b".")
                heard.read(1)
                module = importlib.import_module(f"module_{number}")
        finally:
            said.write(b"." * count)     # whoever fails lets the other go on
    threads = [threading.Thread(target=module.add) for _ in range(2)]
    for each in threads: each.start()
    for each in threads: each.join()
    """


def test_two_at_once_on_a_cache_that_evicts_report_their_own(tmp_path):
    cache = Path(os.environ["GILSCOPE_CACHE"])
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "race-core").symlink_to(cache / "race-core")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        os.mkfifo(tmp_path / f"{name}.pipe")
        (tmp_path / name / "script.py").write_text(textwrap.dedent(IN_STEP))
        for number in range(MODULES):
            (tmp_path / name / f"module_{number}.py").write_text(
                f"total_of_{name} = {number}\ndef add():\n    global total_of_{name}\n    total_of_{name} += 1\n")
    for _ in range(2):      # the second time with the entries that are left of the first
        with contextlib.ExitStack() as running:
            runs = {name: start(tmp_path, name, other, running) for name, other in (("one", "two"), ("two", "one"))}
            ends = {name: (run.communicate(timeout=PATIENCE)[1], run.returncode) for name, run in runs.items()}
        for name, (errors, code) in ends.items():
            assert code == 66, errors
            report = json.loads((tmp_path / name / "report.json").read_text())
            assert [race["base"] for race in report["races"]] == [f"global total_of_{name} in module_{MODULES - 1}.py"]
            assert report["unrewritten"] == []
        assert 0 < len([*(tmp_path / "cache" / "race").iterdir()]) <= KEPT + 1   # each counts before it removes


def start(folder, name, other, running):
    """Start the program of that name, which goes on in step with the other."""
    run = running.enter_context(subprocess.Popen(
        [sys.executable, *replacing(SMALL_CACHE), "race", "--json=report.json", "script.py",
         str(folder / f"{name}.pipe"), str(folder / f"{other}.pipe"), str(MODULES)],
        cwd=folder / name, stderr=subprocess.PIPE, text=True,
        env=environment(GILSCOPE_CACHE=str(folder / "cache"))))
    running.callback(run.kill)
    return run


# What an interactive shell does: the command gets a process group of its own and the terminal, and `fg` continues it.
SHELL = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(job, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("stopped", os.WIFSTOPPED(status), flush=True)
signal.sigwait({signal.SIGUSR1})
os.tcsetpgrp(0, job)
os.killpg(job, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]), flush=True)
"""


def state_of(pid):
    """Return the letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="process states are read as Linux shows them")
def test_ctrl_z_stops_program_and_gilscope_and_fg_continues_both(tmp_path):
    (tmp_path / "script.py").write_text("import os\nprint('pids', os.getpid(), os.getppid(), 'ready', flush=True)\n"
                                        "print('read', input(), flush=True)\n" + textwrap.dedent(RACY))
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", SHELL, *words("script.py")])
    shown = ""

    def show_until(pattern):
        nonlocal shown
        while not re.search(pattern, shown):
            assert select.select([terminal], [], [], PATIENCE)[0], shown
            shown += os.read(terminal, 4096).decode()

    pids = []
    try:
        show_until(" ready")
        pids = [int(word) for word in shown.partition("pids ")[2].split()[:2]]
        os.write(terminal, b"\x1a")
        show_until("stopped True")
        # The system stops each process of the group by itself.
        while {state_of(pid) for pid in pids} != {"T"}:
            os.sched_yield()
        os.kill(shell, signal.SIGUSR1)
        os.write(terminal, b"a line\n")
        show_until("read a line")
        show_until(r"ended \d+\s")
    finally:
        for pid in (*pids, shell):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)
    assert "DATA RACE on Account.balance" in re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert shown.partition("ended ")[2].split() == ["66"]
