/* A lock of an extension type.  */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct { PyObject_HEAD PyThread_type_lock lock; } Latch;

static PyObject *
latch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Latch *self = (Latch *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->lock = PyThread_allocate_lock();
    }
    return (PyObject *)self;
}

static void
latch_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyThread_free_lock(((Latch *)self)->lock);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
latch_acquire(PyObject *self, PyObject *none)
{
    Py_BEGIN_ALLOW_THREADS
    PyThread_acquire_lock(((Latch *)self)->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS
    return Py_NewRef(self);
}

static PyObject *
latch_try(PyObject *self, PyObject *none)
{
    return PyBool_FromLong(PyThread_acquire_lock(((Latch *)self)->lock, NOWAIT_LOCK));
}

static PyObject *
latch_release(PyObject *self, PyObject *args)
{
    PyThread_release_lock(((Latch *)self)->lock);
    Py_RETURN_NONE;
}

static PyMethodDef latch_methods[] = {
    {"acquire", latch_acquire, METH_NOARGS, NULL}, {"release", latch_release, METH_NOARGS, NULL},
    {"lock", latch_try, METH_NOARGS, NULL}, {"unlock", latch_release, METH_NOARGS, NULL},
    {"__enter__", latch_acquire, METH_NOARGS, NULL}, {"__exit__", latch_release, METH_VARARGS, NULL}, {NULL}};
static PyType_Slot latch_slots[] = {
    {Py_tp_new, latch_new}, {Py_tp_dealloc, latch_dealloc}, {Py_tp_methods, latch_methods}, {0, NULL}};
static PyType_Spec latch_spec = {
    .name = "foreign_lock.Latch", .basicsize = sizeof(Latch), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = latch_slots};

static int
exec_module(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &latch_spec, NULL);
    int failed = type == NULL || PyModule_AddObjectRef(module, "Latch", type) < 0 ? -1 : 0;
    Py_XDECREF(type);
    return failed;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "foreign_lock", .m_slots = slots};

PyMODINIT_FUNC
PyInit_foreign_lock(void)
{
    return PyModuleDef_Init(&module);
}
