/* Tracking of `_thread`'s Lock and RLock: the methods of the types are replaced by descriptors that call the original C
   functions.  So a lock keeps its identity, type, repr, pickling and weak references.  */

enum LockAct { LOCK_ACQUIRE, LOCK_RELEASE, LOCK_RELEASE_SAVE, LOCK_ACQUIRE_RESTORE, LOCK_REINIT };

typedef struct {
    const char *name;
    enum LockAct act;
    bool reentrant;
    PyMethodDef def;            /* ours */
    PyMethodDef *original;
    PyObject *descriptor;       /* the original's, owned */
} LockMethod;

static LockMethod lock_methods[] = {
    {.name = "acquire", .act = LOCK_ACQUIRE}, {.name = "acquire_lock", .act = LOCK_ACQUIRE},
    {.name = "__enter__", .act = LOCK_ACQUIRE}, {.name = "release", .act = LOCK_RELEASE},
    {.name = "release_lock", .act = LOCK_RELEASE}, {.name = "__exit__", .act = LOCK_RELEASE},
    {.name = "_at_fork_reinit", .act = LOCK_REINIT},
};
static LockMethod rlock_methods[] = {
    {.name = "acquire", .act = LOCK_ACQUIRE, .reentrant = true},
    {.name = "__enter__", .act = LOCK_ACQUIRE, .reentrant = true},
    {.name = "release", .act = LOCK_RELEASE, .reentrant = true},
    {.name = "__exit__", .act = LOCK_RELEASE, .reentrant = true},
    {.name = "_release_save", .act = LOCK_RELEASE_SAVE, .reentrant = true},
    {.name = "_acquire_restore", .act = LOCK_ACQUIRE_RESTORE, .reentrant = true},
    {.name = "_at_fork_reinit", .act = LOCK_REINIT, .reentrant = true},
};
#define N_LOCK_METHODS ((int)(sizeof(lock_methods) / sizeof(lock_methods[0])))
#define N_RLOCK_METHODS ((int)(sizeof(rlock_methods) / sizeof(rlock_methods[0])))

static PyTypeObject *lock_type, *rlock_type;
static PyCFunction lock_locked;

static bool
is_locked(PyObject *lock)
{
    PyObject *locked = lock_locked(lock, NULL);
    bool yes = locked == Py_True;
    Py_XDECREF(locked);
    PyErr_Clear();
    return yes;
}

/* The number of acquisitions that _acquire_restore((count, owner)) restores.  */
static uint32_t
restored_count(PyObject *state)
{
    if (state != NULL && PyTuple_Check(state) && PyTuple_GET_SIZE(state) == 1) {
        state = PyTuple_GET_ITEM(state, 0);     /* as an argument tuple */
    }
    if (state == NULL || !PyTuple_Check(state) || PyTuple_GET_SIZE(state) != 2) {
        return 1;
    }
    unsigned long count = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(state, 0));
    PyErr_Clear();
    return count > 0 && count < UINT32_MAX ? (uint32_t)count : 1;
}

/* Call it before the original: the clock of a release must be stored while the lock is still held.  */
static inline void
lock_before(const LockMethod *method, PyObject *lock)
{
    if (method->act == LOCK_RELEASE) {
        lock_releasing(thread_get(), lock, method->reentrant, is_locked);
    }
    else if (method->act == LOCK_RELEASE_SAVE) {
        lock_releasing_all(thread_get(), lock);
    }
}

static inline PyObject *
lock_after(const LockMethod *method, PyObject *lock, PyObject *argument, PyObject *result)
{
    if (result == NULL) {
        return NULL;
    }
    if (method->act == LOCK_ACQUIRE) {
        if (result == Py_True) {
            lock_acquired(thread_get(), lock, method->reentrant, 1);
        }
    }
    else if (method->act == LOCK_ACQUIRE_RESTORE) {
        lock_acquired(thread_get(), lock, true, restored_count(argument));
    }
    else if (method->act == LOCK_REINIT) {
        lock_reinitialized(thread_get(), lock);
    }
    return result;
}

/* One function per method and calling convention, as a C function does not know under which name it was called.  */
#define LOCK_FUNCTIONS(table, index) \
    static PyObject *table##_##index##_plain(PyObject *self, PyObject *arg) \
    { \
        const LockMethod *method = &table[index]; \
        lock_before(method, self); \
        return lock_after(method, self, arg, method->original->ml_meth(self, arg)); \
    } \
    static PyObject *table##_##index##_keywords(PyObject *self, PyObject *args, PyObject *kwargs) \
    { \
        const LockMethod *method = &table[index]; \
        lock_before(method, self); \
        return lock_after(method, self, args, \
                          ((PyCFunctionWithKeywords)(void (*)(void))method->original->ml_meth)(self, args, kwargs)); \
    } \
    static PyObject *table##_##index##_fast(PyObject *self, PyObject *const *args, Py_ssize_t n) \
    { \
        const LockMethod *method = &table[index]; \
        lock_before(method, self); \
        return lock_after(method, self, n > 0 ? args[0] : NULL, \
                          ((PyCFunctionFast)(void (*)(void))method->original->ml_meth)(self, args, n)); \
    } \
    static PyObject *table##_##index##_fast_keywords(PyObject *self, PyObject *const *args, Py_ssize_t n, \
                                                     PyObject *names) \
    { \
        const LockMethod *method = &table[index]; \
        lock_before(method, self); \
        return lock_after(method, self, n > 0 ? args[0] : NULL, \
            ((PyCFunctionFastWithKeywords)(void (*)(void))method->original->ml_meth)(self, args, n, names)); \
    }
#define LOCK_ROW(table, index) \
    {(PyCFunction)table##_##index##_plain, (PyCFunction)(void (*)(void))table##_##index##_keywords, \
     (PyCFunction)(void (*)(void))table##_##index##_fast, (PyCFunction)(void (*)(void))table##_##index##_fast_keywords}
#define SEVEN(macro, table) \
    macro(table, 0) macro(table, 1) macro(table, 2) macro(table, 3) macro(table, 4) macro(table, 5) macro(table, 6)

#if PY_VERSION_HEX < 0x030D0000
typedef _PyCFunctionFast PyCFunctionFast;
typedef _PyCFunctionFastWithKeywords PyCFunctionFastWithKeywords;
#endif

SEVEN(LOCK_FUNCTIONS, lock_methods)
SEVEN(LOCK_FUNCTIONS, rlock_methods)

#define LOCK_ROW_COMMA(table, index) LOCK_ROW(table, index),
static const PyCFunction lock_functions[][4] = {SEVEN(LOCK_ROW_COMMA, lock_methods)};
static const PyCFunction rlock_functions[][4] = {SEVEN(LOCK_ROW_COMMA, rlock_methods)};

static PyCFunction
function_for(const PyCFunction functions[4], int flags)
{
    switch (flags & ~(METH_COEXIST | METH_STATIC | METH_CLASS)) {
    case METH_NOARGS: case METH_O: case METH_VARARGS: return functions[0];
    case METH_VARARGS | METH_KEYWORDS: return functions[1];
    case METH_FASTCALL: return functions[2];
    case METH_FASTCALL | METH_KEYWORDS: return functions[3];
    default: return NULL;
    }
}

static int
lock_method_install(PyTypeObject *type, PyObject *namespace, LockMethod *method, const PyCFunction functions[4])
{
    PyObject *found = PyDict_GetItemString(namespace, method->name);
    if (found == NULL || !Py_IS_TYPE(found, &PyMethodDescr_Type)) {
        return 0;               /* this version has no such method */
    }
    method->original = ((PyMethodDescrObject *)found)->d_method;
    method->def = *method->original;
    method->def.ml_meth = function_for(functions, method->original->ml_flags);
    PyObject *ours = method->def.ml_meth != NULL ? PyDescr_NewMethod(type, &method->def) : NULL;
    if (ours == NULL) {
        PyErr_Format(PyExc_RuntimeError, "cannot track %s.%s", type->tp_name, method->name);
        return -1;
    }
    method->descriptor = Py_NewRef(found);
    int failed = PyDict_SetItemString(namespace, method->name, ours);
    Py_DECREF(ours);
    return failed;
}

static int
lock_type_install(PyTypeObject *type, LockMethod *methods_, int n, const PyCFunction functions[][4])
{
    PyObject *namespace = PyType_GetDict(type);
    int failed = namespace == NULL ? -1 : 0;
    for (int i = 0; i < n && !failed; i++) {
        failed = lock_method_install(type, namespace, &methods_[i], functions[i]);
    }
    PyType_Modified(type);
    Py_XDECREF(namespace);
    return failed;
}

static void
lock_type_restore(PyTypeObject *type, LockMethod *methods_, int n)
{
    PyObject *namespace = PyType_GetDict(type);
    for (int i = 0; i < n; i++) {
        if (methods_[i].descriptor != NULL) {
            PyDict_SetItemString(namespace, methods_[i].name, methods_[i].descriptor);
            Py_CLEAR(methods_[i].descriptor);
        }
    }
    PyType_Modified(type);
    Py_XDECREF(namespace);
    PyErr_Clear();
}

static int
find_lock_types(void)
{
    PyObject *module = PyImport_ImportModule("_thread");
    lock_type = module != NULL ? (PyTypeObject *)PyObject_GetAttrString(module, "LockType") : NULL;
    rlock_type = module != NULL ? (PyTypeObject *)PyObject_GetAttrString(module, "RLock") : NULL;
    Py_XDECREF(module);
    if (lock_type == NULL || rlock_type == NULL) {
        return -1;
    }
    PyObject *locked = PyObject_GetAttrString((PyObject *)lock_type, "locked");
    if (locked == NULL || !Py_IS_TYPE(locked, &PyMethodDescr_Type)) {
        return -1;
    }
    lock_locked = ((PyMethodDescrObject *)locked)->d_method->ml_meth;
    Py_DECREF(locked);
    return 0;
}

static bool locks_tracked;

static PyObject *
untrack_locks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    if (locks_tracked) {
        locks_tracked = false;
        lock_type_restore(lock_type, lock_methods, N_LOCK_METHODS);
        lock_type_restore(rlock_type, rlock_methods, N_RLOCK_METHODS);
    }
    Py_RETURN_NONE;
}

static PyMethodDef untrack_def = {"untrack_locks", untrack_locks, METH_NOARGS, NULL};

static PyObject *
api_track_locks(PyObject *module, PyObject *Py_UNUSED(none))
{
    if (!locks_tracked) {
        if (!watch_deaths() || find_lock_types() < 0) {     /* locks have records from here on */
            return NULL;
        }
        locks_tracked = true;
        if (lock_type_install(lock_type, lock_methods, N_LOCK_METHODS, lock_functions) < 0
            || lock_type_install(rlock_type, rlock_methods, N_RLOCK_METHODS, rlock_functions) < 0) {
            PyObject *error = PyErr_GetRaisedException();
            Py_XDECREF(untrack_locks(module, NULL));    /* what has been replaced so far */
            PyErr_SetRaisedException(error);
            return NULL;
        }
    }
    return PyCFunction_New(&untrack_def, module);
}

static bool
is_tracked_lock(PyObject *object)
{
    return locks_tracked && (Py_IS_TYPE(object, lock_type) || PyType_IsSubtype(Py_TYPE(object), rlock_type));
}
