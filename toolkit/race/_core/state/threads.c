/* The threads, the slot of each in vector clocks, and the state that says if anything can be concurrent.  */

typedef struct { uint64_t since; uint32_t uid; } Tenant;
typedef struct {
    Thread *thread;             /* NULL once its memory serves another */
    Tenant *tenants;            /* threads that had this slot, oldest first */
    int n, capacity;
    _Atomic(uint64_t) last;     /* the slot's latest time; exact once ended */
    _Atomic(bool) ended;
} Slot;

/* A pthread lock, not a Spin: the end of a thread is handled without the GIL.  */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static Slot slots[MAX_SLOTS];
static _Atomic(int) n_slots;
static _Atomic(int) n_live;
static uint32_t n_threads;
static pthread_key_t death_key;

static void
set_active(void)
{
    atomic_store(&core.active, atomic_load(&core.started) && atomic_load(&core.concurrent));
}

static void
set_concurrent(int concurrent)
{
    atomic_store(&core.concurrent, concurrent);
    set_active();
}

static void
thread_free(Thread *thread)
{
    if (slots[thread->slot].thread == thread) {
        slots[thread->slot].thread = NULL;
    }
    free(thread->order);
    free(thread->hard);
    base_drop(thread->base);
    base_drop(thread->chain.base);
    for (int i = 1; i <= thread->n_opens; i++) {
        base_drop(thread->opens[i].base);
    }
    for (int i = 0; i < 2 * RING; i++) {
        base_drop(thread->recent[i / RING][i % RING].base);
    }
    free(thread);
}

/* Drop the references to Python objects, before thread_free(), which may be called without the GIL: the few that an OS
   thread has at its end are left behind.  */
static void
thread_drop_refs(Thread *thread)
{
    for (int i = 0; i < 2 * RING; i++) {
        Py_CLEAR(thread->recent[i / RING][i % RING].ref);
    }
}

/* The caller holds the registry's lock.  */
static void
retire(Thread *thread)
{
    if (!atomic_exchange(&thread->ended, true)) {
        trace("end %u", thread->uid);
        Slot *slot = &slots[thread->slot];
        atomic_store(&slot->last, thread_time(thread));
        atomic_store(&slot->ended, true);
        atomic_fetch_sub(&n_live, 1);
    }
}

/* The OS thread ends, and with it every logical thread on it that has not ended yet.  Called without the GIL.  */
static void
on_thread_death(void *dying)
{
    (void)dying;
    pthread_mutex_lock(&registry);
    Thread *thread = self_thread;
    self_thread = NULL;
    while (thread != NULL) {
        Thread *outer = thread->outer;
        retire(thread);
        thread_free(thread);
        thread = outer;
    }
    pthread_mutex_unlock(&registry);
}

static void
occupy(Thread *thread, int index, uint64_t time)
{
    Slot *slot = &slots[index];
    if (slot->n == slot->capacity) {
        slot->capacity = slot->capacity ? 2 * slot->capacity : 2;
        slot->tenants = must(realloc(slot->tenants, (size_t)slot->capacity * sizeof(Tenant)));
    }
    slot->tenants[slot->n++] = (Tenant){time, thread->uid};
    slot->thread = thread;
    atomic_store(&slot->last, time);
    atomic_store(&slot->ended, false);
    thread->slot = index;
    thread->epoch = (uint64_t)index << TIME_BITS | time;
    thread_reserve(thread, index + 1);
    thread->order[index] = thread->hard[index] = time;
}

/* Return a slot for a new thread that inherits the clock of `thread`: that of an ended thread if all its accesses
   happened before, otherwise a new one.  If all are in use, checking stops, and the last slot is shared.  The caller holds
   the registry's lock.  */
static void
enlist(Thread *thread)
{
    thread->uid = n_threads++;
    int index = atomic_load(&n_slots);
    for (int i = 0; i < atomic_load(&n_slots); i++) {
        uint64_t last = atomic_load(&slots[i].last);
        if (!atomic_load(&slots[i].ended)) {
            continue;
        }
        if (i < thread->capacity && thread->order[i] >= last && thread->hard[i] >= last) {
            index = i;
            break;
        }
        if (atomic_load(&n_slots) == MAX_SLOTS && index == MAX_SLOTS) {
            index = i;
        }
    }
    if (index == MAX_SLOTS) {
        atomic_store(&core.crowded, true);
        index = MAX_SLOTS - 1;
    }
    bool fresh = index == atomic_load(&n_slots);
    occupy(thread, index, fresh ? 1 : atomic_load(&slots[index].last) + 1);
    if (fresh) {
        atomic_store(&n_slots, index + 1);
    }
    if (atomic_fetch_add(&n_live, 1) > 0) {
        set_concurrent(1);
    }
}

/* Add the edges from everything so far: no component of any clock exceeds its slot's own time.  */
static void
join_everybody(Thread *thread)
{
    int n = atomic_load(&n_slots);
    thread_reserve(thread, n);
    for (int i = 0; i < n; i++) {
        Thread *other = slots[i].thread;
        bool over = atomic_load(&slots[i].ended) || other == NULL;
        uint64_t time = over ? atomic_load(&slots[i].last) : EPOCH_TIME(__atomic_load_n(&other->epoch, __ATOMIC_RELAXED));
        if (i != thread->slot && thread->order[i] < time) {
            thread->order[i] = time;
        }
        if (i != thread->slot && thread->hard[i] < time) {
            thread->hard[i] = time;
        }
        if (other != NULL) {
            atomic_store(&other->nudged, true);     /* what it does from now on is not known to this thread */
        }
    }
    thread->stale = true;
}

static Thread *
thread_make(Thread *outer, bool automatic, const Moment *start)
{
    Thread *thread = must(calloc(1, sizeof(Thread)));
    thread->slot = NO_SLOT;
    thread->stale = true;
    thread->outer = outer;
    thread->automatic = automatic;
    if (outer != NULL) {
        thread->muted = outer->muted;
        thread->busy = outer->busy;
    }
    pthread_mutex_lock(&registry);
    if (start != NULL) {
        thread_join(thread, start->base, start->time, true);
    }
    else {
        join_everybody(thread);
    }
    enlist(thread);
    trace("begin %u %d %d", thread->uid, outer != NULL ? (int)outer->uid : -1, start == NULL);
    bool stops = atomic_load(&core.crowded) && !atomic_exchange(&core.dead, true);
    pthread_mutex_unlock(&registry);
    self_thread = thread;
    pthread_setspecific(death_key, thread);     /* any value but NULL has the destructor called */
    if (stops) {
        atomic_store(&core.started, 0);
        set_active();
        tell_gap("threads", MAX_SLOTS);
    }
    return thread;
}

static Thread *
thread_attach(void)
{
    return thread_make(NULL, true, NULL);
}

/* Leave concurrent mode if only one thread is left and has joined the clocks of all others.  As long as a Clock object
   exists, a thread may be about to start with it.  */
static void
settle(Thread *thread)
{
    if (!atomic_load(&core.concurrent) || atomic_load(&n_live) != 1 || atomic_load(&core.clocks) > 0) {
        return;
    }
    pthread_mutex_lock(&registry);      /* a thread that attaches now is either seen here or sets it again */
    bool settled = atomic_load(&n_live) == 1;
    int n = atomic_load(&n_slots);
    for (int i = 0; settled && i < n; i++) {
        uint64_t last = atomic_load(&slots[i].last);
        settled = i == thread->slot
            || (i < thread->capacity && thread->order[i] >= last && thread->hard[i] >= last);
    }
    if (settled) {
        thread_advance(thread);     /* what the cache says of this epoch may be forgotten meanwhile */
        set_concurrent(0);
    }
    pthread_mutex_unlock(&registry);
}

static uint32_t
uid_of(uint64_t epoch)
{
    pthread_mutex_lock(&registry);
    Slot *slot = &slots[EPOCH_SLOT(epoch)];
    uint32_t uid = 0;
    for (int i = slot->n - 1; i >= 0; i--) {
        if (slot->tenants[i].since <= EPOCH_TIME(epoch)) {
            uid = slot->tenants[i].uid;
            break;
        }
    }
    pthread_mutex_unlock(&registry);
    return uid;
}


/* Continue this OS thread as another thread, which holds the same locks.  */
static void
thread_replace(Thread *thread, Thread *by)
{
    if (!atomic_load(&thread->ended)) {
        memcpy(by->held, thread->held, sizeof(by->held));
        by->n_held = thread->n_held;
        by->acquisitions = thread->acquisitions;
        by->muted = thread->muted;
        by->busy = thread->busy;
    }
    thread_drop_refs(thread);
    pthread_mutex_lock(&registry);
    retire(thread);
    thread_free(thread);
    pthread_mutex_unlock(&registry);
}

/* A logical thread uses data of the real one: add the edges from all logical threads on that.  */
static void
thread_join_real(Thread *thread)
{
    if (thread->outer != NULL) {
        Thread *outer = thread->outer;
        trace("real %u", thread->uid);
        thread_join(thread, thread_base(outer), thread_time(outer), true);
        thread_join(thread, outer->chain.base, outer->chain.time, true);
    }
}

/* End the calling thread and continue as the one that it runs on, if any.  */
static Moment
thread_finish(Thread *thread)
{
    Moment end = {base_ref(thread_base(thread)), thread_time(thread)};
    pthread_mutex_lock(&registry);
    retire(thread);
    pthread_mutex_unlock(&registry);
    if (thread->outer != NULL) {
        self_thread = thread->outer;
        self_thread->chain = moment_union(self_thread->chain, end.base, end.time);
        thread_drop_refs(thread);
        pthread_mutex_lock(&registry);
        thread_free(thread);
        pthread_mutex_unlock(&registry);
    }
    return end;
}
