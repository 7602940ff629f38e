#include <Python.h>
#include "loglevel.h"

unsigned long level = 0;

static PyObject *
loglevel_set(PyObject *self, PyObject *value)
{
    unsigned long given = PyLong_AsUnsignedLong(value);
    if (given == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    level = given;
    Py_RETURN_NONE;
}

static PyObject *
loglevel_get(PyObject *self, PyObject *unused)
{
    return PyLong_FromUnsignedLong(level);
}

static PyMethodDef loglevel_methods[] = {
    {"set_level", loglevel_set, METH_O, NULL},
    {"level", loglevel_get, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot loglevel_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef loglevel_module = {
    PyModuleDef_HEAD_INIT, "_loglevel", NULL, 0, loglevel_methods, loglevel_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__loglevel(void)
{
    return PyModuleDef_Init(&loglevel_module);
}
