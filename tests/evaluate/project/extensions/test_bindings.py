"""One small project for each kind of build and binding, built with its tools of today: declarations do what is said.

Each is built on a build without a GIL, as it is and with what `how_to_declare` says; its file tells what came of it.
"""

import shutil

import pytest

from gilscope.toolkit.builds.environment import create, installer
from gilscope.toolkit.builds.package_installer import run_installer
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.extensions.building import InstalledProject, own_builds
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding
from gilscope.toolkit.evaluate.project.installing import install_project
from tests.evaluate.places import COMPILER, version
from tests.evaluate.project.extensions.made import SLOT, SOURCE

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.newest,
              pytest.mark.skipif(COMPILER is None, reason="no C compiler")]

PROJECT = '[project]\nname = "made"\nversion = "1.0"\n'


def build(backend, *needs):
    return f"[build-system]\nrequires = {list(needs)!r}\nbuild-backend = '{backend}'\n{PROJECT}"


SETUPTOOLS = build("setuptools.build_meta", "setuptools")
MESON = "project('made', 'c', version: '1.0')\npy = import('python').find_installation(pure: false)\n"
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(made LANGUAGES {0})
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
{1}
install(TARGETS _c LIBRARY DESTINATION .)
"""
SINGLE = """#include <Python.h>
static PyModuleDef def = {PyModuleDef_HEAD_INIT, "_c", NULL, -1, NULL};
PyMODINIT_FUNC PyInit__c(void) {
    PyObject *module = PyModule_Create(&def);
    SAID
    return module;
}
"""
SET_GIL = "\n#ifdef Py_GIL_DISABLED\n    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);\n#endif\n"
# Kind: files, where SAID stands; what is put there to declare it; the binding that is found.
CASES = {
    "setuptools": ({"pyproject.toml": SETUPTOOLS, "_c.c": SOURCE.replace("SLOT", "SAID"),
                    "setup.py": "from setuptools import Extension, setup\n"
                                "setup(py_modules=[], ext_modules=[Extension('_c', ['_c.c'], optional=True)])\n"},
                   SLOT, Binding.C_API),
    "single-phase": ({"pyproject.toml": SETUPTOOLS + "[tool.setuptools]\npy-modules = []\n"
                      "ext-modules = [{name = '_c', sources = ['_c.c']}]\n", "_c.c": SINGLE}, SET_GIL, Binding.C_API),
    "meson-python": ({"pyproject.toml": build("mesonpy", "meson-python"), "_c.c": SOURCE.replace("SLOT", "SAID"),
                      "meson.build": MESON + "py.extension_module('_c', '_c.c', install: true)\n"},
                     SLOT, Binding.C_API),
    "scikit-build-core": ({"pyproject.toml": build("scikit_build_core.build", "scikit-build-core"),
                           "_c.c": SOURCE.replace("SLOT", "SAID"),
                           "CMakeLists.txt": CMAKE.format("C", "Python_add_library(_c MODULE _c.c WITH_SOABI)")},
                          SLOT, Binding.C_API),
    "Cython": ({"pyproject.toml": build("setuptools.build_meta", "setuptools", "cython"),
                "_c.pyx": "SAID\ncdef int hits = 0\n", "setup.py": "from Cython.Build import cythonize\n"
                "from setuptools import setup\nsetup(py_modules=[], ext_modules=cythonize('_c.pyx'))\n"},
               "# cython: freethreading_compatible = True", Binding.CYTHON),
    "pybind11": ({"pyproject.toml": build("scikit_build_core.build", "scikit-build-core", "pybind11"),
                  "_c.cpp": "#include <pybind11/pybind11.h>\nPYBIND11_MODULE(_c, mSAID) {}\n",
                  "CMakeLists.txt": CMAKE.format("CXX", "find_package(pybind11 CONFIG REQUIRED)\n"
                                                        "pybind11_add_module(_c _c.cpp)")},
                 ", pybind11::mod_gil_not_used()", Binding.PYBIND11),
    "nanobind": ({"pyproject.toml": build("scikit_build_core.build", "scikit-build-core", "nanobind"),
                  "_c.cpp": "#include <nanobind/nanobind.h>\nNB_MODULE(_c, m) {}\n",
                  "CMakeLists.txt": CMAKE.format("CXX", "find_package(nanobind CONFIG REQUIRED)\n"
                                                        "nanobind_add_module(_c SAID _c.cpp)")},
                 "FREE_THREADED", Binding.NANOBIND),
    "maturin": ({"pyproject.toml": build("maturin", "maturin"),
                 "Cargo.toml": '[package]\nname = "made"\nversion = "1.0.0"\nedition = "2021"\n[lib]\nname = "_c"\n'
                               'crate-type = ["cdylib"]\n[dependencies]\npyo3 = "0.26"\n',
                 "src/lib.rs": "use pyo3::prelude::*;\n#[pymoduleSAID]\n"
                               "fn _c(_m: &Bound<'_, PyModule>) -> PyResult<()> { Ok(()) }\n"},
                "(gil_used = false)", Binding.PYO3),
}
# What says it by itself: kind, files, binding.
BY_THEMSELVES = {
    "CFFI": ({"pyproject.toml": build("setuptools.build_meta", "setuptools", "cffi>=2") + "dependencies = ['cffi']\n",
              "setup.py": "from setuptools import setup\nsetup(py_modules=[], cffi_modules=['build_ffi.py:ffi'])\n",
              "build_ffi.py": "from cffi import FFI\nffi = FFI()\nffi.cdef('int abs(int);')\n"
                              "ffi.set_source('_c', '#include <stdlib.h>')\n"}, Binding.CFFI),
    "mypyc": ({"pyproject.toml": build("setuptools.build_meta", "setuptools", "mypy"),
               "setup.py": "from mypyc.build import mypycify\nfrom setuptools import setup\n"
                           "setup(py_modules=['made'], ext_modules=mypycify(['made.py']))\n",
               "made.py": "def double(number: int) -> int:\n    return number * 2\n"}, Binding.MYPYC),
}


@pytest.fixture
def built(pair, tmp_path):
    """Give a function that builds a project on a build without a GIL."""
    def go(files):
        root = tmp_path / "project"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (build, _), environment, target = pair, tmp_path / "env", tmp_path / "target"
        if version(build) < (3, 14):
            pytest.skip("the tools of today are for 3.14t and later")
        create(environment, build)
        made = find_project(root)
        assert not made.requirements or not run_installer([*installer(environment), *made.requirements])
        place = InstalledProject(build=build, python=environment / "bin" / "python", target=target,
                                 installation=install_project(made, environment, target))
        own = find_extensions(root)
        return own, own_builds(own, {build.label: place}, {})[build.label]

    return go


@pytest.mark.parametrize("said", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_declaration_of_each_binding(built, case, said):
    if case == "maturin" and not shutil.which("cargo"):
        pytest.skip("no cargo")
    files, declaration, binding = CASES[case]
    own, made = built({name: text.replace("SAID", declaration * said) for name, text in files.items()})
    assert made.finding is not None, made.output
    ((name, gil),) = [(each.name, each.gil) for each in made.finding.seen.extensions]
    assert (name.rpartition(".")[2], gil) == ("_c", "not-used" if said else "used")   # maturin makes a package of it
    assert [(each.name, each.binding) for each in own.modules] == [("_c", binding)]
    assert [each.declared for each in own.sources if each.defines] == [said]
    assert made.unbuilt == ()


@pytest.mark.parametrize("case", BY_THEMSELVES)
def test_binding_that_declares_by_itself(built, case):
    files, binding = BY_THEMSELVES[case]
    own, made = built(files)
    assert made.finding is not None, made.output
    assert {each.gil for each in made.finding.seen.extensions} == {"not-used"}
    assert {each.binding for each in own.modules} == {binding}
    assert made.unbuilt == ()
