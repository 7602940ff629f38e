/* Reads of many items at once: loops, snapshots, slices of lists.  They conflict with plain stores of items; they are
   ordered after insertions.  */

static bool
in_range(int64_t index, const int64_t range[3])
{
    int64_t low = range[2] > 0 ? range[0] : range[1] + 1, high = range[2] > 0 ? range[1] : range[0] + 1;
    return index >= low && index < high && (index - range[0]) % range[2] == 0;
}

static bool
whole_covers(const Whole *whole, uint64_t key)
{
    int tag = KEY_TAG(key);
    if (tag != KEY_INT) {
        return whole->all && (tag == KEY_VALUE || tag == KEY_SAME);
    }
    return whole->all || in_range(key_as_int(key), whole->range);
}

/* Check a plain store of an item against reads of many.  The caller holds the record's lock.  */
static void
against_wholes(Touch *touch)
{
    const Wholes *wholes = touch->record->wholes;
    for (uint32_t i = 0; i < wholes->n; i++) {
        if (whole_covers(&wholes->items[i], touch->key.word) && !sees(touch->thread, wholes->items[i].read.epoch)) {
            found_add(touch, false, false, wholes->items[i].read, touch_access(touch));
        }
    }
}

static void
wholes_keep(Wholes *wholes, const Whole *whole)
{
    for (uint32_t i = 0; i < wholes->n; i++) {
        Whole *other = &wholes->items[i];
        if (EPOCH_SLOT(other->read.epoch) == EPOCH_SLOT(whole->read.epoch) && other->all == whole->all
            && (whole->all || memcmp(other->range, whole->range, sizeof(whole->range)) == 0)) {
            *other = *whole;
            return;
        }
    }
    uint32_t most = sizeof(wholes->items) / sizeof(wholes->items[0]);
    if (wholes->n == most) {
        memmove(wholes->items, wholes->items + 1, (most - 1) * sizeof(Whole));
        wholes->n--;
    }
    wholes->items[wholes->n++] = *whole;
}

/* The caller holds the record's lock.  */
static void
whole_read(Touch *touch, const Whole *whole)
{
    Record *record = touch->record;
    for (uint32_t i = 0; i < record->n; i++) {
        Cell *cell = &record->cells[i];
        Where *where = where_at(cell->write_where);
        if (cell->write == 0 || where->kind != WRITE || where->bits & CHANGES_PRESENCE
            || !whole_covers(whole, cell->key) || sees(touch->thread, cell->write)) {
            continue;
        }
        int before = touch->n_found;
        found_add(touch, false, false, (Access){cell->write, cell->write_where}, whole->read);
        if (touch->n_found > before) {
            touch->found[before].key = key_keep(cell->key);
        }
    }
    wholes_keep(record->wholes, whole);
}

#define KEY_WHOLE ((uint64_t)KEY_PART | 16)

/* Note that all items are read, or those of a range (start, stop, step).  */
static void
note_whole(Thread *thread, PyObject *container, const Site *site, const int64_t range[3])
{
    Cached *cached = cache_place(thread, container, mix(KEY_WHOLE, 1));
    Record *record = record_of(thread, container, true);
    trace_whole(thread, record, site, range);
    if (range == NULL && cached->object == container && cached->key == KEY_WHOLE && cached->epoch == thread->epoch
        && cached->serial == atomic_load_explicit(&record->serial, memory_order_relaxed)) {
        return;
    }
    Touch touch;
    touch_init(&touch, thread, site, container, record, key_word(KEY_WHOLE), READ);
    Whole whole = {{thread->epoch, where_now(thread, site, READ, 0)}, range == NULL, {0, 0, 0}};
    if (range != NULL) {
        memcpy(whole.range, range, sizeof(whole.range));
    }
    Wholes *fresh = must(calloc(1, sizeof(Wholes)));
    spin_lock(&record->spin);
    take_ownership(&touch);
    if (record->wholes == NULL) {
        record->wholes = fresh;
        fresh = NULL;
    }
    whole_read(&touch, &whole);
    spin_unlock(&record->spin);
    free(fresh);
    if (range == NULL) {
        *cached = (Cached){.object = container, .key = KEY_WHOLE, .epoch = thread->epoch, .record = record,
                           .serial = atomic_load_explicit(&record->serial, memory_order_relaxed)};
    }
    touch_tell(&touch);
}
