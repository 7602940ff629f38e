/* The kind of an object for the checker, found by its type only: no code of the program runs.  The exception is CPython's
   own lookup of an attribute, which the program is about to make, too: it compares the name with a key that is not a str
   if a class has one with the hash of the name in its namespace.

   Each thread caches the results by the version of the type and the name.  */

enum Verdict { NOBODYS = 1, OWN_ATTRIBUTE, CLASS_ATTRIBUTE, MAYBE_INSTANCE, FORWARDS, MODULE_ITEM, OF_CLASS, THREAD_LOCAL,
               RUNS_CODE };
enum Family { NO_FAMILY = 1, DICT, SET, LIST, DEQUE, COUNTER, ARRAY, BYTEARRAY, MEMORYVIEW, NDARRAY, QUEUE,
              ENVIRON };

/* Types of the standard library, borrowed from modules that the program has imported, or NULL.  */
static struct {
    PyTypeObject *ordered_dict, *default_dict, *deque, *counter, *array, *ndarray, *np_integer, *simple_queue;
    PyTypeObject *queue, *lifo_queue, *priority_queue, *environ;
    PyObject *default_missing;
    PyObject *getattr, *setattr, *hasattr, *delattr;
} known;

static inline unsigned int
type_version(PyTypeObject *type)
{
    unsigned int version = type->tp_version_tag;
    if (unlikely(version == 0)) {
        PyUnstable_Type_AssignVersionTag(type);
        version = type->tp_version_tag;
    }
    return version;
}

static CachedType *
type_cache_place(Thread *thread, PyTypeObject *type, uint64_t question, uint64_t *key)
{
    unsigned int version = type_version(type);
    *key = version == 0 ? 0 : mix(question, version) | 1;
    return &thread->types[(*key >> 8) % TYPE_CACHE];
}

/* What the class or an ancestor has under `name`, without binding it: a new reference, as another thread may replace it.  */
static PyObject *
type_lookup(PyTypeObject *type, PyObject *name)
{
#if PY_VERSION_HEX >= 0x030D0000
    return _PyType_LookupRef(type, name);
#else
    return Py_XNewRef(_PyType_Lookup(type, name));
#endif
}

static PyObject *
type_lookup_text(PyTypeObject *type, const char *text)
{
    PyObject *name = PyUnicode_InternFromString(text);
    PyObject *found = name != NULL ? type_lookup(type, name) : NULL;
    Py_XDECREF(name);
    return found;
}

static bool
type_has(PyTypeObject *type, PyObject *name)
{
    PyObject *found = type_lookup(type, name);
    Py_XDECREF(found);
    return found != NULL;
}

/* A member of `base` in an object of a subclass, which may have a property of that name.  */
static PyObject *
base_attribute(PyTypeObject *base, const char *name, PyObject *object)
{
    PyObject *member = type_lookup_text(base, name);
    if (member == NULL || Py_TYPE(member)->tp_descr_get == NULL) {
        Py_XDECREF(member);
        PyErr_SetString(PyExc_AttributeError, name);
        return NULL;
    }
    PyObject *value = Py_TYPE(member)->tp_descr_get(member, object, (PyObject *)Py_TYPE(object));
    Py_DECREF(member);
    return value;
}

/* The classes that are searched for an attribute of the type: a new reference, as assigning to `__bases__` replaces them.  */
static PyObject *
type_mro(PyTypeObject *type)
{
#if FREE_THREADED
    PyObject *mro = base_attribute(&PyType_Type, "__mro__", (PyObject *)type);      /* reads it under a lock */
    if (mro != NULL && !PyTuple_Check(mro)) {
        Py_CLEAR(mro);
    }
    return mro;
#else
    return Py_XNewRef(type->tp_mro);
#endif
}

/* The class that has `name` in its own namespace; borrowed from the type, which keeps its bases.  */
static PyTypeObject *
type_holder(PyTypeObject *type, PyObject *name)
{
    PyObject *mro = type_mro(type);
    PyTypeObject *holder = NULL;
    for (Py_ssize_t i = 0; mro != NULL && holder == NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *ancestor = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *namespace = PyType_GetDict(ancestor);
        holder = namespace != NULL && has_key(namespace, name) == 1 ? ancestor : NULL;
        Py_XDECREF(namespace);
    }
    Py_XDECREF(mro);
    PyErr_Clear();
    return holder;
}

static PyTypeObject *
type_holder_of(PyTypeObject *type, const char *text)
{
    PyObject *name = PyUnicode_InternFromString(text);
    PyTypeObject *holder = name != NULL ? type_holder(type, name) : NULL;
    Py_XDECREF(name);
    return holder;
}

static bool
sets(PyObject *found)
{
    return Py_TYPE(found)->tp_descr_set != NULL;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */
static bool
is_plain_type(PyTypeObject *type)
{
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type || type == &PyBytes_Type
        || type == &PyBool_Type || type == &PyComplex_Type || type == &PyTuple_Type || type == Py_TYPE(Py_None)
        || type == &PyRange_Type || type == &PyFrozenSet_Type || type == &PyCFunction_Type
        || type == &PyEllipsis_Type || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type;
}

static enum Verdict
judge_in_class(PyTypeObject *holder, PyObject **found)
{
    if (holder == NULL || PyType_HasFeature(holder, Py_TPFLAGS_IMMUTABLETYPE)) {
        return NOBODYS;
    }
    *found = (PyObject *)holder;
    return CLASS_ATTRIBUTE;
}

/* An attribute that no class of the object has.  */
static enum Verdict
judge_unknown(PyTypeObject *type, bool store)
{
    PyObject *forwarder = type_lookup_text(type, "__getattr__");
    Py_XDECREF(forwarder);
    if (forwarder == NULL) {
        return OWN_ATTRIBUTE;
    }
    PyTypeObject *setter = type_holder_of(type, "__setattr__");
    return store && setter == &PyBaseObject_Type ? OWN_ATTRIBUTE : FORWARDS;
}

static enum Verdict
judge_instance(PyTypeObject *type, PyObject *name, bool store, PyObject **holder)
{
    PyObject *found = type_lookup(type, name);
    if (found == NULL) {
        return judge_unknown(type, store);
    }
    bool member = Py_IS_TYPE(found, &PyMemberDescr_Type), computed = Py_IS_TYPE(found, &PyGetSetDescr_Type);
    bool data = sets(found);
    Py_DECREF(found);
    if (member || (store && !data)) {
        return OWN_ATTRIBUTE;
    }
    if (data) {
        return computed ? NOBODYS : RUNS_CODE;      /* noted where it stands */
    }
    enum Verdict verdict = judge_in_class(type_holder(type, name), holder);
    if (type->tp_dictoffset == 0 && !PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
        return verdict;
    }
    *holder = (PyObject *)type_holder(type, name);
    return MAYBE_INSTANCE;
}

static enum Verdict
judge_attribute(PyTypeObject *type, PyObject *name, bool store, PyObject **holder)
{
    if (is_plain_type(type)) {
        return NOBODYS;
    }
    PyTypeObject *home = type_holder_of(type, "__getattribute__");
    if (home == &PyType_Type) {
        return OF_CLASS;
    }
    if (home == &PyModule_Type) {
        return MODULE_ITEM;
    }
    if (home != NULL && strcmp(home->tp_name, "_thread._local") == 0) {
        return THREAD_LOCAL;
    }
    if (home == NULL || home->tp_getattro != PyObject_GenericGetAttr) {
        return NOBODYS;
    }
    return judge_instance(type, name, store, holder);
}

static bool
dict_has(PyObject *object, PyObject *name)
{
    PyObject **place = _PyObject_GetDictPtr(object);
    if (place == NULL) {
        return false;
    }
#if FREE_THREADED
    PyObject *names = PyObject_GenericGetDict(object, NULL);       /* another thread may replace it */
#else
    PyObject *names = Py_XNewRef(*place);
#endif
    bool has = names != NULL && PyDict_Check(names) && has_key(names, name) == 1;
    if (names == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(names);
    return has;
}

/* True if the object itself has the attribute that its class has, too.  Asking for its dict would make one, so that
   is left to where the values cannot tell.  */
static bool
instance_has(PyObject *object, PyObject *name, PyObject *in_class)
{
    bool binds = Py_TYPE(in_class)->tp_descr_get != NULL;
    if (!binds || PyFunction_Check(in_class)) {
        PyObject *error = PyErr_GetRaisedException();
        PyObject *value = PyObject_GenericGetAttr(object, name);
        bool other = value != in_class;
        if (value != NULL && binds && PyMethod_Check(value)) {
            other = PyMethod_GET_FUNCTION(value) != in_class || PyMethod_GET_SELF(value) != object;
        }
        bool there = value != NULL;
        Py_XDECREF(value);
        PyErr_Clear();
        PyErr_SetRaisedException(error);
        if (there && (other || binds)) {
            return other;
        }
    }
    return dict_has(object, name);
}

typedef struct {
    PyObject *owner;        /* borrowed; NULL: not tracked */
    Key key;
    PyObject *own;          /* what has not got the attribute itself but may get it; borrowed, or NULL */
    bool runs_code;         /* a property, a descriptor: its code does what is to be noted */
} Place;

static Place
place_in_class(PyTypeObject *holder, PyObject *name)
{
    PyObject *found = NULL;
    judge_in_class(holder, &found);
    return (Place){.owner = found, .key = key_attr(name)};
}

static Place
place_of_class(PyTypeObject *object, PyObject *name, bool store)
{
    PyObject *meta = type_lookup(Py_TYPE(object), name);
    bool data = meta != NULL && sets(meta);
    Py_XDECREF(meta);
    if (data) {
        return (Place){.owner = NULL};
    }
    bool stored = is_stored_name(name);
    PyTypeObject *home = store ? object : type_holder(object, name);
    if (home == NULL && stored) {
        home = object;      /* a test that it is not there yet */
    }
    Place place = place_in_class(home, name);
    place.own = home != NULL && home != object && stored ? (PyObject *)object : NULL;
    return place;
}

static Place
place_of_module(Thread *thread, PyObject *module, PyObject *name, bool store)
{
    PyObject *names = PyModule_GetDict(module);
    if (names == NULL || (!store && has_key(names, name) != 1 && !is_stored_name(name))) {
        return (Place){.owner = NULL};
    }
    return (Place){.owner = names, .key = key_item(thread, name)};
}

/* The location that loading (storing) an attribute touches.  A class attribute that an instance does not have belongs
   to the class that holds it; a module's is its global; a property's code is noted where it stands.  */
static Place
place_of_attribute(Thread *thread, PyObject *object, PyObject *name, bool store)
{
    PyTypeObject *type = Py_TYPE(object);
    uint64_t key;
    CachedType *cached = type_cache_place(thread, type, (uintptr_t)name << 1 | store, &key);
    CachedType verdict = *cached;
    if (unlikely(key == 0 || verdict.key != key)) {
        PyObject *holder = NULL;
        verdict = (CachedType){key, NULL, judge_attribute(type, name, store, &holder)};
        verdict.holder = holder;
        *cached = verdict;
    }
    switch (verdict.verdict) {
    case OWN_ATTRIBUTE:
        return (Place){.owner = object, .key = key_attr(name)};
    case CLASS_ATTRIBUTE:
        return (Place){.owner = verdict.holder, .key = key_attr(name)};
    case MAYBE_INSTANCE: {
        PyObject *in_class = type_lookup(type, name);
        bool own = in_class == NULL || instance_has(object, name, in_class);
        Py_XDECREF(in_class);
        if (own) {
            return (Place){.owner = object, .key = key_attr(name)};
        }
        Place place = place_in_class((PyTypeObject *)verdict.holder, name);
        place.own = is_stored_name(name) ? object : NULL;
        return place;
    }
    case FORWARDS:
        return (Place){.owner = dict_has(object, name) ? object : NULL, .key = key_attr(name)};
    case RUNS_CODE:
        return (Place){.runs_code = true};
    case MODULE_ITEM:
        return place_of_module(thread, object, name, store);
    case OF_CLASS:
        return place_of_class((PyTypeObject *)object, name, store);
    case THREAD_LOCAL:
        if (!type_has(type, name)) {
            thread_join_real(thread);
        }
        return (Place){.owner = NULL};
    default:
        return (Place){.owner = NULL};
    }
}

/* ---- containers -------------------------------------------------------------------------------------------------- */
static PyObject *
dict_get_text(PyObject *dict, const char *key)
{
    PyObject *value = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    if (PyDict_GetItemStringRef(dict, key, &value) < 0) {
        PyErr_Clear();
    }
#else
    value = Py_XNewRef(PyDict_GetItemString(dict, key));
#endif
    return value;
}

/* A type of a module that the program has imported; a new reference, or NULL.  */
static PyObject *
loaded_type(const char *module, const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *found = modules != NULL ? dict_get_text(modules, module) : NULL;
    PyObject *names = found != NULL && PyModule_Check(found) ? PyModule_GetDict(found) : NULL;
    PyObject *type = names != NULL ? dict_get_text(names, name) : NULL;
    Py_XDECREF(found);
    if (type != NULL && !PyType_Check(type)) {
        Py_CLEAR(type);
    }
    return type;
}

static void
know(PyTypeObject **place, const char *module, const char *name)
{
    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == NULL) {
        PyObject *type = loaded_type(module, name);     /* kept for good, at worst twice */
        __atomic_store_n(place, (PyTypeObject *)type, __ATOMIC_RELEASE);
    }
}

/* Types that are not known yet may have been imported meanwhile.  */
static void
know_types(void)
{
    know(&known.ordered_dict, "collections", "OrderedDict");
    know(&known.default_dict, "collections", "defaultdict");
    know(&known.deque, "collections", "deque");
    know(&known.counter, "collections", "Counter");
    know(&known.array, "array", "array");
    know(&known.ndarray, "numpy", "ndarray");
    know(&known.np_integer, "numpy", "integer");
    know(&known.simple_queue, "_queue", "SimpleQueue");
    know(&known.queue, "queue", "Queue");
    know(&known.lifo_queue, "queue", "LifoQueue");
    know(&known.priority_queue, "queue", "PriorityQueue");
    know(&known.environ, "os", "_Environ");
    if (known.default_missing == NULL && known.default_dict != NULL) {
        known.default_missing = type_lookup_text(known.default_dict, "__missing__");
    }
}

static enum Family
judge_family(PyTypeObject *type, PyObject *method)
{
    PyTypeObject *home = type_holder(type, method);
    if (home == NULL) {
        return NO_FAMILY;
    }
    know_types();
    const struct { PyTypeObject *type; enum Family family; } families[] = {
        {&PyDict_Type, DICT}, {known.ordered_dict, DICT}, {known.default_dict, DICT}, {&PySet_Type, SET},
        {&PyList_Type, LIST}, {known.deque, DEQUE}, {known.counter, COUNTER}, {known.array, ARRAY},
        {&PyByteArray_Type, BYTEARRAY}, {&PyMemoryView_Type, MEMORYVIEW}, {known.ndarray, NDARRAY},
        {known.queue, QUEUE}, {known.lifo_queue, QUEUE}, {known.priority_queue, QUEUE}, {known.simple_queue, QUEUE},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (families[i].type == home) {
            return families[i].family;
        }
    }
    bool item = method == names.getitem || method == names.setitem || method == names.delitem;
    return item && home == known.environ ? ENVIRON : NO_FAMILY;
}

/* The length of a list, deque, bytearray or array as the builtin type has it: a subclass may have its own `__len__`,
   which may wait for a lock, fail, or touch what is tracked.  */
static Py_ssize_t
own_length(PyObject *container)
{
    if (PyList_Check(container)) {
        return PyList_GET_SIZE(container);
    }
    if (PyByteArray_Check(container)) {
        return PyByteArray_GET_SIZE(container);
    }
    PyTypeObject *const bases[] = {known.deque, known.array};
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        if (bases[i] != NULL && PyObject_TypeCheck(container, bases[i])) {
            return bases[i]->tp_as_sequence->sq_length(container);
        }
    }
    return 0;
}

/* A new list of the values in a list or deque, without the `__iter__` of a subclass; NULL with an exception if another
   thread changes the deque.  */
static PyObject *
own_values(PyObject *container)
{
    if (PyList_Check(container)) {
        return PyList_GetSlice(container, 0, PY_SSIZE_T_MAX);
    }
    if (known.deque == NULL || !PyObject_TypeCheck(container, known.deque)) {
        return NULL;
    }
    PyObject *iterator = known.deque->tp_iter(container);
    PyObject *values = iterator != NULL ? PySequence_List(iterator) : NULL;
    Py_XDECREF(iterator);
    return values;
}

/* The builtin container type whose own `method` this object has.  dict stands for its C subclasses, too.  Of the
   environment, which is written in Python, the items alone are known.  */
static inline enum Family
family_of(Thread *thread, PyObject *container, PyObject *method)
{
    PyTypeObject *type = Py_TYPE(container);
    if (likely(type == &PyDict_Type)) {
        return DICT;
    }
    if (type == &PyList_Type) {
        return LIST;
    }
    uint64_t key;
    CachedType *cached = type_cache_place(thread, type, (uintptr_t)method << 1 | UINT64_C(1) << 63, &key);
    if (key != 0 && cached->key == key) {
        return (enum Family)cached->verdict;
    }
    enum Family family = judge_family(type, method);
    *cached = (CachedType){key, NULL, family};
    return family;
}
