/* Op `locking`: foreign locks, context managers and acquire/release pairs of extension types.

   What an extension type does is not known: it may be a lock, a transaction, or nothing that orders threads.  It counts
   as a lock that its thread may acquire again.

   The op returns the object itself, unless it is foreign: then a stand-in that calls its methods.  */

typedef struct {
    PyObject_HEAD
    PyObject *lock;
    PyObject *method;       /* bound; NULL: the stand-in is still that of the lock */
    bool acquires;
} ForeignLock;

static PyTypeObject *foreign_lock_type;

/* ---- which objects ----------------------------------------------------------------------------------------------- */
#define LOCKING_QUESTION UINT64_C(0x10c4)   /* of the cache by type; other questions are names, or families */
enum { NOT_FOREIGN = 1, FOREIGN };

/* The method that ends what this one begins, or begins what this one ends; a new reference.  */
static PyObject *
partner_name(PyObject *name, bool *acquires)
{
    for (size_t i = 0; i < sizeof(lock_pairs) / sizeof(lock_pairs[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(name, lock_pairs[i].name) == 0) {
            *acquires = lock_pairs[i].acquires;
            return PyUnicode_InternFromString(lock_pairs[i].partner);
        }
    }
    *acquires = false;
    return Py_NewRef(names.exit);
}

/* True for methods written in C, C++, Rust or Cython; those of other types have code that runs under the checker.  */
static bool
is_native_method(PyObject *method)
{
    static const char *const kinds[] = {"cython_function_or_method", "nb_method", "Boost.Python.function"};
    PyTypeObject *type = Py_TYPE(method);
    if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyCFunction_Type
        || type == &PyInstanceMethod_Type) {
        return true;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t all = strlen(type->tp_name), end = strlen(kinds[i]);
        if (all >= end && strcmp(type->tp_name + all - end, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool
has_native_method(PyTypeObject *type, PyObject *name)
{
    PyObject *found = type_lookup(type, name);
    bool native = found != NULL && is_native_method(found);
    Py_XDECREF(found);
    return native;
}

/* True for classes of the standard library: its locks are tracked, and its other context managers are no locks.  */
static bool
is_of_stdlib(PyTypeObject *type)
{
    PyObject *module = base_attribute(&PyType_Type, "__module__", (PyObject *)type);
    PyObject *known_modules = PySys_GetObject("stdlib_module_names");      /* borrowed */
    bool found = false;
    if (module != NULL && PyUnicode_Check(module) && known_modules != NULL) {
        Py_ssize_t dot = PyUnicode_FindChar(module, '.', 0, PY_SSIZE_T_MAX, 1);
        PyObject *package = PyUnicode_Substring(module, 0, dot < 0 ? PY_SSIZE_T_MAX : dot);
        found = package != NULL && PySequence_Contains(known_modules, package) == 1;
        Py_XDECREF(package);
    }
    Py_XDECREF(module);
    PyErr_Clear();
    return found;
}

static uint32_t
judge_locking(PyTypeObject *type, PyObject *name)
{
    bool acquires;
    PyObject *partner = partner_name(name, &acquires);
    bool foreign = partner != NULL && has_native_method(type, name) && has_native_method(type, partner);
    Py_XDECREF(partner);
    PyErr_Clear();
    PyTypeObject *holder = foreign ? type_holder(type, name) : NULL;
    return holder != NULL && !is_of_stdlib(holder) ? FOREIGN : NOT_FOREIGN;
}

static bool
is_foreign_lock(Thread *thread, PyObject *object, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(object);
    if (likely(type == lock_type || type == rlock_type)) {
        return false;
    }
    uint64_t key;
    CachedType *cached = type_cache_place(thread, type, mix((uintptr_t)name, LOCKING_QUESTION), &key);
    CachedType verdict = *cached;
    if (unlikely(key == 0 || verdict.key != key)) {
        verdict = (CachedType){key, NULL, judge_locking(type, name)};
        *cached = verdict;
    }
    return verdict.verdict == FOREIGN;
}

/* ---- what is held ------------------------------------------------------------------------------------------------ */
static void
foreign_acquired(Thread *thread, PyObject *lock)
{
    lock_acquired(thread, lock, true, 1);
}

static bool
may_be_locked(PyObject *Py_UNUSED(lock))
{
    return true;
}

/* Call it before the lock is released once; return true if this thread held it.  */
static bool
foreign_releasing(Thread *thread, PyObject *lock)
{
    bool held = held_find(thread, lock) >= 0;
    lock_releasing(thread, lock, false, may_be_locked);
    return held;
}

/* ---- the stand-in ------------------------------------------------------------------------------------------------ */
static PyObject *
foreign_lock_new(PyObject *lock, PyObject *method, bool acquires)
{
    ForeignLock *self = PyObject_New(ForeignLock, foreign_lock_type);
    if (self != NULL) {
        self->lock = Py_NewRef(lock);
        self->method = Py_XNewRef(method);
        self->acquires = acquires;
    }
    return (PyObject *)self;
}

static void
foreign_lock_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((ForeignLock *)self)->lock);
    Py_XDECREF(((ForeignLock *)self)->method);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The method of the object's class, as `with` looks it up.  */
static PyObject *
special_method(PyObject *object, PyObject *name)
{
    PyObject *found = type_lookup(Py_TYPE(object), name);
    if (found == NULL) {
        PyErr_SetObject(PyExc_AttributeError, name);
        return NULL;
    }
    descrgetfunc bind = Py_TYPE(found)->tp_descr_get;
    if (bind == NULL) {
        return found;
    }
    PyObject *bound = bind(found, object, (PyObject *)Py_TYPE(object));
    Py_DECREF(found);
    return bound;
}

static PyObject *
foreign_lock_enter(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *lock = ((ForeignLock *)self)->lock;
    PyObject *enter = special_method(lock, names.enter);
    PyObject *value = enter != NULL ? PyObject_CallNoArgs(enter) : NULL;
    Py_XDECREF(enter);
    if (value != NULL) {
        foreign_acquired(thread_get(), lock);
    }
    return value;
}

static PyObject *
foreign_lock_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    PyObject *lock = ((ForeignLock *)self)->lock;
    foreign_releasing(thread_get(), lock);
    PyObject *leave = special_method(lock, names.exit);
    PyObject *value = leave != NULL ? PyObject_Vectorcall(leave, args, (size_t)n, NULL) : NULL;
    Py_XDECREF(leave);
    return value;
}

/* `acquire` and the like, which the program calls next.  */
static PyObject *
foreign_lock_getattr(PyObject *self, PyObject *name)
{
    ForeignLock *stand = (ForeignLock *)self;
    if (stand->method != NULL) {
        return PyObject_GenericGetAttr(self, name);
    }
    PyObject *method = PyObject_GetAttr(stand->lock, name);
    if (method == NULL) {
        return NULL;
    }
    bool acquires;
    Py_XDECREF(partner_name(name, &acquires));
    PyObject *called = foreign_lock_new(stand->lock, method, acquires);
    Py_DECREF(method);
    return called;
}

static PyObject *
foreign_lock_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    ForeignLock *stand = (ForeignLock *)self;
    if (stand->method == NULL) {
        return PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", Py_TYPE(stand->lock)->tp_name);
    }
    bool held = !stand->acquires && foreign_releasing(thread_get(), stand->lock);
    PyObject *result = PyObject_Call(stand->method, args, kwargs);
    if (stand->acquires ? result != NULL && result != Py_False : held && result == NULL) {
        foreign_acquired(thread_get(), stand->lock);
    }
    return result;
}

/* locking(x), where `with` enters it, or locking(x, name), where the method of that name is called.  */
static PyObject *
op_locking(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (unlikely(n != 1 && (n != 2 || !PyUnicode_CheckExact(args[1])))) {
        PyErr_SetString(PyExc_TypeError, "an op of gilscope takes other arguments: code rewritten for another core?");
        return NULL;
    }
    if (!atomic_load_explicit(&core.started, memory_order_relaxed)
        || likely(!is_foreign_lock(thread_get(), args[0], n == 1 ? names.enter : args[1]))) {
        return Py_NewRef(args[0]);
    }
    return foreign_lock_new(args[0], NULL, false);
}

static PyMethodDef foreign_lock_methods[] = {
    {"__enter__", foreign_lock_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))foreign_lock_exit, METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot foreign_lock_slots[] = {
    {Py_tp_dealloc, foreign_lock_dealloc}, {Py_tp_getattro, foreign_lock_getattr}, {Py_tp_call, foreign_lock_call},
    {Py_tp_methods, foreign_lock_methods}, {0, NULL}};
static PyType_Spec foreign_lock_spec = {
    .name = "gilscope.foreign_lock", .basicsize = sizeof(ForeignLock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = foreign_lock_slots};
