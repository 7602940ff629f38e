"""The set-up of a fresh checkout, as a script under whatever Python is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit import make_venv
from gilscope.toolkit.errors import BuildError

ROOT = Path(__file__).parents[2]
PYTHON39_FILES = ("make_venv.py", "errors.py", "records.py", "file_locks.py", "user_dirs.py", "bounded_reading.py",
                  "builds/uv.py", "builds/logged_command.py",
                  "builds/compile_python.py", "builds/fetch_source.py", "processes/supervised.py",
                  "processes/lifeline.py")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "checkout"
    for name in ("toolkit", "workloads", "runners", "gilscope", ".editable"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "README.md").write_text("# a copy\n")
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    return folder


def script(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def set_up(command, checkout):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=checkout.parent)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.network
def test_a_checkout_is_set_up_once(checkout):
    command = [sys.executable, str(checkout / "toolkit" / "make_venv.py"), "--groups", ""]
    first = set_up(command, checkout)
    assert "making .venv with CPython" in first.stderr
    code = "import gilscope.toolkit as ours; print(ours.__file__)"
    shown = subprocess.run([checkout / ".venv/bin/python", "-c", code],
                           capture_output=True, text=True, check=True, cwd=checkout.parent)
    assert Path(shown.stdout.strip()).resolve() == checkout / "toolkit" / "__init__.py"
    second = set_up(command, checkout)
    assert second.stderr == ""
    with (checkout / "pyproject.toml").open("a") as pyproject:
        pyproject.write("\n# changed\n")
    third = set_up(command, checkout)
    assert "installing gilscope" in third.stderr
    assert "making .venv" not in third.stderr


def test_the_next_python_is_tried_when_one_cannot_make_environments(checkout, tmp_path, monkeypatch):
    # Debian's python3 without python3-venv fails in `-m venv`; this one stands for the next that works.
    bad = script(tmp_path / "bad", "echo ensurepip is not available >&2; exit 1")
    good = script(tmp_path / "good", 'mkdir -p "$3/bin"; cd "$3/bin"; echo "#!/bin/sh" > python; chmod +x python')
    monkeypatch.setattr(make_venv, "uv_command", lambda: None)
    monkeypatch.setattr(make_venv, "suitable_pythons", lambda: iter([(bad, "3.14.0"), (good, "3.13.0")]))
    setup = make_venv.Setup(checkout, [])
    setup.run()
    assert setup.is_done()
    assert "ensurepip is not available" in setup.log.read_text()


def test_when_no_python_works_every_reason_is_told(checkout, tmp_path, monkeypatch):
    bad = script(tmp_path / "bad", "echo ensurepip is not available >&2; exit 1")
    monkeypatch.setattr(make_venv, "uv_command", lambda: None)
    monkeypatch.setattr(make_venv, "suitable_pythons", lambda: iter([(bad, "3.14.0")]))
    with pytest.raises(BuildError, match=r"no environment could be made(?s:.*)ensurepip is not available"):
        make_venv.Setup(checkout, []).run()
    assert not make_venv.Setup(checkout, []).is_done()


def test_an_environment_of_somebody_else_is_not_removed(checkout):
    (checkout / ".venv" / "mine").mkdir(parents=True)
    with pytest.raises(BuildError, match="was not made by this set-up"):
        make_venv.Setup(checkout, []).run()
    assert (checkout / ".venv" / "mine").exists()


def test_an_unknown_group_is_named(checkout, monkeypatch):
    setup = make_venv.Setup(checkout, ["nonsense"])
    (setup.venv / "bin").mkdir(parents=True)
    setup.python.symlink_to(sys.executable)
    with pytest.raises(BuildError, match="no such dependency group: KeyError: 'nonsense'"):
        setup._install()


def test_versions_are_those_of_the_lock_and_a_new_lock_is_installed(checkout, monkeypatch):
    commands = []
    monkeypatch.setattr(make_venv, "run_logged", lambda command, **_: commands.append([str(word) for word in command]))
    setup = make_venv.Setup(checkout, [])
    (setup.venv / "bin").mkdir(parents=True)
    setup.python.symlink_to(sys.executable)
    setup._install()
    [command] = commands
    assert command[command.index("--constraint") + 1] == str(checkout / "constraints.txt")
    assert make_venv.Setup(checkout, []).is_done()
    with (checkout / "constraints.txt").open("a") as constraints:
        constraints.write("another==1.0\n")
    assert not make_venv.Setup(checkout, []).is_done()


PIP = """Obtaining file:///home/me/gilscope
  Installing build dependencies: started
Collecting pyperf>=2.10 (from gilscope==0.1)
  Downloading pyperf-2.10.0-py3-none-any.whl.metadata (6.4 kB)
Collecting pyperf>=2.10 (from gilscope==0.1)
Building wheels for collected packages: gilscope
  Building editable for gilscope (pyproject.toml): started
  Building editable for gilscope (pyproject.toml): finished with status 'done'
Installing collected packages: pyperf, gilscope
Successfully installed gilscope-0.1 pyperf-2.10.0
"""
UV = """Resolved 81 packages in 1.20s
   Building gilscope @ file:///home/me/gilscope
Prepared 3 packages in 800ms
Installed 81 packages in 200ms
 + pyperf==2.10.0
"""


@pytest.mark.parametrize(("output", "steps"), [
    (PIP, ["getting pyperf>=2.10", "building gilscope", "unpacking pyperf, gilscope"]),
    (UV, ["resolved 81 packages", "building gilscope @ file:///home/me/gilscope", "prepared 3 packages",
          "installed 81 packages"]),
])
def test_each_step_of_the_installer_is_said_once_in_a_line(output, steps, capsys):
    reader = make_venv.InstallerSteps(Path("/nowhere"), "installing")
    for line in output.splitlines(keepends=True):
        reader.read(line.encode())
    assert capsys.readouterr().err.splitlines() == [f"set-up: {each}" for each in steps]


def test_unpacking_is_counted_where_pip_is_silent(tmp_path, capsys):
    packages = tmp_path / "lib" / "python3.14" / "site-packages"
    (packages / "pip-26.0.dist-info").mkdir(parents=True)
    steps = make_venv.InstallerSteps(tmp_path, "installing")
    steps.read(b"Installing collected packages: yarl, numpy, gilscope\n")
    steps.tick()                                            # the step itself was news enough
    steps.tick()
    (packages / "yarl-1.0.dist-info").mkdir()
    (packages / "numpy-2.3.dist-info").mkdir()
    steps.tick()
    said = [line.rpartition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert said[1:] == ["set-up: unpacking yarl, numpy, gilscope", "set-up: unpacked 2 of 3 packages"]


def test_a_long_step_is_said_again_though_the_installer_writes_other_lines(tmp_path, monkeypatch, capsys):
    from gilscope.toolkit.builds import logged_command

    monkeypatch.setattr(logged_command, "TICK_SECONDS", 0.01)
    steps = make_venv.InstallerSteps(tmp_path, "installing")
    ticks = []

    def on_tick():
        steps.tick()
        if lines:   # the installer has begun
            ticks.append(None)
        if len(ticks) == 3:
            (tmp_path / "enough").touch()

    body = f'echo Collecting yarl; until test -e "{tmp_path}/enough"; do echo other; sleep 0.01; done; printf end'
    lines = []

    def on_line(line):
        lines.append(line)
        steps.read(line)

    logged_command.run_logged([script(tmp_path / "installer", body)], log=tmp_path / "log", on_line=on_line,
                              on_tick=on_tick)
    assert re.search(r"^set-up: getting yarl, \d+ s so far$", capsys.readouterr().err, re.MULTILINE)
    assert (lines[0], lines[-1]) == (b"Collecting yarl\n", b"end")
    assert (tmp_path / "log").read_bytes().endswith(b"".join(lines))


def test_a_long_step_is_cut(capsys):
    make_venv.InstallerSteps(Path("/nowhere"), "installing").read(b"Installing collected packages: " + b"x" * 500)
    [line] = capsys.readouterr().err.splitlines()
    assert len(line) < 120
    assert line.endswith("...")


def test_the_newest_release_comes_first_and_old_or_free_threaded_pythons_never(tmp_path, monkeypatch):
    told = {"a": "cpython 3.13.1 0", "b": "cpython 3.15.0rc1 0", "c": "cpython 3.14.0 0", "d": "cpython 3.11.2 0",
            "e": "cpython 3.14.1 1", "f": "pypy 3.13.0 0"}
    paths = [script(tmp_path / name, f"echo {answer}") for name, answer in told.items()]
    paths.append(script(tmp_path / "g", "exit 1"))
    monkeypatch.setattr(make_venv, "candidates", lambda: [*paths, str(tmp_path / "gone")])
    assert [Path(path).name for path, _ in make_venv.suitable_pythons()] == ["c", "a", "b"]


@pytest.mark.parametrize(("versions", "tried"), [
    (("3.14.2", "3.14.0", "3.13.1", "3.12.3"), ["3.12.3", "3.13.1"]),
    (("3.14.2", "3.13.1", "3.15.0rc1"), ["3.13.1"]),   # a pre-release stands last, and is not old
])
def test_the_oldest_is_older_than_the_newest(checkout, monkeypatch, versions, tried):
    monkeypatch.setattr(make_venv, "suitable_pythons", lambda: iter([(f"/{each}", each) for each in versions]))
    setup = make_venv.Setup(checkout, [], oldest=True)
    assert setup.venv.name == ".venv-oldest"
    assert [version for _, version in setup._pythons()] == tried


def test_one_version_alone_is_no_failure(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(make_venv, "suitable_pythons", lambda: iter([("/a", "3.14.2"), ("/b", "3.14.1")]))
    monkeypatch.setattr(make_venv.Setup, "is_done", lambda _: False)
    monkeypatch.setattr(make_venv.Setup, "_is_usable", lambda _: False)
    assert make_venv.main(["--groups", "test", "--oldest"]) == 0
    assert "no CPython older than 3.14.2" in capsys.readouterr().err


def test_pythons_are_looked_for_where_tools_install_them(tmp_path, monkeypatch):
    for name, folder in (("PYENV_ROOT", "pyenv"), ("UV_PYTHON_INSTALL_DIR", "uv"), ("GILSCOPE_DATA", "data")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "pyenv/shims"), str(tmp_path / "bin"), "/gone"]))
    there = [script(tmp_path / path, "") for path in (
        "bin/python3.12", "uv/cpython/bin/python3.14", "pyenv/versions/3.13.0/bin/python3.13")]
    for path in ("pyenv/shims/python3.13", "bin/python3.9", "bin/python3.13-config", "bin/python3.13t"):
        script(tmp_path / path, "")
    assert sorted(make_venv.candidates()) == sorted([sys.executable, *there])


@pytest.mark.parametrize("name", PYTHON39_FILES)
def test_the_set_up_can_be_read_by_an_old_python(name):
    import ast

    source = (ROOT / "toolkit" / name).read_text()
    ast.parse(source, feature_version=(3, 9))
    assert "from __future__ import annotations" in source or "|" not in source


def test_the_set_up_runs_on_an_old_python_where_there_is_one(checkout):
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    old = next(iter(pyenv.glob("versions/3.9.*/bin/python")), None) or shutil.which("python3.9")
    if old is None:
        pytest.skip("no Python 3.9 here")
    shown = subprocess.run([old, str(checkout / "toolkit" / "make_venv.py"), "--help"], capture_output=True, text=True,
                           check=True, cwd=checkout.parent)
    assert "--groups NAMES" in shown.stdout
