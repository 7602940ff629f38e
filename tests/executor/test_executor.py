"""SubinterpreterExecutor, for real: what a user of `concurrent.futures` expects, on builds with the GIL and without."""

import json
import subprocess

import pytest

from gilscope.runners import _interpreters
from tests.conformance.builds import found, run_child
from tests.executor import cases
from tests.measure.children import python_of
from tests.patience import PATIENCE

CASES = [name.removeprefix("case_") for name in vars(cases) if name.startswith("case_")]


@pytest.fixture(scope="module")
def python(build):
    """Return the interpreter of `build`, with the packages that runners need."""
    return python_of(build)


def ended(python, folder):
    """Return the error of each case, None if there is none; all in one process, which must end by itself."""
    try:
        done = run_child(python, "-m", "tests.executor.cases", str(folder), timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"it hangs: {error.stdout}\n{error.stderr}")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["case"]: line["error"] for line in lines if "error" in line}


@pytest.mark.builds("gil", "free")
def test_it_does_what_executors_do(python, tmp_path):
    found = ended(python, tmp_path)
    assert list(found) == CASES
    assert not (failed := {name: error for name, error in found.items() if error}), "\n".join(
        f"{name}: {error}" for name, error in failed.items())


@pytest.mark.builds("gil", "free")
def test_program_that_forgets_to_shut_it_down_ends_with_its_tasks_done(python, tmp_path):
    program = ("from gilscope import SubinterpreterExecutor\nfrom tests.executor.tasks import note\n"
               f"executor = SubinterpreterExecutor(2)\n"
               f"[executor.submit(note, {str(tmp_path / 'notes')!r}, n) for n in range(500)]\nprint('end')\n")
    done = run_child(python, "-c", program, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    assert sorted(map(int, (tmp_path / "notes").read_text().split())) == list(range(500))


@pytest.mark.parametrize("processes", [pytest.param(1, marks=pytest.mark.slow),
                                       pytest.param(20, marks=pytest.mark.nightly)])
@pytest.mark.builds("gil", "free")
def test_fifty_in_a_row_leave_only_what_cpython_keeps(python, processes):
    for _ in range(processes):
        done = run_child(python, "-m", "tests.executor.cycles", "50", timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, "")
        kept = json.loads(done.stdout)
        assert (kept["descriptors"], kept["threads"]) == (0, 0)
        assert kept["kept_kb"] < 10_000, kept      # 6,000 on 3.14t


@pytest.mark.slow
def test_the_standard_librarys_own_tests_of_executors_pass():
    build = next((each for each in found() if each.minor not in {"3.12", "3.13"} and not each.free_threaded), None)
    if build is None:
        pytest.skip("there is no 3.14, nor a newer one, with a GIL")
    done = run_child(build.executable, "-m", "tests.executor.stdlib", timeout=PATIENCE)
    if "No module named 'test" in done.stderr:
        pytest.skip("this Python comes without its own tests")
    ran, failed = json.loads(done.stdout.splitlines()[-1])
    assert (failed, ran >= 30) == ([], True), done.stderr


def test_python_without_interpreters_says_what_it_needs(monkeypatch):
    from gilscope import SubinterpreterExecutor

    monkeypatch.setattr(_interpreters, "unavailable", lambda: "needs the package backports-interpreters")
    with pytest.raises(ModuleNotFoundError, match="backports-interpreters"):
        SubinterpreterExecutor(1)
