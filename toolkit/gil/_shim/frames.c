/* Where a thread is in its Python program: its own frames, and the names and lines of their code. */
#include "shim.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 1000, OUTERMOST = 8 };

static uint64_t word(uint64_t address)
{
    return *(const uint64_t *)address;
}

static uint64_t innermost(void)
{
    uint64_t state = sites_known ? own_thread_state() : 0;
    if (state == 0)
        return 0;
    uint64_t frame = word(state + at.state_frame);
    return python_version >> 16 == 0x030c && frame != 0 ? word(frame) : frame;
}

/* Frames that the interpreter puts between those of functions have an owner of their own, and no code to tell. */
static uint64_t of_code(uint64_t frame)
{
    for (int depth = 0; frame != 0 && depth < DEPTH_MAX; depth++, frame = word(frame + at.previous))
        if (*(const unsigned char *)(frame + at.owner) <= at.last_owner)
            return frame;
    return 0;
}

static uint64_t code_of(uint64_t frame)
{
    return word(frame + at.executable) & ~(uint64_t)7;      /* the low bits are tags */
}

/* Find the bytecode that the frame runs: free-threaded builds from 3.14 on have a copy for each thread. */
static uint64_t bytecode(uint64_t frame, uint64_t code)
{
    uint64_t copies, copy;
    if (at.tlbc == 0)
        return code + at.bytecode;
    int32_t index = *(const int32_t *)(frame + at.tlbc_index);
    if (index > 0 && index < 65536 && peek(code + at.tlbc, &copies, 8) && copies != 0 &&
        peek(copies + 8 + 8 * (uint64_t)index, &copy, 8) && copy != 0)
        return copy;
    return code + at.bytecode;
}

int own_place(struct place *place)
{
    uint64_t frame = of_code(innermost());
    if (frame == 0)
        return 0;
    place->code = code_of(frame);
    place->instruction = word(frame + at.instruction) - bytecode(frame, place->code);
    return 1;
}

/* Write one character in UTF-8; return how many bytes it took. */
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

/* Read `length` characters of `width` bytes; fails where they are not text that ends there. */
static int read_text(uint64_t begin, uint64_t length, unsigned width, int ascii, char *into, unsigned long size)
{
    unsigned char raw[1024];
    uint64_t most = size - 1 < sizeof raw / width ? size - 1 : sizeof raw / width;
    uint64_t skip = length > most ? length - most : 0;      /* the end of a path tells more than its beginning */
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

/* Write the string `object`.  Its kind is tried rather than read: where it is noted changed between versions. */
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

static const unsigned char *number(const unsigned char *from, const unsigned char *end, int *value)
{
    unsigned result = 0;
    for (unsigned shift = 0; from < end; shift += 6) {
        unsigned char byte = *from++;
        if (shift < 30)
            result |= (unsigned)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    *value = result & 1 ? -(int)(result >> 1) : (int)(result >> 1);
    return from;
}

/* Find the line of an instruction (in bytes from the code's first) in a location table of 3.11 and later. */
static uint32_t line_of(const unsigned char *table, uint64_t size, uint32_t line, uint64_t instruction)
{
    const unsigned char *end = table + size;
    uint64_t position = 0;
    while (table < end) {
        unsigned char first = *table++;
        unsigned code = first >> 3 & 15;
        int delta = 0;
        if (code == 14 || code == 13)
            table = number(table, end, &delta);
        else if (code >= 10 && code <= 12)
            delta = (int)code - 10;
        line += (uint32_t)delta;
        position += 2 * ((first & 7) + 1);
        if (position > instruction)
            return code == 15 ? 0 : line;
        while (table < end && !(*table & 128))
            table++;
    }
    return 0;
}

static uint32_t line_at(struct place place)
{
    static _Thread_local unsigned char table[16384];
    uint64_t lines, size;
    uint32_t first;
    if (!peek(place.code + at.firstlineno, &first, 4))
        return 0;
    if (!peek(place.code + at.linetable, &lines, 8) || !peek(lines + at.length, &size, 8) || size > sizeof table ||
        !peek(lines + at.bytes, table, size))
        return first;
    uint32_t line = line_of(table, size, first, place.instruction);
    return line ? line : first;
}

void describe(struct place place, struct site *site)
{
    text_at(place.code, at.filename, site->file, sizeof site->file);
    text_at(place.code, at.qualname, site->function, sizeof site->function);
    site->line = line_at(place);
}

/* Write what the thread runs: the outermost function of it that is not threading's own. */
int own_entry(char *into, unsigned long size)
{
    uint64_t last[OUTERMOST];
    unsigned count = 0;
    for (uint64_t frame = of_code(innermost()); frame != 0 && count < DEPTH_MAX; frame = of_code(word(frame + at.previous)))
        last[count++ % OUTERMOST] = code_of(frame);
    for (unsigned i = count; i > 0 && i + OUTERMOST > count; i--) {
        char file[224], function[88];
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
