"""What the search makes of C behind macros: functions that they define, constants, attributes, and local structures."""

import pytest

from gilscope.toolkit.evaluate.project.extensions import c_source
from gilscope.toolkit.evaluate.project.extensions.c_macros import MacroTable
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.source_text import code_of_c

pytestmark = pytest.mark.newest

TABLE = '\nPyMethodDef methods[] = {{"f", f}, {"g", g}};\n'


def lines(text, **others):
    """Return the lines of the unguarded places in a.c."""
    pytest.importorskip("tree_sitter")
    found = c_source.remarks_of_c({"a.c": (text, "C"), **{name.replace("_", "."): (code, "C")
                                                         for name, code in others.items()}})
    return sorted({each.line for each in found["a.c"] if each.unguarded})


DEFINED = """#define UPDATE(type, put)             \\
static int update_##type(type *self)  \\
{                                     \\
    {acquire}                         \\
    self->seen += 1; /* how often     \\
                        it was */     \\
    put(self->state, #type);          \\
    {release}                         \\
    return 0;                         \\
}
static void put(State *state, char *name) { state->length = 1; }
UPDATE(Small, put)
UPDATE(Large, put)
T slots = {update_Small, update_Large};
"""


def defined(acquire, release):
    return DEFINED.replace("{acquire}", acquire).replace("{release}", release)


def test_functions_that_a_macro_defines_are_read_on_the_macros_lines():
    assert lines(defined("", "")) == [5, 11]
    assert lines(defined("PyMutex_Lock(&self->lock);", "PyMutex_Unlock(&self->lock);")) == []


def test_macro_of_another_file_is_read_where_it_is_used():
    head, _, rest = DEFINED.partition("static void put(State")
    code = f"static void put(State{rest}"
    assert lines(code, b_h=head.replace("{acquire}", "").replace("{release}", "")) == [1, 2, 3]


def test_macro_that_defines_no_function_is_not_expanded():
    code = "#define LOCKED(m) do { if (m) { PyMutex_Lock(m); } } while (0)\n#define EACH(x) for (x = 0; x < 9; x++) {\n"
    assert MacroTable({"a.c": code}).defining == set()


@pytest.mark.parametrize(("condition", "places"), [
    ("LOCKS", []), ("HAS_LOCK(self)", []), ("1", []), ("!NONE", []), ("(LOCKS)", []),
    ("NONE", [9]), ("0", [9]), ("!LOCKS", [9]),
    ("self->lock", [9]),
    ("EITHER", [9]), ("!EITHER", [9]), ("LOCKS && self->lock", [9]), ("call(1)", [9]), ("UNKNOWN", [9])])
def test_branches_that_a_constant_closes_are_not_read(condition, places):
    code = ("#define LOCKS 1\n#define HAS_LOCK(o) (1)\n#define NONE 0x0\n#define EITHER 0\n#define EITHER 1\n"
            "static int f(T *self) {\n"
            f"    if ({condition}) {{\n        PyMutex_Lock(&m); self->a = 1; PyMutex_Unlock(&m); }}\n"
            f"    else self->a = 2;\n}}{TABLE}")
    assert lines(code) == places


@pytest.mark.parametrize("macro", ["", "__attribute__((noescape))", "__attribute__((format(printf, 1, 2)))"])
def test_attributes_hide_no_parameter(macro):
    code = (f"#define NOESCAPE {macro}\n#define PUBLIC static __inline__ __attribute__((unused))\n"
            "PUBLIC Code\nput (NOESCAPE State* state, NOESCAPE const void* input) {\n    state->length = 1;\n}\n"
            "static PyObject *f(T *self) { State *own = malloc(9); put(own, 0); REST }")
    assert lines(code.replace("REST", "")) == []
    assert lines(code.replace("REST", "put(self->state, 0);") + TABLE) == [5]


def test_call_after_a_macro_without_semicolon_is_a_call():
    code = ("static void put(T *self) {\n    self->a = 1;\n}\nstatic PyObject *f(T *self) {\n"
            "    Py_BEGIN_ALLOW_THREADS\n    PyMutex_Lock(&self->lock);\n    put(self);\n"
            f"    PyMutex_Unlock(&self->lock);\n    Py_END_ALLOW_THREADS\n}}{TABLE}")
    assert lines(code) == []
    assert lines(code.replace("PyMutex_Lock(&self->lock);", "put(self);")) == [2]


@pytest.mark.parametrize("head", ["static inline void", "void", "PUBLIC void"])
def test_function_of_a_header_counts_if_something_calls_it(head, tmp_path):
    pytest.importorskip("tree_sitter")
    (tmp_path / "setup.py").write_text("from setuptools import Extension, setup\n"
                                       "setup(ext_modules=[Extension('a', ['a.c']), Extension('b', ['b.pyx'])])\n")
    (tmp_path / "a.c").write_text(
        '#include <Python.h>\n#include "own.h"\nPyMODINIT_FUNC PyInit_a(void) { return 0; }\n')
    (tmp_path / "own.h").write_text(f"{head} put(State *state) {{ state->length = 1; }}\n")
    for code, places in (("x = 1\n", []),
                         ("cdef extern from 'own.h':\n    void put(State *)\ndef f(): put(NULL)\n", [1])):
        (tmp_path / "b.pyx").write_text(code)
        found = next(each for each in find_extensions(tmp_path).sources if each.file == "own.h")
        assert [each.line for each in found.remarks] == places


LOCAL = """typedef struct tag_Context { PyObject *value; struct Other *other; int index; } Context;
static int next(PyObject *self, Context *at) {
    at->index++; at->value = self;
    return 1;
}
static int (*step)(PyObject *, Context *at) = next;
static PyObject *f(T *self) { Context at; memset(&at, 0, sizeof(Context)); step((PyObject *)self, &at); return 0; }
PyMethodDef methods[] = {{"f", f}};
"""


def test_structure_that_is_always_a_local_variable_is_its_threads_own():
    assert lines(LOCAL) == []
    assert lines(LOCAL.replace("tag_Context", "").replace("sizeof(Context)", "sizeof at")) == []


@pytest.mark.parametrize(("old", "new"), [
    ("Context at; memset(&at, 0, sizeof(Context))", "Context *at = malloc(sizeof(Context))"),
    ("Context at;", "static Context at;"),
    ("static PyObject *f(", "Context kept;\nstatic PyObject *f("),
    ("static PyObject *f(", "typedef struct { int a; Context own; } Holder;\nstatic PyObject *f("),
    ("static PyObject *f(", "static Context *found(void);\nstatic PyObject *f("),
    ("    return 1;", "    run((Context *)self);"),
    ("    return 1;", "    void *made = malloc(sizeof(Context)); step(self, made);"),
])
def test_structure_that_others_may_have_is_not(old, new):
    assert old in LOCAL
    assert 3 in lines(LOCAL.replace(old, new))


def test_what_a_local_structure_points_to_may_be_anybodys():
    assert lines(LOCAL.replace("at->index++;", "at->other->index++;")) == [3]
    assert lines(LOCAL.replace("    return 1;", "    PyDict_Next(at->value, 0, 0, 0);")) == [4]


def test_macro_goes_on_after_a_comment_over_several_lines():
    code = code_of_c("#define A(x) a; /* one \\\n two */ \\\n b(x)\nint c;\n")
    assert [line.rstrip() for line in code.split("\n")] == ["#define A(x) a; \\", " \\", " b(x)", "int c;", ""]


COUNTED = """#define COUNT(n) ((n)->count)
#define INCREASE(n) (COUNT(n)++)
#define FILL(field) \\
    if (field == NULL) { field = PyDict_New(); \\
        if (field == NULL) return NULL; }
#define STEP(at, by) at += by
static PyObject *f(T *self, PyObject *args) {
    int at = 0;
    T own;
    {acquire}
    INCREASE(self->root);
    FILL(self->
         cache)
    self->seen = 1;
    {release}
    INCREASE(&own); STEP(at, 2);
    return 0;
}
"""


def counted(acquire, release):
    return COUNTED.replace("{acquire}", acquire).replace("{release}", release) + TABLE


def test_macro_that_writes_is_read_where_it_is_used():
    assert lines(counted("", "")) == [11, 12, 14]
    assert lines(counted("PyMutex_Lock(&self->lock);", "PyMutex_Unlock(&self->lock);")) == []


def test_macro_that_writes_under_its_own_lock_is_no_place():
    code = f"#define SET(o, to) do {{ BODY }} while (0)\nstatic PyObject *f(T *self) {{\nSET(self, 1);\n}}{TABLE}"
    assert lines(code.replace("BODY", "PyMutex_Lock(&(o)->m); (o)->v = to; PyMutex_Unlock(&(o)->m);")) == []
    assert lines(code.replace("BODY", "(o)->v = to;")) == [3]


BOTH = """#define CHANGE(name, inplace)               \\
static PyObject *name(Bits *self, int by)   \\
{                                           \\
    Bits *res = inplace ? self : new_bits(self->size);  \\
    if (!inplace)                           \\
        return freeze(res);                 \\
    return res;                             \\
}
static PyObject *freeze(Bits *self) { self->frozen = 1; return self; }
CHANGE(add, 0)
CHANGE(iadd, 1)
T slots = {add, iadd};
"""


def test_value_that_a_constant_condition_chooses_is_the_only_one():
    assert lines(BOTH) == []
    assert lines(BOTH.replace("!inplace)", "inplace)")) == [9]
    assert lines(BOTH.replace("inplace ? self", "by ? self")) == [9]
