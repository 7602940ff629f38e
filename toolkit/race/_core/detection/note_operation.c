/* Tracking one operation: the thread's cache, the record's lock, and the report once it is unlocked.

   FastTrack (Flanagan & Freund, PLDI 2009) for loads and stores of one location.  For most accesses the thread's cache
   shows that the thread has made an equal one in this epoch; then no shared state is accessed.  */

/* True if the cell shows an equal access in this epoch, which the cache has dropped.  */
static bool
is_fresh(const Touch *touch, const Cell *cell)
{
    uint64_t epoch = touch->thread->epoch;
    const Site *site = touch->site;
    if (site->flags & (POLL | GUARDED_STORE | GUARDED_REMOVE) || touch->options & (HAND | UNHAND | OWN | LOOK)
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
        if ((cell->read != 0 && cell->read != epoch) || publishes(touch)) {
            return false;
        }
        break;
    default:
        break;
    }
    return last != NULL && site->n_partners == 0 && last->kind == (uint32_t)touch->kind
        && (last->bits & CHANGES_PRESENCE) == touch_bits(touch->kind, touch->options)
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
    if (hint < record->n && key_equal(record->cells[hint].key, touch->key)) {
        return &record->cells[hint];
    }
    Cell *cell = record_find(record, touch->key);
    return cell != NULL ? cell : record_add(record, touch->key);
}

/* Identify the location by its cell's key from now on.  Other threads may drop the cell once the record is unlocked,
   so the touch owns a reference, unless it is the caller's key.  Call it with the record locked.  */
static void
adopt_key(Touch *touch, const Cell *cell)
{
    if (cell->key != touch->key.word) {
        touch->key.word = key_keep(cell->key);
        touch->keeps_key = true;
    }
    touch->serial = atomic_load_explicit(&touch->record->serial, memory_order_relaxed);
    touch->news = atomic_load_explicit(&touch->record->news, memory_order_relaxed);
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

/* The caller holds the record's lock, and needs no Python from here on.  */
static void
perform(Touch *touch, Cell *cell, const Closed *closed)
{
    Thread *thread = touch->thread;
    bool begins = opens(touch) || (touch->options & UPDATE && !(touch->options & QUIET));
    if (begins && touch->record->owner == SHARED) {
        failed_check(touch, cell);
    }
    if (touch->options & TAKE && touch->record->owner == SHARED) {
        take_cell(thread, touch->record, cell);
    }
    if (begins || thread->recording > 0) {
        touch->after = base_ref(thread_base(thread));
    }
    if (touch->options & UPDATE || (touch->kind == READ && !(touch->options & LOOK))) {
        load(touch, cell);
    }
    else if (touch->options & LOOK) {
        look(touch, cell);
    }
    if (touch->kind == WRITE) {
        store(touch, cell, closed);
    }
    else if (touch->kind == ATOMIC) {
        atomic_step(touch, cell, closed);
    }
    else if (touch->kind >= ITERATE) {
        structure(touch, cell, closed);
    }
    if (touch->options & UNHAND) {
        unhand(cell);
    }
    if (touch->record->owner == SHARED && publishes(touch)) {
        atomic_fetch_add_explicit(&touch->record->news, 1, memory_order_relaxed);
    }
    touch->news = atomic_load_explicit(&touch->record->news, memory_order_relaxed);
}

/* Record accesses inside of getters and setters, for the `reads` and `writes` around their calls.  */
static void
recent_add(Thread *thread, int side, const Touch *touch)
{
    Recent *recent = &thread->recent[side][thread->n_recent[side]++ % RING];
    base_drop(recent->base);
    Py_XDECREF(recent->ref);
    *recent = (Recent){
        .position = thread->position++, .object = touch->object, .record = touch->record, .key = touch->key.word,
        .epoch = thread->epoch, .where = touch->where, .base = base_ref(touch->after), .locks = touch->locks,
        .serial = touch->serial, .acquired = thread->acquisitions, .presence = touch->options & PRESENCE,
        .number = thread->n_writes + 1};
    prepare_reference(recent);
    recent->n_held = thread->n_held < SET_UIDS ? thread->n_held : SET_UIDS;
    memcpy(recent->held, &thread->held[thread->n_held - recent->n_held], (size_t)recent->n_held * sizeof(HeldLock));
}

static void
remember_span(Touch *touch)
{
    Thread *thread = touch->thread;
    if (thread->recording > 0 && !(touch->options & QUIET)) {
        recent_add(thread, is_write(touch->kind), touch);
    }
    if (opens(touch)) {
        open_add(thread, (Open){
            .frame = activation(), .record = touch->record, .key = touch->key.word, .site = touch->site->number,
            .base = base_ref(touch->after), .acquired = thread->acquisitions, .serial = touch->serial,
            .presence = touch->options & PRESENCE});
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

/* True if the cache does not cover all effects of this access.  */
static inline bool
uncached(int kind, const Site *site, int options, bool held)
{
    return kind == SIZE || options & (LOOK | HAND | OWN) || site->flags & OPENS_SLOWLY
        || (site->flags & AUGMENTED && !(options & UPDATE))
        || (kind == WRITE && (options & PRESENCE || published_by(site->flags, 0)))
        || (kind == WRITE && held && !(options & UPDATE));
}

static Cached *
cache_place(Thread *thread, PyObject *object, uint64_t key_hash)
{
    return &thread->cache[(hash_address(object) >> 30 ^ key_hash) % CACHE_SIZE];
}

/* Compare the keys themselves.  Another thread may drop the entry's key, unless a cell owns it and is locked.  */
static bool
is_cached_key(const Cached *cached, Key key)
{
    Record *record = cached->record;
    spin_lock(&record->spin);
    bool same = cached->cell < record->n && record->cells[cached->cell].key == cached->key && key_equal(cached->key, key);
    spin_unlock(&record->spin);
    return same;
}

/* True if the entry is of that location, which still exists.  */
static inline bool
is_cached(const Cached *cached, PyObject *object, Key key)
{
    return cached->object == object
        && atomic_load_explicit(&cached->record->serial, memory_order_relaxed) == cached->serial
        && (cached->key == key.word
            || (KEY_TAG(cached->key) == KEY_TAG(key.word) && (KEY_TAG(key.word) == KEY_VALUE || KEY_TAG(key.word) == KEY_BOX)
                && is_cached_key(cached, key)));
}

/* True if other threads have stored what a load may be ordered after since the entry was made.  */
static inline bool
has_news(const Cached *cached)
{
    return atomic_load_explicit(&cached->record->news, memory_order_relaxed) != cached->news;
}

static inline uint32_t
frame_name(void)
{
    return (uint32_t)((uintptr_t)activation() >> 3);
}

static void
cache_put(const Touch *touch, Cached *cached, uint64_t epoch, uint32_t cell, bool closed)
{
    Record *record = touch->record;
    /* Not the present ones: with the cell, its key may be gone by now, and another thread may have stored since.  */
    uint32_t serial = touch->serial, news = touch->news;
    uint32_t modes = touch->options & LOOK ? 0 : modes_of(touch->kind, touch->options);
    bool same = cached->object == touch->object && cached->key == touch->key.word && cached->epoch == epoch
        && cached->serial == serial && cached->news == news;
    int32_t was_opened = -1, was_closed = -1;
    if (same) {
        modes |= cached->modes;
        was_opened = cached->learned == touch->thread->learned ? cached->opened : -1;
        was_closed = cached->learned == touch->thread->learned ? cached->closed : -1;
    }
    *cached = (Cached){
        touch->object, touch->key.word, epoch, record, serial, cell, news, modes,
        opens(touch) ? frame_name() : cached->frame, opens(touch) ? touch->site->number : was_opened,
        closed ? touch->site->number : was_closed, touch->thread->learned};
}

static void
touch_finish(Touch *touch, uint64_t epoch, uint32_t cell, bool closed)
{
    Thread *thread = touch->thread;
    remember_span(touch);
    if (is_write(touch->kind)) {
        opens_use(thread, touch->record, touch->key.word);
    }
    if (publishes(touch)) {
        thread_advance(thread);
    }
    widen_window();
    cache_put(touch, cache_place(thread, touch->object, touch->key.hash), epoch, cell, closed);
    if (unlikely(touch->n_found > 0)) {
        PyObject *value = touch->value;
        touch->value = is_write(touch->kind) ? value : NULL;
        touch_tell(touch);
        touch->value = value;
    }
    if (unlikely(touch->seen.base != NULL)) {
        come_after_fresh(touch);
        base_drop(touch->seen.base);
    }
    base_drop(touch->after);
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
    thread->noted = true;
    Cached *cached = cache_place(thread, object, key.hash);
    uint32_t hint = UINT32_MAX;
    if (is_cached(cached, object, key)) {
        hint = cached->cell;
    }
    Record *record = record_of(thread, object, true);
    Touch touch;
    touch_init(&touch, thread, site, object, record, key, kind);
    touch.options = options;
    touch.shown_key = shown_key;
    touch.value = value;
    uint64_t epoch = thread->epoch;
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
    adopt_key(&touch, cell);
    bool fresh = is_fresh(&touch, cell);
    bool shared = record->owner == SHARED;
    if (fresh) {
        if (options & TAKE && shared) {
            take_cell(thread, record, cell);
        }
        touch.after = opens(&touch) ? base_ref(thread_base(thread)) : NULL;
        trace_access(thread, record, key, kind, site, options, 0);
    }
    spin_unlock(&record->spin);
    if (unlikely(dropped != NULL)) {
        cells_drop(dropped, n_dropped);
    }
    widen_window();
    bool closes = false;
    if (!fresh) {
        Closed closed;
        closed.n = 0;
        bool miss = misses(kind, options);
        if (miss || !(options & LOOK || kind == SIZE) || site->flags & RELIES || (shared && opens(&touch))) {
            touch.where = where_now(thread, site, miss ? MISS : kind, touch_bits(kind, options));
        }
        if (is_write(kind)) {
            spans_closing(&touch, &closed);
            closes = closed.n > 0;
        }
#ifdef GILSCOPE_TRACE
        enum Loaded loaded = loaded_value(&touch);
#endif
        spin_lock(&record->spin);
        trace_access(thread, record, key, kind, site, options, loaded);
        cell = touch_cell(&touch, hint);
        hint = (uint32_t)(cell - record->cells);
        perform(&touch, cell, &closed);
        spin_unlock(&record->spin);
        for (int i = 0; i < closed.n; i++) {
            base_drop(closed.bases[i]);
        }
    }
    touch_finish(&touch, epoch, hint, closes);
    if (touch.keeps_key) {
        key_drop(touch.key.word);
    }
}

/* True if only this thread has accessed the object, the same read has begun or the same write has ended a span here, and
   the thread has released, acquired and joined nothing since.  */
static inline bool
span_again(Thread *thread, const Cached *cached, int kind, const Site *site, int options)
{
    if (cached->learned != thread->learned || cached->record->owner != thread->slot
        || options & (HAND | OWN | UPDATE | UNHAND | QUIET) || site->flags & (POLL | AUGMENTED)) {
        return false;
    }
    if (is_write(kind)) {
        if (cached->closed != site->number || !(cached->modes & 1u << kind)) {
            return false;
        }
        opens_use(thread, cached->record, cached->key);
        return true;
    }
    if (cached->opened != site->number || cached->frame != frame_name()
        || !(options & LOOK || kind == SIZE || cached->modes & 1u << kind)) {
        return false;
    }
    Open *open = open_find(thread, activation(), site->number, cached->record, cached->key);
    if (open != NULL) {
        open->used = 0;
    }
    return true;
}

/* Track what the calling thread is about to do, or has just done, to a location of `object`.  */
static inline void
note(Thread *thread, PyObject *object, Key key, int kind, const Site *site, int options, PyObject *shown_key,
     PyObject *value)
{
    Cached *cached = cache_place(thread, object, key.hash);
    if (likely(cached->epoch == thread->epoch && thread->attention == 0 && is_cached(cached, object, key))) {
        uint32_t wanted = modes_of(kind, options);
        if (uncached(kind, site, options, thread->n_held > 0)) {
            if (span_again(thread, cached, kind, site, options)) {
                trace_access(thread, cached->record, key, kind, site, options, 0);
                return;
            }
        }
        else if ((cached->modes & wanted) == wanted
                 && !((kind == READ || kind == WRITE || options & (TAKE | UPDATE)) && has_news(cached))) {
            if (is_write(kind)) {
                opens_use(thread, cached->record, cached->key);
            }
            trace_access(thread, cached->record, key, kind, site, options, 0);
            return;
        }
    }
    note_slowly(thread, object, key, kind, site, options, shown_key, value);
}
