/* An extension module that does not say whether it can run without the GIL.  -DSINGLE_PHASE: in the old way. */
#include <Python.h>

static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }

static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

#ifdef SINGLE_PHASE
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "gilful", NULL, -1, methods};
PyMODINIT_FUNC PyInit_gilful(void) { return PyModule_Create(&module); }
#else
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "gilful", NULL, 0, methods, slots};
PyMODINIT_FUNC PyInit_gilful(void) { return PyModuleDef_Init(&module); }
#endif
