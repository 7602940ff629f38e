/* Ops for `c[k]`: they do what the program does, with the same exceptions, and track it.

   An insertion is tracked before it is done, a load afterwards, so that a thread that sees an item finds the clock of
   its insertion.  */

static inline void
note_structure(Thread *thread, PyObject *container, int kind, const Site *site, int options)
{
    note(thread, container, key_word(KEY_STRUCTURE), kind, site, options, NULL, NULL);
}

static inline void
note_item(Thread *thread, PyObject *container, PyObject *key, int kind, const Site *site, int options, PyObject *value)
{
    note(thread, container, key_item(thread, key), kind, site, options, key, value);
}

/* Return 1 if a dict or set has no such key, 0 if it has, and -1 if only code of the program can tell.  */
static int
absent(PyObject *container, PyObject *key)
{
    int has = has_key(container, key);
    return has < 0 ? -1 : !has;
}

static void
raise_key_error(PyObject *key)
{
    PyObject *args = PyTuple_Pack(1, key);      /* a tuple as the key must not be taken for the arguments */
    if (args != NULL) {
        PyErr_SetObject(PyExc_KeyError, args);
        Py_DECREF(args);
    }
}

/* d[k] of an exact dict, without its KeyError.  */
static inline int
dict_get(PyObject *dict, PyObject *key, PyObject **value)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyDict_GetItemRef(dict, key, value);
#else
    *value = Py_XNewRef(PyDict_GetItemWithError(dict, key));
    return *value != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
#endif
}

static void
note_missed(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options)
{
    PyObject *error = PyErr_GetRaisedException();
    note_item(thread, container, key, READ, site, options | LOOK, NULL);
    PyErr_SetRaisedException(error);
}

static inline void
note_got(Thread *thread, PyObject *container, PyObject *key, PyObject *value, const Site *site, int options)
{
    note_item(thread, container, key, READ, site, options | (site->flags & EXPECTED ? 0 : TAKE), value);
}

static void
note_insert(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options, PyObject *value)
{
    note_structure(thread, container, GROW, site, 0);
    note_item(thread, container, key, WRITE, site, options | HAND | PRESENCE, value);
}

/* An insertion that keeps what another thread has inserted before.  */
static void
note_default(Thread *thread, PyObject *container, PyObject *key, const Site *site)
{
    int missing = absent(container, key);
    if (missing == 1) {
        note_structure(thread, container, GROW, site, 0);
    }
    note_item(thread, container, key, ATOMIC, site, missing != 0 ? HAND : 0, NULL);
}

#if PY_VERSION_HEX >= 0x030D0000
static PyObject *
default_keep(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options, PyObject *value)
{
    note_default(thread, container, key, site);
    PyObject *kept = NULL;
    PyDict_SetDefaultRef(container, key, value, &kept);
    Py_DECREF(value);
    if (kept != NULL) {
        note_item(thread, container, key, READ, site, options & OWN ? OWN | TAKE : LOOK | TAKE | QUIET, NULL);
    }
    return kept;
}
#endif

/* What defaultdict.__missing__ does, with a note between making the value and storing it.  */
static PyObject *
default_make(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options)
{
    PyObject *factory = base_attribute(known.default_dict, "default_factory", container);
    bool makes = factory != NULL && factory != Py_None;
    if (!makes || !ATOMIC_DEFAULTDICT_MISSING) {
        note_missed(thread, container, key, site, ATOMIC_DEFAULTDICT_MISSING ? options : options | OWN);
    }
    if (!makes) {
        Py_XDECREF(factory);
        return PyErr_Occurred() ? NULL : PyObject_GetItem(container, key);
    }
    PyObject *value = PyObject_CallNoArgs(factory);
    Py_DECREF(factory);
#if PY_VERSION_HEX >= 0x030D0000
    if (value != NULL && ATOMIC_DEFAULTDICT_MISSING) {
        return default_keep(thread, container, key, site, options, value);
    }
#endif
    if (value != NULL) {
        note_insert(thread, container, key, site, options | OWN, value);
        if (PyObject_SetItem(container, key, value) < 0) {
            Py_CLEAR(value);
        }
    }
    return value;
}

static PyObject *
load_key_of_subclass(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options)
{
    PyObject *missing = type_lookup(Py_TYPE(container), names.missing);
    Py_XDECREF(missing);        /* only compared */
    if (missing != NULL && missing == known.default_missing) {
        PyObject *value;
        int found = dict_get(container, key, &value);
        if (found == 0) {
            return default_make(thread, container, key, site, options);
        }
        if (found > 0) {        /* where it may store, too, the load opens a span */
            note_got(thread, container, key, value, site, ATOMIC_DEFAULTDICT_MISSING ? options : options | OWN);
        }
        return value;
    }
    PyObject *value = PyObject_GetItem(container, key);
    if (value == NULL) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) {
            note_missed(thread, container, key, site, options);
        }
    }
    else if (missing != NULL && absent(container, key) == 1) {
        note_missed(thread, container, key, site, options);
    }
    else {
        note_got(thread, container, key, value, site, options);
    }
    return value;
}

static PyObject *
load_key(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options)
{
    if (!PyDict_CheckExact(container)) {
        return load_key_of_subclass(thread, container, key, site, options);
    }
    PyObject *value;
    int found = dict_get(container, key, &value);
    if (found > 0) {
        note_got(thread, container, key, value, site, options);
    }
    else if (found == 0) {
        note_missed(thread, container, key, site, options);
        raise_key_error(key);
    }
    return value;
}

/* A slice of a list reads its items.  */
static void
note_slice(Thread *thread, PyObject *container, PyObject *key, const Site *site)
{
    const PySliceObject *slice = (PySliceObject *)key;
    Py_ssize_t start, stop, step, length = own_length(container);
    bool plain = plain_bound(slice->start) && plain_bound(slice->stop) && plain_bound(slice->step)
        && PySlice_Unpack(key, &start, &stop, &step) == 0;
    PyErr_Clear();
    if (!plain || PySlice_AdjustIndices(length, &start, &stop, step) >= length) {
        note_whole(thread, container, site, NULL);
        return;
    }
    int64_t range[3] = {start, stop, step};
    note_whole(thread, container, site, range);
}

static void
note_loaded_index(Thread *thread, PyObject *container, PyObject *key, PyObject *value, const Site *site, int options)
{
    int64_t index;
    if (PySlice_Check(key)) {
        note_structure(thread, container, SIZE, site, options);
        if (!(site->flags & SPAN_READ)) {
            take_all(thread, container);
        }
        note_slice(thread, container, key, site);
    }
    else if (plain_index(key, &index)) {
        index += index < 0 ? own_length(container) : 0;
        note(thread, container, key_int(index), READ, site, options, NULL, value);
        take_value(thread, container, value, STAYS);
    }
}

/* c[k].  `options`: OWN for a stand-in.  */
static PyObject *
load_item(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options)
{
    enum Family family = family_of(thread, container, names.getitem);
    if (family == DICT || family == COUNTER) {
        return load_key(thread, container, key, site, options);
    }
    PyObject *value = PyObject_GetItem(container, key);
    if (value == NULL || family == NO_FAMILY || family == SET) {
        return value;
    }
    if (site->flags & RELIES && (family == LIST || family == DEQUE)) {
        note_structure(thread, container, ITERATE, site, QUIET);
    }
    if (family == LIST || family == DEQUE) {
        note_loaded_index(thread, container, key, value, site, options);
    }
    else if (family == ENVIRON) {
        note_item(thread, container, key, READ, site, options, NULL);
    }
    else {
        note_box(thread, container, family, key, READ, site, options, NULL);
    }
    return value;
}

static int
store_key(Thread *thread, PyObject *container, PyObject *key, PyObject *value, const Site *site, int options)
{
    int new = absent(container, key);
    if (new == 1) {
        note_insert(thread, container, key, site, options, value);
    }
    else {
        note_item(thread, container, key, WRITE, site, options | (new < 0 ? HAND | PRESENCE : 0), value);
    }
    if (new >= 0) {
        return PyDict_CheckExact(container) ? PyDict_SetItem(container, key, value)
                                            : PyObject_SetItem(container, key, value);
    }
    Py_ssize_t before = PyDict_Size(container);
    int failed = PyObject_SetItem(container, key, value);
    if (failed == 0 && PyDict_Size(container) > before) {
        note_structure(thread, container, GROW, site, 0);
    }
    return failed;
}

static void
note_stored_index(Thread *thread, PyObject *container, PyObject *key, PyObject *value, const Site *site, int options)
{
    int64_t index;
    if (PySlice_Check(key)) {
        note_structure(thread, container, RESHAPE, site, options);
    }
    else if (plain_index(key, &index)) {
        index += index < 0 ? own_length(container) : 0;
        note(thread, container, key_int(index), WRITE, site, options, NULL, value);
    }
}

/* c[k] = v  */
static int
store_item(Thread *thread, PyObject *container, PyObject *key, PyObject *value, const Site *site, int options)
{
    enum Family family = family_of(thread, container, names.setitem);
    if (family == DICT) {
        return store_key(thread, container, key, value, site, options);
    }
    if (family == LIST || family == DEQUE) {
        note_stored_index(thread, container, key, value, site, options);
    }
    else if (family == ENVIRON) {
        note_item(thread, container, key, WRITE, site, options, value);
    }
    else if (family != NO_FAMILY && family != SET && family != COUNTER && family != QUEUE) {
        note_box(thread, container, family, key, WRITE, site, options, value);
    }
    return PyObject_SetItem(container, key, value);
}

/* del c[k]  */
static int
delete_item(Thread *thread, PyObject *container, PyObject *key, const Site *site, int options)
{
    enum Family family = family_of(thread, container, names.delitem);
    bool sequence = family == LIST || family == DEQUE || family == BYTEARRAY || family == ARRAY;
    if (family == DICT || family == COUNTER) {
        if (absent(container, key) != 1) {
            note_item(thread, container, key, WRITE, site, options | UNHAND | PRESENCE, NULL);
            note_structure(thread, container, SHRINK, site, 0);
        }
    }
    else if (family == ENVIRON) {
        note_item(thread, container, key, WRITE, site, options, NULL);
    }
    else if (sequence) {
        note_structure(thread, container, family == LIST && PySlice_Check(key) ? RESHAPE : SHRINK, site, options);
    }
    return PyObject_DelItem(container, key);
}

static PyObject *
op_item_read(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_item_read, args, n, 3)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    return thread == NULL ? PyObject_GetItem(args[0], args[1])
                          : load_item(thread, args[0], args[1], last_site(args, n), 0);
}

static PyObject *
op_item_write(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_item_write, args, n, 4)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    int failed = thread == NULL ? PyObject_SetItem(args[1], args[2], args[0])
                                : store_item(thread, args[1], args[2], args[0], last_site(args, n), 0);
    return failed < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
op_item_delete(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_item_delete, args, n, 3)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    int failed = thread == NULL ? PyObject_DelItem(args[0], args[1])
                                : delete_item(thread, args[0], args[1], last_site(args, n), 0);
    return failed < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
op_slice(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    return PyObject_Vectorcall((PyObject *)&PySlice_Type, args, (size_t)n, NULL);
}

/* ---- stand-ins: an object between the load and the store of `x.a += f()`, or where `c[k]` is a target --------------- */
typedef struct { PyObject_HEAD PyObject *object; Site *site; enum EffectName effect; } StandIn;

static PyObject *
stand_in(PyTypeObject *type, PyObject *object, Site *site)
{
    StandIn *self = PyObject_New(StandIn, type);
    if (self != NULL) {
        self->object = Py_NewRef(object);
        self->site = site;      /* immortal */
        self->effect = NO_EFFECT;
    }
    return (PyObject *)self;
}

static void
stand_in_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((StandIn *)self)->object);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
at_item_proxy(Thread *Py_UNUSED(thread), PyObject *container, Site *site)
{
    return stand_in(item_proxy, container, site);
}

static PyObject *
item_proxy_get(PyObject *self, PyObject *key)
{
    StandIn *proxy = (StandIn *)self;
    Thread *thread = noting_thread();
    return thread == NULL ? PyObject_GetItem(proxy->object, key)
                          : load_item(thread, proxy->object, key, proxy->site, OWN);
}

static int
item_proxy_set(PyObject *self, PyObject *key, PyObject *value)
{
    StandIn *proxy = (StandIn *)self;
    Thread *thread = noting_thread();
    if (thread == NULL) {
        return value != NULL ? PyObject_SetItem(proxy->object, key, value) : PyObject_DelItem(proxy->object, key);
    }
    return value != NULL ? store_item(thread, proxy->object, key, value, proxy->site, OWN)
                         : delete_item(thread, proxy->object, key, proxy->site, OWN);
}

static PyObject *
at_attr_proxy(Thread *Py_UNUSED(thread), PyObject *object, Site *site)
{
    return stand_in(attribute_proxy, object, site);
}

static PyObject *
attribute_proxy_get(PyObject *self, PyObject *name)
{
    StandIn *proxy = (StandIn *)self;
    Thread *thread = noting_thread();
    if (thread == NULL) {
        return PyObject_GetAttr(proxy->object, name);
    }
    Place place = place_of_attribute(thread, proxy->object, name, false);
    if (!place.runs_code) {
        note_place(thread, place, READ, proxy->site, OWN, NULL);
        return PyObject_GetAttr(proxy->object, name);
    }
    uint64_t position = recording_begin(thread);
    PyObject *value = PyObject_GetAttr(proxy->object, name);
    uint64_t since = recording_end(thread, position);
    if (value != NULL) {
        again(thread, proxy->site, since, 0);
    }
    return value;
}

static int
attribute_proxy_set(PyObject *self, PyObject *name, PyObject *value)
{
    StandIn *proxy = (StandIn *)self;
    Thread *thread = noting_thread();
    if (thread == NULL) {
        return PyObject_SetAttr(proxy->object, name, value);
    }
    Place place = place_of_attribute(thread, proxy->object, name, true);
    if (!place.runs_code) {
        note_place(thread, place, WRITE, proxy->site, OWN, value);
        return PyObject_SetAttr(proxy->object, name, value);
    }
    uint64_t position = recording_begin(thread);
    int failed = PyObject_SetAttr(proxy->object, name, value);
    uint64_t since = recording_end(thread, position);
    if (!failed) {
        again(thread, proxy->site, since, 1);
    }
    return failed;
}

static PyType_Slot attribute_proxy_slots[] = {
    {Py_tp_dealloc, stand_in_dealloc}, {Py_tp_getattro, attribute_proxy_get}, {Py_tp_setattro, attribute_proxy_set},
    {0, NULL}};
static PyType_Slot item_proxy_slots[] = {
    {Py_tp_dealloc, stand_in_dealloc}, {Py_mp_subscript, item_proxy_get}, {Py_mp_ass_subscript, item_proxy_set},
    {0, NULL}};
#define STAND_IN_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE)
static PyType_Spec attribute_proxy_spec = {
    .name = "gilscope.attribute_proxy", .basicsize = sizeof(StandIn), .flags = STAND_IN_FLAGS,
    .slots = attribute_proxy_slots};
static PyType_Spec item_proxy_spec = {
    .name = "gilscope.item_proxy", .basicsize = sizeof(StandIn), .flags = STAND_IN_FLAGS, .slots = item_proxy_slots};
