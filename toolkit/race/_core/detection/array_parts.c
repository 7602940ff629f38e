/* Parts of arrays: an item or basic slice is a box with one range per axis, so threads that write different columns do
   not conflict.  Boxes that overlap are different locations that conflict with each other.  */

#define MOST_AXES 16

/* Store the shape of an array and return its number of axes, -1 if unknown.  */
static int
array_shape(PyObject *array, enum Family family, int64_t shape[MOST_AXES])
{
    if (family == ARRAY || family == BYTEARRAY) {
        shape[0] = own_length(array);
        return 1;
    }
    PyObject *sizes = base_attribute(family == NDARRAY ? known.ndarray : &PyMemoryView_Type, "shape", array);
    int axes = sizes != NULL && PyTuple_Check(sizes) ? (int)PyTuple_GET_SIZE(sizes) : -1;
    for (int axis = 0; axis < axes && axes <= MOST_AXES; axis++) {
        shape[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, axis));
    }
    Py_XDECREF(sizes);
    PyErr_Clear();
    return axes <= MOST_AXES ? axes : -1;
}

/* True if the key is a plain index, which is stored.  */
static bool
plain_index(PyObject *key, int64_t *index)
{
    bool whole = PyLong_CheckExact(key) || PyBool_Check(key)
        || (known.np_integer != NULL && PyObject_TypeCheck(key, known.np_integer)
            && PyType_HasFeature(Py_TYPE(key), Py_TPFLAGS_IMMUTABLETYPE));      /* a subclass may have its __index__ */
    if (!whole) {
        return false;
    }
    Py_ssize_t value = PyNumber_AsSsize_t(key, NULL);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    *index = value;
    return true;
}

static bool
plain_bound(PyObject *bound)
{
    return bound == Py_None || PyLong_CheckExact(bound);
}

static bool
axis_range(PyObject *key, int64_t size, int64_t range[3])
{
    int64_t index;
    if (plain_index(key, &index)) {
        range[0] = index >= 0 ? index : index + size;
        range[1] = range[2] = 1;
        return true;
    }
    Py_ssize_t start, stop, step;
    if (!PySlice_Check(key) || !plain_bound(((PySliceObject *)key)->start) || !plain_bound(((PySliceObject *)key)->stop)
        || !plain_bound(((PySliceObject *)key)->step) || PySlice_Unpack(key, &start, &stop, &step) < 0) {
        PyErr_Clear();
        return false;
    }
    Py_ssize_t n = PySlice_AdjustIndices(size, &start, &stop, step);
    range[0] = step >= 0 || n == 0 ? start : start + (n - 1) * step;
    range[1] = n;
    range[2] = n <= 1 ? 1 : step >= 0 ? step : -step;
    return true;
}

/* The part of an array that a key selects, the whole array if unknown.  */
static Key
key_box(PyObject *array, enum Family family, PyObject *key, Box **made)
{
    int64_t shape[MOST_AXES], index;
    *made = NULL;
    if ((family == ARRAY || family == BYTEARRAY) && plain_index(key, &index)) {
        return key_int(index >= 0 ? index : index + own_length(array));
    }
    int axes = array_shape(array, family, shape);
    axes = axes < 0 ? 0 : axes;
    PyObject *const *keys = PyTuple_CheckExact(key) ? &PyTuple_GET_ITEM(key, 0) : &key;
    Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    Box *box = must(malloc(sizeof(Box) + (size_t)axes * sizeof(box->ranges[0])));
    atomic_init(&box->refs, 1);
    box->axes = axes;
    bool plain = n <= axes;
    for (int axis = 0; axis < axes; axis++) {
        bool mask = axis < n && family == NDARRAY && PyBool_Check(keys[axis]);      /* `a[True]` is no index */
        plain = plain && !mask && (axis >= n || axis_range(keys[axis], shape[axis], box->ranges[axis]));
    }
    for (int axis = 0; axis < axes; axis++) {
        if (!plain || axis >= n) {
            box->ranges[axis][0] = 0;
            box->ranges[axis][1] = shape[axis];
            box->ranges[axis][2] = 1;
        }
    }
    if (axes == 1 && box->ranges[0][1] == 1) {
        index = box->ranges[0][0];
        free(box);
        return key_int(index);
    }
    *made = box;
    return (Key){(uintptr_t)box | KEY_BOX, box_hash(box)};
}

/* True if two ranges overlap.  */
static bool
ranges_meet(const int64_t a[3], const int64_t b[3])
{
    int64_t last_a = a[0] + (a[1] - 1) * a[2], last_b = b[0] + (b[1] - 1) * b[2];
    if (a[1] == 0 || b[1] == 0 || a[0] > last_b || b[0] > last_a) {
        return false;
    }
    const int64_t *few = a[1] <= b[1] ? a : b, *many = few == a ? b : a;
    int64_t last = few == a ? last_b : last_a;
    for (int64_t i = 0, tries = 0; i < few[1] && tries <= many[2]; i++) {
        int64_t item = few[0] + i * few[2];
        if (item < many[0]) {
            i += (many[0] - item - 1) / few[2];     /* on to the first one that is not before */
            continue;
        }
        if (item > last) {
            return false;
        }
        if ((item - many[0]) % many[2] == 0) {
            return true;
        }
        tries++;
    }
    return false;
}

static bool
keys_meet(uint64_t one, uint64_t other)
{
    int64_t items[2][3] = {{0, 1, 1}, {0, 1, 1}};
    uint64_t words[2] = {one, other};
    const int64_t (*ranges[2])[3];
    int axes[2];
    for (int i = 0; i < 2; i++) {
        if (KEY_TAG(words[i]) == KEY_INT) {
            items[i][0] = key_as_int(words[i]);
            ranges[i] = (const int64_t (*)[3])&items[i];
            axes[i] = 1;
        }
        else if (KEY_TAG(words[i]) == KEY_BOX) {
            Box *box = KEY_POINTER(words[i]);
            ranges[i] = (const int64_t (*)[3])box->ranges;
            axes[i] = box->axes;
        }
        else {
            return false;
        }
    }
    for (int axis = 0; axis < axes[0] && axis < axes[1]; axis++) {
        if (!ranges_meet(ranges[0][axis], ranges[1][axis])) {
            return false;
        }
    }
    return true;
}

/* The form of a part in a report: an index, (start, stop, step), or a tuple of those.  */
static PyObject *
box_shown(uint64_t word)
{
    if (KEY_TAG(word) == KEY_INT) {
        return PyLong_FromLongLong(key_as_int(word));
    }
    Box *box = KEY_POINTER(word);
    PyObject *parts = PyTuple_New(box->axes);
    for (int axis = 0; parts != NULL && axis < box->axes; axis++) {
        const int64_t *range = box->ranges[axis];
        PyObject *part = range[1] == 1 ? PyLong_FromLongLong(range[0])
            : Py_BuildValue("(LLL)", range[0], range[0] + range[1] * range[2], range[2]);
        PyTuple_SET_ITEM(parts, axis, part);
    }
    if (box->axes != 1 || parts == NULL) {
        return parts;
    }
    PyObject *only = Py_NewRef(PyTuple_GET_ITEM(parts, 0));
    Py_DECREF(parts);
    return only;
}

/* The next cell from number `at` on of a part of the array that overlaps the part `key`, or NULL.  Only parts with several
   items overlap a single item.  */
static Cell *
next_overlap(Record *record, uint64_t key, uint32_t *at)
{
    bool several = key_has_several(key);
    uint32_t n = several ? record->n : record->boxes != NULL ? record->boxes->n : 0;
    while (*at < n) {
        uint32_t number = (*at)++;
        Cell *cell = &record->cells[several ? number : record->boxes->cells[number]];
        if (cell->key != key && keys_meet(cell->key, key)) {
            return cell;
        }
    }
    return NULL;
}

/* Conflicts with parts of the same array that overlap this one.  */
static void
across(Touch *touch)
{
    uint32_t at = 0;
    for (Cell *cell; (cell = next_overlap(touch->record, touch->key.word, &at)) != NULL;) {
        against_write(touch, cell, touch->kind);
        if (touch->kind != WRITE) {
            continue;
        }
        Extra *extra = cell_extra(cell);
        for (int r = -1; r < (extra != NULL ? extra->readers.n : 0); r++) {
            Access read = r < 0 ? (Access){cell->read, cell->read_where} : extra->readers.items[r];
            if (read.epoch != 0 && !sees(touch->thread, read.epoch)) {
                found_add(touch, false, false, read, touch_access(touch));
            }
        }
    }
}

static void
note_box(Thread *thread, PyObject *array, enum Family family, PyObject *index, int kind, const Site *site, int options,
         PyObject *value)
{
    Box *box;
    PyObject *error = PyErr_GetRaisedException();
    Key key = key_box(array, family, index, &box);
    PyObject *shown = box != NULL ? box_shown(key.word) : NULL;
    note(thread, array, key, kind, site, options, shown, value);
    Record *record = record_of(thread, array, true);
    spin_lock(&record->spin);
    bool overlaps = false;
    if (record->boxes != NULL && record->owner == SHARED) {
        Cell *own = box != NULL ? record_find(record, key) : NULL;      /* its box is another one that is equal */
        uint32_t at = 0;
        overlaps = next_overlap(record, own != NULL ? own->key : key.word, &at) != NULL;
    }
    spin_unlock(&record->spin);
    if (overlaps) {
        Touch touch;
        touch_init(&touch, thread, site, array, record, key, kind);
        touch.where = where_now(thread, site, kind, 0);
        spin_lock(&record->spin);
        Cell *cell = record_find(record, key);
        touch.key.word = cell != NULL ? cell->key : key.word;
        across(&touch);
        touch.key.word = key.word;      /* the cell's may be gone once the record is unlocked */
        spin_unlock(&record->spin);
        touch.shown_key = shown;
        touch.value = kind == WRITE ? value : NULL;
        touch_tell(&touch);
    }
    Py_XDECREF(shown);
    if (box != NULL) {
        box_drop(box);
    }
    PyErr_SetRaisedException(error);
}
