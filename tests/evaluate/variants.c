/* Extension modules in every combination of init kind and slots, and some that break: one library, many init functions.
   Copied to a file per module, it is that module. */
#include <Python.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#if PY_VERSION_HEX >= 0x030D0000
#define GIL_SLOT(value) {Py_mod_gil, value},
#else
#define GIL_SLOT(value)
#endif
#define INTERPRETERS_SLOT(value) {Py_mod_multiple_interpreters, value},
#define NOTHING

static int fine(PyObject *module) { return 0; }
static int crash(PyObject *module) { raise(SIGSEGV); return 0; }
static int hang(PyObject *module) { for (;;) pause(); return 0; }

#define MULTI(name, body, slots)                                                                \
    static PyModuleDef_Slot name##_slots[] = {{Py_mod_exec, body}, slots {0, NULL}};            \
    static PyModuleDef name##_def = {PyModuleDef_HEAD_INIT, #name, NULL, 0, NULL, name##_slots}; \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&name##_def); }

MULTI(multi_plain, fine, NOTHING)
MULTI(multi_used, fine, GIL_SLOT(Py_MOD_GIL_USED))
MULTI(multi_free, fine, GIL_SLOT(Py_MOD_GIL_NOT_USED))
MULTI(multi_one, fine, GIL_SLOT(Py_MOD_GIL_NOT_USED) INTERPRETERS_SLOT(Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED))
MULTI(multi_shared, fine, GIL_SLOT(Py_MOD_GIL_NOT_USED) INTERPRETERS_SLOT(Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED))
MULTI(multi_own, fine, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED))
MULTI(multi_own_used, fine, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED) GIL_SLOT(Py_MOD_GIL_USED))
MULTI(multi_best, fine, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED) GIL_SLOT(Py_MOD_GIL_NOT_USED))
MULTI(twice, fine, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED)
      INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED))
MULTI(crashing, crash, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED) GIL_SLOT(Py_MOD_GIL_NOT_USED))
MULTI(hanging, hang, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED) GIL_SLOT(Py_MOD_GIL_NOT_USED))

/* A name that is not ASCII: PyInitU_ and punycode; the module is called "größe". */
static PyModuleDef_Slot unicode_slots[] = {
    {Py_mod_exec, fine}, INTERPRETERS_SLOT(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED) GIL_SLOT(Py_MOD_GIL_NOT_USED) {0, NULL}};
static PyModuleDef unicode_def = {PyModuleDef_HEAD_INIT, "unicode", NULL, 0, NULL, unicode_slots};
PyMODINIT_FUNC PyInitU_gre_6ka8i(void) { return PyModuleDef_Init(&unicode_def); }

/* It says that it needs no GIL, and then makes something that cannot say so: the interpreter turns the GIL on. */
static PyObject *own_object(PyObject *spec, PyModuleDef *def) { return PyDict_New(); }
static PyModuleDef_Slot strange_slots[] = {{Py_mod_create, own_object}, GIL_SLOT(Py_MOD_GIL_NOT_USED) {0, NULL}};
static PyModuleDef strange_def = {PyModuleDef_HEAD_INIT, "strange", NULL, 0, NULL, strange_slots};
PyMODINIT_FUNC PyInit_strange(void) { return PyModuleDef_Init(&strange_def); }

static PyModuleDef single_plain_def = {PyModuleDef_HEAD_INIT, "single_plain", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_single_plain(void) { return PyModule_Create(&single_plain_def); }

static PyModuleDef single_free_def = {PyModuleDef_HEAD_INIT, "single_free", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_single_free(void)
{
    PyObject *module = PyModule_Create(&single_free_def);
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}

PyMODINIT_FUNC PyInit_hook_crashes(void) { raise(SIGSEGV); return NULL; }
PyMODINIT_FUNC PyInit_hook_hangs(void) { for (;;) pause(); }
PyMODINIT_FUNC PyInit_hook_exits(void) { _exit(0); }
PyMODINIT_FUNC PyInit_hook_raises(void) { PyErr_SetString(PyExc_ImportError, "no licence"); return NULL; }
static PyModuleDef raw_def = {PyModuleDef_HEAD_INIT, "hook_returns_raw", NULL, 0, NULL};
PyMODINIT_FUNC PyInit_hook_returns_raw(void) { return (PyObject *)&raw_def; }

#if PY_VERSION_HEX >= 0x030F0000
PyABIInfo_VAR(abi);
#define EXPORT(name, ...)                                                                           \
    static PySlot name##_slots[] = {                                                                \
        PySlot_STATIC_DATA(Py_mod_name, #name), PySlot_FUNC(Py_mod_exec, fine), __VA_ARGS__ PySlot_END}; \
    PyMODEXPORT_FUNC PyModExport_##name(void) { return name##_slots; }
#define ABI PySlot_STATIC_DATA(Py_mod_abi, &abi),
#define NEW_GIL(value) PySlot_DATA(Py_mod_gil, value),
#define NEW_INTERPRETERS(value) PySlot_DATA(Py_mod_multiple_interpreters, value),
EXPORT(export_plain, ABI)
EXPORT(export_used, ABI NEW_GIL(Py_MOD_GIL_USED))
EXPORT(export_best, ABI NEW_GIL(Py_MOD_GIL_NOT_USED) NEW_INTERPRETERS(Py_MOD_PER_INTERPRETER_GIL_SUPPORTED))
EXPORT(export_no_abi, NEW_GIL(Py_MOD_GIL_NOT_USED))
/* Tables inside tables: new records in new ones, and old records in new ones. */
static PySlot inner[] = {NEW_GIL(Py_MOD_GIL_NOT_USED) PySlot_END};
static PyModuleDef_Slot old_inner[] = {{3, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED}, {0, NULL}};
EXPORT(export_nested, ABI PySlot_STATIC_DATA(Py_slot_subslots, inner),
       PySlot_STATIC_DATA(Py_mod_slots, old_inner),)
#endif
