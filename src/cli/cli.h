/* cli: the verbs, each in a file of its own with its row and its flags (config.h). A verb gets the
 * words behind its name and returns the exit code; messages go out through fail(), which cli_main
 * prints. Flags, -n, --help and the threads of OpenMP are settled before a verb runs, and a
 * configuration has been read once, strictly, before any rank is started. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include "config.h"
#include "parallel.h"

/* Verb i of them all, in the order of the help. */
int verb_count(void);
const Verb *verb_at(int i);

/* The words of main: finds the verb, runs it, prints what failed. Returns the exit code. */
int cli_main(int argc, char **argv);

#endif
