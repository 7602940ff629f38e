"""Forks that end in every way; each program in a process of its own."""

import json
import sys
import textwrap

import pytest

from tests.conformance.builds import run_child
from tests.patience import PATIENCE

FORK = """
import json, os, signal, sys, threading, time
from gilscope.toolkit.processes import forks
from gilscope.toolkit.processes.forks import Fork

begun, begin = os.pipe()

def ends(write):
    write(number=1)
    os.write(begin, b"x")
    {what}

fork = Fork(ends, keep_output=True)
os.read(begun, 1)   # no limit includes the start of the fork
records, ending = fork.result({limit})
try:
    os.waitpid(-1, os.WNOHANG)
    left = True
except ChildProcessError:
    left = False
print(json.dumps([records, ending.kind, ending.reason, "ends" in ending.output, left]))
"""


def program(text):
    done = run_child(sys.executable, "-c", textwrap.dedent(text), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(("what", "kind", "reason"), [
    ("print('noise')", "done", ""),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", "SIGSEGV"),
    ("os.abort()", "crash", "SIGABRT"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "exit", "ended with -9"),    # from outside: no fault of the code
    ("os._exit(3)", "exit", "ended with 3"),
    ("raise ValueError('no')", "exit", "ended with 1"),
])
def test_ending_of_a_fork(what, kind, reason):
    records, ended, why, stack, left = program(FORK.format(what=what, limit=600))
    assert (records, ended, why, left) == ([{"number": 1}], kind, reason, False)
    assert stack == (kind == "crash")   # faulthandler names the function


@pytest.mark.parametrize(("what", "kind"), [
    ("threading.Event().wait()", "blocked"),
    ("while True: pass", "spinning"),
    ("while True: write(); time.sleep(0.01)", "slow"),       # it makes progress
    ("os.kill(os.getpid(), signal.SIGSTOP)", "slow"),        # whoever gets no core does not wait for another thread
])
def test_fork_that_takes_too_long_is_watched_and_ended(what, kind):
    for limit in (0.1, 1, 10):      # a busy machine may take longer until it waits
        text = FORK.format(what=what, limit=f"{limit}, watch={10 * limit:g}")
        if kind == "spinning":      # however little CPU time a busy machine gives it
            text = text.replace("fork = Fork", "forks.IDLE_SHARE = 0\nfork = Fork")
        records, ended, why, _, left = program(text)
        if ended == kind:
            break
    assert (ended, why, left) == (kind, f"did not end within {limit} s", False)
    assert records == [{"number": 1}]   # signs of life are none


def test_stack_of_a_fork_that_hangs_is_printed():
    _, kind, _, stack, _ = program(FORK.format(what="threading.Event().wait()", limit=0.1))
    assert (kind, stack) == ("slow", True)   # not watched: nobody knows why


def test_limit_of_silence_begins_anew_with_each_record():
    # A second and a half goes by before each record, by the clock of the parent; then it is written.
    assert program("""
        import json, os, time
        from types import SimpleNamespace
        from gilscope.toolkit.processes import forks

        now = 0.0
        forks.time = SimpleNamespace(monotonic=lambda: now, sleep=time.sleep)
        (may, let), (done, say) = os.pipe(), os.pipe()

        def writes(write):
            for number in range(12):
                os.read(may, 1)
                write(number=number)
                os.write(say, b"x")

        def meanwhile():
            global now
            now += 1.5
            os.write(let, b"x")
            os.read(done, 1)

        fork = forks.Fork(writes)
        os.close(say)
        records, ending = fork.result(600, silence=2, meanwhile=meanwhile)
        print(json.dumps([len(records), ending.kind]))
    """) == [12, "done"]
    _, kind, why, *_ = program(FORK.format(what="threading.Event().wait()", limit="60, silence=0.1"))
    assert (kind, why) == ("slow", "did not end within 0.1 s")


def test_fork_that_ends_while_it_is_watched_is_done():
    assert program("""
        import json, os
        from gilscope.toolkit.processes.forks import Fork

        reader, writer = os.pipe()
        fork = Fork(lambda write: write(read=os.read(reader, 1).decode()))
        records, ending = fork.result(0, watch=60, meanwhile=lambda: os.write(writer, b"x"))
        print(json.dumps([records, ending.kind]))
    """) == [[{"read": "x"}], "done"]


def test_what_a_fork_prints_is_no_record_and_kept_only_if_asked_for():
    assert program("""
        import json, os
        from gilscope.toolkit.processes.forks import Fork

        def noisy(write):
            for handle in range(1, 64):
                try:
                    os.write(handle, b'{"made": "up"}\\n')
                except OSError:
                    pass
            write(true=1)

        found = []
        for keeps in (True, False):
            records, ending = Fork(noisy, keep_output=keeps).result(600)
            found.append([records, ending.kind, ending.output])
        records, ending = Fork(lambda _: os.abort(), keep_output=False).result(600)
        print(json.dumps([*found, ending.output]))
    """) == [[[{"true": 1}], "done", ""], [[{"true": 1}], "done", ""], ""]


def test_fork_that_closes_its_pipe_and_goes_on_is_ended():
    what = "os.closerange(3, 64); threading.Event().wait()"
    records, kind, _, _, left = program(FORK.format(what=what, limit=600))
    assert (records, kind, left) == ([{"number": 1}], "slow", False)


def test_forks_run_at_the_same_time():
    # The first one to be waited for needs the other.
    assert program("""
        import json, os
        from gilscope.toolkit.processes.forks import Fork

        reader, writer = os.pipe()
        forks = [Fork(lambda write: write(read=os.read(reader, 1).decode())),
                 Fork(lambda write: write(written=os.write(writer, b"x")))]
        print(json.dumps([fork.result(600)[0] for fork in forks]))
    """) == [[{"read": "x"}], [{"written": 1}]]


def test_interrupted_wait_leaves_no_fork():
    assert program("""
        import json, os, threading
        from gilscope.toolkit.processes.forks import Fork

        def interrupt():
            raise KeyboardInterrupt

        fork = Fork(lambda _: threading.Event().wait())
        try:
            fork.result(600, meanwhile=interrupt)
        except KeyboardInterrupt:
            try:
                os.waitpid(fork.pid, 0)
            except ChildProcessError:
                print(json.dumps("gone"))
    """) == "gone"
