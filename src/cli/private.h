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
/* Flag --map, short for run.map=true. The options struct has a bool `map`. */
#define FLAG_MAP(Options)                                                                          \
    {                                                                                              \
        "--map", FLAG_FIELD(Options, map),                                                         \
            .help = "prints at the start where each rank is: grid, host, CPUs, GPU (run.map)"      \
    }
#define FLAG_NO_EMA(Options)                                                                       \
    {                                                                                              \
        "--no-ema", FLAG_FIELD(Options, no_ema),                                                   \
            .help = "use the parameters themselves, even if the checkpoint has their EMA "         \
                    "(train.ema)"                                                                  \
    }
#define FLAG_CHECKPOINT(Options)                                                                   \
    {                                                                                              \
        "--checkpoint", FLAG_FIELD(Options, checkpoint),                                           \
            .value = "FILE", .help = "checkpoint to use; by default best.h5, else the newest"      \
    }

/* The kind of samples, given by --input instead of a data set: images as 3x224x224, tokens, or
 * table rows as 13 (numbers) or 13+26 (numbers + fields of ids). */
#define INPUT_VALUE "CxHxW|tokens|D+F"
typedef struct Input {
    /* shape of a sample: (1,C,H,W) or (1,D); ndim 0: none */
    Shape shape;
    bool tokens;
    /* number of fields of ids; 0: none */
    int64_t fields;
} Input;
/* Parses the value of --input. ERR_USAGE: it has none of the forms of INPUT_VALUE. */
Status input_parse(const char *text, Input *input);
/* Describes a training set without a file, of `samples` samples of this kind. Their labels have
 * model.classes classes, or their targets model.classes numbers if the loss reads targets; if
 * model.classes is not set, as many as the loss has by itself (LossInfo.classes). Tokens are below
 * model.vocab or, if only model.size is set, below GPT-2's vocabulary. ERR_USAGE: the number of
 * classes, of numbers in a target or of different tokens is unknown. ERR_CONFIG: labels of pixels
 * have too many classes. */
Status input_describe_set(DataSet *set, const Input *input, const Config *config, int64_t samples);
/* Opens data.train, for a call without --input, with the times that the configuration selects. set
 * must be zeroed. ERR_NOINPUT: data.train is not set, or the file is missing; ERR_CONFIG: its
 * pictures have several sizes, and no key gives the size that the model takes. The message suggests
 * --input. */
Status input_open_train(DataSet *set, const Config *config);

/* A configuration and the ranks that work on it. */
typedef struct Job {
    /* owned */
    Config *config;
    World world;
} Job;
/* Reads the configuration, starts MPI, and calls job_check_same. argv: CONFIG [key=value ...]. If
 * any rank finds an error in the configuration, all ranks fail with the same message. Release with
 * job_close, after a failure too. Collective. */
Status job_open(Job *job, int argc, char **argv);
/* Passes an error that this rank found before job_open (fail_message is set) to the other ranks,
 * which are in job_open or in this function; starts and ends MPI for this. Returns the status that
 * all ranks agree on; without a launcher, `mine`. Must not be called after job_open. Collective. */
Status job_share_error(Status mine);
/* Checks that all ranks run the same build and have the same configuration as rank 0. ERR_CONFIG:
 * the message names the first rank that differs. Collective. */
Status job_check_same(const Job *job);
/* Finds the checkpoint: `given` or, if that is NULL, the run's best.h5 or, if there is none, the
 * run's newest checkpoint. ERR_NOINPUT: there is none. The caller owns *path. Collective. */
Status job_find_checkpoint(const Job *job, const char *given, char **path);
/* Checks that a verb's output file does not replace an input. out: may be NULL. ERR_USAGE: out is a
 * data set or a checkpoint that the configuration names. */
Status job_check_output(const Config *config, const char *out);
/* Sets the configuration to no servers, synchronous tables, no train.ema, and neither log nor
 * replay of the order of requests (run.order_log, run.replay), for a verb that updates no
 * parameters. */
void job_drop_servers(Config *config);
/* Sets the configuration to one rank, without servers (job_drop_servers), and to batches of one
 * micro-batch of `samples` samples. The optimizer is replaced by one without state, because only
 * training needs its memory. */
void job_use_one_rank(Config *config, int64_t samples);
/* Ends MPI, frees the configuration, and returns the status that all ranks agree on. Collective. */
Status job_close(Job *job, Status status);
/* Reads the configuration and checks it without MPI: its model must be known, and with VERB_DATA
 * data.train must be set. The caller owns *config. */
Status job_check(Config **config, const Verb *verb, int argc, char **argv);

/* True if mpirun, srun or another launcher has started this process. */
bool is_launched(void);
/* Returns the rank of this process from the launcher's environment; 0 without a launcher. */
int launch_rank(void);
/* Ranks to be started, and settings for them. launch_ranks borrows the strings. */
typedef struct Ranks {
    /* number of ranks, from -n; 0: not given */
    int count;
    /* threads of each rank; 0: its share of the cores */
    int threads;
    /* train.hang_s */
    double hang_s;
    /* main's arguments */
    char **words;
    /* the run's folder if the verb is VERB_LONG_RUNNING, else NULL */
    char *folder;
    /* result of train_leave_out */
    const char *leave_out;
} Ranks;
/* A growing list of words, such as those of a command; each word is owned, and NULL follows the
 * last one. Initialise with {0}, release `word` with words_free. */
typedef struct Words {
    int count;
    char **word;
} Words;
/* Appends a word and takes ownership of it. */
void words_add(Words *w, char *word);
/* Frees the words and the list; NULL is allowed. */
void words_free(char **word);
/* Runs `mpirun -n count weft ...` with main's arguments except -n, and exits with an exit code
 * derived from mpirun's. Returns ERR_IO if no process could be made. */
Status launch_ranks(const Ranks *ranks);
/* Sets environment variables of Open MPI for ranks on this host. Outside of batch jobs it also sets
 * those of OpenMP, and warns if there are more ranks than cores. threads: of each rank; 0: its
 * share of the cores. */
void launch_prepare(int ranks, int threads);
/* Returns the command that runs this program on `ranks` ranks; for one rank it has no mpirun.
 * words: main's arguments; -n is left out. Release with words_free. */
char **launch_words(int ranks, char *const *words);
/* Appends the mpirun options that pass weft's environment variables on to ranks on other hosts. */
void mpirun_add_env(Words *w);
/* Returns the words of mpirun, followed by the command, for `ranks` ranks on this host or, in a
 * batch job, on the job's hosts. Release with words_free. */
char **mpirun_words(int ranks, char *const *command);
/* Tests whether mpirun can start `ranks` ranks of the program on this host: starts ranks that end
 * after MPI_Init. Returns "the ranks could not be started; mpirun says: ...", owned by the caller,
 * if mpirun cannot start them; NULL if it can, or if the test does not end. */
char *mpirun_refusal(int ranks, char *program);
/* Sets Open MPI's environment variables. quiet: suppresses mpirun's own messages about a rank that
 * failed or could not be started. */
void open_mpi_set_env(bool quiet);
/* True in a job of Slurm, PBS, LSF or Grid Engine. */
bool in_batch_job(void);
/* True if the MPI library is Open MPI. */
bool is_open_mpi(void);
/* Chooses whether waiting OpenMP threads spin or sleep. libgomp reads its settings only once, when
 * it is loaded, so this function executes the program again if the settings must change; otherwise
 * it returns. threads: of this rank; 0: its share of the cores. words: main's arguments. */
void threads_choose_waiting(int threads, char **words);
/* Makes the same choice for ranks that this process starts: writes the choice and the number of
 * threads to environment variables. */
void threads_export(int ranks, int threads);
/* Adapts output to the terminal that mpirun writes to, because Open MPI gives each rank a pseudo
 * terminal as stdout even if mpirun's own output is a file. */
void terminal_adapt(void);

/* The data sets that a verb is called with. */
typedef struct DataWords {
    int count;
    /* borrowed from the configuration and from argv */
    const char *path[2];
    /* true: the set is data.test of a configuration */
    bool test[2];
} DataWords;
/* Finds the data sets that a verb is called with, and the keys that describe them. argv is either
 * FILE [TEST] [key=value ...], with at most `most` (1 or 2) files, or CONFIG.yaml [key=value ...]
 * with data.train, data.test or both, whatever `most` is. The caller owns *config. ERR_CONFIG:
 * neither key is set; ERR_USAGE: too many files. */
Status data_words_read(int argc, char **argv, int most, DataWords *words, Config **config);
/* Opens set i of the words, with the times that the configuration selects. */
Status data_words_open(const DataWords *words, int i, const Config *config, DataSet *set);
/* Reads the configuration from config_file or, if that is NULL, from the checkpoint, and applies
 * `count` key=value overrides; train.rollout becomes 1. With config_file, the widths of a pruned
 * model still come from the checkpoint. ERR_CONFIG: the checkpoint has no configuration, like an
 * imported one. The caller owns *config. */
Status checkpoint_read_config(Config **config, const char *checkpoint, const char *config_file,
                              int count, char **overrides);

void help_verb(FILE *out, const Verb *verb);
void help_all(FILE *out);
/* Help on a group of verbs, such as "data". */
void help_group(FILE *out, const char *group);

/* weft bench io for a file of encoded pictures, with or without boxes: measures for about `seconds`
 * seconds and prints the result. */
Status bench_pictures(const char *path, bool boxes, double seconds, bool json);

#endif
