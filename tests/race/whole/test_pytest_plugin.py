"""`pytest --race` with real test suites in a process of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

COMMON = """
    import threading
    import pytest

    class Account:
        def __init__(self):
            self.balance = 0

        def deposit(self):
            self.balance += 1

    def both(function):
        threads = [threading.Thread(target=function) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """


def run(folder, tests, *options, plugin=("-p", "gilscope.toolkit.race.pytest_.plugin"), race=("--race",), **files):
    for name, text in {"test_it": textwrap.dedent(COMMON) + textwrap.dedent(tests), **files}.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    # The plugin is named: whether gilscope is installed here, and when, does not matter.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *race, *options]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    return done.stdout + done.stderr, done.returncode


RACY = """
    def test_racy():
        both(Account().deposit)
    """


def summary(shown):
    """Return the findings at the end, each as its lines."""
    blocks = shown.partition("= race checker =")[2].partition("= short test summary")[0].split("\n\n")
    return [block.partition("\n====")[0].splitlines() for block in blocks if block.startswith("[")]


def test_race_fails_the_test_in_three_lines_and_is_described_in_five_at_the_end(tmp_path):
    shown, code = run(tmp_path, RACY)
    assert (code, "1 failed" in shown) == (1, True)
    place = "test_it.py:10 in Account.deposit (Thread-"
    message = shown.partition("test_racy ____")[2].splitlines()[1:5]
    assert message[0] == "[1] DATA RACE on Account.balance: lost update"
    assert message[1].count(" at test_it.py:10 (Thread-") == 2
    assert "`+=` in line 10 reads, computes, writes" in message[2]
    assert message[3].startswith("=====")
    (lines,) = summary(shown)
    assert lines[:2] == ["[1] DATA RACE on Account.balance: lost update (seen 2 times)", "    in test_it.py::test_racy"]
    assert [place in line for line in lines[2:4]] == [True, True]
    assert lines[4:] == ["    Repair: Hold one lock over test_it.py:10."]
    assert "_pytest" not in shown   # frames that call every test say nothing


def test_nothing_is_checked_without_the_option(tmp_path):
    shown, code = run(tmp_path, RACY, race=())
    assert (code, "1 passed" in shown) == (0, True)


TWICE = """
    def test_first():
        both(Account().deposit)
    def test_clean():
        Account().deposit()
    def test_second():
        account = Account()
        def withdraw():
            account.balance -= 1
        both(withdraw)
    """


def test_a_finding_fails_one_test_and_is_counted_in_all(tmp_path):
    shown, code = run(tmp_path, TWICE, "-rA")
    assert (code, "1 failed, 2 passed" in shown) == (1, True)
    assert "FAILED test_it.py::test_first" in shown
    (lines,) = summary(shown)
    assert lines[1] == "    in 2 tests, first in test_it.py::test_first; 1 more pair of accesses: test_it.py:26"


def test_verbose_summary_has_the_stacks_and_other_pairs(tmp_path):
    shown, _ = run(tmp_path, TWICE, "-vvv")
    (lines,) = summary(shown)
    assert lines[0].startswith("[1] DATA RACE on Account.balance of <Account")
    assert [line.split()[0] for line in lines[1:3]] == ["read", "write"]
    assert lines[-3] == "  More races on it:"
    assert "test_it.py:26 in test_second" in lines[-2]
    assert lines[-1] == "  Found in 2 tests, first in test_it.py::test_first."


def test_two_findings_of_one_test_are_a_line_more(tmp_path):
    shown, _ = run(tmp_path, """
        total = 0
        def test_both():
            account = Account()
            def work():
                global total
                account.deposit()
                total += 1
            both(work)
        """)
    message = shown.partition("test_both ____")[2].splitlines()[1:6]
    assert [line[:16] for line in message[::3]] == ["[1] DATA RACE on", "[2] DATA RACE on"]
    assert message[4].startswith("====")
    assert [lines[0][:3] for lines in summary(shown)] == ["[1]", "[2]"]


def test_failing_test_shows_both(tmp_path):
    shown, _ = run(tmp_path, """
        import unittest
        def test_racy_and_wrong():
            account = Account()
            both(account.deposit)
            assert account.balance == 3
        class TestIt(unittest.TestCase):
            def test_racy_and_wrong(self):
                counts = [0]
                def count():
                    counts[0] += 1
                both(count)
                self.assertEqual(counts[0], 3)
        """)
    assert "assert 2 == 3" in shown   # rewritten by pytest, too
    assert shown.count("- data races -") == 2
    assert [lines[1] for lines in summary(shown)] == [
        "    in test_it.py::test_racy_and_wrong", "    in test_it.py::TestIt::test_racy_and_wrong"]


@pytest.mark.parametrize(("test", "outcome"), [
    ("@pytest.mark.xfail(strict=True)\ndef test_it():\n    both(Account().deposit)\n    raise OSError", "1 xfailed"),
    ("@pytest.mark.xfail\ndef test_it():\n    both(Account().deposit)", "1 xpassed"),
    ("@pytest.mark.xfail(strict=True)\ndef test_it():\n    both(Account().deposit)", "XPASS(strict)"),
    ("def test_it():\n    both(Account().deposit)\n    pytest.skip('after all')", "1 skipped"),
    ("def test_it(request):\n    both(Account().deposit)\n    request.applymarker(pytest.mark.xfail)", "1 xpassed"),
])
def test_a_race_changes_no_other_outcome_and_is_not_lost(tmp_path, test, outcome):
    shown, code = run(tmp_path, "\n" + test)
    assert (code, outcome in shown) == (1, True)
    assert [lines[1] for lines in summary(shown)] == ["    in test_it.py::test_it"]


def test_race_after_the_last_test_is_not_lost(tmp_path):
    shown, code = run(tmp_path, "def test_it(): pass\n", conftest=COMMON + """
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish():
        both(Account().deposit)
    """)
    assert (code, "1 passed" in shown) == (1, True)
    assert [lines[1] for lines in summary(shown)] == ["    outside of tests"]


def test_assertions_explain_themselves_as_ever(tmp_path):
    shown, _ = run(tmp_path, """
        def test_wrong():
            account = Account()
            account.deposit()
            assert [account.balance, {"a": 1}] == [1, {"a": 2}]
        """)
    assert "At index 1 diff: {'a': 1} != {'a': 2}" in shown


def test_races_of_fixtures_are_theirs(tmp_path):
    shown, code = run(tmp_path, """
        @pytest.fixture
        def before():
            both(Account().deposit)
        @pytest.fixture
        def after():
            yield
            counts = [0]
            def count():
                counts[0] += 1
            both(count)
        def test_before(before): pass
        def test_after(after): pass
        """, "--tb=line")
    assert code == 1
    assert "ERROR test_it.py::test_before" in shown
    assert "ERROR test_it.py::test_after" in shown
    assert "1 passed, 2 errors" in shown


def test_a_finding_of_two_phases_fails_the_first(tmp_path):
    shown, code = run(tmp_path, """
        @pytest.fixture
        def account():
            account = Account()
            yield account
            def withdraw():
                account.balance -= 1
            both(withdraw)

        def test_it(account):
            both(account.deposit)
        """)
    assert (code, "1 failed in" in shown, len(summary(shown))) == (1, True, 1)


def test_race_of_an_import_is_an_error_of_collection(tmp_path):
    shown, code = run(tmp_path, "both(Account().deposit)\n\ndef test_it(): pass\n")
    assert code == 2
    assert "ERROR test_it.py" in shown
    assert "DATA RACE on Account.balance" in shown


def test_modules_of_the_project_are_checked(tmp_path):
    shown, code = run(tmp_path, """
        import shop
        def test_it():
            both(shop.sell)
        """, shop="sold = 0\n\ndef sell():\n    global sold\n    sold += 1\n")
    assert code == 1
    assert "shop.py:5 in sell" in shown


def test_conftest_is_checked(tmp_path):
    shown, code = run(tmp_path, "def test_it(count): both(count)\n", conftest="""
        import pytest
        total = 0
        def add():
            global total
            total += 1
        @pytest.fixture
        def count():
            return add
        """)
    assert code == 1
    assert "conftest.py:6 in add" in shown


def test_suppressed_race_does_not_fail(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.gilscope.race]\nsuppress = [{ variable = "Account.balance", why = "known" }]\n')
    assert run(tmp_path, RACY)[1] == 0


@pytest.mark.parametrize("workers", [(), ("-n2", "-p", "xdist.plugin")])
def test_learned_findings_are_suppressed_and_new_ones_fail(tmp_path, workers):
    if workers:
        pytest.importorskip("xdist")
    (tmp_path / "pyproject.toml").write_text("# ours\n")
    shown, code = run(tmp_path, RACY, "--race-learn", *workers)
    assert (code, "1 passed" in shown, len(summary(shown))) == (0, True, 1)
    assert "pyproject.toml: 1 new entry in suppress of [tool.gilscope.race]" in shown
    shown, code = run(tmp_path, RACY, *workers)
    assert (code, "1 passed" in shown, summary(shown)) == (0, True, [])
    assert "suppressed but unreviewed: Account.balance; write why" in shown
    shown, code = run(tmp_path, RACY + """
        total = 0
        def test_new():
            def count():
                global total
                total += 1
            both(count)
        """.replace("\n    ", "\n"), *workers)
    assert (code, "1 failed, 1 passed" in shown) == (1, True)
    assert [lines[0].partition(":")[0] for lines in summary(shown)] == ["[1] DATA RACE on global total in test_it.py"]


def test_learning_needs_a_file_that_it_can_edit(tmp_path):
    shown, code = run(tmp_path, RACY, "--race-learn")
    assert (code, "has none" in shown) == (4, True)
    (tmp_path / "pyproject.toml").write_text("tool.gilscope = { race = { notes = true } }\n")
    shown, code = run(tmp_path, RACY, "--race-learn")
    assert (code, "cannot edit" in shown) == (1, True)
    shown, code = run(tmp_path, RACY, "--race-learn", race=())
    assert (code, "needs --race" in shown) == (4, True)


def test_unused_suppression_is_told_at_the_end(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.gilscope.race]\nsuppress = [{ variable = "Nothing.at_all", why = "known" }]\n')
    shown, code = run(tmp_path, "def test_it(): pass\n")
    assert code == 0
    assert "Nothing.at_all" in shown


def test_notes_are_shown_when_asked_for(tmp_path):
    polled = """
        class Job:
            done = False
        job = Job()
        def work():
            job.done = True
        def test_it():
            thread = threading.Thread(target=work)
            thread.start()
            while not job.done:
                pass
            thread.join()
        """
    assert run(tmp_path, polled)[1] == 0
    shown, code = run(tmp_path, polled, "--race-notes")
    assert (code, "Job.done" in shown) == (0, True)


# What a tool in C may do, so that the core loses sight of which objects die.
BLINDED = """
    import ctypes
    def test_it():
        account = Account()
        ctypes.pythonapi.PyRefTracer_SetTracer(None, None)
        both(account.deposit)
    """


@pytest.mark.skipif(sys.version_info < (3, 13), reason="there is no PyRefTracer")
@pytest.mark.parametrize("options", [(), ("-n1", "-p", "xdist.plugin")])
def test_run_that_was_not_checked_in_full_fails(tmp_path, options):
    if options:
        pytest.importorskip("xdist")
    shown, code = run(tmp_path, BLINDED, *options)
    assert "1 passed" in shown
    assert "races may be missing: tracemalloc or another tool replaced the hook" in shown
    assert code == 1


def test_run_that_is_checked_already_is_told(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "gilscope", "race", "-m", "pytest", "-p", "gilscope.toolkit.race.pytest_.plugin",
         "--race"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 4
    assert "is already being checked for races" in done.stderr


def test_whole_run_is_checked_from_outside(tmp_path):
    (tmp_path / "test_it.py").write_text(textwrap.dedent(COMMON) + textwrap.dedent(RACY) + textwrap.dedent("""
        def test_wrong():
            assert {"a": 1} == {"a": 2}
        """))
    done = subprocess.run(
        [sys.executable, "-m", "gilscope", "race", "--", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
             "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 66
    assert "1 failed, 1 passed" in done.stdout
    assert "{'a': 1} != {'a': 2}" in done.stdout or "{'a': 2}" in done.stdout
    assert "DATA RACE on Account.balance" in done.stderr
    assert "pluggy" not in done.stderr


def test_pytest_says_nothing_of_an_installed_gilscope(tmp_path):
    installed = tmp_path / "site" / "gilscope-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: gilscope\nVersion: 0\n")
    (installed / "RECORD").write_text("gilscope/__init__.py,,\n")
    (installed / "entry_points.txt").write_text("[pytest11]\ngilscope_race = gilscope.toolkit.race.pytest_.plugin\n")
    (tmp_path / "test_it.py").write_text("def test():\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "gilscope", "race", "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "-W", "error::pytest.PytestAssertRewriteWarning"], cwd=tmp_path, capture_output=True, text=True,
        timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path / 'site'}"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_workers_of_xdist_check_each_their_own(tmp_path):
    pytest.importorskip("xdist")
    shown, code = run(tmp_path, """
        @pytest.mark.parametrize("number", range(8))
        def test_racy(number):
            both(Account().deposit)
        """, "-n2", plugin=("-p", "gilscope.toolkit.race.pytest_.plugin", "-p", "xdist"))
    assert (code, "1 failed, 7 passed" in shown) == (1, True)
    (lines,) = summary(shown)
    assert lines[1].startswith("    in 8 tests, first in test_it.py::test_racy[")


def test_all_workers_of_xdist_have_the_same_error_of_collection(tmp_path):
    pytest.importorskip("xdist")
    shown, code = run(tmp_path, "both(Account().deposit)\n\ndef test_it(): pass\n", "-n2",
                      plugin=("-p", "gilscope.toolkit.race.pytest_.plugin", "-p", "xdist"))
    assert (code, "Different tests were collected" in shown) == (1, False)
    assert len(summary(shown)) == 1


def test_a_rerun_test_tells_its_finding_once_and_the_exit_code_stays(tmp_path):
    # What pytest-rerunfailures and flaky do: a test that fails runs once more.
    shown, code = run(tmp_path, RACY, conftest="""
        from _pytest.runner import runtestprotocol
        def pytest_runtest_protocol(item, nextitem):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            if any(report.failed for report in reports):
                item._initrequest()
                reports = runtestprotocol(item, nextitem=nextitem, log=False)
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            return True
        """)
    assert (code, "1 passed" in shown) == (1, True)
    assert [lines[1] for lines in summary(shown)] == ["    in test_it.py::test_racy"]


def test_test_modules_are_checked_by_a_gilscope_from_elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "gilscope").symlink_to(ROOT / "gilscope")
    (tmp_path / "test_it.py").write_text(textwrap.dedent(COMMON) + textwrap.dedent(RACY))
    place = str(tmp_path / "elsewhere")
    code = (f"import sys; sys.path.insert(0, {place!r}); from gilscope.toolkit.cli import main; del sys.path[0]; "
            "sys.exit(main())")
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "race", "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert done.returncode == 66, done.stdout + done.stderr
    assert "DATA RACE on Account.balance" in done.stderr


