/* Hand-off through list and deque: whoever gets a value out comes after those who put it in.  Values are told apart by
   identity, without a reference; what left the container unseen is forgotten when there is too much of it.  */

#define FEW_HANDS 64

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
hands_put(Hands *hands, Thread *thread, PyObject *value)
{
    if (hands->items == NULL || hands->used >= hands->mask / 2) {
        hands_resize(hands);
    }
    Handed *item = hands_find(hands, (uintptr_t)value);
    if (item == NULL) {
        item = hands_place(hands, (uintptr_t)value);
    }
    item->count++;
    moment_add(&item->moment, thread);
}

static void
hands_remove(Hands *hands, Handed *item)
{
    base_drop(item->moment.base);
    *item = (Handed){.value = 1};
    hands->n--;
}

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
        base_drop(hands->items[i].moment.base);
    }
    free(hands->items);
    hands->items = kept.items;
    hands->n = kept.n;
    hands->used = kept.used;
    hands->mask = kept.mask;
}

/* Forget values that left the container unseen.  */
static void
hands_prune(Record *record, PyObject *container)
{
    Hands *hands = record->hands;
    if (hands == NULL || hands->n <= hands->limit) {
        return;
    }
    Py_ssize_t length = PyObject_Length(container);
    PyObject *values = hands->n > 2 * length + FEW_HANDS ? PySequence_List(container) : NULL;
    PyErr_Clear();              /* a deque that another thread changes: the next time will do */
    spin_lock(&record->spin);
    if (values != NULL) {
        hands_keep_only(hands, values);
    }
    hands->limit = 2 * (hands->n > length ? hands->n : (uint32_t)length) + FEW_HANDS;
    spin_unlock(&record->spin);
    Py_XDECREF(values);
}

/* Before values are put into the container.  values == NULL: nobody knows which.  */
static void
hand_values(Thread *thread, PyObject *container, PyObject *const *values, Py_ssize_t n)
{
    Record *record = record_of(thread, container, true);
    hands_prune(record, container);
    Hands *fresh = record->hands == NULL ? must(calloc(1, sizeof(Hands))) : NULL;
    spin_lock(&record->spin);
    if (record->hands == NULL) {
        record->hands = fresh;
        fresh->limit = FEW_HANDS;
        fresh = NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        hands_put(record->hands, thread, values[i]);
    }
    if (values == NULL) {
        moment_add(&record->hands->unknown, thread);
    }
    spin_unlock(&record->spin);
    free(fresh);
    thread_advance(thread);
}

/* After a value was got out of the container; `removed`: for good.  */
static void
take_value(Thread *thread, PyObject *container, PyObject *value, bool removed)
{
    Record *record = record_of(thread, container, false);
    if (record == NULL || record->hands == NULL || (!removed && record->owner == thread->slot)) {
        return;
    }
    spin_lock(&record->spin);
    Hands *hands = record->hands;
    Handed *item = hands_find(hands, (uintptr_t)value);
    Moment moment = item != NULL ? item->moment : hands->unknown;
    thread_join(thread, moment.base, moment.time, true);
    if (removed && item != NULL && --item->count == 0) {
        hands_remove(hands, item);
    }
    spin_unlock(&record->spin);
}

/* Come after every insertion into the container.  */
static void
take_all(Thread *thread, PyObject *container)
{
    Record *record = record_of(thread, container, false);
    if (record == NULL || record->owner == thread->slot) {
        return;
    }
    spin_lock(&record->spin);
    for (uint32_t i = 0; i < record->n; i++) {
        take_cell(thread, &record->cells[i]);
    }
    Hands *hands = record->hands;
    for (uint32_t i = 0; hands != NULL && hands->items != NULL && i <= hands->mask; i++) {
        thread_join(thread, hands->items[i].moment.base, hands->items[i].moment.time, true);
    }
    if (hands != NULL) {
        thread_join(thread, hands->unknown.base, hands->unknown.time, true);
    }
    spin_unlock(&record->spin);
}
