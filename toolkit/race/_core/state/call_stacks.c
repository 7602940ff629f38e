/* Calling contexts, without a cost for calls: the interpreter's frames are walked when an access is recorded.

   The walk hashes (code, instruction) of each frame; a thread caches the contexts of hashes.  Frame objects are created
   only for unknown hashes.  Contexts hold references to their code, so the address of a code object identifies it.
   Recursions have very many stacks, so only the innermost calls are distinguished: beyond a few frames, a frame whose
   function occurs a few frames before is left out.  */

/* The common beginning of a frame in CPython 3.12 to 3.15.  */
typedef struct RawFrame {
    uintptr_t executable;       /* tagged from 3.14 on */
    struct RawFrame *previous;
    uintptr_t function;
    PyObject *globals, *builtins, *locals;
    PyFrameObject *frame_object;
    void *instruction;
} RawFrame;

#define DEEPEST 64          /* frames that are kept */
#define FARTHEST 400        /* that are looked at */
#define EXACT 4             /* innermost frames that are kept in any case */
#define CYCLE 4             /* functions of a recursion that is recognized */

/* The latest functions of the walk, to recognize a recursion.  */
typedef struct { uintptr_t codes[CYCLE]; int kept; } Turns;

/* True if the frame is part of the context.  */
static inline bool
turns_keep(Turns *turns, uintptr_t code)
{
    bool again = code == turns->codes[0] || code == turns->codes[1] || code == turns->codes[2]
        || code == turns->codes[3];
    if (again && turns->kept >= EXACT) {
        return false;
    }
    turns->codes[turns->kept++ % CYCLE] = code;
    return true;
}

static inline PyThreadState *
thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

static inline RawFrame *
raw_frame(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (RawFrame *)state->current_frame;
#else
    return (RawFrame *)state->cframe->current_frame;
#endif
}

/* The calling function's activation: an address that is unique while it runs.  */
static void *
activation(void)
{
    PyThreadState *state = thread_state();
    if (likely(core.raw_frames)) {
        return raw_frame(state);
    }
    PyFrameObject *frame = PyThreadState_GetFrame(state);
    Py_XDECREF(frame);          /* its executing function keeps it */
    return frame;
}

/* The calling function's globals; borrowed.  */
static PyObject *
calling_globals(void)
{
    if (likely(core.raw_frames)) {
        return raw_frame(thread_state())->globals;
    }
    return PyEval_GetGlobals();
}

static uint64_t
hash_frames_slowly(PyThreadState *state)
{
    uint64_t hash = 1;
    Turns turns = {{0}, 0};
    PyFrameObject *frame = PyThreadState_GetFrame(state);
    for (int depth = 0; frame != NULL && depth < FARTHEST && turns.kept < DEEPEST; depth++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (depth > 0 && turns_keep(&turns, (uintptr_t)code)) {
            hash = mix(hash ^ (uintptr_t)code, (uint64_t)PyFrame_GetLasti(frame));
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return hash;
}

/* Of the callers of the function that runs.  */
static inline uint64_t
hash_callers(PyThreadState *state)
{
    if (unlikely(!core.raw_frames)) {
        return hash_frames_slowly(state);
    }
    uint64_t hash = 1;
    Turns turns = {{0}, 0};
    RawFrame *frame = raw_frame(state);
    frame = frame != NULL ? frame->previous : NULL;
    for (int depth = 0; frame != NULL && depth < FARTHEST && turns.kept < DEEPEST; depth++, frame = frame->previous) {
        if (turns_keep(&turns, frame->executable)) {
            hash = (hash ^ frame->executable) + (uintptr_t)frame->instruction * UINT64_C(0x9E3779B97F4A7C15);
            hash *= UINT64_C(0xD6E8FEB86659FD93);
            hash ^= hash >> 29;
        }
    }
    return hash;
}

/* True if the raw walk sees the frames that the public interface shows.  */
static bool
raw_frames_agree(void)
{
    PyThreadState *state = thread_state();
    PyFrameObject *frame = PyThreadState_GetFrame(state);
    RawFrame *raw = raw_frame(state);
    bool agree = frame != NULL;
    while (frame != NULL && agree) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int shims = 0;          /* entries from C lie between */
        while (raw != NULL && (raw->executable & ~(uintptr_t)3) != (uintptr_t)code && shims++ < 4) {
            raw = raw->previous;
        }
        PyObject *globals = PyObject_GetAttrString((PyObject *)frame, "f_globals");
        agree = raw != NULL && shims < 4 && globals == raw->globals;
        raw = raw != NULL ? raw->previous : NULL;
        Py_XDECREF(globals);
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return agree;
}

static uint32_t
intern_frame(uint32_t parent, PyCodeObject *code, int instruction)
{
    Frame item = {(uintptr_t)code, parent, instruction};
    uint32_t before = frames.n;
    uint32_t number = table_intern(&frames, &item, false);
    if (number == UINT32_MAX) {
        return parent;
    }
    if (number >= before) {
        Py_INCREF(code);        /* at worst once too often, when two threads meet here */
    }
    return number;
}

/* The number of the present context without its innermost `skip` frames.  */
static uint32_t
context_now(int skip)
{
    PyObject *error = PyErr_GetRaisedException();
    PyCodeObject *codes[DEEPEST];
    int instructions[DEEPEST];
    Turns turns = {{0}, 0};
    PyFrameObject *frame = PyThreadState_GetFrame(thread_state());
    for (int depth = 0; frame != NULL && depth < FARTHEST && turns.kept < DEEPEST; depth++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (depth >= skip && turns_keep(&turns, (uintptr_t)code)) {
            codes[turns.kept - 1] = code;
            instructions[turns.kept - 1] = PyFrame_GetLasti(frame);
        }
        else {
            Py_DECREF(code);
        }
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    uint32_t context = 0;
    for (int i = turns.kept - 1; i >= 0; i--) {
        context = intern_frame(context, codes[i], instructions[i]);
        Py_DECREF(codes[i]);
    }
    PyErr_SetRaisedException(error);
    return context;
}

/* The interned number of this access.  May call Python.  */
static uint32_t
where_now(Thread *thread, const Site *site, int kind, uint32_t bits)
{
    uint32_t locks = thread_lock_set(thread);
    uint64_t hash = hash_callers(thread_state());
    hash = mix(hash ^ (uint64_t)(uint32_t)site->number << 32 ^ locks, (uint64_t)bits << 8 | (uint32_t)kind);
    CachedWhere *cached = &thread->wheres[hash % WHERE_CACHE];
    if (likely(cached->hash == hash)) {
        return cached->where;
    }
    Where item = {.site = site->number, .context = context_now(1), .locks = locks, .span_site = -1,
                  .kind = (uint32_t)kind, .bits = bits};
    uint32_t where = table_intern(&wheres, &item, false);
    if (where == UINT32_MAX) {      /* full: the place alone */
        item.context = 0;
        item.locks = locks != 0 ? UNKNOWN_LOCKS : 0;
        where = table_intern(&wheres, &item, true);
        where = where == UINT32_MAX ? 0 : where;        /* of 0, which is no place, nothing is reported */
    }
    *cached = (CachedWhere){hash, where};
    return where;
}

static inline Where *
where_at(uint32_t number)
{
    return table_item(&wheres, number);
}

/* The same access as one of another kind.  */
static uint32_t
where_as(uint32_t number, int kind)
{
    Where item = *where_at(number);
    item.kind = (uint32_t)kind;
    item.span_site = -1;
    item.span_locks = item.guards = item.bits = 0;
    uint32_t where = number != 0 ? table_intern(&wheres, &item, true) : 0;
    return where == UINT32_MAX ? number : where;
}

/* The same access under other locks.  */
static uint32_t
where_under(uint32_t number, uint32_t locks)
{
    Where item = *where_at(number);
    item.locks = locks;
    uint32_t where = number != 0 ? table_intern(&wheres, &item, true) : 0;
    return where == UINT32_MAX ? number : where;
}

/* The same access as the end of a span.  */
static uint32_t
where_with_span(Thread *thread, uint32_t number, int32_t span_site, uint32_t locks, uint32_t guards, bool presence)
{
    uint64_t hash = mix(mix((uint64_t)number << 32 | (uint32_t)span_site, (uint64_t)locks << 32 | guards), 11 + presence);
    CachedWhere *cached = &thread->wheres[hash % WHERE_CACHE];
    if (likely(cached->hash == hash)) {
        return cached->where;
    }
    Where item = *where_at(number);
    item.span_site = span_site;
    item.span_locks = locks;
    item.guards = guards;
    item.bits |= presence ? ASKED_PRESENCE : 0;
    uint32_t where = number != 0 ? table_intern(&wheres, &item, true) : 0;
    where = where == UINT32_MAX ? number : where;
    *cached = (CachedWhere){hash, where};
    return where;
}
