/* Interning tables, which number lock sets, stack frames, and accesses without their times.

   They only grow, up to a limit.  Thanks to them, an access takes 12 bytes in a cell, and two are compared by number.  */

#define CHUNK 1024
typedef struct {
    size_t size;                /* of an item; it must have no padding, as items are compared with memcmp() */
    uint32_t limit;
    Spin spin;
    _Atomic(uint32_t) n;
    uint32_t *index;            /* number + 1 */
    uint32_t mask;
    char **chunks;              /* of CHUNK items; never moved */
} Table;

typedef struct { uint64_t code; uint32_t parent; int32_t instruction; } Frame;     /* code: PyCodeObject *, owned */

static Table lock_sets = {.size = sizeof(LockSet), .limit = 1 << 18};
static Table frames = {.size = sizeof(Frame), .limit = 1 << 19};
static Table wheres = {.size = sizeof(Where), .limit = 1 << 20};

static inline void *
table_item(Table *table, uint32_t number)
{
    return table->chunks[number / CHUNK] + (number % CHUNK) * table->size;
}

static uint64_t
hash_item(const void *item, size_t size)
{
    const uint64_t *words = item;
    uint64_t hash = size;
    for (size_t i = 0; i < size / 8; i++) {
        hash = mix(hash, words[i]);
    }
    return hash;
}

static void
table_index(Table *table, uint32_t size)
{
    free(table->index);
    table->index = must(calloc(size, sizeof(uint32_t)));
    table->mask = size - 1;
    for (uint32_t number = 0; number < table->n; number++) {
        uint64_t at = hash_item(table_item(table, number), table->size);
        while (table->index[at & table->mask] != 0) {
            at++;
        }
        table->index[at & table->mask] = number + 1;
    }
}

/* Initialize a table; number 0 is the empty item.  */
static void
table_init(Table *table)
{
    table->chunks = must(calloc(2 * (table->limit / CHUNK) + 1, sizeof(char *)));
    table->chunks[0] = must(calloc(CHUNK, table->size));
    table->n = 1;
    table_index(table, 1024);
}

/* Return the number of an item, after adding it if it is new; UINT32_MAX if the table is full.  Beyond the limit, the
   table has room for as many `urgent` items again.  */
static uint32_t
table_intern(Table *table, const void *item, bool urgent)
{
    uint64_t hash = hash_item(item, table->size);
    spin_lock(&table->spin);
    uint64_t at = hash;
    uint32_t found;
    while ((found = table->index[at & table->mask]) != 0) {
        if (memcmp(table_item(table, found - 1), item, table->size) == 0) {
            spin_unlock(&table->spin);
            return found - 1;
        }
        at++;
    }
    uint32_t number = table->n;
    if (number >= table->limit && !(urgent && number < 2 * table->limit)) {
        spin_unlock(&table->spin);
        return UINT32_MAX;
    }
    if (number % CHUNK == 0) {
        table->chunks[number / CHUNK] = must(calloc(CHUNK, table->size));
    }
    memcpy(table_item(table, number), item, table->size);
    table->index[at & table->mask] = number + 1;
    table->n = number + 1;
    if (table->n > table->mask / 2) {
        table_index(table, 2 * (table->mask + 1));
    }
    spin_unlock(&table->spin);
    return number;
}

/* ---- lock sets --------------------------------------------------------------------------------------------------- */
#define UNKNOWN_LOCKS 1     /* of what the table has no room for: like a set that is too large to be stored completely */

static void
lock_sets_init(void)
{
    LockSet unknown;
    memset(&unknown, 0, sizeof(unknown));
    unknown.n = SET_UIDS + 1;
    unknown.bloom = UINT64_MAX;
    table_init(&lock_sets);
    table_intern(&lock_sets, &unknown, false);
}

static inline LockSet *
lock_set(uint32_t number)
{
    return table_item(&lock_sets, number);
}

static bool
set_has(const LockSet *set, uint32_t uid)
{
    for (uint32_t i = 0; i < set->n && i < SET_UIDS; i++) {
        if (set->uids[i] == uid) {
            return true;
        }
    }
    return false;
}

static inline bool
still_held(const HeldLock *held)
{
    return atomic_load_explicit(&held->record->serial, memory_order_relaxed) == held->life
        && atomic_load_explicit(&held->sync->strayed, memory_order_relaxed) == held->strayed;
}

/* Remove the locks that were destroyed while held, or released by another thread.  */
static void
forget_lost_locks(Thread *thread)
{
    for (int i = thread->n_held - 1; i >= 0; i--) {
        if (unlikely(!still_held(&thread->held[i]))) {
            thread->n_held--;
            memmove(&thread->held[i], &thread->held[i + 1], (size_t)(thread->n_held - i) * sizeof(HeldLock));
            thread->lock_set_known = false;
        }
    }
}

/* Return the set of the locks that were acquired at `acquired` or before, with `later` of those acquired after it.  */
static uint32_t
lock_set_of(Thread *thread, const HeldLock *locks, int n, uint32_t acquired, bool later)
{
    LockSet set;
    memset(&set, 0, sizeof(set));
    for (int i = n - 1; i >= 0; i--) {
        const HeldLock *held = &locks[i];
        if ((held->serial > acquired) != later) {
            continue;
        }
        if (set.n < SET_UIDS) {
            set.uids[set.n] = held->uid;
        }
        set.n++;
        set.bloom |= UINT64_C(1) << (mix(held->uid, 7) & 63);
    }
    if (set.n == 0) {
        return 0;
    }
    uint64_t hash = hash_item(&set, sizeof(set));
    CachedWhere *cached = &thread->sets[hash % SET_CACHE];
    if (cached->hash != hash) {
        uint32_t number = table_intern(&lock_sets, &set, false);
        *cached = (CachedWhere){hash, number == UINT32_MAX ? UNKNOWN_LOCKS : number};
    }
    return cached->where;
}

static inline uint32_t
thread_lock_set(Thread *thread)
{
    forget_lost_locks(thread);
    if (unlikely(!thread->lock_set_known)) {
        thread->lock_set = lock_set_of(thread, thread->held, thread->n_held, UINT32_MAX, false);
        thread->lock_set_known = true;
    }
    return thread->lock_set;
}

/* True if the sets are disjoint.  If a set is too large to be stored completely, a common lock is assumed if it may
   exist.  */
static bool
apart(uint32_t one, uint32_t other)
{
    if (one == 0 || other == 0) {
        return true;
    }
    if (one == other) {
        return false;
    }
    LockSet *a = lock_set(one), *b = lock_set(other);
    if ((a->bloom & b->bloom) == 0) {
        return true;
    }
    if (a->n > SET_UIDS || b->n > SET_UIDS) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        for (uint32_t j = 0; j < b->n; j++) {
            if (a->uids[i] == b->uids[j]) {
                return false;
            }
        }
    }
    return true;
}

/* True if the sets are known to have a common lock.  */
static bool
share_lock(uint32_t one, uint32_t other)
{
    LockSet *set = lock_set(one);
    for (uint32_t i = 0; one != UNKNOWN_LOCKS && one != 0 && other != 0 && i < set->n && i < SET_UIDS; i++) {
        if (set_has(lock_set(other), set->uids[i])) {
            return true;
        }
    }
    return false;
}
