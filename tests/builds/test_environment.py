"""The environment of a build: made once, whole or again; tox's left as they are; our packages and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.builds import environment
from gilscope.toolkit.builds.environment import build_environment, harness_path
from gilscope.toolkit.builds.package_installer import NOT_FOUND, WITHOUT_WHEEL, InstallProblem, InstallProblemKind
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.model import Build
from tests.patience import PATIENCE

REAL = os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def build(tmp_path):
    base = tmp_path / "python3.14"
    base.write_text("an interpreter\n")
    base.chmod(0o755)
    return Build(
        label="3.14", version="3.14.2", executable=str(base), base_executable=str(base), free_threaded=False,
        source="PATH", debug=False, jit="no", compiler="GCC", opt_level="-O3", pgo=False, lto=False,
        allocator="pymalloc", revision="", config_args="")


@pytest.fixture
def installer(monkeypatch):
    """An installer that has every package but those in `lacks`, and writes down what it was told to do."""
    class Fake:
        def __init__(self):
            self.commands = []
            self.lacks = {}

        def run(self, command, _extra=None):
            words = [str(word) for word in command]
            self.commands.append(words)
            if words[1] == "venv":
                python = Path(words[-1]) / "bin" / "python"
                python.parent.mkdir(parents=True, exist_ok=True)
                python.symlink_to(words[-2])
            return next((why for text, why in self.lacks.items() if text in words), "")

        def asked(self):
            return [words[-1] for words in self.commands]

    fake = Fake()
    monkeypatch.setattr(environment, "run_installer", fake.run)
    monkeypatch.setattr(environment, "uv_command", lambda: "uv")
    return fake


def test_a_second_call_starts_no_process(build, installer):
    first = build_environment(build, ["pyperf>=2.10", "one"])
    installer.commands.clear()
    assert build_environment(build, ["one"]) == first
    assert build_environment(build, ["pyperf>=2.10", "one"]) == first
    assert installer.commands == []


def test_builds_of_one_version_do_not_wait_for_each_other(build, installer):
    environments = [build_environment(replace(build, free_threaded=kind), ["one"]) for kind in (False, True)]
    folders = [each.python.parents[1] for each in environments]
    assert {path.name for path in folders[0].parent.glob("*.lock")} == {f"{folder.name}.lock" for folder in folders}


def test_each_purpose_has_an_environment_of_its_own(build, installer):
    measured = build_environment(build, ["one"])
    drawing = build_environment(build, ["one"], purpose="figures")
    tox = build_environment(replace(build, source="tox"), ["one"], purpose="figures")   # tox's own stays as it is
    assert measured.python.parents[1] != drawing.python.parents[1] == tox.python.parents[1]
    assert installer.asked().count("one") == 2


@pytest.mark.parametrize("said", [
    # pip 25
    ("WARNING: Retrying after connection broken by 'NewConnectionError(\"Failed to establish a new connection\")'\n"
     "ERROR: No matching distribution found for one"),
    # uv 0.8
    ("error: Failed to fetch: `https://index/simple/one/`\n  Caused by: error sending request for url\n"
     "  Caused by: client error (Connect)\n  Caused by: dns error"),
])
def test_without_a_network_nothing_is_taken_for_missing_nor_asked_for_again_and_again(build, installer, said):
    installer.lacks = {"one": said}
    unreachable = build_environment(build, [], ["one", "two"]).missing
    assert set(unreachable) == {"one", "two"}
    assert all(problem.unreached for problem in unreachable.values())
    assert len(installer.commands) == 2   # the environment, both packages together
    installer.lacks = {}
    assert build_environment(build, [], ["one", "two"]).missing == {}


def test_only_what_is_missing_is_added(build, installer):
    build_environment(build, ["one"])
    installer.commands.clear()
    build_environment(build, ["one", "two"])
    assert installer.asked() == ["two"]


def test_only_wheels_are_taken_and_pyperf_without_its_dependencies(build, installer):
    build_environment(build, ["pyperf>=2.10", "one"])
    _, together, pyperf = installer.commands
    assert "pyperf>=2.10" not in together
    assert "--no-deps" in pyperf
    assert "--no-deps" not in together
    assert all(":all:" in words for words in (together, pyperf))


def test_an_optional_package_that_cannot_be_had_is_named_with_its_reason(build, installer):
    installer.lacks = {"numpy": "ERROR: No matching distribution found for numpy"}
    found = build_environment(build, ["one"], ["numpy", "two"])
    assert found.missing == {"numpy": WITHOUT_WHEEL}
    installer.commands.clear()
    assert build_environment(build, ["one", "two"]).missing == {}
    assert build_environment(build, ["one"], ["numpy"]) == found
    assert installer.commands == []  # not asked again at every start


def test_a_missing_package_is_asked_for_again_after_a_while(build, installer, monkeypatch):
    installer.lacks = {"numpy": "no network"}
    build_environment(build, [], ["numpy"])
    installer.lacks = {}
    monkeypatch.setattr(environment, "RETRY_SECONDS", -1.0)
    assert build_environment(build, [], ["numpy"]).missing == {}


def test_a_missing_package_is_asked_for_again_when_the_installer_is_told_where_to_look(build, installer, monkeypatch):
    installer.lacks = {"numpy": "ERROR: No matching distribution found for numpy"}
    assert build_environment(build, [], ["numpy"]).missing
    installer.lacks = {}
    assert build_environment(build, [], ["numpy"]).missing
    monkeypatch.setenv("PIP_FIND_LINKS", "dist")
    assert build_environment(build, [], ["numpy"]).missing == {}


def test_an_index_that_was_not_reached_is_asked_again_at_the_next_start(build, installer):
    installer.lacks = {"numpy": "error: Failed to fetch: an address"}
    assert build_environment(build, [], ["numpy"]).missing["numpy"].unreached
    installer.lacks = {}
    assert build_environment(build, [], ["numpy"]).missing == {}


def test_pip_is_asked_once_more_whether_it_knows_the_name(build, installer, monkeypatch):
    build_environment(build, [])
    installer.lacks = {"needy": "ERROR: No matching distribution found for needed>=2 (from needy)"}
    asked = []
    monkeypatch.setattr(environment, "uv_command", lambda: None)
    monkeypatch.setattr(environment, "full_output", lambda command: asked.append(command[-1]) or "404 everywhere")
    why = build_environment(build, [], ["needy"]).missing["needy"]
    assert (asked, why) == (["needed>=2"], replace(NOT_FOUND, reason=f"it needs needed>=2: {NOT_FOUND.reason}"))


def test_pip_is_asked_once_more_whatever_the_words_are(build, installer, monkeypatch):
    build_environment(build, [])
    installer.lacks = {"needy": "ERROR: No matching distribution found for needed>=2 (from needy)"}
    reworded = InstallProblem("other words", kind=InstallProblemKind.NO_WHEEL)
    monkeypatch.setattr(environment, "problem_in", lambda _: reworded)
    monkeypatch.setattr(environment, "uv_command", lambda: None)
    monkeypatch.setattr(environment, "full_output", lambda _: "404 everywhere")
    assert build_environment(build, [], ["needy"]).missing["needy"].not_found


def test_a_later_start_knows_the_kind_of_an_earlier_failure(build, installer):
    installer.lacks = {"numppy": "numppy was not found in the package registry"}
    found = build_environment(build, [], ["numppy"]).missing
    assert found == {"numppy": NOT_FOUND}
    assert build_environment(build, [], ["numppy"]).missing == found


def test_numpy_is_never_built_from_source_but_a_pure_package_is(build, installer):
    installer.lacks = {":all:": "no wheels"}
    assert build_environment(build, [], ["numpy", "pure"]).missing == {"numpy": WITHOUT_WHEEL}
    assert [words[-1] for words in installer.commands if ":all:" not in words and "install" in words] == ["pure"]


def test_a_required_package_that_cannot_be_had_is_an_error_with_the_installers_words(build, installer):
    installer.lacks = {"one": "some noise\nerror: the disk is full"}
    with pytest.raises(BuildError, match=r"3\.14 needs one, which cannot be installed: error: the disk is full"):
        build_environment(build, ["one"])


def test_an_environment_that_cannot_be_made_is_an_error(build, installer):
    installer.lacks = {"venv": "no space left"}
    with pytest.raises(BuildError, match="no space left"):
        build_environment(build, [])


def test_a_folder_that_cannot_be_written_is_an_error(build, installer, cache):
    cache.write_text("a file")
    with pytest.raises(BuildError, match="set GILSCOPE_CACHE"):
        build_environment(build, ["one"])


@pytest.mark.parametrize("damage", ["python", "stamp", "interpreter"])
def test_a_broken_environment_is_made_again(build, installer, damage):
    python = build_environment(build, ["one"]).python
    if damage == "python":
        python.unlink()
    elif damage == "stamp":
        (python.parents[1] / environment.STAMP).write_text("{")
    else:
        Path(build.base_executable).write_text("another interpreter in its place\n")
    installer.commands.clear()
    assert os.access(build_environment(build, ["one"]).python, os.X_OK)
    assert [words[1] for words in installer.commands] == ["venv", "pip"]


def test_two_at_once_make_one_environment(build, installer, monkeypatch):
    both = threading.Barrier(2)
    ready = environment._ready
    first_looks = set()

    def look_together(*arguments):
        found = ready(*arguments)
        if threading.get_ident() not in first_looks:
            first_looks.add(threading.get_ident())
            both.wait(PATIENCE)  # neither sees the other's work before both have looked
        return found

    monkeypatch.setattr(environment, "_ready", look_together)
    threads = [threading.Thread(target=build_environment, args=(build, ["one"])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [words[1] for words in installer.commands] == ["venv", "pip"]


def test_builds_have_environments_of_their_own(build, installer, tmp_path):
    other = tmp_path / "python3.14t"
    other.write_text("another\n")
    other.chmod(0o755)
    free = replace(build, label="3.14t", base_executable=str(other), free_threaded=True)
    assert build_environment(build, []).python != build_environment(free, []).python


@pytest.fixture
def own(build, tmp_path):
    """A build that is an environment of the user's, with one package."""
    site = tmp_path / "venv" / "lib" / "python3.14" / "site-packages"
    (site / "Some.Package-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /nowhere\n")
    return replace(build, label="mine", source="explicit", executable=str(tmp_path / "venv" / "bin" / "python"))


@pytest.mark.parametrize("source", ["explicit", "added"])
def test_environment_of_the_users_is_measured_as_it_is(own, installer, source):
    found = build_environment(replace(own, source=source), ["pyperf>=2"], user=["some-package>=1"])
    assert (str(found.python), installer.commands) == (own.executable, [])
    assert f"install it there: {own.executable} -m pip install 'pyperf>=2'" in str(found.missing["pyperf>=2"])


def test_what_the_user_asks_for_is_not_installed_into_his_environment(own, installer):
    with pytest.raises(BuildError, match=r"mine needs other, .* not in the environment .* install it there"):
        build_environment(own, [], user=["other"])
    assert build_environment(own, [], user=["other; python_version < '3.14'"]).missing == {}
    assert installer.commands == []


def test_interpreter_that_is_pointed_at_gets_an_environment_of_ours(build, installer):
    assert build_environment(replace(build, source="explicit"), ["one"]).python != Path(build.executable)


def test_other_requirements_of_the_user_are_another_environment(build, installer):
    pythons = [build_environment(build, [], user=user).python for user in (["one==1"], ["one==2"], ["one==1"], [])]
    assert pythons[0] == pythons[2]
    assert len(set(pythons)) == 3


def test_local_project_is_installed_anew_when_a_file_of_it_changes(build, installer, tmp_path):
    source = tmp_path / "project" / "src" / "thing.py"
    source.parent.mkdir(parents=True)
    source.write_text("one")
    text = f"thing @ {(tmp_path / 'project').as_uri()}"
    first = build_environment(build, ["pyperf"], user=[text])

    def repeated():
        installer.commands.clear()
        assert build_environment(build, ["pyperf"], user=[text]) == first
        return [(next(word for word in words if "install" in word), words[-1]) for words in installer.commands]

    assert repeated() == []
    for left in ("build/lib/thing.py", "src/thing.egg-info/PKG-INFO", "src/__pycache__/thing.pyc", ".git/index"):
        (tmp_path / "project" / left).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / left).write_text("left by a build")
    os.utime(source, (1, 1))
    assert repeated() == []
    source.write_text("two")   # of the same size
    assert repeated() == [("uninstall", "thing"), ("install", text)]
    assert repeated() == []
    (source.parent / "more.py").touch()
    assert len(repeated()) == 2


def test_local_project_that_could_not_be_built_again_is_not_taken_for_installed(build, installer, tmp_path):
    source = tmp_path / "project" / "thing.py"
    source.parent.mkdir()
    source.write_text("one")
    text = f"thing @ {source.parent.as_uri()}"
    build_environment(build, [], user=[text])
    source.write_text("two")
    installer.lacks = {text: "error: cannot be built"}
    for _ in range(2):
        with pytest.raises(BuildError, match="cannot be built"):
            build_environment(build, [], user=[text])
    source.write_text("one")
    installer.lacks = {}
    installer.commands.clear()
    assert build_environment(build, [], user=[text]).missing == {}
    assert installer.asked()[-1] == text


def test_requirements_that_contradict_each_other_are_refused(build, installer, monkeypatch):
    def run(command, _extra=None):
        both = {"one==1", "two"} <= set(map(str, command))
        return "error: one==1 and two cannot both be" if both else installer.run(command)

    monkeypatch.setattr(environment, "run_installer", run)
    with pytest.raises(BuildError, match="not together with the others: error: one==1 and two cannot both be"):
        build_environment(build, [], user=["one==1", "two"])


def test_a_tox_environment_is_used_as_it_is(build, installer, tmp_path):
    python = tmp_path / ".tox" / "py314" / "bin" / "python"
    site = tmp_path / ".tox" / "py314" / "lib" / "python3.14" / "site-packages"
    (site / "Some_Package-1.0.dist-info").mkdir(parents=True)
    found = build_environment(replace(build, source="tox", executable=str(python)), ["some.package>=1", "pyperf"])
    assert found.python == python
    assert found.missing == {"pyperf": InstallProblem(
        "not in the tox environment py314; add it to its deps in tox.ini")}
    assert installer.commands == []


def test_only_our_package_is_on_the_measured_process_path(cache):
    folder = harness_path()
    assert [path.name for path in folder.iterdir()] == ["gilscope"]
    assert (folder / "gilscope" / "toolkit" / "builds" / "environment.py").samefile(environment.__file__)
    assert harness_path() == folder


@pytest.mark.parametrize("damage", ["missing", "elsewhere", "file"])
def test_a_damaged_harness_path_is_made_again(cache, damage):
    folder = harness_path()
    (folder / "gilscope").unlink()
    if damage == "elsewhere":
        (folder / "gilscope").symlink_to(cache)
    elif damage == "file":
        (folder / "gilscope").write_text("")
    assert (harness_path() / "gilscope" / "runners" / "base.py").exists()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("with_uv", [True, False])
def test_a_real_environment_has_the_package_and_none_of_the_hosts(build, monkeypatch, with_uv):
    uv = environment.uv_command()
    if with_uv and not uv:
        pytest.skip("uv is not installed")
    monkeypatch.setattr(environment, "uv_command", lambda: uv if with_uv else None)
    real = replace(build, executable=REAL, base_executable=REAL)
    found = build_environment(real, ["pyperf>=2.10"], ["no-such-package-of-gilscope==0"])
    assert list(found.missing) == ["no-such-package-of-gilscope==0"]
    outcome = subprocess.run([found.python, "-c", "import pyperf, gilscope.toolkit.model\nimport pytest"], check=False,
                             capture_output=True, text=True, env={"PYTHONPATH": str(harness_path())})
    assert outcome.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'pytest'"
