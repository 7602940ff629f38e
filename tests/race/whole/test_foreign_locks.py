"""Locks of extension types order threads as those of the standard library do."""

import json
import re
import shutil
import subprocess

import pytest

from tests.conformance.builds import ROOT
from tests.race.whole.test_command_runs import race

pytestmark = pytest.mark.builds("gil", "free")

SOURCE = ROOT / "tests" / "race" / "whole" / "foreign_lock.c"
NAMED = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX'))"
PROGRAM = """
    import contextlib, os, threading
    from foreign_lock import Latch
    class Account:
        pass
    class Nothing:
        def __enter__(self): pass
        def __exit__(self, *error): pass
    class Named(Latch):
        pass
    class Open(Latch):
        def __enter__(self): return self
        def __exit__(self, *error): pass
    nothing, account = Nothing(), Account()
    """
# Two threads, one after the other: by files on a pipe, which no checker looks at.
WAY = """
    def {name}():
        latch, other, named, open_latch = Latch(), Latch(), Named(), Open()
        reading, writing = os.pipe()
        def first():
            {one}
            open(writing, "wb", 0).write(b".")
        def second():
            open(reading, "rb", 0).read(1)
            {two}
        account.{name} = 0
        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    {name}()
    """
WAYS = {     # how each thread adds to an attribute of that name; both hold the same lock
    "entered": ("with latch: N += 1",) * 2,
    "acquired": ("latch.acquire(); N += 1; latch.release()", "with latch: N += 1"),
    "tried": ("assert latch.lock(); N += 1; latch.unlock()",) * 2,
    "of_our_class": ("with named: N += 1", "named.acquire(); N += 1; named.release()"),
    "on_a_stack": ("stack = contextlib.ExitStack(); stack.enter_context(latch); N += 1; stack.close()",
                   "with latch: N += 1"),
    "acquired_again": ("latch.acquire(); latch.release(); latch.acquire(); N += 1; latch.release()",
                       "with latch: N += 1"),
}
RACES = {
    "under_another": ("with other: N += 1", "with latch: N += 1"),
    "under_none": ("N += 1", "with latch: N += 1"),
    "released_before": ("latch.acquire(); latch.release(); N += 1", "with latch: N += 1"),
    "entered_in_python": ("with nothing: N += 1",) * 2,
    "overridden_in_python": ("with open_latch: N += 1",) * 2,
    "in_vain": ("other.acquire(); other.lock(); other.release(); N += 1", "with other: N += 1"),
    "under_a_file": ("""file = open(os.devnull)
            with file: N += 1""",) * 2,
}
SPLIT = """with latch: before = N
            with latch: N = before + 1"""


@pytest.fixture(scope="session")
def latched(python, tmp_path_factory):
    """Return a build, and a folder with the extension module for it."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("latch")
    named = subprocess.run([python, "-c", NAMED], capture_output=True, text=True, check=True)
    include, suffix = named.stdout.split()
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", str(SOURCE), "-o", str(folder / f"foreign_lock{suffix}")],
                   check=True)
    return python, folder


def run(latched, tmp_path, ways, *options):
    """Run a program whose two threads do these, each on an attribute of its own."""
    python, folder = latched
    for module in folder.iterdir():
        shutil.copy(module, tmp_path)
    source = [re.sub(r"\bN\b", f"account.{name}", WAY.format(name=name, one=one, two=two))
              for name, (one, two) in ways.items()]
    return race(tmp_path, PROGRAM + "".join(source), *options, python=python)


def found(latched, tmp_path, ways):
    """Return the exit code, and the races by the attribute."""
    done = run(latched, tmp_path, ways, "--json", "report.json")
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    return done.returncode, {race["base"].partition(".")[2]: race for race in report["races"]}


def test_lock_of_c_at_both_places_orders_them(latched, tmp_path):
    assert found(latched, tmp_path, WAYS) == (0, {})


def test_race_without_such_a_lock_at_both_places_is_reported(latched, tmp_path):
    code, races = found(latched, tmp_path, RACES)
    assert (code, set(races)) == (66, set(RACES))
    assert {race["severity"] for race in races.values()} == {"race"}


def test_update_in_two_acquisitions_is_an_atomicity_violation(latched, tmp_path):
    code, races = found(latched, tmp_path, {"split": (SPLIT, SPLIT)})
    assert code == 66
    assert races["split"]["severity"] == "atomicity violation"
    assert "release it between the steps" in races["split"]["missing"]
