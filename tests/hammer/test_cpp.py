"""A module of C++ with pybind11, compiled for the build without a GIL: its calls are found, its fault is shown."""

import shutil
from importlib.util import find_spec

import pytest

from gilscope.toolkit.hammer.hammering import HammerRequest, hammer
from gilscope.toolkit.hammer.offered_calls import find_calls
from tests.benchmarks.hammer_power import compile_module, compiled
from tests.conformance.builds import run_child
from tests.patience import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.builds("free"),
              pytest.mark.skipif(find_spec("pybind11") is None, reason="pybind11 is not installed"),
              pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler of C++")]

BOX = """
#include <pybind11/pybind11.h>
namespace py = pybind11;
struct Box { int inside = 0; void put(int number) { inside = number; } static int zero() { return 0; } };
struct Lid : Box {};
PYBIND11_MODULE(_box, m, py::mod_gil_not_used()) {
    py::class_<Box>(m, "Box").def(py::init<>()).def("put", &Box::put).def_static("zero", &Box::zero);
    py::class_<Lid, Box>(m, "Lid").def(py::init<>());
    m.def_submodule("inside").def("twice", [](int number) { return 2 * number; });
}
"""
LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
import _box
from gilscope.toolkit.hammer.targets import DefinedCallables, ReachedFunctions

compiled = DefinedCallables(["_box"])
print(compiled.public)
print([*map(compiled.name, (_box.Box, _box.Box().put, _box.Lid().put, _box.Box.zero, _box.inside.twice))])
with ReachedFunctions(compiled) as reached:
    _box.Box.zero()
    _box.Lid().put(3)
    _box.inside.twice(2)
print(sorted(reached.names))
"""


def test_functions_methods_and_submodules_have_the_names_of_their_source(python, tmp_path):
    (tmp_path / "_box.cpp").write_text(BOX)
    compile_module(tmp_path / "_box.cpp", python, tmp_path)
    done = run_child(python, "-c", LOOK, str(tmp_path), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "['Box', 'Box.put', 'Box.zero', 'Lid', 'twice']", "['Box', 'Box.put', 'Box.put', 'Box.zero', 'twice']",
        "['Box.put', 'Box.zero', 'Lid', 'twice']"]


def test_fault_of_cpp_is_shown_by_its_names_and_its_repair_is_not_blamed(python, tmp_path):
    (tmp_path / "faulty").mkdir()
    (tmp_path / "repaired").mkdir()
    request = {"threads": 4, **compiled("numbering", "faulty", python, tmp_path / "faulty")}
    for seconds in (10.0, 60.0, 300.0):     # chance decides how soon a fault is shown
        report = hammer(python, HammerRequest(seconds=seconds, limit=2 * seconds, **request))
        if report.failures:
            break
    assert (report.called, report.left_out) == (("number_of",), ())
    assert {each.functions for each in report.failures} == {("number_of",)}
    assert {each.kind for each in report.failures} <= {"crash", "hang", "results-differ"}
    request = {"threads": 4, **compiled("numbering", "repaired", python, tmp_path / "repaired")}
    report = hammer(python, HammerRequest(seconds=5.0, limit=10.0, **request))
    assert (report.called, report.failures) == (("number_of",), ())


# Its type states no module, as those do whose name in C has no dot.
NAMELESS = """
#include <Python.h>
static PyObject *put(PyObject *self, PyObject *number) { return Py_NewRef(number); }
static PyMethodDef methods[] = {{"put", put, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"Box", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
static int fill(PyObject *module) { return PyModule_AddType(module, (PyTypeObject *)PyType_FromSpec(&spec)); }
static PyModuleDef_Slot parts[] = {{Py_mod_exec, fill}, {Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_nameless", NULL, 0, NULL, parts, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__nameless(void) { return PyModuleDef_Init(&module); }
"""


def test_type_of_c_that_states_no_module_is_offered_with_its_calls(python, tmp_path):
    (tmp_path / "_nameless.c").write_text(NAMELESS)
    compile_module(tmp_path / "_nameless.c", python, tmp_path)
    (tmp_path / "nameless.py").write_text('"""\n>>> box = Box()\n>>> box.put(3)\n3\n"""\nfrom _nameless import Box\n')
    found = find_calls(python, "nameless", [tmp_path], [])
    assert {each.name: each.shown for each in found.calls} == {"Box": "Box()", "Box.put": "box.put(3)"}
