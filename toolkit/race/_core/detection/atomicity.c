/* Atomicity violations, checked on each write: it may end a span of its own thread, or fall into another thread's span.

   If the write and the other write each acquired a lock that was not held since the read, the lock guarantees mutual
   exclusion but no order: the three could have happened in another order.  Edges of any other lock count as
   happens-before edges, since it may be part of hand-made synchronisation.  */

/* True for two concurrent plain stores, which are reported as an order conflict instead.  */
static bool
reported_as_order(const Touch *touch, Access other, uint32_t kind)
{
    return kind == WRITE && where_at(other.where)->kind == WRITE && !sees(touch->thread, other.epoch);
}

static bool
past(const Thread *thread, const Base *base, uint64_t epoch, bool hard)
{
    if (base != NULL) {
        return base_sees(base, epoch, hard);
    }
    return hard ? sees_hard(thread, epoch) : sees(thread, epoch);
}

/* Find spans of other threads that this write falls into.  */
static void
against_span(Touch *touch, Access span)
{
    Where *where = where_at(span.where);
    if (where->span_site >= 0 && EPOCH_SLOT(span.epoch) != touch->thread->slot
        && violates(where_at(touch->where), where)
        && apart(where->span_locks, touch->locks) && !reported_as_order(touch, span, (uint32_t)touch->kind)
        && !past(touch->thread, NULL, span.epoch, share_lock(where->guards, touch->locks))) {
        found_add(touch, true, true, span, touch_access(touch));
    }
}

/* Report that this thread's span, with clock `base` at its read, encloses another thread's write.  */
static void
span_against(Touch *touch, Access act, const Base *base, Access span)
{
    Where *where = where_at(span.where), *other = where_at(act.where);
    if (EPOCH_SLOT(act.epoch) != touch->thread->slot && violates(other, where)
        && apart(where->span_locks, other->locks) && !reported_as_order(touch, act, where->kind)
        && !past(touch->thread, base, act.epoch, share_lock(where->guards, other->locks))) {
        found_add(touch, true, false, act, span);
    }
}

static void
span_close(Touch *touch, Cell *cell, const Base *base, Access span)
{
    Extra *extra = cell_extra(cell);
    if (extra != NULL && extra->writes.n > 0) {
        for (int i = 0; i < extra->writes.n; i++) {
            span_against(touch, extra->writes.items[i], base, span);
        }
    }
    else if (cell->write != 0) {
        span_against(touch, (Access){cell->write, cell->write_where}, base, span);
    }
}

/* From here on, the cell's lists record writers and spans; before, only its last write did.  */
static Extra *
cell_lists(Cell *cell)
{
    Extra *extra = cell_need_extra(cell);
    if (extra->writes.n == 0 && cell->write != 0) {
        Access last = {cell->write, cell->write_where};
        list_push(&extra->writes, last, MOST_ACTS);
        if (where_at(last.where)->span_site >= 0) {
            list_push(&extra->spans, last, MOST_ACTS);
        }
    }
    return extra;
}

#define MOST_CLOSED 4
typedef struct { int n; Access spans[MOST_CLOSED]; Base *bases[MOST_CLOSED]; } Closed;     /* bases owned */

/* `held`: the locks at the write.  */
static void
closed_add(Touch *touch, Closed *closed, int32_t partner, const Open *open, const HeldLock *held, int n_held)
{
    Thread *thread = touch->thread;
    uint32_t locks = 0, guards = 0;
    if (n_held > 0) {
        locks = lock_set_of(thread, held, n_held, open->acquired, false);
        guards = lock_set_of(thread, held, n_held, open->acquired, true);
    }
    uint32_t where = where_with_span(thread, touch->where, partner, locks, guards, open->presence);
    closed->bases[closed->n] = base_ref(open->base);
    closed->spans[closed->n++] = (Access){thread->epoch, where};
}

/* End the spans of this thread that this write belongs to.  Call it before the record is locked.  */
static void
spans_closing(Touch *touch, Closed *closed)
{
    Thread *thread = touch->thread;
    const Site *site = touch->site;
    if (touch->options & UPDATE) {
        uint32_t where = where_with_span(thread, touch->where, site->number, touch->locks, 0, false);
        closed->bases[closed->n] = NULL;
        closed->spans[closed->n++] = (Access){thread->epoch, where};
    }
    bool own = (touch->options & OWN || site->flags & AUGMENTED) && !(touch->options & UPDATE);
    void *frame = own || site->n_partners > 0 ? activation() : NULL;
    for (int32_t i = own ? -1 : 0; i < site->n_partners && closed->n < MOST_CLOSED; i++) {
        int32_t partner = i < 0 ? site->number : site->partners[i];
        Open *open = open_find(thread, frame, partner, touch->record, touch->key.word);
        if (open != NULL && open->base != NULL && open->used == 0) {
            closed_add(touch, closed, partner, open, thread->held, thread->n_held);
        }
    }
}

/* True if this write may replace this thread's last one without losing information.  */
static bool
replaces_last(const Touch *touch, const Cell *cell, const Closed *closed)
{
    if (cell->write == 0 || closed->n > 1) {
        return closed->n <= 1;
    }
    Access last = {cell->write, cell->write_where};
    if (site_flags(where_at(last.where)->site) & INIT) {
        return true;        /* no other thread had the object yet */
    }
    return same_sort(last, touch_access(touch), false)
        && (where_at(last.where)->span_site < 0 || (closed->n == 1 && same_sort(last, closed->spans[0], true)));
}

/* The checks for atomicity violations of a write.  */
static void
arrive(Touch *touch, Cell *cell, const Closed *closed)
{
    Thread *thread = touch->thread;
    Extra *extra = cell_extra(cell);
    bool lists = extra != NULL && extra->writes.n > 0;
    bool alone = !lists && (cell->write == 0 || EPOCH_SLOT(cell->write) == thread->slot);
    if (!alone) {
        for (int i = 0; lists && i < extra->spans.n; i++) {
            against_span(touch, extra->spans.items[i]);
        }
        if (!lists) {
            against_span(touch, (Access){cell->write, cell->write_where});
        }
        for (int i = 0; i < closed->n; i++) {
            span_close(touch, cell, closed->bases[i] != NULL ? closed->bases[i] : touch->after, closed->spans[i]);
        }
    }
    if (!alone || !replaces_last(touch, cell, closed)) {
        extra = cell_lists(cell);
        list_keep(&extra->writes, touch_access(touch), false);
        for (int i = 0; i < closed->n; i++) {
            list_keep(&extra->spans, closed->spans[i], true);
        }
    }
    if (closed->n > 0) {
        touch->where = closed->spans[0].where;
    }
}

static Base *
cell_handed_base(const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    return extra != NULL ? extra->handed_base : tagged_base(cell, HANDED);
}

/* A check that came after another thread's check and act only by chance: in the other order, both threads would have acted.

   This holds only if the check guards an act of the same direction, as a consumer that tests for an item does not
   compete with a producer that tests for room; or if it is the same site and only the hand-off of the item orders the
   two.  At the same site, the act would have acquired the same lock, so its edges give no order here.  */
static void
failed_check_against(Touch *touch, Access span, bool handed)
{
    Where *where = where_at(span.where);
    if (where->span_site < 0 || EPOCH_SLOT(span.epoch) == touch->thread->slot) {
        return;
    }
    uint32_t wanted = site_flags(where->site) & REMOVES ? GUARDED_REMOVE : GUARDED_STORE;
    bool loads = (touch->kind == READ && !(touch->options & (LOOK | TAKE | OWN))) || touch->kind == WRITE;
    bool same = where->span_site == touch->site->number;
    if ((touch->site->flags & wanted || (handed && same && where->bits & CHANGES_PRESENCE))
        && apart(where->span_locks, touch->locks)
        && (where->bits & CHANGES_PRESENCE || !(touch->options & PRESENCE))
        && !past(touch->thread, NULL, span.epoch, same ? where->guards != 0 : share_lock(where->guards, touch->locks))
        && !(loads && reported_as_order(touch, span, WRITE))) {
        found_add(touch, true, true, span, (Access){touch->thread->epoch, where_as(touch->where, READ)});
    }
}

static void
failed_check(Touch *touch, const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    bool handed = cell_handed_base(cell) != NULL;
    if (extra != NULL && extra->writes.n > 0) {
        for (int i = 0; i < extra->spans.n; i++) {
            failed_check_against(touch, extra->spans.items[i], handed);
        }
    }
    else if (cell->write != 0) {
        failed_check_against(touch, (Access){cell->write, cell->write_where}, handed);
    }
}
