/* Spans, for atomicity violations: a read and a later write that depends on it, with another thread's write between.

   As in AVIO (Lu et al., ASPLOS 2006), restricted by the rewriter's data flow: only a write whose site names the read's
   site as its partner ends a span.  Here locks give mutual exclusion, but no order.  */

/* The thread's number of writes to a location; it grows with those to other locations of the same bucket, which end a span
   too early.  An insertion writes the container's structure before the item, so these two never share a bucket.  */
static inline OwnWrites *
own_writes(Thread *thread, Record *record, uint64_t key)
{
    uint64_t hash = mix((uintptr_t)record, key);
    OwnWrites *own = &thread->own_writes[((hash & ~UINT64_C(1)) | (KEY_TAG(key) == KEY_PART)) % OWN_WRITES];
    if (own->record != record || own->key != key) {
        *own = (OwnWrites){record, key, own->count};
    }
    return own;
}

static inline Open *
open_bucket(Thread *thread, void *frame)
{
    return thread->opens[((uintptr_t)frame >> 4 ^ (uintptr_t)frame >> 11) % OPEN_BUCKETS];
}

static void
open_add(Thread *thread, Open entry)
{
    Open *bucket = open_bucket(thread, entry.frame);
    Open *place = NULL;
    for (int way = 0; way < OPEN_WAYS; way++) {
        Open *open = &bucket[way];
        if (open->frame == entry.frame && open->site == entry.site && open->record == entry.record
            && open->key == entry.key) {
            place = open;
            break;
        }
        if (open->frame == NULL && place == NULL) {
            place = open;
        }
    }
    if (place == NULL) {
        place = &bucket[thread->open_next[(bucket - thread->opens[0]) / OPEN_WAYS]++ % OPEN_WAYS];
    }
    base_drop(place->base);
    *place = entry;
}

static Open *
open_find(Thread *thread, void *frame, int32_t site, const Record *record, uint64_t key)
{
    Open *bucket = open_bucket(thread, frame);
    for (int way = 0; way < OPEN_WAYS; way++) {
        Open *open = &bucket[way];
        if (open->frame == frame && open->site == site && open->record == record && open->key == key
            && open->serial == atomic_load_explicit(&record->serial, memory_order_relaxed)) {
            return open;
        }
    }
    return NULL;
}

/* Drop the reads of an earlier activation at the same address.  */
static void
open_forget(Thread *thread, void *frame)
{
    Open *bucket = open_bucket(thread, frame);
    for (int way = 0; way < OPEN_WAYS; way++) {
        if (bucket[way].frame == frame) {
            bucket[way].frame = NULL;
        }
    }
}

/* True if a write invalidates the read of a span: for a test of presence, if it changes the presence.  */
static inline bool
violates(const Where *write, uint32_t act, bool presence)
{
    if (act == GROW || act == SHRINK) {
        return write->kind == act || write->kind == RESHAPE;
    }
    return (act == WRITE || act == ATOMIC) && (write->kind == WRITE || write->kind == ATOMIC)
        && (write->bits & CHANGES_PRESENCE || !presence);
}
