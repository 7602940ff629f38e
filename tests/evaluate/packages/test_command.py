"""The command: what it installs, prints and returns; a registry only in tests marked `network`."""

import json
import os
from dataclasses import replace

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.doctor import command
from gilscope.toolkit.evaluate.packages import distributions, doctor
from gilscope.toolkit.evaluate.packages.distributions import current_requirements
from tests.conformance import builds
from tests.fakes import make_build

LOCK = """
lock-version = "1.0"
created-by = "by hand"
[[packages]]
name = "thing"
version = "1.0"
wheels = [{url = "https://example.invalid/thing-1.0-py3-none-any.whl", hashes = {sha256 = "0"}},
          {url = "https://example.invalid/thing-1.0-cp310-abi3-manylinux2014_x86_64.whl", hashes = {sha256 = "0"}}]
"""


FREE = pytest.mark.builds("free")


@pytest.fixture
def one_build(build, monkeypatch, tmp_path):
    """Have one free-threaded build at hand, without its counterpart, and nothing in the cache."""
    only = type("Found", (), {"builds": (build,), "problems": ()})()
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: only)
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return build


def fill(site, monkeypatch, build, text, *modules):
    place = site(build)
    place.add("thing", {"thing/__init__.py": text, **{f"thing/{name}.so": None for name in modules}})
    scratch = place.scratch()
    monkeypatch.setattr(doctor, "prepare", lambda *_: {build.label: scratch})
    monkeypatch.setattr(doctor, "newest_versions", lambda *_: {"thing": "1.0"})   # which asks the registry


@FREE
def test_package_that_turns_the_gil_on_is_exit_1(one_build, site, monkeypatch, capsys):
    fill(site, monkeypatch, one_build, "import thing.multi_used\n", "multi_used")
    because = f"thing 1.0 on {one_build.label} turns the GIL on: thing.multi_used needs the GIL"
    doubt = "it cannot be told whether C code was lost"
    for words, everything in ((), False), (("--full",), True):
        assert main(["doctor", "thing", *words]) == 1
        shown = " ".join(capsys.readouterr().out.split())
        assert because in shown
        assert (doubt in shown) is everything


@FREE
def test_html(one_build, site, monkeypatch, tmp_path):
    fill(site, monkeypatch, one_build, "import thing.multi_used\n", "multi_used")
    assert main(["doctor", "thing", "--html", "thing.html"]) == 1
    page = (tmp_path / "thing.html").read_text()
    assert '<p class="word">in the way</p>' in page
    assert "thing 1.0: turns the GIL on" in page


@FREE
def test_what_is_no_requirement_is_not_taken_for_a_package_without_a_wheel(one_build, capsys):
    assert main(["doctor", "thing", "what!!"]) == 2
    assert "'what!!' is neither a requirement nor a path" in capsys.readouterr().err


@FREE
def test_requirements_file_stands_for_what_it_lists(one_build, site, monkeypatch, tmp_path, capsys):
    fill(site, monkeypatch, one_build, "")
    asked = []
    prepared = doctor.prepare
    monkeypatch.setattr(doctor, "prepare", lambda request, *rest: asked.extend(request.requirements) or prepared(
        request, *rest))
    (tmp_path / "wanted.txt").write_text("thing>=1  # why\n-r more.txt\n./local\n")
    (tmp_path / "more.txt").write_text("other\n")
    assert main(["doctor", "./wanted.txt", "third"]) == 0
    assert asked == ["thing>=1", "other", "third"]
    assert "left out, as it has no name and no version: ./local" in capsys.readouterr().err
    assert main(["doctor", "missing.txt"]) == 2
    assert "missing.txt cannot be read: No such file" in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("# nothing yet\n")
    assert main(["doctor", "empty.txt"]) == 2     # and does not look at the current environment
    assert "empty.txt lists no package" in capsys.readouterr().err


@FREE
def test_package_that_does_without_is_exit_0(one_build, site, monkeypatch, capsys):
    fill(site, monkeypatch, one_build, "import thing.multi_best\n", "multi_best")
    assert main(["doctor", "thing", "--json"]) == 0
    (build,) = json.loads(capsys.readouterr().out)["builds"]
    assert [(each["name"], each["status"]) for each in build["packages"]] == [("thing", "ready")]


@FREE
def test_newest_version_of_what_blocks_is_asked_too_when_versions_are_given(one_build, site, monkeypatch, capsys):
    place = site(one_build)
    place.add("thing", {"thing/__init__.py": "import thing.multi_used\n", "thing/multi_used.so": None})
    old = place.scratch()
    newer = replace(old, distributions=tuple(
        replace(each, version="2.0", modules=(), inner=(), extensions=()) for each in old.distributions))
    asked = []

    def prepare(request, *_):
        asked.append(request.requirements)
        return {one_build.label: old if len(asked) == 1 else newer}

    monkeypatch.setattr(doctor, "prepare", prepare)
    monkeypatch.setattr(doctor, "newest_versions", lambda *_: {"thing": "2.0"})   # which asks the registry
    assert main(["doctor", "thing==1.0"]) == 1
    assert asked == [("thing==1.0",), ("thing",)]
    assert "2.0, the newest, mends it" in " ".join(capsys.readouterr().out.split())


@FREE
def test_explain_of_what_is_not_there_says_so(one_build, site, monkeypatch, capsys):
    fill(site, monkeypatch, one_build, "x = 1\n")
    assert main(["doctor", "thing", "--explain", "other"]) == 2
    assert "no package, extension module or file 'other'" in capsys.readouterr().err


def test_build_with_a_gil_tells_nothing_of_free_threading(monkeypatch, capsys):
    only = type("Found", (), {"builds": (make_build("3.14"),), "problems": ()})()
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: only)
    assert main(["doctor", "six", "--builds", "3.14"]) == 2
    assert "has a GIL" in capsys.readouterr().err


@FREE
def test_offline_reads_the_lock_and_gives_no_verdict(one_build, tmp_path, capsys):
    (tmp_path / "pylock.toml").write_text(LOCK)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'mine'\nversion = '1'\n")
    assert main(["doctor", "--offline", "thing"]) == 0
    shown = capsys.readouterr().out
    assert "metadata only, not a verdict" in shown
    assert shown.splitlines()[3].startswith("  A wheel for a build may still turn its GIL on")
    assert "0 more" not in shown
    assert f"thing on {one_build.label}: pure Python, although 1 wheel " in shown


@FREE
def test_offline_without_anything_to_go_by_is_an_error(one_build, capsys):
    assert main(["doctor", "--offline", "thing"]) == 2
    assert "nothing of this was installed before" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["app.py", "./jobs/app.py"])
def test_script_is_for_evaluate(name, capsys):
    assert main(["doctor", name]) == 2
    assert f"{name} is a script, not a package: `gilscope evaluate . --workload {name}`" in capsys.readouterr().err


def test_current_environment_is_what_is_installed_in_it_and_has_a_wheel(site, monkeypatch):
    place = site(builds.host())
    place.add("thing", {"thing/__init__.py": ""}, requires=("other>=1", "extra; extra == 'all'"))
    place.add("gilscope", {"gilscope.py": ""})
    place.add("edited", {"edited.py": ""})
    (place.site / "edited-1.0.dist-info" / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {}}')
    monkeypatch.setenv("VIRTUAL_ENV", str(place.folder))
    assert current_requirements() == {"thing==1.0": ("other",)}
    assert distributions.OURS == "gilscope"


# What each was on 2026-11-21: a newer version may have mended it, and then this table tells so.
KNOWN = {
    "numpy": "ready", "markupsafe": "ready", "msgpack": "ready", "cffi": "ready", "cryptography": "ready",
    "pydantic-core": "ready", "regex": "ready", "lxml": "turns-gil-on", "orjson": "no-wheel",
    "protobuf": "loses-c-code", "aiohttp": "ready", "multidict": "ready", "yarl": "ready",
}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif("GILSCOPE_TEST_REGISTRY" not in os.environ, reason="installs much; set GILSCOPE_TEST_REGISTRY=1")
@FREE
def test_real_packages_are_called_what_they_are(build, capsys, tmp_path, monkeypatch):
    if build.minor != "3.14":
        pytest.skip("the table is of 3.14t")
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    named = [f"--build={each.label}={each.executable}" for each in builds.found() if each.minor == "3.14"]
    assert main(["doctor", *KNOWN, "--builds", build.label, "--json", *named]) == 1
    (judged,) = json.loads(capsys.readouterr().out)["builds"]
    found = {each["name"]: each["status"] for each in judged["packages"]}
    assert {name: found.get(name) for name in KNOWN} == KNOWN
