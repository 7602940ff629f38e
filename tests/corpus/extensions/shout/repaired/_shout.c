#include <Python.h>

static PyObject *
shout_shout(PyObject *self, PyObject *text)
{
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *out = sys ? PyObject_GetAttrString(sys, "stdout") : NULL;
    Py_XDECREF(sys);
    if (out == NULL) {
        return NULL;
    }
    PyObject *written = PyObject_CallMethod(out, "write", "O", text);
    Py_DECREF(out);
    return written;
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
