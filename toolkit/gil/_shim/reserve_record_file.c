/* The record file as threads use it: its mapping, its state, and reserving space in it. */
#include "shim.h"

#include <errno.h>
#include <sys/mman.h>

int recording;
uint32_t generation;
struct mapping *map;
__thread struct self self;

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The file is sparse and written through its mapping, so on a full disk a write would raise SIGBUS.  Therefore the kernel
   allocates the blocks first.  Before Linux 5.14 that is impossible, and the risk is accepted. */
int reserve(const void *begin, size_t size)
{
    uintptr_t first = (uintptr_t)begin & ~(uintptr_t)4095, end = ((uintptr_t)begin + size + 4095) & ~(uintptr_t)4095;
    return madvise((void *)first, end - first, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}
