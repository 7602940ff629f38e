/* Processes that the program kills, as multiprocessing kills the workers of a pool when its `with` ends.  They cannot
   record their CPU time at their end, so who kills them does it for them, right before. */
#include "shim.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The file is read and written, not mapped: to read a hole of a mapped one would take room on the disk. */
static void note_process(int file, const char *process)
{
    struct header header;
    if (pread(file, &header, sizeof header, 0) != sizeof header || header.flags & ENDED)
        return;
    for (uint32_t i = 0; i < header.slots_used && i < SLOTS_MAX; i++) {
        struct slot slot;
        off_t at = (off_t)(offsetof(struct mapping, slots) + i * sizeof slot);
        if (pread(file, &slot, sizeof slot, at) != sizeof slot || slot.tid == 0 || slot.flags & SLOT_ENDED)
            continue;
        note_usage(process, &slot);
        size_t first = offsetof(struct slot, cpu_ns), end = offsetof(struct slot, cpu_start);
        if (pwrite(file, (const char *)&slot + first, end - first, at + (off_t)first) != (ssize_t)(end - first) ||
            pwrite(file, &slot.flags, sizeof slot.flags, at + (off_t)offsetof(struct slot, flags)) < 0)
            return;
    }
    uint64_t when = now();
    if (pwrite(file, &when, sizeof when, offsetof(struct mapping, header.end)) < 0)
        return;
}

static void note_end(pid_t pid)
{
    char process[16], pattern[4096];
    glob_t found;
    snprintf(process, sizeof process, "%d", (int)pid);
    int length = snprintf(pattern, sizeof pattern, "%s/%s-*.gil", folder, process);
    if (length >= (int)sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return;
    int file = open(found.gl_pathv[found.gl_pathc - 1], O_RDWR | O_CLOEXEC);     /* the latest: exec begins a new one */
    if (file >= 0) {
        note_process(file, process);
        close(file);
    }
    globfree(&found);
}

EXPORT int kill(pid_t pid, int number)
{
    if (unlikely(real.kill == NULL))
        find_real();
    int ends = number == SIGTERM || number == SIGKILL;
    if (ends && recording && folder != NULL && pid > 0 && pid != getpid() && python && from_python(CALLER))
        note_end(pid);
    return real.kill(pid, number);
}
