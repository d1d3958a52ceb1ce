/* Declarations shared by the verbs: common flags, the start of a job and of ranks, help. */
#ifndef WEFT_CLI_PRIVATE_H
#define WEFT_CLI_PRIVATE_H

#include "cli.h"
#include "data.h"

#include <signal.h>

/* Flag -n N: a verb that has it among its flags runs on N ranks. Its options struct has an int64_t
 * `ranks`. */
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
            .value = "FILE", .help = "checkpoint to use; by default best.h5, else the newest"      \
    }

/* The kind of samples, given without a file by --input: images as 3x224x224, tokens, or table rows
 * as 13+26 (numbers + fields of ids). */
#define INPUT_VALUE "CxHxW|tokens|D+F"
typedef struct Input {
    /* shape of a sample: (1,C,H,W) or (1,D); ndim 0: none */
    Shape shape;
    bool tokens;
    /* number of fields of ids; 0: none */
    int64_t fields;
} Input;
/* Parses such a text; ERR_USAGE if it has another form. */
Status input_parse(const char *text, Input *input);
/* Describes a training set of `samples` such samples without a file: labels of model.classes
 * classes (mse: targets of model.classes numbers), or model.vocab tokens. ERR_USAGE, naming the
 * key, if the configuration does not set it. */
Status input_set(DataSet *set, const Input *input, const Config *config, int64_t samples);
/* Used without --input: opens data.train, whose samples must have one size. ERR_NOINPUT if it is
 * not set or the file is missing; ERR_CONFIG if its pictures have several sizes and are not
 * cropped; the message names --input. */
Status input_train(DataSet *set, const Config *config);

/* A configuration and the ranks that work on it. */
typedef struct Job {
    /* owned */
    Config *config;
    World world;
} Job;
/* Reads the configuration and starts MPI. argv: CONFIG [key=value ...]. If any rank finds an error
 * in it, all ranks fail with the same message. Release with job_close, after a failure too.
 * Collective. */
Status job_open(Job *job, int argc, char **argv);
/* Ends a rank that failed (fail_message is set) before job_open: starts MPI to pass the error to
 * the other ranks, which are in job_open or here. Returns the status that all agree on. Must not be
 * called after job_open. Collective. */
Status job_refuse(Status mine);
/* Refuses ranks that run another build or read another configuration than rank 0, naming the first
 * such rank. Collective. */
Status job_same(const Job *job);
/* Finds the checkpoint `given`, else the run's best.h5, else its newest one. The caller owns *path.
 * Collective. */
Status job_checkpoint(const Job *job, const char *given, char **path);
/* ERR_USAGE: out, which may be NULL, is a data set or a checkpoint that the configuration names. */
Status job_no_input(const Config *config, const char *out);
/* Sets the configuration to no servers and synchronous tables: a verb that updates no parameter
 * needs none, whatever the training used. */
void job_serverless(Config *config);
/* Sets the configuration to one rank and `samples` samples at a time, without the memory that only
 * training needs. */
void job_alone(Config *config, int64_t samples);
/* Agrees on status, then ends MPI. Collective. */
Status job_close(Job *job, Status status);
/* Checks what can be checked without MPI: CONFIG exists, its model is known, and with VERB_DATA it
 * names training data. The caller owns *config. */
Status job_check(Config **config, const Verb *verb, int argc, char **argv);

/* Rank of this process, taken from the launcher's environment; 0 without a launcher. launched: true
 * under mpirun, srun or another launcher. */
int launch_rank(void);
bool launched(void);
/* Ranks to be started. threads: of each rank, 0 for its share of the cores; words: main's
 * arguments; folder: the run's folder for a verb that lasts (VERB_LASTS), else NULL. All
 * borrowed. */
typedef struct Ranks {
    int count, threads;
    /* train.hang_s */
    double hang_s;
    char **words;
    char *folder;
    /* result of train_leave_out */
    const char *leave_out;
} Ranks;
/* A growing list of words, as of a command; each word is owned and NULL follows the last.
 * Initialise with {0}, release `word` with words_free. */
typedef struct Words {
    int count;
    char **word;
} Words;
/* Appends a word and takes ownership of it. */
void words_add(Words *w, char *word);
/* Frees the words and the list; NULL is allowed. */
void words_free(char **word);
/* Runs `mpirun -n count weft ...` with main's arguments except -n, and exits with its exit code.
 * Returns only if mpirun could not be started. */
Status launch_ranks(const Ranks *ranks);
/* Sets the environment for ranks on this host. Warns if there are more ranks than cores. */
void launch_prepare(int ranks, int threads);
/* Returns the command that runs this program on `ranks` ranks, without mpirun for one. words:
 * main's arguments, of which -n is left out. Release with words_free. */
char **launch_words(int ranks, char *const *words);
/* Adds mpirun's options that pass weft's environment variables on to ranks on other hosts. */
void mpirun_pass_on(Words *w);
/* Returns the words of the command under mpirun on this host. Release with words_free. */
char **mpirun_words(int ranks, char *const *command);
/* Tests whether mpirun can start that many ranks of the program on this host, by a start that ends
 * after MPI_Init. Returns "the ranks could not be started; mpirun says: ..." if not; NULL if it can
 * or the test does not end. Owned by the caller. */
char *mpirun_refusal(int ranks, char *program);
/* Sets Open MPI's environment variables. quiet: suppresses mpirun's own messages about a rank that
 * failed or could not be started. */
void open_mpi_settings(bool quiet);
bool in_batch_job(void);
bool is_open_mpi(void);
/* Decides whether waiting OpenMP threads spin or sleep. libgomp reads its settings only once, when
 * it is loaded, so this function executes the program again if they must change; else it
 * returns. */
void threads_settle(int threads, char **words);
/* Exports the same settings for processes that this one starts. */
void threads_export(int ranks, int threads);
/* Adapts output to the terminal that mpirun writes to: Open MPI gives each rank a pseudo terminal
 * as stdout even if mpirun's own output is a file. */
void terminal_settle(void);

/* Opens a data file. argv: FILE [key=value ...]; the keys of section data name the arrays in it.
 * The caller owns *config. */
Status open_data(int argc, char **argv, DataSet *set, Config **config);
/* Reads the configuration stored in checkpoint `from`, or from the file `instead` if it is not
 * NULL, with key=value overrides. ERR_CONFIG if the checkpoint holds none, like an imported one.
 * The caller owns *config. */
Status checkpoint_config(Config **config, const char *from, const char *instead, int count,
                         char **overrides);

void help_verb(FILE *out, const Verb *verb);
void help_all(FILE *out);
/* Help on a group of verbs, such as "data". */
void help_group(FILE *out, const char *group);
void print_version(FILE *out);

/* Measures a file of encoded pictures for `weft bench io`, for about `seconds`. */
Status bench_pictures(const char *path, double seconds, bool json);

#endif
