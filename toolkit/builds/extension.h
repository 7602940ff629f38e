/* What each of gilscope's C extensions checks before anything else: that it was made for this build, from these sources.
   extension.py loads them.  */
#ifndef GILSCOPE_EXTENSION_H
#define GILSCOPE_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#ifdef Py_GIL_DISABLED
#define FREE_THREADED 1
#else
#define FREE_THREADED 0
#endif
#ifdef Py_DEBUG
#define DEBUG_BUILD 1
#else
#define DEBUG_BUILD 0
#endif
#ifndef GILSCOPE_SOURCES
#define GILSCOPE_SOURCES ""     /* setup.py defines it for a wheel */
#endif

static PyObject *
api_made_from(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromString(GILSCOPE_SOURCES);
}

#define EXTENSION_FUNCTIONS \
    {"made_from", api_made_from, METH_NOARGS, "Return the hash of the sources of an extension in a wheel, else \"\"."},

/* True if the extension can run in this build.  It reads frames and reference counts, whose layout is stable within a minor
   version from the first release candidate on.  Another build may load the file, since every build accepts the suffix
   `.so`, and a wheel may have a wrong tag.  */
static bool
same_layout(unsigned long made, unsigned long runs)
{
    bool final = ((made >> 4) & 0xF) >= 0xC && ((runs >> 4) & 0xF) >= 0xC;
    return final ? made >> 16 == runs >> 16 : made == runs;
}

static int
refuse_other_build(void)
{
    PyObject *flags = PySys_GetObject("abiflags");      /* borrowed */
    bool without_gil = false, debug = false;
    for (Py_ssize_t i = 0; flags != NULL && i < PyUnicode_GET_LENGTH(flags); i++) {
        without_gil = without_gil || PyUnicode_READ_CHAR(flags, i) == 't';
        debug = debug || PyUnicode_READ_CHAR(flags, i) == 'd';
    }
    if (same_layout(PY_VERSION_HEX, Py_Version) && without_gil == FREE_THREADED && debug == DEBUG_BUILD) {
        return 0;
    }
    PyErr_Format(PyExc_ImportError, "it was compiled for CPython " PY_VERSION "%s%s, and this is %lu.%lu.%lu%s%s (%lx)",
                 FREE_THREADED ? "t" : "", DEBUG_BUILD ? "d" : "", Py_Version >> 24, (Py_Version >> 16) & 0xFF,
                 (Py_Version >> 8) & 0xFF, without_gil ? "t" : "", debug ? "d" : "", Py_Version);
    return -1;
}

#endif
