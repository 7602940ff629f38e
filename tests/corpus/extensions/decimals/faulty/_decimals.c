#include <Python.h>

static PyObject *decimal_type;

static PyObject *
decimals_decimal(PyObject *self, PyObject *text)
{
    if (decimal_type == NULL) {
        PyObject *module = PyImport_ImportModule("decimal");
        if (module == NULL) {
            return NULL;
        }
        decimal_type = PyObject_GetAttrString(module, "Decimal");
        Py_DECREF(module);
        if (decimal_type == NULL) {
            return NULL;
        }
    }
    return PyObject_CallOneArg(decimal_type, text);
}

static PyMethodDef decimals_methods[] = {
    {"decimal", decimals_decimal, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot decimals_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef decimals_module = {
    PyModuleDef_HEAD_INIT, "_decimals", NULL, 0, decimals_methods, decimals_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__decimals(void)
{
    return PyModuleDef_Init(&decimals_module);
}
