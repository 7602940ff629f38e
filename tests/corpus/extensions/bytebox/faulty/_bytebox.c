#include <Python.h>

typedef struct {
    PyObject_HEAD
    char *data;
    Py_ssize_t size;
    int exports;
} BytesObject;

static int
Bytes_getbuffer(PyObject *op, Py_buffer *view, int flags)
{
    BytesObject *self = (BytesObject *)op;
    int failed;
    failed = PyBuffer_FillInfo(view, op, self->data, self->size, 0, flags);
    if (!failed) {
        self->exports++;
    }
    return failed;
}

static void
Bytes_releasebuffer(PyObject *op, Py_buffer *view)
{
    ((BytesObject *)op)->exports--;
}

static PyObject *
Bytes_resize(PyObject *op, PyObject *number)
{
    BytesObject *self = (BytesObject *)op;
    int failed = -1;
    Py_ssize_t size = PyLong_AsSsize_t(number);
    if (size < 0) {
        return NULL;
    }
    if (!self->exports) {
        char *data = PyMem_Realloc(self->data, size);
        if (data != NULL) {
            self->data = data;
            self->size = size;
            failed = 0;
        }
    }
    if (failed) {
        PyErr_SetString(PyExc_BufferError, "in use, or no memory");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef Bytes_methods[] = {
    {"resize", Bytes_resize, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static void
Bytes_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyMem_Free(((BytesObject *)op)->data);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot Bytes_slots[] = {
    {Py_tp_methods, Bytes_methods},
    {Py_tp_dealloc, Bytes_dealloc},
    {Py_bf_getbuffer, Bytes_getbuffer},
    {Py_bf_releasebuffer, Bytes_releasebuffer},
    {0, NULL}};

static PyType_Spec Bytes_spec = {
    "_bytebox.Bytes", sizeof(BytesObject), 0, Py_TPFLAGS_DEFAULT, Bytes_slots};

static int
bytebox_exec(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&Bytes_spec);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed;
}

static PyMethodDef bytebox_methods[] = {
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot bytebox_slots[] = {
    {Py_mod_exec, bytebox_exec},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef bytebox_module = {
    PyModuleDef_HEAD_INIT, "_bytebox", NULL, 0, bytebox_methods, bytebox_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__bytebox(void)
{
    return PyModuleDef_Init(&bytebox_module);
}
