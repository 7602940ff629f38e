/* -DGILSCOPE_TRACE is for tests: the core writes what the program does, before its caches, and what it finds, to one file
   for each process in the folder that GILSCOPE_RACE_TRACE names.  tests/race/oracle.py reads it.

   A line is one event: a verb, mostly the uid of a thread, and numbers.  Events of one object are written while it is
   locked, so their order is the one in which the core handles them.  A line is one write(): nothing to lose at a crash, and
   nothing to write twice after a fork.  */
#ifdef GILSCOPE_TRACE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int trace_file = -1;

__attribute__((format(printf, 1, 2))) static void
trace(const char *format, ...)
{
    char line[4096];
    va_list values;
    va_start(values, format);
    int n = vsnprintf(line, sizeof(line) - 1, format, values);
    va_end(values);
    n = n < (int)sizeof(line) - 2 ? n : (int)sizeof(line) - 2;
    line[n] = '\n';
    if (trace_file >= 0 && write(trace_file, line, (size_t)n + 1) < 0) {
        Py_FatalError("gilscope: the trace cannot be written");
    }
}

/* Begin this process's file; the child of a fork begins its own, in which nothing has happened yet.  */
static void
trace_open(void)
{
    const char *folder = getenv("GILSCOPE_RACE_TRACE");
    char path[4096];
    if (folder == NULL || folder[0] == '\0') {
        return;
    }
    snprintf(path, sizeof(path), "%s/%d.trace", folder, (int)getpid());
    if (trace_file >= 0) {
        close(trace_file);
    }
    trace_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    trace("process");
}

/* The number of an object, clock or the like, which no other one has had.  */
static uint32_t
trace_number(_Atomic(uint32_t) *number)
{
    static _Atomic(uint32_t) last;
    uint32_t none = 0;
    atomic_compare_exchange_strong(number, &none, atomic_load(number) != 0 ? 0 : atomic_fetch_add(&last, 1) + 1);
    return atomic_load(number);
}

/* The object is dead, or what is known of it is forgotten.  */
static void
trace_forget(_Atomic(uint32_t) *number)
{
    if (*number != 0) {
        trace("forget %u", *number);
    }
    *number = 0;
}
#else
#define trace(...) ((void)0)
#define trace_open() ((void)0)
#define trace_forget(number) ((void)0)
#endif
