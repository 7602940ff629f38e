"""What sources of extension modules do that the GIL protects, each with its line; comments and strings do not count."""

from itertools import permutations

import pytest

from gilscope.toolkit.evaluate.project.extensions import c_source, c_tree
from gilscope.toolkit.evaluate.project.extensions.c_calls import CallGraph
from gilscope.toolkit.evaluate.project.extensions.c_macros import MacroTable
from gilscope.toolkit.evaluate.project.extensions.cython_source import remarks_of_cython, unlocked_code
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding
from gilscope.toolkit.evaluate.project.extensions.rust_source import remarks_of_rust
from gilscope.toolkit.evaluate.project.extensions.source_text import code_of_c, code_of_python, code_of_rust

pytestmark = pytest.mark.newest


def remarks_of_c(text, language="C"):
    pytest.importorskip("tree_sitter")
    return c_source.remarks_of_c({"a.c": (text, language)})["a.c"]


C = r"""
#include <Python.h>
/* PyDict_GetItem(a, b); static int no; */
// static int no; \
   no = 3; PyList_GetItem(a, 0);
static const char *text = "PyDict_GetItem(a, b) /* \" static int no;";
static PyObject *cache = NULL;
unsigned long seen = 0;
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
lookup(PyObject *self,
       PyObject *key)
{
    static int calls = 0;
    PyObject *local = PyDict_GetItem (cache, key);
    Py_ssize_t pos = 0;
    while (PyDict_Next(cache, &pos, &key, &local)) { char c = '"'; PyList_GET_ITEM(local, 0); }
    void *buffer = PyObject_Malloc(10);
    PyObject *out = PySys_GetObject("stdout");
    calls++; mine = 2; key = NULL; local = NULL;
    hits += 1; misses = hits; pair.a = 1; table[hits] = 3; callback = NULL; seen = calls;
    if (cache == NULL) cache = PyDict_New();
    return PyTuple_GetItem(local, 0);
}
#define LOOK(x) PyWeakref_GetObject(x)
#define Py_LIMITED_API 0x03090000
"""


def told(remarks):
    return [(each.line, each.concern, each.what) for each in sorted(remarks, key=lambda each: (each.line, each.what))]


def test_c():
    assert told(remarks_of_c(C)) == [
        (23, "borrowed reference", "PyDict_GetItem"),
        (25, "no lock", "PyDict_Next"), (25, "borrowed reference", "PyList_GET_ITEM"),
        (26, "allocation", "PyObject_Malloc"), (27, "borrowed reference", "PySys_GetObject"),
        (28, "state", "calls"), (29, "state", "callback"), (29, "state", "hits"), (29, "state", "misses"),
        (29, "state", "pair.a"), (29, "state", "seen"), (29, "state", "table[hits]"), (30, "lazy cache", "cache"),
        (33, "borrowed reference", "PyWeakref_GetObject"), (34, "interface", "Py_LIMITED_API")]


@pytest.mark.parametrize(("call", "instead"), [
    ("PyList_GetItem", "PyList_GetItemRef"), ("PyList_GET_ITEM", "PyList_GetItemRef"),
    ("PyDict_GetItem", "PyDict_GetItemRef"), ("PyDict_GetItemWithError", "PyDict_GetItemRef"),
    ("PyDict_GetItemString", "PyDict_GetItemStringRef"), ("PyDict_SetDefault", "PyDict_SetDefaultRef"),
    ("PyWeakref_GetObject", "PyWeakref_GetRef"), ("PyWeakref_GET_OBJECT", "PyWeakref_GetRef"),
    ("PyImport_AddModule", "PyImport_AddModuleRef"), ("PyCell_GET", "PyCell_Get"),
])
def test_borrowed_references_have_the_guides_replacement(call, instead):
    (remark,) = remarks_of_c(f"void f(A *a) {{ x = {call}(a);\ny = {instead}(a); z = My{call}(a); w = {call}2(a); }}")
    assert (remark.what, remark.instead, remark.line) == (call, instead, 1)


SAFE = """
static PyTypeObject Other;
size_t read_only(const A *a, int b);
static int own(A *a) { return a->b; }
static T *made(void) { T *self = PyObject_New(T, &Type); self->a = 1; return self; }
static PyObject *f(T *self) { %s }
static PyMethodDef m[] = {{"f", f, METH_NOARGS}};
"""


@pytest.mark.parametrize("code", [
    "T *x = made(); x->a = 1;", "T x; x.a = 1;", "T x; T *y = &x; y->a = 1;",
    "T *x = (T *)type->tp_alloc(type, 0); x->a = 1;",
    "PyObject *d = PyDict_New(); PyDict_GetItem(d, k);", "PyObject *d = PyList_New(1); PyList_SET_ITEM(d, 0, k);",
    "static char *names[] = {0}; PyArg_ParseTupleAndKeywords(a, k, s, names);", "int count = 0; count++;",
    "static _Atomic int count; count++;", "static _Thread_local int count; count++;", "extern int other; g(other);",
    "static const int table[3] = {1}; g(table[1]);",
    "T *x = (T *)PyObject_CallObject((PyObject *)OwnType, NULL); x->a = 1;",
    "T *x = (T *)PyObject_CallNoArgs((PyObject *)&Other); x->a = 1;",
    "char *p = malloc(9); *p = 1; p[1] = 2; memset(p, 0, 9); free(p);", "char p[9]; memcpy(p, self->name, 9);",
    "T *x = made(); memset(&x->a, 0, 9); PyMem_Free(x->b); PyBuffer_Release(&x->c);", "free(NULL);",
    "Py_buffer b; memcpy(b.buf, &self->a, 9); PyBuffer_Release(&b);",
    "char *p = PyBytes_AS_STRING(bytes); *p++ = 'a';", "PyObject **p = _PyObject_GetDictPtr(made()); *p = NULL;",
    "compress(self->output, &local);", "T x; compress(&x.output);", "T *x = made(); compress(&x->output);",
    "PyMutex_Lock(&self->lock); compress(&self->output); PyMutex_Unlock(&self->lock);", "read_only(&self->output, 1);",
    "PyUnicode_FromString(&self->name[0]);", "memcmp(&self->a, &self->b, 9);", "own(&self->a);", "g(&x, self->a);",
    "if (PyDict_GetItem(self->d, k) == NULL) return 1;", "x = PyDict_GetItem(self->d, k) != NULL;",
    "if (PyDict_GetItem(self->d, k)) return 1;", "if (!PyDict_GetItem(self->d, k) && 1) return 1;",
    "char *p = malloc(9); p = realloc(p, 10);", "T x[9]; x[1].a = 1;", "T *x = malloc(9); x[1].a = 1;"])
def test_what_is_no_shared_state(code):
    assert told(remarks_of_c(SAFE % code)) == []


@pytest.mark.parametrize("code", [
    "T *x = self->next; x->a = 1;", "T *x = made(); x = self; x->a = 1;", "T *x = g(); x->a = 1;",
    "T *x; if (self->a) x = self; else x = made(); x->a = 1;", "PyObject *d = self->d; PyDict_GetItem(d, k);",
    "PyObject *d = self->d; PyList_GET_ITEM(d, 0);", "static int count; count++;", "extern int other; other = 1;",
    "T *x = &self->part; x->a = 1;", "T *x = (T *)PyObject_CallObject(self->make, NULL); x->a = 1;",
    "memcpy(self->name, text, 9);", "memset(&self->a, 0, 9);", "PyMem_Free(self->name);", "free(self->name);",
    "x = PyMem_Realloc(self->name, 9);", "PyBuffer_Release(&self->view);", "char *p = self->name; *p = 1;",
    "char *p = self->name + 1; p[1] = 2;", "char *p = self->name, *q = p; memmove(q + 1, text, 9);",
    "char *p = self->name; free(p);", "long *p = &self->count; *p = 1;",
    "PyObject **p = _PyObject_GetDictPtr(self); *p = NULL;", "compress(self->context, &self->output);",
    "T *x = self->next; compress((void *)&x->output);", "PyObject_GetBuffer(object, &self->view, 0);",
    "if (PyDict_GetItem(self->d, k) == other) return 1;", "if ((x = PyDict_GetItem(self->d, k)) == NULL) return 1;",
    "char *p = self->name; p = PyMem_Realloc(p, 9);", "T *x = self->all; x[1].a = 1;"])
def test_what_others_may_have_is_shared(code):
    assert len(remarks_of_c(f"int other;\n{SAFE % code}")) == 1


def test_borrowed_reference_that_outlives_its_lock():
    code = """static PyObject *f(T *self, PyObject *key) {{
    Py_BEGIN_CRITICAL_SECTION(self);
    PyObject *found = PyDict_GetItem(self->d, key);
    {}
    Py_END_CRITICAL_SECTION();
    return found;
}}"""
    assert told(remarks_of_c(code.format(""))) == [(3, "borrowed reference", "PyDict_GetItem")]
    assert told(remarks_of_c(code.format("Py_XINCREF(found);"))) == []


@pytest.mark.parametrize(("slot", "concerns"), [
    ("{Py_mod_exec, set_up}", []), ("{Py_tp_call, set_up}", ["state"])])
def test_what_runs_while_the_module_is_imported_is_one_threads(slot, concerns):
    code = ("static PyObject *error;\nstatic int fill(void) { error = g(); return 0; }\n"
            f"static int set_up(PyObject *m) {{ return fill(); }}\nstatic PyModuleDef_Slot slots[] = {{{slot}}};\n")
    assert [each.concern for each in remarks_of_c(code)] == concerns


@pytest.mark.parametrize(("given", "concerns"), [("&mine", []), ("self->part", ["unlocked write"])])
def test_parameter_is_private_where_each_caller_gives_something_private(given, concerns):
    code = ("static void put(P *part) { part->a = 1; }\n"
            f"static PyObject *f(T *self) {{ P mine; put({given}); put(&mine); }}\nPyMethodDef m[] = {{{{f}}}};")
    assert [each.concern for each in remarks_of_c(code)] == concerns


MADE = """
static T *make(void) { T *made = PyMem_Malloc(sizeof(T)); return made; }
static T *remake(void) { T *made = make(); return made; }
static T *renew(T *given) { if (given) { return renew(NULL); } return remake(); }
static void put(T *part, int depth) { part->a = 1; if (depth) { put(part, depth - 1); } }
static void begin(T *part) { part->a = 0; put(part, 3); }
static void give(T *part) { part->a = 2; }
static PyObject *f(PyObject *self) { T *mine = renew(NULL); begin(mine); put(remake(), 1); give(self->part); }
PyMethodDef m[] = {{f}};
"""


def test_fixed_points_that_ask_for_each_other_are_the_same_in_each_order():
    pytest.importorskip("tree_sitter")
    names = ("private_parameters", "making", "exclusive", "bound", "imports_only")

    def answers(order):
        macros = MacroTable({"a.c": MADE})
        graph = CallGraph([c_tree.read_unit("a.c", MADE, "C", macros)], macros)
        for name in order:
            getattr(graph, name)
        return {name: getattr(graph, name) for name in order}

    first, *others = (answers(order) for order in permutations(names, len(names)))
    assert first["private_parameters"] == {("begin", 0), ("put", 0), ("put", 1), ("renew", 0)}
    assert all(each == first for each in others)


DATES = """
typedef struct { int year; } date_struct;
typedef struct { date_struct date; int ok; } stamp_struct;
typedef struct { PyObject_HEAD %s } Object;
typedef struct { void (*read)(char *, date_struct*); void (*stamp)(stamp_struct*); } Exported;
static void read(char *text, date_struct *d) { (*d).year = 1; }
static void stamp(stamp_struct *now) { (*now).date.year = 1; now->ok = 1; }
static Exported exported = {read, stamp};
static PyObject *f(PyObject *self) { stamp_struct mine; stamp(&mine); read("", &mine.date); }
"""


@pytest.mark.parametrize(("field", "lines"), [
    ("", []), ("date_struct when;", [6]), ("stamp_struct when;", [6, 7, 7]), ("stamp_struct *when;", [6, 7, 7])])
def test_structures_of_which_there_are_only_local_variables(field, lines):
    assert [each.line for each in remarks_of_c(DATES % field)] == lines


WALK = """
typedef int (*Visit)(Node *, void *);
static int walk(Node *root, Visit visit, void *extra) {{ return visit(root, extra) && walk(root->next, visit, extra); }}
static void put(Buffer *b, int n) {{ b->size += n; }}
static int save(Node *node, void *extra)
{{
#define self ((Buffer *)extra)
    Node *copy = (Node *)(self->data + self->size);
    self->count += 1;
    copy->value = node->value;
    put(self, 1);
#undef self
    return 1;
}}
{table}
static PyObject *dump(T *self) {{ Buffer mine; put(&mine, 0); return walk(self->root, save, {given}); }}
static PyMethodDef methods[] = {{{{"dump", dump}}}};
"""


@pytest.mark.parametrize(("given", "table", "lines"), [
    ("&mine", "", []),
    ("&self->buffer", "", [4, 9, 10]),
    ("&mine", "static Visit all[] = {save};", [4, 9, 10]),
    ("&mine", "static PyObject *other(T *self) { keep(save, self); }", [4, 9, 10]),
])
def test_context_of_a_callback_is_private_where_each_caller_gives_something_private(given, table, lines):
    assert [each.line for each in remarks_of_c(WALK.format(given=given, table=table))] == lines


@pytest.mark.parametrize(("code", "line"), [
    ("int x;\nPyMODINIT_FUNC PyInit_a(void)\n{\n}", 2), ("\nPYBIND11_MODULE(a, m) {}", 2),
    ("#define INIT(name) PyMODINIT_FUNC PyInit_##name(void)\nINIT(a) {}", 1),
    ("#ifndef PyMODINIT_FUNC\n#define PyMODINIT_FUNC void\n#endif", 0), ("PyMODINIT_FUNC PyInit_a(void);", 0),
    ("PyMODINIT_FUNC PyInit_a(void);\nPyMODINIT_FUNC\nPyInit_a(void)\n{\n}", 2)])
def test_line_that_defines_a_module_is_no_prototype_of_it(code, line):
    assert c_source.module_line(code) == line


def test_module_state():
    code = "PyObject *f(PyObject *m) { State *s = PyModule_GetState(m);\ns->calls++; return g(s->error); }"
    assert told(remarks_of_c(code)) == [(2, "module state", "s->calls")]


def test_cpp():
    code = ('static py::dict cache;\nstatic std::map<std::string, int> counts;\nauto s = R"x(static int no;)x";\n'
            "namespace deep { PyObject *inside = nullptr;\nvoid f(int a) { counts[a] = 1; inside = g();\n"
            "for (auto each : cache) {} } }\nint f() { static int once = g(); return once; }\n")
    assert told(remarks_of_c(code, "C++")) == [
        (5, "state", "counts[a]"), (5, "state", "inside"), (6, "no lock", "for (... : cache)")]


@pytest.mark.parametrize("head", ["if (self->next)", "for (i = 0; i < self->size; i++)", "while (self->next)",
                                  "switch (self->size)"])
def test_statement_whose_condition_ends_the_line_is_read_with_its_function(head):
    code = ("static PyObject *f(T *self) {\n    int i;\n    if (self->last)\n        self->last = 0;\n    else\n"
            f"        self->last = 1;\n    {head}\n        self->next = 0;\n    self->size = 1;\n}}\n"
            'static PyMethodDef m[] = {{"f", f}};\n')
    assert [each.line for each in remarks_of_c(code) if each.unguarded] == [4, 6, 8, 9]


LOST = """static PyObject *f(T *self) {
    START int x; }}} )
    if (self->next) {
        self->next = 0;
    }
    self->size = 1;
}
static int g(void) { return 1; }
"""


@pytest.mark.parametrize(("comment", "lines"), [("", [3]), ("/* race: ok it is generated */", [])])
def test_function_that_the_parser_does_not_understand_is_said_to_be_unread(comment, lines):
    code = LOST.replace("if (self->next) {", f"if (self->next) {{ {comment}")
    assert [each.line for each in remarks_of_c(code) if each.concern == "not read"] == lines


def test_c_without_a_parser_is_not_read(monkeypatch):
    monkeypatch.setattr(c_tree, "parser", lambda language: None)
    (remark,) = c_source.remarks_of_c({"a.c": ("int f;", "C")})["a.c"]
    assert (remark.concern, "gilscope[extensions]" in remark.instead) == ("not read", True)


def test_cython():
    code = ('# cdef int no\n"""\ncdef int no\n"""\ncdef int hits = 0\ncdef dict cache\ncdef int f(int a):\n'
            "    cdef int local = 1\n    global hits\n    return PyDict_GetItem(a, b) # PyList_GetItem(a)\n"
            "cdef class A:\n    cdef int x\ncdef extern from 'a.h':\n    int g()\ncdef const int fixed = 3\n")
    assert told(remarks_of_cython(code)) == [
        (10, "borrowed reference", "PyDict_GetItem")]   # what no function stores anew is no state
    assert told(remarks_of_cython(code.replace("return", "hits += 1; return"))) == [
        (10, "state", "hits"), (10, "borrowed reference", "PyDict_GetItem")][::-1]


def test_rust():
    code = ('// static mut NO: i32 = 0;\nstatic mut COUNT: i32 = 0;\nconst S: &str = r#"static mut NO"#;\n'
            "static CELL: GILOnceCell<i32> = GILOnceCell::new();\nstatic FINE: AtomicU32 = AtomicU32::new(0);\n"
            "/* unsafe impl Sync */ unsafe impl Sync for Thing {}\n#[pyclass(unsendable)]\nstruct Thing<'a>(&'a str);\n"
            "fn f() { let c = '\"'; unsafe { ffi::PyList_GetItem(a, 0) }; }\n")
    assert told(remarks_of_rust(code)) == [
        (2, "state", "static mut COUNT"), (4, "state", "static CELL: GILOnceCell"), (6, "state", "unsafe impl Sync"),
        (7, "state", "pyclass(unsendable)"), (9, "borrowed reference", "PyList_GetItem")]


@pytest.mark.parametrize(("code", "concern"), [
    ("cdef unsigned int MASK = 3\ndef f(): return MASK & 1\n", None), ("cdef readonly bint on = True\n", None),
    ("cdef uint8_t MASK\nMASK = 3\n", None), ("cdef public int mask = 3\n", "state"),
    ("cdef int mask = 3\ndef f():\n    mask = 4\n", None), ("cdef const int mask = 3\ndef f():\n    g(&mask)\n", None),
    ("cdef int mask = 3\ndef f():\n    global mask\n    mask = 4\n", "state"),
    ("cdef int a = 1, b = 2\ndef f():\n    global b\n    b += 1\n", "state"),
    ("cdef int mask = 3\ndef f():\n    set_it(&mask)\n", "state"),
    ("cdef int table[4]\n", None), ("cdef int table[4]\ndef f():\n    table[0] = 1\n", "state"),
    ("cdef int table[4]\ndef f():\n    cdef int table[4]\n    table[0] = 1\n", None),
    ("cdef int table[4]\ncdef cython.pymutex m\ndef f():\n    with m:\n        table[0] = 1\n", None),
    ("cdef int *place\ndef f():\n    place[0] = 1\n", "state"),
    ("cdef Point at\ndef f():\n    at.x = 1\n", "state"),
    ("cdef dict known = {}\ndef f():\n    known[1] = 1\n", None),   # a dict locks itself
    ("cdef object thing = None\ndef f():\n    global thing\n    if thing is None:\n        thing = g()\n",
     "lazy cache"),
])
def test_c_variable_of_a_cython_module_counts_where_a_function_writes_it(code, concern):
    assert [each.concern for each in remarks_of_cython(code)] == [concern] * (concern is not None)


POINTERS = """
cdef void raise_it(State *state, int more) noexcept nogil:
    state.count += more
cdef class Holder:
    cdef State state
    {decorator}
    def add(self):
        raise_it(&self.state, 1)
def alone():
    cdef State mine
    raise_it(&mine, 1)
"""


@pytest.mark.parametrize(("decorator", "lines"), [("", [3]), ("@cython.critical_section", [])])
def test_writes_of_cython_through_a_pointer(decorator, lines):
    assert [each.line for each in remarks_of_cython(POINTERS.format(decorator=decorator))] == lines


WRAPPER = """
cdef class Wrapper:
    cdef void _set(self, call_t call):
        self.call = call
cdef Wrapper wrap(call_t call{given}):
    cdef Wrapper made = {made}
    made._set(call)
    return made
"""


@pytest.mark.parametrize(("made", "given", "lines"), [
    ("Wrapper()", "", []), ("Wrapper.__new__(Wrapper)", "", []), ("known[call]", "", [4]), ("find()", "", [4])])
def test_cython_method_that_is_called_on_new_objects_alone(made, given, lines):
    assert [each.line for each in remarks_of_cython(WRAPPER.format(made=made, given=given))] == lines


DERIVED = """
cdef class Base:
    cdef _init(self, thing):
        self.thing = thing
cdef class Derived(Base):
    def __init__(self, thing):
        self._init(thing)
        self.other = thing
    def again(self):
        self.other = None
cdef public class Last(Base) [object Last, type LastType]:
    def again(self):
        self.other = None
"""


def test_methods_of_a_derived_extension_type_are_methods():
    assert [each.line for each in remarks_of_cython(DERIVED)] == [10, 13]


PACKER = """
cdef class Packer:
    cdef int size
    cdef object out
    def __cinit__(self, int size):
        self.size = size
    def grow(self, int more,
             step=1):
        if self.size == more: self.note(more, size=2)
        self.size += step  # HERE
        with nogil, clock(): self.out.length = 0  # HERE
        self.out[0], last = 1, 2  # HERE
        fill(&self.size)  # HERE
        self.size = 0  # race: ok nobody has two of them
    @cython.critical_section
    def pack(self, thing):
        self.out = thing
        self._inner(thing)
    def flush(self):
        with self._lock:
            self.out = None
        with cython.critical_section(self), other:
            self.out = None
            self._inner(None)
        self.out = 3  # HERE
    cdef int _inner(self, thing) except -1:
        self.size = 2
        for each in thing: self._each(each)
    cdef _each(self, thing):
        self._inner(thing)
        self.size = 3
    cdef _outer(self, thing):
        self.size = 2  # HERE
    cpdef again(self):
        self._outer(1)
cdef int free(self):
    self.size = 3
class Plain:
    def f(self): self.size = 4
"""


def test_writes_of_extension_types_without_a_lock():
    lines = [number for number, line in enumerate(PACKER.split("\n"), 1) if "HERE" in line]
    found = list(remarks_of_cython(PACKER))
    assert [each.line for each in found] == lines
    assert {each.concern for each in found} == {"unlocked write"}
    assert [each.what for each in found][:4] == ["self.size", "self.out.length", "self.out[0]", "self.size"]


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


LIST = r"""
#include <Python.h>
#define ENTER(self) Py_BEGIN_CRITICAL_SECTION(self)
static void unlink_node(LRU *self, Node *node) {
    self->first = node->next;
    node->prev = NULL;
}
static void relink(LRU *self) { self->last = NULL; }
static PyObject *LRU_get(LRU *self, PyObject *key) {
    Py_BEGIN_CRITICAL_SECTION(self);
    self->last = NULL; relink(self);
    while (PyDict_Next(self->dict, &pos, &key, &value)) {}
    Py_END_CRITICAL_SECTION();
    PyDict_Next(self->dict, &pos, &key, &value);
    if (self->first == NULL || self->size >= 3 || self->hits != 2) return NULL;
    self->hits++; ++self->misses;
    self->size += 1; ((LRU *)self)->table[2] = 3;
    Py_CLEAR(self->callback);
    unlink_node(self, self->first);
    self->size = 0;   /* race: ok one thread has it */
}
static PyObject *LRU_set(LRU *self) {
    PyMutex_Lock(&self->lock);
    if (!self->first) { PyMutex_Unlock(&self->lock); return NULL; }
    self->first = NULL;
    PyMutex_Unlock(&self->lock);
    ENTER(self)
    Node *node = PyObject_New(Node, &NodeType);
    Py_END_CRITICAL_SECTION();
    node->prev = NULL;
    Node *other = self->first;
    other->prev = NULL;
}
static int LRU_init(LRU *self) { self->size = 1; }
static int LRU_tp_clear(LRU *self) { Py_CLEAR(self->dict); }
static PyObject *LRU_clear(LRU *self) { self->first = NULL; }
static PyMethodDef methods[] = {{"clear", (PyCFunction)LRU_clear, METH_NOARGS}, {"get", LRU_get}, {"set", LRU_set}};
"""


def test_writes_to_what_an_object_keeps_are_places_where_no_lock_is_held():
    found = told(each for each in remarks_of_c(LIST) if each.concern in {"unlocked write", "no lock"})
    assert found == [
        (5, "unlocked write", "self->first"), (6, "unlocked write", "node->prev"), (14, "no lock", "PyDict_Next"),
        (16, "unlocked write", "self->hits"), (16, "unlocked write", "self->misses"),
        (17, "unlocked write", "((LRU *)self)->table[2]"), (17, "unlocked write", "self->size"),
        (18, "unlocked write", "self->callback"), (32, "unlocked write", "other->prev"),
        (36, "unlocked write", "self->first")]


def test_writes_in_cpp_hold_a_guard_to_the_end_of_its_block():
    code = ("namespace n {\nclass A {\n  int a, b;\n  void f() {\n"
            "    { std::lock_guard<std::mutex> held(m); this->a = 1; }\n"
            '    this->b = 2;\n  }\n};\n}\nPYBIND11_MODULE(x, m) { py::class_<n::A>(m, "A"); }\n')
    assert told(remarks_of_c(code, "C++")) == [(6, "unlocked write", "this->b")]


@pytest.mark.parametrize(("rest", "places"), [
    ("", []), ("PyType_Slot slots[] = {{Py_mp_subscript, put}};", [1]), ("T t = {.tp_call = (ternaryfunc)put};", [1]),
    ("#define PUT(x) put(x)\n", [1]), ("void g(A *a) { put(a); }", [1]), ("void g(A *a) { register_it(put); }", [1]),
    ('#define A_CLEAR {"clear", (PyCFunction)a_clear, METH_NOARGS}\n', [2]),
    ("PyTypeObject T = {put_no, a_clear};", [])])
def test_function_is_guarded_only_where_each_of_its_calls_is(rest, places):
    code = ("static void put(A *self) { self->x = 1; }\nstatic int a_clear(A *self) { self->x = 0; return 0; }\n"
            f"void f(A *a) {{ PyMutex_Lock(&m); put(a); PyMutex_Unlock(&m); }}\n{rest}")
    assert [each.line for each in remarks_of_c(code) if each.concern == "unlocked write"] == places


def lines_with_mark(code, mark="HERE"):
    return [number for number, line in enumerate(code.split("\n"), 1) if mark in line]


def lines_of_c(code):
    return sorted({each.line for each in remarks_of_c(code) if each.unguarded})


RELEASED = """
PyObject *get(Cache *self, PyObject *key, int way)
{
    if (way > 2) {
        PyMutex_Lock(&self->lock);
        if (way == 3) {
            self->hits++;
            PyMutex_Unlock(&self->lock);
            self->hits++;  // HERE
            return NULL;
        }
        self->hits++;
        PyMutex_Unlock(&self->lock);
        return key;
    } else if (way > 1) {
        PyMutex_Lock(&self->lock);
        if (self->misses) {
            PyMutex_Unlock(&self->lock);
            return NULL;
        } else {
            self->hits--;
            PyMutex_Unlock(&self->lock);
            return key;
        }
    }
    self->hits++;  // HERE
    return key;
}
"""


def test_lock_is_held_up_to_the_release_on_each_way():
    assert lines_of_c(RELEASED) == lines_with_mark(RELEASED)


OUTLIVES = """
PyObject *get(Cache *self, PyObject *key)
{
    PyMutex_Lock(&self->lock);
    PyObject *found = PyDict_GetItem(self->map, key);
    if (self->closed) {
        PyMutex_Unlock(&self->lock);
        return %s;
    }
    found = Py_XNewRef(found);
    PyMutex_Unlock(&self->lock);
    return found;
}
"""


@pytest.mark.parametrize(("returned", "lines"), [("NULL", []), ("found", [5])])
def test_borrowed_reference_that_one_way_takes_out_of_the_lock(returned, lines):
    assert lines_of_c(OUTLIVES % returned) == lines


GIVEN_AWAY = """
static void add(Table *table, Node *node) { Entry *entry = malloc(sizeof(Entry)); entry->node = node; }
Node *lookup(Table *table, int key)
{
    Node *node = malloc(sizeof(Node));
    node->key = key;
    %s
    node->value = 1;
    return node;
}
"""


@pytest.mark.parametrize(("between", "lines"), [
    ("add(table, node);", [8]), ("add(&mine, node);", []), ("table->first = node;", [7, 8]),
    ("mine.first = node;", []), ("add(table, node); node = malloc(sizeof(Node));", []),
    ("if (key) { add(table, node); return node; }", [])])
def test_what_is_new_is_private_until_it_is_stored_where_others_find_it(between, lines):
    code = GIVEN_AWAY.replace("Node *node = malloc", "Table mine;   Node *node = malloc", 1)
    assert lines_of_c(code % between) == lines


@pytest.mark.parametrize(("code", "lines"), [
    ("int f(int n) { struct { int a; } stack[4], *top; top = stack + n; top->a = 1; return top->a; }", []),
    ("int f(Stack *s, int n) { struct Step *top; top = s->steps + n; top->a = 1; return top->a; }", [1]),
    ("static void fill(P *p) { if (!p) p = malloc(sizeof(P)); p->a = 1; }\nvoid f(void) { P p; fill(&p); fill(NULL); }",
     []),
    ("static void fill(P *p) { p->a = 1; }\nvoid f(Q *q) { fill(q->p); fill(NULL); }", [1]),
    ("static time_t began;\nvoid f(void) { time(&began); }", [2]),
    ("void f(void) { time_t began; time(&began); }", []),
    ("void f(void) { PyThreadState *t = PyInterpreterState_ThreadHead(PyInterpreterState_Head()); g(t); }", [1]),
])
def test_own_memory_and_what_the_system_fills(code, lines):
    assert lines_of_c(code) == lines


FROZEN = """
static int fill(Node *node, PyObject *dict, Bits *prefix)
{{
    if (node->symbol)
        return PyDict_SetItem(dict, node->symbol, (PyObject *) {put});
    Bits *longer = new_bits(prefix->size + 1);
    return fill(node->next, dict, longer);
}}
static PyObject *all(Tree *self)
{{
    PyObject *dict, *key, *value;
    Py_ssize_t place = 0;
    Bits *empty = new_bits(0);
    dict = {made};
    if (dict == NULL || fill(self->root, dict, empty) < 0)
        return NULL;
    {before}
    while (PyDict_Next(dict, &place, &key, &value)) {{
        Bits *bits = (Bits *) value;
        bits->frozen = 1;
    }}
    return dict;
}}
static PyMethodDef methods[] = {{{{"all", all}}}};
"""


@pytest.mark.parametrize(("made", "put", "before", "is_place"), [
    ("PyDict_New()", "prefix", "", False),
    ("PyDict_New()", "node->bits", "", True),                # the tree still has it
    ("self->known", "prefix", "", True),                     # others may have put theirs into it
    ("PyDict_New()", "prefix", "self->known = dict;", True),
    ("PyDict_New()", "prefix", "PyDict_Update(dict, self->known);", True),
    ("PyDict_New()", "prefix", 'PyDict_SetItemString(dict, "self", self);', True),
    ("PyDict_New()", "prefix", "PyObject *same = dict; PyDict_SetItem(same, self, self);", True),
])
def test_what_is_taken_from_a_new_container_is_as_private_as_what_was_put_into_it(made, put, before, is_place):
    code = FROZEN.format(made=made, put=put, before=before)
    line = code[:code.index("bits->frozen")].count("\n") + 1
    assert (line in [each.line for each in remarks_of_c(code) if each.concern == "unlocked write"]) is is_place


@pytest.mark.parametrize(("given", "is_place"), [("new_bits(1)", False), ("self->bits", True)])
def test_item_of_a_new_list_is_as_private_as_what_was_put_into_it(given, is_place):
    code = (f"PyObject *f(T *self) {{ PyObject *list = PyList_New(1); PyList_SET_ITEM(list, 0, {given});\n"
            "Bits *bits = (Bits *)PyList_GET_ITEM(list, 0); bits->frozen = 1; return list; }")
    assert (2 in lines_of_c(code)) is is_place


ALIASES = """
cdef class Node:
    cdef int size
    cdef Node next
    def change(self, Node other):
        cdef Cell* cell = find(self.cells, 1)
        cdef Cell* own = <Cell*>malloc(sizeof(Cell))
        cdef Cell mine
        cdef Cell *also = &mine, *again
        cdef Node head = self.next, made = Node()
        cdef Cell* unset
        cell.key = 1  # HERE
        own.key = 1
        also.key = 1
        head.size += 1  # HERE
        made.size = 2
        other.size = 3  # HERE
        again = &self.cells[1]  # HERE
        again[0].key = 2  # HERE
        deref(cell).key = 1  # HERE
        with self.lock:
            cell.key = 3
    def one(self): self.size = 1  # HERE
cdef void fill(Node node):
    node.size = 1
def build():
    cdef Node node = Node()
    fill(node)
    return node
"""


def test_writes_of_cython_through_local_variables():
    assert [each.line for each in remarks_of_cython(ALIASES)] == lines_with_mark(ALIASES)


CONTAINERS = """
ctypedef unordered_map[int, int] Times
cdef class Profiler:
    cdef unordered_map[int, Times] times
    cdef vector[int] order
    cdef dict names, fixed
    cdef set active
    cdef object local
    kinds = {}
    def __init__(self):
        self.names = {}
        self.fixed = {}
        self.local = threading.local()
        for each in self.names: pass
    def note(self, int line):
        cdef Times* mine = &(self.times[line])  # HERE
        deref(mine)[line] = 1  # HERE
        self.order.push_back(line)  # HERE
        self.order.size()
        self.names[line] = 1
        self.local.line = line
        self.active.add(line)
    def lazily(self, line):
        if line not in self.kinds:
            self.kinds[line] = []  # HERE
        last_erase(&(self.times[line]), line)  # HERE
    def told(self):
        names = self.names
        for name, each in names.items(): show(name)  # HERE
        for name in self.fixed: show(name)
        for name in list(self.names): show(name)
        for each in self.active:  # HERE
            show(each)
        first, *_ = self.kinds.values()  # HERE
        walk(self.active)
        return <dict>self.times  # HERE
    @cython.critical_section
    def locked(self):
        for each in self.active: show(each)
cdef void walk(set active):
    for each in active: show(each)  # HERE
cdef inline void last_erase(Times* m, int key) noexcept:
    deref(m).erase(key)  # HERE
"""


def test_containers_that_attributes_hold():
    assert sorted({each.line for each in remarks_of_cython(CONTAINERS)}) == lines_with_mark(CONTAINERS)


OWN = """
cdef class Join:
    def __cinit__(self, left, key):
        self.d = groupby(left)
        self.key = key
        self.seen = {}
    def get(self, key):
        self.seen.clear()
        PyDict_GetItem(self.d, key)
        PyDict_GetItem(self.key, key)  # HERE
        PyDict_GetItem(self.seen, key)  # HERE
cdef object core(dict d, key): PyDict_GetItem(d, key)
cdef object other(dict d, key): PyDict_GetItem(d, key)  # HERE
def count(seq, dict known):
    cdef dict d = {}
    PyDict_GetItem(d, 1)
    PyDict_GetItem(known, 1)  # HERE
    core(d, 1)
    other(known, 1)
    other(d, 1)
"""


def test_borrowed_references_from_containers_of_ones_own_in_cython():
    assert [each.line for each in remarks_of_cython(OWN)] == lines_with_mark(OWN)


def test_functions_in_declarations_of_cython_are_read(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "setup.py").write_text(
        "from setuptools import Extension, setup\nsetup(ext_modules=[Extension('pkg.a', ['pkg/a.pyx'])])\n")
    (tmp_path / "pkg" / "a.pyx").write_text(
        "from .help cimport raise_it\nfrom pkg.plain cimport x\ncdef class A:\n    cdef State state\n"
        "    def f(self): raise_it(&self.state)\n")
    (tmp_path / "pkg" / "help.pxd").write_text(
        "cdef struct State:\n    int count\ncdef inline void raise_it(State* state) noexcept:\n    state.count += 1\n")
    (tmp_path / "pkg" / "plain.pxd").write_text("cdef int x\n")
    (tmp_path / "pkg" / "a.pxd").write_text(
        "cdef class A:\n    cdef inline void g(self):\n        self.state.count = 1\n")
    found = find_extensions(tmp_path)
    assert [(each.file, each.defines, [remark.line for remark in each.remarks]) for each in found.sources] == [
        ("pkg/a.pyx", True, []), ("pkg/a.pxd", False, [3]), ("pkg/help.pxd", False, [4])]


@pytest.mark.parametrize(("code", "lines"), [
    ("void f(Buf *b, char *from) { memcpy(b->bytes + 3, from, 2); }", [1]),
    ("void f(Buf *b) { memset((void *)(b->bytes), 0, 8); }", [1]),
    ("void f(char *from) { char mine[8]; memcpy(mine, from, 8); }", []),
    ("void f(char *from) { Buf b; memcpy(b.bytes, from, 8); }", []),
    ("PyObject *f(void) { Bits *b = (Bits *) PyObject_CallObject((PyObject *) bits_type, NULL); b->n = 0; return b; }",
     []),
    ("PyObject *f(PyObject *g) { Bits *b = (Bits *) PyObject_CallObject(g, NULL); b->n = 0; return b; }", [1]),
])
def test_memory_that_is_copied_to(code, lines):
    assert lines_of_c(code) == lines


FREEING = """
void node_destroy(Node *node) { node->next = NULL; free(node); }
void node_clear(Node *node) { node->count = 0; }
void list_destroy(List *list) { node_destroy(list->first); list->first = NULL; }
"""


@pytest.mark.parametrize(("method", "lines"), [("__dealloc__", []), ("close", [2, 3, 4])])
def test_what_cython_frees_while_others_may_have_it(method, lines):
    pytest.importorskip("tree_sitter")
    cython = f"cdef class A:\n    def {method}(self):\n        list_destroy(self.list)\n        node_clear(self.node)\n"
    found = c_source.remarks_of_c({"a.c": (FREEING, "C")}, elsewhere=unlocked_code(cython))["a.c"]
    assert [each.line for each in found] == lines


@pytest.mark.parametrize("grown", ["files.append('pkg/a.pyx')", "files += ['pkg/a.pyx']",
                                   "if CYTHON: files.append('pkg/a.pyx')\nelse: files.append('pkg/a.c')"])
def test_sources_that_a_script_adds_to_a_list_are_read(tmp_path, grown):
    (tmp_path / "pkg" / "deps").mkdir(parents=True)
    for name, text in {"a.pyx": "cdef class A:\n    def f(self): self.x = 1\n", "b.c": "", "deps/c.c": "",
                       "a.c": "/* Generated by Cython 3.1 */"}.items():
        (tmp_path / "pkg" / name).write_text(text)
    (tmp_path / "setup.py").write_text(
        f"from setuptools import Extension, setup\nfiles = ['pkg/b.c']\n{grown}\nfiles.append('pkg/deps/c.c')\n"
        "setup(ext_modules=[Extension('pkg.a', files)])\n")
    found = find_extensions(tmp_path)
    assert {each.file for each in found.sources} == {"pkg/a.pyx", "pkg/b.c"}
    assert [each.line for source in found.sources for each in source.remarks] == [2]


@pytest.mark.parametrize(("slot", "lines"), [
    ('PyMethodDef methods[] = {{"delete", map_delete}};', [1]), ("PyType_Slot s[] = {{Py_tp_del, map_delete}};", []),
    ("void map_drop(T *t) { map_delete(t); }", [1])])
def test_function_that_deletes_from_an_object_is_exclusive_only_as_a_slot(slot, lines):
    code = f"static PyObject *map_delete(T *self) {{ self->size--; }}\n{slot}\n"
    assert [each.line for each in remarks_of_c(code)] == lines


CLEARED = """static int t_clear(T *self) {{ Py_CLEAR(self->cache); return 0; }}
static void t_dealloc(T *self) {{
    t_clear(self);
    self->count = 0;
    {body}
}}
{more}
{table}
"""
NAMED = "PyTypeObject Type = {.tp_clear = (inquiry)t_clear, .tp_dealloc = t_dealloc};"
BY_PLACE = """static PyTypeObject Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    "a.T", sizeof(T), 0,
    t_dealloc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, 0, t_traverse,
    t_clear, /* tp_clear */
};"""


@pytest.mark.parametrize("table", [NAMED, BY_PLACE, BY_PLACE.replace("VarObject_HEAD_INIT(NULL, 0)",
                                                                     "Object_HEAD_INIT(NULL) 0,")])
@pytest.mark.parametrize(("more", "lines"), [
    ("", []),
    ('static PyObject *changed(T *self) { t_clear(self); }\nPyMethodDef m[] = {{"changed", changed}};', [1]),
    ("static PyObject *changed(T *self) { PyMutex_Lock(&m); t_clear(self); PyMutex_Unlock(&m); }", []),
    ("static PyObject *copy(T *self) { T *new = PyObject_New(T, &Type); t_clear(new); }", [])])
def test_tp_clear_is_exclusive_unless_a_method_calls_it(table, more, lines):
    assert [each.line for each in remarks_of_c(CLEARED.format(body="", more=more, table=table))] == lines


@pytest.mark.parametrize(("body", "lines"), [
    ("self->owner->count--; Py_XDECREF(self->owner);", [5]), ("self->part->count--; free(self->part);", []),
    ("PyMutex_Lock(&m); self->owner->count--; PyMutex_Unlock(&m); Py_XDECREF(self->owner);", [])])
def test_tp_dealloc_shares_the_objects_that_it_only_has_a_reference_to(body, lines):
    assert [each.line for each in remarks_of_c(CLEARED.format(body=body, more="", table=NAMED))] == lines


PACKED = """cdef extern from {quoted}:
    ctypedef struct buffer_t:
        int length
    void put(buffer_t *buffer)
cdef class Packer:
    cdef buffer_t buffer
    {decorator}
    def pack(self):
        {held}
            put(&self.buffer)
"""
PACK = """#include "inner.h"
typedef struct { int length; } buffer_t;
static inline void put(buffer_t *buffer) { buffer->length = 1; inner(buffer); }
"""


@pytest.mark.parametrize(("quoted", "files"), [
    ('"pack.h"', {"pack.h": [3], "inner.h": [1]}), ("'pack.h'", {"pack.h": [3], "inner.h": [1]}), ("<pack.h>", {})])
def test_headers_of_the_project_that_cython_takes_functions_from_are_read(tmp_path, quoted, files):
    pytest.importorskip("tree_sitter")
    (tmp_path / "setup.py").write_text(SETUP.format("a.pyx"))
    (tmp_path / "pack.h").write_text(PACK)
    (tmp_path / "inner.h").write_text("static void inner(buffer_t *buffer) { buffer->length = 2; }\n")
    (tmp_path / "a.pyx").write_text(PACKED.format(quoted=quoted, decorator="", held="if True:"))
    assert {each.file: [remark.line for remark in each.remarks] for each in find_extensions(tmp_path).sources
            if each.language == "C"} == files


@pytest.mark.parametrize(("decorator", "held", "lines"), [
    ("", "if True:", [3]), ("", "with cython.critical_section(self):", []),
    ("@cython.critical_section", "if True:", [])])
def test_header_is_safe_where_cython_calls_it_with_a_lock_alone(tmp_path, decorator, held, lines):
    pytest.importorskip("tree_sitter")
    (tmp_path / "setup.py").write_text(SETUP.format("a.pyx"))
    (tmp_path / "pack.h").write_text(PACK)
    (tmp_path / "a.pyx").write_text(PACKED.format(quoted='"pack.h"', decorator=decorator, held=held))
    assert {remark.line for each in find_extensions(tmp_path).sources if each.file == "pack.h"
            for remark in each.remarks if remark.unguarded} == {*lines}


KEYWORDS = """static int update(T *self, PyObject *kwds) {{ while (PyDict_Next(kwds, &at, &key, &value)) {{}} }}
static PyObject *call(T *self, PyObject *args, PyObject *kwargs) {{ update(self, kwargs); }}
{}
PyMethodDef methods[] = {{{{"call", call, METH_VARARGS | METH_KEYWORDS}}}};
"""


@pytest.mark.parametrize(("more", "lines"), [
    ("", []),
    ("int g(T *s, PyObject *kw) {{ h(s, kw); update(s, kw); }} int h(T *s, PyObject *kw) {{ g(s, kw); }}", []),
    ("void g(T *self) {{ update(self, NULL); update(self, PyDict_New()); }}", []),
    ('PyObject *g(T *self, PyObject *other) {{ update(self, other); }}\nPyMethodDef m[] = {{"g", g}};', [1]),
    ("void g(T *self) {{ update(self, self->dict); }}", [1])])
def test_keywords_are_the_interpreters_unless_a_caller_gives_its_own_dictionary(more, lines):
    assert [each.line for each in remarks_of_c(KEYWORDS.format(more.replace("{{", "{").replace("}}", "}")))] == lines


BUFFER = """cdef class Unpacker:
    cdef char *buf
    def __dealloc__(self): PyMem_Free(self.buf)
    {decorator}
    cpdef add(self, int size):
        cdef:
            char* buf = self.buf
            char* new_buf = <char*>PyMem_Malloc(size)
        memcpy(new_buf, buf, size)
        memmove(buf + 1, buf, size)
        PyMem_Free(<void *>buf)
        free(self.buf)
"""


@pytest.mark.parametrize(("decorator", "lines"), [("", [10, 11, 12]), ("@cython.critical_section", [])])
def test_memory_that_an_attribute_points_to_is_written(decorator, lines):
    assert [each.line for each in remarks_of_cython(BUFFER.format(decorator=decorator))] == lines
