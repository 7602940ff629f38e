"""What the slots of extension modules say, and that importing them does just that."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.packages import slots_child
from gilscope.toolkit.evaluate.packages.imports import ImportRequest, import_run, interpreter_runs, read_extensions
from gilscope.toolkit.processes import sealed_answers
from tests.evaluate.places import version

BOTH = pytest.mark.builds("gil", "free")


@dataclass(frozen=True)
class Expected:
    init: str
    gil: str | None        # as it says; None: it says nothing, which on a free-threaded build is "used"
    interpreters: str
    single: bool = False


MULTI = "multi-phase"
EXPECTED = {
    "multi_plain": Expected(MULTI, None, "shared-gil"),
    "multi_used": Expected(MULTI, "used", "shared-gil"),
    "multi_free": Expected(MULTI, "not-used", "shared-gil"),
    "multi_one": Expected(MULTI, "not-used", "none"),
    "multi_shared": Expected(MULTI, "not-used", "shared-gil"),
    "multi_own": Expected(MULTI, None, "own-gil"),
    "multi_own_used": Expected(MULTI, "used", "own-gil"),
    "multi_best": Expected(MULTI, "not-used", "own-gil"),
    "größe": Expected(MULTI, "not-used", "own-gil"),
    "single_plain": Expected("single-phase", None, "none"),
    "single_free": Expected("single-phase", "not-used", "none", single=True),
}
EXPORTED = {
    "export_plain": Expected("export", None, "shared-gil"),
    "export_used": Expected("export", "used", "shared-gil"),
    "export_best": Expected("export", "not-used", "own-gil"),
    "export_nested": Expected("export", "not-used", "own-gil"),
}


def expected_on(build):
    return EXPECTED | (EXPORTED if version(build) >= (3, 15) else {})


def gil_of(expected, build):
    """Return what the reader must say on a build: before 3.13 there is no such slot, the flag only without a GIL."""
    if build.free_threaded:
        return expected.gil or "used"
    return None if version(build) < (3, 13) or expected.single else expected.gil


@pytest.fixture
def files(tmp_path, variants):
    """Return name and file of extension modules, all copies of the one library."""

    def copies(build, names):
        made = []
        for name in names:
            target = tmp_path / f"{name}.so"
            shutil.copy(variants(build), target)
            made.append((name, str(target)))
        return made

    return copies


@BOTH
def test_slots_are_read_as_they_were_written(build, files):
    expected = expected_on(build)
    found = read_extensions(Path(build.executable), files(build, expected))
    assert {each.name: (each.problem, each.init, each.gil, each.interpreters) for each in found} == {
        name: ("", what.init, gil_of(what, build), what.interpreters) for name, what in expected.items()}


@BOTH
def test_importing_does_what_the_slots_say(build, files, tmp_path):
    expected = expected_on(build)
    files(build, expected)
    run = import_run(Path(build.executable), ImportRequest(roots=tuple(expected)), path=[str(tmp_path)])
    assert (run.kind, run.failed) == ("done", ())
    seen = {load.name: load.gil for load in run.loads if load.name in expected}
    assert seen == {name: gil_of(what, build) if build.free_threaded else None for name, what in expected.items()}
    flipped = [load.name for load in run.loads if load.flipped]
    assert flipped == (["multi_plain"] if build.free_threaded else [])   # the first that needs it; then it stays on


@pytest.mark.builds("free")
def test_one_run_with_the_gil_forced_off_names_every_culprit(build, files, tmp_path):
    files(build, EXPECTED)
    run = import_run(Path(build.executable), ImportRequest(roots=tuple(EXPECTED)), path=[str(tmp_path)], force_off=True)
    assert run.gil_on is False
    assert {load.name for load in run.loads if load.gil == "used" and load.name in EXPECTED} == {
        name for name, what in EXPECTED.items() if what.gil != "not-used"}


@BOTH
def test_interpreters_load_what_says_that_it_supports_their_own_gil(build, files, tmp_path):
    expected = expected_on(build)
    files(build, expected)
    first, *_ = runs = interpreter_runs(Path(build.executable), ImportRequest(roots=tuple(expected)),
                                        path=[str(tmp_path)])
    assert [run.kind for run in runs] == ["done"] * 3
    assert set(first.imported) == {name for name, what in expected.items() if what.interpreters == "own-gil"}
    assert all("does not support loading in subinterpreters" in error for _, error in first.failed)
    assert all(run.imported == first.imported for run in runs)


LIMITS = (2.0, 20.0, 120.0)     # seconds for one file: more where a busy machine has not let the others answer
BREAKS = {
    "hook_crashes": "crashed: SIGSEGV",
    "hook_hangs": "did not return within",
    "hook_exits": "exit code 0",
    "hook_raises": "ImportError: no licence",
    "hook_returns_raw": "nothing that is initialised",
    "twice": "more than one interpreters slot",
    "not_in_there": "no function PyInit_not_in_there",
}


@BOTH
def test_a_hook_that_breaks_is_an_answer_and_costs_its_file_alone(build, files, tmp_path):
    named = {**BREAKS, **({"export_no_abi": "no Py_mod_abi"} if version(build) >= (3, 15) else {})}
    (tmp_path / "empty.so").write_bytes(b"no library at all")
    asked = [*files(build, named), ("empty", str(tmp_path / "empty.so")), *files(build, ["multi_best"])]
    for limit in LIMITS:
        found = {each.name: each for each in read_extensions(Path(build.executable), asked, limit=limit)}
        if [name for name, each in found.items() if "did not return" in each.problem] == ["hook_hangs"]:
            break
    assert {name: text for name, text in named.items() if text not in found[name].problem} == {}
    assert f"within {limit:g} s" in found["hook_hangs"].problem
    assert (found["empty"].problem, found["empty"].damaged) == ("its file is not a shared library", True)
    assert all(each.init is None for name, each in found.items() if name != "multi_best")
    assert found["multi_best"].init == MULTI


def test_a_python_that_cannot_be_started_is_a_problem_of_every_file(tmp_path):
    (tmp_path / "a.so").write_bytes(b"\x7fELF\2\1".ljust(64, b"\0"))   # whole, with nothing in it
    (only,) = read_extensions(tmp_path / "python", [("a", str(tmp_path / "a.so"))])
    assert "cannot start" in only.problem


def test_answer_is_written_whole_where_the_system_takes_a_part(monkeypatch, tmp_path):
    write = os.write
    for module, name in ((os, "write"), (sealed_answers, "_write_some")):
        monkeypatch.setattr(module, name, lambda handle, data: write(handle, bytes(data[:3])))
    slots_child._write(str(tmp_path / "answers"), b"one whole answer\n")
    assert (tmp_path / "answers").read_bytes() == b"one whole answer\n"
