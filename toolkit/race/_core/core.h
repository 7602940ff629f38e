/* Types that all parts of the core share: terms, vector clocks, and the state of process, threads and watched objects.

   The parts are included into one translation unit (core.c), so that the compiler can inline across them: tracking an
   access takes tens of nanoseconds, and calls between files would be a considerable part of that.  */
#ifndef GILSCOPE_CORE_H
#define GILSCOPE_CORE_H

#include "../../builds/extension.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#include "effects.h"

/* Flags of a site that the core sets, beside those of the rewriter.  */
enum CoreFlag {
    EMPTIES = 1 << 25,          /* a removal of any key of a dict: clear, popitem */
    REMOVES_ITEM = 1 << 26,     /* a removal, guarded or not */
    OPENS_SLOWLY = 1 << 27,     /* a read that the cache must not skip */
    REMOVES = 1 << 28,          /* a write that removes something */
    GUARDED_STORE = 1 << 29,    /* a store whose test is this read names it as partner */
    GUARDED_REMOVE = 1 << 30,   /* a removal whose test is this read does */
};

/* ---- spin locks --------------------------------------------------------------------------------------------------
   On a build with a GIL, only the interpreter that started the core runs this code, with its GIL held.

   While holding a spin lock, call only what can neither fail, nor run code of the program, nor make or drop an object: the
   creation and the death of one take locks of the shadow state.  Allowed are new references, reads of plain keys (keys.c),
   and PyObject_Hash() of those.  */
typedef struct { _Atomic(uint8_t) held; } Spin;

static inline void
spin_lock(Spin *spin)
{
#if FREE_THREADED
    for (int tries = 0; atomic_exchange_explicit(&spin->held, 1, memory_order_acquire); tries++) {
        if (tries > 60) {
            sched_yield();     /* the holder may have been preempted */
        }
    }
#else
    (void)spin;
#endif
}

static inline void
spin_unlock(Spin *spin)
{
#if FREE_THREADED
    atomic_store_explicit(&spin->held, 0, memory_order_release);
#else
    (void)spin;
#endif
}

#ifdef GILSCOPE_TRACE
#define TRACE_NUMBER _Atomic(uint32_t) traced;      /* see trace.c */
#else
#define TRACE_NUMBER
#endif

/* ---- vector clocks -----------------------------------------------------------------------------------------------
   An epoch is one component of a vector clock: slot of a thread and its time, in one word.  */
#define SLOT_BITS 16
#define MAX_SLOTS 4096                  /* beyond it, slots of ended threads are reused before all threads have joined their clocks */
#define TIME_BITS 48
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define EPOCH_SLOT(epoch) ((int)((epoch) >> TIME_BITS))
#define EPOCH_TIME(epoch) ((epoch) & TIME_MASK)
#define NO_SLOT (-1)

/* The vector clock of a thread without its own time; immutable while there is more than one reference.  */
typedef struct {
    _Atomic(int) refs;
    int slot;               /* whose; NO_SLOT for a union */
    int n;                  /* times[0..n) by all edges, times[n..2n) without those of Lock and RLock */
    int capacity;
    uint64_t times[];
} Base;

/* A point in a thread's execution: its base and its own time.  */
typedef struct {
    Base *base;             /* owned; NULL: before everything */
    uint64_t time;
} Moment;

/* ---- accesses ---------------------------------------------------------------------------------------------------- */
typedef struct {            /* an access without its time; interned */
    int32_t site;
    uint32_t context;
    uint32_t locks;         /* lockset held */
    int32_t span_site;      /* the read that this write depended on, or -1 */
    uint32_t span_locks;    /* lockset held without interruption from that read to here */
    uint32_t guards;        /* lockset held here, acquired since that read */
    uint32_t kind;
    uint32_t bits;          /* enum WhereBit */
} Where;

enum WhereBit {
    CHANGES_PRESENCE = 1,   /* the write may insert or delete */
    ASKED_PRESENCE = 2,     /* the span's read tested for presence, it did not load a value */
};

typedef struct { uint64_t epoch; uint32_t where; } Access;

#define SET_UIDS 3
typedef struct {            /* interned */
    uint32_t n;             /* number of locks held, may exceed SET_UIDS */
    uint32_t uids[SET_UIDS];   /* innermost first */
    uint64_t bloom;         /* filter of all uids */
} LockSet;

/* ---- shadow state ------------------------------------------------------------------------------------------------
   A record per watched object, found by its address; a cell per location in it.  */
typedef struct { Access *items; uint16_t n, capacity; } AccessList;

typedef struct {            /* state that only few cells need */
    Base *handed_base;      /* clock of the insertion: readers of the item are ordered after it */
    uint64_t handed;        /* epoch */
    Base *flag_base;        /* clock of the last write if loads that see it are ordered after it */
    AccessList readers;     /* last reads that are concurrent with each other */
    AccessList writes;      /* last write-like acts per thread, for the atomicity layer */
    AccessList spans;       /* last spans per thread */
} Extra;

#define HANDED 1            /* an insertion: getting the item is ordered after it */
#define FLAGGED 2           /* published: some reads that see it are ordered after it */
typedef struct {
    uint64_t key;           /* tagged, see keys.c */
    uint64_t write;         /* epoch of the last write, 0: none */
    uint64_t read;          /* epoch of the last read unless extra->readers has it, 0: none */
    uint32_t write_where;
    uint32_t read_where;
    uintptr_t extra;        /* 0, Extra *, or the base of `write`, tagged with HANDED, FLAGGED or both */
} Cell;

typedef struct {            /* value: 0 is free, 1 is deleted */
    uintptr_t value;
    Moment *moments;        /* clocks of its insertions, from left to right */
    uint32_t n, capacity;
} Handed;
typedef struct {            /* insertions into a list or deque, by identity of the value */
    Handed *items;
    uint32_t n, used, mask; /* used: n and deleted ones */
    uint32_t limit;         /* number at which values that left unnoticed are dropped */
    Moment unknown;         /* joint clock of insertions whose values are unknown */
} Hands;

typedef struct {            /* the clock that release() stores for an object or lock */
    Moment moment;
    _Atomic(uint32_t) uid;  /* of a lock; 0: not a lock */
    uint32_t origin;        /* context of the first acquisition */
    _Atomic(uint32_t) strayed;     /* releases by another thread than the holder, which end the holding */
    PyObject *ref;          /* weak reference if LOCKS_NEED_REFS */
    TRACE_NUMBER
    bool ignored;           /* 3.12: a thread holds it until its end, which is tracked otherwise */
    Spin spin;
} Sync;

typedef struct { Access read; bool all; int64_t range[3]; } Whole;    /* a read of many items of a container */
typedef struct { uint32_t n; Whole items[16]; } Wholes;

#define SHARED 0xffff
typedef struct Record {
    PyObject *object;       /* borrowed; NULL: free */
    struct Record *next;
    Cell *cells;            /* followed by the index when capacity > LINEAR */
    _Atomic(Sync *) sync;
    _Atomic(Hands *) hands; /* insertions by identity of the value: list, deque */
    Wholes *wholes;
    _Atomic(uint32_t) serial;      /* changes when the object dies; records are never given back */
    uint32_t n, capacity;
    _Atomic(uint32_t) number;      /* of the object among those that were asked for, 0: not asked for yet */
    _Atomic(uint32_t) news;        /* insertions, and stores that order loads, since it became shared */
    _Atomic(uint16_t) owner;       /* the only slot that has accessed it, or SHARED */
    struct Boxes *boxes;    /* cells for parts of an array with several items, or NULL */
    TRACE_NUMBER
    Spin spin;
} Record;

/* ---- threads ----------------------------------------------------------------------------------------------------- */
#define CACHE_SIZE 1024
typedef struct {            /* one cache line */
    PyObject *object;
    uint64_t key;
    uint64_t epoch;
    Record *record;
    uint32_t serial;
    uint32_t cell;
    uint32_t news;
    uint32_t modes;         /* bits: 1 << Kind; CACHED_SPAN */
    uint32_t frame;         /* the activation in which a read at site `opened` */
    int32_t opened;         /* began a span, or -1 */
    int32_t closed;         /* the site of a write that ended one, or -1 */
    uint32_t learned;       /* the thread's count then */
} Cached;
#define CACHED_SPAN (1u << 16)     /* an x += v, including its span */

#define WHERE_CACHE 1024
typedef struct { uint64_t hash; uint32_t where; } CachedWhere;
#define SET_CACHE 64
#define OBJECT_CACHE 128
typedef struct { PyObject *object; Record *record; uint32_t serial; } CachedObject;
#define TYPE_CACHE 128
typedef struct { uint64_t key; PyObject *holder; uint32_t verdict; } CachedType;

#define MAX_HELD 64
typedef struct {
    PyObject *lock;
    Record *record;
    Sync *sync;
    uint32_t uid, serial, count;
    uint32_t life, strayed; /* the record's serial and `strayed` at the acquisition */
} HeldLock;

#define MOST_OPENS 512
#define OPEN_FRAMES 64
#define OPEN_LOCATIONS 1024
typedef struct {            /* a read that a later write may depend on */
    void *frame;            /* activation; NULL: free */
    Record *record;
    uint64_t key;
    uint32_t serial;
    int32_t site;
    Base *base;             /* vector clock at the read; owned */
    uint32_t acquired;      /* a lock with a serial up to this was held at the read */
    uint64_t used;          /* the number of the thread's first write to the location since, 0: none */
    bool presence;          /* it tested for presence */
    uint16_t next;          /* with a location of the same hash, or among the free; numbers of opens, 0: none */
    uint16_t before, after; /* in activations of the same hash */
} Open;

#define RING 16
typedef struct {
    PyObject *object;       /* borrowed: it may be dead, see try_reference() */
    PyObject *ref;          /* 3.13.0: weak reference, owned */
    Record *record;
    uint64_t key, epoch;
    uint64_t position;
    Base *base;             /* vector clock at a read; owned */
    uint64_t number;        /* of a write among the thread's */
    uint32_t serial, acquired, locks, where;
    bool presence;
    int n_held;
    HeldLock held[SET_UIDS];    /* innermost last */
} Recent;

typedef struct Thread {
    uint64_t epoch;         /* slot and time, as stored in cells */
    uint64_t *order, *hard; /* vector clocks with and without the edges of Lock and RLock */
    int capacity;
    int slot;
    uint32_t uid;
    bool stale;             /* base is older than order and hard */
    bool automatic;         /* attached on its first op, not by thread_begin() */
    bool noted;             /* it has made a tracked access */
    _Atomic(bool) ended;
    _Atomic(bool) nudged;   /* its time must advance: another thread took its clock */
    Base *base;
    struct Thread *outer;   /* the thread that this logical thread runs on */
    Moment chain;           /* joint final clock of the logical threads on this one */
    int muted, busy;
    uint32_t attention;     /* reasons to bypass the cache: ATTENTION_* */
    uint32_t acquisitions;
    uint32_t learned;       /* number of new edges and acquisitions */
    int n_held;
    uint32_t lock_set;
    bool lock_set_known;
    HeldLock held[MAX_HELD];
    Cached cache[CACHE_SIZE];
    CachedWhere wheres[WHERE_CACHE];
    CachedWhere sets[SET_CACHE];
    CachedObject objects[OBJECT_CACHE];
    CachedType types[TYPE_CACHE];
    Open opens[MOST_OPENS + 1];
    uint16_t n_opens, free_open, next_open;     /* ever used; one that is free now; the next to be replaced */
    uint16_t opens_at[OPEN_LOCATIONS], opens_in[OPEN_FRAMES];   /* by hash */
    uint64_t n_writes;
    int recording;          /* open begin() calls */
    uint64_t position;      /* accesses recorded so far */
    uint32_t n_recent[2];   /* reads, writes */
    Recent recent[2][RING];
    Record *polled;         /* the location of a poll whose load comes next */
    uint32_t polled_serial;
    uint64_t polled_key, polled_write;
    uint32_t polled_where;
} Thread;
#define ATTENTION_RECORDING 1
#define ATTENTION_POLLED 2

/* ---- Python objects ---------------------------------------------------------------------------------------------- */
typedef struct Op Op;
typedef struct {
    PyObject_HEAD
    int32_t number;
    _Atomic(uint32_t) flags;    /* a later site may add some */
    const Op *op;
    PyObject *key;          /* attribute, name or method: interned */
    const Method *method;   /* of the op `method`, else NULL */
    const Function *function;      /* of the op `size`, else NULL */
    int32_t n_partners;
    int32_t *partners;
    PyObject *info;
} Site;

/* What rewritten code calls under a name, and what it does at a site of that name: module.c has the table.  */
typedef PyObject *(*OpCall)(PyObject *, PyObject *const *, Py_ssize_t);
struct Op {
    const char *name;
    OpCall call;
    PyObject *(*at)(Thread *, PyObject *, Site *);      /* of op_at(): track an access of the object; return what stands for it */
    int kind, options;      /* of the access, if they are the same at each site */
    bool stores_attribute, removes;
};

/* ---- the process ------------------------------------------------------------------------------------------------- */
typedef struct {
    _Atomic(int) active;        /* started, and something can be concurrent */
    _Atomic(int) started;
    _Atomic(int) concurrent;
    _Atomic(uint32_t) blind;    /* periods without death events: older lookups are invalid */
    _Atomic(int) clocks;        /* live Clock objects: each may be that of a starting thread */
    _Atomic(bool) dead;         /* `exits` or `crowded`: nothing is checked any more, and no clock is used */
    _Atomic(bool) exits;        /* the interpreter is going away: free nothing, and forget nothing */
    _Atomic(bool) crowded;      /* there were more threads at a time than slots: no clock can be believed any more */
    bool raw_frames;            /* the layout of frames is as call_stacks.c expects */
    bool raw_tables;            /* that of dicts and sets is as key_lookup.c expects */
    bool debug;
    PyInterpreterState *interpreter;
    PyTypeObject *site_type;
    _Atomic(PyObject *) on_conflict;
    _Atomic(PyObject *) on_gap;
    PyObject *no_value, *revive;
    PyObject *prefix;           /* of the names of ops */
    PyObject *folder;           /* of the race checker: its frames are left out of stacks */
} Core;

static Core core;
static __thread Thread *self_thread __attribute__((tls_model("initial-exec")));

static Thread *thread_attach(void);
static void tell_gap(const char *reason, uint32_t count);      /* report_conflicts.c */

static inline Thread *
thread_get(void)
{
    Thread *thread = self_thread;
    return likely(thread != NULL) ? thread : thread_attach();
}

static inline bool
is_active(void)
{
    return atomic_load_explicit(&core.active, memory_order_relaxed);
}

static inline uint64_t
mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xD6E8FEB86659FD93);
    return h ^ (h >> 32);
}

/* Abort if out of memory: a checker that has lost state reports wrong results.  */
static void *
must(void *memory)
{
    if (memory == NULL) {
        Py_FatalError("gilscope: out of memory");
    }
    return memory;
}

#endif
