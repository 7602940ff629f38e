/* The Python module: ops, sites, clocks, and the functions of the interface in toolkit/race/core.py.  */

/* ---- ops --------------------------------------------------------------------------------------------------------- */
static const Op ops[] = {
    {.name = "attr_read", .call = op_at, .at = at_attr_read},
    {.name = "attr_write", .call = op_at, .at = at_attr_write, .stores_attribute = true},
    {.name = "attr_update", .call = op_at, .at = at_attr_update, .stores_attribute = true},
    {.name = "attr_proxy", .call = op_at, .at = at_attr_proxy, .stores_attribute = true},
    {.name = "attr_store", .call = op_attr_store, .stores_attribute = true},
    {.name = "item_read", .call = op_item_read},
    {.name = "item_write", .call = op_item_write},
    {.name = "item_delete", .call = op_item_delete, .removes = true},
    {.name = "item_proxy", .call = op_at, .at = at_item_proxy},
    {.name = "global_read", .call = op_at, .at = at_global, .kind = READ},
    {.name = "global_write", .call = op_at, .at = at_global, .kind = WRITE},
    {.name = "global_update", .call = op_at, .at = at_global, .kind = WRITE, .options = UPDATE},
    {.name = "cell_read", .call = op_cell, .kind = READ},
    {.name = "cell_write", .call = op_cell, .kind = WRITE},
    {.name = "cell_update", .call = op_cell, .kind = WRITE, .options = UPDATE},
    {.name = "method", .call = op_at, .at = at_method},
    {.name = "contains", .call = op_contains},
    {.name = "size", .call = op_at, .at = at_size},
    {.name = "iterate", .call = op_iterate},
    {.name = "advance", .call = op_at, .at = at_advance},
    {.name = "dynamic", .call = op_dynamic},
    {.name = "enter", .call = op_enter},
    {.name = "begin", .call = op_begin},
    {.name = "reads", .call = op_again, .kind = READ},
    {.name = "writes", .call = op_again, .kind = WRITE},
    {.name = "token", .call = op_token},
    {.name = "locals_", .call = op_locals},
    {.name = "slice_", .call = op_slice},
    {.name = "locking", .call = op_locking},
};
#define N_OPS (sizeof(ops) / sizeof(ops[0]))
static PyMethodDef op_defs[N_OPS];

static const Op *
op_called(PyObject *name)
{
    for (size_t i = 0; i < N_OPS; i++) {
        if (PyUnicode_CompareWithASCIIString(name, ops[i].name) == 0) {
            return &ops[i];
        }
    }
    PyErr_Format(PyExc_ValueError, "no such op: %R", name);
    return NULL;
}

/* ---- sites ------------------------------------------------------------------------------------------------------- */
static PyObject *
site_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *fields = PySequence_Tuple(((Site *)self)->info);
    PyObject *result = fields != NULL ? Py_BuildValue("O(Oi)", core.revive, fields, ((Site *)self)->number) : NULL;
    Py_XDECREF(fields);
    return result;
}

static PyMemberDef site_members[] = {
    {"info", Py_T_OBJECT_EX, offsetof(Site, info), Py_READONLY, NULL},
    {"number", Py_T_INT, offsetof(Site, number), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyMethodDef site_methods[] = {{"__reduce__", site_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static void
site_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);     /* reached only if api_site() failed: sites are immortal */
    Py_XDECREF(((Site *)self)->key);
    Py_XDECREF(((Site *)self)->info);
    free(((Site *)self)->partners);
    PyObject_Free(self);
    Py_DECREF(type);
}
static PyType_Slot site_slots[] = {
    {Py_tp_dealloc, site_dealloc}, {Py_tp_members, site_members}, {Py_tp_methods, site_methods}, {0, NULL}};
static PyType_Spec site_spec = {
    .name = "gilscope.Site", .basicsize = sizeof(Site),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, .slots = site_slots};

static bool
site_removes(const Site *site)
{
    return site->flags & DELETE || site->op->removes || (site->method != NULL && site->method->removes);
}

static bool
site_empties(const Site *site)
{
    const uint8_t effect = site->method != NULL ? site->method->effects[DICTS] : NO_EFFECT;
    return effect == EFFECT_CLEAR || effect == EFFECT_REMOVE_ANY;
}

/* Add the flags that the core derives.  A site may get flags from a later one: a store marks the read that guards it.  */
static void
site_learn(Site *site)
{
    uint32_t flags = site->flags;
    flags |= flags & (POLL | SPAN_READ) || site->n_partners > 0 ? OPENS_SLOWLY : 0;
    if (site_removes(site)) {
        flags |= REMOVES_ITEM | (site->n_partners > 0 ? REMOVES : 0);
    }
    if (site_empties(site)) {
        flags |= EMPTIES;
        atomic_store(&some_site_empties, true);
    }
    site_flags_add(site->number, flags);
    for (int32_t i = 0; i < site->n_partners && flags & GUARD; i++) {
        int32_t partner = site->partners[i];
        site_flags_add(partner, OPENS_SLOWLY | (flags & REMOVES ? GUARDED_REMOVE : GUARDED_STORE));
        pthread_mutex_lock(&sites_lock);
        Site *known_site = site_by_number(partner);
        if (known_site != NULL) {
            known_site->flags = site_flags(partner);
        }
        pthread_mutex_unlock(&sites_lock);
    }
    site_enter(site);
    site->flags = site_flags(site->number);
    trace_site(site);
}

static int
site_read_info(Site *site, PyObject *info)
{
    PyObject *op = PyObject_GetAttrString(info, "op");
    PyObject *flags = PyObject_GetAttrString(info, "flags");
    PyObject *partners = PyObject_GetAttrString(info, "partners");
    site->key = PyObject_GetAttrString(info, "key");
    PyObject *list = partners != NULL ? PySequence_Tuple(partners) : NULL;
    Py_XDECREF(partners);
    int failed = -1;
    if (site->key != NULL && !PyUnicode_CheckExact(site->key)) {
        PyErr_SetString(PyExc_TypeError, "the key of a site must be a str");
    }
    else if (op != NULL && flags != NULL && list != NULL && site->key != NULL && (site->op = op_called(op)) != NULL) {
        PyUnicode_InternInPlace(&site->key);
        site->flags = (uint32_t)PyLong_AsUnsignedLongMask(flags);
        site->n_partners = (int32_t)PyTuple_GET_SIZE(list);
        site->partners = must(calloc((size_t)site->n_partners + 1, sizeof(int32_t)));
        for (int32_t i = 0; i < site->n_partners; i++) {
            site->partners[i] = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(list, i));
        }
        failed = PyErr_Occurred() ? -1 : 0;
    }
    Py_XDECREF(op);
    Py_XDECREF(flags);
    Py_XDECREF(list);
    return failed;
}

static PyObject *
api_site(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *info;
    int number;
    if (!PyArg_ParseTuple(args, "Oi:site", &info, &number)) {
        return NULL;
    }
    if (number < 0 || number >= SITE_CHUNK * SITE_CHUNK) {
        PyErr_SetString(PyExc_ValueError, "no such site number");
        return NULL;
    }
    Site *site = PyObject_New(Site, core.site_type);
    if (site == NULL) {
        return NULL;
    }
    memset((char *)site + sizeof(PyObject), 0, sizeof(Site) - sizeof(PyObject));
    site->info = Py_NewRef(info);
    site->number = number;
    if (site_read_info(site, info) < 0) {
        Py_DECREF(site);
        return NULL;
    }
    site->method = site->op->at == at_method ? method_called(site->key) : NULL;
    site->function = site->op->at == at_size ? function_called(site->key) : NULL;
    make_immortal((PyObject *)site);
    if (site->key != NULL) {
        make_immortal(Py_NewRef(site->key));
    }
    if (site->op->stores_attribute) {
        stored_name_add(site->key);
    }
    site_learn(site);
    return (PyObject *)site;
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */
typedef struct { PyObject_HEAD Moment moment; TRACE_NUMBER } Clock;
static PyTypeObject *clock_type;

static PyObject *
clock_new(uint32_t uid, Moment moment)
{
    Clock *clock = PyObject_New(Clock, clock_type);
    if (clock == NULL) {
        base_drop(moment.base);
        return NULL;
    }
    clock->moment = moment;
#ifdef GILSCOPE_TRACE
    clock->traced = 0;
    trace("snapshot %u %u", uid, trace_number(&clock->traced));
#else
    (void)uid;
#endif
    atomic_fetch_add(&core.clocks, 1);
    return (PyObject *)clock;
}

static void
clock_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    base_drop(((Clock *)self)->moment.base);
    atomic_fetch_sub(&core.clocks, 1);
    PyObject_Free(self);
    Py_DECREF(type);
}
static PyType_Slot clock_slots[] = {{Py_tp_dealloc, clock_dealloc}, {0, NULL}};
static PyType_Spec clock_spec = {
    .name = "gilscope.Clock", .basicsize = sizeof(Clock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, .slots = clock_slots};

static PyObject *
api_snapshot(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Thread *thread = thread_get();
    Moment now = {base_ref(thread_base(thread)), thread_time(thread)};
    thread_advance(thread);
    set_concurrent(1);          /* a thread may start soon */
    return clock_new(thread->uid, now);
}

static PyObject *
api_join(PyObject *Py_UNUSED(module), PyObject *clock)
{
    if (Py_IS_TYPE(clock, clock_type)) {
        Thread *thread = thread_get();
        trace("join %u %u", thread->uid, trace_number(&((Clock *)clock)->traced));
        thread_join(thread, ((Clock *)clock)->moment.base, ((Clock *)clock)->moment.time, true);
        settle(thread);
    }
    Py_RETURN_NONE;
}

static PyObject *
api_release(PyObject *Py_UNUSED(module), PyObject *owner)
{
    if (is_active()) {
        Thread *thread = thread_get();
        sync_release(thread, sync_of(thread, owner, true));
    }
    Py_RETURN_NONE;
}

static PyObject *
api_acquire(PyObject *Py_UNUSED(module), PyObject *owner)
{
    if (is_active()) {
        Thread *thread = thread_get();
        Sync *sync = sync_of(thread, owner, false);
        if (sync != NULL) {
            sync_acquire(thread, sync, !is_tracked_lock(owner));
            settle(thread);
        }
    }
    Py_RETURN_NONE;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */
static PyObject *
api_thread_begin(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *announced, *clock;
    if (!PyArg_ParseTuple(args, "OO:thread_begin", &announced, &clock)) {
        return NULL;
    }
    Moment start = {NULL, 0};
    bool known_start = Py_IS_TYPE(clock, clock_type);
    if (known_start) {
        start = ((Clock *)clock)->moment;
    }
    Thread *outer = self_thread;
    Thread *replaced = NULL;
    if (outer != NULL && (atomic_load(&outer->ended) || (outer->automatic && !outer->noted && outer->outer == NULL))) {
        replaced = outer;       /* it has ended, or was attached automatically and has done nothing yet */
        outer = NULL;
    }
    Thread *thread = thread_make(outer, false, known_start ? &start : NULL);
    if (known_start) {
        trace("join %u %u", thread->uid, trace_number(&((Clock *)clock)->traced));
    }
    if (replaced != NULL) {
        thread_replace(replaced, thread);
    }
    return PyLong_FromUnsignedLong(thread->uid);
}

static PyObject *
api_thread_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Thread *thread = thread_get();
    uint32_t uid = thread->uid;
    return clock_new(uid, thread_finish(thread));
}

static PyObject *
api_thread_uid(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromUnsignedLong(thread_get()->uid);
}

static PyObject *
api_mute(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(thread_get()->muted++);
}

static PyObject *
api_restore(PyObject *Py_UNUSED(module), PyObject *level)
{
    long value = PyLong_AsLong(level);
    if (value == -1 && PyErr_Occurred()) {
        return NULL;
    }
    thread_get()->muted = (int)value;
    Py_RETURN_NONE;
}

/* Reset the state in the child of a fork, before anything else runs: the other threads are gone, and never release the
   locks of ours that they held.  Everything they did happened before, so the shadow state starts empty.  */
static void
forked(void)
{
    registry = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    sites_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    lock_sets.spin = frames.spin = wheres.spin = pairs_spin = origins_spin = (Spin){0};
#if FREE_THREADED
    hook_mutex = (PyMutex){0};
#endif
    hooks_locked = 0;
    if (core.exits) {
        return;
    }
    if (core.dead) {        /* objects still die, with the shadow state's locks */
        shadow_init();
        return;
    }
    Thread *self = self_thread;
    trace_open();
    trace_sites();
    for (Thread *one = self; one != NULL; one = one->outer) {
        trace("begin %u %d 1", one->uid, one->outer != NULL ? (int)one->outer->uid : -1);
    }
    for (int i = 0; i < atomic_load(&n_slots); i++) {
        Thread *thread = slots[i].thread;
        bool mine = false;
        for (Thread *one = self; one != NULL; one = one->outer) {
            mine = mine || one == thread;
        }
        if (thread != NULL && !mine) {
            retire(thread);
            slots[i].thread = NULL;
        }
    }
    shadow_init();
    memset(origins, 0, ORIGINS * sizeof(Origin));
    for (Thread *one = self; one != NULL; one = one->outer) {
        memset(one->cache, 0, sizeof(one->cache));
        memset(one->objects, 0, sizeof(one->objects));
        memset(one->opens_at, 0, sizeof(one->opens_at));
        memset(one->opens_in, 0, sizeof(one->opens_in));
        one->n_opens = one->free_open = 0;
        one->n_recent[0] = one->n_recent[1] = 0;
        one->attention &= ~(uint32_t)ATTENTION_POLLED;
        join_everybody(one);
    }
    if (self != NULL) {
        settle(self);
    }
}

static PyObject *
api_after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    watch_deaths();             /* if another thread was just replacing the hook; forked() has forgotten everything */
    Py_RETURN_NONE;
}

/* ---- locks, stacks, counts --------------------------------------------------------------------------------------- */
static PyObject *
api_locks_held(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Thread *thread = thread_get();
    forget_lost_locks(thread);
    PyObject *uids = PyTuple_New(thread->n_held);
    for (int i = 0; uids != NULL && i < thread->n_held; i++) {
        PyTuple_SET_ITEM(uids, i, PyLong_FromUnsignedLong(thread->held[thread->n_held - 1 - i].uid));
    }
    return uids;
}

/* Return (path, line, qualified name) of each frame, innermost first, without gilscope's own frames.  */
static PyObject *
places_of(uint32_t context)
{
    PyObject *places = PyList_New(0);
    for (int depth = 0; places != NULL && context != 0 && depth < DEEPEST; depth++) {
        Frame *frame = table_item(&frames, context);
        PyCodeObject *code = (PyCodeObject *)frame->code;
        context = frame->parent;
        if (core.folder != NULL && PyUnicode_Tailmatch(code->co_filename, core.folder, 0, PY_SSIZE_T_MAX, -1) == 1) {
            continue;
        }
        int line = PyCode_Addr2Line(code, frame->instruction);
        PyObject *place = Py_BuildValue("(OiO)", code->co_filename, line > 0 ? line : code->co_firstlineno,
                                        code->co_qualname);
        if (place == NULL || PyList_Append(places, place) < 0) {
            Py_CLEAR(places);
        }
        Py_XDECREF(place);
    }
    PyObject *result = places != NULL ? PyList_AsTuple(places) : NULL;
    Py_XDECREF(places);
    return result;
}

static PyObject *
api_stack(PyObject *Py_UNUSED(module), PyObject *context)
{
    unsigned long number = PyLong_AsUnsignedLong(context);
    if (PyErr_Occurred()) {
        return NULL;
    }
    return places_of(number < frames.n ? (uint32_t)number : 0);
}

static PyObject *
api_lock_origin(PyObject *Py_UNUSED(module), PyObject *arg)
{
    unsigned long uid = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *lock = NULL;
    spin_lock(&origins_spin);
    Origin origin = origins[uid % ORIGINS];
    bool alive = origin.sync != NULL && origin.sync->uid == uid;
#if LOCKS_NEED_REFS
    PyObject *ref = alive ? Py_XNewRef(origin.sync->ref) : NULL;
#else
    if (alive && deaths_watched() && atomic_load(&core.blind) == 0) {       /* otherwise the lock may be gone */
        lock = Py_NewRef(origin.lock);
    }
#endif
    spin_unlock(&origins_spin);
#if LOCKS_NEED_REFS
    if (ref != NULL && PyWeakref_GetRef(ref, &lock) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(ref);
#endif
    PyObject *stack = places_of(origin.context);
    PyObject *result = stack != NULL ? Py_BuildValue("(OO)", stack, lock != NULL ? lock : Py_None) : NULL;
    Py_XDECREF(stack);
    Py_XDECREF(lock);
    return result;
}

static PyObject *
api_object_number(PyObject *Py_UNUSED(module), PyObject *object)
{
    static _Atomic(uint32_t) last;
    Record *record = record_of(thread_get(), object, true);
    uint32_t number = record->number;
    if (number == 0) {
        uint32_t next = atomic_fetch_add(&last, 1) + 1;
        number = atomic_compare_exchange_strong(&record->number, &number, next) ? next : number;
    }
    return PyLong_FromUnsignedLong(number);
}

static PyObject *
api_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    uint32_t n;
    Pair *copy = pairs_copy(&n);
    PyObject *counts = PyDict_New();
    for (uint32_t i = 0; counts != NULL && i < n; i++) {
        Pair pair = copy[i];
        if (pair.key == 0) {
            continue;
        }
        uint64_t sites = pair.key - (UINT64_C(1) << 63);
        PyObject *key = Py_BuildValue("(II)", (unsigned int)(sites >> 32), (unsigned int)(sites >> 1 & 0x7fffffff));
        PyObject *before = key != NULL ? PyDict_GetItem(counts, key) : NULL;
        long total = (long)pair.count + (before != NULL ? PyLong_AsLong(before) : 0);
        PyObject *value = PyLong_FromLong(total);
        if (key == NULL || value == NULL || PyDict_SetItem(counts, key, value) < 0) {
            Py_CLEAR(counts);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    free(copy);
    return counts;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */
static void
know_builtins(void)
{
    PyObject *builtins = PyEval_GetBuiltins();
    known.getattr = Py_XNewRef(PyDict_GetItemString(builtins, "getattr"));
    known.setattr = Py_XNewRef(PyDict_GetItemString(builtins, "setattr"));
    known.hasattr = Py_XNewRef(PyDict_GetItemString(builtins, "hasattr"));
    known.delattr = Py_XNewRef(PyDict_GetItemString(builtins, "delattr"));
}

/* Set the Python objects that the core uses.  It does not import them: the program may have a package of the same name.  */
static PyObject *
api_configure(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *no_value, *revive, *folder;
    if (!PyArg_ParseTuple(args, "OOU:configure", &no_value, &revive, &folder)) {
        return NULL;
    }
    core.no_value = Py_NewRef(no_value);
    core.revive = Py_NewRef(revive);
    core.folder = Py_NewRef(folder);
    Py_RETURN_NONE;
}

static PyObject *
api_start(PyObject *Py_UNUSED(module), PyObject *handler)
{
    if (!watch_deaths()) {
        return NULL;
    }
    if (known.getattr == NULL) {
        know_builtins();
    }
    shadow_clear();
    trace("start");
    pairs_clear();
    atomic_store(&core.on_conflict, Py_NewRef(handler));    /* the one before is kept: a thread may be calling it */
    core.dead = atomic_load(&core.crowded);
    core.debug = getenv("GILSCOPE_RACE_DEBUG") != NULL && getenv("GILSCOPE_RACE_DEBUG")[0] != '\0';
    thread_get()->automatic = false;
    atomic_store(&core.started, 1);
    set_active();
    Py_RETURN_NONE;
}

static PyObject *
api_report_gaps(PyObject *Py_UNUSED(module), PyObject *handler)
{
    atomic_store(&core.on_gap, Py_NewRef(handler));         /* likewise */
    Py_RETURN_NONE;
}

static PyObject *
api_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    atomic_store(&core.started, 0);
    set_active();
    Py_RETURN_NONE;
}

/* Stop for good when the interpreter ends.  Daemon threads may still run and objects still die, so free nothing.  */
static PyObject *
at_exit(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    atomic_store(&core.started, 0);
    set_active();
    core.dead = core.exits = true;
    Py_RETURN_NONE;
}

/* ---- busy() ------------------------------------------------------------------------------------------------------ */
static PyTypeObject *busy_type;

static PyObject *
busy_enter(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    thread_get()->busy++;
    Py_RETURN_NONE;
}

static PyObject *
busy_exit(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    thread_get()->busy--;
    Py_RETURN_NONE;
}

static PyMethodDef busy_methods[] = {
    {"__enter__", busy_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))busy_exit, METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot busy_slots[] = {{Py_tp_methods, busy_methods}, {0, NULL}};
static PyType_Spec busy_spec = {
    .name = "gilscope.Busy", .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, .slots = busy_slots};

static PyObject *
api_busy(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyObject_CallNoArgs((PyObject *)busy_type);
}

/* alone(function, *args): call the function as if gilscope's frames were not below it on the stack.  */
static PyObject *
api_alone(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "alone() needs a function");
        return NULL;
    }
    PyThreadState *state = PyThreadState_Get();
    int depth = state->py_recursion_limit - state->py_recursion_remaining;     /* of our frames */
    state->py_recursion_remaining += depth;
#if PY_VERSION_HEX >= 0x030D0000
    struct _PyInterpreterFrame *below = state->current_frame;
    state->current_frame = NULL;
#else
    struct _PyInterpreterFrame *below = state->cframe->current_frame;
    state->cframe->current_frame = NULL;
#endif
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(n - 1), NULL);
    state->py_recursion_remaining -= depth;
#if PY_VERSION_HEX >= 0x030D0000
    state->current_frame = below;
#else
    state->cframe->current_frame = below;
#endif
    return result;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */
static PyMethodDef api[] = {
    {"site", api_site, METH_VARARGS, "The object that stands for a site in rewritten code."},
    {"start", api_start, METH_O, "Start tracking; on_conflict is called with each conflict."},
    {"report_gaps", api_report_gaps, METH_O, "Call on_gap(reason, count) when accesses go unchecked from now on."},
    {"hook_changed", (PyCFunction)(void (*)(void))api_hook_changed, METH_FASTCALL,
     "Hook deaths of objects again, after a function that may have replaced the hook."},
    {"stop", api_stop, METH_NOARGS, "Stop tracking."},
    {"release", api_release, METH_O, "Let later calls of acquire(owner) be ordered after this point."},
    {"acquire", api_acquire, METH_O, "Add the edges from all earlier calls of release(owner)."},
    {"snapshot", api_snapshot, METH_NOARGS, "Return the thread's present vector clock."},
    {"join", api_join, METH_O, "Add the edge from a clock that snapshot or thread_end returned."},
    {"mute", api_mute, METH_NOARGS, "Ignore this thread's locks until restore(level)."},
    {"restore", api_restore, METH_O, "Return to the muting level before mute."},
    {"wrap", (PyCFunction)(void (*)(void))api_wrap, METH_VARARGS | METH_KEYWORDS, "Return a callable that calls callbacks around it."},
    {"patch", api_patch, METH_VARARGS, "Set an attribute, also of an immutable type; return the function that undoes it."},
    {"track_locks", api_track_locks, METH_NOARGS, "Track Lock and RLock; return the function that ends it."},
    {"thread_begin", api_thread_begin, METH_VARARGS, "Start a thread that is ordered after a clock; return its uid."},
    {"thread_end", api_thread_end, METH_NOARGS, "End this thread, or the topmost logical one; return its final clock."},
    {"thread_uid", api_thread_uid, METH_NOARGS, "Return this thread's uid."},
    {"after_fork", api_after_fork, METH_NOARGS, "Continue in the child of a fork."},
    {"locks_held", api_locks_held, METH_NOARGS, "Return the uids of the locks held, innermost first."},
    {"lock_origin", api_lock_origin, METH_O, "Return the stack of a lock's first acquisition, and the lock if it still exists."},
    {"stack", api_stack, METH_O, "Return the callers of an access, innermost first."},
    {"object_number", api_object_number, METH_O, "Return a number that no other object has had."},
    {"counts", api_counts, METH_NOARGS, "Return the number of conflicts of each pair of sites."},
    {"busy", api_busy, METH_NOARGS, "Return a context in which this thread's accesses are ignored."},
    {"alone", (PyCFunction)(void (*)(void))api_alone, METH_FASTCALL, "Call a function with no frame below it."},
    {"configure", api_configure, METH_VARARGS, NULL},
    {"_at_exit", at_exit, METH_NOARGS, NULL},
    EXTENSION_FUNCTIONS
    {NULL, NULL, 0, NULL}};

static int
make_types(PyObject *module)
{
    const struct { PyTypeObject **place; PyType_Spec *spec; } all[] = {
        {&core.site_type, &site_spec}, {&clock_type, &clock_spec}, {&attribute_proxy, &attribute_proxy_spec},
        {&item_proxy, &item_proxy_spec}, {&method_proxy, &method_proxy_spec}, {&tracker_type, &tracker_spec},
        {&wrapped_type, &wrapped_spec}, {&busy_type, &busy_spec}, {&foreign_lock_type, &foreign_lock_spec},
        {&recording_type, &recording_spec},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        *all[i].place = (PyTypeObject *)PyType_FromModuleAndSpec(module, all[i].spec, NULL);
        if (*all[i].place == NULL) {
            return -1;
        }
        make_immortal((PyObject *)*all[i].place);
    }
    return 0;
}

static int
make_ops(PyObject *module)
{
    PyObject *made = PyDict_New();
    for (size_t i = 0; made != NULL && i < N_OPS; i++) {
        op_defs[i] = (PyMethodDef){ops[i].name, (PyCFunction)(void (*)(void))ops[i].call, METH_FASTCALL, NULL};
        PyObject *op = PyCFunction_New(&op_defs[i], NULL);
        if (op == NULL || PyDict_SetItemString(made, ops[i].name, op) < 0) {
            Py_CLEAR(made);
        }
        else {
            make_immortal(op);
        }
    }
    int failed = made == NULL ? -1 : PyModule_AddObjectRef(module, "ops", made);
    Py_XDECREF(made);
    return failed;
}

static int
call_at_exit(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *function = PyObject_GetAttrString(module, "_at_exit");
    PyObject *result = atexit != NULL && function != NULL
        ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static void
init_process(void)
{
    static bool done;
    if (done) {
        return;
    }
    done = true;
    trace_open();
    lock_sets_init();
    table_init(&frames);
    table_init(&wheres);
    shadow_init();
    origins = must(calloc(ORIGINS, sizeof(Origin)));
    pairs_mask = 255;
    pairs = must(calloc(pairs_mask + 1, sizeof(Pair)));
    pthread_key_create(&death_key, on_thread_death);
    pthread_atfork(NULL, NULL, forked);
}

static int
core_exec(PyObject *module)
{
    PyInterpreterState *here = PyInterpreterState_Get();
    if (core.interpreter != NULL && core.interpreter != here) {
        PyErr_SetString(PyExc_ImportError, "the race checker already runs in another interpreter of this process");
        return -1;
    }
    if (core.interpreter == here) {
        PyErr_SetString(PyExc_ImportError, "the race checker's core can be loaded once");
        return -1;
    }
    init_process();
    core.interpreter = here;
    core.prefix = PyUnicode_InternFromString("gilscope:");
    core.no_value = Py_NewRef(Py_None);     /* until api_configure() */
    core.raw_frames = raw_frames_agree() && getenv("GILSCOPE_RACE_PUBLIC_FRAMES") == NULL;
    if (core.prefix == NULL || check_raw_tables() < 0 || names_init() < 0 || make_types(module) < 0 || make_ops(module) < 0
        || call_at_exit(module) < 0) {
        return -1;
    }
    thread_get()->automatic = false;
    return PyModule_AddStringConstant(module, "name", "C");
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

static PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT, .m_name = "_core", .m_doc = "The data race checker's core.", .m_methods = api,
    .m_slots = core_slots};

PyMODINIT_FUNC
PyInit__core(void)
{
    return refuse_other_build() < 0 ? NULL : PyModuleDef_Init(&core_module);
}
