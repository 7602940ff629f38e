"""Locks of extension types: a race under one that both sides hold is a doubt, and any other stays a race."""

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
# Each of two threads runs its functions as a whole, one after the other: by a pipe, which no checker looks at.
PROGRAM = """
    import contextlib, os, threading
    from foreign_lock import Latch
    latch, other = Latch(), Latch()
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
    named, open_latch, nothing, account = Named(), Open(), Nothing(), Account()
    reading, writing = os.pipe()
    def first():
        {one}
        os.write(writing, b".")
    def second():
        os.read(reading, 1)
        {two}
    def run():
        {start}
        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    run()
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


def run(latched, tmp_path, ways, *options, core="C"):
    """Run a program whose two threads do these, each on an attribute of its own."""
    python, folder = latched
    for module in folder.iterdir():
        shutil.copy(module, tmp_path)
    one, two, start = (
        "\n        ".join(text.replace("N", f"account.{name}") for name, text in bodies)
        for bodies in ([(name, way[0]) for name, way in ways.items()], [(name, way[1]) for name, way in ways.items()],
                       [(name, "N = 0") for name in ways]))
    return race(tmp_path, PROGRAM.format(one=one, two=two, start=start), *options, python=python, core=core)


def found(latched, tmp_path, ways, core):
    """Return the exit code, the races and the doubts, each by the attribute."""
    done = run(latched, tmp_path, ways, "--json", "report.json", core=core)
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    return done.returncode, *({race["base"].partition(".")[2]: race for race in report[part]}
                              for part in ("races", "doubts"))


@pytest.mark.parametrize("core", ["C", "Python"])
def test_race_under_a_lock_of_c_at_both_places_is_a_doubt(latched, tmp_path, core):
    code, races, doubts = found(latched, tmp_path, WAYS, core)
    assert (code, races, set(doubts)) == (0, {}, set(WAYS))
    for doubt in doubts.values():
        assert doubt["severity"] == "doubt"
        assert doubt["pattern"].startswith("The order is not known: both hold ")
        assert doubt["pattern"].endswith(", a lock of C that is not watched.")
        assert doubt["missing"].startswith("If it lets two threads in at a time: `+=` reads")


@pytest.mark.parametrize("core", ["C", "Python"])
def test_race_without_such_a_lock_at_both_places_stays_one(latched, tmp_path, core):
    code, races, doubts = found(latched, tmp_path, RACES, core)
    assert (code, set(races), doubts) == (66, set(RACES), {})
    assert {race["severity"] for race in races.values()} == {"race"}


@pytest.mark.parametrize("core", ["C", "Python"])
def test_update_in_two_acquisitions_is_an_atomicity_violation(latched, tmp_path, core):
    code, races, _ = found(latched, tmp_path, {"split": (SPLIT, SPLIT)}, core)
    assert code == 66
    assert races["split"]["severity"] == "atomicity violation"
    assert "release it between the steps" in races["split"]["missing"]


def test_report_says_what_is_not_known_and_does_not_fail(latched, tmp_path):
    done = run(latched, tmp_path, {"entered": WAYS["entered"]}, "--sarif", "report.sarif")
    assert done.returncode == 0
    assert "DOUBT on Account.entered" in done.stderr
    assert re.search(r"The order is not known: both hold .*latch.*, a lock of C that is not watched\.", done.stderr)
    assert "Neither is ordered" not in done.stderr
    assert "no race in what this run did, 1 doubt" in done.stderr
    [result] = json.loads((tmp_path / "report.sarif").read_text())["runs"][0]["results"]
    assert result["level"] == "note"
    assert "The order is not known" in result["message"]["text"]
