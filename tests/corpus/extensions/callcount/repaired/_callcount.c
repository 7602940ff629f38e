#include <Python.h>

static long hits;
static PyMutex hits_lock;

static PyObject *
callcount_hit(PyObject *self, PyObject *unused)
{
    PyMutex_Lock(&hits_lock);
    hits++;
    PyMutex_Unlock(&hits_lock);
    Py_RETURN_NONE;
}

static PyObject *
callcount_hits(PyObject *self, PyObject *unused)
{
    PyMutex_Lock(&hits_lock);
    long now = hits;
    PyMutex_Unlock(&hits_lock);
    return PyLong_FromLong(now);
}

static PyMethodDef callcount_methods[] = {
    {"hit", callcount_hit, METH_NOARGS, NULL},
    {"hits", callcount_hits, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot callcount_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef callcount_module = {
    PyModuleDef_HEAD_INIT, "_callcount", NULL, 0, callcount_methods, callcount_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__callcount(void)
{
    return PyModuleDef_Init(&callcount_module);
}
