/* Reports of conflicts to the handler, for each pair of sites until it returns True.  */

typedef struct {
    Access first, second;
    uint64_t key;           /* owned; 0: that of the operation */
    bool span;              /* False: an order conflict */
    bool first_spans;       /* the first side has the span */
} Found;

#define MOST_FOUND 6

typedef struct { uint64_t key; uint32_t count; bool told; } Pair;
static Pair *pairs;
static uint32_t pairs_mask, n_pairs;
static Spin pairs_spin;

static Pair *
pair_find(uint64_t key)
{
    uint64_t at = mix(key, 3);
    while (pairs[at & pairs_mask].key != key && pairs[at & pairs_mask].key != 0) {
        at++;
    }
    return &pairs[at & pairs_mask];
}

static void
pairs_grow(void)
{
    Pair *old = pairs;
    uint32_t size = pairs_mask + 1;
    pairs_mask = 2 * size - 1;
    pairs = must(calloc(2 * size, sizeof(Pair)));
    for (uint32_t i = 0; i < size; i++) {
        if (old[i].key != 0) {
            *pair_find(old[i].key) = old[i];
        }
    }
    free(old);
}

static void
pairs_clear(void)
{
    spin_lock(&pairs_spin);
    memset(pairs, 0, ((size_t)pairs_mask + 1) * sizeof(Pair));
    n_pairs = 0;
    spin_unlock(&pairs_spin);
}

/* Return the table at one moment, for the caller to free; a thread that finds a conflict meanwhile may move its pairs.  */
static Pair *
pairs_copy(uint32_t *n)
{
    spin_lock(&pairs_spin);
    *n = pairs_mask + 1;
    Pair *copy = must(malloc(*n * sizeof(Pair)));
    memcpy(copy, pairs, *n * sizeof(Pair));
    spin_unlock(&pairs_spin);
    return copy;
}

static uint64_t
pair_key(const Found *found)
{
    uint64_t a = (uint32_t)where_at(found->first.where)->site, b = (uint32_t)where_at(found->second.where)->site;
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return (low << 32 | high << 1 | found->span) + (UINT64_C(1) << 63);     /* never 0 */
}

/* Count this conflict; return true if the handler wants no more reports of the pair.  */
static bool
pair_seen(uint64_t key)
{
    spin_lock(&pairs_spin);
    Pair *pair = pair_find(key);
    if (pair->key == 0) {
        pair->key = key;
        if (++n_pairs > pairs_mask / 2) {
            pairs_grow();
            pair = pair_find(key);
        }
    }
    pair->count++;
    bool told = pair->told;
    spin_unlock(&pairs_spin);
    return told;
}

/* The locks of a set; (0,) if they are unknown.  */
static PyObject *
uids_tuple(uint32_t locks)
{
    const LockSet *set = lock_set(locks);
    uint32_t n = locks == UNKNOWN_LOCKS ? 1 : set->n < SET_UIDS ? set->n : SET_UIDS;
    PyObject *uids = PyTuple_New(n);
    for (uint32_t i = 0; uids != NULL && i < n; i++) {
        PyTuple_SET_ITEM(uids, i, PyLong_FromUnsignedLong(set->uids[i]));
    }
    return uids;
}

static PyObject *
raw_access(Access access, bool spans)
{
    Where *where = where_at(access.where);
    return Py_BuildValue("(IiIIN i)", uid_of(access.epoch), where->site, where->kind, where->context,
                         uids_tuple(where->locks), spans ? where->span_site : -1);
}

static PyObject *
key_object(uint64_t word, PyObject *known)
{
    if (known != NULL) {
        return Py_NewRef(known);
    }
    switch (KEY_TAG(word)) {
    case KEY_VALUE: case KEY_ATTR: case KEY_CELL:
        return Py_NewRef((PyObject *)KEY_POINTER(word));
    case KEY_INT:
        return PyLong_FromLongLong(key_as_int(word));
    default:
        Py_RETURN_NONE;
    }
}

static const char *
key_part(uint64_t word)
{
    switch (KEY_TAG(word)) {
    case KEY_ATTR: return "attr";
    case KEY_CELL: return "cell";
    case KEY_PART: return word == KEY_STRUCTURE ? "structure" : "iterator";
    default: return "item";
    }
}

static bool
hear(PyObject *conflict)
{
    PyObject *handler = atomic_load(&core.on_conflict);     /* never freed */
    if (handler == NULL || conflict == NULL) {
        return false;
    }
    PyObject *enough = call_ours(handler, &conflict, 1, NULL);
    bool is_enough = enough != NULL && PyObject_IsTrue(enough) == 1;
    Py_XDECREF(enough);
    return is_enough;
}

/* True if findings made since `blind` was read may be reported: the shadow state did not belong to dead objects.  */
static bool
trustworthy(uint32_t blind)
{
    if (unlikely(!deaths_watched())) {
        recover_hook();
    }
    return atomic_load(&core.blind) == blind;
}

/* Errors of our handlers must not reach the program.  */
static void
handler_failed(PyObject *handler)
{
    if (!PyErr_Occurred()) {
        return;
    }
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();       /* meant for the program: once more, after this op */
    }
    else if (core.debug) {
        PyErr_WriteUnraisable(handler);
    }
    PyErr_Clear();
}

/* Report that races may be missed from now on: "deaths", accesses to `count` objects were forgotten; "threads", there were
   more than `count` threads at a time, and checking has stopped.  Nothing may be locked.  */
static void
tell_gap(const char *reason, uint32_t count)
{
    PyObject *handler = atomic_load(&core.on_gap);
    if (handler == NULL) {
        return;
    }
    Thread *thread = thread_get();
    PyObject *error = PyErr_GetRaisedException();
    thread->busy++;
    PyObject *args[2] = {PyUnicode_FromString(reason), PyLong_FromUnsignedLong(count)};
    PyObject *done = args[0] != NULL && args[1] != NULL ? call_ours(handler, args, 2, NULL) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(args[0]);
    Py_XDECREF(args[1]);
    handler_failed(handler);
    thread->busy--;
    PyErr_SetRaisedException(error);
}

/* Report a conflict, with nothing locked; the accesses of this thread in the handler are not tracked.  */
static void
tell(Thread *thread, const Found *found, PyObject *owner, uint64_t word, PyObject *key, PyObject *value)
{
    uint64_t pair = pair_key(found);
    if (pair_seen(pair)) {
        return;
    }
    PyObject *error = PyErr_GetRaisedException();
    thread->busy++;
    PyObject *conflict = Py_BuildValue(
        "(sOsNNNO)", found->span ? "span" : "order", owner, key_part(word), key_object(word, key),
        raw_access(found->first, found->span && found->first_spans),
        raw_access(found->second, found->span && !found->first_spans), value != NULL ? value : core.no_value);
    bool enough = hear(conflict);
    Py_XDECREF(conflict);
    handler_failed(core.on_conflict);
    thread->busy--;
    PyErr_SetRaisedException(error);
    if (enough) {
        spin_lock(&pairs_spin);
        pair_find(pair)->told = true;
        spin_unlock(&pairs_spin);
    }
}
