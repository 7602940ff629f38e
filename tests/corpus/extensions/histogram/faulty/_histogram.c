#include <Python.h>

static int counts[256];

static PyObject *
histogram_add(PyObject *self, PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    const unsigned char *bytes = view.buf;
    for (Py_ssize_t i = 0; i < view.len; i++) {
        counts[bytes[i]] += 1;
    }
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyMethodDef histogram_methods[] = {
    {"add", histogram_add, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot histogram_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef histogram_module = {
    PyModuleDef_HEAD_INIT, "_histogram", NULL, 0, histogram_methods, histogram_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__histogram(void)
{
    return PyModuleDef_Init(&histogram_module);
}
