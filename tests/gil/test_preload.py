"""The shim is compiled once, and a terminal is told so."""

import os

import pytest

from gilscope.toolkit.gil import preload


@pytest.mark.parametrize("terminal", [True, False])
def test_compilation_is_announced_once_and_only_on_a_terminal(terminal, monkeypatch, tmp_path):
    written = []

    def compile_library(_command, _sources, target, on_compile):
        on_compile()
        target.parent.mkdir(parents=True)
        target.touch()

    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(preload, "_unsupported", lambda: None)
    monkeypatch.setattr(preload, "compile_library", compile_library)
    monkeypatch.setattr(os, "isatty", lambda fd: terminal and fd == 2)
    monkeypatch.setattr(os, "write", lambda fd, text: written.append((fd, text)))
    assert preload.library() == preload.library()
    said = b"gilscope: compiling the library that measures GIL waits, once (some seconds)\n"
    assert written == [(2, said)] * terminal
