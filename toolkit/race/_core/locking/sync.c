/* Synchronisation edges through objects, release(obj) and acquire(obj), and the clocks of locks.  */

typedef struct { uint32_t context; Sync *sync; PyObject *lock; } Origin;    /* by uid */
#define ORIGINS (1 << 18)      /* of the latest so many locks */

/* An address alone cannot be turned into a reference safely without a GIL, nor in 3.13: the evaluation loop of 3.13.0
   destroys objects without a death event.  */
#define LOCKS_NEED_REFS (FREE_THREADED || PY_VERSION_HEX >> 16 == 0x030D)

static Origin *origins;
static Spin origins_spin;       /* while it is held, the clocks that are listed are not freed */
static _Atomic(uint32_t) n_locks;

static void
sync_free(Sync *sync)
{
    if (sync != NULL) {
        spin_lock(&origins_spin);
        if (sync->uid != 0 && origins[sync->uid % ORIGINS].sync == sync) {
            origins[sync->uid % ORIGINS].sync = NULL;
            origins[sync->uid % ORIGINS].lock = NULL;
        }
        spin_unlock(&origins_spin);
        base_drop(sync->moment.base);
        Py_XDECREF(sync->ref);
        free(sync);
    }
}

/* The object's clock, created if missing; it lives as long as the object.  */
static Sync *
sync_of(Thread *thread, PyObject *object, bool create)
{
    Record *record = record_of(thread, object, create);
    if (record == NULL || record->sync != NULL || !create) {
        return record == NULL ? NULL : record->sync;
    }
    Sync *fresh = must(calloc(1, sizeof(Sync)));
    spin_lock(&record->spin);
    if (record->sync == NULL) {
        record->sync = fresh;
        fresh = NULL;
    }
    spin_unlock(&record->spin);
    free(fresh);
    return record->sync;
}

/* Store the thread's clock: replace the stored one if it happened before, otherwise join both.  */
static void
sync_release(Thread *thread, Sync *sync)
{
    Base *base = thread_base(thread);
    uint64_t time = thread_time(thread);
    spin_lock(&sync->spin);
    trace("release %u %u", thread->uid, trace_number(&sync->traced));
    if (moment_known(thread, sync->moment)) {
        if (sync->moment.base != base) {
            base_drop(sync->moment.base);
            sync->moment.base = base_ref(base);
        }
        sync->moment.time = time;
    }
    else {
        sync->moment = moment_union(sync->moment, base, time);
    }
    spin_unlock(&sync->spin);
    thread_advance(thread);
}

static void
sync_acquire(Thread *thread, Sync *sync, bool hard)
{
    spin_lock(&sync->spin);
    trace("acquire %u %u %d", thread->uid, trace_number(&sync->traced), hard);
    thread_join(thread, sync->moment.base, sync->moment.time, hard);
    spin_unlock(&sync->spin);
}
