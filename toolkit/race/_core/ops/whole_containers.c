/* Ops that read a container as a whole: `in`, `len`, iteration; and `next` on iterators.  */

static void
note_membership(Thread *thread, PyObject *container, PyObject *key, bool found, const Site *site)
{
    switch (family_of(thread, container, names.contains)) {
    case DICT: case COUNTER:
        if (unlikely(site->flags & RELIES) && atomic_load_explicit(&some_site_empties, memory_order_relaxed)) {
            note_structure(thread, container, ITERATE, site, QUIET);
        }
        note_item(thread, container, key, READ, site, PRESENCE | (found ? TAKE : LOOK), NULL);
        break;
    case SET:
        note_item(thread, container, key, READ, site, PRESENCE | (found ? LOOK | TAKE : LOOK), NULL);
        break;
    case LIST: case DEQUE:
        note_structure(thread, container, SIZE, site, 0);
        if (found) {
            take_value(thread, container, key, STAYS);
        }
        break;
    default:
        break;
    }
}

static PyObject *
op_contains(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_contains, args, n, 3)) {
        return NULL;
    }
    int found = PySequence_Contains(args[1], args[0]);
    if (found < 0) {
        return NULL;
    }
    Thread *thread = noting_thread();
    if (thread != NULL) {
        note_membership(thread, args[1], args[0], found, last_site(args, n));
    }
    return Py_NewRef(found ? Py_True : Py_False);
}

/* ---- iteration --------------------------------------------------------------------------------------------------- */
enum Steps { STEP_KEYS, STEP_VALUES, STEP_ITEMS, STEP_INDEXES, STEP_ONCE,
             STEP_HAND_LEFT, STEP_HAND_RIGHT /* what `extend` is given */ };
typedef struct {
    PyObject_HEAD
    PyObject *native, *container;
    Site *site;
    enum Steps steps;
} Tracker;

static PyTypeObject *tracker_type;

static int
visit_dict(PyObject *object, void *place)
{
    if (*(PyObject **)place == NULL && PyDict_Check(object)) {
        *(PyObject **)place = object;
    }
    return 0;
}

/* The dict of keys(), values() or items(), borrowed.  Their `mapping` is only a proxy of it, while the garbage collector
   visits the dict itself, in any version.  */
static PyObject *
viewed_dict(PyObject *view)
{
    PyObject *dict = NULL;
    Py_TYPE(view)->tp_traverse(view, visit_dict, &dict);
    return dict;
}

/* The container that a loop over the iterable goes through, borrowed; a view's is its dict.  */
static PyObject *
iterated(Thread *thread, PyObject *iterable, enum Steps *steps)
{
    if (PyDictViewSet_Check(iterable) || PyDictValues_Check(iterable)) {
        *steps = PyDictKeys_Check(iterable) ? STEP_KEYS : PyDictValues_Check(iterable) ? STEP_VALUES : STEP_ITEMS;
        return viewed_dict(iterable);
    }
    enum Family family = family_of(thread, iterable, names.iter);
    *steps = family == DICT || family == SET ? STEP_KEYS : STEP_INDEXES;
    return family == DICT || family == SET || family == LIST || family == DEQUE ? iterable : NULL;
}

/* ---- effects on the container as a whole ---------------------------------------------------------------------------- */
/* What reads the container under a key of a site: a builtin, a function or a part of the syntax.  */
static const Function *
function_called(PyObject *name)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(name, functions[i].name) == 0) {
            return &functions[i];
        }
    }
    static const Function other = {"", EFFECT_SNAPSHOT, 0};
    return &other;
}

/* The kind of the container, of which a view may be read.  */
static enum Container
container_kind(PyObject *container, PyObject *view)
{
    if (PyDict_Check(container)) {
        return Py_TYPE(container)->tp_iter != PyDict_Type.tp_iter ? CONTAINER_ORDERED
            : view != container ? CONTAINER_VIEW : PyDict_CheckExact(container) ? CONTAINER_DICT : CONTAINER_SUBCLASS;
    }
    return PyAnySet_Check(container) ? CONTAINER_SET : PyList_Check(container) ? 0 : CONTAINER_DEQUE;
}

static inline Effect
effect_on(enum EffectName name, int in_steps, PyObject *container, PyObject *view)
{
    Effect effect = effects[name];
    if (FREE_THREADED && unlikely(in_steps != 0) && in_steps & container_kind(container, view)) {
        effect.kind = ITERATE;
    }
    return effect;
}

/* Going through the items of a dict or set reads only the keys, unless values are requested.  */
static bool
reads_values(PyObject *container, enum Steps steps)
{
    return steps != STEP_KEYS && !PyAnySet_Check(container);
}

static void
note_effect(Thread *thread, PyObject *container, enum Steps steps, Effect effect, const Site *site)
{
    int side = effect.side;
    note_structure(thread, container, effect.kind, site, side & SIDE_UNORDERED ? UNORDERED : 0);
    if (unlikely(site->flags & RELIES) && effect.kind == SIZE) {
        note_structure(thread, container, ITERATE, site, QUIET);
    }
    if (side & SIDE_HAND) {
        hand_unknown(thread, container);
    }
    if ((side & SIDE_TAKE && !(site->flags & SPAN_READ)) || (side & SIDE_TAKE_IF_POLLED && site->flags & POLL)) {
        take_all(thread, container);
    }
    if (side & SIDE_FORGET) {
        hands_clear(thread, container);
    }
    if ((side & SIDE_READ_VALUES && !PyAnySet_Check(container))
        || (side & SIDE_READ_ITEMS && reads_values(container, steps))) {
        note_whole(thread, container, site, NULL);
    }
}

static PyObject *
at_size(Thread *thread, PyObject *looked_at, Site *site)
{
    enum Steps steps;
    bool queue = family_of(thread, looked_at, names.qsize) == QUEUE;
    PyObject *container = queue ? NULL : iterated(thread, looked_at, &steps);
    if (container != NULL) {
        const Function *function = site->function;
        note_effect(thread, container, steps, effect_on(function->effect, function->in_steps, container, looked_at), site);
    }
    else if (queue || family_of(thread, looked_at, names.len) > NO_FAMILY) {
        note_structure(thread, looked_at, SIZE, site, 0);
    }
    return Py_NewRef(looked_at);
}

/* ---- trackers ---------------------------------------------------------------------------------------------------- */
static bool
is_itertool(PyTypeObject *type)
{
    return strncmp(type->tp_name, "itertools.", 10) == 0 && strcmp(type->tp_name, "itertools.count") != 0
        && strncmp(type->tp_name, "itertools._", 11) != 0 && strcmp(type->tp_name, "itertools.tee") != 0;
}

/* True if the object yields each item once, shared by all threads that advance it, and is no file or the like.  */
static bool
yields_once(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_iternext == NULL) {
        return false;
    }
    static const char *const iterators[] = {
        "list_iterator", "tuple_iterator", "dict_keyiterator", "dict_valueiterator", "dict_itemiterator",
        "set_iterator", "range_iterator", "longrange_iterator", "str_iterator", "str_ascii_iterator",
        "bytes_iterator", "list_reverseiterator", "_collections._deque_iterator"};
    if (type == &PyGen_Type || type == &PyMap_Type || type == &PyZip_Type || type == &PyFilter_Type
        || type == &PyEnum_Type || type == &PyReversed_Type) {
        return true;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE)) {
        return is_itertool(type);
    }
    for (size_t i = 0; i < sizeof(iterators) / sizeof(iterators[0]); i++) {
        if (strcmp(type->tp_name, iterators[i]) == 0) {
            return true;
        }
    }
    return is_itertool(type);
}

static PyObject *
track(PyObject *iterable, PyObject *container, enum Steps steps, Site *site)
{
    PyObject *native = steps == STEP_ONCE ? Py_NewRef(iterable) : PyObject_GetIter(iterable);
    Tracker *self = native != NULL ? PyObject_GC_New(Tracker, tracker_type) : NULL;
    if (self == NULL) {
        Py_XDECREF(native);
        return NULL;
    }
    self->native = native;
    self->container = Py_NewRef(container);
    self->site = site;
    self->steps = steps;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static PyObject *
op_iterate(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_iterate, args, n, 2)) {
        return NULL;
    }
    /* Not only when something is concurrent: the loop itself may start threads.  */
    if (!atomic_load_explicit(&core.started, memory_order_relaxed) || !is_noting(thread_get())) {
        return Py_NewRef(args[0]);
    }
    Thread *thread = thread_get();
    Site *site = last_site(args, n);
    enum Steps steps;
    PyObject *container = iterated(thread, args[0], &steps);
    if (container != NULL) {
        if (is_active()) {
            note_structure(thread, container, ITERATE, site, 0);
            if (reads_values(container, steps)) {
                note_whole(thread, container, site, NULL);
            }
        }
        return track(args[0], container, steps, site);
    }
    enum Family family = family_of(thread, args[0], names.iter);
    if (family > NO_FAMILY && family != COUNTER && family != QUEUE && is_active()) {     /* an array */
        PyObject *all = PySlice_New(NULL, NULL, NULL);
        if (all != NULL) {
            note_box(thread, args[0], family, all, READ, site, 0, NULL);
            Py_DECREF(all);
        }
    }
    return yields_once(args[0]) ? track(args[0], args[0], STEP_ONCE, site) : Py_NewRef(args[0]);
}

static void
take_step(Thread *thread, Tracker *self, PyObject *value)
{
    PyObject *container = self->container;
    switch (self->steps) {
    case STEP_ITEMS:
        if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 2) {
            return;
        }
        value = PyTuple_GET_ITEM(value, 0);
        /* fall through */
    case STEP_KEYS: {
        Record *record = record_of(thread, container, false);
        if (record != NULL && record->owner != thread->slot) {
            Key key = key_item(thread, value);
            spin_lock(&record->spin);
            trace("take_item %u %u %s", thread->uid, trace_number(&record->traced), trace_key(key).text);
            Cell *cell = record_find(record, key);
            if (cell != NULL) {
                take_cell(thread, record, cell);
            }
            spin_unlock(&record->spin);
        }
        break;
    }
    case STEP_VALUES:
        take_all(thread, container);
        break;
    default:
        take_value(thread, container, value, STAYS);
    }
}

static PyObject *
tracker_next(PyObject *object)
{
    Tracker *self = (Tracker *)object;
    Thread *thread = noting_thread();
    if (self->steps == STEP_ONCE) {
        if (thread != NULL) {
            note(thread, self->container, key_word(KEY_ITERATOR), WRITE, self->site, 0, NULL, NULL);
        }
        return Py_TYPE(self->native)->tp_iternext(self->native);
    }
    PyObject *value = Py_TYPE(self->native)->tp_iternext(self->native);
    if (self->steps >= STEP_HAND_LEFT) {
        if (value != NULL && thread != NULL) {
            hand_values(thread, self->container, &value, 1, self->steps == STEP_HAND_LEFT ? LEFT : RIGHT);
        }
        return value;
    }
    if (value != NULL && thread != NULL) {
        take_step(thread, self, value);
        note_structure(thread, self->container, ITERATE, self->site, 0);
    }
    return value;
}

static PyObject *
tracker_length_hint(PyObject *self, PyObject *Py_UNUSED(none))
{
    Py_ssize_t hint = PyObject_LengthHint(((Tracker *)self)->native, 0);
    return hint < 0 ? NULL : PyLong_FromSsize_t(hint);
}

static int
tracker_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Tracker *)self)->native);
    Py_VISIT(((Tracker *)self)->container);
    return 0;
}

static void
tracker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Tracker *)self)->native);
    Py_XDECREF(((Tracker *)self)->container);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef tracker_methods[] = {
    {"__length_hint__", tracker_length_hint, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot tracker_slots[] = {
    {Py_tp_dealloc, tracker_dealloc}, {Py_tp_traverse, tracker_traverse}, {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, tracker_next}, {Py_tp_methods, tracker_methods}, {0, NULL}};
static PyType_Spec tracker_spec = {
    .name = "gilscope.tracker", .basicsize = sizeof(Tracker), .flags = STAND_IN_FLAGS | Py_TPFLAGS_HAVE_GC,
    .slots = tracker_slots};

static PyObject *
at_advance(Thread *thread, PyObject *iterator, Site *site)
{
    if (yields_once(iterator)) {
        note(thread, iterator, key_word(KEY_ITERATOR), WRITE, site, 0, NULL, NULL);
    }
    return Py_NewRef(iterator);
}

/* ---- namespaces -------------------------------------------------------------------------------------------------- */
static bool
is_ours(PyObject *name)
{
    return PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) > 9
        && PyUnicode_READ_CHAR(name, 8) == ':' && PyUnicode_Tailmatch(name, core.prefix, 0, PY_SSIZE_T_MAX, -1) == 1;
}

static PyObject *
list_without_ours(PyObject *list)
{
    PyObject *kept = PyList_New(0);
    for (Py_ssize_t i = 0; kept != NULL && i < PyList_GET_SIZE(list); i++) {
        if (!is_ours(PyList_GET_ITEM(list, i)) && PyList_Append(kept, PyList_GET_ITEM(list, i)) < 0) {
            Py_CLEAR(kept);
        }
    }
    return kept;
}

static PyObject *
op_locals(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (n != 1 || !(PyList_CheckExact(args[0]) || PyMapping_Check(args[0]))) {
        PyErr_SetString(PyExc_TypeError, "locals_ takes a namespace or a list of names");
        return NULL;
    }
    if (PyList_CheckExact(args[0])) {
        return list_without_ours(args[0]);
    }
    PyObject *kept = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    if (kept == NULL || PyDict_Update(kept, args[0]) < 0) {
        Py_XDECREF(kept);
        return NULL;
    }
    PyObject *all = PyDict_Copy(kept);
    while (all != NULL && PyDict_Next(all, &at, &key, &value)) {
        if (is_ours(key) && PyDict_DelItem(kept, key) < 0) {
            Py_CLEAR(all);
            Py_CLEAR(kept);
            return NULL;
        }
    }
    Py_XDECREF(all);
    return kept;
}
