/* Shadow state of objects that threads may share: one record per object, found by its address.

   Records are reused but never freed, so a cached pointer to one can always be read; its serial shows if it still
   belongs to the same object.  A byte per class of addresses shows quickly that most objects have no record, which is
   looked up on every creation and death of an object.  */

#define SHARDS 64
#define SLAB 128

typedef struct {
    Spin spin;
    Record **buckets;
    uint32_t mask, n;
    Record *unused;
} Shard;

typedef struct { uint64_t mask; _Atomic(uint8_t) counts[]; } Filter;

static Shard shards[SHARDS];
static _Atomic(Filter *) filter;
static _Atomic(uint64_t) n_records;

static inline uint64_t
hash_address(const void *object)
{
    return ((uintptr_t)object >> 4) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Neighbouring addresses share a cache line of the table, as objects that die together often are neighbours.  */
static inline uint64_t
filter_at(const Filter *now, const void *object)
{
    uintptr_t address = (uintptr_t)object >> 4;
    return (address ^ (address >> 20)) & now->mask;
}

static inline bool
maybe_watched(const void *object)
{
    Filter *now = atomic_load_explicit(&filter, memory_order_acquire);
    return atomic_load_explicit(&now->counts[filter_at(now, object)], memory_order_relaxed) != 0;
}

static void
filter_count(const void *object, int change)
{
    Filter *now = atomic_load_explicit(&filter, memory_order_acquire);
    _Atomic(uint8_t) *count = &now->counts[filter_at(now, object)];
    uint8_t value = atomic_load_explicit(count, memory_order_relaxed);
    while (value != 255 && !atomic_compare_exchange_weak(count, &value, (uint8_t)(value + change))) {
    }
}

static Filter *
filter_new(uint64_t size)
{
    Filter *fresh = must(calloc(1, sizeof(Filter) + size));
    fresh->mask = size - 1;
    return fresh;
}

static void
shadow_init(void)
{
    atomic_store(&filter, filter_new(1 << 16));
    atomic_store(&n_records, 0);
    for (int i = 0; i < SHARDS; i++) {
        shards[i] = (Shard){.buckets = must(calloc(64, sizeof(Record *))), .mask = 63};
    }
}

/* Enlarge the filter.  The old one is not freed, as other threads may be reading it.  */
static void
filter_grow(void)
{
    for (int i = 0; i < SHARDS; i++) {
        spin_lock(&shards[i].spin);
    }
    Filter *old = atomic_load(&filter);
    if (atomic_load(&n_records) > old->mask / 8) {
        Filter *fresh = filter_new(8 * (old->mask + 1));
        for (int i = 0; i < SHARDS; i++) {
            for (uint32_t b = 0; b <= shards[i].mask; b++) {
                for (Record *record = shards[i].buckets[b]; record != NULL; record = record->next) {
                    _Atomic(uint8_t) *count = &fresh->counts[filter_at(fresh, record->object)];
                    uint8_t value = atomic_load_explicit(count, memory_order_relaxed);
                    atomic_store_explicit(count, value == 255 ? 255 : value + 1, memory_order_relaxed);
                }
            }
        }
        atomic_store_explicit(&filter, fresh, memory_order_release);
    }
    for (int i = 0; i < SHARDS; i++) {
        spin_unlock(&shards[i].spin);
    }
}

static void
shard_grow(Shard *shard)
{
    uint32_t size = 2 * (shard->mask + 1);
    Record **buckets = must(calloc(size, sizeof(Record *)));
    for (uint32_t b = 0; b <= shard->mask; b++) {
        for (Record *record = shard->buckets[b], *next; record != NULL; record = next) {
            next = record->next;
            Record **bucket = &buckets[(hash_address(record->object) >> 32) & (size - 1)];
            record->next = *bucket;
            *bucket = record;
        }
    }
    free(shard->buckets);
    shard->buckets = buckets;
    shard->mask = size - 1;
}

static Record *
shard_unused(Shard *shard)
{
    if (shard->unused == NULL) {
        Record *slab = must(calloc(SLAB, sizeof(Record)));
        for (int i = 0; i < SLAB; i++) {
            slab[i].next = shard->unused;
            shard->unused = &slab[i];
        }
    }
    Record *record = shard->unused;
    shard->unused = record->next;
    return record;
}

#if FREE_THREADED
/* Call it while the object is alive, so that try_increment() can tell later whether it still is.  */
static inline void
allow_try_increment(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030E0000
    PyUnstable_EnableTryIncRef(object);
#else                           /* what that does; 3.13 has no public function for it */
    Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&object->ob_ref_shared);
    while (!_Py_IsImmortal(object) && (shared & _Py_REF_SHARED_FLAG_MASK) == 0
           && !_Py_atomic_compare_exchange_ssize(&object->ob_ref_shared, &shared, shared | _Py_REF_MAYBE_WEAKREF)) {
    }
#endif
}

/* Take a reference unless the object is dying.  The caller holds a lock for which the event of its death waits.  */
static inline bool
try_increment(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_TryIncRef(object);
#else
    if (_Py_IsImmortal(object) || _Py_IsOwnedByCurrentThread(object)) {
        Py_INCREF(object);
        return true;
    }
    Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&object->ob_ref_shared);
    while (shared != 0 && shared != _Py_REF_MERGED) {
        if (_Py_atomic_compare_exchange_ssize(&object->ob_ref_shared, &shared, shared + (1 << _Py_REF_SHARED_SHIFT))) {
            return true;
        }
    }
    return false;
#endif
}
#endif

static Record *
record_lookup(PyObject *object, bool create, int slot)
{
    uint64_t hash = hash_address(object);
    Shard *shard = &shards[(hash >> 24) % SHARDS];
    bool crowded = false;
    spin_lock(&shard->spin);
    Record *record = shard->buckets[(hash >> 32) & shard->mask];
    while (record != NULL && record->object != object) {
        record = record->next;
    }
    if (record == NULL && create) {
        record = shard_unused(shard);
        record->object = object;
        record->owner = (uint16_t)slot;
#if FREE_THREADED
        allow_try_increment(object);
#endif
        Record **bucket = &shard->buckets[(hash >> 32) & shard->mask];
        record->next = *bucket;
        *bucket = record;
        filter_count(object, 1);
        crowded = atomic_fetch_add(&n_records, 1) > atomic_load(&filter)->mask / 8;
        if (++shard->n > shard->mask) {
            shard_grow(shard);
        }
    }
    spin_unlock(&shard->spin);
    if (crowded) {
        filter_grow();
    }
    return record;
}

/* Return the record of a living object, or NULL if there is none and `create` is false.  */
static inline Record *
record_of(Thread *thread, PyObject *object, bool create)
{
    CachedObject *cached = &thread->objects[(hash_address(object) >> 40) % OBJECT_CACHE];
    if (likely(cached->object == object
               && atomic_load_explicit(&cached->record->serial, memory_order_relaxed) == cached->serial)) {
        return cached->record;
    }
    Record *record = record_lookup(object, create, thread->slot);
    if (record != NULL) {
        *cached = (CachedObject){object, record, atomic_load_explicit(&record->serial, memory_order_relaxed)};
    }
    return record;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */
#define LINEAR 8        /* up to so many cells are searched one by one */

static inline uint32_t *
record_index(Record *record)
{
    return (uint32_t *)(record->cells + record->capacity);
}

static uint32_t
index_mask(uint32_t capacity)
{
    uint32_t size = 16;
    while (size < capacity + capacity / 2) {
        size *= 2;
    }
    return size - 1;
}

static void
record_index_cells(Record *record)
{
    uint32_t mask = index_mask(record->capacity), *index = record_index(record);
    memset(index, 0, ((size_t)mask + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < record->n; i++) {
        uint64_t at = key_hash(record->cells[i].key);
        while (index[at & mask] != 0) {
            at++;
        }
        index[at & mask] = i + 1;
    }
}

static void
record_reserve(Record *record)
{
    if (record->n < record->capacity) {
        return;
    }
    uint32_t capacity = record->capacity;
    capacity = capacity < 2 ? capacity + 1 : capacity < 1024 ? 2 * capacity : capacity + capacity / 2;
    size_t size = capacity * sizeof(Cell);
    if (capacity > LINEAR) {
        size += ((size_t)index_mask(capacity) + 1) * sizeof(uint32_t);
    }
    record->cells = must(realloc(record->cells, size));
    record->capacity = capacity;
    if (capacity > LINEAR) {
        record_index_cells(record);
    }
}

static Cell *
record_find(Record *record, Key key)
{
    if (record->capacity <= LINEAR) {
        for (uint32_t i = 0; i < record->n; i++) {
            if (key_equal(record->cells[i].key, key)) {
                return &record->cells[i];
            }
        }
        return NULL;
    }
    uint32_t mask = index_mask(record->capacity), *index = record_index(record), found;
    for (uint64_t at = key.hash; (found = index[at & mask]) != 0; at++) {
        if (key_equal(record->cells[found - 1].key, key)) {
            return &record->cells[found - 1];
        }
    }
    return NULL;
}

typedef struct Boxes { uint32_t n, capacity, cells[]; } Boxes;

static void
boxes_add(Record *record, uint32_t cell)
{
    Boxes *boxes = record->boxes;
    uint32_t n = boxes != NULL ? boxes->n : 0, capacity = boxes != NULL ? boxes->capacity : 0;
    if (n == capacity) {
        capacity = 2 * capacity + 4;
        boxes = must(realloc(boxes, sizeof(Boxes) + capacity * sizeof(uint32_t)));
        boxes->capacity = capacity;
    }
    boxes->cells[n] = cell;
    boxes->n = n + 1;
    record->boxes = boxes;
}

/* Add a cell for a key that has none.  It takes a reference to the key's object, if there is one.  */
static Cell *
record_add(Record *record, Key key)
{
    record_reserve(record);
    Cell *cell = &record->cells[record->n++];
    memset(cell, 0, sizeof(*cell));
    cell->key = key_keep(key.word);
    if (key_has_several(key.word)) {
        boxes_add(record, record->n - 1);
    }
    if (record->capacity > LINEAR) {
        uint32_t mask = index_mask(record->capacity), *index = record_index(record);
        uint64_t at = key.hash;
        while (index[at & mask] != 0) {
            at++;
        }
        index[at & mask] = record->n;
    }
    return cell;
}

#define EXTRA_TAGS ((uintptr_t)(HANDED | FLAGGED))

static inline Base *
tagged_base(const Cell *cell, int tag)
{
    return cell->extra & (uintptr_t)tag ? (Base *)(cell->extra & ~EXTRA_TAGS) : NULL;
}

static inline Extra *
cell_extra(const Cell *cell)
{
    return cell->extra & EXTRA_TAGS ? NULL : (Extra *)cell->extra;
}

/* The same, but add a missing cell.  */
static Extra *
cell_need_extra(Cell *cell)
{
    if (cell->extra & EXTRA_TAGS || cell->extra == 0) {
        Extra *extra = must(calloc(1, sizeof(Extra)));
        extra->handed_base = base_ref(tagged_base(cell, HANDED));
        extra->handed = cell->write;
        extra->flag_base = base_ref(tagged_base(cell, FLAGGED));
        if (cell->extra & EXTRA_TAGS) {
            base_drop((Base *)(cell->extra & ~EXTRA_TAGS));
        }
        cell->extra = (uintptr_t)extra;
    }
    return (Extra *)cell->extra;
}

static void
cell_clear(Cell *cell)
{
    Extra *extra = cell_extra(cell);
    if (cell->extra & EXTRA_TAGS) {
        base_drop((Base *)(cell->extra & ~EXTRA_TAGS));
    }
    else if (extra != NULL) {
        base_drop(extra->handed_base);
        base_drop(extra->flag_base);
        free(extra->readers.items);
        free(extra->writes.items);
        free(extra->spans.items);
        free(extra);
    }
}

static void hands_free(Hands *hands);

/* Forget the older half of the cells of an object that has many more cells than items, since keys come and go in it.
   Return the cells, whose references the caller drops when nothing is locked.  */
static Cell *
record_halve(Record *record, uint32_t *n_dropped)
{
    uint32_t half = record->n / 2;
    Cell *dropped = must(malloc(half * sizeof(Cell)));
    memcpy(dropped, record->cells, half * sizeof(Cell));
    memmove(record->cells, record->cells + half, (record->n - half) * sizeof(Cell));
    record->n -= half;
    uint32_t kept = 0;
    for (uint32_t i = 0; record->boxes != NULL && i < record->boxes->n; i++) {
        if (record->boxes->cells[i] >= half) {
            record->boxes->cells[kept++] = record->boxes->cells[i] - half;
        }
    }
    if (record->boxes != NULL) {
        record->boxes->n = kept;
    }
    if (record->capacity > LINEAR) {
        record_index_cells(record);
    }
    *n_dropped = half;
    return dropped;
}

static void
cells_drop(Cell *cells, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cell_clear(&cells[i]);
        key_drop(cells[i].key);
    }
    free(cells);
}

static void sync_free(Sync *sync);
static void sync_acquire(Thread *thread, Sync *sync, bool hard);

/* What a record had, to be dropped when nothing is locked: that may drop references.  */
typedef struct {
    Cell *cells;
    uint32_t n;
    Sync *sync;
    Hands *hands;
    Wholes *wholes;
    Boxes *boxes;
} Contents;

/* Take all but the clock as a lock out of a locked record.  */
static Contents
record_take(Record *record)
{
    Contents contents = {record->cells, record->n, NULL, record->hands, record->wholes, record->boxes};
    record->cells = NULL;
    record->hands = NULL;
    record->wholes = NULL;
    record->n = record->capacity = 0;
    record->boxes = NULL;
    trace_forget(&record->traced);
    return contents;
}

static void
contents_drop(Contents contents)
{
    cells_drop(contents.cells, contents.n);
    sync_free(contents.sync);
    hands_free(contents.hands);
    free(contents.wholes);
    free(contents.boxes);
}

/* Remove a record from its locked shard.  */
static Contents
record_unlink(Shard *shard, Record **link)
{
    Record *record = *link;
    spin_lock(&record->spin);
    Contents contents = record_take(record);
    contents.sync = record->sync;
    record->sync = NULL;
    *link = record->next;
    shard->n--;
    filter_count(record->object, -1);
    record->object = NULL;
    record->number = 0;
    atomic_fetch_add_explicit(&record->serial, 1, memory_order_release);
    record->next = shard->unused;
    shard->unused = record;
    atomic_fetch_sub(&n_records, 1);
    spin_unlock(&record->spin);
    return contents;
}

/* Forget an object that has just been created at, or is about to leave, this address.  May drop references.  */
static void
record_forget(const void *object)
{
    uint64_t hash = hash_address(object);
    Shard *shard = &shards[(hash >> 24) % SHARDS];
    spin_lock(&shard->spin);
    Record **link = &shard->buckets[(hash >> 32) & shard->mask];
    while (*link != NULL && (*link)->object != object) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        spin_unlock(&shard->spin);
        return;
    }
    Contents contents = record_unlink(shard, link);
    spin_unlock(&shard->spin);
    if (contents.sync != NULL && contents.sync->uid != 0 && self_thread != NULL) {
        sync_acquire(self_thread, contents.sync, true);     /* a lock dies after all who held it */
    }
    contents_drop(contents);
}

/* Forget the accesses to an object, but keep its clock as a lock, since other threads may be about to use the record.
   Return true if there were any.  */
static bool
record_empty(Record *record)
{
    spin_lock(&record->spin);
    Contents contents = record_take(record);
    if (record->sync == NULL) {
        atomic_fetch_add_explicit(&record->serial, 1, memory_order_release);
    }
    spin_unlock(&record->spin);
    contents_drop(contents);
    return contents.n > 0;
}

/* Drop all shadow state; return the number of objects with accesses in it.  */
static uint32_t
shadow_clear(void)
{
    uint32_t forgotten = 0;
    for (int i = 0; i < SHARDS; i++) {
        spin_lock(&shards[i].spin);
        uint32_t n = 0;
        Record **records = must(malloc((shards[i].n + 1) * sizeof(Record *)));
        for (uint32_t b = 0; b <= shards[i].mask; b++) {
            for (Record *record = shards[i].buckets[b]; record != NULL; record = record->next) {
                records[n++] = record;
            }
        }
        spin_unlock(&shards[i].spin);
        for (uint32_t k = 0; k < n; k++) {
            forgotten += record_empty(records[k]);
        }
        free(records);
    }
    return forgotten;
}

/* Its serial is part of the word: another object at the same address is another key.  */
static Key
key_same(Thread *thread, PyObject *object)
{
    Record *record = record_of(thread, object, true);
    uint64_t serial = atomic_load_explicit(&record->serial, memory_order_relaxed) & 0xffff;
    return key_word((uintptr_t)record | KEY_SAME | serial << KEY_SERIAL_SHIFT);
}
