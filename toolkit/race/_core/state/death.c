/* Deaths of objects, so that a new object at the same address is not mistaken for the old one.

   3.13 and later call a tracer for every creation and death; creations count as well, since `__del__` may access an
   object after its death event.  On 3.12 the allocator's free is wrapped, and so is tp_dealloc of list and dict, which
   keep dead objects for reuse without freeing them.  */

static void
forget_dead(const void *object)
{
    if (likely(!maybe_watched(object)) || core.dead) {
        return;
    }
#if !FREE_THREADED
    /* Another interpreter with its own GIL: nothing of it is watched, and its threads must not touch the tables.  */
    PyThreadState *state = thread_state();
    if (state == NULL || state->interp != core.interpreter) {
        return;
    }
#endif
    record_forget(object);
}

#if PY_VERSION_HEX >= 0x030D0000

static PyRefTracer other_tracer;
static void *other_data;

static int
on_lifetime(PyObject *object, PyRefTracerEvent event, void *Py_UNUSED(data))
{
    if (object != NULL) {
        forget_dead(object);
    }
    return other_tracer != NULL ? other_tracer(object, event, other_data) : 0;
}

static bool
watch_deaths(void)
{
    void *data;
    PyRefTracer now = PyRefTracer_GetTracer(&data);
    if (now == on_lifetime) {
        return true;
    }
    other_tracer = now;
    other_data = data;
    return PyRefTracer_SetTracer(on_lifetime, NULL) == 0;
}

/* True if all death events arrived: another tracer may have replaced ours.  */
static bool
deaths_watched(void)
{
    void *data;
    return PyRefTracer_GetTracer(&data) == on_lifetime;
}

#else

static PyMemAllocatorEx wrapped_allocator;
static destructor list_dealloc, dict_dealloc;

static void
watching_free(void *context, void *block)
{
    /* In front of an object lie up to two headers of 16 bytes: of the collector, and of a managed dict.  */
    for (int header = 0; block != NULL && header <= 32; header += 16) {
        forget_dead((char *)block + header);
    }
    wrapped_allocator.free(context, block);
}

static void *
watching_realloc(void *context, void *block, size_t size)
{
    for (int header = 0; block != NULL && header <= 32; header += 16) {
        forget_dead((char *)block + header);
    }
    return wrapped_allocator.realloc(context, block, size);
}

/* The wrapped functions limit recursion only if they are the type's own, so the limit is applied here.  */
static void
watching_list_dealloc(PyObject *list)
{
    forget_dead(list);
    PyObject_GC_UnTrack(list);
    Py_TRASHCAN_BEGIN(list, watching_list_dealloc)
    list_dealloc(list);
    Py_TRASHCAN_END
}

static void
watching_dict_dealloc(PyObject *dict)
{
    forget_dead(dict);
    PyObject_GC_UnTrack(dict);
    Py_TRASHCAN_BEGIN(dict, watching_dict_dealloc)
    dict_dealloc(dict);
    Py_TRASHCAN_END
}

static bool
watch_deaths(void)
{
    if (list_dealloc != NULL) {
        return true;
    }
    list_dealloc = PyList_Type.tp_dealloc;
    dict_dealloc = PyDict_Type.tp_dealloc;
    PyList_Type.tp_dealloc = watching_list_dealloc;
    PyDict_Type.tp_dealloc = watching_dict_dealloc;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &wrapped_allocator);
    PyMemAllocatorEx watching = wrapped_allocator;
    watching.free = watching_free;
    watching.realloc = watching_realloc;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &watching);
    return true;
}

static bool
deaths_watched(void)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
    return now.free == watching_free;
}

#endif
