#include <Python.h>

static PyMutex lock;
static PyObject *labels;
static long next_label;

static PyObject *
label_of(PyObject *key)
{
    PyObject *found = NULL;
    if (PyDict_GetItemRef(labels, key, &found) != 0) {
        return found;
    }
    PyObject *label = PyUnicode_FromFormat("L%ld", next_label++);
    if (label == NULL || PyDict_SetItem(labels, key, label) < 0) {
        Py_XDECREF(label);
        return NULL;
    }
    return label;
}

static PyObject *
labels_label(PyObject *self, PyObject *key)
{
    PyMutex_Lock(&lock);
    PyObject *label = label_of(key);
    PyMutex_Unlock(&lock);
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
