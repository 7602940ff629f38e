"""What a project needs to run, apart from what its developers need, by each kind of lock."""

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.requirements.closure import (
    dependency_chains,
    is_for_developers,
    split_lock,
    top_level_packages,
)
from gilscope.toolkit.evaluate.requirements.locks import read_graph, read_lock

UV = """
version = 1
[[package]]
name = "werk"
version = "3.0"
source = { editable = "." }
dependencies = [{ name = "markupsafe" }, { name = "core" }]
[package.optional-dependencies]
watch = [{ name = "watchdog" }]
[package.dev-dependencies]
dev = [{ name = "mypy" }, { name = "cryptography" }]
[[package]]
name = "core"
version = "0.1"
source = { editable = "packages/core" }
dependencies = [{ name = "httpx", extra = ["http2"] }]
[[package]]
name = "httpx"
version = "1"
source = { registry = "https://example.org/simple" }
[package.optional-dependencies]
http2 = [{ name = "h2" }]
[[package]]
name = "mypy"
version = "1"
source = { registry = "https://example.org/simple" }
dependencies = [{ name = "typing-extensions" }]
""" + "".join(f"""
[[package]]
name = "{name}"
version = "1"
source = {{ registry = "https://example.org/simple" }}
""" for name in ("markupsafe", "h2", "watchdog", "cryptography", "typing-extensions"))
POETRY = """
[[package]]
name = "markupsafe"
version = "1"
groups = ["main"]
[[package]]
name = "mypy"
version = "1"
groups = ["dev"]
[package.dependencies]
typing-extensions = ">=4"
[[package]]
name = "typing-extensions"
version = "1"
groups = ["dev"]
[metadata]
lock-version = "2.1"
"""
PYLOCK = """
lock-version = "1.0"
created-by = "some tool"
[[packages]]
name = "markupsafe"
version = "1"
archive = { path = "x.zip", hashes = { sha256 = "a" } }
[[packages]]
name = "watchdog"
version = "1"
archive = { path = "x.zip", hashes = { sha256 = "a" } }
marker = "'watch' in extras"
[[packages]]
name = "mypy"
version = "1"
archive = { path = "x.zip", hashes = { sha256 = "a" } }
marker = "'dev' in dependency_groups or 'lint' in dependency_groups"
[[packages]]
name = "colorama"
version = "1"
archive = { path = "x.zip", hashes = { sha256 = "a" } }
marker = "sys_platform == 'linux' or 'dev' in dependency_groups"
[[packages]]
name = "cryptography"
version = "1"
archive = { path = "x.zip", hashes = { sha256 = "a" } }
marker = "python_version >= '3.9' and 'dev' in dependency_groups"
"""
PYPROJECT = '[project]\nname = "werk"\nversion = "3"\ndependencies = ["MarkupSafe>=2"]\n'


def told_apart(folder, name, text, asked=("MarkupSafe",)):
    (folder / name).write_text(text)
    found = split_lock(read_lock(folder / name), read_graph(folder / name), asked)
    return [each.name for each in found.runtime], [each.name for each in found.development]


@pytest.mark.parametrize(("name", "text", "runtime", "development"), [
    ("uv.lock", UV, ["h2", "httpx", "markupsafe"], ["cryptography", "mypy", "typing-extensions", "watchdog"]),
    ("poetry.lock", POETRY, ["markupsafe"], ["mypy", "typing-extensions"]),
    ("pylock.toml", PYLOCK, ["colorama", "markupsafe"], ["cryptography", "mypy", "watchdog"]),
    # Nothing in it tells who needs what.
    ("requirements.txt", "markupsafe==1\nmypy==1\n", ["markupsafe", "mypy"], []),
])
def test_development_is_no_part_of_what_is_needed(tmp_path, name, text, runtime, development):
    assert told_apart(tmp_path, name, text) == (runtime, development)


def test_a_lock_of_something_else_is_needed_whole(tmp_path):
    another = UV.replace('editable = "."', 'registry = "https://example.org/simple"')
    assert told_apart(tmp_path, "uv.lock", another, asked=("numpy",))[1] == []
    # Whoever says nothing of what it needs may need all of it.
    assert told_apart(tmp_path, "uv.lock", another, asked=None)[1] == []


def test_a_project_that_needs_nothing_has_development_alone(tmp_path):
    assert told_apart(tmp_path, "poetry.lock", POETRY, asked=()) == ([], ["markupsafe", "mypy", "typing-extensions"])


def test_project_whose_lock_says_that_it_needs_nothing_has_development_alone(tmp_path):
    nothing = UV.replace('dependencies = [{ name = "markupsafe" }, { name = "core" }]\n', "")
    for asked in (None, ()):
        assert told_apart(tmp_path, "uv.lock", nothing, asked=asked)[0] == []


def test_markers_of_groups_are_none_that_an_installer_knows(tmp_path):
    (tmp_path / "pylock.toml").write_text(PYLOCK)
    assert [each.marker for each in read_lock(tmp_path / "pylock.toml")] == [""] * 5


@pytest.mark.parametrize("text", [
    PYPROJECT + '[project.optional-dependencies]\nExcel = ["openpyxl"]\nall = ["werk[excel]", "redis"]\ntest = ["x"]\n',
    PYPROJECT.replace("[project]", "[tool.poetry]").replace('dependencies = ["MarkupSafe>=2"]', "")
    + '[tool.poetry.dependencies]\nMarkupSafe = ">=2"\nopenpyxl = {version = "*", optional = true}\n'
      'redis = {version = "*", optional = true}\n'
      '[tool.poetry.extras]\nExcel = ["openpyxl"]\nall = ["openpyxl", "redis"]\n',
])
def test_each_extra_is_judged_on_its_own(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    plain = find_project(tmp_path)
    assert (plain.requirements, plain.extras) == (("MarkupSafe>=2",), ("Excel", "all"))
    excel = find_project(tmp_path, extras=["excel"])
    assert (excel.requirements, excel.extras) == (("MarkupSafe>=2", "openpyxl"), ("all",))
    assert find_project(tmp_path, extras=["all"]).requirements == ("MarkupSafe>=2", "openpyxl", "redis")
    with pytest.raises(ToolkitError, match="--extra exel: the project's extras are"):
        find_project(tmp_path, extras=["exel"])


def test_extras_of_a_setup_cfg(tmp_path):
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires = a\n[options.extras_require]\nxml = lxml\ndev = b\n")
    assert find_project(tmp_path).extras == ("xml",)
    assert find_project(tmp_path, extras=["xml"]).requirements == ("a", "lxml")


@pytest.mark.parametrize(("name", "for_developers"), [
    ("Tests", True), ("pre_commit", True), ("docs", True), ("async", False), ("all", False),
    ("test-no-images", True), ("build-tools", False), ("testbed", False)])
def test_extras_for_developers(name, for_developers):
    assert is_for_developers(name) is for_developers


def test_whether_a_project_says_what_it_needs(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\ndependencies = []\n')
    assert find_project(tmp_path).declares
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\ndynamic = ["dependencies"]\n')
    assert not find_project(tmp_path).declares
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n')   # what is left out is none
    assert find_project(tmp_path).declares
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    (tmp_path / "app.py").write_text("")
    assert not find_project(tmp_path).declares


CHAIN_NEEDS = {"web": ("models", "core"), "models": ("core",), "core": ("core-binary",), "core-binary": ("models",)}


def test_shortest_way_from_what_was_asked_for():
    found = dependency_chains(CHAIN_NEEDS, ["models", "web"])
    assert found["web"] == ("web",)
    assert found["core-binary"] == ("models", "core", "core-binary")


def test_what_nobody_asked_for_has_no_way():
    assert "web" not in dependency_chains(CHAIN_NEEDS, ["models"])


def test_what_no_other_one_needs_was_asked_for():
    assert top_level_packages(CHAIN_NEEDS) == ("web",)
    assert top_level_packages({"one": (), "two": ()}) == ("one", "two")
