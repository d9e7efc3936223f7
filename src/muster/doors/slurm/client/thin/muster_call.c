/* What is sent: the words of a command and what it finds around it. */

#define _GNU_SOURCE

#include "muster_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FORM "1"

enum { MOST_SCRIPT = 4 * 1024 * 1024 };

static void add_environment(struct text *call, const char *wanted);
static bool is_wanted(const char *entry, const char *wanted);
static bool add_script_file(struct text *script, const char *name);
static void add_script(struct text *script, struct text content, const char *name);

bool add_call(struct text *call, const char *wanted, char **words)
{
    char folder[4096], number[16];
    struct utsname machine;
    mode_t mask = umask(022);

    umask(mask);
    say(call, "{\"form\":" FORM ",\"argv\":[");
    for (char **word = words; *word != NULL; word++) {
        if (word != words)
            say(call, ",");
        if (!add_json(call, *word, strlen(*word)))
            return false;
    }
    say(call, "],\"cwd\":");
    const char *here = getcwd(folder, sizeof folder) != NULL ? folder : "/";
    if (!add_json(call, here, strlen(here)))
        return false;
    snprintf(number, sizeof number, "%u", (unsigned)mask);
    say(call, ",\"umask\":");
    say(call, number);
    say(call, isatty(STDOUT_FILENO) ? ",\"tty\":true,\"host\":" : ",\"tty\":false,\"host\":");
    const char *host = uname(&machine) == 0 ? machine.nodename : "localhost";
    if (!add_json(call, host, strlen(host)))
        return false;
    add_environment(call, wanted);
    return true;
}

/* Backwards, because of two of one name the first counts, and in JSON it is the last. */
static void add_environment(struct text *call, const char *wanted)
{
    bool is_first = true;
    char **entry = environ;

    say(call, ",\"env\":{");
    while (*entry != NULL)
        entry++;
    while (entry-- != environ) {
        const char *value = strchr(*entry, '=');
        /* What is no text cannot be sent, and no job should depend on it. */
        if (value == NULL || value == *entry || !is_wanted(*entry, wanted)
            || !is_utf8(*entry, strlen(*entry)))
            continue;
        if (!is_first)
            say(call, ",");
        is_first = false;
        add_json(call, *entry, (size_t)(value - *entry));
        say(call, ":");
        add_json(call, value + 1, strlen(value + 1));
    }
    say(call, "}");
}

static bool is_wanted(const char *entry, const char *wanted)
{
    if (strcmp(wanted, "*") == 0)
        return true;
    for (; *wanted; wanted += strlen(wanted) + 1)
        if (strncmp(entry, wanted, strlen(wanted)) == 0)
            return true;
    return false;
}

void add_named_script(struct text *script, char **words)
{
    for (char **word = words; *word != NULL; word++)
        if (**word != '-' && add_script_file(script, *word))
            return;
}

static bool add_script_file(struct text *script, const char *name)
{
    struct text content = {0};
    struct stat found;

    /* What is no file is not even opened: that alone can wait, or rewind a tape. */
    if (stat(name, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size > MOST_SCRIPT)
        return false;
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return false;
    bool is_script = read_all(file, MOST_SCRIPT + 1, &content) && content.size <= MOST_SCRIPT
        && content.size > 2 && memcmp(content.at, "#!", 2) == 0
        && is_utf8(content.at, content.size);
    close(file);
    if (is_script)
        add_script(script, content, name);
    free(content.at);
    return is_script;
}

void add_stdin(struct text *script, const char *command)
{
    struct text content = {0};

    if (!read_all(STDIN_FILENO, MOST_SCRIPT + 1, &content))
        fail(command, "Unable to open file None");
    if (!is_utf8(content.at, content.size))
        fail(command, "the script is not UTF-8 text");
    if (content.size > MOST_SCRIPT)
        fail(command, "Job script exceeds size limit of 4194304 bytes");
    add_script(script, content, NULL);
    free(content.at);
}

static void add_script(struct text *script, struct text content, const char *name)
{
    say(script, ",\"script\":{\"name\":");
    if (name != NULL)
        add_json(script, name, strlen(name));
    else
        say(script, "null");
    say(script, ",\"text\":");
    add_json(script, content.at, content.size);
    say(script, "}");
}
