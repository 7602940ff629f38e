/* State of Lock and RLock for the detection: the locks that each thread holds, and the clock that each release stores.

   As long as there is only one thread, only holders are recorded.  */

/* In 3.12 every thread acquires a lock at its start that the interpreter releases at its end.  */
static bool
is_life_lock(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return false;
#else
    PyFrameObject *frame = PyThreadState_GetFrame(thread_state());
    PyCodeObject *code = frame != NULL ? PyFrame_GetCode(frame) : NULL;
    bool life = code != NULL && PyUnicode_CompareWithASCIIString(code->co_name, "_set_tstate_lock") == 0;
    Py_XDECREF(code);
    Py_XDECREF(frame);
    return life;
#endif
}

/* Give the lock its uid.  */
static void
lock_baptize(Record *record, PyObject *lock)
{
    Sync *sync = record->sync;
    bool ignored = is_life_lock();
    uint32_t context = atomic_load(&core.started) ? context_now(0) : 0;
    PyObject *ref = NULL;
#if LOCKS_NEED_REFS
    PyObject *error = PyErr_GetRaisedException();
    ref = PyWeakref_NewRef(lock, NULL);
    PyErr_SetRaisedException(error);
#endif
    spin_lock(&record->spin);
    if (sync->uid == 0) {
        uint32_t uid = atomic_fetch_add(&n_locks, 1) + 1;
        sync->origin = context;
        sync->ignored = ignored;
        sync->ref = ref;
        ref = NULL;
        spin_lock(&origins_spin);
        origins[uid % ORIGINS] = (Origin){context, sync, lock};
        spin_unlock(&origins_spin);
        sync->uid = uid;        /* last: who sees it sees the rest */
    }
    spin_unlock(&record->spin);
    Py_XDECREF(ref);
}

static inline Record *
lock_record(Thread *thread, PyObject *lock)
{
    Record *record = record_of(thread, lock, true);
    if (unlikely(record->sync == NULL)) {
        sync_of(thread, lock, true);
    }
    if (unlikely(record->sync->uid == 0)) {
        lock_baptize(record, lock);
    }
    return record;
}

static inline int
held_find(const Thread *thread, PyObject *lock)
{
    int i = thread->n_held - 1;
    while (i >= 0 && thread->held[i].lock != lock) {
        i--;
    }
    return i >= 0 && still_held(&thread->held[i]) ? i : -1;
}

static inline bool
locks_matter(Thread *thread)
{
    return thread->muted == 0 && !atomic_load_explicit(&thread->ended, memory_order_relaxed) && !core.dead;
}

static void
held_add(Thread *thread, PyObject *lock, Record *record, uint32_t count)
{
    Sync *sync = record->sync;
    if (unlikely(thread->n_held == MAX_HELD)) {
        forget_lost_locks(thread);
    }
    if (thread->n_held < MAX_HELD) {
        thread->held[thread->n_held++] = (HeldLock){
            .lock = lock, .record = record, .sync = sync, .uid = sync->uid, .serial = ++thread->acquisitions,
            .count = count, .life = atomic_load_explicit(&record->serial, memory_order_relaxed),
            .strayed = atomic_load_explicit(&sync->strayed, memory_order_relaxed)};
        thread->lock_set_known = false;
        thread->learned++;
    }
}

/* Track that the lock was acquired, `count` times at once for a restored RLock.  */
static void
lock_acquired(Thread *thread, PyObject *lock, bool reentrant, uint32_t count)
{
    if (!locks_matter(thread)) {
        return;
    }
    int at = reentrant ? held_find(thread, lock) : -1;
    if (at >= 0) {
        thread->held[at].count += count;
        return;
    }
    Record *record = lock_record(thread, lock);
    if (unlikely(record->sync->ignored)) {
        return;
    }
    held_add(thread, lock, record, count);
    if (is_active()) {
        sync_acquire(thread, record->sync, false);
    }
}

static void
held_remove(Thread *thread, int at)
{
    thread->n_held--;
    memmove(&thread->held[at], &thread->held[at + 1], (size_t)(thread->n_held - at) * sizeof(HeldLock));
    thread->lock_set_known = false;
}

/* Call it before the lock is released once.  `locked` tells whether it is locked, if it is not known to be held here.  */
static void
lock_releasing(Thread *thread, PyObject *lock, bool reentrant, bool (*locked)(PyObject *))
{
    if (core.dead) {
        return;
    }
    int at = held_find(thread, lock);
    if (at >= 0) {
        if (--thread->held[at].count > 0) {
            return;
        }
        held_remove(thread, at);
    }
    else if (reentrant || !locked(lock)) {
        return;
    }
    bool matters = locks_matter(thread);
    Sync *sync = matters || at < 0 ? lock_record(thread, lock)->sync : NULL;
    if (at < 0) {
        atomic_fetch_add_explicit(&sync->strayed, 1, memory_order_relaxed);
    }
    if (matters && is_active() && !sync->ignored) {
        sync_release(thread, sync);
    }
}

/* Call it before an RLock is released completely.  */
static void
lock_releasing_all(Thread *thread, PyObject *lock)
{
    int at = held_find(thread, lock);
    if (at >= 0) {
        thread->held[at].count = 1;
        lock_releasing(thread, lock, true, NULL);
    }
}

/* Reset the lock, in the child of a fork.  */
static void
lock_reinitialized(Thread *thread, PyObject *lock)
{
    int at = held_find(thread, lock);
    if (at >= 0) {
        held_remove(thread, at);
    }
    else {
        atomic_fetch_add_explicit(&lock_record(thread, lock)->sync->strayed, 1, memory_order_relaxed);
    }
}
