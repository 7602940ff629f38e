/* Deaths of objects, so that a new object at the same address is not mistaken for the old one.

   3.13 and later call a tracer for every creation and death; creations count as well, since `__del__` may access an
   object after its death event.  On 3.12 the allocator's free is wrapped, and so is tp_dealloc of list and dict, which
   keep dead objects for reuse without freeing them.  */

static void
forget_dead(const void *object)
{
    if (likely(!maybe_watched(object)) || core.dead) {
        return;
    }
#if !FREE_THREADED
    /* Another interpreter with its own GIL: nothing of it is watched, and its threads must not touch the tables.  */
    PyThreadState *state = thread_state();
    if (state == NULL || state->interp != core.interpreter) {
        return;
    }
#endif
    record_forget(object);
}

#if PY_VERSION_HEX >= 0x030D0000

#define MOST_TRACERS 4
static struct { PyRefTracer call; void *data; } tracers[MOST_TRACERS];     /* of others, in the order of installation */
static _Atomic(int) n_tracers;
static __thread int forwards;

static int
on_lifetime(PyObject *object, PyRefTracerEvent event, void *Py_UNUSED(data))
{
    if (object != NULL) {
        forget_dead(object);
    }
    /* A tracer that was installed over ours may call ours again, for the one before it.  */
    int at = atomic_load_explicit(&n_tracers, memory_order_relaxed) - 1 - forwards;
    if (likely(at < 0)) {
        return 0;
    }
    forwards++;
    int result = tracers[at].call(object, event, tracers[at].data);
    forwards--;
    return result;
}

static bool
watch_deaths(void)
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    if (now == on_lifetime) {
        return true;
    }
    int n = now == NULL ? 0 : atomic_load(&n_tracers);
    if (now != NULL && (n == 0 || tracers[n - 1].call != now || tracers[n - 1].data != data)) {
        n += n < MOST_TRACERS;
        tracers[n - 1].call = now;
        tracers[n - 1].data = data;
    }
    atomic_store(&n_tracers, n);
    return PyRefTracer_SetTracer(on_lifetime, NULL) == 0;
}

/* True if all death events arrived: another tracer may have replaced ours.  */
static bool
deaths_watched(void)
{
    void *data;
    return PyRefTracer_GetTracer(&data) == on_lifetime;
}

#else

static PyMemAllocatorEx wrapped_allocator;
static destructor list_dealloc, dict_dealloc;

static void
watching_free(void *context, void *block)
{
    /* In front of an object lie up to two headers of 16 bytes: of the collector, and of a managed dict.  */
    for (int header = 0; block != NULL && header <= 32; header += 16) {
        forget_dead((char *)block + header);
    }
    wrapped_allocator.free(context, block);
}

static void *
watching_realloc(void *context, void *block, size_t size)
{
    for (int header = 0; block != NULL && header <= 32; header += 16) {
        forget_dead((char *)block + header);
    }
    return wrapped_allocator.realloc(context, block, size);
}

/* The wrapped functions limit recursion only if they are the type's own, so the limit is applied here.  */
static void
watching_list_dealloc(PyObject *list)
{
    forget_dead(list);
    PyObject_GC_UnTrack(list);
    Py_TRASHCAN_BEGIN(list, watching_list_dealloc)
    list_dealloc(list);
    Py_TRASHCAN_END
}

static void
watching_dict_dealloc(PyObject *dict)
{
    forget_dead(dict);
    PyObject_GC_UnTrack(dict);
    Py_TRASHCAN_BEGIN(dict, watching_dict_dealloc)
    dict_dealloc(dict);
    Py_TRASHCAN_END
}

static bool
watch_deaths(void)
{
    if (list_dealloc != NULL) {
        return true;
    }
    list_dealloc = PyList_Type.tp_dealloc;
    dict_dealloc = PyDict_Type.tp_dealloc;
    PyList_Type.tp_dealloc = watching_list_dealloc;
    PyDict_Type.tp_dealloc = watching_dict_dealloc;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &wrapped_allocator);
    PyMemAllocatorEx watching = wrapped_allocator;
    watching.free = watching_free;
    watching.realloc = watching_realloc;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &watching);
    return true;
}

static bool
deaths_watched(void)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
    return now.free == watching_free;
}

#endif

/* ---- references to objects of which only the address is known ---------------------------------------------------- */

/* The evaluation loop of 3.13.0 destroys objects without a death event.  */
static inline bool
misses_deaths(void)
{
    return PY_VERSION_HEX >> 16 == 0x030D && Py_Version >> 8 == 0x030D00;
}

/* Call it while the object is alive, so that try_reference() can tell later whether it still is.  */
static inline void
prepare_reference(Recent *recent)
{
#if FREE_THREADED && PY_VERSION_HEX >= 0x030E0000
    PyUnstable_EnableTryIncRef(recent->object);
#elif FREE_THREADED             /* what that does; 3.13 has no public function for it */
    PyObject *object = recent->object;
    Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&object->ob_ref_shared);
    while (!_Py_IsImmortal(object) && (shared & _Py_REF_SHARED_FLAG_MASK) == 0
           && !_Py_atomic_compare_exchange_ssize(&object->ob_ref_shared, &shared, shared | _Py_REF_MAYBE_WEAKREF)) {
    }
#else
    if (misses_deaths() && PyType_SUPPORTS_WEAKREFS(Py_TYPE(recent->object))) {
        PyObject *error = PyErr_GetRaisedException();
        recent->ref = PyWeakref_NewRef(recent->object, NULL);
        PyErr_SetRaisedException(error);
    }
#endif
}

/* Return a new reference to the object if it is known to be alive, else NULL.  The caller holds the record's lock, and
   the record's serial is still that of the access: the event of the object's death would have changed it, and waits for
   the lock.  On 3.13.0, what cannot have a weak reference is not known to be alive.  */
static PyObject *
try_reference(const Recent *recent)
{
    PyObject *object = recent->object;
    if (!deaths_watched()) {
        return NULL;
    }
#if FREE_THREADED && PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_TryIncRef(object) ? object : NULL;
#elif FREE_THREADED
    if (misses_deaths()) {
        return NULL;
    }
    if (_Py_IsImmortal(object) || _Py_IsOwnedByCurrentThread(object)) {
        return Py_NewRef(object);
    }
    Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&object->ob_ref_shared);
    while (shared != 0 && shared != _Py_REF_MERGED) {
        if (_Py_atomic_compare_exchange_ssize(&object->ob_ref_shared, &shared, shared + (1 << _Py_REF_SHARED_SHIFT))) {
            return object;
        }
    }
    return NULL;
#elif PY_VERSION_HEX >> 16 == 0x030D
    if (misses_deaths()) {
        object = NULL;
        return recent->ref != NULL && PyWeakref_GetRef(recent->ref, &object) > 0 ? object : NULL;
    }
    return Py_NewRef(object);
#else
    return Py_NewRef(object);
#endif
}
