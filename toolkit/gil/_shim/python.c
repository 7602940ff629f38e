/* The interpreter's internals that the shim uses: the addresses of its code and runtime, and the layout of frames.  A
   thread reads only its own frame directly, while it waits and nothing can change the frame; memory that the frame
   points to is read through the kernel, which rejects a bad address instead of crashing. */
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

const char *runtime, *runtime_end;
uint32_t python_version;
int python, free_threaded, sites_known;
uint64_t code_type, string_type;

static const char *code_begin, *code_end;
static void *(*this_thread_state)(void);

struct offsets at;

static void offsets_3_12(void)
{
    at.state_frame = 56;        /* the _PyCFrame, whose first word is the frame */
    at.state_size = 288;
    at.executable = 0, at.previous = 8, at.instruction = 56, at.owner = 70;
    at.filename = 112, at.qualname = 128, at.linetable = 136, at.firstlineno = 68, at.bytecode = 192;
    at.type = 8, at.type_name = 24, at.length = 16, at.text = 40, at.bytes = 32;
}

/* _Py_DebugOffsets is a list of 64-bit numbers in groups, whose lengths depend on the version. */
static int offsets_from_runtime(unsigned minor)
{
    uint64_t words[160];
    memcpy(words, runtime, sizeof words);
    if (memcmp(words, "xdebugpy", 8) != 0 || words[1] >> 16 != (0x0300u | minor))
        return 0;
    const uint64_t *interpreter = words + 3 + 3;
    const uint64_t *state = interpreter + (minor == 13 ? 13 : 16);
    const uint64_t *frame = state + (minor == 15 ? 17 : 9);      /* 3.15: with err_stackitem */
    const uint64_t *code = frame + (minor == 13 ? 6 : 8);
    const uint64_t *object = code + (minor == 13 ? 10 : 11);
    const uint64_t *type = object + 2;
    free_threaded = words[2] != 0;
    at.state_size = state[0], at.state_before = state[1], at.state_after = state[2], at.state_frame = state[4];
    at.state_tid = state[minor == 15 ? 9 : 6];
    at.previous = frame[1], at.executable = frame[2], at.instruction = frame[3], at.owner = frame[5];
    at.tlbc_index = minor == 13 ? 0 : frame[7];
    at.filename = code[1], at.qualname = code[3], at.linetable = code[4], at.firstlineno = code[5];
    at.bytecode = code[9];
    at.tlbc = minor == 13 ? 0 : code[10];
    at.type = object[1], at.type_name = type[1];
    at.length = object[0];                  /* of strings and of bytes: right after the object's head */
    at.text = object[0] + 24;               /* length, hash, state */
    at.bytes = object[0] + 16;              /* length, hash */
    /* Check that the groups were counted correctly: the size of a head must match its last field. */
    return object[0] == object[1] + 8 && code[1] < 512 && frame[0] < 512;
}

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *low = NULL, *high = NULL;
    int here = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *begin = (const char *)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type != PT_LOAD)
            continue;
        here |= runtime >= begin && runtime < begin + part->p_memsz;
        if (part->p_flags & PF_X) {
            if (low == NULL || begin < low)
                low = begin;
            if (begin + part->p_memsz > high)
                high = begin + part->p_memsz;
        }
    }
    if (here)
        code_begin = low, code_end = high;
    return here;
}

static unsigned long largest(const uint64_t *numbers, unsigned count)
{
    uint64_t found = 0;
    for (unsigned i = 0; i < count; i++)
        found = numbers[i] > found ? numbers[i] : found;
    return found;
}

static int find_sizes(void)
{
    const uint64_t frame[] = {at.executable + 8, at.previous + 8, at.instruction + 8, at.owner + 1, at.tlbc_index + 4};
    const uint64_t code[] = {at.type + 8, at.length + 8, at.filename + 8, at.firstlineno + 4};
    at.frame_size = largest(frame, sizeof frame / sizeof *frame);
    at.code_size = largest(code, sizeof code / sizeof *code);
    return at.frame_size <= FRAME_MAX && at.code_size <= CODE_MAX && at.text <= TEXT_MAX;
}

int find_python(void)
{
    runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");
    if (runtime == NULL || version == NULL || dl_iterate_phdr(find_code, NULL) == 0)
        return 0;
    Dl_info found;
    const ElfW(Sym) *symbol = NULL;
    if (dladdr1(runtime, &found, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL || symbol->st_size == 0)
        return 0;
    runtime_end = runtime + symbol->st_size;
    python_version = (uint32_t)*version;
    unsigned minor = python_version >> 16 & 0xff;
    if (python_version >> 24 != 3 || minor < 12 || sizeof(void *) != 8)
        return 0;
    code_type = (uint64_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
    string_type = (uint64_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    this_thread_state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (minor == 12) {
        offsets_3_12();
        sites_known = 1;
        at.last_owner = 2;
    } else if (minor <= 15) {
        sites_known = offsets_from_runtime(minor);
        at.last_owner = 2;
    }
    sites_known &= this_thread_state != NULL && code_type != 0 && find_sizes();
    return 1;
}

int from_python(const void *caller)
{
    return (const char *)caller >= code_begin && (const char *)caller < code_end;
}

int peek(uint64_t address, void *into, unsigned long size)
{
    struct iovec local = {into, size}, remote = {(void *)address, size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

uint64_t own_thread_state(void)
{
    return this_thread_state ? (uint64_t)this_thread_state() : 0;
}
