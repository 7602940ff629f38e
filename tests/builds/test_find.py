"""Which builds are found, how each is named, and which are chosen."""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.builds import added, inspection
from gilscope.toolkit.builds.find import default_pair, find_builds, select_builds
from gilscope.toolkit.builds.inspection import opt_level, version_key
from gilscope.toolkit.errors import BadFileError, BuildError, UnknownNameError

REAL = os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without any Python but the running one."""
    for name, folder in (("GILSCOPE_CACHE", "cache"), ("GILSCOPE_DATA", "data"), ("PYENV_ROOT", "pyenv"),
                         ("UV_PYTHON_INSTALL_DIR", "uv"), ("HOME", "home"), ("PATH", "path")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def facts(path, version="3.14.2", **changed):
    return {"implementation": "cpython", "version": version, "executable": str(path), "base_executable": str(path),
            "free_threaded": False, "debug": False, "jit": "no", "compiler": "GCC 12.2.0", "flags": "-g -O3 -Wall",
            "config_args": "", "pymalloc": True, "revision": "", "tail_call": False, **changed}


def fake_python(path, version="3.14.2", **changed):
    """Write a script that answers like an interpreter with these facts."""
    return script(path, f"echo '{json.dumps(facts(path, version, **changed))}'")


def script(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def labels(found):
    return [build.label for build in found.builds]


def test_a_machine_without_builds_has_none(machine):
    found = find_builds()
    assert found.builds == ()
    with pytest.raises(BuildError, match="gilscope builds install"):
        default_pair(found)


def test_builds_are_found_where_each_tool_puts_them_newest_first(machine):
    fake_python(machine / ".tox/py315/bin/python", "3.15.0rc1")
    fake_python(machine / "uv/cpython-3.14/bin/python3.14", "3.14.2")
    fake_python(machine / "pyenv/versions/3.13.1/bin/python3.13", "3.13.1")
    fake_python(machine / "path/python3.13t", "3.13.1", free_threaded=True)
    found = find_builds(project_dir=machine)
    assert [(build.label, build.source) for build in found.builds] == [
        ("3.15", "tox"), ("3.14", "uv"), ("3.13", "pyenv"), ("3.13t", "PATH")]
    assert found.problems == ()


def test_an_old_python_is_no_problem_and_no_build(machine):
    fake_python(machine / "pyenv/versions/odd/bin/python3.13", "3.11.2")
    assert find_builds() == find_builds().__class__(builds=(), problems=())


def test_one_interpreter_found_twice_is_one_build_of_the_first_source(machine):
    real = fake_python(machine / "pyenv/versions/3.14.2/bin/python3.14")
    fake_python(machine / ".tox/py314/bin/python", base_executable=str(real))
    (build,) = find_builds(project_dir=machine).builds
    assert (build.source, build.executable, build.base_executable) == (
        "tox", str(machine / ".tox/py314/bin/python"), str(real))


def test_two_names_of_one_file_are_one_build(machine):
    told = json.dumps(facts("ITSELF", free_threaded=True)).replace("ITSELF", "'$0'")
    path = script(machine / "path/python3.14", f"echo '{told}'")   # asked as python3.14t it says python3.14t
    (machine / "path/python3.14t").hardlink_to(path)
    assert labels(find_builds()) == ["3.14t"]


def test_builds_of_one_version_get_labels_of_their_own(machine):
    fake_python(machine / "uv/a/bin/python3.14", "3.14.1")
    fake_python(machine / "pyenv/versions/a/bin/python3.14", "3.14.2")
    fake_python(machine / "pyenv/versions/b/bin/python3.14", "3.14.2")
    fake_python(machine / "pyenv/versions/c/bin/python3.14", "3.14.2", debug=True, free_threaded=True)
    assert sorted(labels(find_builds())) == ["3.14", "3.14.2-pyenv", "3.14.2-pyenv-2", "3.14td"]
    assert next(build for build in find_builds().builds if build.label == "3.14").source == "uv"


def test_pyenv_shims_are_not_asked(machine, monkeypatch):
    script(machine / "pyenv/shims/python3.14", f"touch {machine}/asked; exit 127")
    monkeypatch.setenv("PATH", f"{machine}/pyenv/shims{os.pathsep}{os.environ['PATH']}")
    assert find_builds().problems == ()
    assert not (machine / "asked").exists()


def test_an_explicit_shim_means_what_it_starts(machine):
    real = fake_python(machine / "elsewhere/python3.14")
    shim = script(machine / "shims/python3.14", f'exec "{real}" "$@"')
    (build,) = find_builds([f"mine={shim}"]).builds
    assert (build.label, build.executable) == ("mine", str(real))


def test_an_explicit_label_is_not_given_to_another(machine):
    fake_python(machine / "uv/a/bin/python3.14")
    other = fake_python(machine / "other/python3.14")
    assert sorted(labels(find_builds([f"3.14={other}"]))) == ["3.14", "3.14.2-uv"]


@pytest.mark.parametrize(("text", "complaint"), [
    ("no-path", "LABEL=PATH"),
    ("a,b=/bin/sh", "LABEL=PATH"),
    ("gone=/nowhere/python", "there is no file"),
    ("shell=/bin/false", "ended with status 1"),
    ("empty=.", "folder without bin/python"),
])
def test_a_mistaken_explicit_build_is_refused(machine, text, complaint):
    with pytest.raises(UnknownNameError, match=complaint):
        find_builds([text])


def test_an_old_explicit_build_is_refused_with_its_version(machine):
    old = fake_python(machine / "old/python", "3.11.2")
    with pytest.raises(UnknownNameError, match=r"CPython 3\.11\.2; 3\.12 is the oldest"):
        find_builds([f"old={old}"])


def test_another_implementation_is_not_cpython(machine):
    other = fake_python(machine / "pypy/python", implementation="pypy")
    with pytest.raises(UnknownNameError, match="is pypy, not CPython"):
        find_builds([f"fast={other}"])


def test_two_explicit_builds_cannot_share_a_label(machine):
    one = fake_python(machine / "one/python")
    with pytest.raises(UnknownNameError, match="given twice"):
        find_builds([f"a={one}", f"a={one}"])


@pytest.mark.parametrize(("body", "reason"), [
    ("echo broken >&2; exit 3", "ended with status 3: broken"),
    ("echo hello", "is not a Python"),
    ("echo '{\"version\": 3}'", "is not a Python"),
])
def test_a_broken_candidate_is_a_problem_beside_the_others(machine, body, reason):
    script(machine / "path/python3.13", body)
    fake_python(machine / "path/python3.14")
    found = find_builds()
    assert labels(found) == ["3.14"]
    assert reason in found.problems[0].text


def test_a_hanging_candidate_and_what_it_started_are_given_up(machine, monkeypatch):
    monkeypatch.setattr(inspection, "LIMIT_SECONDS", 0.2)
    fifo = machine / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # The shell waits for a child that holds the pipe open: only its end brings the end of the file.
    script(machine / "path/python3.13", f"exec 3>{fifo}; /bin/sleep 600; true")
    found = find_builds()
    assert "did not answer within 0.6 s" in found.problems[0].text
    with pytest.raises(UnknownNameError, match=r"3\.13 is installed as .*, which did not answer .*; try again"):
        select_builds(found, "3.13")
    with pytest.raises(UnknownNameError, match=r"gilscope builds install 3\.12"):
        select_builds(found, "3.12")
    os.close(os.open(fifo, os.O_WRONLY))   # where the shell had not come as far, nobody has had it open yet
    assert select.select([reader], [], [], 120)[0], "what it started still runs"
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_candidate_that_needs_longer_is_asked_twice(machine, monkeypatch):
    monkeypatch.setattr(inspection, "LIMIT_SECONDS", 1)
    monkeypatch.setattr(inspection, "SECOND_LIMIT", 60)
    answer = json.dumps(facts(machine / "path/python3.13t", "3.13.5", free_threaded=True))
    seen = machine / "asked"
    script(machine / "path/python3.13t", f"test -e {seen} || {{ : > {seen}; exec /bin/sleep 600; }}; echo '{answer}'")
    assert labels(find_builds()) == ["3.13t"]


def test_an_interpreter_is_asked_once_until_the_cache_is_damaged(machine, monkeypatch):
    asked = []
    ask = inspection._ask
    monkeypatch.setattr(inspection, "_ask", lambda path: asked.append(path) or ask(path))
    first = find_builds([f"me={REAL}"])
    assert find_builds([f"me={REAL}"]) == first
    assert asked == [Path(REAL)]
    for damage in ("{", "[]", '{"format": 1, "facts": {"x": 1}}', '{"format": 999, "facts": {}}'):
        (machine / "cache/builds.json").write_text(damage)
        assert find_builds([f"me={REAL}"]) == first
    assert len(asked) == 5


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(machine, monkeypatch):
    (machine / "cache").write_text("a file where the folder should be")
    assert labels(find_builds([f"me={REAL}"])) == ["me"]


def test_the_running_build_is_described_as_it_is(machine):
    (build,) = find_builds([f"me={sys.prefix}/bin/python"]).builds
    assert build.version == sys.version.split()[0]
    assert build.base_executable == REAL
    assert build.free_threaded == ("t" in sys.abiflags)
    assert build.opt_level.startswith("-O")


def test_builds_are_selected_in_the_order_asked_for(machine):
    fake_python(machine / "path/python3.13", "3.13.1")
    fake_python(machine / "path/python3.14")
    found = find_builds()
    assert [build.label for build in select_builds(found, " 3.13, 3.14,")] == ["3.13", "3.14"]


@pytest.mark.parametrize(("wanted", "complaint"), [
    ("3.14t", r"no build '3\.14t'; at hand: 3\.14\. `gilscope builds install 3\.14t`"),
    ("3.11", r"no build '3\.11'; gilscope measures CPython 3\.12 to 3\.15, and 3\.13t to 3\.15t; at hand: 3\.14\. "),
    ("3.12t", r"no build '3\.12t'; gilscope measures .*`gilscope builds install 3\.14 3\.14t` gets more"),
    ("3.15,3.14t", r"no build '3\.15' and no build '3\.14t'; .*`gilscope builds install 3\.15 3\.14t` gets them"),
    ("314", r"no build '314'; did you mean '3\.14'\?"),
    ("3.15=/opt/python3.15", r"takes names; add an interpreter to them with --build 3\.15=/opt/python3\.15"),
    (",", "no build named"),
])
def test_an_unknown_build_is_answered_with_what_to_do(machine, wanted, complaint):
    fake_python(machine / "path/python3.14")
    with pytest.raises(UnknownNameError, match=complaint):
        select_builds(find_builds(), wanted)


def test_the_default_is_the_newest_fair_pair(machine):
    fake_python(machine / "path/python3.13", "3.13.1")
    fake_python(machine / "path/python3.13t", "3.13.1", free_threaded=True)
    fake_python(machine / "path/python3.14", "3.14.2")
    fake_python(machine / "path/python3.14t", "3.14.1", free_threaded=True)
    assert [build.label for build in select_builds(find_builds(), None)] == ["3.13", "3.13t"]


def test_without_a_free_threaded_build_the_default_is_the_newest_alone(machine):
    fake_python(machine / "path/python3.13", "3.13.1")
    fake_python(machine / "path/python3.14")
    assert [build.label for build in select_builds(find_builds(), None)] == ["3.14"]


@pytest.mark.parametrize(("flags", "level"), [
    ("-g -O2 -Wall -O3", "-O3"), ("-O3 -Og", "-Og"), ("-DX-O3", "-O0"), ("", "-O0"), ("-O", "-O"),
])
def test_the_last_optimization_flag_counts(flags, level):
    assert opt_level(flags) == level


@pytest.mark.parametrize(("config_args", "pgo", "lto"), [
    ("'--enable-optimizations' '--with-lto'", True, True),
    ("'--with-lto=thin'", False, True),
    ("'--enable-optimizations=no' '--with-lto=no'", False, False),
    ("'--enable-optimizations' '--disable-optimizations' '--without-lto'", False, False),
])
def test_pgo_and_lto_are_read_from_what_configure_was_given(config_args, pgo, lto):
    told = inspection.BuildFacts(**facts("x", config_args=config_args))
    assert (inspection.has_pgo(told), inspection.has_lto(told)) == (pgo, lto)


def test_versions_are_ordered():
    ordered = ["3.12.1", "3.13.0", "3.13.15", "3.14.7", "3.14.7+", "3.15.0a7", "3.15.0b1", "3.15.0rc1",
               "3.15.0rc1+dev", "3.15.0"]
    assert sorted(ordered[3:] + ordered[:3], key=version_key) == ordered


def test_tox_environments_of_interpreters_come_first(machine):
    real = fake_python(machine / "real/python3.13", "3.13.1")
    for name in (".pkg", "compare", "py313"):
        fake_python(machine / ".tox" / name / "bin/python", "3.13.1", base_executable=str(real))
    (build,) = find_builds().builds
    assert build.executable == str(machine / ".tox/py313/bin/python")


def venv(folder, base):
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /nowhere\n")
    return fake_python(folder / "bin/python", base_executable=str(base))


def test_added_build_is_found_under_its_label(machine):
    added.remember("mine", fake_python(machine / "opt/python3.14"))
    found = find_builds()
    assert [(build.label, build.source) for build in found.builds] == [("mine", "added")]
    assert added.forget("mine")
    assert not added.forget("mine")
    assert find_builds().builds == ()


def test_added_environment_stands_beside_its_interpreter_and_out_of_the_default_pair(machine):
    base = fake_python(machine / "path/python3.14")
    fake_python(machine / "path/python3.14t", free_threaded=True)
    added.remember("mine", venv(machine / "venv", base))
    found = find_builds()
    assert sorted(labels(found)) == ["3.14", "3.14t", "mine"]
    assert [build.label for build in default_pair(found)] == ["3.14", "3.14t"]
    assert [build.executable for build in select_builds(found, "mine")] == [str(machine / "venv/bin/python")]


def test_added_build_that_is_gone_is_a_problem_with_a_way_out(machine):
    added.remember("mine", machine / "gone/bin/python")
    (problem,) = find_builds().problems
    assert "is gone; `gilscope builds remove mine` forgets it" in problem.text
    with pytest.raises(UnknownNameError, match="is gone"):
        select_builds(find_builds(), "mine")


def test_added_build_that_answers_no_more_is_a_problem(machine):
    added.remember("mine", script(machine / "opt/python", "exit 3"))
    (problem,) = find_builds().problems
    assert "ended with status 3" in problem.text
    assert "`gilscope builds remove mine`" in problem.text


def test_label_given_on_the_command_line_hides_what_was_added_under_it(machine):
    added.remember("mine", fake_python(machine / "opt/python3.14"))
    other = fake_python(machine / "opt/python3.13", "3.13.1")
    (build,) = find_builds([f"mine={other}"]).builds
    assert (build.version, build.source) == ("3.13.1", "explicit")


def test_memory_of_added_builds_that_is_damaged_is_said(machine):
    added.remember("mine", machine / "python")
    (machine / "data/added.json").write_text("{")
    with pytest.raises(BadFileError, match=r"added\.json cannot be read .* remove it"):
        find_builds()
