#include <Python.h>

/* A static cache without a lock: two threads that miss at once give two labels for one key. */
static PyObject *labels;
static long next_label;

static PyObject *
labels_label(PyObject *self, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(labels, key);
    if (found != NULL) {
        return Py_NewRef(found);
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *label = PyUnicode_FromFormat("L%ld", next_label++);
    if (label == NULL || PyDict_SetItem(labels, key, label) < 0) {
        Py_XDECREF(label);
        return NULL;
    }
    return label;
}

static int
labels_exec(PyObject *module)
{
    labels = PyDict_New();
    return labels == NULL ? -1 : 0;
}

static PyMethodDef labels_methods[] = {
    {"label", labels_label, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot labels_slots[] = {
    {Py_mod_exec, labels_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef labels_module = {
    PyModuleDef_HEAD_INIT, "_labels", NULL, 0, labels_methods, labels_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__labels(void)
{
    return PyModuleDef_Init(&labels_module);
}
