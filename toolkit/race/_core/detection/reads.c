/* Loads: conflicts with the last store, and edges from the store that a load sees.  */

static inline bool
site_polls(int32_t number)
{
    return (site_flags(number) & POLL) != 0;
}

/* True if a later, ordered read may replace this one; a poll, being benign, never replaces a load.  */
static inline bool
read_superseded(const Touch *touch, Access read, bool poll)
{
    return sees(touch->thread, read.epoch) && (!poll || site_polls(where_at(read.where)->site));
}

static void
read_keep(Touch *touch, Cell *cell)
{
    bool poll = (touch->site->flags & POLL) != 0;
    Access mine = touch_access(touch);
    Extra *extra = cell_extra(cell);
    bool placed = cell->read == 0 || read_superseded(touch, (Access){cell->read, cell->read_where}, poll);
    for (int i = extra != NULL ? extra->readers.n - 1 : -1; i >= 0; i--) {
        if (read_superseded(touch, extra->readers.items[i], poll)) {
            list_remove(&extra->readers, i);
        }
    }
    if (placed) {
        cell->read = mine.epoch;
        cell->read_where = mine.where;
    }
    else {
        list_push(&cell_need_extra(cell)->readers, mine, MOST_READERS);
    }
}

static void
against_write(Touch *touch, const Cell *cell, int kind)
{
    if (cell->write != 0 && !sees(touch->thread, cell->write) && where_at(cell->write_where)->kind == WRITE) {
        Access mine = {touch->thread->epoch, kind == touch->kind ? touch->where : where_as(touch->where, kind)};
        found_add(touch, false, false, (Access){cell->write, cell->write_where}, mine);
    }
}

/* A removal in one step is no conflict of its own, but what a test found may be gone when it is used.  */
static void
against_removal(Touch *touch, const Cell *cell)
{
    Where *last = cell->write != 0 ? where_at(cell->write_where) : NULL;
    if (last != NULL && last->kind == ATOMIC && site_flags(last->site) & REMOVES_ITEM && !sees(touch->thread, cell->write)) {
        found_add(touch, false, false, (Access){cell->write, cell->write_where}, touch_access(touch));
    }
}

/* True if the load is ordered after the store that it sees: it reads a polled flag or counter, the test of double-checked
   locking, a memo, a container that is replaced as a whole, or an object that was just made.  */
enum { BY_POLLS = 1, BY_ALL = 2, BY_FRESH = 4, BY_NEW = 8 };

static inline int
published_by(uint32_t flags, uint32_t locks)
{
    return ((flags & CONSTANT && !(flags & INIT)) || flags & COUNTED ? BY_POLLS : 0)
        | (flags & (RECHECKED | MEMO) ? BY_ALL : 0) | (locks != 0 ? BY_FRESH : 0)
        | (flags & NEW && !(flags & INIT) ? BY_NEW : 0);
}

static int
cell_published_by(const Cell *cell)
{
    Where *where = where_at(cell->write_where);
    return published_by(site_flags(where->site), where->locks);
}

static Base *
cell_flag_base(const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    return extra != NULL ? extra->flag_base : tagged_base(cell, FLAGGED);
}

static void
order_after_store(Touch *touch, const Cell *cell)
{
    Thread *thread = touch->thread;
    Base *base = cell_flag_base(cell);
    if (base != NULL && !sees(thread, cell->write)) {
        int by = cell_published_by(cell);
        bool made = by & BY_NEW && !(touch->site->flags & SPAN_READ);      /* what is stored back must be a conflict */
        if (by & BY_ALL || (by & BY_POLLS && touch->site->flags & POLL)) {
            thread_join(thread, base, EPOCH_TIME(cell->write), true);
        }
        else if ((by & BY_FRESH || made) && touch->seen.base == NULL) {
            touch->seen = (Moment){base_ref(base), EPOCH_TIME(cell->write)};
            touch->sees_object = made;
        }
    }
    if (touch->site->flags & (POLL | NEW)) {
        /* The value is loaded after this note, the store may come in between: the next operation looks again.  */
        thread->polled = touch->record;
        thread->polled_serial = atomic_load_explicit(&touch->record->serial, memory_order_relaxed);
        thread->polled_key = cell->key;
        thread->polled_write = cell->write;
        thread->polled_where = cell->write_where;
        thread->attention |= ATTENTION_POLLED;
    }
}

static void
poll_again(Thread *thread)
{
    Record *record = thread->polled;
    thread->attention &= ~(uint32_t)ATTENTION_POLLED;
    spin_lock(&record->spin);
    if (atomic_load_explicit(&record->serial, memory_order_relaxed) == thread->polled_serial) {
        for (uint32_t i = 0; i < record->n; i++) {
            Cell *cell = &record->cells[i];
            /* Two stores of a thread may have one epoch: that of the first one does not publish it.  */
            bool same = cell->write == thread->polled_write && cell->write_where == thread->polled_where;
            if (cell->key == thread->polled_key && !same
                && cell_published_by(cell) & (BY_POLLS | BY_ALL | BY_NEW)) {
                thread_join(thread, cell_flag_base(cell), EPOCH_TIME(cell->write), true);
            }
        }
    }
    spin_unlock(&record->spin);
}

static bool
is_fresh_container(PyObject *value)
{
    return value != NULL && (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value)
                             || PySet_CheckExact(value) || PyFrozenSet_CheckExact(value));
}

static bool
is_number_or_text(PyObject *value)
{
    return value == Py_None || PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value);
}

static PyObject *type_lookup(PyTypeObject *type, PyObject *name);      /* object_kinds.c */

enum Loaded { NO_OBJECT, OBJECT, CONTAINER };

/* What the location holds: a container that was probably made for its last store, another object, a number or text.  */
static enum Loaded
loaded_value(const Touch *touch)
{
    PyObject *value = Py_XNewRef(touch->value);
    if (value == NULL && KEY_TAG(touch->key.word) == KEY_ATTR) {
        PyObject *error = PyErr_GetRaisedException();
        if (PyType_Check(touch->object)) {
            value = type_lookup((PyTypeObject *)touch->object, KEY_POINTER(touch->key.word));
        }
        else {
            value = PyObject_GenericGetAttr(touch->object, KEY_POINTER(touch->key.word));    /* in dict or slot */
        }
        PyErr_Clear();
        PyErr_SetRaisedException(error);
    }
    enum Loaded loaded = is_fresh_container(value) ? CONTAINER
        : value != NULL && !is_number_or_text(value) ? OBJECT : NO_OBJECT;
    Py_XDECREF(value);
    return loaded;
}

/* Add the edge from the store that a load saw, if that probably published a new container or object.  */
static void
come_after_fresh(const Touch *touch)
{
    enum Loaded loaded = loaded_value(touch);
    if (loaded == CONTAINER || (loaded == OBJECT && touch->sees_object)) {
        thread_join(touch->thread, touch->seen.base, touch->seen.time, true);
    }
}

/* Add the edge from the insertion of an item.  */
static void
take_cell(Thread *thread, const Record *record, const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    Base *base = extra != NULL ? extra->handed_base : tagged_base(cell, HANDED);
    if (base != NULL) {
        thread_join(thread, base, EPOCH_TIME(extra != NULL ? extra->handed : cell->write), true);
    }
    else if (record->hands != NULL) {
        thread_join(thread, record->hands->unknown.base, record->hands->unknown.time, true);
    }
}

static void
load(Touch *touch, Cell *cell)
{
    against_write(touch, cell, READ);
    if (unlikely(touch->site->flags & RELIES)) {
        against_removal(touch, cell);
    }
    order_after_store(touch, cell);
    if (touch->kind == READ) {
        read_keep(touch, cell);
    }
}

/* A lookup that missed conflicts with the store of its key that follows.  */
static void
look(Touch *touch, Cell *cell)
{
    if (touch->site->flags & RELIES) {
        against_removal(touch, cell);
    }
    if (misses(touch->kind, touch->options)) {
        read_keep(touch, cell);
    }
}
