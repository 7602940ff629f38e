"""Having a C extension: compiled once per build and sources, loaded from the cache after that, or a reason why not."""

import os
import subprocess
import sys

import pytest

from gilscope.toolkit.builds import extension, package_installer
from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure
from gilscope.toolkit.builds.extension import ExtensionUnavailableError
from gilscope.toolkit.race._core.build import CORE
from tests.conformance.builds import ROOT, run_child
from tests.patience import PATIENCE

LOAD = """
from gilscope.toolkit.race._core.build import load
print(load(lambda seconds: seconds or print("compiling")).name)
"""
TELL = """
from gilscope.toolkit.race._core.build import load
from gilscope.toolkit.builds.extension import ExtensionUnavailableError
try:
    load()
except ExtensionUnavailableError as error:
    print(error)
"""


def has_compiler():
    try:
        extension.compiler()
    except CompileError:
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
    said = sorted(child.communicate(timeout=PATIENCE)[0] for child in children)
    assert said == ["C\n", "compiling\nC\n"]
    assert len(list(tmp_path.rglob("*.so"))) == 1


@pytest.mark.slow
@pytest.mark.builds("gil", "free")
def test_every_build_has_a_core_of_its_own(python, tmp_path):
    child = run_child(python, "-c", LOAD, GILSCOPE_CACHE=str(tmp_path))
    if "ExtensionUnavailableError" in child.stderr:
        pytest.skip(child.stderr.splitlines()[-1])
    assert (child.stdout, child.stderr) == ("compiling\nC\n", "")


def test_what_is_compiled_is_loaded_without_heavy_imports():
    heavy = "pathlib", "subprocess", "hashlib", "sysconfig", "tempfile", "re", "typing", "dataclasses", "ast", "inspect"
    code = f"{LOAD}\nimport sys; print([name for name in {heavy} if name in sys.modules])"
    run_child(sys.executable, "-c", LOAD)
    child = run_child(sys.executable, "-S", "-c", code)
    if "ExtensionUnavailableError" in child.stderr:
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
    assert "cannot be written: Not a directory\nmake that folder writable" in child.stdout, child.stderr


def test_a_file_that_is_no_core_is_a_reason(tmp_path):
    path = tmp_path / "_core.so"
    path.write_bytes(b"nothing that can be loaded")
    with pytest.raises(ExtensionUnavailableError, match="cannot be loaded"):
        CORE.load_file(str(path))


def test_sources_and_build_are_in_the_key(monkeypatch, tmp_path):
    key = CORE.cache_key()
    assert CORE.cache_key() == key
    changed = tmp_path / "core.c"
    changed.write_text("int other;")
    monkeypatch.setattr(CORE, "sources", lambda: [str(changed)])
    assert CORE.cache_key() != key


@pytest.mark.slow
@needs_compiler
@pytest.mark.builds("gil", "free")
def test_a_core_of_another_build_is_refused(python, tmp_path):
    child = run_child(python, "-c", LOAD, GILSCOPE_CACHE=str(tmp_path))
    cores = list(tmp_path.rglob("_core.so"))
    if not cores:
        pytest.skip(child.stderr.splitlines()[-1])
    code = ("from gilscope.toolkit.race._core.build import CORE\nimport sys\n"
            "try:\n    print(CORE.load_file(sys.argv[1]).name)\nexcept Exception as error:\n    print(error)")
    tell = run_child(python, "-c", "import sys; print(sys.version_info[:2], sys.abiflags)").stdout
    here = run_child(sys.executable, "-c", "import sys; print(sys.version_info[:2], sys.abiflags)").stdout
    said = run_child(sys.executable, "-c", code, str(cores[0])).stdout
    assert said == "C\n" if tell == here else "was compiled for CPython" in said or "undefined symbol" in said


def test_a_core_from_other_sources_is_refused(monkeypatch):
    class Foreign:
        @staticmethod
        def made_from():
            return "0" * 16

    monkeypatch.setattr("_imp.create_dynamic", lambda _: Foreign)
    with pytest.raises(ExtensionUnavailableError, match="from other sources"):
        CORE.load_file("core.so")


@pytest.mark.parametrize(("output", "reason"), [
    ("ERROR: No matching distribution found for gilscope", "no wheel of gilscope=="), ("", "holds no _core.")])
def test_no_wheel_and_no_compiler_say_what_to_install(output, reason, monkeypatch, tmp_path):
    def fail(*_):
        raise CompileError("there is no C compiler", CompileFailure.NO_TOOLS)

    asked = []
    monkeypatch.setattr(package_installer, "run_installer", lambda *_: asked.append(1) or output)
    monkeypatch.setattr(extension, "compiler", fail)
    path = tmp_path / "key" / "_core.so"
    for times in (1, 2):   # who has done what it says is not told the same again from memory
        with pytest.raises(ExtensionUnavailableError, match="install a C compiler") as caught:
            extension._make(CORE, str(path), "", with_wheel=True)
        assert reason in str(caught.value)
        assert "there is no C compiler" in str(caught.value)
        assert len(asked) == times


@pytest.mark.parametrize("in_checkout", [True, False])
@pytest.mark.parametrize("failure", [*CompileFailure])
def test_a_compiler_is_advised_only_if_one_may_be_missing(failure, in_checkout, monkeypatch, tmp_path):
    def fail(*_):
        raise CompileError("no core", failure)

    monkeypatch.setattr(package_installer, "run_installer", lambda *_: "ERROR: No matching distribution found")
    monkeypatch.setattr(extension, "compiler", fail)
    with pytest.raises(ExtensionUnavailableError) as caught:
        extension._make(CORE, str(tmp_path / "key" / "_core.so"), "", with_wheel=not in_checkout)
    advises_compiler = "install a C compiler" in str(caught.value) or "install gilscope" in str(caught.value)
    assert advises_compiler == (failure in {CompileFailure.NO_TOOLS, CompileFailure.REFUSED})


def test_a_checkout_has_no_wheel_to_look_for():
    assert extension.is_checkout()
