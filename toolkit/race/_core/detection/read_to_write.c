/* Spans, for atomicity violations: a read and a later write that depends on it, with another thread's write between.

   As in AVIO (Lu et al., ASPLOS 2006), restricted by the rewriter's data flow: only a write whose site names the read's
   site as its partner ends a span.  Here locks give mutual exclusion, but no order.  */

static inline uint16_t *
opens_at(Thread *thread, const Record *record, uint64_t key)
{
    return &thread->opens_at[mix((uintptr_t)record, key) % OPEN_LOCATIONS];
}

static inline uint16_t *
opens_in(Thread *thread, const void *frame)
{
    return &thread->opens_in[((uintptr_t)frame >> 4 ^ (uintptr_t)frame >> 11) % OPEN_FRAMES];
}

static void
open_drop(Thread *thread, uint16_t number)
{
    Open *open = &thread->opens[number];
    uint16_t *here = opens_at(thread, open->record, open->key);
    while (*here != number) {
        here = &thread->opens[*here].next;
    }
    *here = open->next;
    *(open->before != 0 ? &thread->opens[open->before].after : opens_in(thread, open->frame)) = open->after;
    thread->opens[open->after].before = open->before;
    base_drop(open->base);
    *open = (Open){.next = thread->free_open};
    thread->free_open = number;
}

/* The number of a free entry; if there is none, of one that has been there for a while.  */
static uint16_t
open_free(Thread *thread)
{
    if (thread->free_open == 0 && thread->n_opens < MOST_OPENS) {
        return ++thread->n_opens;
    }
    if (thread->free_open == 0) {
        open_drop(thread, 1 + thread->next_open++ % MOST_OPENS);
    }
    uint16_t number = thread->free_open;
    thread->free_open = thread->opens[number].next;
    return number;
}

static Open *
open_entry(Thread *thread, void *frame, int32_t site, const Record *record, uint64_t key)
{
    for (uint16_t at = *opens_at(thread, record, key); at != 0; at = thread->opens[at].next) {
        Open *open = &thread->opens[at];
        if (open->frame == frame && open->site == site && open->record == record && open->key == key) {
            return open;
        }
    }
    return NULL;
}

static void
open_add(Thread *thread, Open entry)
{
    Open *open = open_entry(thread, entry.frame, entry.site, entry.record, entry.key);
    if (open != NULL) {
        base_drop(open->base);
        entry.next = open->next;
        entry.before = open->before;
        entry.after = open->after;
        *open = entry;
        return;
    }
    uint16_t number = open_free(thread);
    uint16_t *here = opens_at(thread, entry.record, entry.key), *first = opens_in(thread, entry.frame);
    entry.next = *here;
    entry.before = 0;
    entry.after = *first;
    thread->opens[entry.after].before = number;     /* nobody reads that of entry 0 */
    thread->opens[number] = entry;
    *here = *first = number;
}

static Open *
open_find(Thread *thread, void *frame, int32_t site, const Record *record, uint64_t key)
{
    Open *open = open_entry(thread, frame, site, record, key);
    return open != NULL && open->serial == atomic_load_explicit(&record->serial, memory_order_relaxed) ? open : NULL;
}

/* Drop the reads of an earlier activation at the same address.  */
static void
open_forget(Thread *thread, void *frame)
{
    for (uint16_t at = *opens_in(thread, frame), after; at != 0; at = after) {
        after = thread->opens[at].after;
        if (thread->opens[at].frame == frame) {
            open_drop(thread, at);
        }
    }
}

/* A write to a location uses up what the thread has read there before.  */
static inline void
opens_use(Thread *thread, const Record *record, uint64_t key)
{
    uint64_t number = ++thread->n_writes;
    for (uint16_t at = *opens_at(thread, record, key); unlikely(at != 0); at = thread->opens[at].next) {
        Open *open = &thread->opens[at];
        if (open->record == record && open->key == key && open->used == 0) {
            open->used = number;
        }
    }
}

/* True if a write invalidates the read of a span: for a test of presence, if it changes the presence; for a copy before a
   `clear`, also if it adds an item, which neither has.  */
static inline bool
violates(const Where *write, const Where *span)
{
    uint32_t act = span->kind;
    if (act == SHRINK && write->kind == GROW) {
        return site_flags(span->site) & VALUE;
    }
    if (act == GROW || act == SHRINK) {
        return write->kind == act || write->kind == RESHAPE;
    }
    return (act == WRITE || act == ATOMIC) && (write->kind == WRITE || write->kind == ATOMIC)
        && (write->bits & CHANGES_PRESENCE || !(span->bits & ASKED_PRESENCE));
}
