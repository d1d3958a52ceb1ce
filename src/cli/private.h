/* Declarations shared by the verbs: common flags, the start of a job and of its ranks, data sets on
 * the command line, help. */
#ifndef WEFT_CLI_PRIVATE_H
#define WEFT_CLI_PRIVATE_H

#include "cli.h"
#include "data.h"

#include <signal.h>

struct Runner;

/* largest number of ranks that weft starts */
enum { RANKS_MAX = 65536 };
/* The flag -n N. A verb that has it among its flags runs on N ranks. Its options struct has a field
 * `ranks`, an int64_t. */
#define FLAG_RANKS(Options)                                                                        \
    {                                                                                              \
        "-n", FLAG_FIELD(Options, ranks),                                                          \
            .value = "N", .lo = 1, .hi = RANKS_MAX,                                                \
            .help = "number of ranks to start with mpirun; under mpirun or srun leave it out"      \
    }
/* The flag --map, short for run.map=true. The options struct has a bool `map`. */
#define FLAG_MAP(Options)                                                                          \
    {                                                                                              \
        "--map", FLAG_FIELD(Options, map),                                                         \
            .help = "prints at the start where each rank is: grid, host, CPUs, GPU (run.map)"      \
    }
/* The flag --no-ema. The options struct has a bool `no_ema`. */
#define FLAG_NO_EMA(Options)                                                                       \
    {                                                                                              \
        "--no-ema", FLAG_FIELD(Options, no_ema),                                                   \
            .help = "use the parameters themselves, even if the checkpoint has their EMA "         \
                    "(train.ema)"                                                                  \
    }
/* The flag --checkpoint. The options struct has a text `checkpoint`. */
#define FLAG_CHECKPOINT(Options)                                                                   \
    {                                                                                              \
        "--checkpoint", FLAG_FIELD(Options, checkpoint),                                           \
            .value = "FILE", .help = "checkpoint to use; by default best.h5, else the newest"      \
    }

/* The forms of the value of --input: an image such as 3x224x224, tokens, or a table's row, such as
 * 13 (numbers) or 13+26 (numbers and fields of ids). */
#define INPUT_VALUE "CxHxW|tokens|D+F"
/* The kind of samples that --input gives instead of a data set. */
typedef struct Input {
    /* shape of a sample, (1,C,H,W) or (1,D). ndim 0: there is none, because the samples are tokens
     * or --input is not given. */
    Shape shape;
    /* true: the samples are tokens */
    bool tokens;
    /* number of fields of ids in a table's row; 0: none */
    int64_t fields;
} Input;
/* Parses the value of --input. ERR_USAGE: it has none of the forms of INPUT_VALUE. */
Status input_parse(const char *text, Input *input);
/* Describes a training set of `samples` samples of this kind, without a file. The samples have
 * labels of model.classes classes or, if the loss reads targets, targets of model.classes numbers.
 * If model.classes is not set, the number is LossInfo.classes. A set of tokens has model.vocab
 * different tokens or, if only model.size is set, as many as GPT-2's vocabulary has. ERR_USAGE: the
 * number of classes, of numbers in a target or of different tokens is unknown. ERR_CONFIG: labels
 * of pixels have too many classes. */
Status input_describe_set(DataSet *set, const Input *input, const Config *config, int64_t samples);
/* Opens data.train, for a call without --input, with the times that the configuration selects. set:
 * zeroed by the caller. ERR_NOINPUT: data.train is not set, or the file is missing. ERR_CONFIG: the
 * set's pictures have several sizes, and no key gives the size that the model takes. The message of
 * an error suggests --input. */
Status input_open_train(DataSet *set, const Config *config);

/* A configuration and the ranks that work on it. */
typedef struct Job {
    /* owned */
    Config *config;
    World world;
} Job;
/* Reads the configuration, starts MPI, and calls job_check_same. argv: CONFIG [key=value ...]. If
 * any rank finds an error in the configuration, all ranks fail with the same message. Release with
 * job_close, also after a failure. Collective. */
Status job_open(Job *job, int argc, char **argv);
/* Shares with all ranks an error that this rank has found before job_open, so that no rank waits
 * for this one. The other ranks are in job_open or in this function. Starts and ends MPI for this.
 * Returns the status that all ranks agree on; without a launcher it returns `mine` and does
 * nothing. fail_message must be set. Must not be called after job_open. Collective. */
Status job_share_error(Status mine);
/* Checks that all ranks run the same build and have the same configuration as rank 0. ERR_CONFIG:
 * the message names the first rank that differs. Collective. */
Status job_check_same(const Job *job);
/* Finds a checkpoint: `given`, the value of --checkpoint. If it is NULL, the run's best.h5; if
 * there is no best.h5, the run's newest checkpoint. *path: its path, owned by the caller.
 * ERR_NOINPUT: there is no checkpoint. Collective. */
Status job_find_checkpoint(const Job *job, const char *given, char **path);
/* Checks that a verb's output file does not replace an input. out: path of the output; may be NULL.
 * ERR_USAGE: it is a data set or a checkpoint that the configuration names. */
Status job_check_output(const Config *config, const char *out);
/* Changes the configuration for a verb that updates no parameters: no servers, synchronous updates,
 * no train.ema, no run.order_log and no run.replay. */
void job_drop_servers(Config *config);
/* Changes the configuration to one rank, without servers (job_drop_servers), and to batches of one
 * micro-batch of `samples` samples. Replaces the optimizer by one without state, because only
 * training needs the memory of the state. */
void job_use_one_rank(Config *config, int64_t samples);
/* Ends MPI, frees the configuration, and returns the status that all ranks agree on. Collective. */
Status job_close(Job *job, Status status);
/* Reads the configuration and checks it without MPI. The configuration must have a known model, and
 * data.train must be set if the verb has the trait VERB_DATA. The caller owns *config. */
Status job_check(Config **config, const Verb *verb, int argc, char **argv);

/* Returns whether mpirun, srun or another launcher has started this process. */
bool is_launched(void);
/* Returns the rank of this process, which the launcher has set in the environment; 0 without a
 * launcher. */
int launch_rank(void);
/* Ranks that are to be started, and settings for them. launch_ranks borrows the texts. */
typedef struct Ranks {
    /* number of ranks, from -n; 0: not given */
    int count;
    /* number of threads of each rank; 0: the rank's share of the cores */
    int threads;
    /* train.hang_s */
    double hang_s;
    /* main's arguments */
    char **words;
    /* the run's folder if the verb is VERB_LONG_RUNNING, else NULL */
    char *folder;
    /* result of train_continue_hint, for a message that suggests to continue the run */
    const char *leave_out;
} Ranks;
/* A growing list of words, such as those of a command. Initialise with {0}; release `word` with
 * words_free. */
typedef struct Words {
    /* number of words */
    int count;
    /* the words, [count], and then NULL; the list and each word are owned */
    char **word;
} Words;
/* Appends a word and takes ownership of it. */
void words_add(Words *w, char *word);
/* Frees the words and the list; `word` may be NULL. */
void words_free(char **word);
/* Runs main's arguments, without -n, as `mpirun -n COUNT weft ...`, or without mpirun if there is
 * one rank. Exits with an exit code derived from that of the command. Returns ERR_IO only if no
 * process could be made. */
Status launch_ranks(const Ranks *ranks);
/* Sets environment variables of Open MPI for ranks on this host. Outside of batch jobs it also sets
 * those of OpenMP, and warns if there are more ranks than cores. threads: number of threads of each
 * rank; 0: the rank's share of the cores. */
void launch_prepare(int ranks, int threads);
/* Returns the command that runs this program on `ranks` ranks. For one rank it has no mpirun.
 * words: main's arguments, of which -n is left out. Release with words_free. */
char **launch_words(int ranks, char *const *words);
/* Calls runner_run for `ranks` ranks with the command of launch_words. words: main's arguments;
 * trains, code: as in runner_run. If mpirun has failed by itself before any rank had begun, and a
 * test shows that it can start ranks, starts them again, in all three times at most. One cause: an
 * mpirun of Open MPI 4 fails if another one of the same user ends just then and removes the folder
 * for temporary files that both use (Open MPI's issue 8510). *why: text of mpirun_refusal if mpirun
 * cannot start the ranks, owned by the caller; else NULL. ERR_IO: no process could be made. */
Status launch_run(struct Runner *runner, int ranks, char *const *words, bool trains, int *code,
                  char **why);
/* Appends the options by which mpirun passes weft's environment variables on to ranks on other
 * hosts. */
void mpirun_add_env(Words *w);
/* Returns mpirun and its options, followed by `command`, for `ranks` ranks. They are on this host
 * or, in a batch job, on the job's hosts. Release with words_free. */
char **mpirun_words(int ranks, char *const *command);
/* Tests whether mpirun can start `ranks` ranks of the program, by starting ranks that end after
 * MPI_Init. Returns NULL if it can, or if nothing is known because the test did not end or was
 * killed. Otherwise returns "the ranks could not be started; mpirun says: ...", which the caller
 * owns. */
char *mpirun_refusal(int ranks, char *program);
/* Sets environment variables of Open MPI that allow it to run as root. quiet: true: also suppresses
 * mpirun's own messages about a rank that failed or could not be started. */
void open_mpi_set_env(bool quiet);
/* Returns whether this process is in a job of Slurm, PBS, LSF or Grid Engine. */
bool in_batch_job(void);
/* Returns whether the MPI library is Open MPI. */
bool is_open_mpi(void);
/* Chooses whether OpenMP threads that wait spin or sleep. libgomp reads its settings only once,
 * when it is loaded. If the settings must change, this function therefore executes the program
 * again; otherwise it returns. threads: number of threads of this rank; 0: the rank's share of the
 * cores. words: main's arguments. */
void threads_choose_waiting(int threads, char **words);
/* Chooses whether waiting OpenMP threads spin or sleep in the ranks that this process starts.
 * Writes the choice and the number of threads to environment variables, unless the user has set
 * them. threads: number of threads of each rank; 0: the rank's share of the cores. */
void threads_export(int ranks, int threads);
/* Adapts output to the terminal that mpirun writes to. It is needed because Open MPI gives each
 * rank a pseudo terminal as stdout, even if mpirun's own output is a file. */
void terminal_adapt(void);

/* The data sets that a verb is called with. */
typedef struct DataWords {
    /* number of sets */
    int count;
    /* paths of the sets, [count]; borrowed from the configuration or from argv */
    const char *path[2];
    /* [count]; true: the set is data.test of a configuration */
    bool is_test[2];
} DataWords;
/* Finds the data sets that a verb is called with, and the keys that describe them. argv has one of
 * two forms. FILE [TEST] [key=value ...]: there may be at most `most` (1 or 2) files. CONFIG.yaml
 * [key=value ...]: the sets are data.train and data.test of the configuration, as far as they are
 * set, and `most` does not matter. The caller owns *config. ERR_CONFIG: neither of the two keys is
 * set. ERR_USAGE: there are too many files. */
Status data_words_read(int argc, char **argv, int most, DataWords *words, Config **config);
/* Opens set i of `words`, with the times that the configuration selects. */
Status data_words_open(const DataWords *words, int i, const Config *config, DataSet *set);
/* Reads the configuration from the file config_file or, if it is NULL, from the checkpoint. Applies
 * `count` key=value overrides, and sets train.rollout to 1. Also with config_file, the widths of a
 * pruned model come from the checkpoint. ERR_CONFIG: the checkpoint has no configuration, because
 * it was imported. The caller owns *config. */
Status checkpoint_read_config(Config **config, const char *checkpoint, const char *config_file,
                              int count, char **overrides);

/* Prints the help of a verb. */
void help_verb(FILE *out, const Verb *verb);
/* Prints the list of all verbs, and the exit codes. */
void help_all(FILE *out);
/* Prints the list of the verbs of a group, such as "data". */
void help_group(FILE *out, const char *group);

/* Does the work of weft bench io for a file of encoded pictures: measures for about `seconds`
 * seconds and prints the result. boxes: true: the file is a set of boxes. */
Status bench_pictures(const char *path, bool boxes, double seconds, bool json);

#endif
