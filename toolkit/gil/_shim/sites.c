/* The places that waited: one entry for each thread, place in the program, and reason to wait. */
#include "shim.h"

#include <string.h>

enum { TRIES = 32, NEAR = 1 << 16, TIMED = 63, ENTRY_TRIES = 32 };
enum { LONG = 5000 };           /* ns; a look that took longer had lost its CPU */

static uint32_t hashed(struct place place, enum reason reason, uint64_t object)
{
    uint64_t mixed = (place.code >> 4) * 0x9E3779B97F4A7C15u;
    mixed ^= (place.instruction + 64 * (uint64_t)reason) * 0xC2B2AE3D27D4EB4Fu;
    mixed ^= (object >> 4) * 0x165667B19E3779F9u;
    mixed ^= (uint64_t)self.number * 0xD6E8FEB86659FD93u;
    return (uint32_t)(mixed >> 40);
}

/* Write the name of a type; `type` was read from an object that a thread waits for, so it is alive. */
static void name_of(uint64_t type, char *into, unsigned long size)
{
    uint64_t name;
    into[0] = 0;
    if (type == 0 || !peek(type + at.type_name, &name, 8))
        return;
    for (unsigned long i = 0; i + 1 < size; i++)
        if (!peek(name + i, into + i, 1) || into[i] < 0x20 || into[i] > 0x7e) {
            into[i] = 0;
            return;
        }
    into[size - 1] = 0;
}

/* Functions of threading.py that take a lock in order to wait for another thread. */
static int waits_on_purpose(const struct site *site)
{
    static const char *const names[] = {
        "Condition.wait", "Thread.join", "Thread._wait_for_tstate_lock", "_shutdown",
    };
    const char *base = strrchr(site->file, '/');
    if (strcmp(base ? base + 1 : site->file, "threading.py") != 0)
        return 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(site->function, names[i]) == 0)
            return 1;
    return 0;
}

static uint32_t find(struct slot *slot, struct place place, enum reason reason, uint64_t type)
{
    uint32_t start = hashed(place, reason, type);
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t number = (start + i) % SITES_MAX;
        if (number == 0)        /* 0 means that a place is not known */
            continue;
        struct site *site = &map->sites[number];
        uint32_t ready = __atomic_load_n(&site->ready, __ATOMIC_ACQUIRE);
        if (ready == 0 && !reserve(site, sizeof *site))
            break;
        if (ready == 0 && __atomic_compare_exchange_n(&site->ready, &ready, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            uint64_t begin = now();
            site->code = place.code, site->instruction = place.instruction, site->object = type;
            site->reason = reason;
            site->slot = self.number;
            describe(place, site);
            name_of(type, site->on, sizeof site->on);
            site->idle = reason == ON_OTHER || ((reason == ON_LOCK || reason == ON_SPIN) && waits_on_purpose(site));
            __atomic_store_n(&site->ready, 2, __ATOMIC_RELEASE);
            slot->sample_ns += now() - begin;
            return number;
        }
        if (ready == 2 && site->code == place.code && site->instruction == place.instruction &&
            site->reason == (uint32_t)reason && site->object == type && site->slot == self.number)
            return number;
    }
    __atomic_fetch_add(&map->header.sites_lost, 1, __ATOMIC_RELAXED);
    return 0;
}

uint32_t sample(struct slot *slot, enum reason reason, uint64_t type)
{
    struct place place;
    int timed = sites_known && (++slot->samples & TIMED) == 0;      /* what the report says of our own cost */
    uint64_t begin = timed ? now() : 0;
    if (!sites_known || !own_place(&place))
        return 0;
    if (unlikely(slot->entry[0] == 0 && self.entry_tries < ENTRY_TRIES && ++self.entry_tries))
        own_entry(slot->entry, sizeof slot->entry);
    uint32_t number = find(slot, place, reason, type);
    if (timed) {
        uint64_t took = now() - begin;
        slot->sample_ns += (took < LONG ? took : LONG) * (TIMED + 1);
    }
    return number;
}

int is_idle(uint32_t site, enum reason reason)
{
    return site ? (int)map->sites[site].idle : reason == ON_OTHER;
}

/* Tell what a thread is about to be parked on.  The interpreter's semaphores lie on the waiting thread's own stack, right
   behind the address waited for (wait_entry in parking_lot.c) or behind the next waiter (raw_mutex_entry in lock.c);
   those of PyThread locks, which threading.Lock was until 3.13, lie in the heap. */
enum reason park_reason(const sem_t *semaphore, uint64_t *type)
{
    *type = 0;
    uint64_t address, object, place = (uint64_t)semaphore, here = (uint64_t)__builtin_frame_address(0);
    if (place < here || place > here + NEAR)
        return ON_LOCK;
    if (!sites_known || at.length == 0 || !peek(place - 8, &address, 8))
        return ON_OTHER;
    uint64_t state = own_thread_state();
    if (address == 0)           /* the last one in a row of waiters for a lock within the interpreter */
        return ON_RAW;
    if (state != 0 && address >= state && address < state + at.state_size)
        return ON_WORLD;
    if (free_threaded && address % 16 == 10) {
        object = address - 10;
        return peek(object + at.type, type, 8) ? ON_OBJECT : ON_OTHER;
    }
    char name[16] = "";
    object = address - at.length;       /* a lock's mutex is its first member */
    if (address % 8 == 0 && peek(object + at.type, &object, 8))
        name_of(object, name, sizeof name);
    if (strcmp(name, "_thread.lock") == 0 || strcmp(name, "_thread.RLock") == 0)
        return ON_LOCK;
    return ON_OTHER;
}
