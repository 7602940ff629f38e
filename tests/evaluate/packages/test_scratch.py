"""Which versions go into which environment; a made-up installer instead of pip and uv."""

import json
import re
from dataclasses import replace

import pytest

from gilscope.toolkit.builds.missing_packages import distribution_of, has_exact_version
from gilscope.toolkit.builds.package_installer import NOT_FOUND, WITHOUT_WHEEL
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages import fetch_wheels, installing, scratch
from gilscope.toolkit.evaluate.packages.scratch import EnvironmentRequest, prepare
from tests.conformance.builds import host


class Installer:
    """Install what it has; say of the rest what pip says."""

    def __init__(self):
        self.has = {"thing": "1.0", "other": "2.0", "needed": "3.0"}
        self.lacks = {}      # part of a folder's name -> distributions that have no wheel there
        self.unknown = set()   # names that no index has
        self.calls = []

    def run(self, command, *_):
        folder, words = command[0], [str(word) for word in command[1:]]
        named = [word for word in words if re.match(r"[a-z]", word)]
        self.calls.append((folder.name, words))
        lacking = {name for part, names in self.lacks.items() if part in folder.name for name in names}
        for text in named:
            if distribution_of(text) in self.unknown:
                return f"Because {text} was not found in the package registry, it cannot be used"
            if distribution_of(text) in lacking or distribution_of(text) not in self.has:
                return f"ERROR: No matching distribution found for {text}"
        for text in named:
            name = distribution_of(text)
            info = folder / "lib" / "python3" / "site-packages" / f"{name}-{self.has[name]}.dist-info"
            info.mkdir(parents=True, exist_ok=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {self.has[name]}\n")
        return ""


@pytest.fixture
def installer(monkeypatch, tmp_path):
    made = Installer()
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(installing, "pip_of", lambda *_: None)
    monkeypatch.setattr(installing, "create", lambda folder, _: make_python(folder))
    monkeypatch.setattr(installing, "installer", lambda folder: [folder])
    monkeypatch.setattr(installing, "run_unless_stopped", made.run)
    return made


def make_python(folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch(mode=0o755)


def builds(*labels):
    base = host()
    return [replace(base, label=label, version=label.rstrip("t") + (".0rc1" if label.startswith("3.15") else ".2"),
                    free_threaded=label.endswith("t")) for label in labels]


def versions(found):
    return {each.name: each.version for each in found.distributions}


def test_the_newest_released_build_with_a_gil_chooses_the_versions(installer):
    found = prepare(EnvironmentRequest(requirements=("thing", "other")), builds("3.14t", "3.15", "3.13", "3.14"))
    assert list(found) == ["3.14", "3.13", "3.15", "3.14t"]
    assert "--constraint" not in installer.calls[0][1]
    assert installer.calls[0][0].startswith("3.14.2-")
    assert all("--constraint" in words for _, words in installer.calls[1:])
    assert all(versions(each) == {"thing": "1.0", "other": "2.0"} for each in found.values())


@pytest.mark.parametrize(("text", "first"), [("thing", "3.14.2-"), ("thing==1.0", "3.15.0rc1-")])
def test_release_at_hand_chooses_for_builds_before_theirs_where_there_is_a_choice(installer, text, first):
    prepare(EnvironmentRequest(requirements=(text,)), builds("3.15t", "3.15"), at_hand=builds("3.14", "3.14t"))
    assert installer.calls[0][0].startswith(first)


def test_environment_follows_when_the_first_one_gets_other_versions(installer):
    request, both = EnvironmentRequest(requirements=("thing",)), builds("3.14", "3.14t")
    stamp = prepare(request, both)["3.14"].folder / scratch.STAMP
    installer.has["thing"] = "1.1"
    assert versions(prepare(request, both)["3.14t"]) == {"thing": "1.0"}
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"made": 0}))
    assert [versions(each) for each in prepare(request, both).values()] == [{"thing": "1.1"}] * 2


def test_what_has_no_wheel_is_named_and_the_rest_installed_in_the_same_versions(installer):
    installer.lacks = {"t-": {"thing"}}
    found = prepare(EnvironmentRequest(requirements=("thing", "other")), builds("3.14", "3.14t"))
    assert found["3.14t"].missing == {"thing": WITHOUT_WHEEL}
    assert versions(found["3.14t"]) == {"other": "2.0"}
    assert [word for word in installer.calls[-1][1] if "==" in word] == ["other==2.0"]


def test_what_has_no_wheel_anywhere_does_not_stop_the_rest(installer):
    installer.lacks = {"": {"thing"}}
    found = prepare(EnvironmentRequest(requirements=("thing", "other")), builds("3.14", "3.14t"))
    assert [each.missing for each in found.values()] == [{"thing": WITHOUT_WHEEL}] * 2
    assert [versions(each) for each in found.values()] == [{"other": "2.0"}] * 2


def test_name_that_no_index_has_is_asked_of_the_first_build_alone(installer):
    installer.unknown = {"absent"}
    found = prepare(EnvironmentRequest(requirements=("thing", "absent")), builds("3.14", "3.14t"))
    assert [each.missing for each in found.values()] == [{"absent": NOT_FOUND}] * 2
    assert {folder.partition("-")[0] for folder, words in installer.calls if "absent" in words} == {"3.14.2"}
    assert [versions(each) for each in found.values()] == [{"thing": "1.0"}] * 2


@pytest.mark.parametrize("told", [
    "WARNING: Retrying (Retry(total=0)) after connection broken by X\nERROR: No matching distribution found for x",
    "error: Request failed after 3 retries in 5.5s\n  cause: Failed to fetch: somewhere",
])
def test_an_index_that_does_not_answer_is_no_missing_wheel(installer, monkeypatch, told):
    monkeypatch.setattr(installing, "run_unless_stopped", lambda *_: told)
    with pytest.raises(BuildError, match="does not answer"):
        prepare(EnvironmentRequest(requirements=("thing",)), builds("3.14"))


def test_an_installer_that_takes_too_long_is_no_missing_wheel(monkeypatch):
    monkeypatch.setattr(fetch_wheels, "run_to_end", lambda *_: "pip did not end within 300 s")
    with pytest.raises(BuildError, match="pip did not end within 300 s, so nothing is known of the packages"):
        fetch_wheels.run_unless_stopped(["pip", "install", "thing"])


def test_sources_are_built_only_when_that_was_asked_for(installer):
    prepare(EnvironmentRequest(requirements=("thing",)), builds("3.14"))
    prepare(EnvironmentRequest(requirements=("thing",), sdists=True), builds("3.14"))
    assert ["--only-binary" in words for _, words in installer.calls] == [True, False]


def test_an_environment_is_made_once_and_again_after_a_day(installer, monkeypatch):
    request = EnvironmentRequest(requirements=("thing",))
    (build,) = builds("3.14")
    first = prepare(request, [build])["3.14"]
    assert prepare(request, [build])["3.14"] == first
    assert len(installer.calls) == 1
    stamp = first.folder / scratch.STAMP
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"made": 0}))
    assert prepare(replace(request, offline=True), [build])["3.14"] == first   # old, but all there is
    prepare(request, [build])
    assert len(installer.calls) == 2


def test_local_project_that_has_changed_gets_another_environment(installer, tmp_path):
    project = tmp_path / "project"   # beside the caches
    project.mkdir()
    (project / "thing.py").write_text("one")
    request = EnvironmentRequest(requirements=(f"thing @ {project.as_uri()}",))
    first = prepare(request, builds("3.14"))["3.14"].folder
    assert prepare(request, builds("3.14"))["3.14"].folder == first
    (project / "thing.py").write_text("two")
    assert prepare(request, builds("3.14"))["3.14"].folder != first


def test_offline_makes_nothing(installer):
    assert prepare(EnvironmentRequest(requirements=("thing",), offline=True), builds("3.14", "3.14t")) == {}
    assert installer.calls == []


def test_what_is_installed_is_told_once_and_for_the_build_alone(installer):
    said = []
    prepare(EnvironmentRequest(requirements=("thing==1; python_version < '3.8'", "thing==2; python_version >= '3.8'",
                                             "other", "other")), builds("3.14"), said.append)
    assert said == ["3.14: install thing==2, other"]


@pytest.mark.parametrize("requirements", [(), ("thing; python_version < '3.8'",)])
def test_environment_without_packages_is_not_said_to_install_any(installer, requirements):
    said = []
    prepare(EnvironmentRequest(requirements=requirements), builds("3.14"), said.append)
    assert said == ["3.14: make an environment without packages"]


@pytest.mark.parametrize(("text", "name"), [
    ("lxml", "lxml"), ("Pydantic_Core>=2", "pydantic-core"),
    ("aiohttp[speedups]==3.1 ; python_version > '3'", "aiohttp"),
])
def test_name_of_a_requirement(text, name):
    assert distribution_of(text) == name


@pytest.mark.parametrize(("text", "exact"), [
    ("lxml==6.1", True), ("lxml[html]==6.1; python_version > '3'", True), ("lxml===6.1", True),
    ("tomli; python_version == '3.10'", False), ("lxml>=6", False), ("-r other==1", False)])
def test_exact_version_is_not_that_of_a_marker(text, exact):
    assert has_exact_version(text) is exact


def test_cache_folder_that_cannot_be_made_is_refused(installer, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(BuildError, match=r"cannot write into the cache folder .*file/cache: Not a directory; set "):
        prepare(EnvironmentRequest(requirements=("thing",)), builds("3.14t"))
    assert not installer.calls
