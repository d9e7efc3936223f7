/* Bytes that grow: text that is put together, read and shown. */

#ifndef MUSTER_TEXT_H
#define MUSTER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *at;
    size_t size;
    size_t room;
};

/* Add words, bytes, or bytes as a string of JSON: false, and nothing is added, if they are no text. */
void say(struct text *text, const char *words);
void add(struct text *text, const char *bytes, size_t size);
bool add_json(struct text *text, const char *bytes, size_t size);

/* As Python has it: the shortest form, and no halves of pairs. */
bool is_utf8(const char *bytes, size_t size);

/* For so much more, and the zero behind it. */
void make_room(struct text *text, size_t size);

/* Up to the end, or to about so many bytes. */
bool read_all(int from, size_t most, struct text *into);

/* Everything, whatever a pipe takes at once. */
void show(int to, const char *bytes, size_t size);

/* Say so, and end. */
void fail(const char *command, const char *text) __attribute__((noreturn));

#endif
