/* Stores, insertions, atomic steps, and changes of a container's structure.  */

/* Add this thread's clock to that of the item's insertions.  */
static void
hand(Touch *touch, Extra *extra)
{
    Thread *thread = touch->thread;
    Moment before = {extra->handed_base, EPOCH_TIME(extra->handed)};
    if (moment_known(thread, before)) {
        Base *base = base_ref(thread_base(thread));
        base_drop(before.base);
        extra->handed_base = base;
        extra->handed = thread->epoch;
        return;
    }
    Moment both = moment_union(before, thread_base(thread), thread_time(thread));
    extra->handed_base = both.base;
    extra->handed = both.time;
}

static inline int
write_tags(const Touch *touch)
{
    return (touch->options & HAND ? HANDED : 0)
        | (touch->kind == WRITE && published_by(touch->site->flags, touch->locks) ? FLAGGED : 0);
}

/* True if other threads may join this moment, so that later accesses of the thread need a later time.  A number stored
   under a lock is no new container, so no load is ordered after it.  */
static inline bool
publishes(const Touch *touch)
{
    return touch->options & HAND
        || (touch->kind == WRITE && published_by(touch->site->flags, touch->options & UPDATE ? 0 : touch->locks));
}

static void
cell_set_write(Touch *touch, Cell *cell)
{
    Thread *thread = touch->thread;
    int tags = write_tags(touch);
    Extra *extra = cell_extra(cell);
    if (extra == NULL && cell->extra & HANDED && !(tags & HANDED && sees(thread, cell->write))) {
        extra = cell_need_extra(cell);      /* its insertion is another moment than this write */
    }
    Base *base = tags ? thread_base(thread) : NULL;
    if (extra == NULL) {
        if ((cell->extra & ~EXTRA_TAGS) != (uintptr_t)base) {
            cell_clear(cell);
            base_ref(base);
        }
        cell->extra = (uintptr_t)base | (uintptr_t)tags;
    }
    else {
        if (tags & HANDED) {
            hand(touch, extra);
        }
        if (extra->flag_base != base) {
            base_drop(extra->flag_base);
            extra->flag_base = tags & FLAGGED ? base_ref(base) : NULL;
        }
        else if (!(tags & FLAGGED)) {
            base_drop(extra->flag_base);
            extra->flag_base = NULL;
        }
    }
    cell->write = thread->epoch;
    cell->write_where = touch->where;
}

static void against_wholes(Touch *touch);

static void
store(Touch *touch, Cell *cell, const Closed *closed)
{
    against_write(touch, cell, WRITE);
    if (cell->read != 0 && !sees(touch->thread, cell->read)) {
        found_add(touch, false, false, (Access){cell->read, cell->read_where}, touch_access(touch));
    }
    Extra *extra = cell_extra(cell);
    for (int i = 0; extra != NULL && i < extra->readers.n; i++) {
        if (!sees(touch->thread, extra->readers.items[i].epoch)) {
            found_add(touch, false, false, extra->readers.items[i], touch_access(touch));
        }
    }
    if (unlikely(touch->record->wholes != NULL) && !(touch->options & PRESENCE)) {
        against_wholes(touch);
    }
    arrive(touch, cell, closed);
    cell->read = 0;
    if ((extra = cell_extra(cell)) != NULL) {
        extra->readers.n = 0;
    }
    cell_set_write(touch, cell);
}

/* Report a removal that may take away what a test found, whose use is yet to come.  */
static void
removal_against(Touch *touch, Access read)
{
    Where *where = where_at(read.where);
    if (read.epoch != 0 && where->kind != MISS && site_flags(where->site) & RELIES && !sees(touch->thread, read.epoch)) {
        found_add(touch, false, false, read, touch_access(touch));
    }
}

/* An atomic step such as setdefault, pop or add, which conflicts with nothing by itself.  It is recorded as the cell's
   last write unless a plain store is.  */
static void
atomic_step(Touch *touch, Cell *cell, const Closed *closed)
{
    if (touch->site->flags & REMOVES_ITEM) {
        Extra *extra = cell_extra(cell);
        removal_against(touch, (Access){cell->read, cell->read_where});
        for (int i = 0; extra != NULL && i < extra->readers.n; i++) {
            removal_against(touch, extra->readers.items[i]);
        }
    }
    arrive(touch, cell, closed);
    bool free_place = cell->write == 0 || where_at(cell->write_where)->kind == ATOMIC;
    if (free_place) {
        cell_set_write(touch, cell);
    }
    else if (touch->options & HAND) {
        hand(touch, cell_need_extra(cell));
    }
}

static void
unhand(Cell *cell)
{
    Extra *extra = cell_extra(cell);
    if (extra == NULL && cell->extra & HANDED) {
        extra = cell_need_extra(cell);
    }
    if (extra != NULL) {
        base_drop(extra->handed_base);
        extra->handed_base = NULL;
    }
}

/* ---- structures -------------------------------------------------------------------------------------------------- */
static bool
structures_conflict(uint32_t kind, uint32_t other)
{
    switch (kind) {
    case ITERATE: return other == GROW || other == SHRINK || other == RESHAPE;
    case RESHAPE: return other >= ITERATE && other <= RESHAPE;
    default: return other == ITERATE || other == RESHAPE;     /* GROW, SHRINK */
    }
}

/* True if a removal may take away what a test found: any item of a sequence, whose indexes change, and of others what
   takes any item.  The use of a test is recorded as an iteration.  */
static bool
outdates(const Touch *touch, uint32_t kind, uint32_t flags)
{
    bool keyed = PyDict_Check(touch->object) || PyAnySet_Check(touch->object);
    return kind == SHRINK && (!keyed || flags & EMPTIES);
}

static void
structure_against(Touch *touch, Access other)
{
    Where *where = where_at(other.where);
    uint32_t kind = (uint32_t)touch->kind, flags = site_flags(where->site);
    if (touch->options & UNORDERED || sees(touch->thread, other.epoch) || !structures_conflict(kind, where->kind)) {
        return;
    }
    bool used = kind == ITERATE ? !(touch->site->flags & RELIES) || outdates(touch, where->kind, flags)
                : where->kind == ITERATE ? !(flags & RELIES) || outdates(touch, kind, touch->site->flags) : true;
    if (used) {
        found_add(touch, false, false, other, touch_access(touch));
    }
}

/* Changes of a structure do not order each other, so the last one of each kind of each thread counts.  The cell's read
   and its readers hold iterations.  */
static void
structure(Touch *touch, Cell *cell, const Closed *closed)
{
    Extra *extra = cell_extra(cell);
    if (extra != NULL && extra->writes.n > 0) {
        for (int i = 0; i < extra->writes.n; i++) {
            structure_against(touch, extra->writes.items[i]);
        }
    }
    else if (cell->write != 0) {
        structure_against(touch, (Access){cell->write, cell->write_where});
    }
    if (touch->kind == ITERATE) {
        read_keep(touch, cell);
        return;
    }
    if (cell->read != 0) {
        structure_against(touch, (Access){cell->read, cell->read_where});
    }
    for (int i = 0; extra != NULL && i < extra->readers.n; i++) {
        structure_against(touch, extra->readers.items[i]);
    }
    arrive(touch, cell, closed);
    cell_set_write(touch, cell);
}
