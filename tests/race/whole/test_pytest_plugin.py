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


def test_race_fails_the_test_with_the_report(tmp_path):
    shown, code = run(tmp_path, RACY)
    assert code == 1
    assert "1 failed" in shown
    assert "DATA RACE on Account.balance" in shown
    assert "test_it.py:10 in Account.deposit" in shown.replace("  ", " ")
    assert "_pytest" not in shown   # frames that call every test say nothing


def test_nothing_is_checked_without_the_option(tmp_path):
    shown, code = run(tmp_path, RACY, race=())
    assert (code, "1 passed" in shown) == (0, True)


def test_each_test_hears_of_its_own_races_alone(tmp_path):
    shown, code = run(tmp_path, """
        def test_first():
            both(Account().deposit)
        def test_clean():
            Account().deposit()
        def test_second():
            both(Account().deposit)
        """, "-rA")
    assert code == 1
    assert "FAILED test_it.py::test_first" in shown
    assert "PASSED test_it.py::test_clean" in shown
    assert "FAILED test_it.py::test_second" in shown
    assert shown.count("DATA RACE on Account.balance of") >= 2


def test_failing_test_shows_both(tmp_path):
    shown, _ = run(tmp_path, """
        def test_racy_and_wrong():
            account = Account()
            both(account.deposit)
            assert account.balance == 3
        """)
    assert "assert 2 == 3" in shown   # rewritten by pytest, too
    assert "data races" in shown
    assert "DATA RACE on Account.balance" in shown


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
            both(Account().deposit)
        def test_before(before): pass
        def test_after(after): pass
        """, "--tb=line")
    assert code == 1
    assert "ERROR test_it.py::test_before" in shown
    assert "ERROR test_it.py::test_after" in shown
    assert "1 passed, 2 errors" in shown


def test_race_of_an_import_is_an_error_of_collection(tmp_path):
    shown, code = run(tmp_path, "both(Account().deposit)\n\ndef test_it(): pass\n")
    assert code == 2
    assert "ERROR test_it.py" in shown
    assert "DATA RACE on Account.balance" in shown


def test_expected_failure_may_be_a_race(tmp_path):
    shown, code = run(tmp_path, "@pytest.mark.xfail(reason='known')\n" + textwrap.dedent(RACY))
    assert (code, "1 xfailed" in shown) == (0, True)


def test_skipped_test_stays_skipped(tmp_path):
    shown, code = run(tmp_path, """
        def test_it():
            both(Account().deposit)
            pytest.skip("after all")
        """)
    assert (code, "1 skipped" in shown) == (0, True)


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
    assert "races may be missing: another tool replaced the hook" in shown
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
    shown, code = run(tmp_path, RACY + "\n    def test_clean(): pass\n", "-n2",
                      plugin=("-p", "gilscope.toolkit.race.pytest_.plugin", "-p", "xdist"))
    assert (code, "1 failed, 1 passed" in shown) == (1, True)
    assert "DATA RACE on Account.balance" in shown


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


