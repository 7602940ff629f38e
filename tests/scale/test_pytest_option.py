"""`pytest --scale` in sessions of their own, on free-threaded builds that have pytest and gilscope."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

from tests.conformance.builds import ROOT
from tests.gil_guard.guarded import make_environment
from tests.patience import PATIENCE

TESTS = """
    import os, threading, time, unittest
    import pytest

    DONE = []

    @pytest.fixture
    def numbers():
        made = [1, 2]
        yield made
        assert made == [1, 2]     # what the measuring process does to it ends with that

    def test_works(numbers):
        DONE.append(1)
        del DONE[1:]
        assert sum(numbers) == 3
    def test_its_calls_are_not_seen_here():
        assert DONE == [1]
        DONE.append(1)
    def test_crashes():
        if threading.current_thread() is not threading.main_thread():
            os.abort()
    def test_long():
        time.sleep(0.3)
    @pytest.mark.skip
    def test_skipped():
        raise AssertionError
    class TestOld(unittest.TestCase):
        def test_old(self): ...
    class TestNew:
        @pytest.mark.parametrize("number", [2])
        def test_new(self, numbers, number):
            numbers.append(number)
            assert numbers.pop() == number
"""
SHARED = """
    import pytest

    class Provider:
        def __init__(self):
            self.factor = 7.5
        def price(self, amount):
            return self.factor * amount

    @pytest.fixture
    def provider():
        return Provider()

    def test_total(provider):
        assert sum(provider.price(amount) for amount in range(100)) == 37125.0
"""
WAITING = """
    import queue, threading
    import pytest
    from gilscope.toolkit.commands.scale import pytest_scaling

    pytest_scaling.LIMIT_SECONDS = 3600.0
    pytest_scaling.SILENT_SECONDS = 1.0

    @pytest.fixture
    def double():
        asked, answers = queue.Queue(), queue.Queue()
        def serve():
            for number in iter(asked.get, None):
                answers.put(2 * number)
        def ask(number):
            asked.put(number)
            return answers.get()
        server = threading.Thread(target=serve)
        server.start()
        yield ask
        asked.put(None)
        server.join()

    def test_asks_a_thread(double):
        assert double(2) == 4
"""
TRIES = 5
pytestmark = pytest.mark.builds("free")


@pytest.fixture(scope="module")
def python(build, tmp_path_factory):
    """Return the interpreter of an environment of `build` that has pytest and gilscope."""
    return make_environment(build, tmp_path_factory.mktemp("environment") / "env")


def session(python, folder, *words, tests=TESTS):
    """Run the tests in a session of their own; return its exit code, and its output."""
    (folder / "test_app.py").write_text(textwrap.dedent(tests))
    (folder / "pyproject.toml").touch()
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTEST_", "PYTHON", "COV_"))} | {
                       "PYTHONPATH": str(ROOT),
                       # Workers of xdist wait for each other alone, and not for other tests.
                       "GILSCOPE_MACHINE": str(folder)}
    done = subprocess.run([str(python), "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *words], cwd=folder,
                          env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    print(done.stdout + done.stderr, file=sys.stderr)    # shown when the test fails
    return done.returncode, done.stdout + done.stderr


def answers(output):
    """Return the answers in the summary, by the name of the test."""
    return {name: (word, text) for word, name, text in re.findall(
        r"^([a-z ]+): test_app\.py::(\S+?)(?:[:;] (.*))?$", output, re.MULTILINE)}


UNMEASURED = {
    "test_crashes": "the measuring process died: SIGABRT",
    "test_its_calls_are_not_seen_here": "repeated, it raises AssertionError: assert [1, 1] == [1]",
    "TestOld::test_old": "it is no function that pytest calls by itself, as those of unittest and doctest",
}


def check(output):
    """Check the answers for TESTS: which verdict a test has is the machine's."""
    found = answers(output)
    long = found.pop("test_long")
    assert long[0] == "not measured"
    assert re.fullmatch(r"a call of test_app:test_long takes \d+(\.\d+)? s; name a part of the work, .*", long[1])
    assert {name: text for name, (word, text) in found.items() if word == "not measured"} == UNMEASURED
    assert {*found} - {*UNMEASURED} == {"test_works", "TestNew::test_new[2]"}
    assert re.search(r"^6 tests that passed, 2 threads: .*4 not measured", output, re.MULTILINE)
    assert "Fatal Python error" not in output


@pytest.mark.slow   # up to two minutes
def test_each_test_that_passed_has_an_answer_and_the_session_is_as_without(python, tmp_path):
    code, output = session(python, tmp_path, "--scale")
    assert code == 0
    assert "6 passed, 1 skipped" in output
    check(output)


@pytest.mark.slow   # likewise
def test_workers_of_xdist_measure_and_their_controller_shows_it(python, tmp_path):
    code, output = session(python, tmp_path, "--scale", "-n", "2", "--dist", "loadfile")
    assert code == 0
    check(output)


def test_test_that_fails_is_not_measured(python, tmp_path):
    code, output = session(python, tmp_path, "--scale", tests="def test_fails():\n    assert 0")
    assert code == 1
    assert "No test passed, so none was measured." in output


def test_test_that_waits_for_a_thread_of_a_fixture_is_given_up_before_the_limit_of_a_test(python, tmp_path):
    code, output = session(python, tmp_path, "--scale", tests=WAITING)
    assert code == 0
    assert answers(output) == {"test_asks_a_thread": (
        "not measured", ("it took over 3600 s, or over 1 s for one request; threads that fixtures start do not run in "
                         "the measuring process"))}


def test_tests_that_begin_after_the_budget_are_left_out_and_listed(python, tmp_path):
    code, output = session(python, tmp_path, "--scale", "--scale-budget", "1ms", "-k", "crashes or new or long")
    assert code == 0
    found = answers(output)
    assert found.pop("test_crashes")[0] == "not measured"     # the budget was not over when it began
    why = ("left out", "the budget was over; --scale-budget sets it")
    assert found == {"test_long": why, "TestNew::test_new[2]": why}
    assert re.search(r"= scaling over threads =+\s+3 tests that passed, 2 threads: .*2 left out", output)


def test_nothing_is_imported_or_said_without_the_option(python, tmp_path):
    code, output = session(python, tmp_path, tests="""
        def test_modules():
            import sys
            assert {name for name in sys.modules if "gilscope" in name and "scal" in name} == {
                f"gilscope.toolkit.commands.scale{each}" for each in ("", ".pytest_plugin")}
    """)
    assert code == 0
    assert "gilscope:" not in output
    assert "scaling over threads" not in output


@pytest.mark.builds("gil")
@pytest.mark.parametrize("words", [(), ("-q",)])
def test_build_with_the_gil_says_so_and_measures_nothing(python, words, tmp_path):
    code, output = session(python, tmp_path, "--scale", *words, tests="def test_a(): ...")
    assert code == 0
    assert output.count("gilscope: this build has the GIL: --scale has nothing to measure") == 1


@pytest.mark.builds("gil")
@pytest.mark.parametrize(("words", "message"), [
    (("--scale", "--race"), "--scale and --race do not go together: "),
    (("--scale-budget", "5m"), "--scale-budget goes with --scale"),
    (("--scale", "--scale-budget", "5"), "--scale-budget: '5' has no unit: write 5s, 5m or 5h"),
])
def test_options_that_cannot_be_followed_are_refused_with_the_reason(python, words, message, tmp_path):
    code, output = session(python, tmp_path, *words, tests="def test_a(): ...")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert message in output
    assert "1 passed" not in output


@pytest.mark.slow    # up to two minutes
@pytest.mark.quiet   # two threads must have a core each
def test_fixture_that_threads_share_is_named(python, tmp_path):
    for _ in range(TRIES):
        _, output = session(python, tmp_path, "--scale", tests=SHARED)
        word, text = answers(output)["test_total"]
        if word in {"plateaus", "gets slower"} and "reference counts" in text:
            break      # otherwise, neighbours of this machine disturbed the threads
    assert word in {"plateaus", "gets slower"}
    assert "in the way: reference counts of test argument provider" in text
