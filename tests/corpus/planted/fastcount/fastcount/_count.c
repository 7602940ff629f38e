#include <Python.h>

/* Counters of the process, by number: the GIL guards them. */
static long counters[64];

static PyObject *
bump(PyObject *self, PyObject *arg)
{
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    n &= 63;
    long now = counters[n];
    now = now + 1;
    counters[n] = now;
    return PyLong_FromLong(now);
}

static PyObject *
value(PyObject *self, PyObject *arg)
{
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(counters[n & 63]);
}

static PyMethodDef methods[] = {
    {"bump", bump, METH_O, "Adds one to a counter."},
    {"value", value, METH_O, "What a counter says."},
    {NULL, NULL, 0, NULL}
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}
};

static struct PyModuleDef def = {
    PyModuleDef_HEAD_INIT, "_count", NULL, 0, methods, slots, NULL, NULL, NULL
};

PyMODINIT_FUNC
PyInit__count(void)
{
    return PyModuleDef_Init(&def);
}
