/* Happens-before edges through list and deque: taking a value is ordered after inserting it.  Values are identified by
   their addresses, without a reference; those that left the container unnoticed are dropped from time to time.  */

#define FEW_HANDS 64
#define MOST_EQUAL 256      /* insertions of one and the same object that are told apart */

enum End { RIGHT, LEFT, ANYWHERE, STAYS };      /* where a value is put in, or taken out */

static Handed *
hands_find(const Hands *hands, uintptr_t value)
{
    if (hands->items == NULL) {
        return NULL;
    }
    for (uint64_t at = mix(value, 5);; at++) {
        Handed *item = &hands->items[at & hands->mask];
        if (item->value == value) {
            return item;
        }
        if (item->value == 0) {
            return NULL;
        }
    }
}

static Handed *
hands_place(Hands *hands, uintptr_t value)
{
    uint64_t at = mix(value, 5);
    while (hands->items[at & hands->mask].value > 1) {
        at++;
    }
    Handed *item = &hands->items[at & hands->mask];
    hands->used += item->value == 0;
    hands->n++;
    *item = (Handed){.value = value};
    return item;
}

static void
hands_resize(Hands *hands)
{
    Handed *old = hands->items;
    uint32_t n = old != NULL ? hands->mask + 1 : 0, size = 16;
    while (size < 3 * (hands->n + 1)) {
        size *= 2;
    }
    hands->items = must(calloc(size, sizeof(Handed)));
    hands->mask = size - 1;
    hands->n = hands->used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (old[i].value > 1) {
            *hands_place(hands, old[i].value) = old[i];
        }
    }
    free(old);
}

static void
moment_add(Moment *moment, Thread *thread)
{
    Base *base = thread_base(thread);
    if (moment_known(thread, *moment)) {
        if (moment->base != base) {
            base_drop(moment->base);
            moment->base = base_ref(base);
        }
        moment->time = thread_time(thread);
    }
    else {
        *moment = moment_union(*moment, base, thread_time(thread));
    }
}

static void
handed_remove(Handed *item, uint32_t at)
{
    base_drop(item->moments[at].base);
    item->n--;
    memmove(&item->moments[at], &item->moments[at + 1], (item->n - at) * sizeof(Moment));
}

static void
hands_put(Hands *hands, Thread *thread, PyObject *value, enum End end)
{
    if (hands->items == NULL || hands->used >= hands->mask / 2) {
        hands_resize(hands);
    }
    Handed *item = hands_find(hands, (uintptr_t)value);
    if (item == NULL) {
        item = hands_place(hands, (uintptr_t)value);
    }
    if (item->n == MOST_EQUAL) {
        handed_remove(item, end == LEFT ? item->n - 1 : 0);
    }
    if (item->n == item->capacity) {
        item->capacity = item->capacity ? 2 * item->capacity : 1;
        item->moments = must(realloc(item->moments, item->capacity * sizeof(Moment)));
    }
    uint32_t at = end == LEFT ? 0 : item->n;
    memmove(&item->moments[at + 1], &item->moments[at], (item->n - at) * sizeof(Moment));
    item->moments[at] = (Moment){base_ref(thread_base(thread)), thread_time(thread)};
    item->n++;
}

static void
hands_remove(Hands *hands, Handed *item)
{
    while (item->n > 0) {
        handed_remove(item, item->n - 1);
    }
    free(item->moments);
    *item = (Handed){.value = 1};
    hands->n--;
}

static void
hands_free(Hands *hands)
{
    if (hands != NULL) {
        for (uint32_t i = 0; hands->items != NULL && i <= hands->mask; i++) {
            hands_remove(hands, &hands->items[i]);
        }
        base_drop(hands->unknown.base);
        free(hands->items);
        free(hands);
    }
}

/* Forget all values except the given ones.  */
static void
hands_keep_only(Hands *hands, PyObject *values)
{
    Hands kept = {0};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); i++) {
        Handed *item = hands_find(hands, (uintptr_t)PyList_GET_ITEM(values, i));
        if (item == NULL) {
            continue;
        }
        if (kept.items == NULL || kept.used >= kept.mask / 2) {
            hands_resize(&kept);
        }
        *hands_place(&kept, item->value) = *item;
        *item = (Handed){.value = 1};
    }
    for (uint32_t i = 0; i <= hands->mask; i++) {
        hands_remove(hands, &hands->items[i]);
    }
    free(hands->items);
    hands->items = kept.items;
    hands->n = kept.n;
    hands->used = kept.used;
    hands->mask = kept.mask;
}

static Py_ssize_t own_length(PyObject *container);       /* object_kinds.c */
static PyObject *own_values(PyObject *container);

/* Drop values that left the container unnoticed.  */
static void
hands_prune(Record *record, PyObject *container)
{
    spin_lock(&record->spin);
    Hands *hands = record->hands;
    bool many = hands != NULL && hands->n > hands->limit;
    uint32_t n = many ? hands->n : 0;
    spin_unlock(&record->spin);
    if (!many) {
        return;
    }
    PyObject *error = PyErr_GetRaisedException();
    Py_ssize_t length = own_length(container);
    PyObject *values = n > 2 * length + FEW_HANDS ? own_values(container) : NULL;
    PyErr_Clear();              /* a deque that another thread changes: the next time will do */
    PyErr_SetRaisedException(error);
    spin_lock(&record->spin);
    hands = record->hands;      /* another thread may have cleared the container */
    if (hands != NULL && hands->items != NULL && values != NULL) {
        hands_keep_only(hands, values);
    }
    if (hands != NULL) {
        hands->limit = 2 * (hands->n > length ? hands->n : (uint32_t)length) + FEW_HANDS;
    }
    spin_unlock(&record->spin);
    Py_XDECREF(values);
}

/* The caller holds the record's lock.  */
static Hands *
hands_need(Record *record)
{
    if (record->hands == NULL) {
        Hands *fresh = must(calloc(1, sizeof(Hands)));
        fresh->limit = FEW_HANDS;
        record->hands = fresh;
    }
    return record->hands;
}

/* Store this thread's clock for values before they are inserted.  */
static void
hand_values(Thread *thread, PyObject *container, PyObject *const *values, Py_ssize_t n, enum End end)
{
    Record *record = record_of(thread, container, true);
    hands_prune(record, container);
    spin_lock(&record->spin);
    Hands *hands = hands_need(record);
    for (Py_ssize_t i = 0; i < n; i++) {
        trace("hand %u %u %d %p", thread->uid, trace_number(&record->traced), end, (void *)values[i]);
        hands_put(hands, thread, values[i], end);
    }
    spin_unlock(&record->spin);
    thread_advance(thread);
}

/* Store this thread's clock for all values whose insertions are unknown.  */
static void
hand_unknown(Thread *thread, PyObject *container)
{
    Record *record = record_of(thread, container, true);
    spin_lock(&record->spin);
    trace("hand_unknown %u %u", thread->uid, trace_number(&record->traced));
    moment_add(&hands_need(record)->unknown, thread);
    spin_unlock(&record->spin);
    atomic_fetch_add_explicit(&record->news, 1, memory_order_relaxed);
    thread_advance(thread);
}

/* Add the edge from the insertion of a value at one end.  If several threads inserted the same object, the first insertion
   of any of them may be meant.  */
static void
take_from_end(Thread *thread, Handed *item, enum End end)
{
    for (uint32_t i = 0; i < item->n; i++) {
        Moment *moment = &item->moments[end == LEFT ? i : item->n - 1 - i];
        bool first = true;
        for (uint32_t k = 0; k < i && first; k++) {
            first = item->moments[end == LEFT ? k : item->n - 1 - k].base->slot != moment->base->slot;
        }
        if (first) {
            thread_join(thread, moment->base, moment->time, true);
        }
    }
    handed_remove(item, end == LEFT ? 0 : item->n - 1);
}

/* Add the edge from the insertion of a value that has been taken out.  */
static void
take_value(Thread *thread, PyObject *container, PyObject *value, enum End end)
{
    Record *record = record_of(thread, container, false);
    if (record == NULL || record->hands == NULL || (end == STAYS && record->owner == thread->slot)) {
        return;
    }
    uint32_t most = end == STAYS ? 0 : (uint32_t)own_length(container) + 1;
    spin_lock(&record->spin);
    trace("take %u %u %d %p %u", thread->uid, trace_number(&record->traced), end, (void *)value, most);
    Hands *hands = record->hands;
    Handed *item = hands != NULL ? hands_find(hands, (uintptr_t)value) : NULL;
    if (hands == NULL) {
        /* another thread has cleared the container */
    }
    else if (item == NULL) {
        thread_join(thread, hands->unknown.base, hands->unknown.time, true);
    }
    else if (end == LEFT || end == RIGHT) {
        while (item->n > most) {        /* the oldest of too many left it unseen */
            handed_remove(item, 0);
        }
        take_from_end(thread, item, end);
    }
    else {
        for (uint32_t i = 0; i < item->n; i++) {
            thread_join(thread, item->moments[i].base, item->moments[i].time, true);
        }
        if (end == ANYWHERE) {
            handed_remove(item, 0);
        }
    }
    if (item != NULL && item->n == 0) {
        hands_remove(hands, item);
    }
    spin_unlock(&record->spin);
}

/* Drop all insertions into the container.  */
static void
hands_clear(Thread *thread, PyObject *container)
{
    Record *record = record_of(thread, container, false);
    if (record == NULL) {
        return;
    }
    spin_lock(&record->spin);
    trace("clear %u %u", thread->uid, trace_number(&record->traced));
    for (uint32_t i = 0; i < record->n; i++) {
        unhand(&record->cells[i]);
    }
    Hands *hands = record->hands;
    record->hands = NULL;
    spin_unlock(&record->spin);
    hands_free(hands);
}

/* Add the edges from all insertions into the container.  */
static void
take_all(Thread *thread, PyObject *container)
{
    Record *record = record_of(thread, container, false);
    if (record == NULL || record->owner == thread->slot) {
        return;
    }
    spin_lock(&record->spin);
    trace("take_all %u %u", thread->uid, trace_number(&record->traced));
    for (uint32_t i = 0; i < record->n; i++) {
        take_cell(thread, record, &record->cells[i]);
    }
    Hands *hands = record->hands;
    for (uint32_t i = 0; hands != NULL && hands->items != NULL && i <= hands->mask; i++) {
        for (uint32_t k = 0; k < hands->items[i].n; k++) {
            thread_join(thread, hands->items[i].moments[k].base, hands->items[i].moments[k].time, true);
        }
    }
    if (hands != NULL) {
        thread_join(thread, hands->unknown.base, hands->unknown.time, true);
    }
    spin_unlock(&record->spin);
}
