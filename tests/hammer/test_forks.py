"""Forks that end in every way, and threads that are stopped; each program in a process of its own."""

import json
import sys
import textwrap

import pytest

from tests.conformance.builds import run_child

FORK = """
import json, os, signal, sys, threading, time
from gilscope.toolkit.hammer.forks import forked

def ends(write, pipe):
    write(number=1)
    {what}

records, ending = forked(ends, {limit})
try:
    os.waitpid(-1, os.WNOHANG)
    left = True
except ChildProcessError:
    left = False
print(json.dumps([records, ending.kind, ending.reason, "ends" in ending.output, left]))
"""


def program(text):
    done = run_child(sys.executable, "-c", textwrap.dedent(text), timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(("what", "kind", "reason"), [
    ("print('noise')", "done", ""),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", "SIGSEGV"),
    ("os.abort()", "crash", "SIGABRT"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "exit", "ended with -9"),    # from outside: no fault of the code
    ("os._exit(3)", "exit", "ended with 3"),
    ("raise ValueError('no')", "exit", "ended with 1"),
    ("threading.Event().wait()", "hang", "did not end within 0.5 s"),
])
def test_ending_of_a_fork(what, kind, reason):
    records, ended, why, stack, left = program(FORK.format(what=what, limit=0.5 if kind == "hang" else 60))
    assert (records, ended, why, left) == ([{"number": 1}], kind, reason, False)
    assert stack == (kind in {"crash", "hang"})   # faulthandler names the function


def test_limit_of_each_record_does_not_count_from_the_start():
    text = FORK.replace("{limit})", "{limit}, each=True)").format(
        what="[(time.sleep(0.2), write(number=2)) for _ in range(12)]", limit=2)
    records, kind, *_ = program(text)
    assert (len(records), kind) == (13, "done")


def test_thread_is_stopped_until_the_pipe_is_emptied():
    stopped, same, went_on = program("""
        import json, random, signal, threading
        from pathlib import Path
        from gilscope.toolkit.hammer.stalls import NUMBER, StallPipe, Staller

        pipe = StallPipe()
        staller = Staller(pipe, random.Random(1))
        count, ids, stop = [0], [], []

        def work():
            staller.enter()
            ids.append((threading.get_native_id(), threading.get_ident()))
            while not stop:
                count[0] += 1
            staller.leave()

        thread = threading.Thread(target=work)
        thread.start()
        while not ids or count[0] < 1000:
            pass
        native, ident = ids[0]
        # A loop that computes never waits: it does in the handler alone, or for the GIL, which nobody has.
        signal.pthread_kill(ident, NUMBER)
        state = Path(f"/proc/self/task/{native}/syscall")
        while not state.read_text().startswith("1 "):   # write(2)
            pass
        before = count[0]
        for _ in range(10**6):
            pass
        same = count[0] == before
        pipe.release()
        while count[0] == before:
            pass
        stop.append(True)
        thread.join()
        staller.close()
        pipe.close()
        print(json.dumps([True, same, count[0] > before]))
    """)
    assert (stopped, same, went_on) == (True, True, True)
