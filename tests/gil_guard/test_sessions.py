"""What a session with --gil=off says and counts, and how it runs beside other plugins."""

import json
import subprocess
import sys

import pytest

from gilscope.toolkit.gil_guard.package_answers import VersionAnswer, newer_versions, remember
from tests.evaluate.views.test_schemas import valid

pytestmark = pytest.mark.builds("free")

PASSING = "def test_passes():\n    pass\n"
COUNTER = """
    import threading
    total = 0
    def add():
        global total
        total += 1
    def in_thread(function=add):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    """
THREADS = """
    import threading, time, shop
    def test_alone():
        shop.add()
    def test_project_code_in_a_thread():
        shop.in_thread()
    def test_test_code_in_a_thread():
        def wait():
            pass
        thread = threading.Thread(target=wait)
        thread.start()
        shop.add()
        thread.join()
    def test_other_code_in_a_thread():
        thread = threading.Thread(target=time.sleep, args=(0,))
        thread.start()
        thread.join()
    def test_import_in_a_thread():
        def load():
            import colorsys
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
    """
LATE = "def test_late():\n    import turner.EXTENSION\ndef test_after():\n    pass\n"


@pytest.mark.builds("gil")
def test_build_with_the_gil_only_says_so(project):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    done = place.test()
    assert (done.code, done.counts()["passed"]) == (0, 2)
    assert "gilscope: this build has the GIL: --gil=off has nothing to check" in done.output
    assert "= GIL =" not in done.output


@pytest.mark.builds("gil")
def test_quiet_session_on_a_build_with_the_gil_says_so_at_the_end(project):
    place = project()
    place.write({"tests/test_a.py": "def test_it(): pass"})
    done = place.test("-q")
    assert done.code == 0
    assert done.output.count("gilscope: this build has the GIL: --gil=off has nothing to check") == 1


def test_nothing_is_checked_without_the_option(project):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    done = place.test(gil=())
    assert done.counts()["passed"] == 2
    assert "gilscope:" not in done.output


def test_tests_with_project_code_in_a_second_thread_are_counted(project):
    place = project()
    place.write({"shop/__init__.py": COUNTER, "tests/test_a.py": THREADS})
    done = place.test()
    assert done.code == 0
    assert "A second thread ran the project's code in 1 of 5 tests." in done.output
    assert "say nothing" not in done.output


def test_suite_without_threads_is_said_to_prove_nothing(project):
    place = project()
    place.write({"shop/__init__.py": COUNTER, "tests/test_a.py": "import shop\ndef test_alone():\n    shop.add()\n"})
    done = place.test()
    assert "A second thread ran the project's code in 0 of 1 test." in done.output
    assert "these tests say nothing about whether the project is thread-safe" in done.output


def test_thread_of_an_earlier_test_counts_where_it_runs(project):
    place = project()
    place.write({"shop/__init__.py": COUNTER, "tests/test_a.py": """
        import queue, threading, shop
        todo, done = queue.Queue(), queue.Queue()
        def serve():
            while function := todo.get():
                done.put(function())
        def test_starts_it():
            threading.Thread(target=serve, daemon=True).start()
        def test_does_not_use_it():
            shop.add()
        def test_uses_it():
            todo.put(shop.add)
            done.get()
        """})
    assert "A second thread ran the project's code in 1 of 3 tests." in place.test().output


def test_function_that_was_left_alone_counts_in_a_later_test(project):
    place = project(repaired=True)
    place.write({"shop/__init__.py": "def add():\n    pass\n", "tests/test_a.py": """\
        import threading, shop
        def run(function):
            thread = threading.Thread(target=function)
            thread.start()
            thread.join()
        def test_many_calls_in_the_main_thread():
            run(int)
            for _ in range(1_000):   # far more than are watched
                shop.add()
        def test_one_call_in_another_thread():
            run(shop.add)
        """})
    assert "A second thread ran the project's code in 1 of 2 tests." in place.test().output


def test_functions_of_the_projects_extension_module_count(project):
    place = project()
    place.compile(place.root / "shop")
    place.write({"shop/__init__.py": COUNTER, "tests/test_a.py": "import shop\ndef test_it():\n    shop.in_thread()\n"})
    assert "in 1 of 1 test." in place.test().output


def test_installed_copy_of_the_project_counts(project):
    place = project()
    place.add("shop", {"__init__.py": COUNTER}, compiled=False)
    place.write({"tests/test_a.py": "import shop\ndef test_it():\n    shop.in_thread()\n"})
    assert "in 1 of 1 test." in place.test().output


def test_xdist_workers_guard_themselves(project):
    place = project()
    place.add("turner")
    place.write({"shop/__init__.py": COUNTER, "tests/test_a.py": LATE, "tests/test_b.py": THREADS})
    done = place.test("-n", "2", "--dist", "loadfile")
    assert done.failed() == ["FAILED tests/test_a.py::test_late"]
    assert "the GIL was turned on by the import of turner.multi_plain (turner 1.0)." in done.output
    assert "in another process" not in done.output
    assert "The GIL was off in 5 of 7 tests." in done.output
    assert "A second thread ran the project's code in 1 of 7 tests." in done.output


def test_xdist_session_passes_when_the_gil_stays_off(project):
    place = project(repaired=True)
    place.add("turner")
    place.write({"tests/test_a.py": LATE, "tests/test_b.py": PASSING})
    done = place.test("-n", "2")
    assert (done.code, "The GIL was off in 3 of 3 tests." in done.output) == (0, True)


def test_xdist_session_fails_when_no_test_turns_the_gil_on(project):
    place = project()
    place.add("turner")
    place.write({"tests/conftest.py": "def pytest_collection_modifyitems(items):\n    import turner.EXTENSION\n",
                 "tests/test_a.py": PASSING})
    done = place.test("-n", "1")
    assert done.code == 1
    assert "So the session fails" in done.output


def test_failing_test_shows_both(project):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": "def test_late():\n    import turner.EXTENSION\n    assert 1 + 1 == 3\n"})
    done = place.test()
    assert "assert (1 + 1) == 3" in done.output
    assert "the GIL was turned on by the import of turner.multi_plain" in done.output


@pytest.mark.parametrize("ending", ["assert False", "pass"])
def test_expected_failure_hides_no_cause(project, ending):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": "import pytest\n@pytest.mark.xfail\n"
                                    f"def test_late():\n    import turner.EXTENSION\n    {ending}\n"})
    done = place.test()
    assert (done.code, done.failed()) == (1, ["FAILED tests/test_a.py::test_late"])


def test_warnings_as_errors_hide_no_cause(project):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    done = place.test("-W", "error")
    assert done.failed() == ["FAILED tests/test_a.py::test_late"]
    assert "the GIL was turned on by the import of turner.multi_plain" in done.output


def test_project_with_its_own_extension_module_is_told_what_to_declare(project):
    place = project()
    place.compile(place.root / "shop")
    place.write({"shop/__init__.py": "", "tests/test_a.py": "def test_it():\n    import shop.EXTENSION\n"})
    done = place.test()
    assert "the import of shop.multi_plain.\n" in done.output
    assert "set Py_mod_gil to Py_MOD_GIL_NOT_USED" in done.output


def test_forced_off_gil_is_said(project):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    done = place.test(PYTHON_GIL="0")
    assert done.code == 0
    assert "--gil=off cannot see what would turn it on" in done.output


def test_environment_is_as_before_after_the_session(project):
    place = project()
    place.write({"tests/test_a.py": PASSING, "run.py": """
        import os, pytest
        before = dict(os.environ)
        pytest.main(["--gil=off", "tests"])
        changed = {name for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)}
        assert not {name for name in changed if not name.startswith("PYTEST_")}, changed
        """})
    done = subprocess.run([place.python, "run.py"], cwd=place.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("answers", "expected"), [
    ([("2.0", True, "ready"), ("3.0", True, "ready")], "turner 3.0 leaves the GIL off, as `gilscope doctor` found"),
    ([("2.0", True, "ready"), ("3.0", False, "crashes")], "turner 2.0 leaves the GIL off"),
    ([("2.0", False, "turns the GIL on")], "turner 2.0 does not help, as `gilscope doctor` found: turns the GIL on."),
    ([("1.0", False, "turns the GIL on")], "`gilscope doctor turner` says whether a newer version leaves the GIL off"),
    ([], "`gilscope doctor turner` says whether a newer version leaves the GIL off"),
])
def test_newest_version_that_mends_it_is_named(project, monkeypatch, answers, expected):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    monkeypatch.setenv("GILSCOPE_CACHE", str(place.folder / "cache"))
    remember("turner", place.minor, [VersionAnswer(version=version, mends=mends, status=status)
                                     for version, mends, status in answers])
    assert expected in place.test().output


def test_answers_of_other_builds_are_not_quoted(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    remember("Turner_X", "3.99", [VersionAnswer(version="2.0", mends=True, status="ready")])
    assert newer_versions("turner-x", "1.0") == ()


def test_answers_are_sorted_by_version_and_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for version, mends in (("1.9", False), ("1.10", False), ("1.9", True)):
        remember("Turner_X", here, [VersionAnswer(version=version, mends=mends, status="")])
    found = [(each.version, each.mends) for each in newer_versions("turner-x", "1.0")]
    assert found == [("1.10", False), ("1.9", True)]
    assert newer_versions("turner-x", "1.10") == ()


def recorded(place, *options, **variables):
    """Return how a session ended, and the document of --gil-json, which fits its schema."""
    done = place.test("--gil-json", "guard.json", *options, **variables)
    document = json.loads((place.root / "guard.json").read_text())
    valid(document, "guard")
    return done, document


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadfile")], ids=["alone", "xdist"])
def test_json_has_what_turned_the_gil_on_and_where(project, options):
    place = project()
    place.add("turner")
    place.write({"shop/__init__.py": COUNTER, "shop/price.py": "import sys\nimport turner.EXTENSION\n",
                 "tests/test_a.py": "def test_late():\n    import shop.price\n", "tests/test_b.py": THREADS})
    done, document = recorded(place, *options)
    assert done.code == 1
    (finding,) = document["findings"]
    assert finding["text"] in done.output.replace("E   ", "")
    assert {name: finding[name] for name in ("when", "where", "module", "package", "version")} == {
        "when": "test", "where": "tests/test_a.py::test_late", "module": "turner.multi_plain", "package": "turner",
        "version": "1.0"}
    assert finding["imported_by"] == [{"path": str(place.root / "tests" / "test_a.py"), "line": 2},
                                      {"path": str(place.root / "shop" / "price.py"), "line": 2}]
    assert [document[name] for name in ("checked", "tests", "in_threads", "failed_otherwise")] == [True, 6, 1, False]
    assert document["with_gil"] == (1 if options else 6)


@pytest.mark.parametrize(("file", "options"), [
    ("def test_wrong():\n    assert 1 + 1 == 3\n", ()), ("import nothing_of_this_name\n", ()),
    ("import os\ndef test_ends():\n    os._exit(3)\n", ("-n", "1")),
], ids=["failure", "import error", "crash of a worker"])
def test_json_says_that_something_else_failed(project, file, options):
    place = project()
    place.write({"tests/test_a.py": PASSING, "tests/test_b.py": file})
    done, document = recorded(place, *options)
    assert done.code
    assert (document["failed_otherwise"], document["findings"]) == (True, [])


def test_json_of_a_clean_session(project):
    place = project(repaired=True)
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    done, document = recorded(place)
    assert (done.code, document["checked"], document["tests"], document["with_gil"], document["findings"]) == (
        0, True, 2, 0, [])
    assert not document["failed_otherwise"]


@pytest.mark.parametrize(("gil", "when"), [("1", "start"), ("0", None)])
def test_json_says_what_the_environment_forces(project, gil, when):
    place = project()
    place.add("turner")
    place.write({"tests/test_a.py": LATE})
    done, document = recorded(place, PYTHON_GIL=gil)
    assert done.code == (4 if when else 0)
    assert document["checked"] is bool(when)
    assert [each["when"] for each in document["findings"]] == [when] * bool(when)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_json_has_what_a_conftest_imports(project, options):
    place = project()
    place.add("turner")
    place.write({"conftest.py": "import turner.EXTENSION\n", "tests/test_a.py": PASSING})
    done, document = recorded(place, *options)
    (finding,) = document["findings"]
    assert (done.code, finding["when"], finding["module"]) == (4, "start", "turner.multi_plain")
    assert finding["imported_by"][-1] == {"path": str(place.root / "conftest.py"), "line": 1}


@pytest.mark.builds("gil")
def test_json_on_a_build_with_the_gil_says_that_nothing_was_checked(project):
    place = project()
    place.write({"tests/test_a.py": PASSING})
    done, document = recorded(place)
    assert (done.code, document["checked"], document["findings"]) == (0, False, [])


@pytest.mark.parametrize(("options", "words"), [
    (("--gil=off", "--gil-json", "absent/guard.json"), "--gil-json: absent/guard.json cannot be written: No such file"),
    (("--gil-json", "guard.json"), "--gil-json goes with --gil=off"),
])
def test_json_that_cannot_be_had_is_refused(project, options, words):
    place = project()
    place.write({"tests/test_a.py": PASSING})
    done = place.test(gil=options)
    assert done.code == 4
    assert words in done.output


@pytest.fixture(scope="session")
def others_plugins(tmp_path_factory):
    """Return a function that gives a folder with a plugin of pytest from the registry."""
    def fetch(requirement):
        folder = tmp_path_factory.mktemp("plugin")
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), requirement]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{requirement} cannot be installed")
        return folder

    return fetch


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(("plugin", "options"), [
    ("pytest-run-parallel==0.10.0", ("--parallel-threads=2",)),
    ("pytest-freethreaded==0.1.0", ("--threads=2", "--iterations=4"))])
def test_plugins_that_run_tests_in_threads(project, others_plugins, plugin, options):
    folder = others_plugins(plugin)
    clean, turned = project(), project("turned")
    for place in (clean, turned):
        place.add("turner")
        place.write({"shop/__init__.py": COUNTER, "tests/test_a.py": "import shop\ndef test_it():\n    shop.add()\n"})
    turned.write({"tests/test_b.py": LATE})
    done = clean.test(*options, PYTHONPATH=f"{clean.site}:{folder}")
    assert done.code == 0
    assert "A second thread ran the project's code in 1 of 1 test." in done.output
    done = turned.test(*options, PYTHONPATH=f"{turned.site}:{folder}")
    assert [line.rpartition(" ")[2] for line in done.failed()] == ["tests/test_b.py::test_late"]
    assert "the GIL was turned on by the import of turner.multi_plain (turner 1.0), in thread" in done.output
    assert "A second thread ran the project's code in 1 of " in done.output
