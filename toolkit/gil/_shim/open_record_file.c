/* The record file of the process: created, mapped, closed, and created again in a forked child. */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void fill_names(struct header *header)
{
    ssize_t length = readlink("/proc/self/exe", header->executable, sizeof header->executable - 1);
    if (length < 0)
        header->executable[0] = 0;
    int command = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (command >= 0) {
        length = read(command, header->command, sizeof header->command - 1);
        if (length < 0)
            header->command[0] = 0;
        close(command);
    }
}

/* Measure the cost of recording, in picoseconds, for the overhead in the report. */
static void calibrate(struct header *header)
{
    enum { TIMES = 200 };
    static struct slot idle;
    uint64_t begin = now();
    for (int i = 0; i < TIMES - 1; i++)
        now();
    uint64_t clocks = now() - begin;
    header->clock_ps = clocks * 1000 / TIMES;
    struct span span = {.kind = HOLD};
    begin = now();
    for (int i = 0; i < TIMES; i++) {
        span.begin = now();
        span.end = now();
        add_total(&idle.totals[HOLD], span.begin, span.end);
        __asm__ volatile("" : : "r"(&span), "r"(&idle) : "memory");
    }
    header->pair_ps = (now() - begin) * 1000 / TIMES;
}

/* Leave an empty file that is named after the error, which takes no room on the disk.  Return the error. */
static int give_up(const char *path, int error)
{
    char name[4096 + 16];
    snprintf(name, sizeof name, "%s.%d", path, error);
    int file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
    return error;
}

int open_file(const char *folder, uint32_t flags)
{
    char path[4096];
    uint64_t start = now();
    int written = snprintf(path, sizeof path, "%s/%d-%llu.gil", folder, (int)getpid(), (unsigned long long)start);
    if (written < 0 || (size_t)written >= sizeof path)
        return ENAMETOOLONG;
    struct rlimit limit;        /* growing a file beyond it kills the process */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(struct mapping))
        return give_up(path, EFBIG);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return give_up(path, errno);
    struct mapping *fresh = MAP_FAILED;
    if (ftruncate(file, sizeof(struct mapping)) == 0)
        fresh = mmap(NULL, sizeof(struct mapping), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    int error = errno;
    if (fresh != MAP_FAILED && !reserve(fresh, sizeof fresh->header)) {
        munmap(fresh, sizeof(struct mapping));
        fresh = MAP_FAILED;
        error = ENOSPC;
    }
    if (fresh == MAP_FAILED) {
        close(file);
        unlink(path);
        return give_up(path, error);
    }
    struct header *header = &fresh->header;
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    header->format = FORMAT;
    header->pid = (uint32_t)getpid();
    header->parent = (uint32_t)getppid();
    header->python = python_version;
    header->flags = flags | (free_threaded ? FREE_THREADED : 0) | (sites_known ? SITES_KNOWN : 0) |
                    (all_holds ? ALL_HOLDS : 0);
    header->start_real = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
    fill_names(header);
    calibrate(header);
    header->start = now();
    memcpy(header->magic, "gilscope", 8);
    close(file);
    reserve_none();
    map = fresh;
    generation++;
    __atomic_store_n(&recording, 1, __ATOMIC_RELEASE);
    return 0;
}

void close_file(void)
{
    if (!recording)
        return;
    end_thread();
    read_living();
    __atomic_store_n(&recording, 0, __ATOMIC_RELEASE);
    map->header.end = now();
    map->header.flags |= ENDED;
    /* It stays mapped: a thread may be in the middle of writing to it. */
}

void forget_file(void)
{
    recording = 0;
    if (map != NULL)
        munmap(map, sizeof(struct mapping));
    map = NULL;
}
