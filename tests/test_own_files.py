"""Which files are a project's: its sources and tests in its folder, and what its build has put into an environment."""

import json
from pathlib import Path

import pytest

from gilscope.toolkit import own_files
from gilscope.toolkit.own_files import InstalledProject


def install(site, name, *files, url="", editable=False, record=True):
    """Put a distribution's files and metadata into a folder of installed packages."""
    info = site / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).touch()
    if record:
        (info / "RECORD").write_text("".join(f'"{file}",,\n' if "," in file else f"{file},sha256=x,1\n"
                                             for file in files))
    if url:
        (info / "direct_url.json").write_text(json.dumps({"url": url, "dir_info": {"editable": editable}}))


@pytest.fixture
def site(tmp_path):
    return tmp_path / "lib" / "python3.13" / "site-packages"


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "the project"
    made.mkdir()
    (made / "pyproject.toml").write_text('[project]\nname = "My.Shop_core"\n')
    return made


def own(root, site, *files):
    """Return those of the files that are the project's."""
    project = InstalledProject(str(root))
    return [file for file in files if project.has_file(str(site / file))]


def test_distribution_built_from_the_folder_is_the_projects(root, site):
    (root / "pyproject.toml").write_text("[build-system]\n")   # its name is known to its setup.py alone
    install(site, "shop", "till.py", "shop/__init__.py", "shop/_core.so", url=root.as_uri())
    install(site, "lamp", "lamp.py", url=(root.parent / "other").as_uri())
    install(site, "vase", "vase.py", url=f"{root.as_uri()}-2")
    assert own(root, site, "till.py", "shop/__init__.py", "shop/_core.so", "lamp.py", "vase.py", "new.py") == [
        "till.py", "shop/__init__.py", "shop/_core.so"]


def test_distribution_built_from_a_folder_inside_is_the_projects(root, site):
    install(site, "part", "part.py", url=(root / "packages" / "part").as_uri())
    assert own(root, site, "part.py") == ["part.py"]


def test_distribution_of_the_projects_name_is_the_projects(root, site):
    install(site, "my_shop_core", "shop/till.py", "odd,name.py")
    install(site, "my_shop", "lamp.py")
    assert own(root, site, "shop/till.py", "odd,name.py", "lamp.py") == ["shop/till.py", "odd,name.py"]


def test_name_may_be_poetrys(root, site):
    (root / "pyproject.toml").write_text('[tool.poetry]\nname = "shop"\n')
    install(site, "shop", "till.py")
    assert own(root, site, "till.py") == ["till.py"]


@pytest.mark.parametrize("source", ["shop/till.py", "src/shop/till.py", "lib/shop/till.py"])
@pytest.mark.parametrize("file", ["shop/till.py", "shop/till.pyc", "shop/till.cpython-313.so",
                                  "shop-1-py3.13.egg/shop/till.py", "shop.zip/shop/till.py"])
def test_copy_of_a_source_is_the_projects(source, file, root, site):
    (root / source).parent.mkdir(parents=True)
    (root / source).touch()
    assert own(root, site, file, "shop/lamp.py") == [file]


def test_package_in_a_namespace_is_told_from_those_of_others(root, site):
    (root / "src" / "acme" / "shop").mkdir(parents=True)
    (root / "src" / "acme" / "shop" / "__init__.py").touch()
    assert own(root, site, "acme/shop/__init__.py", "acme/lamp/__init__.py") == ["acme/shop/__init__.py"]


def test_what_an_editable_installation_adds_is_not_the_projects(root, site):
    install(site, "my_shop_core", "__editable___shop_finder.py", url=root.as_uri(), editable=True)
    assert own(root, site, "__editable___shop_finder.py") == []


def test_folder_without_a_project_has_no_installed_code(root, site):
    install(site, "shop", "till.py", url=root.as_uri())
    (root / "till.py").touch()
    (root / "pyproject.toml").unlink()
    assert own(root, site, "till.py") == []


@pytest.mark.parametrize("text", [
    "{", "[]", '{"dir_info": 5, "url": ""}', '{"dir_info": {}}', '{"dir_info": {}, "url": 5}',
    '{"url": "https://example.org/shop.whl", "archive_info": {}}'])
def test_damaged_or_other_origin_is_unknown(text, root, site):
    install(site, "my_shop_core", "till.py", url=root.as_uri())
    (site / "my_shop_core-1.dist-info" / "direct_url.json").write_text(text)
    assert own(root, site, "till.py") == ["till.py"]   # by the name


@pytest.mark.parametrize("text", ["", "[project", "project = 5", "[project]\nname = 5", "[tool]\npoetry = 5"])
def test_project_without_a_name(text, root):
    (root / "pyproject.toml").write_text(text)
    assert own_files.project_name(str(root)) == ""
    assert own_files.project_name(str(root / "absent")) == ""


def test_distribution_without_a_record_has_no_known_files(root, site):
    install(site, "my_shop_core", "till.py", record=False)
    assert own(root, site, "till.py", "../../../elsewhere.py") == []


def test_root_is_the_nearest_folder_with_a_pyproject(root):
    (root / "tests" / "unit").mkdir(parents=True)
    assert own_files.project_root(str(root / "tests" / "unit")) == str(root)
    assert own_files.project_root(str(root.parent)) == str(root.parent)


@pytest.mark.parametrize(("file", "expected"), [
    ("tests/run.py", True), ("shop/test/a.py", True), ("conftest.py", True), ("shop/test_till.py", True),
    ("till_test.py", True), ("shop/contest.py", False), ("latest/till.py", False)])
def test_what_is_a_test(file, expected):
    assert own_files.is_test(str(Path(file))) == expected


def test_installed_project_and_commands_of_an_environment_are_told_from_the_users_code(root, site):
    install(site, "my_shop_core", "shop/till.py")
    command, script = root / "bin" / "billrun", root / "bin" / "bill.py"
    command.parent.mkdir()
    assert own_files.library_of(str(command), str(root)) == ""
    (command.parent / "python").touch()
    assert own_files.library_of(str(command), str(root)) == "billrun"
    assert own_files.library_of(str(script), str(root)) == ""
    assert own_files.library_of(f"{site}/shop/till.py") == "shop"
    assert own_files.library_of(f"{site}/shop/till.py", str(root)) == ""
    assert own_files.library_of(f"{site}/lamp.py", str(root)) == "lamp"


@pytest.mark.parametrize(("path", "whose", "known", "library"), [
    ("/home/ann/bank.py", own_files.PROGRAM, "/home/ann/bank.py", ""),
    ("/usr/lib/python3.14/queue.py", own_files.STDLIB, "queue.py", "queue"),
    ("/usr/lib/python3.14t/concurrent/futures/thread.py", own_files.STDLIB, "concurrent/futures/thread.py",
     "concurrent.futures"),
    ("/venv/lib/python3.14/site-packages/rich/live.py", own_files.PACKAGE, "rich/live.py", "rich"),
    ("/usr/lib/python3/dist-packages/six.py", own_files.PACKAGE, "six.py", "six"),
])
def test_whose_code_a_file_is(path, whose, known, library):
    assert own_files.origin(path) == (whose, known)
    assert (own_files.known_as(path), own_files.library_of(path)) == (known, library)
