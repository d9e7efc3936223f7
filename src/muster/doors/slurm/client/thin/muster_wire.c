/* The way to the server and back: one request over the unix socket. */

#define _GNU_SOURCE

#include "muster_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PART = 65536, NONE = -1 };

static bool place(struct sockaddr_un *server, const char *folder, const char *name);
static struct text request(const char *command, struct text call, struct text script);
static void send_all(int connection, struct text sent);
static struct text answered(int connection);
static bool is_complete(struct text received);
static bool is_counted(const char *at, const char *end, struct answer *found);
static bool read_number(const char **at, const char *end, size_t *number);
static size_t head_size(struct text received);
static const char *header(struct text received, size_t head, const char *name);

bool find_server(struct sockaddr_un *server, const char *home)
{
    const char *url = getenv("MUSTER_URL");
    const char *given = getenv("MUSTER_HOME");

    if (url != NULL && strncmp(url, "unix:", 5) == 0)
        return place(server, url + 5, "");
    if (given == NULL || !*given)
        given = home;
    if (*given)
        return place(server, given, "/muster.sock");
    if (getuid() != 0) {
        const char *own = getenv("HOME");
        if (own == NULL || !place(server, own, "/.local/state/muster/muster.sock"))
            return false;
        if (access(server->sun_path, F_OK) == 0)
            return true;
    }
    return place(server, "/var/lib/muster", "/muster.sock");
}

static bool place(struct sockaddr_un *server, const char *folder, const char *name)
{
    memset(server, 0, sizeof *server);
    server->sun_family = AF_UNIX;
    int size = snprintf(server->sun_path, sizeof server->sun_path, "%s%s", folder, name);
    return size > 0 && (size_t)size < sizeof server->sun_path;
}

int connected(const struct sockaddr_un *server)
{
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connection < 0)
        return NONE;
    for (;;) {
        if (connect(connection, (const struct sockaddr *)server, sizeof *server) == 0)
            return connection;
        if (errno != EINTR)
            break;
    }
    close(connection);
    return NONE;
}

struct text asked(int connection, const char *command, struct text call, struct text script)
{
    struct text received = {0};

    if (connection < 0)
        return received;
    struct text sent = request(command, call, script);
    send_all(connection, sent);
    free(sent.at);
    received = answered(connection);
    close(connection);
    return received;
}

static struct text request(const char *command, struct text call, struct text script)
{
    const char *token = getenv("MUSTER_TOKEN");
    char length[32];
    struct text sent = {0};

    snprintf(length, sizeof length, "%zu", call.size + script.size + 1);
    say(&sent, "POST /v1/slurm/");
    say(&sent, command);
    say(&sent, " HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n");
    say(&sent, "Content-Type: application/json\r\nContent-Length: ");
    say(&sent, length);
    if (token != NULL && *token) {
        say(&sent, "\r\nAuthorization: Bearer ");
        say(&sent, token);
    }
    say(&sent, "\r\n\r\n");
    add(&sent, call.at, call.size);
    add(&sent, script.at, script.size);
    say(&sent, "}");
    return sent;
}

/* A server that takes no more may have said why: that is read like any answer. */
static void send_all(int connection, struct text sent)
{
    size_t done = 0;

    while (done < sent.size) {
        ssize_t size = send(connection, sent.at + done, sent.size - done, MSG_NOSIGNAL);
        if (size >= 0)
            done += (size_t)size;
        else if (errno != EINTR)
            return;
    }
}

static struct text answered(int connection)
{
    struct text received = {0};

    while (!is_complete(received)) {
        make_room(&received, PART);
        size_t room = received.room - received.size - 1;
        ssize_t size = recv(connection, received.at + received.size, room, 0);
        if (size > 0)
            received.size += (size_t)size;
        else if (size == 0 || errno != EINTR)
            break;
    }
    return received;
}

bool is_read(struct text received, struct answer *found)
{
    size_t head = head_size(received);

    if (head <= 12 || !is_complete(received) || memcmp(received.at + 8, " 200", 4) != 0)
        return false;
    if (header(received, head, "transfer-encoding:") != NULL)
        return false;
    return is_counted(received.at + head, received.at + received.size, found);
}

static bool is_complete(struct text received)
{
    size_t length = 0, head = head_size(received);

    if (head == 0)
        return false;
    const char *at = header(received, head, "content-length:");
    if (at == NULL || !read_number(&at, received.at + head, &length))
        return false;
    return received.size - head >= length;
}

/* A line with the code and the sizes of three parts, and then the parts. */
static bool is_counted(const char *at, const char *end, struct answer *found)
{
    size_t code, sizes[3];

    if (!read_number(&at, end, &code) || code > 255)
        return false;
    for (int each = 0; each < 3; each++)
        if (!read_number(&at, end, &sizes[each]))
            return false;
    if (at == end || *at++ != '\n')
        return false;
    size_t left = (size_t)(end - at);
    if (sizes[0] > left || sizes[1] > left - sizes[0] || sizes[2] != left - sizes[0] - sizes[1])
        return false;
    *found = (struct answer){
        .code = (int)code,
        .err = at,
        .out = at + sizes[0],
        .then = at + sizes[0] + sizes[1],
        .err_size = sizes[0],
        .out_size = sizes[1],
        .then_size = sizes[2],
    };
    return true;
}

/* The next one, behind blanks; never one that could overflow. */
static bool read_number(const char **at, const char *end, size_t *number)
{
    const char *digit = *at;
    size_t found = 0;

    while (digit < end && *digit == ' ')
        digit++;
    const char *first = digit;
    for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
        if (digit - first > 15)
            return false;
        found = found * 10 + (size_t)(*digit - '0');
    }
    *at = digit;
    *number = found;
    return digit != first;
}

/* With the empty line at its end; nothing while that is missing. */
static size_t head_size(struct text received)
{
    if (received.size == 0)
        return 0;
    const char *end = memmem(received.at, received.size, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - received.at) + 4;
}

/* What stands behind this name, which is written in small letters. */
static const char *header(struct text received, size_t head, const char *name)
{
    const char *at = received.at;
    const char *end = received.at + head;

    while ((at = memmem(at, (size_t)(end - at), "\r\n", 2)) != NULL) {
        at += 2;
        if ((size_t)(end - at) > strlen(name) && strncasecmp(at, name, strlen(name)) == 0)
            return at + strlen(name);
    }
    return NULL;
}
