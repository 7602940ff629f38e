/* One operation of the program while it is tracked, and short lists of accesses.  */

enum Option {
    HAND = 1,           /* an insertion */
    TAKE = 2,           /* getting the item is ordered after its insertion */
    LOOK = 4,           /* a read without a load: of a missing key, or in a set */
    UNORDERED = 8,      /* a queue, with edges of its own */
    QUIET = 16,         /* starts no span */
    UNHAND = 32,        /* the item is removed */
    UPDATE = 64,        /* a load and the store that depends on it, in one operation */
    OWN = 128,          /* a stand-in's load or store: its site is its own partner */
    PRESENCE = 256,     /* asks whether there is something; or inserts, deletes */
};

typedef struct {
    Thread *thread;
    const Site *site;
    PyObject *object;
    Record *record;
    Key key;                /* owned by the caller or, with `keeps_key`, by this */
    bool keeps_key;
    uint32_t serial;        /* the record's when `key` became that of a cell */
    uint32_t news;          /* the record's when the cell was accessed */
    int kind, options;
    uint32_t where;         /* known before the record is locked */
    uint32_t locks;
    Base *after;            /* vector clock once the read has got its item; owned */
    Moment seen;            /* of a store: the edge to add if the load saw a new container; owned */
    bool sees_object;       /* or another object */
    uint32_t blind;         /* core.blind at the beginning */
    PyObject *shown_key, *value;     /* borrowed; value: loaded or to be stored */
    int n_found;
    Found found[MOST_FOUND];
} Touch;

/* An initializer would clear the list of found conflicts each time.  */
static inline void
touch_init(Touch *touch, Thread *thread, const Site *site, PyObject *object, Record *record, Key key, int kind)
{
    touch->thread = thread;
    touch->site = site;
    touch->object = object;
    touch->record = record;
    touch->key = key;
    touch->keeps_key = false;
    touch->serial = atomic_load_explicit(&record->serial, memory_order_relaxed);
    touch->news = 0;
    touch->kind = kind;
    touch->options = 0;
    touch->where = 0;
    touch->locks = thread_lock_set(thread);
    touch->after = NULL;
    touch->seen.base = NULL;
    touch->sees_object = false;
    touch->shown_key = touch->value = NULL;
    touch->n_found = 0;
    touch->blind = atomic_load_explicit(&core.blind, memory_order_relaxed);
}

/* Report the conflicts found, with nothing locked.  */
static void
touch_tell(Touch *touch)
{
    for (int i = 0; i < touch->n_found; i++) {
        Found *found = &touch->found[i];
        if (trustworthy(touch->blind)) {
            trace_found(touch->record, found, found->key != 0 ? found->key : touch->key.word);
            tell(touch->thread, found, touch->object, found->key != 0 ? found->key : touch->key.word,
                 found->key != 0 ? NULL : touch->shown_key, touch->value);
        }
        if (found->key != 0) {
            key_drop(found->key);
        }
    }
}

#define MOST_READERS 24
#define MOST_ACTS 32

static void
found_add(Touch *touch, bool span, bool first_spans, Access first, Access second)
{
    if (touch->n_found < MOST_FOUND && first.where != 0 && second.where != 0) {
        touch->found[touch->n_found++] = (Found){.first = first, .second = second, .span = span, .first_spans = first_spans};
    }
}

static inline Access
touch_access(const Touch *touch)
{
    return (Access){touch->thread->epoch, touch->where};
}

/* True if the operation looked for a key that is not there.  */
static inline bool
misses(int kind, int options)
{
    return kind == READ && (options & (LOOK | TAKE)) == LOOK;
}

static inline bool
is_write(int kind)
{
    return kind == WRITE || kind == ATOMIC || kind >= GROW;
}

static inline uint32_t
touch_bits(int kind, int options)
{
    return kind == ATOMIC || (kind == WRITE && options & PRESENCE) ? CHANGES_PRESENCE : 0;
}

/* True if a later write may depend on this read.  */
static inline bool
opens(const Touch *touch)
{
    return !is_write(touch->kind) && !(touch->options & QUIET)
        && (touch->site->flags & (SPAN_READ | AUGMENTED) || touch->options & OWN);
}

static void
list_push(AccessList *list, Access access, int most)
{
    if (list->n == most) {
        memmove(list->items, list->items + 1, (size_t)(list->n - 1) * sizeof(Access));
        list->n--;
    }
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 2;
        list->items = must(realloc(list->items, list->capacity * sizeof(Access)));
    }
    list->items[list->n++] = access;
}

static void
list_remove(AccessList *list, int at)
{
    list->n--;
    memmove(&list->items[at], &list->items[at + 1], (size_t)(list->n - at) * sizeof(Access));
}

/* True if one access may replace the other: both are of the same thread and kind, under the same locks, and spans begin
   with the same read.  */
static bool
same_sort(Access one, Access other, bool spans)
{
    Where *a = where_at(one.where), *b = where_at(other.where);
    if (EPOCH_SLOT(one.epoch) != EPOCH_SLOT(other.epoch)) {
        return false;
    }
    return spans ? a->span_site == b->span_site && a->span_locks == b->span_locks
                 : a->kind == b->kind && a->locks == b->locks && (a->bits & CHANGES_PRESENCE) == (b->bits & CHANGES_PRESENCE);
}

static void
list_keep(AccessList *list, Access access, bool spans)
{
    for (int i = 0; i < list->n; i++) {
        if (same_sort(list->items[i], access, spans)) {
            list->items[i] = access;
            return;
        }
    }
    list_push(list, access, MOST_ACTS);
}
