/* From main's arguments to a verb: finds the verb, answers --help, parses the flags, handles -n and
 * the threads, calls the verb's function and prints its error. */
#include "private.h"

#include "base/start.h"
#include "config/foreign.h"
#include "topo/hardware.h"

#include "train.h"
#include "launch/watch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the number of words in a verb's name if argv begins with that name, else 0. */
static int match_name(const char *name, int argc, char **argv)
{
    int words = 0;
    while (*name) {
        size_t length = strcspn(name, " ");
        if (words == argc || strncmp(argv[words], name, length) || argv[words][length]) return 0;
        ++words;
        name += length + (name[length] == ' ');
    }
    return words;
}

/* Returns the verb that argv begins with, or NULL. *used: number of words of its name. */
static const Verb *find_verb(int argc, char **argv, int *used)
{
    for (int i = 0; i < verb_count(); ++i)
        if ((*used = match_name(verb_at(i)->name, argc, argv))) return verb_at(i);
    return NULL;
}

static bool is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* Returns the longest group of verbs that argv begins with. A group is a text that the names of
 * several verbs begin with, such as "data" or "data import". Returns "" if there is none. The
 * caller owns the result. */
static char *group_of(int argc, char **argv)
{
    char *group = mem_text("");
    for (int i = 0; i < argc; ++i) {
        char *longer = mem_format("%s%s%s", group, *group ? " " : "", argv[i]);
        size_t length = strlen(longer);
        bool found = false;
        for (int v = 0; v < verb_count(); ++v) {
            const char *name = verb_at(v)->name;
            found = found || (!strncmp(name, longer, length) && name[length] == ' ');
        }
        if (found) {
            mem_free(&group);
            group = longer;
        } else {
            mem_free(&longer);
            break;
        }
    }
    return group;
}

/* NEXT_WORDS_MAX: largest number of words that next_words lists. WORD_BYTES: size of a word. */
enum { NEXT_WORDS_MAX = 64, WORD_BYTES = 32 };

/* Lists the words that may follow a group of verbs, each word once: for "data" they are "import",
 * "info", "check" and others. For the group "" they are the first words of all verbs. word:
 * receives the words, [NEXT_WORDS_MAX]. Returns their number. */
static int next_words(const char *group, char (*word)[WORD_BYTES])
{
    int count = 0;
    size_t length = strlen(group);
    for (int v = 0; v < verb_count(); ++v) {
        const char *name = verb_at(v)->name;
        if (length && (strncmp(name, group, length) || name[length] != ' ')) continue;
        name += length ? length + 1 : 0;
        snprintf(word[count], WORD_BYTES, "%.*s", (int)strcspn(name, " "), name);
        bool known = false;
        for (int i = 0; i < count; ++i) known = known || !strcmp(word[i], word[count]);
        count += !known;
    }
    return count;
}

/* Returns advice on a word that is no command, or NULL if there is none. If the word is a command
 * of another program, the advice is weft's command for the same purpose. If the word is an option
 * or a configuration, which must stand after the command, the advice is the right order. group: the
 * words before `word`. The caller owns the result. */
static char *advice_on(const char *group, const char *word)
{
    const ForeignWord *row = foreign_find(*group ? group : FOREIGN_VERB, word);
    const char *end = strrchr(word, '.');
    if (*word == '-' && tolower((unsigned char)word[strspn(word, "-")]) != 'v')
        return mem_text("options come after the command, as in weft train CONFIG -n 2");
    if (end && (!strcmp(end, ".yaml") || !strcmp(end, ".yml")))
        return mem_format("a configuration comes after the command, as in weft train %s", word);
    if (!row) return NULL;
    if (!row->weft) return mem_text(row->note);
    return mem_format("that is weft %s here%s%s", row->weft, row->note ? ": " : "",
                      row->note ? row->note : "");
}

/* Handles arguments that do not begin with a verb: prints the help of a group of verbs, or fails
 * with advice. */
static Status answer_unknown_verb(int argc, char **argv)
{
    char word[NEXT_WORDS_MAX][WORD_BYTES];
    const char *list[NEXT_WORDS_MAX];
    char *group = group_of(argc, argv);
    /* `used` becomes the number of words in `group` */
    int used = *group ? 1 : 0, count = next_words(group, word);
    for (const char *c = group; *c; ++c) used += *c == ' ';
    for (int i = 0; i < count; ++i) list[i] = word[i];
    Status status = OK;
    if (used < argc && is_help(argv[used])) {
        help_group(stdout, group);
    } else if (used == argc) {
        help_group(stderr, group);
        status = fail(ERR_USAGE, "missing command after weft %s", group);
    } else {
        const char *near = text_nearest(argv[used], list, count), *space = *group ? " " : "";
        char *advice = advice_on(group, argv[used]);
        if (advice)
            status = fail(ERR_USAGE, "unknown command: weft %s%s%s; %s", group, space, argv[used],
                          advice);
        else if (near)
            status = fail(ERR_USAGE, "unknown command: weft %s%s%s; did you mean weft %s%s%s?",
                          group, space, argv[used], group, space, near);
        else
            status = fail(ERR_USAGE, "unknown command: weft %s%s%s; `weft --help` lists all", group,
                          space, argv[used]);
        mem_free(&advice);
    }
    mem_free(&group);
    return status;
}

/* Called before any rank is started. Checks the configuration, and checks that no output of the
 * verb replaces an input. Copies settings from the configuration to *ranks; the caller owns
 * ranks->folder. Collective if a launcher has started this rank and a check fails. */
static Status check_config(const Verb *verb, int argc, char **argv, const void *options,
                           Ranks *ranks)
{
    Config *config = NULL;
    Status status = job_check(&config, verb, argc, argv);
    for (int i = 0; status == OK && i < verb->flag_count; ++i)
        if (verb->flag[i].writes)
            status = job_check_output(
                config, *(const char *const *)((const char *)options + verb->flag[i].offset));
    if (config) {
        ranks->threads = (int)config->train.threads;
        ranks->hang_s = config->train.hang_s;
        ranks->leave_out = train_continue_hint(config);
        ranks->folder = mem_format("%s/%s", config->run.dir, config->run.name);
    }
    config_free(&config);
    return status == OK ? OK : job_share_error(status);
}

/* Runs the verb in this process, or makes this process the launcher of several ranks (-n). */
static Status start(const Verb *verb, Ranks *ranks, int argc, char **argv, const void *options)
{
    if (ranks->count && is_launched())
        return fail(ERR_USAGE, "-n %d: a launcher has started this rank already: leave -n out",
                    ranks->count);
    if (!(verb->traits & VERB_LONG_RUNNING)) mem_free(&ranks->folder);
    if (ranks->count > 1) return launch_ranks(ranks);
    if (verb->traits & VERB_THREADS) threads_choose_waiting(ranks->threads, ranks->words);
    /* Rank 0 reads the metadata of HDF5 files in a helper process, which must be made before MPI
     * starts. No other rank reads metadata. */
    if (verb->traits & VERB_CONFIG && launch_rank() == 0) hdf5_begin();
    return verb->run(argc, argv, options);
}

/* Parses the flags of a verb and runs it. argc, argv: the arguments after the verb's name. words:
 * all of main's arguments. */
static Status run_verb(const Verb *verb, int argc, char **argv, char **words)
{
    /* 300 is the default of train.hang_s; it applies to verbs without a configuration */
    Ranks ranks = {.words = words, .hang_s = 300};
    for (int i = 0; i < argc && strcmp(argv[i], "--"); ++i)
        if (is_help(argv[i])) {
            help_verb(stdout, verb);
            return OK;
        }
    void *options = mem_new(verb->options_bytes + 1);
    /* verbs with VERB_STARTS_RANKS start ranks themselves */
    const Flag *ranks_flag = verb->traits & VERB_STARTS_RANKS ? NULL : flag_find(verb, "-n");
    Status status = verb_options_init(verb, &argc, argv, options);
    if (ranks_flag) ranks.count = (int)*(int64_t *)((char *)options + ranks_flag->offset);
    if (status == OK && verb->traits & VERB_CONFIG)
        status = check_config(verb, argc, argv, options, &ranks);
    if (status == OK) status = start(verb, &ranks, argc, argv, options);
    mem_free(&ranks.folder);
    verb_options_fini(verb, options);
    mem_free(&options);
    return status;
}

static Status run(int argc, char **argv, char **words)
{
    int used = 0;
    if (argc == 0) {
        help_all(stderr);
        return fail(ERR_USAGE, "missing command");
    }
    if (is_help(argv[0])) {
        help_all(stdout);
        return OK;
    }
    if (!strcmp(argv[0], "--version")) {
        train_print_versions(stdout, true);
        return OK;
    }
    const Verb *verb = find_verb(argc, argv, &used);
    if (!verb) return answer_unknown_verb(argc, argv);
    return run_verb(verb, argc - used, argv + used, words);
}

/* Prints a verb's error on rank 0. The launcher ends a job as soon as one process has failed.
 * Therefore all other ranks wait for one second, so that rank 0 can print its message. */
static void report(Status status, int rank)
{
    if (status == OK) return;
    if (rank > 0)
        sleep(1);
    else if (status == ERR_STOPPED)
        log_info("%s", fail_message());
    else
        log_error("%s", fail_message());
}

/* Opens /dev/null in place of a closed stdin, stdout or stderr. Otherwise a file that is opened
 * later could get this descriptor and receive the program's output. /dev/null is opened for writing
 * as stdin, and for reading as stdout and stderr, so that their use still fails as on a closed
 * stream. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Sets the default for SIGCHLD. A parent process may leave it ignored or blocked: waitpid would
 * then never report the end of a process, and mpirun would not notice the ends of its ranks. */
static void accept_ends_of_children(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Reports failed writes to stdout. If the verb is VERB_LONG_RUNNING, its results are in files, so
 * this is a warning. Otherwise it is an error, unless the verb has failed already. Returns
 * `status`, the status of the verb, or this error. */
static Status check_stdout(Status status, bool long_running)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    if (long_running)
        log_warn("standard output is incomplete: not all of it could be written; nothing else is "
                 "affected");
    else if (status == OK)
        status = fail(ERR_IO, "standard output: %s", strerror(errno));
    return status;
}

/* If weft run has started this rank with --log-dir, redirects stdout and stderr to this rank's file
 * in that folder. */
static void redirect_output(int rank)
{
    const char *folder = getenv("WEFT_LOG_DIR");
    if (!folder || !getenv(LEASE_RUN)) return;
    char *path = mem_format("%s/rank-%d.log", folder, rank);
    int fd = file_create(path, O_WRONLY | O_APPEND);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        log_error("%s: cannot be written: %s", path, file_error(errno));
    if (fd > STDERR_FILENO) close(fd);
    setvbuf(stdout, NULL, _IOLBF, 0);
    mem_free(&path);
}

int cli_main(int argc, char **argv)
{
    clock_begin_s();
    accept_ends_of_children();
    hardware_leave_out_plugins();
    int used;
    const Verb *verb = argc > 1 ? find_verb(argc - 1, argv + 1, &used) : NULL;
    bool long_running = verb && verb->traits & VERB_LONG_RUNNING;
    if (long_running) stop_begin();
    fill_closed_streams();
    /* registers the words that keys accept; no key may be read before this call */
    train_use_words();
    /* A verb reorders its arguments. The original order is kept, because threads_choose_waiting may
     * execute the program again. */
    char **words = mem_new((size_t)(argc + 1) * sizeof *words);
    memcpy(words, argv, (size_t)argc * sizeof *words);
    int rank = launch_rank();
    if (long_running) redirect_output(rank);
    log_init(rank == 0);
    watch_connect(rank);
    /* Verbs without VERB_LONG_RUNNING report the stages of their start in this way. weft train
     * calls start_begin itself. */
    static const StartCalls report_only = {.reach = watch_report_stage, .check = watch_send_beat};
    if (!long_running) start_begin(&report_only);
    Status status = rows_check();
    if (status == OK) status = check_stdout(run(argc - 1, argv + 1, words), long_running);
    report(status, rank);
    mem_free(&words);
    watch_report_end(status);
    return status;
}
