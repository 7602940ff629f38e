/* Op `method`: calls of container methods, tracked by the effect of the builtin type's method.

   If the key or the value matters, the op returns a proxy whose method makes the call, so that arguments are evaluated
   after the method is looked up, as in the program.  */

typedef struct {
    Thread *thread;
    PyObject *container;
    const Site *site;
    PyObject *const *args;
    Py_ssize_t n;
    PyObject *kwnames;
    enum End end;           /* of a list or deque, where the effect has one */
} Call;

typedef PyObject *(*Act)(const Call *);

static PyObject *
call_with(const Call *call, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    Py_ssize_t all = n + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *few[8];
    PyObject **with_self = all < 8 ? few : PyMem_Malloc((size_t)(all + 1) * sizeof(PyObject *));
    if (with_self == NULL) {
        return PyErr_NoMemory();
    }
    with_self[0] = call->container;
    memcpy(with_self + 1, args, (size_t)all * sizeof(PyObject *));
    PyObject *result = PyObject_VectorcallMethod(call->site->key, with_self, (size_t)(n + 1), kwnames);
    if (with_self != few) {
        PyMem_Free(with_self);
    }
    return result;
}

/* The native method, whatever it is given.  */
static PyObject *
call_native(const Call *call)
{
    return call_with(call, call->args, call->n, call->kwnames);
}

/* The argument called `key`, by position or name; borrowed.  */
static PyObject *
key_argument(const Call *call)
{
    if (call->n > 0) {
        return call->args[0];
    }
    for (Py_ssize_t i = 0; call->kwnames != NULL && i < PyTuple_GET_SIZE(call->kwnames); i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call->kwnames, i), "key") == 0) {
            return call->args[call->n + i];
        }
    }
    return NULL;
}

static void
on_structure(const Call *call, int kind)
{
    note_structure(call->thread, call->container, kind, call->site, 0);
}

static void
on_item(const Call *call, PyObject *key, int kind, int options)
{
    note_item(call->thread, call->container, key, kind, call->site, options, NULL);
}

/* ---- dict -------------------------------------------------------------------------------------------------------- */
static PyObject *
act_get(const Call *call)
{
    if (call->kwnames != NULL || call->n < 1 || call->n > 2) {
        return call_native(call);
    }
    PyObject *value;
    int found = dict_get(call->container, call->args[0], &value);
    if (found > 0) {
        note_got(call->thread, call->container, call->args[0], value, call->site, 0);
    }
    else if (found == 0) {
        note_missed(call->thread, call->container, call->args[0], call->site, 0);
        value = Py_NewRef(call->n > 1 ? call->args[1] : Py_None);
    }
    return value;
}

static PyObject *
act_setdefault(const Call *call)
{
    PyObject *key = key_argument(call);
    if (key == NULL) {
        return call_native(call);
    }
    note_default(call->thread, call->container, key, call->site);
    PyObject *value = call_native(call);
    if (value != NULL) {
        on_item(call, key, READ, LOOK | TAKE | QUIET);
    }
    return value;
}

static PyObject *
act_pop_key(const Call *call)
{
    PyObject *key = key_argument(call);
    if (key == NULL) {
        return call_native(call);
    }
    bool there = absent(call->container, key) != 1;
    if (there) {        /* before the removal, which is ordered after the insertion */
        on_item(call, key, READ, LOOK | TAKE | QUIET);
    }
    on_item(call, key, ATOMIC, 0);
    if (there) {
        on_structure(call, SHRINK);
    }
    PyObject *value = call_native(call);
    if (value != NULL) {
        on_item(call, key, READ, LOOK | TAKE | UNHAND | QUIET);
    }
    return value;
}

static PyObject *
act_popitem(const Call *call)
{
    PyObject *result = call_native(call);
    PyObject *key = result;
    if (result != NULL && PyDict_Check(call->container)) {
        key = PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2 ? PyTuple_GET_ITEM(result, 0) : NULL;
    }
    if (key != NULL) {
        on_item(call, key, READ, LOOK | TAKE | UNHAND | QUIET);
        on_structure(call, SHRINK);
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
known_keys(PyObject *keys, const Call *call, bool pairs_)
{
    bool all = true;
    for (Py_ssize_t i = 0; i < call->n; i++) {
        all = add_keys(keys, call->args[i], pairs_) && all;
    }
    for (Py_ssize_t i = 0; call->kwnames != NULL && i < PyTuple_GET_SIZE(call->kwnames); i++) {
        PyList_Append(keys, PyTuple_GET_ITEM(call->kwnames, i));
    }
    PyErr_Clear();
    return all;
}

/* Inserts several keys at once; of those that are not known in time the container hands over what it can.  */
static PyObject *
act_update(const Call *call)
{
    PyObject *keys = PyList_New(0);
    if (keys == NULL) {
        return NULL;
    }
    bool all = known_keys(keys, call, PyDict_Check(call->container));
    on_structure(call, GROW);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); i++) {
        on_item(call, PyList_GET_ITEM(keys, i), ATOMIC, HAND);
    }
    Py_DECREF(keys);
    if (!all) {
        hand_unknown(call->thread, call->container);
    }
    PyObject *result = call_native(call);
    if (!all && result != NULL) {
        hand_unknown(call->thread, call->container);     /* what an iterator made on its way */
    }
    return result;
}

/* Counter's update and subtract load and store each key in turn.  */
static PyObject *
act_count(const Call *call)
{
    PyObject *keys = PyList_New(0);
    if (keys == NULL) {
        return NULL;
    }
    known_keys(keys, call, false);
    bool grows = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        int new = absent(call->container, key);
        if (new == 1 && !grows) {
            on_structure(call, GROW);
            grows = true;
        }
        on_item(call, key, READ, new == 1 ? OWN | LOOK : OWN | TAKE);
        on_item(call, key, WRITE, OWN | (new == 1 ? HAND | PRESENCE : 0));
    }
    Py_DECREF(keys);
    return call_native(call);
}

/* ---- set --------------------------------------------------------------------------------------------------------- */
static PyObject *
act_add(const Call *call)
{
    if (call->n == 1 && call->kwnames == NULL) {
        int missing = absent(call->container, call->args[0]);
        if (missing != 0) {
            on_structure(call, GROW);
        }
        on_item(call, call->args[0], ATOMIC, missing != 0 ? HAND : 0);
    }
    return call_native(call);
}

static PyObject *
act_discard(const Call *call)
{
    if (call->n == 1 && call->kwnames == NULL) {
        bool there = absent(call->container, call->args[0]) != 1;
        if (there) {
            on_item(call, call->args[0], READ, LOOK | TAKE | QUIET);
        }
        on_item(call, call->args[0], ATOMIC, 0);
        if (there) {
            on_structure(call, SHRINK);
        }
    }
    return call_native(call);
}

/* ---- list and deque ---------------------------------------------------------------------------------------------- */
static PyObject *
act_append(const Call *call)
{
    if (call->n > 0 && call->kwnames == NULL) {
        on_structure(call, GROW);
        /* The value of insert() is its last argument, too.  */
        hand_values(call->thread, call->container, call->args + call->n - 1, 1, call->end);
    }
    return call_native(call);
}

static PyObject *
act_extend(const Call *call)
{
    if (call->n != 1 || call->kwnames != NULL || call->args[0] == call->container) {
        return call_native(call);
    }
    on_structure(call, GROW);
    PyObject *values;
    if (PyList_CheckExact(call->args[0]) || PyTuple_CheckExact(call->args[0])) {
        values = PySequence_Tuple(call->args[0]);
        if (values != NULL) {
            hand_values(call->thread, call->container, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values),
                        call->end);
        }
        Py_XSETREF(values, Py_NewRef(call->args[0]));
    }
    else {
        values = track(call->args[0], call->container, call->end == LEFT ? STEP_HAND_LEFT : STEP_HAND_RIGHT,
                       (Site *)call->site);
    }
    PyObject *result = values != NULL ? call_with(call, &values, 1, NULL) : NULL;
    Py_XDECREF(values);
    return result;
}

static PyObject *
act_pop(const Call *call)
{
    enum End end = call->end;
    if (call->n > 0) {
        end = PyLong_CheckExact(call->args[0]) && PyLong_AsLong(call->args[0]) == 0 ? LEFT : ANYWHERE;
        PyErr_Clear();
    }
    PyObject *value = call_native(call);
    if (value != NULL) {
        /* Before the removal, which is ordered after the insertion.  */
        take_value(call->thread, call->container, value, end);
        on_structure(call, SHRINK);
    }
    return value;
}

static PyObject *
act_remove(const Call *call)
{
    on_structure(call, SHRINK);
    return call_native(call);
}

/* ---- which method is what ---------------------------------------------------------------------------------------- */
/* What does an effect that depends on arguments or result.  */
static const struct { Act act; enum End end; } acts[N_EFFECTS] = {
    [EFFECT_GET_KEY] = {act_get, STAYS}, [EFFECT_SET_DEFAULT] = {act_setdefault, STAYS},
    [EFFECT_REMOVE_KEY] = {act_pop_key, STAYS}, [EFFECT_REMOVE_ANY] = {act_popitem, STAYS},
    [EFFECT_INSERT_KEYS] = {act_update, STAYS}, [EFFECT_COUNT_KEYS] = {act_count, STAYS},
    [EFFECT_ADD_KEY] = {act_add, STAYS}, [EFFECT_DISCARD_KEY] = {act_discard, STAYS},
    [EFFECT_INSERT_RIGHT] = {act_append, RIGHT}, [EFFECT_INSERT_LEFT] = {act_append, LEFT},
    [EFFECT_EXTEND_RIGHT] = {act_extend, RIGHT}, [EFFECT_EXTEND_LEFT] = {act_extend, LEFT},
    [EFFECT_POP_RIGHT] = {act_pop, RIGHT}, [EFFECT_POP_LEFT] = {act_pop, LEFT},
    [EFFECT_REMOVE_VALUE] = {act_remove, STAYS},
};
static const uint8_t columns[] = {
    [DICT] = DICTS, [COUNTER] = COUNTERS, [SET] = SETS, [LIST] = SEQUENCES, [DEQUE] = SEQUENCES, [ARRAY] = ARRAYS,
    [BYTEARRAY] = ARRAYS, [QUEUE] = QUEUES, [ENVIRON] = NO_COLUMN,
};

static const Method *
method_called(PyObject *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(name, methods[i].name) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

static PyObject *
at_method(Thread *thread, PyObject *container, Site *site)
{
    enum EffectName effect = site->method == NULL ? NO_EFFECT
        : site->method->effects[columns[family_of(thread, container, site->key)]];
    if (effect == NO_EFFECT) {
        return Py_NewRef(container);
    }
    if (acts[effect].act == NULL) {
        note_effect(thread, container, STEP_KEYS, effect_on(effect, site->method->in_steps, container, container), site);
        return Py_NewRef(container);
    }
    StandIn *proxy = (StandIn *)stand_in(method_proxy, container, site);
    if (proxy != NULL) {
        proxy->effect = effect;
    }
    return (PyObject *)proxy;
}

static PyObject *
method_proxy_call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    StandIn *proxy = (StandIn *)self;
    Call call = {noting_thread(), proxy->object, proxy->site, args, n, kwnames, acts[proxy->effect].end};
    return call.thread == NULL ? call_native(&call) : acts[proxy->effect].act(&call);
}

#define STAND_IN_METHOD(name) \
    {name, (PyCFunction)(void (*)(void))method_proxy_call, METH_FASTCALL | METH_KEYWORDS, NULL},
static PyMethodDef method_proxy_methods[] = {METHODS_WITH_STAND_IN(STAND_IN_METHOD) {NULL, NULL, 0, NULL}};
static PyType_Slot method_proxy_slots[] = {
    {Py_tp_dealloc, stand_in_dealloc}, {Py_tp_methods, method_proxy_methods}, {0, NULL}};
static PyType_Spec method_proxy_spec = {
    .name = "gilscope.method_proxy", .basicsize = sizeof(StandIn), .flags = STAND_IN_FLAGS,
    .slots = method_proxy_slots};
