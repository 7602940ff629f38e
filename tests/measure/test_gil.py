"""Whether the GIL was on is found out for each measured process, with the module that turned it on."""

import json
import shutil
import subprocess

import pytest

from tests.measure.children import BUILDS, USERCODE, make_spec, measure, python_of, target
from tests.patience import PATIENCE

ASK = """import json, sys, sysconfig
print(json.dumps([bool(sysconfig.get_config_var("Py_GIL_DISABLED")), sys.version_info[:2] >= (3, 13),
                  sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX")]))"""
COMPILER = shutil.which("cc") or shutil.which("gcc")


def about(python):
    """Return (is it free-threaded, can it tell, include folder, suffix of extension modules)."""
    return json.loads(subprocess.run([python, "-c", ASK], capture_output=True, check=True, timeout=PATIENCE).stdout)


FREE_THREADED = [label for label, python in BUILDS.items() if about(python)[0]]
needs_free_threading = pytest.mark.skipif(not FREE_THREADED, reason="no free-threaded build in GILSCOPE_TEST_BUILDS")


@pytest.fixture(params=FREE_THREADED)
def free_threaded(request):
    return python_of(request.param)


@pytest.fixture(params=["multi-phase", "single-phase"])
def extension(request, free_threaded, tmp_path):
    """Compile the extension for the build and return its folder."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    _, _, include, suffix = about(free_threaded)
    folder = tmp_path / "built"
    folder.mkdir()
    define = ["-DSINGLE_PHASE"] if request.param == "single-phase" else []
    subprocess.run([COMPILER, "-shared", "-fPIC", f"-I{include}", *define, str(USERCODE / "gilful.c"),
                    "-o", str(folder / f"gilful{suffix}")], check=True, timeout=PATIENCE)
    return folder


def run(function, runner, folder, python, *, workers=2, paths=(), **environment):
    spec = make_spec(folder, target(f"turning_on:{function}", tasks=workers), runner=runner, workers=workers)
    return measure(spec, python, paths=paths, **environment)


@pytest.mark.sample(1)
@needs_free_threading
@pytest.mark.parametrize("function", ["use_extension", "use_extension_late"])
def test_free_threaded_cell_whose_gil_was_turned_on_fails(function, extension, free_threaded, tmp_path):
    answer = run(function, "free-threaded", tmp_path, free_threaded, paths=[extension])
    assert (answer.kind, answer.reason) == (
        "gil", "free-threaded needs the GIL off; it was on at the end: importing gilful turned it on")


@pytest.mark.sample(2)
@needs_free_threading
@pytest.mark.parametrize(("runner", "workers"), [("serial", 1), ("processes-spawn", 2), ("processes-fork", 2)])
def test_other_cell_says_who_turned_the_gil_on(runner, workers, extension, free_threaded, tmp_path):
    answer = run("use_extension", runner, tmp_path, free_threaded, workers=workers, paths=[extension])
    assert answer.kind == "measured", answer.output
    assert (answer.fields["gil_start"], answer.fields["gil_end"]) == (False, True)
    assert answer.fields["gil_culprit"] == "gilful"


@needs_free_threading
def test_start_up_cell_says_who_turned_the_gil_on_in_a_worker(extension, free_threaded, tmp_path):
    spec = make_spec(tmp_path, target("turning_on:use_extension", tasks=2), runner="processes-spawn", workers=2,
                     phase="startup")
    answer = measure(spec, free_threaded, paths=[extension])
    assert answer.kind == "measured", answer.output
    assert answer.fields["gil_culprit"] == "gilful"


@needs_free_threading
def test_free_threaded_cell_keeps_the_gil_off(free_threaded, tmp_path):
    answer = run("do_nothing", "free-threaded", tmp_path, free_threaded)
    assert answer.kind == "measured"
    assert (answer.fields["gil_start"], answer.fields["gil_end"]) == (False, False)
    assert "gil_culprit" not in answer.fields


@needs_free_threading
def test_threads_of_a_free_threaded_build_can_have_the_gil(free_threaded, tmp_path):
    answer = run("do_nothing", "threads", tmp_path, free_threaded, PYTHON_GIL="1")
    assert answer.kind == "measured"
    assert (answer.fields["gil_start"], answer.fields["gil_end"]) == (True, True)


@needs_free_threading
def test_threads_without_the_gil_are_not_threads(free_threaded, tmp_path):
    answer = run("do_nothing", "threads", tmp_path, free_threaded)
    assert (answer.kind, answer.reason) == (
        "unavailable", "the GIL is disabled in this process: these would be free-threaded")


@pytest.mark.parametrize("label", [label for label in BUILDS if label not in FREE_THREADED])
def test_build_with_a_gil_has_it_on_or_cannot_tell(label, tmp_path):
    python = python_of(label)
    can_tell = about(python)[1]
    answer = run("do_nothing", "threads", tmp_path, python)
    assert answer.kind == "measured"
    assert (answer.fields["gil_start"], answer.fields["gil_end"]) == ((True, True) if can_tell else (None, None))
