"""What sources of extension modules do that the GIL protects, each with its line; comments and strings do not count."""

import pytest

from gilscope.toolkit.evaluate.project.extensions.facts import Binding
from gilscope.toolkit.evaluate.project.extensions.finding import find_extensions
from gilscope.toolkit.evaluate.project.extensions.scan.c import remarks_of_c
from gilscope.toolkit.evaluate.project.extensions.scan.cython import remarks_of_cython
from gilscope.toolkit.evaluate.project.extensions.scan.lexing import code_of_c, code_of_python, code_of_rust
from gilscope.toolkit.evaluate.project.extensions.scan.rust import remarks_of_rust

pytestmark = pytest.mark.newest

C = r"""
#include <Python.h>
/* PyDict_GetItem(a, b); static int no; */
// static int no; \
   PyList_GetItem(a, 0);
static const char *text = "PyDict_GetItem(a, b) /* \" static int no;";
static PyObject *cache = NULL;
PyObject *ErrorObject;
static int hits, misses;
static struct { int a; PyObject *b; } pair;
static long table[256];
static int (*callback)(PyObject *);
static const int constant = 3;
static char *kwlist[] = {"a", NULL};
static PyMethodDef methods[] = {{NULL}};
static _Thread_local int mine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PyObject *
lookup(PyObject *self, PyObject *key)
{
    static int calls = 0;
    PyObject *local = PyDict_GetItem (cache, key);
    Py_ssize_t pos = 0;
    while (PyDict_Next(cache, &pos, &key, &local)) { char c = '"'; PyList_GET_ITEM(local, 0); }
    void *buffer = PyObject_Malloc(10);
    return PyTuple_GetItem(local, 0);
}
#define LOOK(x) PyWeakref_GetObject(x)
#define Py_LIMITED_API 0x03090000
"""


def told(remarks):
    return [(each.line, each.concern, each.what) for each in sorted(remarks, key=lambda each: (each.line, each.what))]


def test_c():
    assert told(remarks_of_c(C)) == [
        (7, "state", "static PyObject *cache"), (8, "state", "PyObject *ErrorObject"),
        (9, "state", "static int hits, misses"), (10, "state", "static struct pair"),
        (11, "state", "static long table"), (12, "state", "static int (*callback"),
        (21, "state", "static int calls"), (22, "borrowed reference", "PyDict_GetItem"),
        (24, "no lock", "PyDict_Next"), (24, "borrowed reference", "PyList_GET_ITEM"),
        (25, "allocation", "PyObject_Malloc"), (28, "borrowed reference", "PyWeakref_GetObject"),
        (29, "interface", "Py_LIMITED_API")]


@pytest.mark.parametrize(("call", "instead"), [
    ("PyList_GetItem", "PyList_GetItemRef"), ("PyList_GET_ITEM", "PyList_GetItemRef"),
    ("PyDict_GetItem", "PyDict_GetItemRef"), ("PyDict_GetItemWithError", "PyDict_GetItemRef"),
    ("PyDict_GetItemString", "PyDict_GetItemStringRef"), ("PyDict_SetDefault", "PyDict_SetDefaultRef"),
    ("PyWeakref_GetObject", "PyWeakref_GetRef"), ("PyWeakref_GET_OBJECT", "PyWeakref_GetRef"),
    ("PyImport_AddModule", "PyImport_AddModuleRef"), ("PyCell_GET", "PyCell_Get"),
])
def test_borrowed_references_have_the_guides_replacement(call, instead):
    (remark,) = remarks_of_c(f"x = {call}(a);\ny = {instead}(a); z = My{call}(a); w = {call}2(a);")
    assert (remark.what, remark.instead, remark.line) == (call, instead, 1)


@pytest.mark.parametrize("code", [
    "static inline int f(void) { return 1; }", "static PyTypeObject T = {0};", "static std::atomic<int> count{0};",
    "static std::mutex lock;", "const static int a = 1;", "int f(static int);", "PyObject *f(void);",
    "namespace n { void f() { PyObject *a = g(); } }", "struct s { PyObject *a; };", "extern PyObject *other;",
    "static PyObject *f(PyObject *self);", "static void (*const table[])(void) = {f};",
])
def test_what_is_no_shared_state(code):
    assert list(remarks_of_c(code)) == []


def test_cpp():
    code = ('static py::dict cache;\nstatic std::map<std::string, int> counts;\nauto s = R"x(static int no;)x";\n'
            "namespace deep { PyObject *inside = nullptr; }\n")
    assert told(remarks_of_c(code)) == [
        (1, "state", "static py::dict cache"), (2, "state", "static std::map<> counts"),
        (4, "state", "PyObject *inside")]


def test_cython():
    code = ('# cdef int no\n"""\ncdef int no\n"""\ncdef int hits = 0\ncdef dict cache\ncdef int f(int a):\n'
            "    cdef int local = 1\n    global hits\n    return PyDict_GetItem(a, b) # PyList_GetItem(a)\n"
            "cdef class A:\n    cdef int x\ncdef extern from 'a.h':\n    int g()\ncdef const int fixed = 3\n")
    assert told(remarks_of_cython(code)) == [
        (5, "state", "cdef int hits"), (6, "state", "cdef dict cache"), (9, "state", "global hits"),
        (10, "borrowed reference", "PyDict_GetItem")]


def test_rust():
    code = ('// static mut NO: i32 = 0;\nstatic mut COUNT: i32 = 0;\nconst S: &str = r#"static mut NO"#;\n'
            "static CELL: GILOnceCell<i32> = GILOnceCell::new();\nstatic FINE: AtomicU32 = AtomicU32::new(0);\n"
            "/* unsafe impl Sync */ unsafe impl Sync for Thing {}\n#[pyclass(unsendable)]\nstruct Thing<'a>(&'a str);\n"
            "fn f() { let c = '\"'; unsafe { ffi::PyList_GetItem(a, 0) }; }\n")
    assert told(remarks_of_rust(code)) == [
        (2, "state", "static mut COUNT"), (4, "state", "static CELL: GILOnceCell"), (6, "state", "unsafe impl Sync"),
        (7, "state", "pyclass(unsendable)"), (9, "borrowed reference", "PyList_GetItem")]


@pytest.mark.parametrize(("strip", "text"), [
    (code_of_c, 'a /* x\ny */ b // c\n"d\\\ne" f'), (code_of_python, 'a = """x\ny""" # c\nb'),
    (code_of_rust, 'a /* x\n */ r#"x\n"#\n// y\nb'), (code_of_c, "/* never\nended"),
    (code_of_python, "'''never\nended"),
])
def test_lines_stay_where_they_are(strip, text):
    assert strip(text).count("\n") == text.count("\n")
    assert not {"x", "y", "c", "d", "never", "ended"} & set(strip(text).split())


def declared(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return [(each.binding, each.line, each.declared, each.declare) for each in find_extensions(tmp_path).sources
            if each.defines]


SETUP = "from setuptools import setup, Extension\nsetup(ext_modules=[Extension('a', ['{}'])])\n"
CMAKE = {"pyproject.toml": "[build-system]\nbuild-backend = 'scikit_build_core.build'\n"}
CRATE = {"pyproject.toml": "[build-system]\nbuild-backend = 'maturin'\n"}


@pytest.mark.parametrize(("files", "binding", "said", "how"), [
    ({"setup.py": SETUP.format("a.c"), "a.c": "\nPyMODINIT_FUNC PyInit_a(void) { return PyModuleDef_Init(&d); }"},
     Binding.C_API, False, "{Py_mod_gil, Py_MOD_GIL_NOT_USED}"),
    ({"setup.py": SETUP.format("a.c"), "a.c": "\nPyMODINIT_FUNC PyInit_a(void) { /* Py_MOD_GIL_NOT_USED */ "
                                              "return PyModule_Create(&d); }"},
     Binding.C_API, False, "PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)"),
    ({"setup.py": SETUP.format("a.c"), "a.c": "\nPyMODINIT_FUNC PyInit_a(void) { m = PyModule_Create(&d); "
                                              "PyUnstable_Module_SetGIL(m, Py_MOD_GIL_NOT_USED); }"},
     Binding.C_API, True, "PyUnstable_Module_SetGIL"),
    ({"setup.py": SETUP.format("a.pyx"), "a.pyx": "# a\n# cython: language_level=3, freethreading_compatible = True\n"},
     Binding.CYTHON, True, "# cython: freethreading_compatible = True"),
    ({"setup.py": SETUP.format("a.pyx"), "a.pyx": "x = 1\n# cython: freethreading_compatible = True\n"},
     Binding.CYTHON, False, "# cython: freethreading_compatible = True"),
    ({"setup.py": SETUP.format("a.pyx") + "cythonize(d={'freethreading_compatible': True})\n", "a.pyx": "x = 1\n"},
     Binding.CYTHON, True, "# cython"),
    (CMAKE | {"CMakeLists.txt": "pybind11_add_module(a a.cpp)", "a.cpp": "\nPYBIND11_MODULE(a, m) {}"},
     Binding.PYBIND11, False, "py::mod_gil_not_used()"),
    (CMAKE | {"CMakeLists.txt": "pybind11_add_module(a a.cpp)",
              "a.cpp": "\nPYBIND11_MODULE(a, m, py::mod_gil_not_used()) {}"},
     Binding.PYBIND11, True, "py::mod_gil_not_used()"),
    (CMAKE | {"CMakeLists.txt": "nanobind_add_module(a a.cpp)", "a.cpp": "\nNB_MODULE(a, m) {}"},
     Binding.NANOBIND, False, "FREE_THREADED in nanobind_add_module"),
    (CMAKE | {"CMakeLists.txt": "nanobind_add_module(a FREE_THREADED a.cpp)", "a.cpp": "\nNB_MODULE(a, m) {}"},
     Binding.NANOBIND, True, "FREE_THREADED"),
])
def test_declaration_is_found_and_said_in_the_bindings_own_words(tmp_path, files, binding, said, how):
    ((found, line, declares, declare),) = declared(tmp_path, files)
    assert (found, declares) == (binding, said)
    assert how in declare
    assert line == (1 if binding is Binding.CYTHON else 2)


@pytest.mark.parametrize(("version", "attribute", "said"), [
    ("0.27", "", False), ("0.27.1", "(gil_used = false)", True), ("0.28", "", True),
    ("0.28", "(gil_used = true)", False), ("1", "", True)])
def test_pyo3_declares_by_itself_since_0_28(tmp_path, version, attribute, said):
    (tmp_path / "src").mkdir()
    files = CRATE | {"Cargo.toml": f'[package]\nname = "a"\n[dependencies]\npyo3 = "{version}"\n',
                     "src/lib.rs": f"// a\n#[pymodule{attribute}]\nfn a() {{}}\n"}
    ((binding, line, declares, declare),) = declared(tmp_path, files)
    assert (binding, line, declares) == (Binding.PYO3, 2, said)
    assert "#[pymodule(gil_used = false)]" in declare
