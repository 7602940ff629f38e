/* The functions of the C library that the shim interposes, and what each shows about the GIL.

   The GIL is a flag under a mutex and a condition variable (take_gil and drop_gil in ceval_gil.c).  A waiting thread
   calls pthread_cond_timedwait repeatedly; a thread that gets the GIL unlocks the mutex; a thread that releases it
   signals the condition variable and unlocks.  A hold is timed only from the moment that another thread waits: a program
   without waits releases and takes the GIL up to a million times a second, and must not pay for a clock each time.  The
   main interpreter's GIL is in _PyRuntime; an interpreter's own GIL is on the heap, and is recognised because
   pthread_cond_init was called from the same place. */
#include "shim.h"

#include <errno.h>
#include <limits.h>

/* Bytes from members of a GIL's struct to its `cond`, the same in 3.12 to 3.15. */
enum { ENABLED = 40, INTERVAL = 32, LAST_HOLDER = 24, LOCKED = 16 };
/* ns between two samples: of one hold, which several waiters would sample in turn; and of any, with a short switch
   interval.  A sample takes about 15 us, as the sampling thread has just been woken. */
enum { APART_IN_HOLD = 4000000, APART = 1000000 };

int all_holds;

static struct gil gils[GILS_MAX];
static uint32_t gil_count;
static uint64_t gil_bits;       /* a bit per mutex, by its address: it excludes most other mutexes */
static const void *init_caller; /* the code that creates GILs */

static uint64_t bit_of(const void *mutex)
{
    return (uint64_t)1 << ((uint64_t)mutex * 0x9E3779B97F4A7C15u >> 58);
}

static struct gil *gil_of_mutex(const pthread_mutex_t *mutex)
{
    if (mutex == gils[0].mutex)
        return &gils[0];
    if (likely(gil_count < 2) || !(gil_bits & bit_of(mutex)))
        return NULL;
    for (uint32_t i = 1; i < gil_count; i++)
        if (gils[i].mutex == mutex)
            return &gils[i];
    return NULL;
}

static struct gil *gil_of_cond(const pthread_cond_t *cond, int switching)
{
    for (uint32_t i = 0; i < gil_count; i++)
        if ((switching ? gils[i].switch_cond : gils[i].cond) == cond)
            return &gils[i];
    return NULL;
}

/* The members of a GIL in order: cond, mutex, switch_cond, switch_mutex. */
static void add_gil(pthread_cond_t *cond)
{
    uint32_t number = 0;
    while (number < gil_count && gils[number].cond != NULL && gils[number].cond != cond)
        number++;
    if (number == GILS_MAX) {
        if (map != NULL)
            __atomic_fetch_add(&map->header.gils_lost, 1, __ATOMIC_RELAXED);
        return;
    }
    pthread_mutex_t *mutex = (pthread_mutex_t *)(cond + 1);
    gils[number] = (struct gil){.cond = cond, .mutex = mutex, .switch_cond = (pthread_cond_t *)(mutex + 1)};
    gil_bits |= bit_of(mutex);
    if (number == gil_count)
        __atomic_store_n(&gil_count, number + 1, __ATOMIC_RELEASE);
}

/* Record that the main interpreter's GIL is on.  A free-threaded build with its GIL off still takes one at its start and
   for a moment at each import of an extension module: `enabled` in its struct is INT_MAX only if the GIL stays on. */
static void note_gil(void)
{
    const char *gil = (const char *)gils[0].cond;
    if (map->header.flags & GIL_ON || gil == NULL)
        return;
    if (!free_threaded || *(const volatile int *)(gil - ENABLED) == INT_MAX)
        __atomic_fetch_or(&map->header.flags, GIL_ON, __ATOMIC_RELAXED);
}

static int within_runtime(const void *address)
{
    return (const char *)address >= runtime && (const char *)address < runtime_end;
}

EXPORT int pthread_cond_init(pthread_cond_t *restrict cond, const pthread_condattr_t *restrict attributes)
{
    if (unlikely(real.cond_init == NULL))
        find_real();
    if (python && from_python(CALLER)) {
        const char *after_main = gils[0].cond ? (const char *)gils[0].switch_cond : NULL;
        if (within_runtime(cond) && (const char *)cond != after_main) {
            init_caller = CALLER;
            if (gils[0].cond == NULL || gils[0].cond == cond)
                add_gil(cond);
        } else if (!within_runtime(cond) && CALLER == init_caller && gil_of_cond(cond, 1) == NULL)
            add_gil(cond);
    }
    return real.cond_init(cond, attributes);
}

EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
    if (unlikely(real.cond_destroy == NULL))
        find_real();
    struct gil *gil = python && gil_count > 1 ? gil_of_cond(cond, 0) : NULL;
    if (gil != NULL && gil != &gils[0])
        *gil = (struct gil){0};
    return real.cond_destroy(cond);
}

/* Add up the time that the waiters have waited until `when`. */
static void count_waiting(struct gil *gil, uint64_t when)
{
    if (when <= gil->counted)
        return;
    gil->waited += gil->waiters * (when - gil->counted);
    gil->counted = when;
}

static void note_interval(const struct gil *gil)
{
    unsigned long microseconds = *(const volatile unsigned long *)((const char *)gil->cond - INTERVAL);
    map->header.interval_us = microseconds < UINT32_MAX ? (uint32_t)microseconds : 0;
}

/* Sample the place of the holder, after a thread has waited for the GIL for the switch interval.  That thread has the
   GIL's mutex, which the holder needs to release the GIL, so the holder's thread state is valid.  Of all samples of one
   hold the most frequent place is stored (Boyer and Moore's majority vote). */
static void look(struct slot *slot, struct gil *gil, uint64_t when)
{
    uint32_t holder = gil->holder;
    if (holder == 0 || when < gil->looked + (gil->found ? APART_IN_HOLD : APART) ||
        *(const volatile int *)((const char *)gil->cond - LOCKED) != 1)
        return;
    gil->looked = when;
    note_interval(gil);
    uint64_t state = *(const volatile uint64_t *)((const char *)gil->cond - LAST_HOLDER);
    uint32_t site = sample_holder(slot, holder - 1, state, ON_NOTHING);
    if (site == 0)
        return;
    if (gil->votes == 0 || gil->found == site) {
        gil->found = site;
        gil->votes++;
    } else
        gil->votes--;
    map->slots[holder - 1].at = gil->found;
    map->slots[holder - 1].looked = when;
}

static void begin_wait(struct slot *slot, struct gil *gil)
{
    self.waiting = (struct span){.begin = now(), .kind = WAIT, .gil = (uint8_t)(gil - gils), .other = (uint16_t)gil->holder};
    self.waiting.site = sample(slot, ON_NOTHING, 0);
    self.gil = gil;
    count_waiting(gil, self.waiting.begin);
    if (gil->waiters++ == 0)
        gil->contended = self.waiting.begin;
    if (map->header.interval_us == 0)
        note_interval(gil);
    slot->at = self.waiting.site;
    slot->gil = self.waiting.gil;
    slot->since = self.waiting.begin;
    slot->state = WAIT;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict until)
{
    if (unlikely(real.cond_timedwait == NULL))
        find_real();
    struct gil *gil = recording ? gil_of_mutex(mutex) : NULL;
    struct slot *slot = gil != NULL && gil->cond == cond ? own_slot(0) : NULL;
    if (slot == NULL)
        return real.cond_timedwait(cond, mutex, until);
    if (slot->state != WAIT || self.gil != gil)
        begin_wait(slot, gil);
    int result = real.cond_timedwait(cond, mutex, until);
    if (self.slot != slot || !recording)
        return result;
    self.wait_end = now();
    self.waiting.attempts += self.waiting.attempts != UINT16_MAX;
    self.waiting.timeouts += result == ETIMEDOUT && self.waiting.timeouts != UINT16_MAX;
    slot->attempts++;
    slot->timeouts += result == ETIMEDOUT;
    if (result == ETIMEDOUT)
        look(slot, gil, self.wait_end);
    return result;
}

static void end_wait(struct slot *slot, struct gil *gil)
{
    count_waiting(gil, self.wait_end);
    if (gil->waiters != 0)
        gil->waiters--;
    struct span *wait = &self.waiting;
    wait->end = self.wait_end > wait->begin ? self.wait_end : wait->begin;
    record(slot, wait);
    uint64_t lasted = wait->end - wait->begin;
    unsigned bucket = lasted ? 63 - (unsigned)__builtin_clzll(lasted) : 0;
    slot->histogram[bucket < HISTOGRAM ? bucket : HISTOGRAM - 1]++;
    if (wait->site)
        add_total_shared(&map->sites[wait->site].waited, wait->begin, wait->end);
    slot->since = wait->end;
}

/* The mutex of a GIL is unlocked: at the end of take_gil, or at the end of drop_gil. */
static void on_unlock(struct gil *gil)
{
    struct slot *slot = own_slot(0);
    if (slot == NULL)
        return;
    if (self.releasing) {
        self.releasing = 0;
        return;
    }
    if (slot->state == HOLD)
        return;
    if (slot->state == WAIT && self.gil == gil)
        end_wait(slot, gil);
    else {
        slot->acquired_free++;
        slot->since = gil->waiters || all_holds ? now() : 0;
        if (gil->waiters != 0)
            count_waiting(gil, slot->since);
    }
    gil->waited_before = gil->waited;
    gil->found = gil->votes = 0;
    note_gil();
    uint32_t me = self.number + 1;
    slot->acquired++;
    slot->handovers += gil->last != 0 && gil->last != me;
    gil->holder = gil->last = me;
    self.gil = gil;
    slot->gil = (uint32_t)(gil - gils);
    slot->state = HOLD;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (unlikely(real.mutex_unlock == NULL))
        find_real();
    if (recording) {
        struct gil *gil = gil_of_mutex(mutex);
        if (unlikely(gil != NULL))
            on_unlock(gil);
    }
    return real.mutex_unlock(mutex);
}

/* The holder releases the GIL.  The hold belongs to the place that waiters sampled, else to the place of the release. */
static void end_hold(struct slot *slot, struct gil *gil)
{
    struct span hold = {.begin = slot->since ? slot->since : gil->contended, .end = now(), .kind = HOLD, .gil = (uint8_t)slot->gil};
    count_waiting(gil, hold.end);
    uint64_t caused = gil->waited - gil->waited_before;
    if (caused != 0)
        hold.site = gil->found ? gil->found : sample(slot, ON_NOTHING, 0);
    record(slot, &hold);
    if (hold.site == 0)
        return;
    struct site *site = &map->sites[hold.site];
    add_total(&site->held, hold.begin > gil->contended ? hold.begin : gil->contended, hold.end);
    site->caused += caused;
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    if (unlikely(real.cond_signal == NULL))
        find_real();
    struct gil *gil = NULL;
    if (recording)
        gil = cond == gils[0].cond ? &gils[0] : gil_count > 1 ? gil_of_cond(cond, 0) : NULL;
    struct slot *slot = gil != NULL ? own_slot(0) : NULL;
    if (slot == NULL)
        return real.cond_signal(cond);
    if (slot->state == HOLD && (slot->since != 0 || gil->waiters != 0))
        end_hold(slot, gil);
    slot->state = 0;
    gil->holder = 0;
    self.releasing = 1;
    return real.cond_signal(cond);
}

/* After a request drop_gil waits here until another thread has the GIL; otherwise the same thread might take it again. */
EXPORT int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex)
{
    if (unlikely(real.cond_wait == NULL))
        find_real();
    struct slot *slot = recording && python && from_python(CALLER) && gil_of_cond(cond, 1) ? own_slot(0) : NULL;
    if (slot == NULL)
        return real.cond_wait(cond, mutex);
    struct span span = {.begin = now(), .kind = SWITCH, .gil = (uint8_t)slot->gil};
    slot->since = span.begin;
    slot->state = SWITCH;
    int result = real.cond_wait(cond, mutex);
    span.end = now();
    if (recording && self.slot == slot) {
        slot->state = 0;
        record(slot, &span);
    }
    return result;
}

void forget_holders(void)
{
    for (uint32_t i = 0; i < gil_count; i++) {
        struct gil *gil = &gils[i];
        *gil = (struct gil){.cond = gil->cond, .switch_cond = gil->switch_cond, .mutex = gil->mutex};
    }
}

void hold_from_now(void)
{
    struct slot *slot = own_slot(0);
    if (slot == NULL || gil_count == 0)
        return;
    note_gil();
    if (!(map->header.flags & GIL_ON))
        return;
    self.gil = &gils[0];
    gils[0].holder = gils[0].last = self.number + 1;
    slot->since = now();
    slot->state = HOLD;
}
