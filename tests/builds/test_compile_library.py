"""Each way in which a C library cannot be compiled is told apart by its kind, not by its words."""

from __future__ import annotations

import shutil

import pytest

from gilscope.toolkit.builds import compile_library as compiling
from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure, c_compiler, compile_library

NEVER_ENDS = "exec sleep 1000"


def compiler(folder, body):
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


def test_a_compiler_that_does_not_end_is_stopped_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "_TIMEOUT", 0.2)
    with pytest.raises(CompileError, match="longer than") as caught:
        compile_library(compiler(tmp_path, NEVER_ENDS), [], tmp_path / "cache" / "lib.so")
    assert caught.value.failure is CompileFailure.TIME_LIMIT
    assert caught.value.remedy("a C compiler") == "the machine is busy: run it again"
    assert not (tmp_path / "cache" / "compiling").exists()


def test_a_compiler_that_refuses_is_quoted(tmp_path):
    with pytest.raises(CompileError, match="no such header") as caught:
        compile_library(compiler(tmp_path, "echo no such header >&2; exit 1"), [], tmp_path / "cache" / "lib.so")
    assert caught.value.failure is CompileFailure.REFUSED


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CompileError, match="file/cache cannot be written") as caught:
        compile_library(compiler(tmp_path, "exit 0"), [], tmp_path / "file" / "cache" / "lib.so")
    assert caught.value.failure is CompileFailure.UNWRITABLE
    assert "install" not in caught.value.remedy("a C compiler")


def test_a_machine_without_a_compiler_is_told_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(CompileError, match="no C compiler") as caught:
        c_compiler()
    assert caught.value.remedy("a C compiler") == "install a C compiler"


def test_a_compilation_tells_how_long_it_has_taken(tmp_path, monkeypatch):
    from gilscope.toolkit.processes import supervised

    monkeypatch.setattr(supervised, "FIRST_NOTICE", 0.05)
    said = []

    def on_compile(seconds):
        said.append(seconds)
        if len(said) == 3:
            (tmp_path / "enough").touch()

    command = compiler(tmp_path, f'until test -e "{tmp_path}/enough"; do sleep 0.01; done; touch "$2"')
    compile_library(command, [], tmp_path / "cache" / "lib.so", on_compile)
    assert said[:3] == [0.0, 0.05, 0.1]
    assert (tmp_path / "cache" / "lib.so").exists()
