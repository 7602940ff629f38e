"""Projects made here that have an extension module of their own, and are built without a download."""

import shutil
from pathlib import Path

from gilscope.toolkit.evaluate.project.discovery import find_project

BACKEND = Path(__file__).with_name("backend.py")
SLOT = "#if PY_VERSION_HEX >= 0x030D0000\n    {Py_mod_gil, Py_MOD_GIL_NOT_USED},\n#endif\n"
SOURCE = """#include <Python.h>
static PyObject *cache;
static PyModuleDef_Slot slots[] = {
SLOT    {0, NULL}};
static PyModuleDef def = {PyModuleDef_HEAD_INIT, "_c", NULL, 0, NULL, slots};
PyMODINIT_FUNC PyInit__c(void) { return PyModuleDef_Init(&def); }
"""
OPTIONAL = "try:\n    from pkg import _c\nexcept ImportError:\n    _c = None\n"
TESTS = "import pkg\n\ndef test_it():\n    assert pkg.__file__\n"


def project(root, *, declared=False, source=None, optional=False, layout="", tests=TESTS, init=OPTIONAL):
    """Write a project whose package `pkg` has the extension module `pkg._c`, and return it.

    Args:
        root: Its folder.
        declared: Whether the module says that it does without the GIL.
        source: Its C code; None: some that can be compiled.
        optional: Whether the build goes on without it.
        layout: "" or "src".
        tests: The project's own tests; None: it has none.
        init: Of the package.
    """
    package = root / layout / "pkg"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text(init)
    package.joinpath("_c.c").write_text(SOURCE.replace("SLOT", SLOT * declared) if source is None else source)
    shutil.copy(BACKEND, root / "backend.py")
    folder = f"{layout}/" if layout else ""
    (root / "setup.py").write_text(
        f"from setuptools import Extension, setup\nsetup(ext_modules=[Extension('pkg._c', ['{folder}pkg/_c.c']"
        f"{', optional=True' * optional})])\n")
    (root / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'made'\nversion = '1.0'\ndependencies = []\n" + "# optional\n" * optional)
    if tests is not None:
        (root / "tests").mkdir()
        (root / "tests" / "test_it.py").write_text(tests)
    return find_project(root)
