/* The places of waits: one entry per thread, place in the program and reason. */
#include "shim.h"

#include <string.h>

enum { TRIES = 32, NEAR = 1 << 16, TIMED = 63, ENTRY_TRIES = 32 };
enum { LONG = 5000, LONG_LOOK = 50000 };     /* ns; a longer sample was descheduled */

static uint32_t hashed(uint32_t thread, const struct place *place, enum reason reason, uint64_t object)
{
    uint64_t mixed = (place->code >> 4) * 0x9E3779B97F4A7C15u;
    mixed ^= (place->instruction + 64 * (uint64_t)reason) * 0xC2B2AE3D27D4EB4Fu;
    mixed ^= (object >> 4) * 0x165667B19E3779F9u;
    mixed ^= (uint64_t)thread * 0xD6E8FEB86659FD93u;
    mixed ^= (place->caller + place->caller_instruction) * 0xFF51AFD7ED558CCDu;
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

/* True if a thread that waits there does so on purpose.  A thread that spins for a lock which a wait for an event takes
   for a moment counts as waiting for that event.  Until 3.12 an empty SimpleQueue was a lock that is taken. */
static int is_on_purpose(const struct site *site, enum reason reason)
{
    if (reason != ON_LOCK && reason != ON_SPIN)
        return reason == ON_OTHER;
    return waits_for_threads(site->file, site->function) || (reason == ON_SPIN && within_a_wait()) ||
           (python_version >> 16 == 0x030c && called_from("_queue."));
}

/* Find or create the entry of a thread's place; `slot` is the calling thread's, which is charged for it. */
static uint32_t find(struct slot *slot, uint32_t thread, const struct place *place, enum reason reason, uint64_t type)
{
    uint32_t start = hashed(thread, place, reason, type);
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t number = (start + i) % SITES_MAX;
        if (number == 0)        /* 0 stands for an unknown place */
            continue;
        struct site *site = &map->sites[number];
        if (!reserve_entry(site))
            break;
        uint32_t ready = __atomic_load_n(&site->ready, __ATOMIC_ACQUIRE);
        if (ready == 0 && __atomic_compare_exchange_n(&site->ready, &ready, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            uint64_t begin = now();
            site->place = *place, site->object = type;
            site->reason = reason;
            site->slot = thread;
            describe(*place, site);
            name_of(type, site->on, sizeof site->on);
            site->idle = is_on_purpose(site, reason);
            __atomic_store_n(&site->ready, 2, __ATOMIC_RELEASE);
            slot->sample_ns += now() - begin;
            return number;
        }
        if (ready == 2 && memcmp(&site->place, place, sizeof *place) == 0 && site->reason == (uint32_t)reason &&
            site->object == type && site->slot == thread)
            return number;
    }
    __atomic_fetch_add(&map->header.sites_lost, 1, __ATOMIC_RELAXED);
    return 0;
}

uint32_t sample(struct slot *slot, enum reason reason, uint64_t type)
{
    struct place place;
    int timed = sites_known && (++slot->samples & TIMED) == 0;      /* for the overhead in the report */
    uint64_t begin = timed ? now() : 0;
    if (!sites_known || !own_place(&place))
        return 0;
    if (unlikely(slot->entry[0] == 0 && self.entry_tries < ENTRY_TRIES && ++self.entry_tries))
        own_entry(slot->entry, sizeof slot->entry);
    uint32_t number = find(slot, self.number, &place, reason, type);
    if (timed) {
        uint64_t took = now() - begin;
        slot->sample_ns += (took < LONG ? took : LONG) * (TIMED + 1);
    }
    return number;
}

/* The same for the thread that has the GIL, or has stopped the others: `holder` is the number of its slot, `state` its
   thread state. */
uint32_t sample_holder(struct slot *slot, uint32_t holder, uint64_t state, enum reason reason)
{
    struct place place;
    uint64_t begin = now();
    uint32_t number = sites_known && place_of_holder(state, &place) ? find(slot, holder, &place, reason, 0) : 0;
    uint64_t took = now() - begin;
    slot->sample_ns += took < LONG_LOOK ? took : LONG_LOOK;
    __atomic_fetch_add(&map->header.looks, 1, __ATOMIC_RELAXED);
    return number;
}

int is_idle(uint32_t site, enum reason reason)
{
    return site ? (int)map->sites[site].idle : reason == ON_OTHER;
}

/* Find the object that a thread is about to be parked on.  The interpreter's semaphores are on the waiting thread's
   stack, right behind the address waited for (wait_entry in parking_lot.c) or behind the next waiter (raw_mutex_entry in
   lock.c); those of PyThread locks, which threading.Lock was until 3.13, are on the heap. */
enum reason park_reason(const sem_t *semaphore, uint64_t *type)
{
    *type = 0;
    uint64_t address, object, place = (uint64_t)semaphore, here = (uint64_t)__builtin_frame_address(0);
    if (place < here || place > here + NEAR)
        return ON_LOCK;
    if (!sites_known || at.length == 0 || !peek(place - 8, &address, 8))
        return ON_OTHER;
    uint64_t state = own_thread_state();
    if (address == 0)           /* the last one in a queue of waiters for a lock inside the interpreter */
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

enum { ATTACHED = 1, SUSPENDED = 2 };   /* of the word in a thread's state that it is parked on */

static uint32_t stopper;        /* the site of the thread that stopped all others last; 0: unknown */

/* Return the state of the only other thread that is attached to the interpreter; 0 if there are several.  `offset` is that
   of the word in a state that says so. */
static uint64_t only_attached(uint64_t own, uint64_t offset)
{
    const uint64_t neighbours[] = {at.state_before, at.state_after};
    uint64_t found = 0;
    for (int side = 0; side < 2; side++) {
        uint64_t state = own;
        for (uint32_t i = 0; i < SLOTS_MAX && peek(state + neighbours[side], &state, sizeof state) && state != 0; i++) {
            int attached;
            if (!peek(state + offset, &attached, sizeof attached) || attached != ATTACHED)
                continue;
            if (found != 0)
                return 0;
            found = state;
        }
    }
    return found;
}

/* Sample the thread that has stopped all others, in one that it stops.  The last one to stop finds no other attached. */
void sample_stopper(struct slot *slot, const sem_t *semaphore)
{
    uint64_t address, tid, own = own_thread_state();
    if (!peek((uint64_t)semaphore - 8, &address, sizeof address))
        return;
    uint64_t state = only_attached(own, address - own);
    if (state == 0 || !peek(state + at.state_tid, &tid, sizeof tid))
        return;
    for (uint32_t i = 0; i < map->header.slots_used && i < SLOTS_MAX; i++)
        if (is_reserved(&map->slots[i]) && map->slots[i].tid == tid && !(map->slots[i].flags & SLOT_ENDED)) {
            uint32_t site = sample_holder(slot, i, state, STOPPING);
            int still = *(const volatile int *)address == SUSPENDED;    /* else it may run on, and be at another line */
            __atomic_store_n(&stopper, still ? site : 0, __ATOMIC_RELAXED);
            return;
        }
}

void add_pause(uint64_t begin, uint64_t end)
{
    uint32_t site = __atomic_load_n(&stopper, __ATOMIC_RELAXED);
    if (site != 0 && is_reserved(&map->sites[site]) && map->sites[site].reason == STOPPING)     /* not before a fork */
        add_total_shared(&map->sites[site].held, begin, end);
}
