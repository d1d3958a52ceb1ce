/* cli: the verbs. A verb gets the words behind its name (argv[0] is the name) and returns the exit code; messages go out
 * through fail(), which main prints. bench has a file for each of its three: bench_comm.c, bench_step.c, bench_io.c. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include "config.h"
#include "parallel.h"

typedef struct Verb {
    const char *name;  /* "train", "data import" */
    const char *usage; /* behind "weft NAME" */
    const char *help;  /* one line */
    const char *more;  /* further lines for `weft NAME --help`; may be NULL */
    bool keys;         /* takes key=value: the help lists all keys */
    Status (*run)(int argc, char **argv);
} Verb;
extern const Verb verbs[];
extern const int verb_count;

Status verb_train(int argc, char **argv);
Status verb_eval(int argc, char **argv);
Status verb_plan(int argc, char **argv);
Status verb_data_import(int argc, char **argv);
Status verb_data_info(int argc, char **argv);
Status verb_data_check(int argc, char **argv);
Status verb_ckpt_info(int argc, char **argv);
Status verb_ckpt_check(int argc, char **argv);
Status verb_ckpt_diff(int argc, char **argv);
Status verb_help(int argc, char **argv);
Status bench_comm(int argc, char **argv);
Status bench_step(int argc, char **argv);
Status bench_io(int argc, char **argv);

/* `weft ...` from the words of main on: finds the verb, runs it, prints what failed. Returns the exit code. */
int cli_main(int argc, char **argv);

#endif
