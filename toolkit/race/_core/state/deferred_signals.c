/* Deferral of the program's signal handlers while one of our own Python callbacks runs: they run after it, as if the signal
   had come a moment later.  So the callback is not interrupted, and exceptions of the handler reach the program.

   Python runs handlers in the main thread only, so no other thread gets to this state.  */
#include <signal.h>

#ifndef NSIG
#define NSIG 65
#endif

static PyObject *deferred_handlers[NSIG];       /* owned, by number of the signal */
static __thread int callback_depth;
static __thread bool has_deferred;

static int run_deferred(void *none);

/* Raising the signal again would write to the wake-up descriptor twice.  */
static void
schedule_deferred(void)
{
    Py_AddPendingCall(run_deferred, NULL);      /* if there are too many, the end of the next callback tries again */
}

static int
run_deferred(void *Py_UNUSED(none))
{
    if (callback_depth > 0) {       /* its end schedules this again */
        return 0;
    }
    has_deferred = false;
    for (int number = 0; number < NSIG; number++) {
        PyObject *handler = deferred_handlers[number];
        if (handler == NULL) {
            continue;
        }
        deferred_handlers[number] = NULL;
        PyObject *frame = (PyObject *)PyEval_GetFrame();
        PyObject *result = PyObject_CallFunction(handler, "iO", number, frame != NULL ? frame : Py_None);
        Py_DECREF(handler);
        if (result == NULL) {
            has_deferred = true;    /* perhaps more of them */
            schedule_deferred();
            return -1;
        }
        Py_DECREF(result);
    }
    return 0;
}

/* True if a call of a signal handler is deferred.  */
static bool
defer_handler(PyObject *handler, PyObject *const *args, Py_ssize_t n)
{
    if (callback_depth == 0 || n != 2 || !PyLong_CheckExact(args[0])) {
        return false;
    }
    long number = PyLong_AsLong(args[0]);
    if (number < 0 || number >= NSIG) {
        PyErr_Clear();
        return false;
    }
    Py_XSETREF(deferred_handlers[number], Py_NewRef(handler));
    has_deferred = true;
    return true;
}

/* Call one of our own callbacks.  */
static PyObject *
call_ours(PyObject *callback, PyObject *const *args, size_t nargsf, PyObject *names_)
{
    callback_depth++;
    PyObject *result = PyObject_Vectorcall(callback, args, nargsf, names_);
    callback_depth--;
    if (unlikely(has_deferred) && callback_depth == 0) {
        schedule_deferred();
    }
    return result;
}
