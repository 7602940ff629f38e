/* Ops for attributes, globals and closure variables.  The program does the native operation; these ops track it
   and return the object (or the value) unchanged.  */

static PyTypeObject *attribute_proxy, *item_proxy, *method_proxy;

static PyObject *stand_in(PyTypeObject *type, PyObject *object, Site *site);

/* True if the thread's accesses are tracked: not those of the checker, nor of a primitive, whose locks are not either.  */
static inline bool
is_noting(const Thread *thread)
{
    return likely((thread->busy | thread->muted) == 0);
}

/* The calling thread if its accesses are tracked, else NULL.  */
static inline Thread *
noting_thread(void)
{
    if (!is_active()) {
        /* The first op of an unannounced thread ends the phase with a single thread.  */
        if (likely(self_thread != NULL) || !atomic_load_explicit(&core.started, memory_order_relaxed)) {
            return NULL;
        }
    }
    Thread *thread = thread_get();
    return is_noting(thread) ? thread : NULL;
}

/* True if an op was called with `wanted` arguments, the last of which is one of its sites.  */
static inline bool
check_op(OpCall op, PyObject *const *args, Py_ssize_t n, Py_ssize_t wanted)
{
    if (unlikely(n != wanted || !Py_IS_TYPE(args[n - 1], core.site_type) || ((Site *)args[n - 1])->op->call != op)) {
        PyErr_SetString(PyExc_TypeError, "an op of gilscope takes other arguments: code rewritten for another core?");
        return false;
    }
    return true;
}

static inline Site *
last_site(PyObject *const *args, Py_ssize_t n)
{
    return (Site *)args[n - 1];
}

static inline void
note_place(Thread *thread, Place place, int kind, const Site *site, int options, PyObject *value)
{
    if (likely(place.owner != NULL)) {
        note(thread, place.owner, place.key, kind, site, options, NULL, value);
    }
    if (unlikely(place.own != NULL)) {
        note(thread, place.own, place.key, kind, site, options, NULL, value);
    }
}

/* Fast path: most attributes are the object's own and are in the thread's cache, so their class is not examined.  */
static inline bool
noted_attribute(Thread *thread, PyObject *object, const Site *site, uint32_t modes)
{
    uint64_t word = (uintptr_t)site->key | KEY_ATTR;
    Cached *cached = cache_place(thread, object, mix(word, 1));
    return cached->object == object && cached->key == word && cached->epoch == thread->epoch
        && (cached->modes & modes) == modes && thread->attention == 0
        && atomic_load_explicit(&cached->record->serial, memory_order_relaxed) == cached->serial && !has_news(cached);
}

/* The ops on one object or value: return it, or what stands for it.  */
static PyObject *
op_at(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_at, args, n, 2)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    Site *site = last_site(args, n);
    return thread != NULL ? site->op->at(thread, args[0], site) : Py_NewRef(args[0]);
}

static PyObject *
at_attr_read(Thread *thread, PyObject *object, Site *site)
{
    if (site->flags & (OPENS_SLOWLY | AUGMENTED) || !noted_attribute(thread, object, site, 1u << READ)) {
        note_place(thread, place_of_attribute(thread, object, site->key, false), READ, site, 0, NULL);
    }
    return Py_NewRef(object);
}

static PyObject *
at_attr_write(Thread *thread, PyObject *object, Site *site)
{
    note_place(thread, place_of_attribute(thread, object, site->key, true), WRITE, site, 0, NULL);
    return Py_NewRef(object);
}

/* True if the attribute is a property with getter and setter.  */
static bool
note_attr_update(Thread *thread, PyObject *object, const Site *site)
{
    Place stored = place_of_attribute(thread, object, site->key, true);
    if (stored.owner != NULL) {
        Place loaded = place_of_attribute(thread, object, site->key, false);
        if (loaded.owner != NULL && loaded.owner != object) {      /* the class has the first value */
            loaded.own = NULL;
            note_place(thread, loaded, READ, site, QUIET, NULL);
        }
        note_place(thread, stored, WRITE, site, UPDATE, NULL);
    }
    return stored.runs_code;
}

static PyObject *
at_attr_update(Thread *thread, PyObject *object, Site *site)
{
    bool noted = !(site->flags & OPENS_SLOWLY) && noted_attribute(thread, object, site, 1u << WRITE | CACHED_SPAN);
    return !noted && note_attr_update(thread, object, site) ? stand_in(attribute_proxy, object, site)
                                                             : Py_NewRef(object);
}

static PyObject *
op_attr_store(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_attr_store, args, n, 3)) {
        return NULL;
    }
    Site *site = last_site(args, n);
    Thread *thread = noting_thread();
    if (thread != NULL) {
        note_place(thread, place_of_attribute(thread, args[1], site->key, true), WRITE, site, 0, args[0]);
    }
    if (PyObject_SetAttr(args[1], site->key, args[0]) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- globals and closure variables ------------------------------------------------------------------------------- */
static inline PyObject *
note_variable(Thread *thread, PyObject *owner, Key key, PyObject *value, const Site *site)
{
    int options = site->op->options;
    bool kept = !(options & UPDATE) && !(site->flags & DELETE);
    note(thread, owner, key, site->op->kind, site, options, NULL, kept ? value : NULL);
    return Py_NewRef(value);
}

static PyObject *
at_global(Thread *thread, PyObject *value, Site *site)
{
    return note_variable(thread, calling_globals(), key_item(thread, site->key), value, site);
}

static PyObject *
op_cell(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_cell, args, n, 3)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    Site *site = last_site(args, n);
    return thread == NULL ? Py_NewRef(args[0])
        : note_variable(thread, args[1], key_word((uintptr_t)site->key | KEY_CELL), args[0], site);
}

static PyObject *
op_token(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    return PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */
static void
note_dynamic(Thread *thread, PyObject *function, const Site *site, PyObject *const *args, Py_ssize_t n)
{
    bool load = function == known.getattr || function == known.hasattr;
    bool store = function == known.setattr || function == known.delattr;
    if (!(load || store) || n < (function == known.setattr ? 3 : 2) || !PyUnicode_CheckExact(args[1])) {
        return;
    }
    PyObject *name = Py_NewRef(args[1]);
    PyUnicode_InternInPlace(&name);
    note_place(thread, place_of_attribute(thread, args[0], name, store), load ? READ : WRITE, site, 0,
               function == known.setattr ? args[2] : NULL);
    Py_DECREF(name);
}

static PyObject *
op_dynamic(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (n < 2 || !check_op(op_dynamic, args, 2, 2)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    if (thread != NULL) {
        note_dynamic(thread, args[0], (Site *)args[1], args + 2, n - 2);
    }
    return PyObject_Vectorcall(args[0], args + 2, (size_t)(n - 2), NULL);
}
