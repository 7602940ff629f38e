/* The record file as threads use it: its mapping, its state, and reserving space in it. */
#include "shim.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

const char *folder;
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

/* The pages of sites and slots that were reserved.  In a tmpfs, to read a hole of the file allocates a block, too, so what
   is not reserved is not even read. */
static unsigned char reserved[offsetof(struct mapping, chunks) / 4096];

static unsigned char *page_of(const void *entry)
{
    return &reserved[((uintptr_t)entry - (uintptr_t)map) / 4096];
}

int is_reserved(const void *entry)
{
    return __atomic_load_n(page_of(entry), __ATOMIC_ACQUIRE);
}

/* Reserve a site or a slot, none of which crosses the end of a page. */
int reserve_entry(const void *entry)
{
    if (is_reserved(entry))
        return 1;
    if (!reserve(entry, sizeof(struct slot)))
        return 0;
    __atomic_store_n(page_of(entry), 1, __ATOMIC_RELEASE);
    return 1;
}

void reserve_none(void)
{
    memset(reserved, 0, sizeof reserved);
}
