#include <Python.h>

static PyObject *notes;

static PyObject *
notes_remember(PyObject *self, PyObject *args)
{
    PyObject *key, *text;
    if (!PyArg_ParseTuple(args, "OO", &key, &text) || PyDict_SetItem(notes, key, text) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
notes_recall(PyObject *self, PyObject *key)
{
    PyObject *found = NULL;
    if (PyDict_GetItemRef(notes, key, &found) == 0) {
        PyErr_SetObject(PyExc_KeyError, key);
    }
    return found;
}

static int
notes_exec(PyObject *module)
{
    notes = PyDict_New();
    return notes == NULL ? -1 : 0;
}

static PyMethodDef notes_methods[] = {
    {"remember", notes_remember, METH_VARARGS, NULL},
    {"recall", notes_recall, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot notes_slots[] = {
    {Py_mod_exec, notes_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef notes_module = {
    PyModuleDef_HEAD_INIT, "_notes", NULL, 0, notes_methods, notes_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__notes(void)
{
    return PyModuleDef_Init(&notes_module);
}
