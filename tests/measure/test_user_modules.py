"""Where a user's module lies: what one is told who names a file, a part of a package, or forgets --path."""

import json
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.builds.local_projects import missing_import_advice
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.preparation import child_environment, inspect_function
from gilscope.toolkit.measure.user_modules import code_sum, dotted, full_name_advice, path_advice


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a `src/` layout, whose parts import each other relatively."""
    inner = tmp_path / "src" / "mypkg" / "sub"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    (inner / "helper.py").write_text("from .. import conf\ndef add(n):\n    return n + conf.K\n")
    (inner.parent / "__init__.py").write_text("from .sub.helper import add\ndef work(n):\n    return add(n)\n")
    (inner.parent / "conf.py").write_text("K = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("file", "name", "folder"), [
    ("src/mypkg/sub/helper.py", "mypkg.sub.helper", "src"), ("src/mypkg/__init__.py", "mypkg", "src"),
    ("src/mypkg", "mypkg", "src"), ("alone.py", "alone", "."),
])
def test_file_is_named_as_it_is_imported(project, file, name, folder):
    assert dotted(Path(file)) == (name, Path(folder))


def look(folder, function, *paths):
    user = UserTarget(function=function, payloads=None, payload="1", tasks=1, check=None, async_function=None)
    return inspect_function(user, sys.executable, child_environment(paths), folder, paths)


def test_package_in_src_is_measured_with_its_relative_imports(project):
    for function in ("mypkg:work", "mypkg.sub.helper:add"):
        assert look(project, function, project / "src").name == function


@pytest.mark.parametrize(("function", "path", "told"), [
    ("mypkg:work", ".", "it is in src: add --path src"),
    ("helper:add", "src/mypkg/sub", "helper is a part of mypkg: name it mypkg.sub.helper, with --path src"),
    ("sub.helper:add", "src/mypkg", "name it mypkg.sub.helper, with --path src"),
    ("mypkg.nothing:add", "src", "mypkg was found, and has no 'nothing'"),
    ("elsewhere:add", "src", "name that folder with --path or PYTHONPATH"),
])
def test_message_leads_to_the_module(project, function, path, told):
    with pytest.raises(ToolkitError) as refused:
        look(project, function, project / path)
    assert told in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_own_package_that_a_build_lacks_is_not_looked_for_in_an_index(project, tmp_path):
    (project / "pyproject.toml").write_text('[project]\nname = "my-pkg"\n')
    (project / "uses.py").write_text("from mypkg import add\ndef f(n):\n    return add(n)\n")
    with pytest.raises(ToolkitError) as refused:
        look(project, "uses:f", project)
    told = str(refused.value)
    assert "uses imports 'mypkg', which this build does not have; it is yours, in src: use --path . --path src" in told
    assert f"--with 'my-pkg @ {tmp_path.as_uri()}'" in told
    assert "--with mypkg" not in told


def test_own_package_is_found_by_what_the_active_environment_installed(tmp_path, monkeypatch):
    source, there, elsewhere = (tmp_path / each for each in ("my project", "env/lib/python3.13/site-packages", "cwd"))
    info = there / "other_name-1.0.dist-info"
    for folder in (source, info, elsewhere):
        folder.mkdir(parents=True)
    (source / "mine.py").touch()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-name\nVersion: 1.0\n")
    (info / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}}))
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    advice = missing_import_advice("mine.part", [elsewhere])
    assert f"--path . --path '{source}'" in advice
    assert f"--with 'other-name @ {source.as_uri()}'" in advice
    assert missing_import_advice("no_such", [elsewhere]) == "add it with --with no_such"


def test_folder_as_a_requirement_is_answered_with_what_to_write(project):
    (project / "pyproject.toml").write_text('[project]\nname = "my-pkg"\n')
    for text in (".", "./", str(project)):
        with pytest.raises(UnknownNameError) as refused:
            checked(text)
        assert f"--with 'my-pkg @ {project.as_uri()}'" in str(refused.value)
        assert "src imports from the folder itself" in str(refused.value)
    with pytest.raises(UnknownNameError, match="--path src/mypkg imports from it"):
        checked("src/mypkg")


def test_current_folder_that_path_replaces_is_named(project):
    (project / "beside.py").write_text("def f(n):\n    return n\n")
    with pytest.raises(ToolkitError, match=r"the current folder, which --path replaces: add --path \."):
        look(project, "beside:f", project / "src")


def test_nothing_is_made_up(project):
    assert path_advice("elsewhere", [project]) is None
    assert full_name_advice("elsewhere", [project]) is None
    assert full_name_advice("mypkg", [project / "src"]) is None


def test_error_that_quotes_one_of_ours_gets_no_advice(project):
    (project / "elsewhere.py").write_text("""raise ValueError("there is no module 'elsewhere'")""")
    (project / "below").mkdir()
    (project / "below" / "elsewhere.py").touch()
    with pytest.raises(ToolkitError) as refused:
        look(project, "elsewhere:add", project)
    assert "--path" not in str(refused.value)


def test_sum_of_the_code_changes_with_what_is_named_alone(tmp_path):
    package = tmp_path / "shop"
    package.mkdir()
    for name in ("__init__", "cart", "other"):
        (package / f"{name}.py").write_text(f"name = {name!r}\n")
    first = code_sum(["shop.cart"], [tmp_path])
    (package / "other.py").write_text("name = 1\n")
    assert code_sum(["shop.cart", "shop.cart"], [tmp_path]) == first
    (package / "cart.py").write_text("name = 1\n")
    assert code_sum(["shop.cart"], [tmp_path]) not in {first, ""}
    assert code_sum(["json"], [tmp_path]) == ""   # installed: nothing of the user's
