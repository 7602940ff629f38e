"""A checking that ends leaves the process as it was, and there is one at a time."""

import os
import subprocess
import textwrap

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.builds("gil", "free")

PRELUDE = """
    import builtins, sys, threading, _thread, queue, os, tempfile
    from gilscope.toolkit.race.session import RaceSession, load_core
    folder = tempfile.TemporaryDirectory()   # gone when the process ends
    spool = folder.name
    def look():
        return (sorted(vars(builtins)), list(sys.meta_path), threading.Lock, threading.RLock, _thread.allocate_lock,
                dict(vars(threading.Thread)), dict(vars(threading.Condition)), dict(vars(queue.Queue)),
                type(sys.__loader__ if hasattr(sys, "__loader__") else None))
    """


def run(python, body, **extra):
    done = subprocess.run(
        [python, "-c", textwrap.dedent(PRELUDE) + textwrap.dedent(body)], capture_output=True, text=True,
        timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": str(ROOT), **extra})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_is_taken_back(python):
    shown = run(python, """
        before = look()
        for _ in range(3):
            session = RaceSession(spool=spool)
            session.start()
            assert "gilscope:attr_read" in vars(builtins)
            assert RaceSession.current is session
            lock = threading.Lock()
            session.stop()
            after = look()
            print([now == then for now, then in zip(after, before)], RaceSession.current)
        with lock:
            print(lock.locked())   # what was made meanwhile keeps working
        """)
    assert shown == (f"{[True] * 9} None\n" * 3) + "True\n"


def test_second_checking_is_refused(python):
    shown = run(python, """
        session = RaceSession(spool=spool)
        session.start()
        try:
            RaceSession(spool=spool).start()
        except RuntimeError as error:
            print(error)
        print(RaceSession.current is session)
        session.stop()
        """)
    assert shown == "this process is already being checked for races; sessions cannot be nested\nTrue\n"


def test_beginning_that_fails_is_taken_back(python):
    shown = run(python, """
        import gilscope.toolkit.race.session
        def fail(*arguments):
            raise OSError("no")
        gilscope.toolkit.race.session.ConflictHandler = fail
        before = look()
        try:
            RaceSession(spool=spool).start()
        except OSError:
            print(look() == before, RaceSession.current)
        """)
    assert shown == "True None\n"


def test_core_that_cannot_be_had_is_refused(python, tmp_path):
    shown = run(python, """
        import gilscope.toolkit.race.session as module
        try:
            load_core()
        except module.CoreMissingError as error:
            print(error)
        """, GILSCOPE_CACHE=str(tmp_path), PATH=str(tmp_path), CC="")
    assert shown.startswith("the race checker has no core for this Python: there is no C compiler")


def test_names_of_the_package_come_when_asked_for(python):
    assert run(python, """
        import gilscope.toolkit.race
        print("gilscope.toolkit.race.watching" in sys.modules)
        try:
            gilscope.toolkit.race.nothing
        except AttributeError as error:
            print(error)
        """) == "False\nmodule 'gilscope.toolkit.race' has no attribute 'nothing'\n"
