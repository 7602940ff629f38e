/* Sites: the objects that replace the rewriter's markers, and their flags by number.  */

#define SITE_CHUNK 4096
static _Atomic(uint32_t) *site_chunks[SITE_CHUNK];     /* flags by number */
static Site **site_objects[SITE_CHUNK];                /* by number; immortal */
static pthread_mutex_t sites_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic(bool) some_site_empties;                /* else a test for a key looks for its removal alone */

/* The site of a number, NULL if there is none yet; call it with the lock held.  */
static Site *
site_by_number(int32_t number)
{
    Site **chunk = site_objects[number / SITE_CHUNK];
    return chunk != NULL ? chunk[number % SITE_CHUNK] : NULL;
}

static void
site_enter(Site *site)
{
    pthread_mutex_lock(&sites_lock);
    Site ***chunk = &site_objects[site->number / SITE_CHUNK];
    if (*chunk == NULL) {
        *chunk = must(calloc(SITE_CHUNK, sizeof(Site *)));
    }
    (*chunk)[site->number % SITE_CHUNK] = site;
    pthread_mutex_unlock(&sites_lock);
}

static inline uint32_t
site_flags(int32_t number)
{
    return atomic_load_explicit(&site_chunks[number / SITE_CHUNK][number % SITE_CHUNK], memory_order_relaxed);
}

static void
site_flags_add(int32_t number, uint32_t flags)
{
    pthread_mutex_lock(&sites_lock);
    if (site_chunks[number / SITE_CHUNK] == NULL) {
        site_chunks[number / SITE_CHUNK] = must(calloc(SITE_CHUNK, sizeof(uint32_t)));
    }
    pthread_mutex_unlock(&sites_lock);
    atomic_fetch_or(&site_chunks[number / SITE_CHUNK][number % SITE_CHUNK], flags);
}

/* Make an object that threads may share without counting references.  */
static void
make_immortal(PyObject *object)
{
    if (PyObject_IS_GC(object)) {
        PyObject_GC_UnTrack(object);
    }
#ifdef Py_GIL_DISABLED
    object->ob_tid = 0;
    object->ob_ref_local = UINT32_MAX;
    object->ob_ref_shared = 0;
#elif PY_VERSION_HEX >= 0x030E0000
    object->ob_refcnt = (uint32_t)_Py_IMMORTAL_INITIAL_REFCNT;
#else
    object->ob_refcnt = _Py_IMMORTAL_REFCNT;
#endif
}

/* ---- names of attributes that some site stores: an instance may get what only its class has now ------------------ */
static PyObject **stored_names;
static uint32_t n_stored, stored_mask;

static bool
stored_name_find(PyObject *name, PyObject ***place)
{
    uint64_t at = mix((uintptr_t)name, 9);
    while (stored_names[at & stored_mask] != NULL && stored_names[at & stored_mask] != name) {
        at++;
    }
    *place = &stored_names[at & stored_mask];
    return **place == name;
}

static bool
is_stored_name(PyObject *name)
{
    PyObject **place;
    pthread_mutex_lock(&sites_lock);
    bool found = stored_names != NULL && stored_name_find(name, &place);
    pthread_mutex_unlock(&sites_lock);
    return found;
}

/* `name` is immortal.  */
static void
stored_name_add(PyObject *name)
{
    PyObject **place;
    pthread_mutex_lock(&sites_lock);
    if (stored_names == NULL || n_stored > stored_mask / 2) {
        PyObject **old = stored_names;
        uint32_t size = old != NULL ? stored_mask + 1 : 0;
        stored_mask = 2 * (size > 128 ? size : 128) - 1;
        stored_names = must(calloc((size_t)stored_mask + 1, sizeof(PyObject *)));
        for (uint32_t i = 0; i < size; i++) {
            if (old[i] != NULL) {
                stored_name_find(old[i], &place);
                *place = old[i];
            }
        }
        free(old);
    }
    n_stored += !stored_name_find(name, &place);
    *place = name;
    pthread_mutex_unlock(&sites_lock);
}
