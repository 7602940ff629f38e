"""What installers, build backends and compilers print, in few words."""

import pytest

from gilscope.toolkit.evaluate.project.build_output import (
    build_lines,
    last_lines,
    names_limited_api,
    place_of_error,
    why_module_not_built,
    why_not_built,
)
from gilscope.toolkit.evaluate.sections import Place

pytestmark = pytest.mark.newest

# pip 26 with --verbose: the build's own words, then the installer's.
FAILED = """Processing .
  Running command Building wheel for x (pyproject.toml)
  running build_ext
  building 'pkg._a' extension
  gcc -c pkg/_a.c
  building 'pkg._c' extension
  gcc -c pkg/_c.c
  pkg/_c.c:3:2: error: #error no threads here
      3 | #error no threads here
        |  ^~~~~
  pkg/_c.c:9:2: error: and more
  error: command '/usr/bin/gcc' failed with exit code 1
  error: subprocess-exited-with-error

  \u00d7 Building wheel for x (pyproject.toml) did not run successfully.
  \u2502 exit code: 1
  \u2570\u2500> See above for output.

  note: This error originates from a subprocess, and is likely not a problem with pip.
ERROR: Failed building wheel for x
"""
WENT_ON = """running build_ext
building 'pkg._a' extension
gcc -c pkg/_a.c
building 'pkg._c' extension
pkg/_c.c:1:10: fatal error: missing.h: No such file or directory
error: command '/usr/bin/gcc' failed with exit code 1
building extension "pkg._c" failed: command '/usr/bin/gcc' failed with exit code 1
Successfully installed x-1.0
"""
WHY = "pkg/_c.c:3:2: error: #error no threads here; error: command '/usr/bin/gcc' failed with exit code 1"


def test_first_error_and_last_of_a_build_that_failed():
    assert why_not_built(FAILED) == WHY
    assert why_module_not_built("pkg._c", FAILED) == WHY
    assert not any("did not run successfully" in line or "exit code: 1" in line for line in build_lines(FAILED))
    assert last_lines(FAILED).splitlines()[-1].strip() == "error: command '/usr/bin/gcc' failed with exit code 1"


@pytest.mark.parametrize(("message", "place"), [
    (WHY, Place(file="pkg/_c.c", line=3)), ("cc: not found", None), ("site-packages/numpy/a.h:3: error: no", None),
    ("/usr/include/a.h:3: error: no", None), ("", None)])
def test_place_of_an_error_is_in_the_project(message, place):
    assert place_of_error(message) == place


REFUSED = """  error: subprocess-exited-with-error

  \u00d7 Preparing metadata (pyproject.toml) did not run successfully.
  \u2570\u2500> [3 lines of output]
      Traceback (most recent call last):
      ValueError: `py_limited_api='cp312'` not supported
      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
error: metadata-generation-failed
"""


def test_what_a_backend_raised_is_told_and_not_that_an_installer_ended():
    assert why_not_built(REFUSED) == "ValueError: `py_limited_api='cp312'` not supported"


@pytest.mark.parametrize(("said", "named"), [
    (REFUSED, True), ("error: x.abi3.so cannot be loaded", True), ("Py_LIMITED_API is not available here", True),
    ("cc -c pkg/_c.c\nerror: no such type", False)])
def test_build_that_names_the_limited_api(said, named):
    assert names_limited_api("", said) is named


def test_module_that_was_left_out_has_its_own_words():
    assert why_module_not_built("pkg._c", WENT_ON).startswith(
        "pkg/_c.c:1:10: fatal error: missing.h: No such file or directory; ")
    assert why_module_not_built("pkg._a", WENT_ON) == ""
    assert why_module_not_built("pkg._never", WENT_ON) == ""


@pytest.mark.parametrize("said", ["", "Successfully installed x-1.0\n"])
def test_build_that_compiled_nothing_says_nothing_of_a_module(said):
    assert why_module_not_built("pkg._c", said) == ""


@pytest.mark.parametrize(("line", "kind"), [
    ("../meson.build:3:0: ERROR: Dependency 'gsl' not found, tried pkgconfig", "meson"),
    ("CMake Error at CMakeLists.txt:4 (find_package):", "CMake"),
    ("error[E0432]: unresolved import `pyo3::prelude`", "rustc"),
    ("src/a.c:1:10: fatal error: Python.h: No such file or directory", "gcc"),
    ("ModuleNotFoundError: No module named 'numpy'", "a script"),
])
def test_errors_of_each_tool_are_known(line, kind):
    assert why_not_built(f"first\n{line}\nlast\nmore\n") == line


def test_without_a_known_error_the_end_is_told():
    assert why_not_built("one\ntwo\nthree\n") == "two; three"


def test_parts_of_a_reason_are_joined_by_one_sign():
    said = "CMake Error at a.cmake:170 (message):\n  more\n  error: downloading 'x' failed\n"
    assert why_not_built(said) == "CMake Error at a.cmake:170 (message); error: downloading 'x' failed"


def test_files_of_the_builds_own_packages_are_named_alike_each_time():
    said = "/tmp/build-env-{}/overlay/lib/python3.14t/site-packages/mypyc/int_ops.c:320:5: error: no\n"
    assert {why_not_built(said.format(name)) for name in "ab"} == {"site-packages/mypyc/int_ops.c:320:5: error: no"}
