#include <Python.h>

static PyObject *
shout_shout(PyObject *self, PyObject *text)
{
    PyObject *out = PySys_GetObject("stdout");
    if (out == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "no stdout");
        return NULL;
    }
    return PyObject_CallMethod(out, "write", "O", text);
}

static PyMethodDef shout_methods[] = {
    {"shout", shout_shout, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot shout_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef shout_module = {
    PyModuleDef_HEAD_INIT, "_shout", NULL, 0, shout_methods, shout_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__shout(void)
{
    return PyModuleDef_Init(&shout_module);
}
