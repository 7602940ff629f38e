"""The shim is compiled once, and a terminal is told so; why it cannot be is said with fitting advice."""

import os

import pytest

from gilscope.toolkit.builds import compile_library as compiling
from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure
from gilscope.toolkit.gil import preload

AT_ONCE = b"gilscope: compiling the library that measures GIL waits, once (some seconds)\n"
LATER = b"gilscope: still compiling the library that measures GIL waits: 10 s so far\n"


@pytest.fixture
def uncompiled(monkeypatch, tmp_path):
    """No library is installed or in the cache, and this system is one that has it."""
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(preload, "_unsupported", lambda: None)
    monkeypatch.setattr(preload, "file_name", lambda: "lib-of-this-test.so")


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(("terminal", "said"), [(True, [AT_ONCE, LATER]), (False, [LATER])])
def test_compilation_is_announced_once_and_in_a_log_only_if_it_takes_long(terminal, said, monkeypatch):
    written = []

    def compile_library(_command, _sources, target, on_compile):
        on_compile(0.0)
        on_compile(10.0)
        target.parent.mkdir(parents=True)
        target.touch()

    monkeypatch.setattr(preload, "compile_library", compile_library)
    monkeypatch.setattr(os, "isatty", lambda fd: terminal and fd == 2)
    monkeypatch.setattr(os, "write", lambda fd, text: written.append((fd, text)))
    assert preload.library() == preload.library()
    assert written == [(2, each) for each in said]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("failure", [*CompileFailure])
def test_a_compiler_is_advised_only_if_one_may_be_missing(failure, monkeypatch):
    def compile_library(*_):
        raise CompileError("no library", failure)

    monkeypatch.setattr(preload, "compile_library", compile_library)
    with pytest.raises(preload.ShimUnavailableError) as caught:
        preload.library()
    advises_compiler = "apt-get install gcc" in str(caught.value)
    assert advises_compiler == (failure in {CompileFailure.NO_TOOLS, CompileFailure.REFUSED})


def test_the_time_limit_is_for_a_compiler_that_hangs():
    assert compiling._TIMEOUT >= 600
