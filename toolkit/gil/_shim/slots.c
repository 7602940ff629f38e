/* Threads: a slot for each with its totals, and chunks with its spans. */
#include "shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t chunks_wanted = CHUNKS_PER_THREAD;

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

struct usage { uint64_t cpu, runqueue, voluntary, involuntary; };

static int read_file(const char *path, char *into, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, into, size - 1);
    close(file);
    into[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* A thread's CPU time, time spent waiting for a CPU, and context switches, as the kernel counts them. */
static int read_usage(const char *process, uint32_t tid, struct usage *usage)
{
    char path[64], text[4096];
    unsigned long long cpu, waited;
    *usage = (struct usage){0};
    snprintf(path, sizeof path, "/proc/%s/task/%u/schedstat", process, tid);
    if (!read_file(path, text, sizeof text) || sscanf(text, "%llu %llu", &cpu, &waited) != 2)
        return 0;
    usage->cpu = cpu, usage->runqueue = waited;
    snprintf(path, sizeof path, "/proc/%s/task/%u/status", process, tid);
    const char *found = read_file(path, text, sizeof text) ? strstr(text, "\nvoluntary_ctxt_switches:") : NULL;
    if (found != NULL)
        usage->voluntary = strtoull(found + 25, NULL, 10);
    found = found ? strstr(found, "\nnonvoluntary_ctxt_switches:") : NULL;
    if (found != NULL)
        usage->involuntary = strtoull(found + 28, NULL, 10);
    return 1;
}

void note_usage(const char *process, struct slot *slot)
{
    struct usage usage;
    if (!read_usage(process, slot->tid, &usage))
        return;
    slot->cpu_ns = usage.cpu, slot->runqueue_ns = usage.runqueue;
    slot->voluntary = usage.voluntary, slot->involuntary = usage.involuntary;
    slot->flags |= USAGE_KNOWN;
}

/* Threads alive at the process's end: some end at this very moment, which would not be recorded otherwise. */
void read_living(void)
{
    for (uint32_t i = 0; i < map->header.slots_used && i < SLOTS_MAX; i++)
        if (is_reserved(&map->slots[i]) && map->slots[i].tid != 0 && !(map->slots[i].flags & SLOT_ENDED))
            note_usage("self", &map->slots[i]);
}

struct slot *own_slot(int fresh)
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
    if (number >= SLOTS_MAX || !reserve_entry(&here->slots[number])) {
        __atomic_fetch_add(&here->header.slots_lost, 1, __ATOMIC_RELAXED);
        self.gone = 1;
        return NULL;
    }
    struct slot *slot = &here->slots[number];
    slot->tid = (uint32_t)syscall(SYS_gettid);
    slot->start = now();
    slot->flags = PYTHON | (slot->tid == (uint32_t)getpid() ? MAIN : 0);
    prctl(PR_GET_NAME, slot->name);
    struct usage usage;
    if (!fresh && read_usage("self", slot->tid, &usage)) {
        slot->cpu_start = usage.cpu, slot->runqueue_start = usage.runqueue;
        slot->voluntary_start = usage.voluntary, slot->involuntary_start = usage.involuntary;
    }
    self.number = number;
    self.slot = slot;
    pthread_setspecific(end_key, &self);
    return slot;
}

/* A series of yields has ended without parking the thread: it got its lock. */
void end_row(struct slot *slot)
{
    struct span row = self.row;
    self.row.begin = 0;
    if (row.begin == 0)
        return;
    if (is_idle(row.site, ON_SPIN))     /* an event came before the thread was parked */
        row.kind = IDLE;
    record(slot, &row);
    if (row.site)
        add_total_shared(&map->sites[row.site].parked, row.begin, row.end);
}

void end_thread(void)
{
    struct slot *slot = self.generation == generation ? self.slot : NULL;
    if (slot == NULL || slot->flags & SLOT_ENDED)
        return;
    uint64_t end = now();
    end_row(slot);
    if (slot->state == HOLD && slot->since != 0) {      /* a process that ends does not release */
        self.waiting = (struct span){.begin = slot->since, .end = end, .kind = HOLD, .gil = (uint8_t)slot->gil};
        record(slot, &self.waiting);
        slot->state = 0;
    }
    note_usage("self", slot);
    prctl(PR_GET_NAME, slot->name);
    slot->end = end;
    slot->flags |= SLOT_ENDED;
}

/* Return a chunk with room for a span: the current one, a new one, or the thread's own oldest. */
static struct chunk *open_chunk(struct slot *slot)
{
    if (self.owned < chunks_wanted) {
        uint32_t number = __atomic_fetch_add(&map->header.chunks_used, 1, __ATOMIC_RELAXED);
        if (number < CHUNKS_MAX) {
            struct chunk *chunk = &map->chunks[number];
            if (reserve(chunk, sizeof *chunk)) {
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
