/* The semaphores that the interpreter parks threads on, and the start and names of threads. */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 2000 };            /* ns, at most, between two calls of sched_yield for the same lock */

struct before { uint32_t state; uint64_t since; };     /* some waits inside the interpreter keep the GIL */

static struct before begin_park(struct slot *slot, struct span *span, const sem_t *semaphore)
{
    struct before before = {slot->state, slot->since};
    uint64_t type;
    *span = (struct span){.begin = now()};
    if (self.row.begin != 0 && span->begin - self.row.end < ROW)
        span->begin = self.row.begin;
    else
        end_row(slot);
    self.row.begin = 0;
    enum reason reason = park_reason(semaphore, &type);
    if (sites_known && own_thread_state() == 0)
        reason = ON_OTHER;      /* a thread without Python code: faulthandler's watchdog waits on purpose */
    span->site = sample(slot, reason, type);
    span->kind = is_idle(span->site, reason) ? IDLE : PARK;
    slot->since = span->begin;
    slot->at = span->site;
    slot->state = span->kind;
    if (reason == ON_WORLD)
        sample_stopper(slot, semaphore);
    return before;
}

static void end_park(struct slot *slot, struct span *span, struct before before)
{
    if (!recording || self.slot != slot)
        return;
    span->end = now();
    slot->state = before.state;
    slot->since = before.since;
    record(slot, span);
    if (span->site == 0)
        return;
    add_total_shared(&map->sites[span->site].parked, span->begin, span->end);
    if (map->sites[span->site].reason == ON_WORLD)
        add_pause(span->begin, span->end);
}

/* Return the thread's slot if it is about to be parked: the semaphore is the interpreter's and not available at once. */
static struct slot *parking(sem_t *semaphore, const void *caller, int *taken)
{
    if (!recording || !python || !from_python(caller))
        return NULL;
    int before = errno;
    *taken = real.sem_trywait(semaphore) == 0;
    errno = before;
    return *taken ? NULL : own_slot(0);
}

EXPORT int sem_wait(sem_t *semaphore)
{
    if (unlikely(real.sem_wait == NULL))
        find_real();
    int taken = 0;
    struct slot *slot = parking(semaphore, CALLER, &taken);
    if (slot == NULL)
        return taken ? 0 : real.sem_wait(semaphore);
    struct span span;
    struct before before = begin_park(slot, &span, semaphore);
    int result = real.sem_wait(semaphore), error = errno;
    end_park(slot, &span, before);
    errno = error;
    return result;
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
    if (unlikely(real.sem_timedwait == NULL))
        find_real();
    int taken = 0;
    struct slot *slot = parking(semaphore, CALLER, &taken);
    if (slot == NULL)
        return taken ? 0 : real.sem_timedwait(semaphore, until);
    struct span span;
    struct before before = begin_park(slot, &span, semaphore);
    int result = real.sem_timedwait(semaphore, until), error = errno;
    end_park(slot, &span, before);
    errno = error;
    return result;
}

EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until)
{
    if (unlikely(real.sem_clockwait == NULL))
        find_real();
    int taken = 0;
    struct slot *slot = parking(semaphore, CALLER, &taken);
    if (slot == NULL)
        return taken ? 0 : real.sem_clockwait(semaphore, clock, until);
    struct span span;
    struct before before = begin_park(slot, &span, semaphore);
    int result = real.sem_clockwait(semaphore, clock, until), error = errno;
    end_park(slot, &span, before);
    errno = error;
    return result;
}

/* A free-threaded build yields the CPU up to 40 times before it parks a thread.  On a busy machine that is most of the
   cost of waiting for a lock. */
EXPORT int sched_yield(void)
{
    if (unlikely(real.yield == NULL))
        find_real();
    struct slot *slot = recording && python && from_python(CALLER) ? own_slot(0) : NULL;
    if (slot == NULL)
        return real.yield();
    uint64_t begin = now();
    if (self.row.begin == 0 || begin - self.row.end > ROW) {
        end_row(slot);
        self.row = (struct span){.begin = begin, .kind = SPIN, .site = sample(slot, ON_SPIN, 0)};
    }
    int result = real.yield();
    if (recording && self.slot == slot)
        self.row.end = now();
    slot->yields++;
    return result;
}

struct beginning { void *(*function)(void *); void *argument; char called[NAME]; };

static void *begin_thread(void *raw)
{
    struct beginning beginning = *(struct beginning *)raw;
    free(raw);
    struct slot *slot = recording ? own_slot(1) : NULL;
    if (slot != NULL)
        memcpy(slot->called, beginning.called, sizeof slot->called);
    return beginning.function(beginning.argument);
}

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                          void *(*function)(void *), void *restrict argument)
{
    if (unlikely(real.create == NULL))
        find_real();
    struct beginning *beginning = recording && python && from_python(CALLER) ? malloc(sizeof *beginning) : NULL;
    if (beginning == NULL)
        return real.create(thread, attributes, function, argument);
    *beginning = (struct beginning){.function = function, .argument = argument};
    struct slot *slot = own_slot(0);
    uint64_t begin = now();
    name_of_started(beginning->called, sizeof beginning->called);
    if (slot != NULL)
        slot->sample_ns += now() - begin;
    int result = real.create(thread, attributes, begin_thread, beginning);
    if (result != 0)
        free(beginning);
    return result;
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    if (unlikely(real.setname == NULL))
        find_real();
    int result = real.setname(thread, name);
    if (result == 0 && recording && self.slot != NULL && pthread_equal(thread, pthread_self()))
        strncpy(self.slot->name, name, sizeof self.slot->name - 1);
    return result;
}
