/* What each access does to the records of its location, and when two of them conflict.

   FastTrack (Flanagan & Freund, PLDI 2009) for loads and stores of one location.  A thread's cache says of most accesses
   that the thread has noted the like in this epoch; then nothing shared is touched.  */

enum Option {
    HAND = 1,           /* an insertion */
    TAKE = 2,           /* whoever gets the item comes after its insertion */
    LOOK = 4,           /* a read that loads nothing: a key that is not there, or is in a set */
    UNORDERED = 8,      /* a queue, which orders for itself */
    QUIET = 16,         /* begins no span */
    UNHAND = 32,        /* the item is no more */
    UPDATE = 64,        /* a load and the store that depends on it, in one operation */
    OWN = 128,          /* a stand-in's load or store: its site is its own partner */
};

typedef struct {
    Thread *thread;
    const Site *site;
    PyObject *object;
    Record *record;
    Key key;
    int kind, options;
    uint32_t where;         /* known before the record is locked */
    uint32_t locks;
    uint32_t hard;          /* the thread's version at the beginning, kept if the touch may open a span */
    uint32_t acquired;
    PyObject *shown_key, *value;     /* borrowed, for the handler */
    int n_found;
    Found found[MOST_FOUND];
} Touch;

#define MOST_READERS 24
#define MOST_ACTS 24

static void
found_add(Touch *touch, bool span, bool first_spans, Access first, Access second)
{
    if (touch->n_found < MOST_FOUND) {
        touch->found[touch->n_found++] = (Found){first, second, span, first_spans};
    }
}

static inline Access
touch_access(const Touch *touch)
{
    return (Access){touch->thread->epoch, touch->where};
}

static void
list_push(AccessList *list, Access access, int most)
{
    if (list->n == most) {
        memmove(list->items, list->items + 1, (size_t)(list->n - 1) * sizeof(Access));
        list->n--;
    }
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 2;
        list->items = must(realloc(list->items, list->capacity * sizeof(Access)));
    }
    list->items[list->n++] = access;
}

static void
list_remove(AccessList *list, int at)
{
    list->n--;
    memmove(&list->items[at], &list->items[at + 1], (size_t)(list->n - at) * sizeof(Access));
}

/* Keep the act in place of the same thread's last of this kind under these locks (and, for spans, with this read).  */
static void
list_keep(AccessList *list, Access access, bool spans)
{
    Where *where = where_at(access.where);
    for (int i = 0; i < list->n; i++) {
        Where *other = where_at(list->items[i].where);
        if (EPOCH_SLOT(list->items[i].epoch) != EPOCH_SLOT(access.epoch) || other->kind != where->kind) {
            continue;
        }
        if (spans ? other->span_site == where->span_site && other->span_locks == where->span_locks
                  : other->locks == where->locks) {
            list->items[i] = access;
            return;
        }
    }
    list_push(list, access, MOST_ACTS);
}

/* ---- reads ------------------------------------------------------------------------------------------------------- */
static inline bool
site_polls(int32_t number)
{
    return (site_flags(number) & POLL) != 0;
}

/* A read may be forgotten for a later one that is after it; but never a plain one for a poll, which is benign.  */
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
against_write(Touch *touch, const Cell *cell)
{
    if (cell->write != 0 && !sees(touch->thread, cell->write) && where_at(cell->write_where)->kind == WRITE) {
        found_add(touch, false, false, (Access){cell->write, cell->write_where}, touch_access(touch));
    }
}

static Base *
cell_flag_base(const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    return extra != NULL ? extra->flag_base : tagged_base(cell, FLAGGED);
}

/* A poll comes after the store that it sees.  The value is loaded after this note: the store may come in between, so
   the thread's next operation looks again.  */
static void
poll(Touch *touch, Cell *cell)
{
    Thread *thread = touch->thread;
    against_write(touch, cell);
    Base *base = cell_flag_base(cell);
    if (base != NULL && !sees(thread, cell->write)) {
        thread_join(thread, base, EPOCH_TIME(cell->write), true);
        return;
    }
    thread->polled = touch->record;
    thread->polled_serial = atomic_load_explicit(&touch->record->serial, memory_order_relaxed);
    thread->polled_key = cell->key;
    thread->polled_write = cell->write;
    thread->attention |= ATTENTION_POLLED;
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
            if (cell->key == thread->polled_key && cell->write != thread->polled_write) {
                thread_join(thread, cell_flag_base(cell), EPOCH_TIME(cell->write), true);
            }
        }
    }
    spin_unlock(&record->spin);
}

/* Come after the insertion of an item.  */
static void
take_cell(Thread *thread, const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    if (extra != NULL) {
        thread_join(thread, extra->handed_base, EPOCH_TIME(extra->handed), true);
    }
    else {
        thread_join(thread, tagged_base(cell, HANDED), EPOCH_TIME(cell->write), true);
    }
}

static void
load(Touch *touch, Cell *cell)
{
    if (touch->site->flags & POLL) {
        poll(touch, cell);
    }
    else {
        against_write(touch, cell);
    }
    read_keep(touch, cell);
}

/* ---- writes ------------------------------------------------------------------------------------------------------ */

/* Both are plain stores that nothing orders: told of as that.  */
static bool
told_as_order(const Touch *touch, Access other, uint32_t kind)
{
    return kind == WRITE && where_at(other.where)->kind == WRITE && !sees(touch->thread, other.epoch);
}

/* A write of this thread may fall into a span of another.  */
static void
against_span(Touch *touch, Access span)
{
    Where *where = where_at(span.where);
    if (where->span_site >= 0 && EPOCH_SLOT(span.epoch) != touch->thread->slot
        && violates((uint32_t)touch->kind, where->kind) && apart(where->span_locks, touch->locks)
        && !sees_hard(touch->thread, span.epoch) && !told_as_order(touch, span, (uint32_t)touch->kind)) {
        found_add(touch, true, true, span, touch_access(touch));
    }
}

/* A span of this thread, whose read knew `base` (NULL: what the thread knows now), has closed over another's act.  */
static void
span_against(Touch *touch, Access act, const Base *base, Access span)
{
    Where *where = where_at(span.where);
    if (EPOCH_SLOT(act.epoch) != touch->thread->slot && violates(where_at(act.where)->kind, where->kind)
        && apart(where->span_locks, where_at(act.where)->locks)
        && !(base != NULL ? base_saw_hard(base, act.epoch) : sees_hard(touch->thread, act.epoch))
        && !told_as_order(touch, act, where->kind)) {
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

/* From here on the cell's lists tell who wrote and who had spans; until now its last write alone did.  */
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
typedef struct { int n; Access spans[MOST_CLOSED]; const Base *bases[MOST_CLOSED]; } Closed;

/* The spans of this thread that this write closes.  Before the record is locked.  */
static void
spans_closing(Touch *touch, Closed *closed)
{
    Thread *thread = touch->thread;
    const Site *site = touch->site;
    closed->n = 0;
    bool own = (touch->options & OWN || site->flags & AUGMENTED) && !(touch->options & UPDATE);
    if (touch->options & UPDATE) {
        uint32_t where = where_with_span(touch->where, site->number, site->number, touch->locks);
        closed->bases[closed->n] = NULL;
        closed->spans[closed->n++] = (Access){thread->epoch, where};
    }
    void *frame = own || site->n_partners > 0 ? activation() : NULL;
    for (int32_t i = own ? -1 : 0; i < site->n_partners && closed->n < MOST_CLOSED; i++) {
        int32_t partner = i < 0 ? site->number : site->partners[i];
        Open *open = open_find(thread, frame, partner, touch->record, touch->key.word);
        Base *base = open != NULL ? thread_hard_at(thread, open->hard) : NULL;
        if (base != NULL) {
            uint32_t where = where_with_span(touch->where, site->number, partner,
                                             thread->n_held ? lock_set_since(thread, open->acquired) : 0);
            closed->bases[closed->n] = base;
            closed->spans[closed->n++] = (Access){thread->epoch, where};
        }
    }
}

/* Claim that nothing is lost when this act takes the place of this thread's last one.  */
static bool
replaces_last(const Touch *touch, const Cell *cell, const Closed *closed)
{
    if (cell->write == 0 || closed->n > 1) {
        return closed->n <= 1;
    }
    Where *last = where_at(cell->write_where);
    if (site_flags(last->site) & INIT) {
        return true;        /* nobody else had the object yet */
    }
    if (last->locks != touch->locks || (last->kind != (uint32_t)touch->kind && last->kind != ATOMIC)) {
        return false;
    }
    return last->span_site < 0
        || (closed->n == 1 && where_at(closed->spans[0].where)->span_site == last->span_site
            && where_at(closed->spans[0].where)->span_locks == last->span_locks);
}

/* The atomicity layer's part of a write-like act.   */
static void
arrive(Touch *touch, Cell *cell, const Closed *closed)
{
    Thread *thread = touch->thread;
    Extra *extra = cell_extra(cell);
    bool lists = extra != NULL && extra->writes.n > 0;
    bool alone = !lists && (cell->write == 0 || EPOCH_SLOT(cell->write) == thread->slot);
    if (!alone) {
        if (lists) {
            for (int i = 0; i < extra->spans.n; i++) {
                against_span(touch, extra->spans.items[i]);
            }
        }
        else {
            against_span(touch, (Access){cell->write, cell->write_where});
        }
        for (int i = 0; i < closed->n; i++) {
            span_close(touch, cell, closed->bases[i], closed->spans[i]);
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

/* The item is handed over by this thread as well, now.  */
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

static void
cell_set_write(Touch *touch, Cell *cell)
{
    Thread *thread = touch->thread;
    int tags = (touch->options & HAND ? HANDED : 0)
        | ((touch->site->flags & (CONSTANT | INIT)) == CONSTANT && touch->kind == WRITE ? FLAGGED : 0);
    Extra *extra = cell_extra(cell);
    if (extra == NULL && cell->extra & HANDED && !(tags & HANDED && sees(thread, cell->write))) {
        extra = cell_need_extra(cell);      /* its insertion is another moment than this write */
    }
    Base *base = tags ? thread_base(thread) : NULL;
    if (extra == NULL) {
        cell_clear(cell);
        cell->extra = tags ? (uintptr_t)base_ref(base) | (uintptr_t)tags : 0;
    }
    else {
        if (tags & HANDED) {
            hand(touch, extra);
        }
        base_drop(extra->flag_base);
        extra->flag_base = tags & FLAGGED ? base_ref(base) : NULL;
    }
    cell->write = thread->epoch;
    cell->write_where = touch->where;
}

static void
store(Touch *touch, Cell *cell, const Closed *closed)
{
    against_write(touch, cell);
    if (cell->read != 0 && !sees(touch->thread, cell->read)) {
        found_add(touch, false, false, (Access){cell->read, cell->read_where}, touch_access(touch));
    }
    Extra *extra = cell_extra(cell);
    for (int i = 0; extra != NULL && i < extra->readers.n; i++) {
        if (!sees(touch->thread, extra->readers.items[i].epoch)) {
            found_add(touch, false, false, extra->readers.items[i], touch_access(touch));
        }
    }
    arrive(touch, cell, closed);
    cell->read = 0;
    if ((extra = cell_extra(cell)) != NULL) {
        extra->readers.n = 0;
    }
    cell_set_write(touch, cell);
}

/* setdefault, pop, add: conflicts with nothing by itself.  The cell's place of the last write is free for it unless a
   store is there.  */
static void
atomic_step(Touch *touch, Cell *cell, const Closed *closed)
{
    arrive(touch, cell, closed);
    bool free_place = cell->write == 0 || where_at(cell->write_where)->kind == ATOMIC;
    if (free_place) {
        if (cell->write != 0 && EPOCH_SLOT(cell->write) != touch->thread->slot) {
            cell_lists(cell);
        }
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

/* A check that another thread's check and act came before only by luck: had this one come first, both had acted.
   Only where this check guards an act of the same direction: a consumer that looks whether there is something has
   nothing to do with two producers that look whether there is nothing.  */
static void
failed_check_against(Touch *touch, Access span)
{
    Where *where = where_at(span.where);
    if (where->span_site < 0 || EPOCH_SLOT(span.epoch) == touch->thread->slot
        || sees_hard(touch->thread, span.epoch) || !apart(where->span_locks, touch->locks)) {
        return;
    }
    bool loads = (touch->kind == READ && !(touch->options & (LOOK | TAKE))) || touch->options & UPDATE;
    if (loads && told_as_order(touch, span, WRITE)) {
        return;
    }
    uint32_t wanted = site_flags(where->site) & REMOVES ? GUARDED_REMOVE : GUARDED_STORE;
    if (touch->site->flags & wanted) {
        found_add(touch, true, true, span, touch_access(touch));
    }
}

static void
failed_check(Touch *touch, const Cell *cell)
{
    Extra *extra = cell_extra(cell);
    if (extra != NULL && extra->writes.n > 0) {
        for (int i = 0; i < extra->spans.n; i++) {
            failed_check_against(touch, extra->spans.items[i]);
        }
    }
    else if (cell->write != 0) {
        failed_check_against(touch, (Access){cell->write, cell->write_where});
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

static void
structure_against(Touch *touch, Access other)
{
    if (!(touch->options & UNORDERED) && !sees(touch->thread, other.epoch)
        && structures_conflict((uint32_t)touch->kind, where_at(other.where)->kind)) {
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
    bool same_kind = cell->write == 0 || where_at(cell->write_where)->kind == (uint32_t)touch->kind;
    if (!same_kind) {
        cell_lists(cell);
    }
    arrive(touch, cell, closed);
    cell_set_write(touch, cell);
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */
static inline bool
is_write(int kind)
{
    return kind == WRITE || kind == ATOMIC || kind >= GROW;
}

/* Claim that the like was noted in this epoch, though the cache has lost it.  */
static bool
is_fresh(const Touch *touch, const Cell *cell)
{
    uint64_t epoch = touch->thread->epoch;
    const Site *site = touch->site;
    if (site->flags & (POLL | GUARDED_STORE | GUARDED_REMOVE) || touch->options & (HAND | OWN | LOOK)
        || touch->thread->recording > 0
        || (site->flags & AUGMENTED && !(touch->options & UPDATE))) {
        return false;
    }
    Where *last = cell->write == epoch ? where_at(cell->write_where) : NULL;
    switch (touch->kind) {
    case READ:
        return cell->read == epoch || (last != NULL && last->kind == WRITE);
    case ITERATE:
        return cell->read == epoch;
    case WRITE:
        if (cell->read != 0 && cell->read != epoch) {
            return false;
        }
        break;
    default:
        break;
    }
    return last != NULL && site->n_partners == 0 && last->kind == (uint32_t)touch->kind
        && (!(touch->options & UPDATE) || last->span_site == site->number);
}

static int64_t
items_of(PyObject *object)
{
    if (PyDict_Check(object)) {
        return ((PyDictObject *)object)->ma_used;
    }
    if (PyList_Check(object)) {
        return Py_SIZE(object);
    }
    if (PyAnySet_Check(object)) {
        return ((PySetObject *)object)->used;
    }
    return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_MANAGED_DICT) ? 0 : INT32_MAX;
}

static Cell *
touch_cell(Touch *touch, uint32_t hint)
{
    Record *record = touch->record;
    if (hint < record->n && record->cells[hint].key == touch->key.word) {
        return &record->cells[hint];
    }
    Cell *cell = record_find(record, touch->key);
    return cell != NULL ? cell : record_add(record, touch->key);
}

static void
take_ownership(Touch *touch)
{
    Record *record = touch->record;
    if (record->owner != touch->thread->slot && record->owner != SHARED) {
        record->owner = SHARED;
        atomic_fetch_add_explicit(&record->news, 1, memory_order_relaxed);
    }
}

/* Under the record's lock, with everything known that needs Python.  */
static void
perform(Touch *touch, Cell *cell, const Closed *closed)
{
    if ((!is_write(touch->kind) || touch->options & UPDATE) && !(touch->options & QUIET)
        && touch->site->flags & (GUARDED_STORE | GUARDED_REMOVE)) {
        failed_check(touch, cell);
    }
    if (touch->options & TAKE) {
        take_cell(touch->thread, cell);
    }
    switch (touch->kind) {
    case READ:
        if (!(touch->options & LOOK)) {
            load(touch, cell);
        }
        break;
    case WRITE:
        store(touch, cell, closed);
        break;
    case ATOMIC:
        atomic_step(touch, cell, closed);
        break;
    case SIZE:
        break;
    default:
        structure(touch, cell, closed);
    }
    if (touch->options & UNHAND) {
        unhand(cell);
    }
    if (touch->options & HAND && touch->record->owner == SHARED) {
        atomic_fetch_add_explicit(&touch->record->news, 1, memory_order_relaxed);
    }
}

/* Keep what getters and setters touch, for the `reads` and `writes` around their calls.  */
static void
recent_add(Thread *thread, int side, const Touch *touch)
{
    thread->recent[side][thread->n_recent[side]++ % RING] = (Recent){
        .position = thread->position++, .object = touch->object, .record = touch->record, .key = touch->key.word,
        .epoch = thread->epoch, .where = touch->where, .kind = (uint8_t)touch->kind,
        .serial = atomic_load_explicit(&touch->record->serial, memory_order_relaxed),
        .hard = touch->hard, .acquired = touch->acquired};
}

/* Claim that a later write may depend on this.  */
static inline bool
opens(const Touch *touch)
{
    return !is_write(touch->kind) && !(touch->options & QUIET)
        && (touch->site->flags & (SPAN_READ | AUGMENTED) || touch->options & OWN);
}

static void
remember_span(Touch *touch)
{
    Thread *thread = touch->thread;
    if (thread->recording > 0 && !(touch->options & QUIET)) {
        recent_add(thread, is_write(touch->kind), touch);
    }
    if (opens(touch)) {
        open_at(thread, touch->site->number, touch->record, touch->key.word, touch->hard, touch->acquired);
    }
}

static inline uint32_t
modes_of(int kind, int options)
{
    if (kind == WRITE) {
        return 1u << READ | 1u << WRITE | (options & UPDATE ? CACHED_SPAN : 0);
    }
    return kind == SIZE ? 0 : 1u << kind;
}

/* Claim that the cache cannot know all that this would do.  */
static inline bool
uncached(int kind, const Site *site, int options)
{
    return kind == SIZE || options & (LOOK | HAND | OWN) || site->flags & OPENS_SLOWLY
        || (site->flags & AUGMENTED && !(options & UPDATE));
}

static void
cache_put(Touch *touch, Cached *cached, uint64_t epoch, uint32_t cell)
{
    Record *record = touch->record;
    uint32_t serial = atomic_load_explicit(&record->serial, memory_order_relaxed);
    uint32_t modes = touch->options & LOOK ? 0 : modes_of(touch->kind, touch->options);
    if (cached->object == touch->object && cached->key == touch->key.word && cached->epoch == epoch
        && cached->serial == serial) {
        modes |= cached->modes;
    }
    *cached = (Cached){touch->object, touch->key.word, epoch, record, serial, cell,
                       atomic_load_explicit(&record->news, memory_order_relaxed), modes};
}

static Cached *
cache_place(Thread *thread, PyObject *object, uint64_t key_hash)
{
    return &thread->cache[(hash_address(object) >> 30 ^ key_hash) % CACHE_SIZE];
}

static void
touch_finish(Touch *touch, uint64_t epoch, uint32_t cell)
{
    Thread *thread = touch->thread;
    remember_span(touch);
    /* What was published must not cover what this thread does from now on.  */
    if (touch->options & HAND
        || (touch->kind == WRITE && (touch->site->flags & (CONSTANT | INIT)) == CONSTANT)) {
        thread_advance(thread);
    }
    cache_put(touch, cache_place(thread, touch->object, key_hash(touch->key.word)), epoch, cell);
    for (int i = 0; i < touch->n_found; i++) {
        tell(thread, &touch->found[i], touch->object, touch->key.word, touch->shown_key, touch->value);
    }
}

static void
touch_begin(Thread *thread)
{
    if (unlikely(thread->attention & ATTENTION_POLLED)) {
        poll_again(thread);
    }
    if (unlikely(atomic_load_explicit(&thread->nudged, memory_order_relaxed))) {
        atomic_store(&thread->nudged, false);
        thread_advance(thread);
    }
}

static void
note_slowly(Thread *thread, PyObject *object, Key key, int kind, const Site *site, int options, PyObject *shown_key,
            PyObject *value)
{
    if (core.dead || atomic_load_explicit(&thread->ended, memory_order_relaxed)) {
        return;
    }
    touch_begin(thread);
    Cached *cached = cache_place(thread, object, key.hash);
    uint32_t hint = cached->object == object && cached->key == key.word ? cached->cell : UINT32_MAX;
    Touch touch = {.thread = thread, .site = site, .object = object, .key = key, .kind = kind, .options = options,
                   .shown_key = shown_key, .value = value};
    Record *record = touch.record = record_of(thread, object, true);
    uint64_t epoch = thread->epoch;
    if (thread->recording > 0 || opens(&touch)) {
        touch.hard = thread_hard_keep(thread);
    }
    touch.acquired = thread->acquisitions;
    Cell *dropped = NULL;
    uint32_t n_dropped = 0;
    spin_lock(&record->spin);
    take_ownership(&touch);
    if (unlikely(record->n >= 256 && record->n == record->capacity && record->n > 2 * items_of(object) + 256)) {
        dropped = record_halve(record, &n_dropped);
        atomic_fetch_add_explicit(&record->serial, 1, memory_order_relaxed);     /* caches know keys of it by address */
    }
    Cell *cell = touch_cell(&touch, hint);
    hint = (uint32_t)(cell - record->cells);
    touch.key.word = cell->key;
    bool fresh = is_fresh(&touch, cell);
    if (fresh && options & TAKE) {
        take_cell(thread, cell);
    }
    spin_unlock(&record->spin);
    if (unlikely(dropped != NULL)) {
        cells_drop(dropped, n_dropped);
    }
    if (!fresh) {
        Closed closed = {0};
        if (!(options & LOOK || kind == SIZE) || site->flags & (GUARDED_STORE | GUARDED_REMOVE)) {
            touch.locks = thread_lock_set(thread);
            touch.where = where_now(thread, site, kind, -1, 0);
            if (is_write(kind)) {
                spans_closing(&touch, &closed);
            }
        }
        spin_lock(&record->spin);
        cell = touch_cell(&touch, hint);
        hint = (uint32_t)(cell - record->cells);
        perform(&touch, cell, &closed);
        spin_unlock(&record->spin);
    }
    touch_finish(&touch, epoch, hint);
}

/* Note what the calling thread is about to do, or has just done, to a location of `object`.  */
static inline void
note(Thread *thread, PyObject *object, Key key, int kind, const Site *site, int options, PyObject *shown_key,
     PyObject *value)
{
    uint32_t wanted = modes_of(kind, options);
    Cached *cached = cache_place(thread, object, key.hash);
    if (likely(cached->object == object && cached->key == key.word && cached->epoch == thread->epoch
               && (cached->modes & wanted) == wanted && !uncached(kind, site, options) && thread->attention == 0
               && atomic_load_explicit(&cached->record->serial, memory_order_relaxed) == cached->serial
               && (!(options & TAKE)
                   || atomic_load_explicit(&cached->record->news, memory_order_relaxed) == cached->news))) {
        return;
    }
    note_slowly(thread, object, key, kind, site, options, shown_key, value);
}
