#include <Python.h>

static PyObject *decimal_type;

static PyObject *
decimals_decimal(PyObject *self, PyObject *text)
{
    return PyObject_CallOneArg(decimal_type, text);
}

static int
decimals_exec(PyObject *module)
{
    PyObject *decimal = PyImport_ImportModule("decimal");
    if (decimal == NULL) {
        return -1;
    }
    decimal_type = PyObject_GetAttrString(decimal, "Decimal");
    Py_DECREF(decimal);
    return decimal_type == NULL ? -1 : 0;
}

static PyMethodDef decimals_methods[] = {
    {"decimal", decimals_decimal, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot decimals_slots[] = {
    {Py_mod_exec, decimals_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef decimals_module = {
    PyModuleDef_HEAD_INIT, "_decimals", NULL, 0, decimals_methods, decimals_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__decimals(void)
{
    return PyModuleDef_Init(&decimals_module);
}
