#include <Python.h>

static PyObject *
mix(PyObject *self, PyObject *arg)
{
    long n = PyLong_AsLong(arg);
    unsigned long v = 17;
    if (n == -1 && PyErr_Occurred())
        return NULL;
    for (long i = 0; i < n; i++)
        v = (v * 31 + i) % 1000003;
    return PyLong_FromUnsignedLong(v);
}

static PyMethodDef methods[] = {
    {"mix", mix, METH_O, "Mixes n steps."},
    {NULL, NULL, 0, NULL}
};

static struct PyModuleDef def = {
    PyModuleDef_HEAD_INIT, "native", NULL, -1, methods
};

PyMODINIT_FUNC
PyInit_native(void)
{
    return PyModule_Create(&def);
}
