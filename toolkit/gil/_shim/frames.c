/* The place of a thread in its Python program: its frames, and the names and lines of their code. */
#include "shim.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 1000, OUTERMOST = 8, CALLERS_MAX = 50, FILE_NAME = 224, FUNCTION_NAME = 88 };

/* A thread reads its own frames directly: nothing changes them while it waits.  The frames of a running thread may change
   at any time and are read through the kernel, which rejects a bad address. */
enum whose { OWN, ANOTHERS };

static int copy(uint64_t from, void *into, unsigned long size, enum whose whose)
{
    if (whose == ANOTHERS)
        return peek(from, into, size);
    memcpy(into, (const void *)from, size);
    return 1;
}

/* A frame that runs a function, and its code, each up to the last member that is read. */
struct frame {
    uint64_t code, file;        /* file: a hash of the file's name; 0 if it is not known */
    unsigned char own[FRAME_MAX], of_code[CODE_MAX];
};

static uint64_t member(const unsigned char *object, uint64_t offset)
{
    uint64_t found;
    memcpy(&found, object + offset, sizeof found);
    return found;
}

/* In 3.12, a thread's state points to a part of its C stack, which points to the frame. */
static uint64_t innermost(uint64_t state, enum whose whose)
{
    uint64_t frame = 0;
    if (state == 0 || !copy(state + at.state_frame, &frame, sizeof frame, whose))
        return 0;
    if (python_version >> 16 == 0x030c && frame != 0 && !copy(frame, &frame, sizeof frame, whose))
        return 0;
    return frame;
}

/* Hash the end of a string; 0 if it cannot be read. */
static uint64_t hash_text(uint64_t object, enum whose whose)
{
    unsigned char head[TEXT_MAX];
    uint64_t words[FILE_NAME / 8] = {0}, hash = 1;
    /* A subclass of str has its characters elsewhere. */
    if (object == 0 || !copy(object, head, at.text, whose) || member(head, at.type) != string_type)
        return 0;
    uint64_t length = member(head, at.length), size = length < sizeof words ? length : sizeof words;
    if (!copy(object + at.text + length - size, words, size, whose))
        return 0;
    for (uint64_t i = 0; i <= size / 8 && i < FILE_NAME / 8; i++) {
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Read the frame at `address`, or the next outer one that runs a function: frames that the interpreter inserts have a
   special owner and no code. */
static int find_frame(uint64_t address, struct frame *frame, enum whose whose)
{
    for (int depth = 0; address != 0 && depth < DEPTH_MAX; depth++, address = member(frame->own, at.previous)) {
        if (!copy(address, frame->own, at.frame_size, whose))
            return 0;
        if (frame->own[at.owner] > at.last_owner)
            continue;
        frame->code = member(frame->own, at.executable) & ~(uint64_t)7;     /* the low bits are tags */
        if (!copy(frame->code, frame->of_code, at.code_size, whose) || member(frame->of_code, at.type) != code_type)
            return 0;
        frame->file = hash_text(member(frame->of_code, at.filename), whose);
        return 1;
    }
    return 0;
}

/* Find the bytecode that the frame runs: free-threaded builds from 3.14 on have a copy for each thread. */
static uint64_t bytecode(const struct frame *frame)
{
    uint64_t copies, copied;
    if (at.tlbc == 0)
        return frame->code + at.bytecode;
    int32_t index;
    memcpy(&index, frame->own + at.tlbc_index, sizeof index);
    if (index > 0 && index < 65536 && peek(frame->code + at.tlbc, &copies, 8) && copies != 0 &&
        peek(copies + 8 + 8 * (uint64_t)index, &copied, 8) && copied != 0)
        return copied;
    return frame->code + at.bytecode;
}

static void text_of(uint64_t object, char *into, unsigned long size);

/* The origin of code: the program, an installed package, or Python itself. */
enum origin { PROGRAM, PACKAGE, LIBRARY, NOWHERE };

/* Find the origin by the file's path; it is cached by the hash of the path.  The address of the name would not do: once
   its code is gone, another file's name may be there. */
static enum origin origin_of(const struct frame *frame)
{
    static uint64_t known[1024];
    uint64_t name = frame->file & ~(uint64_t)7;
    uint64_t *entry = &known[frame->file >> 54];
    uint64_t kept = __atomic_load_n(entry, __ATOMIC_RELAXED);
    if ((kept & ~(uint64_t)7) == name && name != 0)
        return (enum origin)(kept & 7);
    char file[FILE_NAME];
    text_of(member(frame->of_code, at.filename), file, sizeof file);
    if (file[0] == 0)
        return NOWHERE;
    enum origin origin = PROGRAM;
    if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/"))
        origin = PACKAGE;
    else if (strncmp(file, "<frozen ", 8) == 0 || strstr(file, "/lib/python3") || strstr(file, "/lib64/python3"))
        origin = LIBRARY;
    __atomic_store_n(entry, name | (uint64_t)origin, __ATOMIC_RELAXED);
    return origin;
}

/* Return the place in the code that a frame runs: the instruction in the low half, and in the high half a hash of the file
   and the first line, since another function's code may have the address once this one's is gone. */
static uint64_t place_in_code(const struct frame *frame, uint64_t instruction)
{
    uint32_t line;
    memcpy(&line, frame->of_code + at.firstlineno, sizeof line);
    return instruction | (frame->file ^ line * 0xC2B2AE3D27D4EB4Fu) >> 32 << 32;
}

/* Find the place of a thread, and the program's own line that led there: the innermost one of its code, else of a
   package, else none. */
static int place_in(uint64_t state, struct place *place, enum whose whose)
{
    struct frame frame;
    if (!find_frame(innermost(state, whose), &frame, whose))
        return 0;
    enum origin best = LIBRARY;
    *place = (struct place){0};
    for (int depth = 0; depth < CALLERS_MAX; depth++) {
        uint64_t instruction = member(frame.own, at.instruction) - bytecode(&frame);
        if (instruction >= 2 * member(frame.of_code, at.length) || instruction >> 32 != 0)
            return 0;       /* a running thread has changed it meanwhile */
        enum origin origin = origin_of(&frame);
        if (depth == 0) {
            place->code = frame.code, place->instruction = place_in_code(&frame, instruction);
            best = origin < best ? origin : best;
        } else if (origin < best) {
            best = origin;
            place->caller = frame.code, place->caller_instruction = place_in_code(&frame, instruction);
        }
        if (best == PROGRAM || !find_frame(member(frame.own, at.previous), &frame, whose))
            break;
    }
    return 1;
}

int own_place(struct place *place)
{
    return place_in(sites_known ? own_thread_state() : 0, place, OWN);
}

int place_of_holder(uint64_t state, struct place *place)
{
    return place_in(state, place, ANOTHERS);
}

/* Write one character in UTF-8; return the number of its bytes. */
static unsigned encode(uint32_t letter, char *into)
{
    if (letter < 0x80) {
        into[0] = (char)letter;
        return 1;
    }
    unsigned tail = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    into[0] = (char)((0xff00 >> (tail + 1) & 0xff) | letter >> 6 * tail);
    for (unsigned i = 0; i < tail; i++)
        into[1 + i] = (char)(0x80 | (letter >> 6 * (tail - 1 - i) & 0x3f));
    return tail + 1;
}

/* Read `length` characters of `width` bytes; fail if they are not text that ends there. */
static int read_text(uint64_t begin, uint64_t length, unsigned width, int ascii, char *into, unsigned long size)
{
    unsigned char raw[1024];
    uint64_t most = size - 1 < sizeof raw / width ? size - 1 : sizeof raw / width;
    uint64_t skip = length > most ? length - most : 0;      /* the end of a path is more telling than its beginning */
    uint32_t end = 0;
    if (!peek(begin + length * width, &end, width) || end != 0 ||
        !peek(begin + skip * width, raw, (length - skip) * width))
        return 0;
    unsigned long position = 0;
    for (uint64_t i = 0; i < length - skip; i++) {
        uint32_t letter = 0;
        memcpy(&letter, raw + i * width, width);
        if (letter < 0x20 || letter >= (ascii ? 0x7fu : 0x110000u))
            return 0;
        if (position + 5 < size)
            position += encode(letter, into + position);
    }
    into[position] = 0;
    return 1;
}

/* Write the string `object`.  Its kind is guessed and checked, as its position in the object differs between versions. */
static void text_of(uint64_t object, char *into, unsigned long size)
{
    uint64_t length;
    into[0] = 0;
    if (!peek(object + at.length, &length, 8) || length == 0 || length > 100000)
        return;
    if (read_text(object + at.text, length, 1, 1, into, size))
        return;
    for (unsigned width = 1; width <= 4; width *= 2)
        if (read_text(object + at.text + 16, length, width, 0, into, size))
            return;
    into[0] = 0;
}

static void text_at(uint64_t code, uint64_t offset, char *into, unsigned long size)
{
    uint64_t object;
    into[0] = 0;
    if (peek(code + offset, &object, 8))
        text_of(object, into, size);
}

/* A location table, read piece by piece: large functions have large ones, and a thread's stack may be small. */
struct table {
    uint64_t address, left;     /* what is not read yet */
    unsigned position, count;
    unsigned char bytes[256];
};

/* Return the next byte without going on to the one after it; -1 at the end. */
static int next_byte(struct table *table)
{
    if (table->position == table->count) {
        table->count = table->left < sizeof table->bytes ? (unsigned)table->left : (unsigned)sizeof table->bytes;
        table->position = 0;
        if (table->count == 0 || !peek(table->address, table->bytes, table->count)) {
            table->count = 0, table->left = 0;
            return -1;
        }
        table->address += table->count, table->left -= table->count;
    }
    return table->bytes[table->position];
}

static int number(struct table *table)
{
    unsigned result = 0;
    int byte;
    for (unsigned shift = 0; (byte = next_byte(table)) >= 0; shift += 6) {
        table->position++;
        if (shift < 30)
            result |= (unsigned)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return result & 1 ? -(int)(result >> 1) : (int)(result >> 1);
}

/* Find the line of an instruction (in bytes from the code's first) in a location table of 3.11 and later; 0 if it has
   none. */
static uint32_t line_of(struct table *table, uint32_t line, uint64_t instruction)
{
    uint64_t position = 0;
    for (int first; (first = next_byte(table)) >= 0;) {
        table->position++;
        unsigned code = (unsigned)first >> 3 & 15;
        if (code == 14 || code == 13)
            line += (uint32_t)number(table);
        else if (code >= 10 && code <= 12)
            line += code - 10;
        position += 2 * (((unsigned)first & 7) + 1);
        if (position > instruction)
            return code == 15 ? 0 : line;
        for (int byte; (byte = next_byte(table)) >= 0 && !(byte & 128);)
            table->position++;
    }
    return 0;
}

static uint32_t line_at(uint64_t code, uint64_t instruction)
{
    struct table table = {0};
    uint64_t lines;
    uint32_t first;
    if (!peek(code + at.firstlineno, &first, 4))
        return 0;
    if (!peek(code + at.linetable, &lines, 8) || !peek(lines + at.length, &table.left, 8))
        return first;
    table.address = lines + at.bytes;
    uint32_t line = line_of(&table, first, instruction & UINT32_MAX);
    return line ? line : first;
}

/* Write file and function of the code of a place.  Each instruction of a loop is a separate place, so the site described
   last with the same code is copied from. */
static void describe_code(struct place place, struct site *site)
{
    uint64_t code = place.code;
    static uint32_t described[256];
    uint32_t *latest = &described[(code >> 4) * 0x9E3779B97F4A7C15u >> 56];
    const struct site *known = map ? &map->sites[__atomic_load_n(latest, __ATOMIC_RELAXED)] : NULL;
    if (known != NULL && is_reserved(known) && __atomic_load_n(&known->ready, __ATOMIC_ACQUIRE) == 2 &&
        known->place.code == code && known->place.instruction >> 32 == place.instruction >> 32) {
        memcpy(site->file, known->file, sizeof site->file);
        memcpy(site->function, known->function, sizeof site->function);
        return;
    }
    text_at(code, at.filename, site->file, sizeof site->file);
    text_at(code, at.qualname, site->function, sizeof site->function);
    if (map != NULL && site > map->sites && site < map->sites + SITES_MAX)     /* not one on the stack */
        __atomic_store_n(latest, (uint32_t)(site - map->sites), __ATOMIC_RELAXED);
}

void describe(struct place place, struct site *site)
{
    describe_code(place, site);
    site->line = line_at(place.code, place.instruction);
    if (place.caller == 0)
        return;
    text_at(place.caller, at.filename, site->caller_file, sizeof site->caller_file);
    text_at(place.caller, at.qualname, site->caller_function, sizeof site->caller_function);
    site->caller_line = line_at(place.caller, place.caller_instruction);
}

struct function { const char *file, *name; };

static int is_among(const char *path, const char *name, const struct function *functions, unsigned long count)
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (unsigned long i = 0; i < count; i++)
        if (strcmp(base, functions[i].file) == 0 && strcmp(name, functions[i].name) == 0)
            return 1;
    return 0;
}

/* True if a function of the standard library takes a lock to wait for other threads, which is no contention.  The last
   entries are pool threads that wait for work in a SimpleQueue; until 3.12 that used a lock, and not every build has the
   queue in a file of its own (see called_from). */
int waits_for_threads(const char *file, const char *function)
{
    static const struct function found[] = {
        {"threading.py", "Condition.wait"}, {"threading.py", "Thread.join"},
        {"threading.py", "Thread._wait_for_tstate_lock"}, {"threading.py", "_shutdown"}, {"thread.py", "_worker"},
        {"pool.py", "Pool._handle_tasks"},
    };
    return is_among(file, function, found, sizeof found / sizeof *found);
}

/* True if the calling thread is in a function of the standard library that waits for other threads, or below it. */
int within_a_wait(void)
{
    static const struct function found[] = {
        {"threading.py", "Condition.wait"}, {"threading.py", "Event.wait"}, {"threading.py", "Barrier.wait"},
        {"threading.py", "Semaphore.acquire"}, {"threading.py", "Thread.join"}, {"_base.py", "Future.result"},
        {"_base.py", "Future.exception"},
    };
    struct frame frame;
    char file[FILE_NAME], function[FUNCTION_NAME];
    uint64_t address = innermost(own_thread_state(), OWN);
    for (int depth = 0; depth < OUTERMOST && find_frame(address, &frame, OWN); depth++) {
        if (origin_of(&frame) != LIBRARY)
            return 0;
        text_at(frame.code, at.filename, file, sizeof file);
        text_at(frame.code, at.qualname, function, sizeof function);
        if (is_among(file, function, found, sizeof found / sizeof *found))
            return 1;
        address = member(frame.own, at.previous);
    }
    return 0;
}

/* Write the function that the thread runs: the outermost one that is not threading's own. */
int own_entry(char *into, unsigned long size)
{
    struct frame frame;
    uint64_t last[OUTERMOST];
    unsigned count = 0;
    uint64_t address = innermost(own_thread_state(), OWN);
    for (; count < DEPTH_MAX && find_frame(address, &frame, OWN); address = member(frame.own, at.previous))
        last[count++ % OUTERMOST] = frame.code;
    for (unsigned i = count; i > 0 && i + OUTERMOST > count; i--) {
        char file[FILE_NAME], function[FUNCTION_NAME];
        uint64_t code = last[(i - 1) % OUTERMOST];
        text_at(code, at.filename, file, sizeof file);
        const char *base = strrchr(file, '/');
        if (file[0] == 0 || strcmp(base ? base + 1 : file, "threading.py") == 0)
            continue;
        text_at(code, at.qualname, function, sizeof function);
        snprintf(into, size, "%s", function);
        return 1;
    }
    return 0;
}
