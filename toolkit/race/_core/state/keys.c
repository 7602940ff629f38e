/* Keys that identify the locations of one object: one tagged word each.

   Keys of dict and set are compared by the built-in equality of str, int, float, bytes and tuple; no `__eq__` or
   `__hash__` of the program runs.  Other keys are identified by their records, without a reference, so that the checker
   does not prolong their lives.  */

enum KeyTag { KEY_VALUE, KEY_INT, KEY_SAME, KEY_PART, KEY_BOX, KEY_ATTR, KEY_CELL };
#define KEY_TAG(word) ((int)((word) & 7))
#define KEY_POINTER(word) ((void *)((word) & UINT64_C(0x0000fffffffffff8)))
#define KEY_STRUCTURE ((uint64_t)KEY_PART)
#define KEY_ITERATOR ((uint64_t)KEY_PART | 8)
#define KEY_SERIAL_SHIFT 48

typedef struct { uint64_t word, hash; } Key;

/* A rectangular part of an array: per axis the first item, how many, and the distance between two (at least 1).  */
typedef struct { _Atomic(int) refs; int axes; int64_t ranges[][3]; } Box;

static inline Key
key_word(uint64_t word)
{
    return (Key){word, mix(word, 1)};
}

static inline Key
key_attr(PyObject *name)
{
    return key_word((uintptr_t)name | KEY_ATTR);
}

static inline Key
key_int(int64_t index)
{
    return key_word((uint64_t)index << 3 | KEY_INT);
}

static inline bool
int_fits(int64_t value)
{
    return value >= -(INT64_C(1) << 60) && value < (INT64_C(1) << 60);
}

static inline int64_t
key_as_int(uint64_t word)
{
    return (int64_t)word >> 3;
}

static uint64_t
box_hash(const Box *box)
{
    uint64_t hash = 4;
    for (int axis = 0; axis < box->axes; axis++) {
        for (int i = 0; i < 3; i++) {
            hash = mix(hash, (uint64_t)box->ranges[axis][i]);
        }
    }
    return hash;
}

static uint64_t
key_hash(uint64_t word)
{
    if (KEY_TAG(word) == KEY_VALUE) {
        return mix((uint64_t)PyObject_Hash(KEY_POINTER(word)), 2);     /* exact builtin: cannot fail */
    }
    return KEY_TAG(word) == KEY_BOX ? box_hash(KEY_POINTER(word)) : mix(word, 1);
}

static bool
box_equal(const Box *one, const Box *other)
{
    return one->axes == other->axes
        && memcmp(one->ranges, other->ranges, (size_t)one->axes * sizeof(one->ranges[0])) == 0;
}

static bool plain_key(PyObject *key, int depth);

/* -DGILSCOPE_WIDE_WINDOWS is for tests: between two holds of a record's lock, threads wait now and then, so that others
   do in between what they seldom have the time for; and a key that was freed (PYTHONMALLOC=debug) ends the process.  */
#ifdef GILSCOPE_WIDE_WINDOWS
#include <unistd.h>

static void
widen_window(void)
{
    static _Atomic(uint32_t) passes;
    if (atomic_fetch_add(&passes, 1) % 32 == 0) {
        usleep(300);
    }
}

static void
check_key(uint64_t word)
{
    if (KEY_TAG(word) == KEY_VALUE && !plain_key(KEY_POINTER(word), 4) && !PyTuple_CheckExact(KEY_POINTER(word))) {
        Py_FatalError("gilscope: a key is used after its end");
    }
}
#else
#define widen_window() ((void)0)
#define check_key(word) ((void)0)
#endif

static bool
str_equal(PyObject *a, PyObject *b)
{
    return ((PyASCIIObject *)a)->hash == ((PyASCIIObject *)b)->hash
        && PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b)
        && memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)PyUnicode_GET_LENGTH(a) * PyUnicode_KIND(a)) == 0;
}

/* Return a number as a complex one if that is exact; an int beyond 2^53 counts as different from every float.  */
static bool
as_complex(PyObject *number, Py_complex *value)
{
    if (PyComplex_CheckExact(number)) {
        *value = ((PyComplexObject *)number)->cval;
        return true;
    }
    int overflow = 0;
    int64_t whole = PyLong_Check(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
    *value = (Py_complex){PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : (double)whole, 0};
    return PyFloat_CheckExact(number) || (PyLong_Check(number) && !overflow && whole >= -(INT64_C(1) << 53)
                                          && whole <= INT64_C(1) << 53);
}

/* Compare plain keys as `==` does, without PyObject_RichCompare(): that fails at the recursion limit, and makes objects,
   whose creation and death take the locks of the shadow state.  */
static bool
plain_equal(PyObject *a, PyObject *b)
{
    if (a == b) {
        return true;
    }
    if (PyUnicode_CheckExact(a) || PyUnicode_CheckExact(b)) {
        return PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b) && str_equal(a, b);
    }
    if (PyBytes_CheckExact(a) || PyBytes_CheckExact(b)) {
        return PyBytes_CheckExact(a) && PyBytes_CheckExact(b) && PyBytes_GET_SIZE(a) == PyBytes_GET_SIZE(b)
            && memcmp(PyBytes_AS_STRING(a), PyBytes_AS_STRING(b), (size_t)PyBytes_GET_SIZE(a)) == 0;
    }
    if (PyTuple_CheckExact(a) || PyTuple_CheckExact(b)) {
        bool equal = PyTuple_CheckExact(a) && PyTuple_CheckExact(b) && PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
        for (Py_ssize_t i = 0; equal && i < PyTuple_GET_SIZE(a); i++) {
            equal = plain_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));    /* plain_key() limits the depth */
        }
        return equal;
    }
    if (PyLong_Check(a) && PyLong_Check(b)) {
        return PyLong_Type.tp_richcompare(a, b, Py_EQ) == Py_True;      /* immortal */
    }
    Py_complex one, other;
    return as_complex(a, &one) && as_complex(b, &other) && one.real == other.real && one.imag == other.imag;
}

/* Both keys are read: call it with the record locked whose cell owns `word`, and while somebody owns `key`.  */
static inline bool
key_equal(uint64_t word, Key key)
{
    check_key(word);
    check_key(key.word);
    if (word == key.word) {
        return true;
    }
    if (KEY_TAG(word) != KEY_TAG(key.word)) {
        return false;
    }
    if (KEY_TAG(word) == KEY_BOX) {
        return box_equal(KEY_POINTER(word), KEY_POINTER(key.word));
    }
    if (KEY_TAG(word) != KEY_VALUE) {
        return false;
    }
    PyObject *a = KEY_POINTER(word), *b = KEY_POINTER(key.word);
    return Py_TYPE(a) == Py_TYPE(b) && plain_equal(a, b);
}

static inline uint64_t
key_keep(uint64_t word)
{
    int tag = KEY_TAG(word);
    if (tag == KEY_VALUE || tag == KEY_ATTR || tag == KEY_CELL) {
        Py_INCREF((PyObject *)KEY_POINTER(word));
    }
    else if (tag == KEY_BOX) {
        atomic_fetch_add(&((Box *)KEY_POINTER(word))->refs, 1);
    }
    return word;
}

/* True for a part of an array that is no single item.  */
static bool
key_has_several(uint64_t word)
{
    const Box *box = KEY_TAG(word) == KEY_BOX ? KEY_POINTER(word) : NULL;
    for (int axis = 0; box != NULL && axis < box->axes; axis++) {
        if (box->ranges[axis][1] != 1) {
            return true;
        }
    }
    return false;
}

static void
box_drop(Box *box)
{
    if (atomic_fetch_sub(&box->refs, 1) == 1) {
        free(box);
    }
}

static void
key_drop(uint64_t word)
{
    int tag = KEY_TAG(word);
    if (tag == KEY_VALUE || tag == KEY_ATTR || tag == KEY_CELL) {
        Py_DECREF((PyObject *)KEY_POINTER(word));
    }
    else if (tag == KEY_BOX) {
        box_drop(KEY_POINTER(word));
    }
}

/* True if such keys are equal by the interpreter's own code alone.  */
static bool
plain_key(PyObject *key, int depth)
{
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t i = 0; depth < 4 && i < PyTuple_GET_SIZE(key); i++) {
            if (!plain_key(PyTuple_GET_ITEM(key, i), depth + 1)) {
                return false;
            }
        }
        return depth < 4;
    }
    return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key) || PyBytes_CheckExact(key)
        || PyBool_Check(key) || key == Py_None || PyComplex_CheckExact(key);
}

static Key key_same(Thread *thread, PyObject *object);     /* shadow.c */

static Key
key_number(PyObject *key)
{
    int overflow = 0;
    int64_t value = PyFloat_CheckExact(key) ? 0 : PyLong_AsLongLongAndOverflow(key, &overflow);
    if (PyFloat_CheckExact(key)) {
        double number = PyFloat_AS_DOUBLE(key);
        if (number >= -1e15 && number <= 1e15 && (double)(int64_t)number == number) {
            return key_int((int64_t)number);
        }
    }
    else if (!overflow && int_fits(value)) {
        return key_int(value);
    }
    return (Key){(uintptr_t)key, key_hash((uintptr_t)key)};
}

/* The key of an item of a dict or set.  */
static inline Key
key_item(Thread *thread, PyObject *key)
{
    if (likely(PyUnicode_CheckExact(key))) {
        Py_hash_t hash = ((PyASCIIObject *)key)->hash;
        return (Key){(uintptr_t)key, mix((uint64_t)(hash != -1 ? hash : PyObject_Hash(key)), 2)};
    }
    if (PyLong_CheckExact(key) || PyBool_Check(key) || PyFloat_CheckExact(key)) {
        return key_number(key);
    }
    if (plain_key(key, 0)) {
        return (Key){(uintptr_t)key, key_hash((uintptr_t)key)};
    }
    return key_same(thread, key);
}
