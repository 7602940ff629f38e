"""What a project's files say of it, by the conventions of packaging tools; damaged ones are named."""

import pytest

from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.evaluate.project.discovery import IN_NAMESPACE, NO_MODULES, PYTEST, find_project
from gilscope.toolkit.evaluate.project.own_modules import needed_to_run, with_built, without_measuring
from gilscope.toolkit.evaluate.requirements.requirements_file import requirement_lines

PEP_621 = """
[project]
name = "svc"
dependencies = ["aiohttp>=3", "lxml"]
[project.optional-dependencies]
test = ["hypothesis"]
[dependency-groups]
tests = ["pytest", {include-group = "lint"}]
lint = ["ruff"]
[tool.pytest.ini_options]
"""
POETRY = """
[tool.poetry]
name = "svc"
[tool.poetry.dependencies]
python = "^3.12"
caret = "^1.2.3"
zero = "^0.2.3"
tilde = "~1.2"
exact = "1.4"
ranged = ">=1,<2"
any = "*"
local = { path = "../local" }
extra = { version = "^2", extras = ["fast"] }
[tool.poetry.group.test.dependencies]
pytest = "*"
"""


def write(folder, **files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_pep_621_project_with_a_group_that_includes_another(tmp_path):
    write(tmp_path, **{"pyproject.toml": PEP_621, "src/svc/__init__.py": "", "uv.lock": ""})
    found = find_project(tmp_path)
    assert found.name == "svc"
    assert found.requirements == ("aiohttp>=3", "lxml")
    assert set(found.test_requirements) == {"hypothesis", "pytest", "ruff"}
    assert found.modules == ("svc",)
    assert found.sources == (tmp_path / "src",)
    assert found.lock == tmp_path / "uv.lock"
    assert found.tests == PYTEST
    assert found.installable
    assert "requirements: [project] of pyproject.toml" in found.found


def test_groups_that_include_each_other_are_refused(tmp_path):
    text = PEP_621.replace('lint = ["ruff"]', 'lint = ["ruff", {include-group = "tests"}]')
    with pytest.raises(BadFileError, match=r"pyproject.toml: \[dependency-groups\]: Cyclic dependency group"):
        find_project(write(tmp_path, **{"pyproject.toml": text}))


TOX = """
[testenv]
deps =
    pytest
    sybil>=5  # docs
    py312: tomli
    -r more.txt
    {[testenv:lint]deps}
[testenv:lint]
deps = ruff
"""


SETUP_CFG = """
[options.extras_require]
dev =
    twine
test =
    pytest
    pytest-mock
"""
PKG_INFO = """Metadata-Version: 2.1
Name: app
Requires-Dist: lxml
Requires-Dist: twine; "dev"==extra
Requires-Dist: pytest; (sys_platform == "linux") and extra=="testing"

"""


@pytest.mark.parametrize(("files", "needed", "said"), [
    ({"tox.ini": TOX}, ("pytest", "sybil>=5"), "for the tests: [testenv] of tox.ini"),
    ({"tests/requirements.txt": "pytest\nmock\n"}, ("pytest", "mock"), "for the tests: tests/requirements.txt"),
    ({"tox.ini": TOX, "requirements-test.txt": "nose2"}, ("nose2",), "for the tests: requirements-test.txt"),
    ({"tox.ini": TOX, "pyproject.toml": PEP_621}, ("hypothesis", "pytest", "ruff"),
     "for the tests: groups and extras of pyproject.toml"),
    ({"tox.ini": TOX, "setup.cfg": SETUP_CFG}, ("pytest", "pytest-mock"), "for the tests: extras of setup.cfg"),
    ({"setup.cfg": SETUP_CFG.replace("test =", "docs =")}, ("twine",), "for the tests: extras of setup.cfg"),
    ({"setup.py": "", "PKG-INFO": PKG_INFO}, ('pytest; sys_platform == "linux" and python_version >= "3"',),
     "for the tests: extras of PKG-INFO"),
    ({"tox.ini": "[tox]"}, (), None),
])
def test_what_the_tests_need_by_the_usual_files(tmp_path, files, needed, said):
    found = find_project(write(tmp_path, **{"app.py": "", **files}))
    assert set(found.test_requirements) == set(needed)
    assert [each for each in found.found if each.startswith("for the tests")] == ([said] if said else [])


def test_damaged_tox_ini_is_named(tmp_path):
    with pytest.raises(BadFileError, match=r"tox\.ini cannot be read"):
        find_project(write(tmp_path, **{"app.py": "", "tox.ini": "deps = pytest"}))


def test_poetrys_ranges_become_everybodys(tmp_path):
    found = find_project(write(tmp_path, **{"pyproject.toml": POETRY}))
    assert found.requirements == (
        "caret>=1.2.3,<2", "zero>=0.2.3,<0.3", "tilde>=1.2,<1.3", "exact==1.4", "ranged>=1,<2", "any",
        "extra[fast]>=2,<3")
    assert found.test_requirements == ("pytest",)


def test_setup_cfg_comes_before_requirements_txt(tmp_path):
    write(tmp_path, **{"setup.cfg": "[options]\ninstall_requires =\n  lxml\n  orjson\n", "requirements.txt": "six",
                       "app.py": ""})
    assert find_project(tmp_path).requirements == ("lxml", "orjson")


def test_extras_of_the_project_itself_are_what_they_hold(tmp_path):
    write(tmp_path, **{"pyproject.toml": """
[project]
name = "My_Shop"
dependencies = ["lxml"]
[project.optional-dependencies]
excel = ["openpyxl"]
all = ["my.shop[excel,all]", "orjson"]
[dependency-groups]
test = ["my-shop[all]", "my-shop", "pytest"]
"""})
    assert set(find_project(tmp_path).test_requirements) == {"orjson", "openpyxl", "pytest"}


def test_sdist_of_a_setup_py_says_what_it_needs_in_its_metadata(tmp_path):
    write(tmp_path, **{"setup.py": "", "app.py": "", "PKG-INFO": "Metadata-Version: 2.1\nName: app\n"
                       "Requires-Dist: lxml>=5\nRequires-Dist: orjson; extra == 'fast'\n\nRequires-Dist: six\n"})
    assert find_project(tmp_path).requirements == ("lxml>=5",)


def test_setup_py_is_not_run_and_that_is_said(tmp_path):
    found = find_project(write(tmp_path, **{"setup.py": "", "app.py": ""})).found
    assert any("setup.py is not run" in each for each in found)


def test_requirements_file_with_includes_options_and_hashes(tmp_path):
    write(tmp_path, **{
        "requirements.txt": "-r base.txt\n--pre\nlxml==6.0 \\\n  --hash=sha256:aa # why\n-e .\n",
        "base.txt": "-r requirements.txt\nsix==1.17  # old\n"})
    assert requirement_lines(tmp_path / "requirements.txt") == ("six==1.17", "lxml==6.0")
    assert find_project(tmp_path).lock == tmp_path / "requirements.txt"


def test_unpinned_requirements_are_no_lock(tmp_path):
    found = find_project(write(tmp_path, **{"requirements.txt": "lxml==6.0\nsix\n"}))
    assert found.lock is None
    assert any("lock: none" in each for each in found.found)


def test_flat_project_without_metadata(tmp_path):
    write(tmp_path, **{"app.py": "", "setup.py": "", "conftest.py": "", "tests/test_app.py": "", "_own.py": ""})
    found = find_project(tmp_path)
    assert found.modules == ("app",)
    assert found.tests == PYTEST
    assert found.requirements == ()


@pytest.mark.parametrize(("files", "fields", "said"), [
    ({}, {"tests": None, "lock": None, "installable": False},
     "tests: none found in pytest's settings, a folder tests, the packages' folders or tox.ini"),
    ({"pytest.ini": ""}, {"tests": PYTEST}, "tests: python -m pytest -q (pytest is configured)"),
    ({"tests/x.py": ""}, {"tests": PYTEST}, "tests: python -m pytest -q (tests)"),
    ({"test_app.py": ""}, {"tests": PYTEST, "modules": ("app",)}, "tests: python -m pytest -q (test_*.py)"),
    ({"setup.py": ""}, {"installable": True}, "modules: app (in the folder of the project)"),
    ({"pyproject.toml": "[build-system]\nrequires = []"}, {"installable": True},
     "modules: app (in the folder of the project)"),
    ({"pyproject.toml": '[tool.poetry]\nname = "shop"'}, {"name": "shop", "installable": False},
     "modules: app (in the folder of the project)"),
    ({"requirements.txt": "# none\n"}, {"lock": None}, "lock: none found, so versions are chosen today"),
    ({"pylock.b.toml": "", "pylock.a.toml": ""}, {}, "lock: pylock.a.toml"),
    ({"pyproject.toml": '[project]\nname = "shop"'}, {"requirements": ()},
     "requirements: none, as [project] of pyproject.toml declares none"),
    ({"setup.cfg": "[metadata]\nname = shop"}, {"requirements": ()}, "requirements: none, as setup.cfg declares none"),
    ({"pyproject.toml": '[project]\nname = "shop"\ndependencies = []'}, {"requirements": ()},
     "requirements: none, as [project] of pyproject.toml lists none"),
    ({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.12"'}, {"requirements": ()},
     "requirements: none, as [tool.poetry] of pyproject.toml lists none"),
    ({"requirements.txt": "# none\n"}, {"requirements": ()}, "requirements: none, as requirements.txt lists none"),
    ({"pyproject.toml": '[project]\nname = "shop"\ndynamic = ["dependencies"]', "setup.py": ""}, {"requirements": ()},
     ("requirements: none found in [project], [tool.poetry], setup.cfg, requirements.txt or PKG-INFO (setup.py is not "
      "run: put them into a requirements.txt)")),
    ({"pyproject.toml": '[project]\nname = "shop"', "requirements.txt": "six\n"}, {"requirements": ("six",)},
     "requirements: requirements.txt"),
    ({"pylock.b.toml": "", "requirements.txt": "six==1\n"}, {}, "lock: pylock.b.toml"),
])
def test_what_is_found_by_each_convention_is_said(tmp_path, files, fields, said):
    found = find_project(write(tmp_path, **{"app.py": ""} | files))
    assert {name: getattr(found, name) for name in fields} == fields
    assert said in found.found


def test_file_of_the_project_alone_is_enough(tmp_path):
    found = find_project(write(tmp_path, **{"pyproject.toml": "[tool.x]\n"}))
    assert (found.name, found.modules) == (tmp_path.name, ())


def test_named_tests_and_lock_are_taken_as_they_are(tmp_path):
    write(tmp_path, **{"app.py": "", "other.lock": ""})
    found = find_project(tmp_path, lock=tmp_path / "other.lock", tests="python -m unittest 'a b'")
    assert (found.lock, found.tests) == (tmp_path / "other.lock", ("python", "-m", "unittest", "a b"))


@pytest.mark.parametrize(("files", "options", "said"), [
    ({}, {}, "is it a project's root"),
    ({"pyproject.toml": "[project"}, {}, "pyproject.toml cannot be read"),
    ({"pyproject.toml": '[project]\ndependencies = ["lxml ??"]'}, {}, r"'lxml \?\?' is not a requirement"),
    ({"app.py": ""}, {"tests": "pytest '"}, "--tests"),
    ({"setup.cfg": "install_requires = x"}, {}, "setup.cfg cannot be read"),
])
def test_mistakes_are_named(tmp_path, files, options, said):
    write(tmp_path, **files)
    with pytest.raises(ToolkitError, match=said):
        find_project(tmp_path, **options)


def test_missing_lock_and_folder_are_named(tmp_path):
    write(tmp_path, **{"app.py": ""})
    with pytest.raises(ToolkitError, match="there is no such file"):
        find_project(tmp_path, lock=tmp_path / "uv.lock")
    with pytest.raises(ToolkitError, match="is not a folder"):
        find_project(tmp_path / "app.py")


def test_requirements_that_include_nothing_are_named(tmp_path):
    with pytest.raises(BadFileError, match=r"base\.txt cannot be read"):
        find_project(write(tmp_path, **{"requirements.txt": "-r base.txt"}))


def test_package_of_a_binding_and_a_module_that_the_build_makes_are_the_projects(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n')
    nothing = find_project(tmp_path)
    assert NO_MODULES in nothing.found
    built = with_built(nothing, ["fast", "fast._part", ""])
    assert built.modules == ("fast",)
    assert "modules: fast (its build makes it)" in built.found
    (tmp_path / "src" / "_bindings").mkdir(parents=True)
    (tmp_path / "src" / "_bindings" / "__init__.py").write_text("")
    assert find_project(tmp_path).modules == ("_bindings",)
    both = with_built(find_project(tmp_path), ["fast", "_bindings._c", "_bindings"])
    assert both.modules == ("_bindings", "fast")
    assert "modules: _bindings (src/), fast (its build makes it)" in both.found
    (tmp_path / "src" / "shown.py").write_text("")
    assert find_project(tmp_path).modules == ("shown",)


def test_name_of_an_sdist_is_its_metadatas(tmp_path):
    (tmp_path / "app.py").write_text("")
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: brotlicffi\n")
    assert find_project(tmp_path).name == "brotlicffi"


@pytest.mark.parametrize("settings", [
    '[tool.scikit-build]\nwheel.packages = ["lib/py/fast"]\n',
    '[tool.scikit-build.wheel.packages]\nfast = "lib/py/fast"\n',
    '[tool.hatch.build.targets.wheel]\npackages = ["lib/py/fast"]\n',
    '[tool.maturin]\npython-source = "lib/py"\n',
    '[tool.setuptools.packages.find]\nwhere = ["lib/py"]\n',
    '[tool.setuptools.package-dir]\nfast = "lib/py/fast"\n',
])
def test_packages_that_the_builds_settings_name(tmp_path, settings):
    (tmp_path / "lib" / "py" / "fast").mkdir(parents=True)
    (tmp_path / "lib" / "py" / "fast" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "a"\n{settings}')
    found = find_project(tmp_path)
    assert (found.modules, found.sources) == (("fast",), (tmp_path / "lib" / "py",))
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "a"\n{settings}'.replace("lib/py", "../gone"))
    assert find_project(tmp_path).modules == ()


OF_PKGUTIL = '__path__ = __import__("pkgutil").extend_path(__path__, __name__)'


def test_script_beside_the_modules_of_an_sdist_is_not_one_of_them(tmp_path):
    write(tmp_path, **{"setup.py": "", "lock/__init__.py": "", "lockbench.py": "",
                       "lock.egg-info/top_level.txt": "lock\n"})
    assert find_project(tmp_path).modules == ("lock", "lockbench")   # a checkout: its list may be an old one
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: lock\n")
    assert find_project(tmp_path).modules == ("lock",)
    (tmp_path / "lock.egg-info" / "top_level.txt").write_text("other\n")
    assert find_project(tmp_path).modules == ("lock", "lockbench")


@pytest.mark.parametrize(("name", "files", "modules", "source"), [
    ("zope.interface", ("src/zope/interface/__init__.py",), ("zope.interface",), "src"),
    ("zope-testing", ("zope/testing/__init__.py", "docs/conf.py"), ("zope.testing",), ""),
    ("google-cloud-storage", ("google/cloud/storage/__init__.py", "owlbot/a.py"), ("google.cloud.storage",), ""),
    ("acme", ("src/acme/one.py", "src/acme/two/__init__.py", "src/acme/tests/test_it.py"), ("acme.one", "acme.two"),
     "src"),
    ("other", ("src/zope/interface/__init__.py", "setup.py", "app.py"), ("app",), ""),    # its name says nothing
    ("python-app", ("src/python/app/__init__.py", "app.py"), ("app",), ""),     # `python` is a folder of sources
    ("acme", ("acme/readme.txt", "app.py"), ("app",), ""),
])
def test_packages_in_a_namespace_package_are_the_projects(tmp_path, name, files, modules, source):
    found = find_project(write(tmp_path, **{"pyproject.toml": f'[project]\nname = "{name}"\n'},
                               **dict.fromkeys(files, "")))
    assert (found.modules, found.sources) == (modules, (tmp_path / source,))


@pytest.mark.parametrize("declares", [OF_PKGUTIL, "__import__('pkg_resources').declare_namespace(__name__)"])
def test_namespace_package_of_before_pep_420_needs_no_name(tmp_path, declares):
    write(tmp_path, **{"setup.py": "", "acme/__init__.py": declares, "acme/fast/__init__.py": ""})
    assert find_project(tmp_path).modules == ("acme.fast",)
    (tmp_path / "acme" / "__init__.py").write_text("from acme import fast")
    assert find_project(tmp_path).modules == ("acme",)
    write(tmp_path, **{"acme/__init__.py": declares, "acme/other.py": ""})     # a package that plugins may extend
    assert find_project(tmp_path).modules == ("acme",)


def test_namespace_package_in_a_folder_that_the_build_names(tmp_path):
    write(tmp_path, **{"src/python/backports/zstd/__init__.py": "", "pyproject.toml":
                       '[project]\nname = "backports.zstd"\n[tool.setuptools.packages.find]\nwhere = ["src/python"]\n'})
    found = find_project(tmp_path)
    assert (found.modules, found.sources) == (("backports.zstd",), (tmp_path / "src" / "python",))


def test_extension_module_in_a_namespace_package_names_the_package_that_has_it(tmp_path):
    made = find_project(write(tmp_path, **{"src/acme/fast/__init__.py": "", "pyproject.toml":
                                              '[project]\nname = "a"\n'}))
    assert made.modules == ()
    found = with_built(made, ["acme.fast._c"])
    assert (found.modules, found.sources) == (("acme.fast",), (tmp_path / "src",))
    assert with_built(made, ["other._c"]).modules == ("other",)


def test_tests_in_a_namespace_package_are_collected_by_their_whole_names(tmp_path):
    write(tmp_path, **{"pyproject.toml": '[project]\nname = "zope.interface"\n', "src/zope/interface/__init__.py": "",
                       "src/zope/interface/tests/test_it.py": ""})
    found = find_project(tmp_path)
    assert (found.tests, found.with_tests) == ((*PYTEST, *IN_NAMESPACE), ("zope.interface",))
    (tmp_path / "tests").mkdir()     # beside the package, where a name is no problem
    assert find_project(tmp_path).tests == (*PYTEST, *IN_NAMESPACE)
    assert find_project(tmp_path).with_tests == ()


def test_what_the_program_needs_is_declared_or_imported_by_its_modules_not_by_its_tests(tmp_path):
    write(tmp_path, **{
        "requirements.txt": "Or_Json>=3; python_version > '3.8'\n", "shop/__init__.py": "import msgpack.ext, json\n",
        "shop/db/store.py": "from psycopg import connect\nfrom . import models\nfrom shop.db import x\n",
        "shop/broken.py": "import (", "tests/test_shop.py": "import hypothesis\n"})
    needed = needed_to_run(find_project(tmp_path))
    assert {"or-json", "msgpack", "psycopg"} <= needed
    assert "hypothesis" not in needed


def test_what_is_imported_from_a_namespace_package_is_needed_by_the_name_of_its_project(tmp_path):
    write(tmp_path, **{"pyproject.toml": '[project]\nname = "zope.a"\n',
                       "src/zope/a/__init__.py": "import zope.event.classhandler\nfrom zope import proxy\n"})
    assert {"zope-event", "zope-proxy"} <= needed_to_run(find_project(tmp_path))


@pytest.mark.parametrize(("files", "workload", "modules", "measuring"), [
    ({"shop/__init__.py": ""}, "load:work", ("shop",), "load.py"),
    ({"shop/__init__.py": ""}, "load.py --n 3", ("shop",), "load.py"),
    ({"shop/__init__.py": ""}, "shop.db:work", ("load", "shop"), ""),
    ({"shop/__init__.py": ""}, None, ("load", "shop"), ""),
    ({"db.py": ""}, "load:work", ("db", "load"), ""),   # an application of modules: the workload is one of them
    ({"shop/__init__.py": "", "pyproject.toml": '[project]\nname = "Load"'}, "load:work", ("load", "shop"), ""),
    ({"shop/__init__.py": "", "pyproject.toml": '[tool.setuptools]\npy-modules = ["a", "load"]'}, "load:work",
     ("load", "shop"), ""),
    ({"shop/__init__.py": "", "setup.py": 'setup(py_modules=["load"])'}, "load:work", ("load", "shop"), ""),
    ({"shop/__init__.py": "", "setup.py": 'setup(py_modules=["a"], description="load")'}, "load:work", ("shop",),
     "load.py"),
])
def test_file_that_somebody_wrote_to_measure_a_project_is_none_of_its_modules(
        tmp_path, files, workload, modules, measuring):
    made = find_project(write(tmp_path, **{"load.py": "", **files}))
    found = without_measuring(made, workload, builds=False)
    assert (found.modules, found.measuring) == (modules, measuring)
    said = next(each for each in found.found if each.startswith("modules: "))
    assert said.endswith("(in the folder of the project); without load.py, which holds the workload") is bool(measuring)


def test_module_that_the_build_makes_is_found_beside_the_file_that_measures_it(tmp_path):
    made = find_project(write(tmp_path, **{"load.py": "", "pyproject.toml": '[project]\nname = "a"'}))
    found = with_built(without_measuring(made, "load:work", builds=True), ["rpds"])
    assert found.modules == ("rpds",)
    assert "modules: rpds (its build makes it); without load.py, which holds the workload" in found.found


@pytest.mark.parametrize(("files", "inside"), [
    ({"pkg/__init__.py": "", "pkg/tests/test_it.py": ""}, ("pkg",)),
    ({"src/pkg/__init__.py": "", "src/pkg/test_it.py": ""}, ("pkg",)),
    ({"pkg/__init__.py": "", "pkg/test/test_it.py": "", "tests/test_it.py": ""}, ()),
], ids=["in a folder", "beside the modules", "outside, too"])
def test_tests_inside_of_the_package_are_found(tmp_path, files, inside):
    found = find_project(write(tmp_path, **{"pyproject.toml": "[project]\nname = 'pkg'\n"}, **files))
    assert (found.tests, found.with_tests) == (PYTEST, inside)


@pytest.mark.parametrize(("commands", "found"), [
    ("python -m unittest discover -s check", ("python", "-m", "unittest", "discover", "-s", "check")),
    ("  echo begin\n  {envpython} -m pytest \\\n    {posargs:check}", ("python", "-m", "pytest", "check")),
    ("{envbindir}/py.test {toxinidir}/check", ("python", "-m", "pytest", "./check")),
    ("py312: pytest old\n  - pytest check", ("python", "-m", "pytest", "check")),
    ("zope-testrunner --test-path=src {posargs:-vc}", ("python", "-m", "zope.testrunner", "--test-path=src", "-vc")),
    ("coverage run -p -m unittest discover -s check", ("python", "-m", "unittest", "discover", "-s", "check")),
    ("python -m coverage run -m pytest check", ("python", "-m", "pytest", "check")),
    ("coverage report -m", None),
    ("coverage run -m sphinx", None),
    ("pytest --basetemp={envtmpdir}", None),
    ("sphinx-build docs out", None),
])
def test_command_of_tox_is_taken_where_no_tests_are_found_otherwise(tmp_path, commands, found):
    write(tmp_path, **{"pyproject.toml": "[project]\nname = 'x'\n",
                       "tox.ini": f"[testenv]\ncommands =\n  {commands}\n"})
    assert find_project(tmp_path).tests == found
    (tmp_path / "tests").mkdir()
    assert find_project(tmp_path).tests == PYTEST


@pytest.mark.parametrize(("metadata", "known"), [
    ("Metadata-Version: 2.4\nName: x\n", True),
    ("Metadata-Version: 2.4\nName: x\nDynamic: Requires-Dist\n", False),
    ("Metadata-Version: 2.1\nName: x\n", False),
])
def test_metadata_of_an_sdist_says_that_there_are_no_requirements(tmp_path, metadata, known):
    found = find_project(write(tmp_path, **{"PKG-INFO": metadata, "setup.py": "", "x/__init__.py": ""}))
    assert (found.requirements, found.requirements_known or found.declares) == ((), known)
    assert ("requirements: none, as PKG-INFO declares none" in found.found) is known


@pytest.mark.parametrize("folder", ["bench", "benchmark", "benchmarks", "scripts", "tools"])
def test_folder_of_benchmarks_is_no_module_of_the_project(tmp_path, folder):
    for name in ("app", folder):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "setup.py").touch()
    assert find_project(tmp_path).modules == ("app",)
