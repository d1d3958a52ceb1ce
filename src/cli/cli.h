/* The command line. Each verb ("train", "data info") is a row, a Verb (config.h). The row and the
 * verb's flags are in the file of the verb. A verb's function gets the words after its name that
 * are no flags, and returns a Status, which becomes the exit code. It reports an error by fail(),
 * and cli_main prints the message. Before a verb runs, cli_main handles --help, the flags, -n and
 * OpenMP's threads. It also reads and checks the configuration, so that errors in it are found
 * before any rank is started. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include "config.h"
#include "parallel.h"

int verb_count(void);
/* Returns verb i in the order of the help text, or NULL if i is not below the number of verbs. */
const Verb *verb_at(int i);
/* Checks that every row of the program's tables (verbs, words that keys accept, layers, checks of
 * doctor) is complete. ERR_BUG names the first row that is not. Called at every start. */
Status rows_check(void);

/* Finds the verb in main's arguments, runs it and prints its error, if any. Returns the exit
 * code. */
int cli_main(int argc, char **argv);

#endif
