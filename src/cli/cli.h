/* cli: the verbs. A verb gets the words behind its name and returns the exit code; messages go out through fail(), which
 * cli_main prints. -n, --help and the threads of OpenMP are settled before a verb runs, and a configuration has been read
 * once, strictly, before any rank is started. bench has a file for each of its three. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include "config.h"
#include "parallel.h"

enum {
    VERB_CONFIG = 1,  /* the first word that is no flag is CONFIG, the others are key=value */
    VERB_DATA = 2,    /* data.train must be set */
    VERB_RANKS = 4,   /* -n N starts ranks */
    VERB_THREADS = 8, /* computes with OpenMP */
    /* works for long: a signal asks it to stop (stop_begin), and output that cannot be written is no reason to fail */
    VERB_LASTS = 16
};

typedef struct Verb {
    const char *name;   /* "train", "data import" */
    const char *usage;  /* behind "weft NAME" */
    const char *help;   /* one line */
    const char *more;   /* further lines for `weft NAME --help`; may be NULL */
    const char *valued; /* flags that take a value: "|--checkpoint|"; may be NULL */
    int traits;         /* VERB_ bits */
    Status (*run)(int argc, char **argv);
} Verb;
extern const Verb verbs[];
extern const int verb_count;

Status verb_train(int argc, char **argv);
Status verb_eval(int argc, char **argv);
Status verb_generate(int argc, char **argv);
Status verb_plan(int argc, char **argv);
Status verb_verify(int argc, char **argv);
Status verb_import_idx(int argc, char **argv);
Status verb_import_cifar(int argc, char **argv);
Status verb_import_text(int argc, char **argv);
Status verb_import_tokens(int argc, char **argv);
Status verb_data_info(int argc, char **argv);
Status verb_data_check(int argc, char **argv);
Status verb_ckpt_info(int argc, char **argv);
Status verb_ckpt_check(int argc, char **argv);
Status verb_ckpt_diff(int argc, char **argv);
Status verb_help(int argc, char **argv);
Status bench_comm(int argc, char **argv);
Status bench_step(int argc, char **argv);
Status bench_io(int argc, char **argv);

/* The words of main: finds the verb, runs it, prints what failed. Returns the exit code. */
int cli_main(int argc, char **argv);

#endif
