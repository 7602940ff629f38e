/* The extension of `gilscope scale`: read object headers on a free-threaded build, also from a thread without a thread state,
   make objects immortal, and call a function for a fixed time.  Elsewhere it has no functions.  */
#include "../../builds/extension.h"
#if FREE_THREADED && defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifdef GILSCOPE_FIRST   /* old_glibc.h says why, and why it leaves this one out */
__asm__(".symver pthread_create, pthread_create@" GILSCOPE_FIRST);
#endif

static int64_t
nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- one header -------------------------------------------------------------------------------------------------- */
static PyObject *
api_header_layout(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "ob_tid", offsetof(PyObject, ob_tid), "ob_mutex",
                         offsetof(PyObject, ob_mutex), "ob_ref_local", offsetof(PyObject, ob_ref_local),
                         "ob_ref_shared", offsetof(PyObject, ob_ref_shared), "size", sizeof(PyObject));
}

/* header(object) -> (thread id of its owner, byte of its mutex, local count, shared count with its two flags).  */
static PyObject *
api_header(PyObject *Py_UNUSED(module), PyObject *object)
{
    return Py_BuildValue("(kBIL)", (unsigned long)object->ob_tid, *(volatile uint8_t *)&object->ob_mutex,
                         (unsigned int)object->ob_ref_local, (long long)object->ob_ref_shared);
}

/* body(object): the bytes behind its header, as a copy.  */
static PyObject *
api_body(PyObject *Py_UNUSED(module), PyObject *object)
{
    Py_ssize_t size = Py_TYPE(object)->tp_basicsize - (Py_ssize_t)sizeof(PyObject);
    return PyBytes_FromStringAndSize((const char *)object + sizeof(PyObject), size > 0 ? size : 0);
}

/* immortalize(list) -> the number of objects that were not immortal.  Before other threads start; for a process that
   ends soon.  */
static PyObject *
api_immortalize(PyObject *Py_UNUSED(module), PyObject *objects)
{
    if (!PyList_Check(objects)) {
        PyErr_SetString(PyExc_TypeError, "immortalize() needs a list");
        return NULL;
    }
    Py_ssize_t changed = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
        PyObject *object = PyList_GET_ITEM(objects, i);
        /* Flags 2: queued for its owner to merge the counts, which must find them.  */
        if (object->ob_ref_local == UINT32_MAX || (object->ob_ref_shared & 3) == 2) {
            continue;
        }
        object->ob_tid = 0;
        object->ob_ref_local = UINT32_MAX;
        object->ob_ref_shared = 0;
        changed++;
    }
    return PyLong_FromSsize_t(changed);
}

/* ---- sampling many headers --------------------------------------------------------------------------------------- */
/* The memory that threads, and processes, meet at.  */
typedef struct { atomic_int arrived, stop, turn, left; } Gate;

typedef struct {
    PyObject *object;
    Py_ssize_t lock;        /* offset of a lock's own byte; 0: it has none */
    int64_t shared;         /* as last seen */
    uint32_t moved, locked, parked;     /* passes */
} Sampled;

static struct {
    Sampled *all;
    Py_ssize_t count;
    PyObject *objects;      /* keeps them alive */
    long period;            /* microseconds between passes */
    int64_t passes, spent;  /* nanoseconds */
    Py_buffer memory;       /* the gate that threads come to before they work; its buf is NULL if there is none */
    int threads;            /* so many */
    pthread_t thread;
    atomic_bool stop;
} sampler;

/* Under `chrt`, threads that work on every core would leave none for a look.  */
static void
rise_above_workers(void)
{
    int policy = sched_getscheduler(0);
    struct sched_param priority;
    if ((policy == SCHED_FIFO || policy == SCHED_RR) && sched_getparam(0, &priority) == 0) {
        priority.sched_priority += priority.sched_priority < sched_get_priority_max(policy);
        sched_setscheduler(0, policy, &priority);      /* without it, there are fewer looks */
    }
}

static void *
sample_until_stopped(void *Py_UNUSED(nothing))
{
    rise_above_workers();
    Gate *gate = sampler.memory.buf;
    while (gate != NULL && atomic_load(&gate->arrived) < sampler.threads && !atomic_load(&sampler.stop)) {
        usleep(20);         /* what starts a thread takes locks, too */
    }
    for (Py_ssize_t i = 0; i < sampler.count; i++) {
        sampler.all[i].shared = *(volatile int64_t *)&sampler.all[i].object->ob_ref_shared;
    }
    while (!atomic_load(&sampler.stop)) {
        int64_t began = nanoseconds(CLOCK_MONOTONIC);
        for (Py_ssize_t i = 0; i < sampler.count; i++) {
            Sampled *each = &sampler.all[i];
            int64_t shared = *(volatile int64_t *)&each->object->ob_ref_shared;
            uint8_t mutex = *(volatile uint8_t *)&each->object->ob_mutex;
            uint8_t own = each->lock ? ((volatile uint8_t *)each->object)[each->lock] : 0;
            each->moved += shared != each->shared;
            each->shared = shared;
            each->locked += (mutex & 1) || own;
#if PY_VERSION_HEX >= 0x030E0000        /* a lock is a PyMutex, like that of a header */
            mutex |= own;
#endif
            each->parked += (mutex >> 1) & 1;
        }
        sampler.spent += nanoseconds(CLOCK_MONOTONIC) - began;
        sampler.passes++;
        usleep((useconds_t)sampler.period);
    }
    return NULL;
}

/* sample_start(objects, offsets of their lock bytes, microseconds between passes, gate, threads): the first pass is once
   so many threads have come to the gate; without the last two, at once.  */
static PyObject *
api_sample_start(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects, *locks;
    long period;
    Py_buffer memory = {0};
    int threads = 0;
    if (!PyArg_ParseTuple(args, "O!O!l|w*i", &PyList_Type, &objects, &PyList_Type, &locks, &period, &memory,
                          &threads)) {
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(objects);
    bool small = memory.buf != NULL && memory.len < (Py_ssize_t)sizeof(Gate);
    if (sampler.all != NULL || PyList_GET_SIZE(locks) != count || small) {
        PyErr_SetString(PyExc_RuntimeError, sampler.all != NULL ? "headers are being sampled"
                        : small ? "the gate is too small" : "a lock byte for each object");
        PyBuffer_Release(&memory);
        return NULL;
    }
    Sampled *all = calloc((size_t)count + 1, sizeof(Sampled));
    if (all == NULL) {
        PyBuffer_Release(&memory);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        all[i] = (Sampled){.object = PyList_GET_ITEM(objects, i), .lock = PyLong_AsSsize_t(PyList_GET_ITEM(locks, i))};
    }
    if (PyErr_Occurred()) {
        free(all);
        PyBuffer_Release(&memory);
        return NULL;
    }
    sampler.all = all;
    sampler.count = count;
    sampler.objects = Py_NewRef(objects);
    sampler.period = period;
    sampler.memory = memory;
    sampler.threads = threads;
    sampler.passes = sampler.spent = 0;
    atomic_store(&sampler.stop, false);
    int failed = pthread_create(&sampler.thread, NULL, sample_until_stopped, NULL);
    if (failed) {
        free(all);
        sampler.all = NULL;
        Py_CLEAR(sampler.objects);
        PyBuffer_Release(&sampler.memory);
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

/* sample_stop() -> (passes, their nanoseconds, [(index, passes in which the shared count had moved, in which a lock was
   held, in which a thread was parked)]) of the objects with any.  */
static PyObject *
api_sample_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    if (sampler.all == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "no headers are being sampled");
        return NULL;
    }
    atomic_store(&sampler.stop, true);
    Py_BEGIN_ALLOW_THREADS
    pthread_join(sampler.thread, NULL);
    Py_END_ALLOW_THREADS
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < sampler.count; i++) {
        const Sampled *each = &sampler.all[i];
        if (each->moved || each->locked || each->parked) {
            PyObject *row = Py_BuildValue("(nIII)", i, each->moved, each->locked, each->parked);
            if (row == NULL || PyList_Append(found, row) < 0) {
                Py_CLEAR(found);
            }
            Py_XDECREF(row);
        }
    }
    free(sampler.all);
    sampler.all = NULL;
    Py_CLEAR(sampler.objects);
    PyBuffer_Release(&sampler.memory);
    return found == NULL ? NULL : Py_BuildValue("(LLN)", (long long)sampler.passes, (long long)sampler.spent, found);
}

/* ---- hyperthreads of one core ------------------------------------------------------------------------------------ */
/* Knuth's multiplier for a linear congruential generator (MMIX); any odd one would do.  */
#define NEXT(number) ((number) * 6364136223846793005ULL + 1)
enum { SPINS = 7, SPIN_STEPS = 5000, CHAINS = 8 };
static _Thread_local volatile uint64_t spun;     /* keeps the compiler from leaving out what nobody reads */

static int64_t
spin_chains(void)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    int64_t began = nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < SPIN_STEPS; i++) {
        a = NEXT(a), b = NEXT(b), c = NEXT(c), d = NEXT(d), e = NEXT(e), f = NEXT(f), g = NEXT(g), h = NEXT(h);
    }
    spun = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
    return nanoseconds(CLOCK_MONOTONIC) - began;
}

static int64_t
spin_chain(void)
{
    uint64_t a = 1;
    int64_t began = nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < SPIN_STEPS; i++) {
        a = NEXT(a);
    }
    spun = a;
    return nanoseconds(CLOCK_MONOTONIC) - began;
}

static int
by_size(const void *one, const void *two)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)two;
    return (a > b) - (a < b);
}

/* How long a multiplication takes that waits for no other, in the time of one that waits for the one before.  Such
   multiplications keep the core's multiplier busy, a chain of them a part of it: while a hyperthread of the same core
   spins, too, the first take twice as long, and the chain as long as before.  Clock rates do not matter.  The median of
   some 10 us each: a neighbour, or a thread that comes late, disturbs few of them.  */
static double
multiplier_load(void)
{
    int64_t chains[SPINS], chain[SPINS];
    for (int i = 0; i < SPINS; i++) {
        chains[i] = spin_chains();
    }
    for (int i = 0; i < SPINS; i++) {
        chain[i] = spin_chain();
    }
    qsort(chains, SPINS, sizeof(int64_t), by_size);
    qsort(chain, SPINS, sizeof(int64_t), by_size);
    return chain[SPINS / 2] > 0 ? (double)chains[SPINS / 2] / CHAINS / (double)chain[SPINS / 2] : 0.0;
}

/* How many nanoseconds a cache line takes from one CPU to the other and back, halved, for two threads at a gate; 0.0 if
   the other one does not answer.  */
static double
handoff(Gate *gate, int me)
{
    enum { FIRST = 50, HANDOFFS = 500, PATIENCE_NS = 1000000 };
    int64_t began = nanoseconds(CLOCK_MONOTONIC), from = began;
    for (int i = 0; i < FIRST + HANDOFFS; i++) {
        for (int spins = 0; (atomic_load_explicit(&gate->turn, memory_order_acquire) & 1) != me; spins++) {
            if (spins % 1024 == 1023 && nanoseconds(CLOCK_MONOTONIC) - began > PATIENCE_NS) {
                return 0.0;
            }
        }
        atomic_fetch_add_explicit(&gate->turn, 1, memory_order_release);
        from = i < FIRST ? nanoseconds(CLOCK_MONOTONIC) : from;      /* the other one may come late */
    }
    int64_t now = nanoseconds(CLOCK_MONOTONIC);
    return now - began > PATIENCE_NS ? 0.0 : (double)(now - from) / (2 * HANDOFFS);
}

/* multiplier_load() -> that of the calling thread's core; 1.5 times as much as in another moment: hyperthreads share it.
   */
static PyObject *
api_multiplier_load(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    double load;
    Py_BEGIN_ALLOW_THREADS
    load = multiplier_load();
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(load);
}

/* ---- calls for a fixed time -------------------------------------------------------------------------------------- */
static int64_t
queued_nanoseconds(int file)
{
    char text[96];
    ssize_t length = file < 0 ? -1 : pread(file, text, sizeof(text) - 1, 0);
    if (length <= 0) {
        return 0;
    }
    text[length] = 0;
    char *second = strchr(text, ' ');
    return second == NULL ? 0 : strtoll(second, NULL, 10);
}

/* Wait until so many threads have come to the gate; return the number of this one, or -1 if they do not come.  */
static int
wait_at(Gate *gate, int count, int64_t patience)
{
    int64_t until = nanoseconds(CLOCK_MONOTONIC) + patience;
    int number = atomic_fetch_add(&gate->arrived, 1);
    while (atomic_load(&gate->arrived) < count) {
        if (atomic_load(&gate->stop) || nanoseconds(CLOCK_MONOTONIC) > until) {
            return -1;
        }
        sched_yield();
    }
    return number;
}

/* Come to the gate once more, and wait shortly for the others: their last calls may take long.  */
static void
meet_again(Gate *gate, int count)
{
    enum { PATIENCE_NS = 2000000 };
    int64_t until = nanoseconds(CLOCK_MONOTONIC) + PATIENCE_NS;
    atomic_fetch_add(&gate->left, 1);
    while (atomic_load(&gate->left) < count && nanoseconds(CLOCK_MONOTONIC) < until) {
        sched_yield();
    }
}

/* call_for(function, calls, gate, threads, warm-up, measured, patience): call function(calls) again and again, in
   nanoseconds, after so many threads have come to the gate.
   -> ([(begin, end, CPU time, time without a core) of each call after the warm-up], system time in microseconds,
   voluntary switches, multiplier load before, and after, nanoseconds of a handoff or 0.0 before); None if another one
   failed.  */
static PyObject *
api_call_for(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *calls;
    Py_buffer memory;
    int count;
    long long warm, measured, patience;
    if (!PyArg_ParseTuple(args, "OOw*iLLL", &function, &calls, &memory, &count, &warm, &measured, &patience)) {
        return NULL;
    }
    enum { MOST = 100000 };
    Gate *gate = memory.buf;
    int64_t (*rows)[4] = memory.len < (Py_ssize_t)sizeof(Gate) ? NULL : malloc(MOST * sizeof(*rows));
    if (rows == NULL) {
        PyBuffer_Release(&memory);
        return PyErr_NoMemory();
    }
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    bool met;
    double load = 0.0, load_after = 0.0, handed = 0.0;
    Py_BEGIN_ALLOW_THREADS
    int place = wait_at(gate, count, patience);
    met = place >= 0;
    if (met) {
        load = multiplier_load();
        handed = count > 1 && place < 2 ? handoff(gate, place) : 0.0;
    }
    Py_END_ALLOW_THREADS
    PyObject *found = NULL;
    Py_ssize_t number = 0;
    struct rusage before = {0}, after = {0};
    int64_t wall = nanoseconds(CLOCK_MONOTONIC), cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    int64_t queued = queued_nanoseconds(file), from = wall + warm, until = from + measured;
    bool counting = false, failed = false;
    while (met && !atomic_load_explicit(&gate->stop, memory_order_relaxed) && number < MOST && wall < until) {
        if (!counting && wall >= from) {
            counting = true;
            getrusage(RUSAGE_THREAD, &before);
        }
        PyObject *result = PyObject_Vectorcall(function, &calls, 1, NULL);
        if (result == NULL) {
            failed = true;
            break;
        }
        Py_DECREF(result);
        int64_t cpu_now = nanoseconds(CLOCK_THREAD_CPUTIME_ID), queued_now = queued_nanoseconds(file);
        int64_t now = nanoseconds(CLOCK_MONOTONIC);
        if (counting) {
            int64_t row[4] = {wall, now, cpu_now - cpu, queued_now - queued};
            memcpy(rows[number++], row, sizeof(row));
        }
        wall = now;
        cpu = cpu_now;
        queued = queued_now;
    }
    getrusage(RUSAGE_THREAD, &after);
    if (met && !failed) {
        Py_BEGIN_ALLOW_THREADS
        meet_again(gate, count);
        load_after = multiplier_load();
        Py_END_ALLOW_THREADS
    }
    if (failed || !met) {
        atomic_store(&gate->stop, 1);
    }
    if (!failed && (!met || (atomic_load(&gate->stop) && wall < until))) {
        found = Py_NewRef(Py_None);
    }
    else if (!failed) {
        PyObject *list = PyList_New(number);
        for (Py_ssize_t i = 0; list != NULL && i < number; i++) {
            PyObject *row = Py_BuildValue("(LLLL)", (long long)rows[i][0], (long long)rows[i][1], (long long)rows[i][2],
                                          (long long)rows[i][3]);
            if (row == NULL) {
                Py_CLEAR(list);
                break;
            }
            PyList_SET_ITEM(list, i, row);
        }
        before = counting ? before : after;      /* no call began after the warm-up */
        long long system = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000LL
            + (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
        found = list == NULL ? NULL : Py_BuildValue(
            "(NLlddd)", list, system, after.ru_nvcsw - before.ru_nvcsw, load, load_after, handed);
    }
    if (file >= 0) {
        close(file);
    }
    free(rows);
    PyBuffer_Release(&memory);
    return found;
}

/* end_with_parent(pid): let the kernel kill this process when its parent ends; end it if that is not `pid` any more.  */
static PyObject *
api_end_with_parent(PyObject *Py_UNUSED(module), PyObject *parent)
{
    long pid = PyLong_AsLong(parent);
    if (pid == -1 && PyErr_Occurred()) {
        return NULL;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)pid) {
        _exit(1);
    }
    Py_RETURN_NONE;
}

#endif

static PyMethodDef functions[] = {
    EXTENSION_FUNCTIONS
#if FREE_THREADED && defined(__linux__)
    {"header_layout", api_header_layout, METH_NOARGS, "Return the offsets of the fields of an object's header."},
    {"header", api_header, METH_O, "Return owner, mutex byte, local and shared count of an object."},
    {"body", api_body, METH_O, "Return a copy of the bytes behind an object's header."},
    {"immortalize", api_immortalize, METH_O, "Make the objects in a list immortal; return how many were not."},
    {"sample_start", api_sample_start, METH_VARARGS, "Sample the headers of objects from a thread of its own."},
    {"sample_stop", api_sample_stop, METH_NOARGS, "Stop that and return what was seen."},
    {"multiplier_load", api_multiplier_load, METH_NOARGS, "Return how busy the multiplier of this thread's core is."},
    {"call_for", api_call_for, METH_VARARGS, "Call a function for a fixed time and return the times of the calls."},
    {"end_with_parent", api_end_with_parent, METH_O, "Let the kernel end this process with its parent."},
#endif
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

static PyModuleDef headers_module = {
    PyModuleDef_HEAD_INIT, .m_name = "_headers", .m_doc = "Object headers, for `gilscope scale`.", .m_methods = functions,
    .m_slots = slots};

PyMODINIT_FUNC
PyInit__headers(void)
{
    return refuse_other_build() < 0 ? NULL : PyModuleDef_Init(&headers_module);
}
