/* The C callers of a wait: read once for each place if nothing else shows what a thread waits for. */
#include "shim.h"

#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

enum { CALLERS = 12 };          /* from our own functions through the interpreter's lock to the code that takes it */

struct search { const char *module; unsigned left; int found; };

static _Unwind_Reason_Code look_at(struct _Unwind_Context *context, void *raw)
{
    struct search *search = raw;
    Dl_info there;
    if (dladdr((void *)_Unwind_GetIP(context), &there) != 0 && there.dli_fname != NULL) {
        const char *base = strrchr(there.dli_fname, '/');
        base = base ? base + 1 : there.dli_fname;
        search->found = strncmp(base, search->module, strlen(search->module)) == 0;
    }
    return search->found || --search->left == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* True if the calling thread is in a function of the extension module whose file name begins with `module`. */
int called_from(const char *module)
{
    struct search search = {.module = module, .left = CALLERS};
    _Unwind_Backtrace(look_at, &search);
    return search.found;
}
