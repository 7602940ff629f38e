/* Op `method`: calls of container methods, tracked by the effect of the builtin type's method.

   If the key or the value matters, the op returns a proxy whose method makes the call, so that arguments are evaluated
   after the method is looked up, as in the program.  */

typedef PyObject *(*Act)(Thread *, PyObject *container, const Site *, PyObject *name, PyObject *const *args,
                         Py_ssize_t n, PyObject *kwnames);

enum { SNAPSHOT = 100, NOTHING = 101 };
typedef struct {
    const char *name;
    Act dict, set, sequence, counter;                   /* where arguments or results matter */
    int dict_kind, set_kind, sequence_kind, array_kind, queue_kind;     /* else: an act on the structure */
} Method;

static const Method methods[];

/* The native method, whatever it is given.  */
static PyObject *
call_native(PyObject *container, PyObject *name, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    Py_ssize_t all = n + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *few[8];
    PyObject **with_self = all < 8 ? few : PyMem_Malloc((size_t)(all + 1) * sizeof(PyObject *));
    if (with_self == NULL) {
        return PyErr_NoMemory();
    }
    with_self[0] = container;
    memcpy(with_self + 1, args, (size_t)all * sizeof(PyObject *));
    PyObject *result = PyObject_VectorcallMethod(name, with_self, (size_t)(n + 1), kwnames);
    if (with_self != few) {
        PyMem_Free(with_self);
    }
    return result;
}

/* The argument called `key`, by position or name; borrowed.  */
static PyObject *
key_argument(PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    if (n > 0) {
        return args[0];
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "key") == 0) {
            return args[n + i];
        }
    }
    return NULL;
}

/* ---- dict -------------------------------------------------------------------------------------------------------- */
static PyObject *
act_get(Thread *thread, PyObject *dict, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
        PyObject *kwnames)
{
    if (kwnames != NULL || n < 1 || n > 2) {
        return call_native(dict, name, args, n, kwnames);
    }
    PyObject *value;
    int found = dict_get(dict, args[0], &value);
    if (found > 0) {
        note_got(thread, dict, args[0], value, site, 0);
    }
    else if (found == 0) {
        note_missed(thread, dict, args[0], site, 0);
        value = Py_NewRef(n > 1 ? args[1] : Py_None);
    }
    return value;
}

static PyObject *
act_setdefault(Thread *thread, PyObject *dict, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
               PyObject *kwnames)
{
    PyObject *key = key_argument(args, n, kwnames);
    if (key == NULL) {
        return call_native(dict, name, args, n, kwnames);
    }
    int missing = absent(dict, key);
    if (missing == 1) {
        note_structure(thread, dict, GROW, site, 0);
    }
    note_item(thread, dict, key, ATOMIC, site, missing != 0 ? HAND : 0, NULL);
    PyObject *value = call_native(dict, name, args, n, kwnames);
    if (value != NULL) {
        note_item(thread, dict, key, READ, site, LOOK | TAKE | QUIET, NULL);
    }
    return value;
}

static PyObject *
act_pop_key(Thread *thread, PyObject *dict, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
            PyObject *kwnames)
{
    PyObject *key = key_argument(args, n, kwnames);
    if (key == NULL) {
        return call_native(dict, name, args, n, kwnames);
    }
    bool there = absent(dict, key) != 1;
    if (there) {        /* before the removal, which is ordered after the insertion */
        note_item(thread, dict, key, READ, site, LOOK | TAKE | QUIET, NULL);
    }
    note_item(thread, dict, key, ATOMIC, site, 0, NULL);
    if (there) {
        note_structure(thread, dict, SHRINK, site, 0);
    }
    PyObject *value = call_native(dict, name, args, n, kwnames);
    if (value != NULL) {
        note_item(thread, dict, key, READ, site, LOOK | TAKE | UNHAND | QUIET, NULL);
    }
    return value;
}

static PyObject *
act_popitem(Thread *thread, PyObject *container, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
            PyObject *kwnames)
{
    PyObject *result = call_native(container, name, args, n, kwnames);
    PyObject *key = result;
    if (result != NULL && PyDict_Check(container)) {
        key = PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2 ? PyTuple_GET_ITEM(result, 0) : NULL;
    }
    if (key != NULL) {
        note_item(thread, container, key, READ, site, LOOK | TAKE | UNHAND | QUIET, NULL);
        note_structure(thread, container, SHRINK, site, 0);
    }
    return result;
}

#define MOST_KEYS 64        /* of the arguments of `update` that are noted one by one */

static bool
asks_nothing(PyObject *arg)
{
    return PyDict_CheckExact(arg) || PyList_CheckExact(arg) || PyTuple_CheckExact(arg) || PyUnicode_CheckExact(arg)
        || PySet_CheckExact(arg) || PyFrozenSet_CheckExact(arg);
}

/* Put the keys that an argument of `update` brings to the list; true if these are all.  */
static bool
add_keys(PyObject *keys, PyObject *arg, bool pairs_)
{
    bool all = pairs_ ? PyDict_Check(arg) || PyList_CheckExact(arg) || PyTuple_CheckExact(arg) : asks_nothing(arg);
    PyObject *items = !all ? NULL : PyDict_Check(arg) ? PyDict_Keys(arg) : PySequence_List(arg);
    for (Py_ssize_t i = 0; items != NULL && i < PyList_GET_SIZE(items); i++) {
        PyObject *key = PyList_GET_ITEM(items, i);
        if (pairs_ && !PyDict_Check(arg)) {
            bool pair = PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) > 0;
            all = all && pair;
            key = pair ? PyTuple_GET_ITEM(key, 0) : NULL;
        }
        if (PyList_GET_SIZE(keys) == MOST_KEYS) {
            all = false;
            break;
        }
        if (key != NULL) {
            PyList_Append(keys, key);
        }
    }
    Py_XDECREF(items);
    PyErr_Clear();
    return all;
}

static bool
known_keys(PyObject *keys, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, bool pairs_)
{
    bool all = true;
    for (Py_ssize_t i = 0; i < n; i++) {
        all = add_keys(keys, args[i], pairs_) && all;
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyList_Append(keys, PyTuple_GET_ITEM(kwnames, i));
    }
    PyErr_Clear();
    return all;
}

/* Inserts several keys at once; of those that are not known in time the container hands over what it can.  */
static PyObject *
act_update(Thread *thread, PyObject *container, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
           PyObject *kwnames)
{
    PyObject *keys = PyList_New(0);
    if (keys == NULL) {
        return NULL;
    }
    bool all = known_keys(keys, args, n, kwnames, PyDict_Check(container));
    note_structure(thread, container, GROW, site, 0);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); i++) {
        note_item(thread, container, PyList_GET_ITEM(keys, i), ATOMIC, site, HAND, NULL);
    }
    Py_DECREF(keys);
    if (!all) {
        hand_unknown(thread, container);
    }
    PyObject *result = call_native(container, name, args, n, kwnames);
    if (!all && result != NULL) {
        hand_unknown(thread, container);     /* what an iterator made on its way */
    }
    return result;
}

/* Counter's update and subtract load and store each key in turn.  */
static PyObject *
act_count(Thread *thread, PyObject *counter, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
          PyObject *kwnames)
{
    PyObject *keys = PyList_New(0);
    if (keys == NULL) {
        return NULL;
    }
    known_keys(keys, args, n, kwnames, false);
    bool grows = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        int new = absent(counter, key);
        if (new == 1 && !grows) {
            note_structure(thread, counter, GROW, site, 0);
            grows = true;
        }
        note_item(thread, counter, key, READ, site, new == 1 ? OWN | LOOK : OWN | TAKE, NULL);
        note_item(thread, counter, key, WRITE, site, OWN | (new == 1 ? HAND | PRESENCE : 0), NULL);
    }
    Py_DECREF(keys);
    return call_native(counter, name, args, n, kwnames);
}

/* ---- set --------------------------------------------------------------------------------------------------------- */
static PyObject *
act_add(Thread *thread, PyObject *set, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
        PyObject *kwnames)
{
    if (n == 1 && kwnames == NULL) {
        int missing = absent(set, args[0]);
        if (missing != 0) {
            note_structure(thread, set, GROW, site, 0);
        }
        note_item(thread, set, args[0], ATOMIC, site, missing != 0 ? HAND : 0, NULL);
    }
    return call_native(set, name, args, n, kwnames);
}

static PyObject *
act_discard(Thread *thread, PyObject *set, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
            PyObject *kwnames)
{
    if (n == 1 && kwnames == NULL) {
        bool there = absent(set, args[0]) != 1;
        if (there) {
            note_item(thread, set, args[0], READ, site, LOOK | TAKE | QUIET, NULL);
        }
        note_item(thread, set, args[0], ATOMIC, site, 0, NULL);
        if (there) {
            note_structure(thread, set, SHRINK, site, 0);
        }
    }
    return call_native(set, name, args, n, kwnames);
}

/* ---- list and deque ---------------------------------------------------------------------------------------------- */
static enum End
end_of(const Site *site)
{
    return strstr(methods[site->method].name, "left") != NULL ? LEFT : RIGHT;
}

static PyObject *
act_append(Thread *thread, PyObject *sequence, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
           PyObject *kwnames)
{
    if (n > 0 && kwnames == NULL) {
        note_structure(thread, sequence, GROW, site, 0);
        hand_values(thread, sequence, args + n - 1, 1, end_of(site));     /* insert's value is the last one, too */
    }
    return call_native(sequence, name, args, n, kwnames);
}

static PyObject *
act_extend(Thread *thread, PyObject *sequence, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
           PyObject *kwnames)
{
    if (n != 1 || kwnames != NULL || args[0] == sequence) {
        return call_native(sequence, name, args, n, kwnames);
    }
    note_structure(thread, sequence, GROW, site, 0);
    PyObject *values;
    if (PyList_CheckExact(args[0]) || PyTuple_CheckExact(args[0])) {
        values = PySequence_Tuple(args[0]);
        if (values != NULL) {
            hand_values(thread, sequence, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values), end_of(site));
        }
        Py_XSETREF(values, Py_NewRef(args[0]));
    }
    else {
        values = track(args[0], sequence, end_of(site) == LEFT ? STEP_HAND_LEFT : STEP_HAND_RIGHT, (Site *)site);
    }
    PyObject *result = values != NULL ? call_native(sequence, name, &values, 1, NULL) : NULL;
    Py_XDECREF(values);
    return result;
}

static PyObject *
act_pop(Thread *thread, PyObject *sequence, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
        PyObject *kwnames)
{
    enum End end = end_of(site);
    if (n > 0) {
        end = PyLong_CheckExact(args[0]) && PyLong_AsLong(args[0]) == 0 ? LEFT : ANYWHERE;
        PyErr_Clear();
    }
    PyObject *value = call_native(sequence, name, args, n, kwnames);
    if (value != NULL) {
        take_value(thread, sequence, value, end);       /* before the removal, which is ordered after the insertion */
        note_structure(thread, sequence, SHRINK, site, 0);
    }
    return value;
}

static PyObject *
act_remove(Thread *thread, PyObject *sequence, const Site *site, PyObject *name, PyObject *const *args, Py_ssize_t n,
           PyObject *kwnames)
{
    note_structure(thread, sequence, SHRINK, site, 0);
    return call_native(sequence, name, args, n, kwnames);
}

/* ---- which method is what ---------------------------------------------------------------------------------------- */
#define NO NOTHING
static const Method methods[] = {
    {"", NULL, NULL, NULL, NULL, NO, NO, NO, NO, NO},
    {"add", NULL, act_add, NULL, NULL, NO, NO, NO, NO, NO},
    {"append", NULL, NULL, act_append, NULL, NO, NO, NO, GROW, NO},
    {"appendleft", NULL, NULL, act_append, NULL, NO, NO, NO, NO, NO},
    {"clear", NULL, NULL, NULL, NULL, SHRINK, SHRINK, SHRINK, SHRINK, NO},
    {"copy", NULL, NULL, NULL, NULL, SNAPSHOT, SNAPSHOT, SNAPSHOT, NO, NO},
    {"count", NULL, NULL, NULL, NULL, NO, NO, SIZE, NO, NO},
    {"difference_update", NULL, NULL, NULL, NULL, NO, SHRINK, NO, NO, NO},
    {"discard", NULL, act_discard, NULL, NULL, NO, NO, NO, NO, NO},
    {"empty", NULL, NULL, NULL, NULL, NO, NO, NO, NO, SIZE},
    {"extend", NULL, NULL, act_extend, NULL, NO, NO, NO, GROW, NO},
    {"extendleft", NULL, NULL, act_extend, NULL, NO, NO, NO, NO, NO},
    {"full", NULL, NULL, NULL, NULL, NO, NO, NO, NO, SIZE},
    {"get", act_get, NULL, NULL, NULL, NO, NO, NO, NO, SHRINK},
    {"get_nowait", NULL, NULL, NULL, NULL, NO, NO, NO, NO, SHRINK},
    {"index", NULL, NULL, NULL, NULL, NO, NO, SIZE, NO, NO},
    {"insert", NULL, NULL, act_append, NULL, NO, NO, NO, GROW, NO},
    {"intersection_update", NULL, NULL, NULL, NULL, NO, SHRINK, NO, NO, NO},
    {"items", NULL, NULL, NULL, NULL, SNAPSHOT, NO, NO, NO, NO},
    {"keys", NULL, NULL, NULL, NULL, SIZE, NO, NO, NO, NO},
    {"move_to_end", NULL, NULL, NULL, NULL, RESHAPE, NO, NO, NO, NO},
    {"pop", act_pop_key, act_popitem, act_pop, NULL, NO, NO, NO, SHRINK, NO},
    {"popitem", act_popitem, NULL, NULL, NULL, NO, NO, NO, NO, NO},
    {"popleft", NULL, NULL, act_pop, NULL, NO, NO, NO, NO, NO},
    {"put", NULL, NULL, NULL, NULL, NO, NO, NO, NO, GROW},
    {"put_nowait", NULL, NULL, NULL, NULL, NO, NO, NO, NO, GROW},
    {"qsize", NULL, NULL, NULL, NULL, NO, NO, NO, NO, SIZE},
    {"remove", NULL, act_discard, act_remove, NULL, NO, NO, NO, SHRINK, NO},
    {"reverse", NULL, NULL, NULL, NULL, NO, NO, RESHAPE, RESHAPE, NO},
    {"rotate", NULL, NULL, NULL, NULL, NO, NO, RESHAPE, NO, NO},
    {"setdefault", act_setdefault, NULL, NULL, NULL, NO, NO, NO, NO, NO},
    {"sort", NULL, NULL, NULL, NULL, NO, NO, RESHAPE, NO, NO},
    {"subtract", NULL, NULL, NULL, act_count, NO, NO, NO, NO, NO},
    {"symmetric_difference_update", NULL, NULL, NULL, NULL, NO, RESHAPE, NO, NO, NO},
    {"update", act_update, act_update, NULL, act_count, NO, NO, NO, NO, NO},
    {"values", NULL, NULL, NULL, NULL, SNAPSHOT, NO, NO, NO, NO},
};
#undef NO
#define N_METHODS ((int)(sizeof(methods) / sizeof(methods[0])))

static int
method_number(PyObject *name)
{
    for (int i = 1; i < N_METHODS; i++) {
        if (PyUnicode_CompareWithASCIIString(name, methods[i].name) == 0) {
            return i;
        }
    }
    return 0;
}

static Act
method_act(const Method *method, enum Family family, int *kind)
{
    *kind = NOTHING;
    switch (family) {
    case DICT:
        *kind = method->dict_kind;
        return method->dict;
    case SET:
        *kind = method->set_kind;
        return method->set;
    case LIST: case DEQUE:
        *kind = method->sequence_kind;
        return method->sequence;
    case COUNTER:
        *kind = method->dict_kind;
        return method->counter;
    case ARRAY: case BYTEARRAY:
        *kind = method->array_kind;
        return NULL;
    case QUEUE:
        *kind = method->queue_kind;
        return NULL;
    default:
        return NULL;
    }
}

static void
note_method(Thread *thread, PyObject *container, enum Family family, int kind, const Site *site)
{
    if (kind == NOTHING) {
        return;
    }
    note_structure(thread, container, kind == SNAPSHOT ? SIZE : kind, site, family == QUEUE ? UNORDERED : 0);
    if ((kind == SNAPSHOT && !(site->flags & SPAN_READ)) || (kind == SIZE && family != QUEUE && site->flags & POLL)) {
        take_all(thread, container);
    }
    if (strcmp(methods[site->method].name, "clear") == 0 && kind == SHRINK) {
        hands_clear(thread, container);
    }
    if (kind == SNAPSHOT && strcmp(methods[site->method].name, "copy") == 0 && family != SET) {
        note_whole(thread, container, site, NULL);
    }
}

static PyObject *
op_method(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(args, n, 2)) {
        return NULL;
    }
    Thread *thread = noting_thread();
    Site *site = last_site(args, n);
    if (thread == NULL || site->method == 0) {
        return Py_NewRef(args[0]);
    }
    enum Family family = family_of(thread, args[0], site->key);
    if (family == NO_FAMILY) {
        return Py_NewRef(args[0]);
    }
    int kind;
    if (method_act(&methods[site->method], family, &kind) != NULL) {
        StandIn *proxy = (StandIn *)stand_in(method_proxy, args[0], site);
        if (proxy != NULL) {
            proxy->act = family;
        }
        return (PyObject *)proxy;
    }
    note_method(thread, args[0], family, kind, site);
    return Py_NewRef(args[0]);
}

static PyObject *
method_proxy_call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    StandIn *proxy = (StandIn *)self;
    const Site *site = proxy->site;
    Thread *thread = noting_thread();
    if (thread == NULL) {
        return call_native(proxy->object, site->key, args, n, kwnames);
    }
    int kind;
    Act act = method_act(&methods[site->method], (enum Family)proxy->act, &kind);
    return act(thread, proxy->object, site, site->key, args, n, kwnames);
}

#define PROXY_METHOD(name) {name, (PyCFunction)(void (*)(void))method_proxy_call, METH_FASTCALL | METH_KEYWORDS, NULL}
static PyMethodDef method_proxy_methods[] = {
    PROXY_METHOD("add"), PROXY_METHOD("append"), PROXY_METHOD("appendleft"), PROXY_METHOD("discard"),
    PROXY_METHOD("extend"), PROXY_METHOD("extendleft"), PROXY_METHOD("get"), PROXY_METHOD("insert"),
    PROXY_METHOD("pop"), PROXY_METHOD("popitem"), PROXY_METHOD("popleft"), PROXY_METHOD("remove"),
    PROXY_METHOD("setdefault"), PROXY_METHOD("subtract"), PROXY_METHOD("update"), {NULL, NULL, 0, NULL}};
static PyType_Slot method_proxy_slots[] = {
    {Py_tp_dealloc, stand_in_dealloc}, {Py_tp_methods, method_proxy_methods}, {0, NULL}};
static PyType_Spec method_proxy_spec = {
    .name = "gilscope.method_proxy", .basicsize = sizeof(StandIn), .flags = STAND_IN_FLAGS,
    .slots = method_proxy_slots};
