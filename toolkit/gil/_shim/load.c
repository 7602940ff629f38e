/* Loading: find out if this is a Python, and when to begin recording. */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A forked child must not write to its parent's file: it creates its own, or records nothing. */
static void in_child(void)
{
    int recorded = recording;
    forget_file();
    forget_holders();
    if (recorded && folder != NULL && open_file(folder, FORKED) == 0)
        hold_from_now();
}

/* Begin to record into a new file in `path`; the calling thread holds the GIL.  Return 0 or an errno. */
EXPORT int gilscope_gil_start(const char *path)
{
    if (!python)
        return ENOSYS;
    if (recording)
        return EALREADY;
    forget_holders();
    int error = open_file(path, 0);
    if (error == 0)
        hold_from_now();
    return error;
}

/* Stop recording, as at the process's end. */
EXPORT void gilscope_gil_stop(void)
{
    close_file();
}

__attribute__((constructor)) static void load(void)
{
    find_real();
    if (!find_python())
        return;
    find_naming();
    register_thread_end();
    python = 1;
    pthread_atfork(NULL, NULL, in_child);
    all_holds = getenv("GILSCOPE_GIL_ALL") != NULL;
    const char *chunks = getenv("GILSCOPE_GIL_CHUNKS");
    if (chunks != NULL && atoi(chunks) > 0 && atoi(chunks) < CHUNKS_PER_THREAD)
        chunks_wanted = (uint32_t)atoi(chunks);
    folder = getenv("GILSCOPE_GIL");
    if (folder != NULL && folder[0] == '/')
        open_file(folder, 0);
    else
        folder = NULL;
}

__attribute__((destructor)) static void unload(void)
{
    close_file();
}
