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
static PyMutex hook_mutex;      /* of hooks and of `holds_objects`; whoever waits for it lets the world be stopped */
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

/* Another tool has replaced our hook: any record may be that of a dead object.  Forget all accesses, and say so.  */
static void
recover_hook(void)
{
    PyObject *error = PyErr_GetRaisedException();
    hooks_lock();
    bool blind = !deaths_watched() && !deaths_arrive();
    uint32_t forgotten = 0;
    if (blind) {
        install_hook();
        atomic_fetch_add(&core.blind, 1);
        forgotten = shadow_clear();
    }
    hooks_unlock();
    if (blind) {
        tell_gap("deaths", forgotten);
    }
    PyErr_SetRaisedException(error);
}

/* ---- tools that replace the hook by functions that we know ------------------------------------------------------- */

#if FREE_THREADED
static bool all_held;           /* guarded by hook_mutex */

/* Take a reference to every watched object until let_go(), so that none dies and no address is used again while its
   death would not be seen.  What is dying is forgotten at once.  Objects with finalizers are left out: they may be dead
   although there is a record, made by the finalizer after the event.  */
static void
hold_watched(void)
{
    atomic_store(&holds_objects, true);     /* from now on, record_can_hold() holds what is new */
    for (int i = 0; i < SHARDS; i++) {
        Shard *shard = &shards[i];
        spin_lock(&shard->spin);
        uint32_t n = 0;
        Contents *dying = must(malloc((shard->n + 1) * sizeof(Contents)));
        for (uint32_t b = 0; b <= shard->mask; b++) {
            for (Record **link = &shard->buckets[b]; *link != NULL;) {
                Record *record = *link;
                if (!record->held && !record->finalizes && !try_increment(record->object)) {
                    dying[n++] = record_unlink(shard, link);
                    continue;
                }
                record->held = !record->finalizes;
                link = &record->next;
            }
        }
        spin_unlock(&shard->spin);
        for (uint32_t k = 0; k < n; k++) {
            contents_drop(dying[k]);
        }
        free(dying);
    }
}

typedef struct { PyObject **objects; uint32_t n; } Held;

/* Forget the accesses to objects that were not held; return the number of those.  */
static uint32_t
let_go(Held held[SHARDS])
{
    uint32_t forgotten = 0;
    atomic_store(&holds_objects, false);
    for (int i = 0; i < SHARDS; i++) {
        Shard *shard = &shards[i];
        spin_lock(&shard->spin);
        uint32_t n_others = 0;
        held[i] = (Held){must(malloc((shard->n + 1) * sizeof(PyObject *))), 0};
        Record **others = must(malloc((shard->n + 1) * sizeof(Record *)));
        for (uint32_t b = 0; b <= shard->mask; b++) {
            for (Record *record = shard->buckets[b]; record != NULL; record = record->next) {
                if (record->held) {
                    record->held = false;
                    held[i].objects[held[i].n++] = record->object;
                }
                else if (record->finalizes) {
                    others[n_others++] = record;
                }
            }
        }
        spin_unlock(&shard->spin);
        for (uint32_t k = 0; k < n_others; k++) {
            forgotten += record_empty(others[k]);
        }
        free(others);
    }
    return forgotten;
}

/* Drop the references, with nothing locked: finalizers of the program may run.  */
static void
held_drop(Held held[SHARDS])
{
    for (int i = 0; i < SHARDS; i++) {
        for (uint32_t k = 0; k < held[i].n; k++) {
            Py_DECREF(held[i].objects[k]);
        }
        free(held[i].objects);
    }
}
#endif

/* Called before and after a function that may replace our hook.  With a GIL, no other thread runs while it does; but it
   may run code of the program before, which may call such a function again.  */
static PyObject *
api_hook_may_change(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    hooks_lock();
#if FREE_THREADED
    if (hooks_locked == 1) {
        all_held = !misses_deaths() && atomic_load(&core.blind) == 0;      /* else there may be records of dead objects */
        if (all_held) {
            hold_watched();
        }
    }
#endif
    Py_RETURN_NONE;
}

static PyObject *
api_hook_changed(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    atomic_store(&leads_to_ours, NO_OTHER);     /* it may be a hook of the same tool, over another one than before */
    /* While objects are held, none dies, also not the one that would show whether its death is seen.  */
    if (!deaths_watched() && (atomic_load(&holds_objects) || !deaths_arrive())) {
        install_hook();
    }
#if FREE_THREADED
    Held held[SHARDS] = {0};
    uint32_t forgotten = 0;
    if (hooks_locked <= 1) {
        if (all_held) {
            forgotten = let_go(held);
        }
        else {
            atomic_fetch_add(&core.blind, 1);
            forgotten = shadow_clear();
        }
    }
    hooks_unlock();
    held_drop(held);
    if (forgotten > 0) {
        tell_gap("deaths", forgotten);
    }
#else
    hooks_unlock();
#endif
    Py_RETURN_NONE;
}

/* ---- references to objects of which only the address is known ---------------------------------------------------- */

/* Call it while the object is alive, so that try_reference() can tell later whether it still is.  */
static inline void
prepare_reference(Recent *recent)
{
#if FREE_THREADED
    (void)recent;               /* record_can_hold() has done it */
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
