/* Deaths of objects, so that a new object at the same address is not mistaken for the old one.

   3.13 and later call a tracer for every creation and death; creations count as well, since `__del__` may access an
   object after its death event.  On 3.12 the allocator's free is wrapped, and so is tp_dealloc of list and dict, which
   keep dead objects for reuse without freeing them.

   Other tools, such as tracemalloc, put hooks of their own over or in the place of ours.  What counts is not whose hook
   is called first, but whether the death of an object gets to ours.  */

static void
forget_dead(const void *object)
{
    if (likely(!maybe_watched(object)) || core.exits) {
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

#define OWN_HOOK ((uintptr_t)on_lifetime)

static inline uintptr_t
first_hook(void)
{
    void *data;
    return (uintptr_t)PyRefTracer_GetTracer(&data);
}

static bool
install_hook(void)
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    int n = now == NULL ? 0 : atomic_load(&n_tracers);
    if (now != NULL && (n == 0 || tracers[n - 1].call != now || tracers[n - 1].data != data)) {
        n += n < MOST_TRACERS;
        tracers[n - 1].call = now;
        tracers[n - 1].data = data;
    }
    atomic_store(&n_tracers, n);
    return PyRefTracer_SetTracer(on_lifetime, NULL) == 0;
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

#define OWN_HOOK ((uintptr_t)watching_free)

static inline uintptr_t
first_hook(void)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
    return (uintptr_t)now.free;
}

static bool
install_hook(void)
{
    if (list_dealloc == NULL) {
        list_dealloc = PyList_Type.tp_dealloc;
        dict_dealloc = PyDict_Type.tp_dealloc;
        PyList_Type.tp_dealloc = watching_list_dealloc;
        PyDict_Type.tp_dealloc = watching_dict_dealloc;
    }
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &wrapped_allocator);
    PyMemAllocatorEx watching = wrapped_allocator;
    watching.free = watching_free;
    watching.realloc = watching_realloc;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &watching);
    return true;
}

#endif

/* The evaluation loop of 3.13.0 destroys objects without a death event.  */
static inline bool
misses_deaths(void)
{
    return PY_VERSION_HEX >> 16 == 0x030D && Py_Version >> 8 == 0x030D00;
}

/* ---- do the events arrive? --------------------------------------------------------------------------------------- */
#define NO_OTHER 1                          /* the address of no hook; 0 stands for no hook at all */
static _Atomic(uintptr_t) leads_to_ours = NO_OTHER;     /* another tool's hook that was seen to call ours */

/* True if all death events arrive, as far as hooks that are known tell.  Calls no Python.  */
static bool
deaths_watched(void)
{
    uintptr_t first = first_hook();
    return first == OWN_HOOK || first == atomic_load_explicit(&leads_to_ours, memory_order_relaxed);
}

/* True if the death of an object that dies now is seen, or need not be.  Nothing may be locked.  */
static bool
deaths_arrive(void)
{
    if (core.exits) {       /* our hook ignores all; on 3.12, a second one over a tool's that calls the first is a loop */
        return true;
    }
    uintptr_t first = first_hook();
    PyObject *object = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    if (object == NULL) {
        PyErr_Clear();
        return false;
    }
    Record *record = record_lookup(object, true, 0);
    uint32_t serial = atomic_load(&record->serial);
    Py_DECREF(object);
    bool seen = atomic_load(&record->serial) != serial;
    if (seen) {
        atomic_store(&leads_to_ours, first);
    }
    else {
        record_forget(object);
    }
    return seen;
}

#if FREE_THREADED
static PyMutex hook_mutex;      /* of hooks; whoever waits for it lets the world be stopped */
#endif
static __thread int hooks_locked;   /* how often by this thread; 0 in the child of a fork in between */

static void
hooks_lock(void)
{
    if (hooks_locked++ == 0) {
#if FREE_THREADED
        PyMutex_Lock(&hook_mutex);
#endif
    }
}

static void
hooks_unlock(void)
{
    if (hooks_locked > 0 && --hooks_locked == 0) {
#if FREE_THREADED
        PyMutex_Unlock(&hook_mutex);
#endif
    }
}

/* Return false with an exception if the hook cannot be installed.  Records of an earlier session may be of dead objects.  */
static bool
watch_deaths(void)
{
    hooks_lock();
    bool watched = deaths_watched() || deaths_arrive();
    if (!watched) {
        atomic_fetch_add(&core.blind, atomic_load(&n_records) > 0);
        watched = install_hook();
    }
    hooks_unlock();
    return watched;
}

/* Install our hook again if another tool has replaced it; return false if it had not.  `forgets`: any record may be that
   of a dead object, so forget all accesses, and say so.  */
static bool
install_hook_again(bool forgets)
{
    PyObject *error = PyErr_GetRaisedException();
    hooks_lock();
    bool replaced = !deaths_watched() && !deaths_arrive();
    uint32_t forgotten = 0;
    if (replaced) {
        install_hook();
        if (forgets) {
            atomic_fetch_add(&core.blind, 1);
            forgotten = shadow_clear();
        }
    }
    hooks_unlock();
    if (forgotten > 0) {
        tell_gap("deaths", forgotten);
    }
    PyErr_SetRaisedException(error);
    return replaced;
}

static void
recover_hook(void)
{
    install_hook_again(true);
}

/* Called after a function that may have replaced our hook.  With a GIL, no other thread ran while it did.  */
static PyObject *
api_hook_changed(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    atomic_store(&leads_to_ours, NO_OTHER);     /* it may be a hook of the same tool, over another one than before */
    install_hook_again(FREE_THREADED);
    Py_RETURN_NONE;
}

/* ---- references to objects of which only the address is known ---------------------------------------------------- */

/* Call it while the object is alive, so that try_reference() can tell later whether it still is.  */
static inline void
prepare_reference(Recent *recent)
{
#if FREE_THREADED
    (void)recent;               /* record_lookup() has done it */
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
#if FREE_THREADED
    return !misses_deaths() && try_increment(object) ? object : NULL;
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
