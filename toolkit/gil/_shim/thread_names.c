/* The names of threads.  From 3.14 on Python passes them to the system, which stores only 15 bytes, so two workers of a
   pool may have the same name.  Therefore they are read from the object in `threading` when a thread starts. */
#include "shim.h"

#include <dlfcn.h>
#include <string.h>

/* The interpreter's own functions.  The thread that starts another one calls them; it is attached, and has the GIL if
   there is one. */
static struct {
    void *(*attached)(void);
    void *(*frame)(void);
    void *(*variable)(void *frame, const char *name);
    void *(*attribute)(void *object, const char *name);
    const char *(*text)(void *string, long *length);
    void (*release)(void *object);
    void (*clear)(void);
} ask;

void find_naming(void)
{
    *(void **)&ask.attached = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (ask.attached == NULL)   /* 3.12 */
        *(void **)&ask.attached = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    *(void **)&ask.frame = dlsym(RTLD_DEFAULT, "PyEval_GetFrame");
    *(void **)&ask.variable = dlsym(RTLD_DEFAULT, "PyFrame_GetVarString");
    *(void **)&ask.attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
    *(void **)&ask.text = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8AndSize");
    *(void **)&ask.release = dlsym(RTLD_DEFAULT, "Py_DecRef");
    *(void **)&ask.clear = dlsym(RTLD_DEFAULT, "PyErr_Clear");
}

static int can_ask(void)
{
    return ask.attached && ask.frame && ask.variable && ask.attribute && ask.text && ask.release && ask.clear;
}

static int starts_a_thread(void)
{
    struct place place;
    struct site site;
    if (!own_place(&place))
        return 0;
    describe(place, &site);
    const char *base = strrchr(site.file, '/');
    return strcmp(base ? base + 1 : site.file, "threading.py") == 0 && strcmp(site.function, "Thread.start") == 0;
}

/* Write the name of the thread that the calling one is about to start, in UTF-8; "" if it is not one of threading's. */
void name_of_started(char *into, unsigned long size)
{
    into[0] = 0;
    if (!can_ask() || ask.attached() == NULL || !starts_a_thread())
        return;
    void *frame = ask.frame();
    void *thread = frame ? ask.variable(frame, "self") : NULL;
    void *name = thread ? ask.attribute(thread, "_name") : NULL;
    long length = 0;
    const char *text = name ? ask.text(name, &length) : NULL;
    if (text == NULL)
        ask.clear();
    else {
        unsigned long kept = (unsigned long)length < size - 1 ? (unsigned long)length : size - 1;
        while (kept < (unsigned long)length && kept > 0 && (text[kept] & 0xC0) == 0x80)   /* not within a character */
            kept--;
        memcpy(into, text, kept);
        into[kept] = 0;
    }
    if (name != NULL)
        ask.release(name);
    if (thread != NULL)
        ask.release(thread);
}
