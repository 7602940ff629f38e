/* Pairs of calls that read and write inside: begin(), reads(), writes().

   A pair is a span only if the inner accesses do not protect themselves: not if the getter writes what it reads, or if
   the setter adds to, or checks, the present value.  */

static uint64_t
recording_begin(Thread *thread)
{
    trace("record %u %llu", thread->uid, (unsigned long long)thread->position);
    uint64_t position = thread->position << 8 | (uint64_t)(thread->recording & 0xff);
    if (thread->recording < 0xff) {
        thread->recording++;
    }
    thread->attention |= ATTENTION_RECORDING;
    return position;
}

/* Start recording; return the position.  */
static uint64_t
recording_end(Thread *thread, uint64_t position)
{
    thread->recording = (int)(position & 0xff);
    if (thread->recording == 0) {
        thread->attention &= ~(uint32_t)ATTENTION_RECORDING;
    }
    return position >> 8;
}

static inline bool
recent_lives(const Recent *recent)
{
    return recent->serial == atomic_load_explicit(&recent->record->serial, memory_order_relaxed);
}

/* True if the call wrote anything, so that it is an act and not a test.  */
static bool
wrote_since(const Thread *thread, uint64_t since)
{
    uint32_t n = thread->n_recent[1];
    return n > 0 && thread->recent[1][(n - 1) % RING].position >= since;
}

/* Repeat a recorded access on behalf of the calling function.  */
static void
touch_again(Touch *touch, Thread *thread, const Recent *recent, const Site *site, int kind)
{
    touch_init(touch, thread, site, recent->object, recent->record, key_word(recent->key), kind);
    touch->options = recent->presence ? PRESENCE : 0;
}

static Cell *
cell_again(const Recent *recent)
{
    for (uint32_t i = 0; recent_lives(recent) && i < recent->record->n; i++) {
        if (recent->record->cells[i].key == recent->key) {
            return &recent->record->cells[i];
        }
    }
    return NULL;
}

/* Return a new reference to the object if there is something to report: its last one may be dropped during the first
   report.  Nothing is reported of an object that is dead.  The caller holds the record's lock.  */
static PyObject *
keep_to_tell(Touch *touch, const Recent *recent)
{
    PyObject *object = touch->n_found > 0 ? try_reference(recent) : NULL;
    touch->n_found = object != NULL ? touch->n_found : 0;
    return object;
}

static void
read_again(Thread *thread, const Recent *read, const Site *site)
{
    Touch touch;
    touch_again(&touch, thread, read, site, READ);
    touch.where = where_now(thread, site, READ, 0);
    touch.locks = read->locks;
    spin_lock(&read->record->spin);
    Cell *cell = cell_again(read);
    if (cell != NULL) {
        failed_check(&touch, cell);
    }
    uint64_t kept = cell != NULL ? key_keep(cell->key) : 0;
    PyObject *told = keep_to_tell(&touch, read);
    spin_unlock(&read->record->spin);
    touch_tell(&touch);
    if (cell != NULL) {
        key_drop(kept);
    }
    open_add(thread, (Open){
        .frame = activation(), .record = read->record, .key = read->key, .serial = read->serial, .site = site->number,
        .base = base_ref(read->base), .acquired = read->acquired, .presence = read->presence});
    Py_XDECREF(told);       /* may call Python, which may overwrite what `read` refers to */
}

/* True if only the caller decided what the setter stores, and whether it does.  */
static bool
from_outside(const Site *site, const Recent *write)
{
    Where *where = where_at(write->where);
    uint32_t inner = site_flags(where->site);
    if (site->flags & GUARD) {
        return !(inner & (GUARD | RECHECKED));
    }
    return where->kind == WRITE && KEY_TAG(write->key) != KEY_PART
        && !(inner & (VALUE | GUARD | AUGMENTED | RECHECKED));
}

static void
write_again(Thread *thread, const Recent *write, const Site *site, int32_t partner)
{
    Open *open = open_find(thread, activation(), partner, write->record, write->key);
    if (open == NULL || open->base == NULL || (open->used != 0 && open->used != write->number)) {
        return;
    }
    Where *inner = where_at(write->where);
    Touch touch;
    touch_again(&touch, thread, write, site, (int)inner->kind);
    Closed closed;
    closed.n = 0;
    touch.where = where_now(thread, site, (int)inner->kind, inner->bits & CHANGES_PRESENCE);
    touch.where = where_under(touch.where, inner->locks);
    closed_add(&touch, &closed, partner, open, write->held, write->n_held);
    closed.spans[0].epoch = write->epoch;
    spin_lock(&write->record->spin);
    Cell *cell = cell_again(write);
    if (cell != NULL) {
        span_close(&touch, cell, closed.bases[0], closed.spans[0]);
        list_keep(&cell_lists(cell)->spans, closed.spans[0], true);
    }
    uint64_t kept = cell != NULL ? key_keep(cell->key) : 0;
    PyObject *told = keep_to_tell(&touch, write);
    spin_unlock(&write->record->spin);
    base_drop(closed.bases[0]);
    touch_tell(&touch);
    if (cell != NULL) {
        key_drop(kept);
    }
    Py_XDECREF(told);
}

/* Repeat the accesses recorded since then, on behalf of the calling function.  */
static void
again(Thread *thread, const Site *site, uint64_t since, int side)
{
    trace("again %u %d %llu %d %p", thread->uid, site->number, (unsigned long long)since, side, activation());
    uint32_t n = side == 0 && wrote_since(thread, since) ? 0 : thread->n_recent[side];
    for (uint32_t i = n > RING ? n - RING : 0; i < n; i++) {
        Recent recent = thread->recent[side][i % RING];
        if (recent.position < since || !recent_lives(&recent)) {
            continue;
        }
        if (side == 1 && from_outside(site, &recent)) {
            for (int32_t partner = -1; partner < site->n_partners; partner++) {
                write_again(thread, &recent, site, partner < 0 ? site->number : site->partners[partner]);
            }
        }
        if (side == 0 && recent.base != NULL) {
            read_again(thread, &recent, site);
        }
    }
}

/* What begin() returns.  It is an argument of the `reads` or `writes` around a call; if the call raises, that is not reached,
   and the recording ends as this object dies.  */
typedef struct {
    PyObject_HEAD
    uint64_t position;
    bool records;
    uint32_t thread;        /* uid */
    uint32_t depth;         /* of recordings in it, with this one */
} Recording;

static PyTypeObject *recording_type;

static bool
recording_finish(Recording *self, uint64_t *since)
{
    Thread *thread = self_thread;
    bool records = self->records && thread != NULL && thread->uid == self->thread;
    if (records) {
        *since = recording_end(thread, self->position);
    }
    self->records = false;
    return records;
}

static void
recording_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    uint64_t since;
    recording_finish((Recording *)self, &since);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
op_begin(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    Recording *self = PyObject_New(Recording, recording_type);
    if (self != NULL) {
        self->records = is_active();
        self->depth = 0;
        if (self->records) {
            Thread *thread = thread_get();
            self->position = recording_begin(thread);
            self->thread = thread->uid;
            self->depth = (uint32_t)thread->recording;
        }
    }
    return (PyObject *)self;
}

static PyObject *
op_again(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_again, args, n, 3)) {
        return NULL;
    }
    const Site *site = last_site(args, n);
    uint64_t since;
    if (Py_IS_TYPE(args[0], recording_type) && recording_finish((Recording *)args[0], &since) && is_active()
        && is_noting(self_thread)) {
        again(self_thread, site, since, site->op->kind == WRITE);
    }
    return Py_NewRef(args[1]);
}

static PyMemberDef recording_members[] = {
    {"depth", Py_T_UINT, offsetof(Recording, depth), Py_READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyType_Slot recording_slots[] = {
    {Py_tp_dealloc, recording_dealloc}, {Py_tp_members, recording_members}, {0, NULL}};
static PyType_Spec recording_spec = {
    .name = "gilscope.Recording", .basicsize = sizeof(Recording),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = recording_slots};

static PyObject *
op_enter(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(op_enter, args, n, 1)) {
        return NULL;
    }
    if (is_active()) {
        trace("enter %u %p", thread_get()->uid, activation());
        open_forget(thread_get(), activation());
    }
    Py_RETURN_NONE;
}
