#include <Python.h>

typedef struct {
    PyObject_HEAD
    PyObject *text;
} TextObject;

static PyObject *
Text_text(PyObject *op, PyObject *unused)
{
    TextObject *self = (TextObject *)op;
    PyObject *text;
    Py_BEGIN_CRITICAL_SECTION(op);
    if (self->text == NULL) {
        self->text = PyUnicode_FromFormat("text of %p", op);
    }
    text = Py_XNewRef(self->text);
    Py_END_CRITICAL_SECTION();
    return text;
}

static PyMethodDef Text_methods[] = {
    {"text", Text_text, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static void
Text_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_XDECREF(((TextObject *)op)->text);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot Text_slots[] = {
    {Py_tp_methods, Text_methods},
    {Py_tp_dealloc, Text_dealloc},
    {0, NULL}};

static PyType_Spec Text_spec = {
    "_lazytext.Text", sizeof(TextObject), 0, Py_TPFLAGS_DEFAULT, Text_slots};

static int
lazytext_exec(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Text_spec);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed;
}

static PyMethodDef lazytext_methods[] = {
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot lazytext_slots[] = {
    {Py_mod_exec, lazytext_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef lazytext_module = {
    PyModuleDef_HEAD_INIT, "_lazytext", NULL, 0, lazytext_methods, lazytext_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__lazytext(void)
{
    return PyModuleDef_Init(&lazytext_module);
}
