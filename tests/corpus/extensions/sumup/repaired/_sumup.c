#include <Python.h>

static PyObject *
sumup_sumup(PyObject *self, PyObject *numbers)
{
    if (!PyDict_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "a dict, please");
        return NULL;
    }
    PyObject *key, *value;
    Py_ssize_t place = 0;
    double sum = 0.0;
    Py_BEGIN_CRITICAL_SECTION(numbers);
    while (PyDict_Next(numbers, &place, &key, &value)) {
        if (PyFloat_CheckExact(value)) {
            sum += PyFloat_AS_DOUBLE(value);
        }
    }
    Py_END_CRITICAL_SECTION();
    return PyFloat_FromDouble(sum);
}

static PyMethodDef sumup_methods[] = {
    {"sumup", sumup_sumup, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot sumup_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef sumup_module = {
    PyModuleDef_HEAD_INIT, "_sumup", NULL, 0, sumup_methods, sumup_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__sumup(void)
{
    return PyModuleDef_Init(&sumup_module);
}
