"""Whether the GIL was on is found out for each measured process, with the module that turned it on."""

import json
import shutil
import subprocess

import pytest

from gilscope.toolkit.builds.inspection import version_key
from tests.measure.children import USERCODE, make_spec, measure, target
from tests.patience import PATIENCE

ASK = """import json, sysconfig
print(json.dumps([sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX")]))"""
COMPILER = shutil.which("cc") or shutil.which("gcc")


needs_free_threading = pytest.mark.builds("free")


@pytest.fixture(params=["multi-phase", "single-phase"])
def extension(request, python, tmp_path):
    """Compile the extension for the build and return its folder."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    asked = subprocess.run([python, "-c", ASK], capture_output=True, check=True, timeout=PATIENCE)
    include, suffix = json.loads(asked.stdout)
    folder = tmp_path / "built"
    folder.mkdir()
    define = ["-DSINGLE_PHASE"] if request.param == "single-phase" else []
    subprocess.run([COMPILER, "-shared", "-fPIC", f"-I{include}", *define, str(USERCODE / "gilful.c"),
                    "-o", str(folder / f"gilful{suffix}")], check=True, timeout=PATIENCE)
    return folder


def run(function, runner, folder, python, *, workers=2, paths=(), **environment):
    spec = make_spec(folder, target(f"turning_on:{function}", tasks=workers), runner=runner, workers=workers)
    return measure(spec, python, paths=paths, **environment)


@needs_free_threading
@pytest.mark.parametrize("function", ["use_extension", "use_extension_late"])
def test_free_threaded_cell_whose_gil_was_turned_on_fails(function, extension, python, tmp_path):
    answer = run(function, "free-threaded", tmp_path, python, paths=[extension])
    assert (answer.kind, answer.reason) == (
        "gil", "free-threaded needs the GIL off; it was on at the end: importing gilful turned it on")


@needs_free_threading
@pytest.mark.parametrize(("runner", "workers"), [("serial", 1), ("processes-spawn", 2), ("processes-fork", 2)])
def test_other_cell_says_who_turned_the_gil_on(runner, workers, extension, python, tmp_path):
    answer = run("use_extension", runner, tmp_path, python, workers=workers, paths=[extension])
    assert answer.kind == "measured", answer.output
    assert answer.fields["gil_end"] is True
    assert answer.fields["gil_culprit"] == "gilful"


@needs_free_threading
def test_start_up_cell_says_who_turned_the_gil_on_in_a_worker(extension, python, tmp_path):
    spec = make_spec(tmp_path, target("turning_on:use_extension", tasks=2), runner="processes-spawn", workers=2,
                     phase="startup")
    answer = measure(spec, python, paths=[extension])
    assert answer.kind == "measured", answer.output
    assert answer.fields["gil_culprit"] == "gilful"


@needs_free_threading
def test_free_threaded_cell_keeps_the_gil_off(python, tmp_path):
    answer = run("do_nothing", "free-threaded", tmp_path, python)
    assert answer.kind == "measured"
    assert answer.fields["gil_end"] is False
    assert "gil_culprit" not in answer.fields


@needs_free_threading
def test_threads_of_a_free_threaded_build_can_have_the_gil(python, tmp_path):
    answer = run("do_nothing", "threads", tmp_path, python, PYTHON_GIL="1")
    assert answer.kind == "measured"
    assert answer.fields["gil_end"] is True


@needs_free_threading
def test_threads_without_the_gil_are_not_threads(python, tmp_path):
    answer = run("do_nothing", "threads", tmp_path, python)
    assert (answer.kind, answer.reason) == (
        "unavailable", "the GIL is disabled in this process: these would be free-threaded")


@pytest.mark.builds("gil")
def test_build_with_a_gil_has_it_on_or_cannot_tell(build, python, tmp_path):
    can_tell = version_key(build.version) >= version_key("3.13.0")
    answer = run("do_nothing", "threads", tmp_path, python)
    assert answer.kind == "measured"
    assert answer.fields["gil_end"] is (True if can_tell else None)
