/* Pairs of calls that read and write inside: begin(), reads(), writes().

   A span over such a pair is one only where the inner accesses do not protect themselves: a getter that writes what it
   reads is none, nor does a setter depend on the outer value where it adds to, or checks, what is there.  */

static PyObject *
op_begin(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    if (!is_active()) {
        return PyLong_FromLong(0);
    }
    Thread *thread = thread_get();
    uint64_t position = thread->position << 8 | (uint64_t)(thread->recording & 0xff);
    if (thread->recording < 0xff) {
        thread->recording++;
    }
    thread->attention |= ATTENTION_RECORDING;
    return PyLong_FromUnsignedLongLong(position);
}

/* Where the recording of this call began; UINT64_MAX: nothing is recorded.  */
static uint64_t
recording_end(Thread *thread, PyObject *position)
{
    uint64_t since = PyLong_AsUnsignedLongLong(position);
    if (since == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear();
        return UINT64_MAX;
    }
    thread->recording = (int)(since & 0xff);
    if (thread->recording == 0) {
        thread->attention &= ~(uint32_t)ATTENTION_RECORDING;
    }
    return since >> 8;
}

static inline bool
recent_lives(const Recent *recent)
{
    return recent->serial == atomic_load_explicit(&recent->record->serial, memory_order_relaxed);
}

static bool
written_since(const Thread *thread, const Recent *read, uint64_t since)
{
    for (uint32_t i = 0; i < RING && i < thread->n_recent[1]; i++) {
        const Recent *write = &thread->recent[1][i];
        if (write->position >= since && write->record == read->record && write->key == read->key) {
            return true;
        }
    }
    return false;
}

/* A touch of what was noted before, on behalf of the calling function.  */
static Touch
touch_again(Thread *thread, const Recent *recent, const Site *site, int kind)
{
    return (Touch){
        .thread = thread, .site = site, .object = recent->object, .record = recent->record,
        .key = key_word(recent->key), .kind = kind, .locks = thread_lock_set(thread)};
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

static void
tell_again(Touch *touch)
{
    for (int i = 0; i < touch->n_found; i++) {
        tell(touch->thread, &touch->found[i], touch->object, touch->key.word, NULL, NULL);
    }
}

static void
read_again(Thread *thread, const Recent *read, const Site *site)
{
    if (site->flags & (GUARDED_STORE | GUARDED_REMOVE)) {
        Touch touch = touch_again(thread, read, site, READ);
        touch.where = where_now(thread, site, READ, -1, 0);
        spin_lock(&read->record->spin);
        Cell *cell = cell_again(read);
        if (cell != NULL) {
            failed_check(&touch, cell);
        }
        spin_unlock(&read->record->spin);
        tell_again(&touch);
    }
    open_at(thread, site->number, read->record, read->key, read->hard, read->acquired);
}

/* Claim that the inner write uses what the outer read found.  */
static bool
depends(const Site *site, const Recent *write)
{
    uint32_t inner = site_flags(where_at(write->where)->site);
    if (site->flags & GUARD) {
        return !(inner & (GUARD | RECHECKED));
    }
    return write->kind == WRITE && !(inner & (VALUE | GUARD | AUGMENTED | RECHECKED));
}

static void
write_again(Thread *thread, const Recent *write, const Site *site, void *frame)
{
    for (int32_t i = 0; i < site->n_partners; i++) {
        Open *open = open_find(thread, frame, site->partners[i], write->record, write->key);
        Base *base = open != NULL ? thread_hard_at(thread, open->hard) : NULL;
        if (base == NULL) {
            continue;
        }
        uint32_t locks = thread->n_held ? lock_set_since(thread, open->acquired) : 0;
        Touch touch = touch_again(thread, write, site, write->kind);
        touch.where = where_now(thread, site, write->kind, site->partners[i], locks);
        spin_lock(&write->record->spin);
        Cell *cell = cell_again(write);
        if (cell != NULL) {
            Access span = {write->epoch, touch.where};
            span_close(&touch, cell, base, span);
            list_keep(&cell_lists(cell)->spans, span, true);
        }
        spin_unlock(&write->record->spin);
        tell_again(&touch);
    }
}

static PyObject *
op_again(PyObject *const *args, int side)
{
    PyObject *value = Py_NewRef(args[1]);
    Thread *thread = is_active() ? thread_get() : NULL;
    uint64_t since = thread != NULL ? recording_end(thread, args[0]) : UINT64_MAX;
    if (since == UINT64_MAX || thread->busy) {
        return value;
    }
    const Site *site = (Site *)args[2];
    uint32_t n = thread->n_recent[side];
    for (uint32_t i = n > RING ? n - RING : 0; i < n; i++) {
        const Recent recent = thread->recent[side][i % RING];
        if (recent.position < since || !recent_lives(&recent)) {
            continue;
        }
        if (side == 1) {
            if (depends(site, &recent)) {
                write_again(thread, &recent, site, activation());
            }
        }
        else if (!written_since(thread, &recent, since)) {
            read_again(thread, &recent, site);
        }
    }
    return value;
}

static PyObject *
op_reads(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    return check_op(args, n, 3) ? op_again(args, 0) : NULL;
}

static PyObject *
op_writes(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    return check_op(args, n, 3) ? op_again(args, 1) : NULL;
}

static PyObject *
op_enter(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (!check_op(args, n, 1)) {
        return NULL;
    }
    if (is_active()) {
        open_forget(thread_get(), activation());
    }
    Py_RETURN_NONE;
}
