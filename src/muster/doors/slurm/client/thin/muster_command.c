/* What most Slurm commands run where there was a C compiler: send the words to the server, print
 * what comes back.
 *
 * It knows the common case alone: one request over the unix socket, and an answer that ends the
 * command. For everything else it becomes the Python client, muster_thin.py, which knows it all;
 * an answer that is there already is handed over, so that nothing is ever asked twice.
 */

#define _GNU_SOURCE

#include "muster_call.h"
#include "muster_text.h"
#include "muster_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARK "# A Slurm command of Muster; `muster slurm install` wrote it."
#define READ_STDIN "{\"type\":\"read\",\"file\":null,\"otherwise\":null}"

enum { MOST_SETTINGS = 16384, NOTHING = -1 };

/* What this copy of the program is, written behind the mark by whoever installs it: texts with a
 * zero behind each, in the order of `struct settings`. It is no constant, and not static: the
 * compiler must not conclude that nothing is there. */
extern char SETTINGS[MOST_SETTINGS];
char SETTINGS[MOST_SETTINGS] = MARK;

struct settings {
    const char *command;
    const char *home;   /* of the server when the command was installed, or empty */
    const char *python; /* runs `code`, behind which a descriptor and a bracket are missing */
    const char *code;
    const char *wanted; /* of the environment */
};

static struct settings settings(void);
static bool is_far(void);
static bool is_stdin_wanted(struct answer answer);
static int handed_over(struct text received, const char *command);
static void become_python(struct settings known, char **words, int handed)
    __attribute__((noreturn));

int main(int argc, char **argv)
{
    char **words = argc > 0 ? argv + 1 : argv;
    struct settings known = settings();
    struct sockaddr_un server;
    struct text call = {0}, script = {0};

    if (is_far() || !find_server(&server, known.home) || !add_call(&call, known.wanted, words))
        become_python(known, words, NOTHING);
    if (strcmp(known.command, "sbatch") == 0)
        add_named_script(&script, words);
    for (bool is_first = true;; is_first = false) {
        int connection = connected(&server);
        if (connection < 0 && is_first)
            become_python(known, words, NOTHING);
        struct text received = asked(connection, known.command, call, script);
        struct answer answer;
        bool is_ours = is_read(received, &answer)
            && (answer.then_size == 0 || (is_first && is_stdin_wanted(answer)));
        if (!is_ours)
            become_python(known, words, handed_over(received, known.command));
        show(STDERR_FILENO, answer.err, answer.err_size);
        show(STDOUT_FILENO, answer.out, answer.out_size);
        if (answer.then_size == 0)
            _exit(answer.code);
        script.size = 0;
        add_stdin(&script, known.command);
        free(received.at);
    }
}

static struct settings settings(void)
{
    const char *found[5];
    const char *at = SETTINGS;

    for (size_t each = 0; each < 5; each++) {
        at += strnlen(at, (size_t)(SETTINGS + MOST_SETTINGS - 1 - at)) + 1;
        found[each] = at < SETTINGS + MOST_SETTINGS ? at : "";
    }
    return (struct settings){found[0], found[1], found[2], found[3], found[4]};
}

/* Over a network only Python knows the way. */
static bool is_far(void)
{
    const char *url = getenv("MUSTER_URL");

    return url != NULL && strncmp(url, "http", 4) == 0;
}

static bool is_stdin_wanted(struct answer answer)
{
    return answer.then_size == strlen(READ_STDIN)
        && memcmp(answer.then, READ_STDIN, answer.then_size) == 0;
}

/* A descriptor from which Python reads what was received. */
static int handed_over(struct text received, const char *command)
{
    int file = memfd_create("muster", 0);

    if (file < 0)
        fail(command, "the answer cannot be kept: no room in memory");
    show(file, received.at, received.size);
    lseek(file, 0, SEEK_SET);
    return file;
}

static void become_python(struct settings known, char **words, int handed)
{
    char number[16];
    struct text code = {0};
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    char **argv = calloc(count + 5, sizeof *argv);
    if (argv == NULL)
        fail(known.command, "out of memory");
    snprintf(number, sizeof number, "%d", handed);
    say(&code, known.code);
    say(&code, handed == NOTHING ? "None" : number);
    say(&code, ")");
    argv[0] = (char *)known.python;
    argv[1] = "-IS";
    argv[2] = "-c";
    argv[3] = code.at;
    memcpy(argv + 4, words, count * sizeof *argv);
    execv(known.python, argv);
    fail(known.command, "its Python is gone; install the commands again: muster slurm install");
}
