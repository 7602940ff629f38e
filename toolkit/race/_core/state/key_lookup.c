/* Membership tests of dicts and sets that run no code of the program.

   CPython's lookups call the `__eq__` of every stored key that has the hash of the wanted key.  The functions here search
   the hash tables in the same order as CPython, but compare a stored key only if its comparison is built in.  */

/* The beginning of a dict's keys, followed by the indices and the entries, in CPython 3.12 to 3.15.  */
typedef struct {
    Py_ssize_t references;
    uint8_t log2_size, log2_index_bytes, kind, lock;
    uint32_t version;
    Py_ssize_t usable, n_entries;
    char indices[];
} RawKeys;

typedef struct { Py_hash_t hash; PyObject *key, *value; } RawEntry;

enum { RAW_GENERAL = 0 };       /* the kind whose keys are not all exact str */
enum { RAW_EMPTY = -1, RAW_PERTURB_SHIFT = 5, RAW_SET_PROBES = 9 };

#if FREE_THREADED
#define BEGIN_LOCKED(object) Py_BEGIN_CRITICAL_SECTION(object)
#define END_LOCKED() Py_END_CRITICAL_SECTION()
#else
#define BEGIN_LOCKED(object) {
#define END_LOCKED() }
#endif

/* True if objects of the type are compared and hashed by identity.  */
static bool
compares_identity(PyTypeObject *type)
{
    return type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

/* Compare keys of equal hash; -1 if only code of the program can.  */
static int
same_key(PyObject *stored, PyObject *key)
{
    if (stored == key) {
        return 1;
    }
    PyTypeObject *type = Py_TYPE(stored);
    if (compares_identity(type)) {
        return 0;
    }
    bool text = PyUnicode_Check(stored) && type->tp_richcompare == PyUnicode_Type.tp_richcompare;
    if (!text && !plain_key(stored, 0)) {
        return -1;
    }
    return PyObject_RichCompareBool(stored, key, Py_EQ);
}

static int64_t
raw_index(const RawKeys *keys, size_t at)
{
    if (keys->log2_size < 8) {
        return ((const int8_t *)keys->indices)[at];
    }
    if (keys->log2_size < 16) {
        return ((const int16_t *)keys->indices)[at];
    }
    return keys->log2_size < 32 ? ((const int32_t *)keys->indices)[at] : ((const int64_t *)keys->indices)[at];
}

/* The caller holds the dict's lock.  */
static int
search_dict(PyObject *dict, PyObject *key, Py_hash_t hash)
{
    const RawKeys *keys = (const RawKeys *)((PyDictObject *)dict)->ma_keys;
    if (keys->kind != RAW_GENERAL) {
        return PyDict_Contains(dict, key);
    }
    const RawEntry *entries = (const RawEntry *)(keys->indices + ((size_t)1 << keys->log2_index_bytes));
    size_t mask = ((size_t)1 << keys->log2_size) - 1, perturb = (size_t)hash, at = perturb & mask;
    for (int64_t index; (index = raw_index(keys, at)) != RAW_EMPTY;) {
        if (index >= 0 && entries[index].hash == hash && entries[index].key != NULL) {
            int same = same_key(entries[index].key, key);
            if (same != 0) {
                return same;
            }
        }
        perturb >>= RAW_PERTURB_SHIFT;
        at = (at * 5 + perturb + 1) & mask;
    }
    return 0;
}

/* The caller holds the set's lock.  */
static int
search_set(PyObject *set, PyObject *key, Py_hash_t hash)
{
    const setentry *table = ((PySetObject *)set)->table;
    size_t mask = (size_t)((PySetObject *)set)->mask, perturb = (size_t)hash, at = perturb & mask;
    for (;;) {
        size_t last = at + RAW_SET_PROBES <= mask ? at + RAW_SET_PROBES : at;
        for (size_t i = at; i <= last; i++) {
            if (table[i].key == NULL) {
                return 0;
            }
            int same = table[i].hash == hash ? same_key(table[i].key, key) : 0;
            if (same != 0) {
                return same;
            }
        }
        perturb >>= RAW_PERTURB_SHIFT;
        at = (at * 5 + 1 + perturb) & mask;
    }
}

/* Return 1 if a dict or set has the key, 0 if not, and -1, without an exception, if only code of the program can tell.  */
static int
has_key(PyObject *container, PyObject *key)
{
    if (!PyUnicode_CheckExact(key) && !compares_identity(Py_TYPE(key)) && !plain_key(key, 0)) {
        return -1;
    }
    bool dict = PyDict_Check(container);
    int has = -1;
    Py_hash_t hash = PyObject_Hash(key);        /* the interpreter's own, which cannot fail */
    if (likely(core.raw_tables)) {
        BEGIN_LOCKED(container);
        has = dict ? search_dict(container, key, hash) : search_set(container, key, hash);
        END_LOCKED();
    }
    else {
        has = dict ? PyDict_Contains(container, key) : PySet_Contains(container, key);
    }
    if (has < 0) {
        PyErr_Clear();
    }
    return has;
}

static bool
table_agrees(PyObject *table, int numbers)
{
    bool agree = table != NULL;
    for (int number = 0; agree && number < numbers; number++) {
        PyObject *key = PyLong_FromLong(7919L * number);
        int expected = key == NULL ? -1 : PyDict_Check(table) ? PyDict_Contains(table, key) : PySet_Contains(table, key);
        agree = expected >= 0 && has_key(table, key) == expected;
        Py_XDECREF(key);
    }
    return agree;
}

/* Set core.raw_tables: compare the search with the public interface in tables of two sizes, from which keys were removed.
   If they disagree, as they may in a future version, the public interface is used.  */
static int
check_raw_tables(void)
{
    core.raw_tables = true;
    bool agree = true;
    for (int numbers = 4; numbers <= 400 && agree; numbers *= 100) {
        PyObject *dict = PyDict_New(), *set = PySet_New(NULL);
        for (int number = 0; dict != NULL && set != NULL && number < numbers; number++) {
            PyObject *key = PyLong_FromLong(7919L * number);
            if (key == NULL || PyDict_SetItem(dict, key, key) < 0 || PySet_Add(set, key) < 0
                || (number % 3 == 1 && (PyDict_DelItem(dict, key) < 0 || PySet_Discard(set, key) < 0))) {
                Py_CLEAR(dict);
            }
            Py_XDECREF(key);
        }
        agree = table_agrees(dict, numbers) && table_agrees(set, numbers);
        Py_XDECREF(dict);
        Py_XDECREF(set);
    }
    core.raw_tables = agree;
    return PyErr_Occurred() ? -1 : 0;
}
