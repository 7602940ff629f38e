#include <Python.h>

static PyObject *known;

static PyObject *
intern_intern(PyObject *self, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(known, key);
    if (found != NULL) {
        return Py_NewRef(found);
    }
    if (PyErr_Occurred() || PyDict_SetItem(known, key, key) < 0) {
        return NULL;
    }
    return Py_NewRef(key);
}

static int
intern_exec(PyObject *module)
{
    known = PyDict_New();
    return known == NULL ? -1 : 0;
}

static PyMethodDef intern_methods[] = {
    {"intern", intern_intern, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot intern_slots[] = {
    {Py_mod_exec, intern_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef intern_module = {
    PyModuleDef_HEAD_INIT, "_intern", NULL, 0, intern_methods, intern_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__intern(void)
{
    return PyModuleDef_Init(&intern_module);
}
