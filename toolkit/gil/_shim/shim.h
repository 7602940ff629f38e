/* The preloaded shim: the shared declarations of its parts, and the layout of the file that toolkit/gil/records.py reads.

   There is one file per process, mapped into it and written in place, so a killed process leaves all it has recorded.
   Every thread writes to its own slot and chunks, so nothing here takes a lock. */
#ifndef GILSCOPE_SHIM_H
#define GILSCOPE_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#pragma GCC visibility push(hidden)

#define FORMAT 4                /* raise it with every change below */
#define SITES_MAX 4096
#define SLOTS_MAX 2048
#define CHUNKS_MAX 8192         /* 64 MiB */
#define CHUNKS_PER_THREAD 64    /* beyond it a thread overwrites its oldest ones: 16,320 spans are stored */
#define SPANS_PER_CHUNK 255
#define HISTOGRAM 40            /* waits by power of two of their nanoseconds: bucket b holds [2^b, 2^(b+1)) */
#define GILS_MAX 128
#define FRAME_MAX 128           /* bytes of a frame that are read */
#define CODE_MAX 256            /* bytes of its code that are read */
#define TEXT_MAX 64             /* bytes of a string before its characters */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* SWITCH: handing the GIL over.  PARK: parked in contention.  IDLE: parked because the program waits on purpose.
   SPIN: yielding the CPU until a lock was free, without being parked. */
enum kind { WAIT = 1, HOLD = 2, SWITCH = 3, PARK = 4, IDLE = 5, SPIN = 6, KINDS = 7 };
/* The reason why a thread is parked.  ON_OBJECT: the mutex in an object's header, a critical section.  STOPPING: not
   parked, it has stopped all others, which are parked ON_WORLD. */
enum reason { ON_NOTHING, ON_OBJECT, ON_LOCK, ON_WORLD, ON_RAW, ON_OTHER, ON_SPIN, STOPPING };
enum flags { FREE_THREADED = 1, SITES_KNOWN = 2, ENDED = 4, FORKED = 8, NO_GIL_FOUND = 16, ALL_HOLDS = 32, GIL_ON = 64 };
enum slot_flags { PYTHON = 1, SLOT_ENDED = 2, MAIN = 4, USAGE_KNOWN = 8 };

struct span {                   /* 32 bytes */
    uint64_t begin, end;        /* ns, CLOCK_MONOTONIC */
    uint32_t site;              /* 0: unknown */
    uint16_t attempts, timeouts;
    uint16_t other;             /* WAIT: 1 + the slot that held the GIL when it began, 0: unknown */
    uint8_t kind, gil;
    uint32_t reserved;
};

struct chunk {                  /* 8 KiB */
    uint32_t slot, count;
    uint64_t sequence;          /* of its first span among the thread's */
    uint64_t reserved[2];
    struct span spans[SPANS_PER_CHUNK];
};

struct total { uint64_t count, sum, longest, longest_begin; };

#define NAME 128

struct slot {                   /* one thread; 1024 bytes */
    uint32_t tid, flags;
    uint64_t start, end;
    char name[16], entry[128];
    uint32_t state, gil;        /* enum kind: the last activity of a killed thread, and its GIL */
    uint64_t since;
    struct total totals[KINDS];
    uint64_t attempts, timeouts, handovers, acquired_free, acquired, spans, spans_lost, samples, sample_ns, yields;
    uint64_t cpu_ns, runqueue_ns, voluntary, involuntary;
    uint64_t cpu_start, runqueue_start, voluntary_start, involuntary_start;
    uint32_t histogram[HISTOGRAM];
    char called[NAME];          /* its name in threading at its start; "" if it was started otherwise */
    uint32_t at, reserved;      /* the site of its wait, or of the last sample while it had the GIL; for killed threads */
    uint64_t looked;            /* time of that sample */
    char padding[1024 - 8 - 16 - 144 - 16 - 32 * KINDS - 18 * 8 - 4 * HISTOGRAM - NAME - 16];
};

struct place { uint64_t code, instruction, caller, caller_instruction; };   /* caller: as in struct site; 0: itself */

struct site {                   /* one place at which one thread waited, for one reason, or had the GIL; 1024 bytes */
    uint32_t ready, line;
    struct place place;
    uint64_t object;
    uint32_t reason, idle;
    struct total waited, parked;
    struct total held;          /* had the GIL while others waited for it; STOPPING: the pauses of the others */
    uint64_t caused;            /* ns that the others waited meanwhile, added up */
    char file[224], function[88], on[40];
    uint32_t slot;              /* the thread */
    uint32_t caller_line;       /* the program's own line that led there; no file: the place itself, or none */
    char caller_file[224], caller_function[88];
    char padding[1024 - 56 - 96 - 8 - 352 - 8 - 312];
};

struct header {                 /* one page */
    char magic[8];
    uint32_t format, pid, parent, python, flags, slots_used, slots_lost, sites_lost, gils_lost, chunks_used;
    uint32_t interval_us, looks;     /* the switch interval, 0: unknown; samples of the GIL's holder */
    uint64_t start, start_real, end; /* ns; start_real since the epoch, the others CLOCK_MONOTONIC */
    uint64_t clock_ps, pair_ps; /* one reading of the clock; one hold recorded */
    char executable[256], command[1024];
};

struct mapping {                /* the file, chunk by chunk */
    struct header header;
    char padding[4096 - sizeof(struct header)];
    struct site sites[SITES_MAX];
    struct slot slots[SLOTS_MAX];
    struct chunk chunks[CHUNKS_MAX];
};

_Static_assert(sizeof(struct span) == 32, "span");
_Static_assert(sizeof(struct chunk) == 8192, "chunk");
_Static_assert(sizeof(struct slot) == 1024, "slot");
_Static_assert(sizeof(struct site) == 1024, "site");

struct gil {
    pthread_cond_t *cond, *switch_cond;
    pthread_mutex_t *mutex;
    uint32_t holder;            /* 1 + slot; 0: unknown */
    uint32_t last;              /* 1 + slot of the last holder */
    uint32_t waiters;           /* from here on: under the GIL's own mutex */
    uint64_t contended;         /* since when there are waiters */
    uint64_t waited, counted;   /* ns of all waiters, added up until `counted` */
    uint64_t waited_before;     /* until the present hold began */
    uint64_t looked;            /* time of the last sample of the holder */
    uint32_t found, votes;      /* the most frequent site in samples of the present hold; 0: none */
};

struct self {                   /* the thread-local state */
    struct slot *slot;          /* NULL: none yet, or none left */
    uint32_t number;            /* of the slot */
    int gone;                   /* no slot was left, or the thread has ended */
    uint32_t generation;        /* of the recording that the slot belongs to */
    int releasing;              /* between the signal and the unlock of drop_gil() */
    struct gil *gil;            /* waited for or held */
    uint64_t wait_end;
    struct span row;            /* the latest series of sched_yield calls; begin is 0: none */
    struct span waiting;        /* the wait that has begun */
    struct chunk *chunk;
    uint16_t own[CHUNKS_PER_THREAD];
    uint32_t owned, current;
    uint32_t entry_tries;
};

static inline uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void add_total(struct total *total, uint64_t begin, uint64_t end)
{
    uint64_t lasted = end > begin ? end - begin : 0;
    total->count++;
    total->sum += lasted;
    if (lasted > total->longest) {
        total->longest = lasted;
        total->longest_begin = begin;
    }
}

/* The same for several threads; the longest may miss one of two spans that end at the same time. */
static inline void add_total_shared(struct total *total, uint64_t begin, uint64_t end)
{
    uint64_t lasted = end > begin ? end - begin : 0;
    __atomic_fetch_add(&total->count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->sum, lasted, __ATOMIC_RELAXED);
    if (lasted > __atomic_load_n(&total->longest, __ATOMIC_RELAXED)) {
        __atomic_store_n(&total->longest, lasted, __ATOMIC_RELAXED);
        __atomic_store_n(&total->longest_begin, begin, __ATOMIC_RELAXED);
    }
}

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* real.c */
extern struct real {
    int (*cond_init)(pthread_cond_t *, const pthread_condattr_t *);
    int (*cond_destroy)(pthread_cond_t *);
    int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond_wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*cond_signal)(pthread_cond_t *);
    int (*mutex_unlock)(pthread_mutex_t *);
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*setname)(pthread_t, const char *);
    int (*sem_wait)(sem_t *);
    int (*sem_timedwait)(sem_t *, const struct timespec *);
    int (*sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
    int (*sem_trywait)(sem_t *);
    int (*yield)(void);
    int (*kill)(pid_t, int);
} real;
void find_real(void);

/* hooks.c */
extern int all_holds;           /* $GILSCOPE_GIL_ALL: holds are timed even if no thread waits */
void forget_holders(void);
void hold_from_now(void);

/* reserve_record_file.c */
extern const char *folder;      /* of the environment: recording begins with the process */
extern int recording;
extern uint32_t generation;
extern struct mapping *map;
extern __thread struct self self;
int reserve(const void *begin, size_t size);
int is_reserved(const void *entry);
int reserve_entry(const void *entry);
void reserve_none(void);

/* open_record_file.c */
int open_file(const char *folder, uint32_t flags);
void close_file(void);
void forget_file(void);

/* slots.c */
extern uint32_t chunks_wanted;   /* per thread; $GILSCOPE_GIL_CHUNKS stores less */
struct slot *own_slot(int fresh);     /* fresh: the thread has just begun */
void end_thread(void);
void end_row(struct slot *slot);
void read_living(void);
void note_usage(const char *process, struct slot *slot);
void register_thread_end(void);
void record(struct slot *slot, const struct span *span);

/* python.c */
/* Offsets in bytes.  3.13 and later have them in _PyRuntime; those of 3.12 do not change any more. */
struct offsets {
    uint64_t state_frame, state_size, state_before, state_after, state_tid, previous, executable, instruction, owner, tlbc_index;
    uint64_t filename, qualname, linetable, firstlineno, bytecode, tlbc, type, type_name, length, text, bytes;
    unsigned last_owner;        /* frames owned by the interpreter itself come after it */
    unsigned long frame_size, code_size;    /* up to the last member that is read */
};

extern struct offsets at;
extern const char *runtime, *runtime_end;
extern uint32_t python_version;
extern int python;              /* true if this is a supported Python */
extern int free_threaded, sites_known;
extern uint64_t code_type, string_type;
int find_python(void);
int from_python(const void *caller);
int peek(uint64_t address, void *into, unsigned long size);
uint64_t own_thread_state(void);

/* frames.c */
int own_place(struct place *place);
int place_of_holder(uint64_t state, struct place *place);
int within_a_wait(void);
int waits_for_threads(const char *file, const char *function);
int own_entry(char *into, unsigned long size);
void describe(struct place place, struct site *site);

/* thread_names.c */
void find_naming(void);
void name_of_started(char *into, unsigned long size);

/* callers.c */
int called_from(const char *module);

/* wait_sites.c */
uint32_t sample(struct slot *slot, enum reason reason, uint64_t type);
uint32_t sample_holder(struct slot *slot, uint32_t holder, uint64_t state, enum reason reason);
enum reason park_reason(const sem_t *semaphore, uint64_t *type);
int is_idle(uint32_t site, enum reason reason);
void sample_stopper(struct slot *slot, const sem_t *semaphore);
void add_pause(uint64_t begin, uint64_t end);

#pragma GCC visibility pop
#endif
