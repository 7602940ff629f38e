#include <Python.h>

typedef struct {
    PyObject_HEAD
    Py_ssize_t steps;
} WalkerObject;

static PyObject *
Walker_step(PyObject *op, PyObject *unused)
{
    WalkerObject *self = (WalkerObject *)op;
    self->steps++;
    Py_RETURN_NONE;
}

static PyObject *
Walker_steps(PyObject *op, PyObject *unused)
{
    Py_ssize_t steps;
    steps = ((WalkerObject *)op)->steps;
    return PyLong_FromSsize_t(steps);
}

static PyMethodDef Walker_methods[] = {
    {"step", Walker_step, METH_NOARGS, NULL},
    {"steps", Walker_steps, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static void
Walker_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot Walker_slots[] = {
    {Py_tp_methods, Walker_methods},
    {Py_tp_dealloc, Walker_dealloc},
    {0, NULL}};

static PyType_Spec Walker_spec = {
    "_walker.Walker", sizeof(WalkerObject), 0, Py_TPFLAGS_DEFAULT, Walker_slots};

static int
walker_exec(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Walker_spec);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed;
}

static PyMethodDef walker_methods[] = {
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot walker_slots[] = {
    {Py_mod_exec, walker_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef walker_module = {
    PyModuleDef_HEAD_INIT, "_walker", NULL, 0, walker_methods, walker_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__walker(void)
{
    return PyModuleDef_Init(&walker_module);
}
