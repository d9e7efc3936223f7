/* Bytes that grow: text that is put together, read and shown. */

#define _GNU_SOURCE

#include "muster_text.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ROOM = 65536, BROKEN_PIPE = 141 };

static size_t character_size(const unsigned char *at, size_t left);

void say(struct text *text, const char *words)
{
    add(text, words, strlen(words));
}

void add(struct text *text, const char *bytes, size_t size)
{
    if (size == 0)
        return;
    make_room(text, size);
    memcpy(text->at + text->size, bytes, size);
    text->size += size;
    text->at[text->size] = '\0';
}

bool add_json(struct text *text, const char *bytes, size_t size)
{
    static const char DIGITS[] = "0123456789abcdef";
    size_t plain = 0;

    if (!is_utf8(bytes, size))
        return false;
    say(text, "\"");
    for (size_t each = 0; each < size; each++) {
        unsigned char byte = (unsigned char)bytes[each];
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        char escaped[] = {'\\', 'u', '0', '0', DIGITS[byte >> 4], DIGITS[byte & 15]};
        add(text, bytes + plain, each - plain);
        add(text, escaped, sizeof escaped);
        plain = each + 1;
    }
    add(text, bytes + plain, size - plain);
    say(text, "\"");
    return true;
}

bool is_utf8(const char *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t left = size;

    while (left > 0) {
        size_t length = *at < 0x80 ? 1 : character_size(at, left);
        if (length == 0)
            return false;
        at += length;
        left -= length;
    }
    return true;
}

/* Of a character of several bytes; 0 if these are none. As Python: the shortest form, and no
 * halves of pairs. */
static size_t character_size(const unsigned char *at, size_t left)
{
    size_t length = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : 2;

    if (*at < 0xC2 || *at > 0xF4 || length > left)
        return 0;
    for (size_t each = 1; each < length; each++)
        if ((at[each] & 0xC0) != 0x80)
            return 0;
    bool is_long = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xF0 && at[1] < 0x90);
    bool is_none = (*at == 0xED && at[1] > 0x9F) || (*at == 0xF4 && at[1] > 0x8F);
    return is_long || is_none ? 0 : length;
}

void make_room(struct text *text, size_t size)
{
    static const char FULL[] = "error: out of memory\n";
    size_t room = text->room > 0 ? text->room : FIRST_ROOM;

    if (text->room > 0 && size < text->room - text->size)
        return;
    while (room - text->size <= size && room < SIZE_MAX / 4)
        room *= 2;
    char *at = realloc(text->at, room);
    if (at == NULL || room - text->size <= size) {
        show(STDERR_FILENO, FULL, strlen(FULL));
        _exit(1);
    }
    text->at = at;
    text->room = room;
}

bool read_all(int from, size_t most, struct text *into)
{
    while (into->size < most) {
        make_room(into, FIRST_ROOM);
        size_t room = into->room - into->size - 1;
        ssize_t size = read(from, into->at + into->size, room < most ? room : most);
        if (size > 0)
            into->size += (size_t)size;
        else if (size == 0)
            return true;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

void show(int to, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t done = write(to, bytes, size);
        if (done >= 0) {
            bytes += done;
            size -= (size_t)done;
        } else if (errno == EAGAIN) {
            struct pollfd until = {.fd = to, .events = POLLOUT};
            poll(&until, 1, -1);
        } else if (errno == EPIPE) {
            _exit(BROKEN_PIPE);
        } else if (errno != EINTR) {
            _exit(1);
        }
    }
}

void fail(const char *command, const char *text)
{
    struct text said = {0};

    say(&said, command);
    say(&said, ": error: ");
    say(&said, text);
    say(&said, "\n");
    show(STDERR_FILENO, said.at, said.size);
    _exit(1);
}
