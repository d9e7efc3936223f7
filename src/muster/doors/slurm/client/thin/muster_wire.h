/* The way to the server and back: one request over the unix socket. */

#ifndef MUSTER_WIRE_H
#define MUSTER_WIRE_H

#include "muster_text.h"

#include <sys/un.h>

struct answer {
    int code;
    const char *err, *out, *then;
    size_t err_size, out_size, then_size;
};

/* As MUSTER_URL or MUSTER_HOME say, or as it was when the command was installed, or the usual
 * place; false if only Python can tell. */
bool find_server(struct sockaddr_un *server, const char *home);

/* To the server, or a negative number. */
int connected(const struct sockaddr_un *server);

/* What the server said, whole or not; nothing without a connection. */
struct text asked(int connection, const char *command, struct text call, struct text script);

/* Is it an answer of the form that is known here, and all of it? */
bool is_read(struct text received, struct answer *found);

#endif
