"""Environments filled by the pip of a build from wheels made here: no registry, real installs."""

import os
import time
from dataclasses import replace

import pytest

from gilscope.toolkit.builds.environment import installer, python_of
from gilscope.toolkit.builds.package_installer import (
    NOT_FOUND,
    InstallProblem,
    InstallProblemKind,
    run_installer,
)
from gilscope.toolkit.children.asking import ChildAnswer, ProcessEnding
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages import fetch_wheels, installing
from gilscope.toolkit.evaluate.packages.distributions import installed, site_folders
from gilscope.toolkit.evaluate.packages.fetch_wheels import (
    BundledPip,
    WheelStore,
    make_environment,
    of_version,
    pip_of,
)
from gilscope.toolkit.evaluate.packages.installing import (
    ChosenVersions,
    LocalFile,
    fill,
    install_files,
    versions_in,
)
from tests.conformance import builds
from tests.evaluate.wheels import make_wheel


@pytest.fixture
def index(monkeypatch, tmp_path):
    """Return a folder that pip takes for all there is."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(installing, "uv_command", lambda: None)
    return folder


def one_that_has_pip(index, kind):
    """Return a build that comes with a pip; skip where there is none, as some distributors leave it out."""
    found = (each for each in reversed(builds.chosen(kind)) if pip_of(each, index))
    return next(found, None) or pytest.skip("no such build with a pip")


def add_pure(folder, build, name, version="1.0"):
    path = make_wheel(folder, name, version, build, {f"{name}.py": "x = 1\n"})
    path.rename(folder / f"{name}-{version}-py3-none-any.whl")


def versions(folder, build):
    return {each.name: each.version for each in installed(site_folders(folder), build)}


def test_requirements_of_one_package_for_different_pythons_are_all_tried():
    wanted = ["a>=1; python_version < '3.12'", "a>=2; python_version >= '3.12'", "b", "a>=3; python_version >= '4'"]
    tries = []
    assert installing._without_missing(wanted, lambda todo: tries.append(todo) or "") == ({}, [])
    assert sorted(tries[0]) == sorted(wanted)
    answers = iter(["ERROR: No matching distribution found for a>=2", ""])
    missing, rest = installing._without_missing(wanted, lambda todo: tries.append(todo) or next(answers))
    assert (list(missing), rest, tries[-1]) == (["a"], [], ["b"])


@pytest.mark.slow
def test_first_environment_chooses_and_the_others_follow(index, tmp_path):
    gil, free = (one_that_has_pip(index, kind) for kind in builds.KINDS)
    add_pure(index, gil, "plain")
    for build in (gil, free):
        make_wheel(index, "both", "2.0", build, {"both.py": ""})
    make_wheel(index, "both", "3.0", free, {"both.py": ""})       # newer, but the other one cannot have it
    make_wheel(index, "free", "1.0", free, {"free.py": ""})
    make_wheel(index, "half", "1.0", gil, {"half.py": ""})
    make_wheel(index, "half", "0.9", free, {"half.py": ""})       # what a resolver would go back to
    (index / "half-1.0.tar.gz").write_bytes(b"")
    wanted = ("absent", "free", "plain", "both", "half", "source @ file:///nowhere")
    unbuilt = InstallProblem("it is named by its source, which is built with --build-sdists only")
    sourceless = InstallProblem(f"no wheel for {gil.label} (1 other wheel), and no source either",
                                kind=InstallProblemKind.NO_WHEEL)
    assert fill(tmp_path / "gil", gil, wanted, None, sdists=False) == {
        "absent": NOT_FOUND, "free": sourceless, "source": unbuilt}
    chosen = versions_in(tmp_path / "gil")
    assert chosen.pins == ("both==2.0", "half==1.0", "plain==1.0")
    missing = fill(tmp_path / "free", free, wanted, chosen, sdists=False)
    assert versions(tmp_path / "free", free) == {"plain": "1.0", "both": "2.0", "free": "1.0"}
    assert missing == {
        "absent": NOT_FOUND, "source": unbuilt,
        "half": InstallProblem(f"no wheel for {free.label} (1 other wheel, none without a GIL)",
                               "its source is there", InstallProblemKind.NO_WHEEL)}


@pytest.mark.slow
def test_lock_is_installed_at_once_although_one_of_it_needs_what_has_no_wheel(index, tmp_path, monkeypatch):
    gil = one_that_has_pip(index, "gil")
    make_wheel(index, "needy", "1.0", gil, {"needy.py": ""}, needs=("sourced>=1", "beside"))
    make_wheel(index, "plain", "1.0", gil, {"plain.py": ""})
    for version in ("1.0", "2.0"):
        make_wheel(index, "beside", version, gil, {"beside.py": ""})   # a need of a pin that is no pin itself
        make_wheel(index, "free", version, gil, {"free.py": ""}, needs=("plain==1.0",))
    (index / "sourced-1.0.tar.gz").write_bytes(b"")
    monkeypatch.setattr(installing, "_install", None)   # one run of pip for each
    wanted = ('needy==1.0 ; python_version >= "3"', "Sourced==1.0", "plain==1.0", "free",
              'plain ==0.1; python_version < "3"')
    assert fill(tmp_path / "gil", gil, wanted, None, sdists=False) == {
        "sourced": InstallProblem("no wheel at all", "its source is there",
                                  InstallProblemKind.NO_WHEEL)}
    assert versions(tmp_path / "gil", gil) == {"needy": "1.0", "plain": "1.0", "free": "2.0", "beside": "2.0"}


def test_pip_is_there_for_the_project_and_the_unpacked_one_is_not_harmed(index, tmp_path):
    gil = one_that_has_pip(index, "gil")
    pip = pip_of(gil, tmp_path / "gil")
    assert make_environment(pip, gil) == ""
    assert run_installer([python_of(tmp_path / "gil"), "-m", "pip", "--version"]) == ""
    assert installer(tmp_path / "gil")[:2] == [python_of(tmp_path / "gil"), "-I"]   # gilscope's may be too old for it
    assert pip.run("uninstall", "--quiet", "--yes", "pip") == ""
    assert pip.run("--version") == ""


def test_index_that_does_not_answer_is_no_missing_wheel(index, monkeypatch, tmp_path):
    gil = one_that_has_pip(index, "gil")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")   # nobody listens on the port of discard
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(BuildError, match="does not answer"):
        fill(tmp_path / "gil", gil, ("absent",), ChosenVersions(pins=("absent==1.0",)), sdists=False)


@pytest.mark.parametrize(("maker", "said"), [
    ("maturin (1.9.4)", "its source builds with Rust (cargo)"),
    ("meson", "its source builds with meson"),     # of C, C++, Fortran or Rust
    ("scikit-build-core 0.11", "its source builds with CMake"),
    ("bdist_wheel (0.45)", "its source builds with setuptools"), ("poetry-core 2.1", "its source is there")])
def test_what_a_source_builds_with_is_said_as_far_as_it_is_known(maker, said):
    told = fetch_wheels.WheelFetch(problem="ERROR: No matching distribution found for x==1", newest="",
                      files=("x-1.tar.gz", "x-1-cp399-cp399-any.whl"))
    assert installing._why("x==1", told, builds.host(), {"x": maker}).more == said


@pytest.mark.parametrize(("text", "source"), [
    ("lxml>=6", False), ("lxml[html]; python_version > '3'", False), (".", True),
    ("x @ https://example.org/x-1-py3-none-any.whl", False),
    ("x @ git+https://example.org/x.git", True), ("x @ https://example.org/x-1.tar.gz ; os_name == 'posix'", True),
    ("./x", True), ("dist/x-1-py3-none-any.whl", False), ("git+https://user@example.org/x.git", True),
])
def test_what_is_named_by_its_source(text, source):
    assert installing._is_source(text) is source


def test_wheels_of_every_build_are_kept_apart_from_those_of_one(index, tmp_path):
    gil, free = (one_that_has_pip(index, kind) for kind in builds.KINDS)
    gil = replace(gil, version="3.14.0")   # before its release a build vouches for nothing, and may be the one at hand
    files = [index / "a-1.0-py3-none-any.whl", index / "b-1.0-cp399-cp399-any.whl"]
    for file in files:
        file.touch()
    WheelStore(gil).keep(files)
    pins = ("a==1.0", "b==1", "c==1")
    assert list(WheelStore(gil).find(pins)) == ["a==1.0", "b==1"]
    assert list(WheelStore(free).find(pins)) == ["a==1.0"]
    # A build without a GIL may be given the pure counterpart of what is compiled for others.
    (index / "c-1-py3-none-any.whl").touch()
    WheelStore(free).keep([index / "c-1-py3-none-any.whl"])
    assert (list(WheelStore(gil).find(["c==1"])), list(WheelStore(free).find(["c==1"]))) == ([], ["c==1"])


def test_wheels_of_yesterday_are_fetched_again(index, tmp_path):
    gil = replace(one_that_has_pip(index, "gil"), version="3.14.0")
    store = WheelStore(gil)
    for name in ("old", "new"):
        (index / f"{name}-1.0-py3-none-any.whl").touch()
    store.keep(index.glob("*.whl"))
    old = next(tmp_path.rglob("old-1.0*.whl"))
    os.utime(old, (time.time() - 25 * 3600,) * 2)
    assert list(store.find(("old==1.0", "new==1.0", "new==1!!"))) == ["new==1.0"]
    store.remove_old()
    assert [path.name for path in tmp_path.rglob("*.whl")] == ["new-1.0-py3-none-any.whl"]


def test_files_of_a_version():
    files = ["Fast_JSON-1.0-py3-none-any.whl", "fast_json-1.0.0.tar.gz", "fast_json-1.1.tar.gz", "fast.whl", "x.zip"]
    assert of_version(files, "fast-json==1.0 ; os_name == 'posix'") == files[:2]
    assert of_version(files, "Fast.Json[extra]") == files[2:3]   # the newest
    assert of_version(files, "fast-json==9") == of_version(files, "fast-json==old") == of_version((), "fast-json") == []
    assert of_version(files, "other==1.0") == of_version(files, "other") == []


@pytest.mark.parametrize("program", [
    "kill -TERM $$", "echo ERROR: no such package; kill -KILL $$", "exit 130",
    "echo ERROR: Operation cancelled by user; exit 1"])
def test_installer_that_was_ended_from_outside_tells_nothing_of_packages(tmp_path, monkeypatch, program):
    monkeypatch.setattr(installing, "installer", lambda _: ["sh", "-c", program])
    with pytest.raises(BuildError, match="ended from outside"):
        installing._installed(tmp_path, ["colorama"])


@pytest.mark.parametrize(("code", "stopped"), [(-15, True), (130, True), (1, False)])
def test_download_that_was_ended_from_outside_tells_nothing_of_packages(tmp_path, monkeypatch, code, stopped):
    done = ProcessEnding(kind="done", reason="", output="")
    records = ({"number": 0, "code": 0, "output": "", "files": []},
               {"number": 1, "code": code, "output": "ERROR: no such package", "files": []})
    monkeypatch.setattr(fetch_wheels, "ask", lambda *_, **__: ChildAnswer(records=records, ending=done))
    pip = BundledPip(folder=tmp_path, environment=tmp_path)
    if stopped:
        with pytest.raises(BuildError, match="ended from outside"):
            pip.fetch(["a==1", "b==1"], tmp_path)
    else:
        assert pip.fetch(["a==1", "b==1"], tmp_path)["b==1"].problem == "ERROR: no such package"


def module_in(folder):
    return (site_folders(folder)[0] / "thing.py").read_text()


@pytest.fixture
def published_and_own(index, tmp_path):
    """Return a build, and the wheel that a user has of a version of which the index has another one."""
    gil = one_that_has_pip(index, "gil")
    make_wheel(index, "thing", "1.0", gil, {"thing.py": "published\n"})
    (tmp_path / "own").mkdir()
    return gil, make_wheel(tmp_path / "own", "thing", "1.0", gil, {"thing.py": "own\n"})


def test_wheel_of_a_user_is_no_answer_for_the_version_on_the_index(published_and_own, tmp_path):
    gil, own = published_and_own
    direct = f"thing @ {own.as_uri()}"
    assert fill(tmp_path / "own-env", gil, [direct], None, sdists=False) == {}
    assert module_in(tmp_path / "own-env") == "own\n"
    chosen = versions_in(tmp_path / "own-env")
    assert fill(tmp_path / "pinned", gil, ["thing==1.0"], chosen, sdists=False) == {}
    assert module_in(tmp_path / "pinned") == "published\n"
    # And the version on the index, fetched meanwhile, is none for the user's wheel.
    assert fill(tmp_path / "followed", gil, [direct], chosen, sdists=False) == {}
    assert module_in(tmp_path / "followed") == "own\n"


def test_local_file_takes_the_place_of_what_the_index_gave(published_and_own, tmp_path):
    gil, own = published_and_own
    assert fill(tmp_path / "env", gil, ["thing"], None, sdists=False) == {}
    assert install_files(tmp_path / "env", [LocalFile(name="thing", path=str(own), sha256="")]) == {}
    assert module_in(tmp_path / "env") == "own\n"
    own.write_bytes(b"no wheel")
    assert list(install_files(tmp_path / "env", [LocalFile(name="thing", path=str(own), sha256="")])) == ["thing"]


def test_environment_of_local_files_alone_asks_no_index(index, tmp_path):
    gil = one_that_has_pip(index, "gil")
    assert fill(tmp_path / "first", gil, [], None, sdists=False) == {}
    assert fill(tmp_path / "second", gil, [], ChosenVersions(), sdists=False) == {}
    assert versions(tmp_path / "second", gil) == {}
