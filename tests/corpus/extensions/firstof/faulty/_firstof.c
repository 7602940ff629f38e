#include <Python.h>

static PyObject *
firstof_describe(PyObject *self, PyObject *list)
{
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "a list, please");
        return NULL;
    }
    PyObject *first = PyList_GetItem(list, 0);
    if (first == NULL) {
        return NULL;
    }
    return PyObject_Repr(first);
}

static PyMethodDef firstof_methods[] = {
    {"describe", firstof_describe, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot firstof_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef firstof_module = {
    PyModuleDef_HEAD_INIT, "_firstof", NULL, 0, firstof_methods, firstof_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__firstof(void)
{
    return PyModuleDef_Init(&firstof_module);
}
