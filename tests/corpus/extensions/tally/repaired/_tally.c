#include <Python.h>

typedef struct {
    long total;
    PyMutex lock;
} TallyState;

static PyObject *
tally_add(PyObject *module, PyObject *number)
{
    TallyState *state = PyModule_GetState(module);
    long more = PyLong_AsLong(number);
    if (more == -1 && PyErr_Occurred()) {
        return NULL;
    }
    PyMutex_Lock(&state->lock);
    state->total += more;
    PyMutex_Unlock(&state->lock);
    Py_RETURN_NONE;
}

static PyMethodDef tally_methods[] = {
    {"add", tally_add, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot tally_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef tally_module = {
    PyModuleDef_HEAD_INIT, "_tally", NULL, sizeof(TallyState), tally_methods, tally_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__tally(void)
{
    return PyModuleDef_Init(&tally_module);
}
