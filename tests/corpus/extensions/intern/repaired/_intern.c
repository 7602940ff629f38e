#include <Python.h>

static PyObject *known;

static PyObject *
intern_intern(PyObject *self, PyObject *key)
{
    PyObject *kept = NULL;
    if (PyDict_SetDefaultRef(known, key, key, &kept) < 0) {
        return NULL;
    }
    return kept;
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
