/* What the verbs share: common flags, the start of a job, help. */
#ifndef WEFT_CLI_PRIVATE_H
#define WEFT_CLI_PRIVATE_H

#include "cli.h"
#include "data.h"

#include <signal.h>

/* -n N: a verb that has it among its flags runs on N ranks. Its options have an int64_t `ranks`. */
enum { RANKS_MAX = 65536 };
#define FLAG_RANKS(Options)                                                                        \
    {                                                                                              \
        "-n", FLAG_FIELD(Options, ranks),                                                          \
            .value = "N", .lo = 1, .hi = RANKS_MAX,                                                \
            .help = "number of ranks to start with mpirun; under mpirun or srun leave it out"      \
    }
#define FLAG_CHECKPOINT(Options)                                                                   \
    {                                                                                              \
        "--checkpoint", FLAG_FIELD(Options, checkpoint),                                           \
            .value = "FILE", .help = "instead of the run's best.h5, else its newest checkpoint"    \
    }

/* What samples are, without a file: --input 3x224x224, or tokens, or 13+26: numbers and fields of
 * ids. */
#define INPUT_VALUE "CxHxW|tokens|D+F"
typedef struct Input {
    /* (1,C,H,W), (1,D); ndim 0: none */
    Shape shape;
    bool tokens;
    /* of ids; 0: none */
    int64_t fields;
} Input;
/* ERR_USAGE where it is neither. */
Status input_parse(const char *text, Input *input);
/* A training set of that many such samples, which no file holds: labels of model.classes classes
 * (mse: as many numbers), or model.vocab tokens. ERR_USAGE that names the key where the
 * configuration does not say. */
Status input_set(DataSet *set, const Input *input, const Config *config, int64_t samples);
/* Without --input: opens data.train, of which samples must have one size. ERR_NOINPUT: it is not
 * named or not here; ERR_CONFIG: pictures of many sizes, which nothing crops; the message names
 * --input. */
Status input_train(DataSet *set, const Config *config);

/* A configuration and the ranks that work on it. */
typedef struct Job {
    /* owned */
    Config *config;
    World world;
} Job;
/* argv: CONFIG [key=value ...]. Any rank may be alone in finding fault with it: all of them then
 * say the same. Release with job_close also where it failed. Collective. */
Status job_open(Job *job, int argc, char **argv);
/* Ends a rank that found a fault (fail_message) before job_open: starts MPI to tell the others, who
 * are in job_open or here. Returns what all agree on. Not to be called after job_open.
 * Collective. */
Status job_refuse(Status mine);
/* Refuses ranks that run another build or read another configuration than rank 0, naming the first
 * of them. Collective. */
Status job_same(const Job *job);
/* The checkpoint `given`, else the run's best.h5, else its newest one. *path owned by the caller.
 * Collective. */
Status job_checkpoint(const Job *job, const char *given, char **path);
/* What no parameter is updated for needs no servers, whatever trained. */
void job_serverless(Config *config);
/* One rank, so many samples at a time, and no memory for what only training needs. */
void job_alone(Config *config, int64_t samples);
/* Agrees on status, ends MPI. Collective. */
Status job_close(Job *job, Status status);
/* The checks that need no MPI: CONFIG is there, its model is known, with VERB_DATA it names
 * data. */
Status job_check(Config **config, const Verb *verb, int argc, char **argv);

/* True under a launcher; this process's rank as its environment says, else 0. */
int launch_rank(void);
bool launched(void);
/* Ranks to be started: threads of each, 0 for its share of the cores; the words of main.
 * checkpoints: where a verb that lasts (VERB_LASTS) has what it goes on from; NULL: another verb.
 * Borrowed. */
typedef struct Ranks {
    int count, threads;
    /* train.hang_s */
    double hang_s;
    char **words;
    char *checkpoints;
    /* train_leave_out */
    const char *leave_out;
} Ranks;
/* The words of a command or of a run, each owned; NULL stands behind the last. Begin with {0},
 * release word with words_free. */
typedef struct Words {
    int count;
    char **word;
} Words;
/* Takes the word over. */
void words_add(Words *w, char *word);
/* NULL: nothing to do. */
void words_free(char **word);
/* Runs `mpirun -n count weft ...` with the words of main but -n, and ends with its exit code;
 * returns only where it could not be started. */
Status launch_ranks(const Ranks *ranks);
/* What ranks on this host have to find in the environment. */
void launch_prepare(int ranks, int threads);
/* The command under mpirun, on this host. Release with words_free. */
char **mpirun_words(int ranks, char *const *command);
/* "the ranks could not be started; mpirun says: ..." where mpirun cannot start so many of the
 * program on this host: they are asked for their version. NULL: it can, or does not end. Owner: the
 * caller. */
char *mpirun_refusal(int ranks, char *program);
/* quiet: not its own words on a rank that failed, nor on one that it could not start. */
void open_mpi_settings(bool quiet);
bool in_batch_job(void);
bool is_open_mpi(void);
/* A command that is started and waited for: `weft words[1] ...` on its ranks, with what they print
 * in the file log. */
typedef struct Launch {
    /* threads: of each rank */
    int ranks, threads;
    /* borrowed, NULL at the end; words[0] is this program's name */
    char *const *words;
    const char *log;
} Launch;
/* The signals that launch_wait waits for must be blocked: see launch_block. *code: the command's
 * exit code; *stopped: 0, or the signal that came meanwhile and has ended all ranks. */
Status launch_wait(const Launch *launch, int *code, int *stopped);
void launch_block(sigset_t *before);
/* Decides how waiting OpenMP threads wait. libgomp reads its settings once, when it is loaded, so
 * the process executes itself again where they must change; returns otherwise. */
void threads_settle(int threads, char **words);
/* The same settings for processes that this one starts. */
void threads_export(int ranks, int threads);
/* Open MPI gives each rank a terminal of its own for stdout, even where mpirun writes to a file. */
void terminal_settle(void);

/* FILE [key=value ...]: opens a data file; the keys of section data name what it calls its arrays.
 * *config: owned by the caller. */
Status open_data(int argc, char **argv, DataSet *set, Config **config);
/* The configuration of checkpoint `from`, or the file `instead`, if not NULL, with key=value words.
 * ERR_CONFIG: it holds none, as an imported one. Owner of *config: the caller. */
Status checkpoint_config(Config **config, const char *from, const char *instead, int count,
                         char **overrides);

void help_verb(FILE *out, const Verb *verb);
void help_all(FILE *out);
/* verbs of "data" */
void help_group(FILE *out, const char *group);
void print_version(FILE *out);

/* bench_pictures.c: what `weft bench io` measures of a file of encoded pictures, in so many
 * seconds. */
Status bench_pictures(const char *path, double seconds, bool json);

#endif
