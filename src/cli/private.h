/* What the verbs share: flags, the start of a job, help. */
#ifndef WEFT_CLI_PRIVATE_H
#define WEFT_CLI_PRIVATE_H

#include "cli.h"

/* A flag of a verb: value is set where it takes one (--flag VALUE, --flag=VALUE), else on. */
typedef struct Flag {
    const char *name;
    const char **value;
    bool *on;
} Flag;
/* Takes the flags out of the words; *argc words stay, in order. ERR_USAGE: unknown flag, twice, value missing. Words
 * behind "--" are no flags. */
Status flags_take(int *argc, char **argv, const Flag *flag, int count);

/* A configuration and the ranks that work on it. */
typedef struct Job {
    Config *config; /* owned */
    World world;
} Job;
/* argv: CONFIG [key=value ...]. What only some ranks may find (a file that is missing on one node) is agreed on after MPI
 * is up; what all find alike ends them before. Release with job_close also where it failed. Collective. */
Status job_open(Job *job, int argc, char **argv);
/* Agrees on status, ends MPI. Collective. */
Status job_close(Job *job, Status status);
/* The checks that need no MPI: CONFIG is there, its model is known, with VERB_DATA it names data. */
Status job_check(Config **config, const Verb *verb, int argc, char **argv);

/* True under a launcher; this process's rank as its environment says, else 0. */
int launch_rank(void);
bool launched(void);
/* Becomes `mpirun -n ranks weft ...` with the words of main but -n; returns only where that failed. threads: of each
 * rank, 0 for its share of the cores. */
Status launch_ranks(int ranks, int threads, char **words);
/* Decides how waiting OpenMP threads wait. libgomp reads its settings once, when it is loaded, so the process executes
 * itself again where they must change; returns otherwise. */
void threads_settle(int threads, char **words);
/* The same settings for processes that this one starts. */
void threads_export(int ranks, int threads);
/* Open MPI gives each rank a terminal of its own for stdout, even where mpirun writes to a file. */
void terminal_settle(void);

void help_verb(FILE *out, const Verb *verb);
void help_all(FILE *out);
void help_group(FILE *out, const char *group); /* verbs of "data" */
void print_version(FILE *out);

#endif
