/* Threads: the slot of each with its totals, and the chunks with its spans. */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct self self __attribute__((tls_model("initial-exec")));

static pthread_key_t end_key;

static void at_thread_end(void *unused)
{
    (void)unused;
    if (recording)
        end_thread();
    self.slot = NULL;
    self.gone = 1;
}

void register_thread_end(void)
{
    pthread_key_create(&end_key, at_thread_end);
}

/* The thread's CPU time, time spent waiting for a CPU, and context switches. */
static void read_usage(uint64_t *cpu, uint64_t *runqueue, uint64_t *voluntary, uint64_t *involuntary)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    *cpu = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    *voluntary = (uint64_t)usage.ru_nvcsw;
    *involuntary = (uint64_t)usage.ru_nivcsw;
    char text[96];
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    unsigned long long on_cpu, waited;
    if (length > 0 && (text[length] = 0, sscanf(text, "%llu %llu", &on_cpu, &waited) == 2))
        *runqueue = waited;
}

struct slot *own_slot(int python)
{
    if (likely(self.slot != NULL && self.generation == generation))
        return self.slot;
    if (self.gone && self.generation == generation)
        return NULL;
    struct mapping *here = map;
    if (here == NULL)
        return NULL;
    memset(&self, 0, sizeof self);
    self.generation = generation;
    uint32_t number = __atomic_fetch_add(&here->header.slots_used, 1, __ATOMIC_RELAXED);
    if (number >= SLOTS_MAX) {
        __atomic_fetch_sub(&here->header.slots_used, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&here->header.slots_lost, 1, __ATOMIC_RELAXED);
        self.gone = 1;
        return NULL;
    }
    struct slot *slot = &here->slots[number];
    slot->tid = (uint32_t)syscall(SYS_gettid);
    slot->start = now();
    slot->flags = (python ? PYTHON : 0) | (slot->tid == (uint32_t)getpid() ? MAIN : 0);
    prctl(PR_GET_NAME, slot->name);
    read_usage(&slot->cpu_start, &slot->runqueue_start, &slot->voluntary_start, &slot->involuntary_start);
    self.number = number;
    self.slot = slot;
    pthread_setspecific(end_key, &self);
    return slot;
}

void end_thread(void)
{
    struct slot *slot = self.generation == generation ? self.slot : NULL;
    if (slot == NULL || slot->flags & SLOT_ENDED)
        return;
    uint64_t end = now();
    if (slot->state == HOLD) {      /* a process that ends does not release */
        self.waiting = (struct span){.begin = slot->since, .end = end, .kind = HOLD, .gil = (uint8_t)slot->gil};
        record(slot, &self.waiting);
        slot->state = 0;
    }
    read_usage(&slot->cpu_ns, &slot->runqueue_ns, &slot->voluntary, &slot->involuntary);
    prctl(PR_GET_NAME, slot->name);
    slot->end = end;
    slot->flags |= SLOT_ENDED;
}

void add_total(struct total *total, uint64_t begin, uint64_t end)
{
    uint64_t lasted = end > begin ? end - begin : 0;
    total->count++;
    total->sum += lasted;
    if (lasted > total->longest) {
        total->longest = lasted;
        total->longest_begin = begin;
    }
}

/* Like it, where several threads add; the longest may miss one of two that end in the same nanoseconds. */
void add_total_shared(struct total *total, uint64_t begin, uint64_t end)
{
    uint64_t lasted = end > begin ? end - begin : 0;
    __atomic_fetch_add(&total->count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->sum, lasted, __ATOMIC_RELAXED);
    if (lasted > __atomic_load_n(&total->longest, __ATOMIC_RELAXED)) {
        __atomic_store_n(&total->longest, lasted, __ATOMIC_RELAXED);
        __atomic_store_n(&total->longest_begin, begin, __ATOMIC_RELAXED);
    }
}

/* Give the chunk that can take one more span: the current one, a fresh one, or the thread's own oldest. */
static struct chunk *open_chunk(struct slot *slot)
{
    if (self.owned < CHUNKS_PER_THREAD) {
        uint32_t number = __atomic_fetch_add(&map->header.chunks_used, 1, __ATOMIC_RELAXED);
        if (number < CHUNKS_MAX) {
            struct chunk *chunk = &map->chunks[number];
            /* Reserves the page's blocks without a file descriptor kept; a full disk must not be a SIGBUS. */
            if (madvise(chunk, sizeof *chunk, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) {
                self.own[self.owned] = (uint16_t)number;
                self.current = self.owned++;
                chunk->slot = self.number;
                return chunk;
            }
        } else
            __atomic_store_n(&map->header.chunks_used, CHUNKS_MAX, __ATOMIC_RELAXED);
    }
    if (self.owned == 0)
        return NULL;
    self.current = (self.current + 1) % self.owned;
    struct chunk *oldest = &map->chunks[self.own[self.current]];
    slot->spans_lost += oldest->count;
    __atomic_store_n(&oldest->count, 0, __ATOMIC_RELEASE);
    return oldest;
}

void record(struct slot *slot, const struct span *span)
{
    add_total(&slot->totals[span->kind], span->begin, span->end);
    if (self.chunk == NULL || self.chunk->count == SPANS_PER_CHUNK) {
        self.chunk = open_chunk(slot);
        if (self.chunk == NULL) {
            slot->spans++;
            slot->spans_lost++;
            return;
        }
        self.chunk->sequence = slot->spans;
    }
    struct chunk *chunk = self.chunk;
    chunk->spans[chunk->count] = *span;
    __atomic_store_n(&chunk->count, chunk->count + 1, __ATOMIC_RELEASE);
    slot->spans++;
}
