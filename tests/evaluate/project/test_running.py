"""A project's own tests in a process of their own: counts, endings, who turned the GIL on, nothing left behind."""

import json
import os
import sys
import textwrap
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.project.discovery import PYTEST, find_project
from gilscope.toolkit.evaluate.project.installing import install_project
from gilscope.toolkit.evaluate.project.suite import running as testing
from gilscope.toolkit.evaluate.project.suite.running import (
    counts,
    ending_of,
    error_line,
    needed_by,
    own_command,
    run_tests,
)
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite, short
from gilscope.toolkit.evaluate.sections import Missing, Place
from tests.evaluate.made_up import ended
from tests.measure.children import MARK, still_alive

BENCH = RunSite(build="host", python=Path(sys.executable), folders=())


@pytest.fixture
def make_project(tmp_path):
    """Give a function that writes a project whose tests are `code`."""
    def make(code, tests=None):
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        (root / "app.py").write_text("ANSWER = 42\n")
        (root / "test_app.py").write_text(textwrap.dedent(code))
        return find_project(root, tests=tests)

    return make


def run(project, monkeypatch, **changes):
    """Run the tests, and pass only when nothing that they started is alive afterwards."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    found = run_tests(project, replace(BENCH, folders=project.sources), **{"limit": 600.0, **changes})
    assert not still_alive(mark)
    return found


def test_counts_and_exit_code(make_project, monkeypatch):
    found = run(make_project("""
        import app, pytest

        def test_passes():
            assert app.ANSWER == 42

        def test_fails():
            assert app.ANSWER == 41

        @pytest.mark.skip
        def test_skipped(): ...

        @pytest.fixture
        def broken():
            raise RuntimeError

        def test_error(broken): ...
    """), monkeypatch)
    assert (found.passed, found.failed, found.errors, str(found.ending)) == (1, 1, 1, "1")
    assert "assert 42 == 41" in found.output


def test_nothing_is_left_in_the_project(make_project, monkeypatch):
    project = make_project("def test_passes(): import app")
    assert run(project, monkeypatch).ending.succeeded
    assert sorted(path.name for path in project.root.iterdir()) == ["app.py", "test_app.py"]


def test_crash_keeps_its_signal(make_project, monkeypatch):
    found = run(make_project("def test_crashes():\n    import os\n    os.abort()"), monkeypatch)
    assert str(found.ending) == "crash: SIGABRT"
    assert found.passed is None


def test_hang_is_ended_with_all_that_it_started(make_project, monkeypatch):
    found = run(make_project("""
        import subprocess, sys

        def test_hangs():
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).wait()
    """), monkeypatch, quiet=3.0)
    assert str(found.ending) == "hang: no output for 3 s"


def test_time_limit_holds_for_what_talks_all_the_time(make_project, monkeypatch):
    talk = f"{sys.executable} -c 'import time\nwhile True: print(1, flush=True); time.sleep(.1)'"
    assert str(run(make_project("", tests=talk), monkeypatch, limit=2.0).ending) == "unfinished: not done within 2 s"


def test_command_that_does_not_exist_is_an_ending(make_project, monkeypatch):
    found = run(make_project("", tests="no-such-runner --all"), monkeypatch)
    assert found.ending.failed
    assert "no-such-runner" in found.output


def test_unittests_summary_is_read(make_project, monkeypatch):
    found = run(make_project("""
        import unittest

        class App(unittest.TestCase):
            def test_passes(self): ...
            def test_fails(self): self.fail()
            def test_breaks(self): raise RuntimeError
            def test_skipped(self): self.skipTest("not here")
        """, tests="python -m unittest discover -q"), monkeypatch)
    assert (found.passed, found.failed, found.errors, str(found.ending)) == (1, 1, 1, "1")


# zope.testrunner; skipped tests are among those that it ran.
COLOURED = ("\x1b[0m  Ran \x1b[32m3\x1b[0m tests with \x1b[1;31m1\x1b[0m failures, \x1b[32m0\x1b[0m errors, "
            "\x1b[1;33m1\x1b[0m skipped in \x1b[32m0.002\x1b[0m seconds.\x1b[0m")
LAYERS = ("  Ran 1 tests with 0 failures, 0 errors, 0 skipped in 0.2 seconds.\n"
          "Total: 11 tests, 0 failures, 1 errors and 0 skipped in 1 minutes 0.2 seconds.")
JUNIT = """<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/><testsuite tests="1"/></testsuites>"""


@pytest.mark.parametrize(("junit", "output", "told"), [
    (JUNIT, "", (4, 2, 1, 3)), (JUNIT, "bye\n2 failed, 3 passed, 1 subtests passed in 0.1s", (3, 2, 1, 3)),
    (JUNIT, "3 passed", (4, 2, 1, 3)), (JUNIT[:-5], "1 failed, 3 passed, 2 skipped, 1 error in 0.1s", (3, 1, 1, 2)),
    ("", "2 errors in 0.1s", (0, 0, 2, 0)), ("", "3 passed in 9s\n5 passed in 1s\nbye", (5, 0, 0, 0)),
    ("", "Ran 2 tests in 1s\nOK\nRan 9 tests in 0.1s\n\nFAILED (failures=2, errors=1, skipped=3)", (3, 2, 1, 3)),
    ("", "Ran 1 test in 0.1s\n\nOK", (1, 0, 0, 0)), ("", "done", (None, None, None, None)),
    ("", "  Ran 9 tests with 2 failures, 1 errors, 3 skipped in 0.2 seconds.\nTearing down", (3, 2, 1, 3)),
    ("", COLOURED, (1, 1, 0, 1)),
    ("", LAYERS, (10, 0, 1, 0)),
])
def test_counts_are_of_the_last_that_was_told(tmp_path, junit, output, told):
    (tmp_path / "junit.xml").write_text(junit)
    (tmp_path / "output").write_text(output)
    found = counts(tmp_path)
    assert tuple(map(found.get, ("passed", "failed", "errors", "skipped"))) == told


IN_PACKAGE = """
    from ..codes import CODE
    from acme.fast import codes

    def test_name_is_the_whole_one():
        assert __name__ == "acme.fast.tests.test_codes"
        assert codes.CODE is CODE
"""


def test_tests_in_a_namespace_package_import_what_is_beside_them(tmp_path, monkeypatch):
    package = tmp_path / "src" / "acme" / "fast"
    (package / "tests").mkdir(parents=True)
    for file, text in {"__init__.py": "", "codes.py": "CODE = []\n", "tests/__init__.py": "",
                       "tests/test_codes.py": textwrap.dedent(IN_PACKAGE)}.items():
        (package / file).write_text(text)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'acme-fast'\n")
    found = run(find_project(tmp_path), monkeypatch)
    assert (found.passed, found.failed, str(found.ending)) == (1, 0, "0"), found.output


def test_command_that_does_not_tell_has_its_exit_code_alone(make_project, monkeypatch):
    found = run(make_project("", tests="python -c 'raise SystemExit(5)'"), monkeypatch)
    assert (found.passed, found.failed, str(found.ending)) == (None, None, "5")


@pytest.mark.parametrize(("output", "told"), [
    ("conftest.py:4: in <module>\nE   ModuleNotFoundError: No module named 'httpbin'",
     "ModuleNotFoundError: No module named 'httpbin'"),
    ("ERROR: usage: __main__.py [options]\n__main__.py: error: unrecognized arguments: --cov=app\n  inifile: /x.toml",
     "unrecognized arguments: --cov=app"),
    ("ERROR: file or directory not found: specs\n", "file or directory not found: specs"),
    ("Traceback (most recent call last):\n  File 'run.py', line 1\nsub.BrokenError: no\n", "sub.BrokenError: no"),
    ("no tests ran in 0.01s", ""),
])
def test_line_that_tells_why_the_tests_did_not_start(output, told):
    assert error_line(output) == told


def test_no_tests_and_no_time_have_reasons(make_project, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "app.py").write_text("")
    assert isinstance(run_tests(find_project(tmp_path / "other"), BENCH, limit=9.0), Missing)
    assert run_tests(make_project(""), BENCH, limit=0.0).reason == "no time was left in the budget"


@pytest.mark.slow
def test_the_environments_own_sitecustomize_still_runs(make_project, monkeypatch, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.marked = True\n")
    project = make_project("def test_marked():\n    import sys\n    assert sys.marked")
    monkeypatch.setenv(MARK, uuid.uuid4().hex)
    found = run_tests(project, replace(BENCH, folders=(own,)), limit=600.0)
    assert found.ending.succeeded, found.output


@pytest.mark.parametrize(("file", "shown"), [
    ("/env/lib/python3.14t/site-packages/lxml/html.py", "site-packages/lxml/html.py"),
    ("/opt/lib/python3.14t/threading.py", "lib/python3.14t/threading.py"), ("/src/app.py", "/src/app.py")])
def test_files_of_libraries_are_named_by_their_place_in_them(file, shown):
    assert short(file) == shown


def test_witness_tells_who_turned_the_gil_on_and_where_it_was_asked_for(tmp_path):
    path = tmp_path / "witness"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("")
    project = find_project(tmp_path)
    shown = ProjectPaths(project, replace(BENCH, folders=(tmp_path / "copy",)))
    chain = [["/env/a/__init__.py", 1], [str(tmp_path / "copy" / "app.py"), 7], [str(tmp_path / "test_app.py"), 2]]
    told = [{"load": "a._c", "chain": chain}, {"flip": "a._c"}, {"flip": "a._c"}, {"gil": True}]
    path.write_text("\n".join(map(json.dumps, told)) + '\n{"gi')
    assert testing._witnessed(path, shown) == (True, ("a._c",), (
            Place(file="src/app.py", line=7, what="a._c", way=("/env/a/__init__.py:1",)),))
    path.write_text('{"gil": false}\n')
    assert testing._witnessed(path, shown) == (False, (), ())
    path.write_text('{"gil": true}\n{"gil": false}\n')   # one of several processes
    assert testing._witnessed(path, shown) == (True, (), ())
    path.write_text('{"gil": false}\n{"flip": "a._c"}\n')   # one that did not come to its end
    assert testing._witnessed(path, shown) == (True, ("a._c",), ())
    path.write_text('{"load": "a._c", "chain": [["/env/a.py", 1]]}\n')
    assert testing._witnessed(path, shown) == (None, (), ())
    ours = [f"{testing.WITNESS}/sitecustomize.py", 1]
    way = [["/env/a.py", 3], ["<frozen importlib>", 2], ours, ["/env/b.py", 4]]
    again = [[str(tmp_path / "test_app.py"), 9]]
    told = [{"load": "a._c", "chain": [*way, *again, *again]}, {"load": "a._c", "chain": again}]
    path.write_text("\n".join(map(json.dumps, told)))
    assert testing._witnessed(path, shown)[2] == (
        Place(file="test_app.py", line=9, what="a._c", way=("/env/b.py:4", "/env/a.py:3")),)
    assert testing._witnessed(tmp_path / "none", shown) == (None, (), ())


@pytest.mark.parametrize(("command", "own"), [
    (PYTEST, ("/env/bin/python", "-m", "pytest", "-q")), (("pytest", "x"), ("/env/bin/python", "-m", "pytest", "x")),
    (("python3.14t", "-m", "unittest"), ("/env/bin/python", "-m", "unittest")), (("make", "test"), ("make", "test")),
])
def test_python_is_the_builds(command, own):
    assert own_command(command, Path("/env/bin/python")) == own


def test_pytest_is_needed_where_it_is_the_command():
    assert [needed_by(each) for each in (PYTEST, ("pytest", "-x"), ("make", "test"), None)] == [
        ("pytest",), ("pytest",), (), ()]
    assert needed_by(("python", "-m", "zope.testrunner", "--test-path=src")) == ("zope.testrunner",)


@pytest.mark.parametrize(("status", "ending"), [(0, "0"), (5, "5"), (-11, "crash: SIGSEGV")])
def test_statuses(status, ending):
    assert str(ending_of(status)) == ending


def test_project_that_cannot_be_installed_says_why(tmp_path):
    (tmp_path / "app.py").write_text("")
    found = install_project(find_project(tmp_path), tmp_path, tmp_path / "t")
    assert found.failure.reason == "it has no [build-system] or [project]"


def test_variables_of_the_environment_come_first():
    found = testing.environment(replace(BENCH, python=Path("/env/bin/python")), Path("/place"))
    assert found["PATH"].startswith(f"/env/bin{os.pathsep}")
    assert found["VIRTUAL_ENV"] == "/env"
    assert not {"PYTHONHOME", "PYTHON_GIL"} & found.keys()


def test_commands_of_the_project_are_found_where_it_was_installed(tmp_path):
    run_site = RunSite(build="3.14t", python=tmp_path / "env/bin/python", folders=(tmp_path / "own",))
    first, second, *_ = testing.environment(run_site, tmp_path)["PATH"].split(os.pathsep)
    assert (first, second) == (str(tmp_path / "own/bin"), str(tmp_path / "env/bin"))


def test_file_that_cannot_be_collected_is_left_out_and_named(make_project, monkeypatch):
    project = make_project("def test_passes(): import app")
    (project.root / "test_broken.py").write_text("import gone\n")
    found = run(project, monkeypatch)
    assert (found.passed, found.errors, str(found.ending)) == (1, 0, "0")
    assert [(each.file, each.why) for each in found.left_out] == [
        ("test_broken.py", "ModuleNotFoundError: No module named 'gone'")]
    assert found.command[-1] == "--ignore=test_broken.py"
    assert set(found.by_file) == {"test_app.py"}


@pytest.mark.slow
def test_nothing_is_left_out_where_nothing_would_be_left(make_project, monkeypatch):
    found = run(make_project("import gone"), monkeypatch)
    assert (found.left_out, str(found.ending)) == ((), "2")
    assert "No module named 'gone'" in found.output


@pytest.mark.parametrize(("ending", "output", "percent"), [
    ("unfinished: not done within 9 s", "....  [ 37%]\n...", 37),
    ("unfinished: not done within 9 s", "... [  8%]\n... [ 16%]\n", 16),
    ("unfinished: not done within 9 s", "50% of it\n", None), ("1", "... [100%]\n", None)])
def test_how_far_the_tests_came_is_told(ending, output, percent):
    assert testing._how_far(ended(ending), output) == percent
