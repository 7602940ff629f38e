/* Vector clocks.  `order` contains all happens-before edges.  `hard` leaves out those of Lock and RLock, and serves to
   find atomicity violations: a lock guarantees mutual exclusion, but not which thread comes first.

   A thread publishes its clock as a moment: a base and its own time.  It makes a new base only after new incoming edges,
   so the moments of a thread that only releases share one base.  */

static Base *
base_new(int n)
{
    Base *base = must(malloc(sizeof(Base) + 2 * (size_t)n * sizeof(uint64_t)));
    atomic_init(&base->refs, 1);
    base->n = base->capacity = n;
    return base;
}

static inline Base *
base_ref(Base *base)
{
    if (base != NULL) {
        atomic_fetch_add_explicit(&base->refs, 1, memory_order_relaxed);
    }
    return base;
}

static inline void
base_drop(Base *base)
{
    if (base != NULL && atomic_fetch_sub_explicit(&base->refs, 1, memory_order_acq_rel) == 1) {
        free(base);
    }
}

static void
thread_reserve(Thread *thread, int slots)
{
    if (slots <= thread->capacity) {
        return;
    }
    int capacity = slots + slots / 2 + 4;
    thread->order = must(realloc(thread->order, (size_t)capacity * sizeof(uint64_t)));
    thread->hard = must(realloc(thread->hard, (size_t)capacity * sizeof(uint64_t)));
    for (int i = thread->capacity; i < capacity; i++) {
        thread->order[i] = thread->hard[i] = 0;
    }
    thread->capacity = capacity;
}

static inline uint64_t
thread_time(const Thread *thread)
{
    return EPOCH_TIME(thread->epoch);
}

static inline void
thread_advance(Thread *thread)
{
    __atomic_store_n(&thread->epoch, thread->epoch + 1, __ATOMIC_RELAXED);     /* starting threads read it */
    thread->order[thread->slot] = thread->hard[thread->slot] = thread_time(thread);
}

static inline bool
sees(const Thread *thread, uint64_t epoch)
{
    int slot = EPOCH_SLOT(epoch);
    return slot < thread->capacity && thread->order[slot] >= EPOCH_TIME(epoch);
}

static inline bool
sees_hard(const Thread *thread, uint64_t epoch)
{
    int slot = EPOCH_SLOT(epoch);
    return slot < thread->capacity && thread->hard[slot] >= EPOCH_TIME(epoch);
}

static inline bool
base_sees(const Base *base, uint64_t epoch, bool hard)
{
    int slot = EPOCH_SLOT(epoch);
    return slot < base->n && base->times[(hard ? base->n : 0) + slot] >= EPOCH_TIME(epoch);
}

/* Return the base of the thread's vector clock; borrowed.  */
static Base *
thread_base(Thread *thread)
{
    if (likely(!thread->stale)) {
        return thread->base;
    }
    int n = thread->capacity;
    while (n > 0 && thread->order[n - 1] == 0) {
        n--;
    }
    Base *base = thread->base;
    if (base == NULL || base->capacity < n || atomic_load_explicit(&base->refs, memory_order_acquire) != 1) {
        base_drop(base);
        base = thread->base = base_new(n);
    }
    base->n = n;
    base->slot = thread->slot;
    memcpy(base->times, thread->order, (size_t)n * sizeof(uint64_t));
    memcpy(base->times + n, thread->hard, (size_t)n * sizeof(uint64_t));
    thread->stale = false;
    return base;
}

static bool
raise_times(uint64_t *own, const uint64_t *others, int n, int slot, uint64_t time)
{
    bool changed = false;
    for (int i = 0; i < n; i++) {
        if (own[i] < others[i]) {
            own[i] = others[i];
            changed = true;
        }
    }
    if (slot >= 0 && own[slot] < time) {
        own[slot] = time;
        changed = true;
    }
    return changed;
}

/* Join a clock into the thread's: into `order`, and with `hard` into both.

   A thread that has seen a slot's time has seen everything that this slot had seen by then, since clocks are only passed
   on as whole moments.  */
static void
thread_join(Thread *thread, const Base *base, uint64_t time, bool hard)
{
    if (base == NULL) {
        return;
    }
    int slot = base->slot;
    if (slot >= 0 && slot < thread->capacity && thread->order[slot] >= time
        && (!hard || thread->hard[slot] >= time)) {
        return;
    }
    thread_reserve(thread, base->n > slot + 1 ? base->n : slot + 1);
    if (raise_times(thread->order, base->times, base->n, slot, time)) {
        thread->stale = true;
        thread->learned++;
    }
    if (hard && raise_times(thread->hard, base->times + base->n, base->n, slot, time)) {
        thread->stale = true;
        thread->learned++;
    }
}

/* Return the join of two clocks; steals the reference to the base of the first.  */
static Moment
moment_union(Moment one, const Base *other, uint64_t time)
{
    if (one.base == NULL) {
        return (Moment){base_ref((Base *)other), time};
    }
    int n = one.base->n > other->n ? one.base->n : other->n;
    n = one.base->slot >= n ? one.base->slot + 1 : n;
    n = other->slot >= n ? other->slot + 1 : n;
    Base *base = base_new(n);
    base->slot = NO_SLOT;
    memset(base->times, 0, 2 * (size_t)n * sizeof(uint64_t));
    raise_times(base->times, one.base->times, one.base->n, one.base->slot, one.time);
    raise_times(base->times + n, one.base->times + one.base->n, one.base->n, one.base->slot, one.time);
    raise_times(base->times, other->times, other->n, other->slot, time);
    raise_times(base->times + n, other->times + other->n, other->n, other->slot, time);
    base_drop(one.base);
    return (Moment){base, 0};
}

/* True if the moment happened before the thread's present, so the thread's clock may replace it.  */
static bool
moment_known(const Thread *thread, Moment moment)
{
    const Base *base = moment.base;
    if (base == NULL) {
        return true;
    }
    if (base->slot >= 0) {
        return base->slot < thread->capacity && thread->order[base->slot] >= moment.time
            && thread->hard[base->slot] >= moment.time;
    }
    for (int i = 0; i < base->n; i++) {
        if (base->times[i] > (i < thread->capacity ? thread->order[i] : 0)
            || base->times[base->n + i] > (i < thread->capacity ? thread->hard[i] : 0)) {
            return false;
        }
    }
    return true;
}
