/* Callables with callbacks around an original, without a frame in tracebacks; and patches of attributes that can be
   undone, also of immutable types.  */

typedef struct {
    PyObject_HEAD
    PyObject *original, *before, *after, *failed, *dict;
    vectorcallfunc vectorcall;
    bool muted, binds;
    bool handles_signal;    /* the original is a signal handler of the program */
} Wrapped;

static PyTypeObject *wrapped_type;

/* Errors in our callbacks must not reach the program, except for KeyboardInterrupt, which stays set.  */
static void
hook_failed(PyObject *hook)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return;
    }
    if (!core.debug) {
        PyErr_Clear();
    }
    else {
        PyErr_WriteUnraisable(hook);
    }
}

/* Call callback(*first, *args, **kwargs).  NULL without an exception: it failed; with one: the program was interrupted.  */
static PyObject *
call_hook(PyObject *hook, PyObject *const *first, Py_ssize_t n_first, PyObject *const *args, Py_ssize_t n,
          PyObject *names_)
{
    Py_ssize_t all = n + (names_ != NULL ? PyTuple_GET_SIZE(names_) : 0);
    PyObject *few[12];
    PyObject **stack = all + n_first <= 12 ? few : PyMem_Malloc((size_t)(all + n_first) * sizeof(PyObject *));
    if (stack == NULL) {
        return NULL;
    }
    if (n_first > 0) {
        memcpy(stack, first, (size_t)n_first * sizeof(PyObject *));
    }
    memcpy(stack + n_first, args, (size_t)all * sizeof(PyObject *));
    PyObject *result = call_ours(hook, stack, (size_t)(n_first + n), names_);
    if (stack != few) {
        PyMem_Free(stack);
    }
    if (result == NULL) {
        hook_failed(hook);
    }
    return result;
}

static void
call_failed(const Wrapped *self, PyObject *state, PyObject *const *args, Py_ssize_t n, PyObject *names_)
{
    PyObject *error = PyErr_GetRaisedException();
    PyObject *first[2] = {state, error};
    PyObject *done = call_hook(self->failed, first, 2, args, n, names_);
    if (done == NULL && PyErr_Occurred()) {
        PyObject *interrupt = PyErr_GetRaisedException();
        PyException_SetContext(interrupt, error);
        error = interrupt;
    }
    Py_XDECREF(done);
    PyErr_SetRaisedException(error);
}

static PyObject *
wrapped_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names_)
{
    const Wrapped *self = (Wrapped *)object;
    Thread *thread = thread_get();
    int level = thread->muted;
    if (self->muted && level > 0) {         /* a primitive inside a primitive */
        return PyObject_Vectorcall(self->original, args, nargsf, names_);
    }
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (self->handles_signal && defer_handler(object, args, n)) {
        Py_RETURN_NONE;
    }
    PyObject *state = self->before != NULL ? call_hook(self->before, NULL, 0, args, n, names_) : NULL;
    if (state == NULL && PyErr_Occurred()) {
        thread_get()->muted = level;
        return NULL;
    }
    state = state != NULL ? state : Py_NewRef(Py_None);
    bool interrupted = unlikely(has_deferred) && Py_MakePendingCalls() < 0;     /* before the original, which may block */
    bool muted = self->muted && state != Py_NotImplemented;
    if (muted) {
        thread_get()->muted = level + 1;
    }
    PyObject *result = interrupted ? NULL : PyObject_Vectorcall(self->original, args, (size_t)n, names_);
    if (muted) {
        thread_get()->muted = level;
    }
    if (result == NULL && self->failed != NULL) {
        call_failed(self, state, args, n, names_);
    }
    if (result != NULL && self->after != NULL) {
        PyObject *first[2] = {state, result};
        PyObject *done = call_hook(self->after, first, 2, args, n, names_);
        if (done == NULL && PyErr_Occurred()) {
            thread_get()->muted = level;
            Py_CLEAR(result);
        }
        Py_XDECREF(done);
    }
    Py_DECREF(state);
    return result;
}

static PyObject *
wrapped_bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None || !((Wrapped *)self)->binds) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyObject *
wrapped_getattr(PyObject *self, PyObject *name)
{
    PyObject *own = PyObject_GenericGetAttr(self, name);
    if (own != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return own;
    }
    PyErr_Clear();
    return PyObject_GetAttr(((Wrapped *)self)->original, name);
}

static PyObject *
wrapped_repr(PyObject *self)
{
    return PyObject_Repr(((Wrapped *)self)->original);
}

static PyObject *
wrapped_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyObject_GetAttrString(self, "__qualname__");     /* found by it, as functions are */
}

static int
wrapped_traverse(PyObject *object, visitproc visit, void *arg)
{
    Wrapped *self = (Wrapped *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->original);
    Py_VISIT(self->before);
    Py_VISIT(self->after);
    Py_VISIT(self->failed);
    Py_VISIT(self->dict);
    return 0;
}

static int
wrapped_clear(PyObject *object)
{
    Wrapped *self = (Wrapped *)object;
    Py_CLEAR(self->original);
    Py_CLEAR(self->before);
    Py_CLEAR(self->after);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->dict);
    return 0;
}

static void
wrapped_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    wrapped_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef wrapped_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(Wrapped, vectorcall), Py_READONLY, NULL},
    {"__dictoffset__", Py_T_PYSSIZET, offsetof(Wrapped, dict), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyGetSetDef wrapped_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef wrapped_methods[] = {
    {"__reduce__", wrapped_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot wrapped_slots[] = {
    {Py_tp_dealloc, wrapped_dealloc}, {Py_tp_traverse, wrapped_traverse}, {Py_tp_clear, wrapped_clear},
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, wrapped_bind}, {Py_tp_getattro, wrapped_getattr},
    {Py_tp_repr, wrapped_repr}, {Py_tp_members, wrapped_members}, {Py_tp_getset, wrapped_getset},
    {Py_tp_methods, wrapped_methods}, {0, NULL}};
static PyType_Spec wrapped_spec = {
    .name = "gilscope.wrapped", .basicsize = sizeof(Wrapped),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = wrapped_slots};

/* Copy a function's metadata into the wrapper's own dict, where descriptors of the type do not hide it.  */
static int
copy_looks(Wrapped *self)
{
    static const char *const copied[] = {"__module__", "__name__", "__qualname__", "__doc__", "__text_signature__"};
    PyObject *own = PyObject_GetAttrString(self->original, "__dict__");
    if (own == NULL || !PyDict_Check(own) || PyDict_Update(self->dict, own) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(own);
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        PyObject *value = PyObject_GetAttrString(self->original, copied[i]);
        if (value == NULL) {
            PyErr_Clear();
            continue;
        }
        int failed = PyDict_SetItemString(self->dict, copied[i], value);
        Py_DECREF(value);
        if (failed) {
            return -1;
        }
    }
    return PyDict_SetItemString(self->dict, "__wrapped__", self->original);
}

static PyObject *
hook_or_null(PyObject *hook)
{
    return hook == NULL || hook == Py_None ? NULL : Py_NewRef(hook);
}

static PyObject *
api_wrap(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"original", "before", "after", "failed", "muted", "handles_signal", NULL};
    PyObject *original, *before = NULL, *after = NULL, *failed = NULL;
    int muted = 1, handles_signal = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO$pp:wrap", keywords, &original, &before, &after, &failed,
                                     &muted, &handles_signal)) {
        return NULL;
    }
    Wrapped *self = PyObject_GC_New(Wrapped, wrapped_type);
    if (self == NULL) {
        return NULL;
    }
    self->original = Py_NewRef(original);
    self->before = hook_or_null(before);
    self->after = hook_or_null(after);
    self->failed = hook_or_null(failed);
    self->dict = PyDict_New();
    self->vectorcall = wrapped_call;
    self->muted = muted;
    self->handles_signal = handles_signal;
    self->binds = Py_TYPE(original)->tp_descr_get != NULL;
    PyObject_GC_Track(self);
    if (self->dict == NULL || copy_looks(self) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* ---- patch ------------------------------------------------------------------------------------------------------- */
static int
set_in_type(PyTypeObject *type, PyObject *name, PyObject *value)
{
    PyObject *namespace = PyType_GetDict(type);
    int failed = namespace == NULL ? -1
        : value != NULL ? PyDict_SetItem(namespace, name, value) : PyDict_DelItem(namespace, name);
    Py_XDECREF(namespace);
    PyType_Modified(type);
    return failed;
}

static int
set_anywhere(PyObject *owner, PyObject *name, PyObject *value)
{
    if (PyObject_SetAttr(owner, name, value) == 0) {
        return 0;
    }
    if (!PyType_Check(owner) || !PyErr_ExceptionMatches(PyExc_TypeError)) {
        return -1;
    }
    PyErr_Clear();
    return set_in_type((PyTypeObject *)owner, name, value);
}

static PyObject *
unpatch(PyObject *state, PyObject *Py_UNUSED(none))
{
    PyObject *owner = PyTuple_GET_ITEM(state, 0), *name = PyTuple_GET_ITEM(state, 1);
    PyObject *before = PyTuple_GET_SIZE(state) > 2 ? PyTuple_GET_ITEM(state, 2) : NULL;
    return set_anywhere(owner, name, before) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef unpatch_def = {"unpatch", unpatch, METH_NOARGS, NULL};

static PyObject *
own_attribute(PyObject *owner, PyObject *name)
{
    PyObject *namespace = PyObject_GetAttrString(owner, "__dict__");
    PyObject *value = namespace != NULL ? PyObject_GetItem(namespace, name) : NULL;
    Py_XDECREF(namespace);
    PyErr_Clear();
    return value;
}

static PyObject *
api_patch(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *owner, *name, *replacement;
    if (!PyArg_ParseTuple(args, "OUO:patch", &owner, &name, &replacement)) {
        return NULL;
    }
    PyObject *before = own_attribute(owner, name);
    PyObject *state = before != NULL ? PyTuple_Pack(3, owner, name, before) : PyTuple_Pack(2, owner, name);
    Py_XDECREF(before);
    if (state == NULL) {
        return NULL;
    }
    if (set_anywhere(owner, name, replacement) < 0) {
        PyErr_Clear();
        Py_DECREF(state);
        Py_RETURN_NONE;
    }
    PyObject *undo = PyCFunction_New(&unpatch_def, state);
    Py_DECREF(state);
    return undo;
}
