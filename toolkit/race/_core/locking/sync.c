/* Synchronisation edges through objects, release(obj) and acquire(obj), and the clocks of locks.  */

typedef struct { uint32_t context; Sync *sync; PyObject *lock; } Origin;    /* by uid */
#define ORIGINS (1 << 18)      /* of the latest so many locks */

static Origin *origins;
static _Atomic(uint32_t) n_locks;

static void
sync_free(Sync *sync)
{
    if (sync != NULL) {
        if (sync->uid != 0 && origins[sync->uid % ORIGINS].sync == sync) {
            origins[sync->uid % ORIGINS].sync = NULL;
            origins[sync->uid % ORIGINS].lock = NULL;
        }
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

/* Store the thread's clock: replace the present one if the thread's covers it, else join both.  */
static void
sync_release(Thread *thread, Sync *sync)
{
    Base *base = thread_base(thread);
    uint64_t time = thread_time(thread);
    spin_lock(&sync->spin);
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
    thread_join(thread, sync->moment.base, sync->moment.time, hard);
    spin_unlock(&sync->spin);
}
