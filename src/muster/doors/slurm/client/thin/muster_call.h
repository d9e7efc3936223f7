/* What is sent: the words of a command and what it finds around it. */

#ifndef MUSTER_CALL_H
#define MUSTER_CALL_H

#include "muster_text.h"

/* The call, without the bracket that closes it; false if something in it is no text.
 * wanted: how names of variables begin that are sent, up to an empty one; * is all of them. */
bool add_call(struct text *call, const char *wanted, char **words);

/* The first word that looks like a script is sent along, which saves a second request. The server
 * knows which word is meant, and asks for that one if this was not it. */
void add_named_script(struct text *script, char **words);

/* The script that is read from stdin, or the end of the command. */
void add_stdin(struct text *script, const char *command);

#endif
