"""Having the C core: compiled once per build and sources, loaded from the cache after that, or a reason why not."""

import os
import subprocess
import sys

import pytest

from gilscope.toolkit.race._core import build, compiling
from gilscope.toolkit.race.core import CoreUnavailableError
from tests.conformance.builds import ROOT, builds, run_child

LOAD = "from gilscope.toolkit.race._core.build import load; print(load(lambda: print('compiling')).name)"
TELL = """
from gilscope.toolkit.race._core.build import load
from gilscope.toolkit.race.core import CoreUnavailableError
try:
    load()
except CoreUnavailableError as error:
    print(error)
"""


def has_compiler():
    try:
        compiling.compiler()
    except CoreUnavailableError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C compiler here")


@pytest.mark.slow
@needs_compiler
def test_compiles_once(tmp_path):
    first = run_child(sys.executable, "-c", LOAD, GILSCOPE_CACHE=str(tmp_path))
    assert (first.stdout, first.stderr) == ("compiling\nC\n", "")
    second = run_child(sys.executable, "-c", LOAD, GILSCOPE_CACHE=str(tmp_path))
    assert (second.stdout, second.stderr) == ("C\n", "")


@pytest.mark.slow
@needs_compiler
def test_two_processes_at_once_compile_once(tmp_path):
    environment = {**os.environ, "GILSCOPE_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    children = [subprocess.Popen([sys.executable, "-c", LOAD], env=environment, stdout=subprocess.PIPE, text=True)
                for _ in range(2)]
    said = sorted(child.communicate(timeout=120)[0] for child in children)
    assert said == ["C\n", "compiling\nC\n"]
    assert len(list(tmp_path.rglob("*.so"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("label", builds())
def test_every_build_has_a_core_of_its_own(label, tmp_path):
    child = run_child(builds()[label], "-c", LOAD, GILSCOPE_CACHE=str(tmp_path))
    if "CoreUnavailableError" in child.stderr:
        pytest.skip(child.stderr.splitlines()[-1])
    assert (child.stdout, child.stderr) == ("compiling\nC\n", "")


def test_what_is_compiled_is_loaded_without_heavy_imports():
    heavy = "pathlib", "subprocess", "hashlib", "sysconfig", "tempfile", "re", "typing", "dataclasses", "ast", "inspect"
    code = f"{LOAD}; import sys; print([name for name in {heavy} if name in sys.modules])"
    run_child(sys.executable, "-c", LOAD)
    child = run_child(sys.executable, "-S", "-c", code)
    if "CoreUnavailableError" in child.stderr:
        pytest.skip(child.stderr.splitlines()[-1])
    assert child.stdout == "C\n[]\n", child.stderr


def test_no_compiler_is_a_reason(tmp_path):
    child = run_child(sys.executable, "-c", TELL, GILSCOPE_CACHE=str(tmp_path), PATH=str(tmp_path), CC="")
    assert child.stdout.startswith("there is no C compiler"), child.stderr


@needs_compiler
def test_a_failing_compiler_is_a_reason(tmp_path):
    child = run_child(sys.executable, "-c", TELL, GILSCOPE_CACHE=str(tmp_path), GILSCOPE_RACE_CFLAGS="-no-such-flag")
    assert "failed:" in child.stdout, child.stderr
    assert not list(tmp_path.rglob("*.so"))


@needs_compiler
def test_a_cache_that_cannot_be_written_is_a_reason(tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    child = run_child(sys.executable, "-c", TELL, GILSCOPE_CACHE=str(file))
    assert child.stdout.startswith("the core cannot be written"), child.stderr


def test_python_may_be_asked_for():
    child = run_child(sys.executable, "-c", TELL, GILSCOPE_RACE_CORE="python")
    assert child.stdout == "GILSCOPE_RACE_CORE=python asks for the core in Python\n"


def test_a_file_that_is_no_core_is_a_reason(tmp_path):
    path = tmp_path / "_core.so"
    path.write_bytes(b"nothing that can be loaded")
    with pytest.raises(CoreUnavailableError, match="cannot be loaded"):
        build._load(str(path))


def test_sources_and_build_are_in_the_key(monkeypatch, tmp_path):
    key = build._key()
    assert build._key() == key
    changed = tmp_path / "core.c"
    changed.write_text("int other;")
    monkeypatch.setattr(build, "sources", lambda: [str(changed)])
    assert build._key() != key
