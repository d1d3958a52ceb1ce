/* Texts made from the option table: the help names every key, the man page passes groff, and bash
 * accepts the completion script, which completes verbs, keys and values. */
#include "schedules.def"
#include "config/option.h"
#include "harness.h"
#include "words.h"

#include <math.h>
#include <sys/wait.h>

static char *text_of(void (*print)(FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print(out);
    fclose(out);
    return text;
}

typedef struct Options {
    bool json;
    const char *out, *test;
    int64_t steps, stage;
    double share;
    int device;
    FlagList names;
} Options;

enum { FLAGS = 8 };
static const Flag flags[] = {
    {"--json", FLAG_FIELD(Options, json), .help = "one JSON object"},
    {"-o", FLAG_FIELD(Options, out), .value = "OUT", .help = "the file to write; nothing else",
     .required = true},
    {"--test", FLAG_FIELD(Options, test), .value = "OUT", .help = "a second file"},
    {"--steps", FLAG_FIELD(Options, steps), .value = "S", .lo = 1, .hi = 1000, .default_text = "20",
     .help = "how many steps"},
    {"--stage", FLAG_FIELD(Options, stage), .value = "S", .hi = FLAG_WHOLE_MAX,
     .excludes = "--json", .help = "which stage"},
    {"--share", FLAG_FIELD(Options, share), .value = "S", .lo_open = true, .hi = 1,
     .needs = "--test", .help = "how much of it"},
    {"--device", FLAG_FIELD(Options, device), .value = "cpu|cuda", .needs = "--json",
     .help = "where"},
    {"--names", FLAG_FIELD(Options, names), .value = "a,b", .default_text = "x", .help = "whose"},
};
_Static_assert(sizeof flags / sizeof *flags == FLAGS, "as many as the verbs below say");

#define SCHEDULE_WORD(id, name, word, min, usual, max, help) "|" word

static void print_man(FILE *out)
{
    config_man(out, ".TP\n.B train\nTrains.\n");
}

static void print_completion(FILE *out)
{
    static const Verb train = {.name = "train",
                               .words = "CONFIG [key=value ...]",
                               .flag = flags,
                               .flag_count = FLAGS},
                      import = {.name = "data import idx", .words = "FILE"},
                      import_text = {.name = "data import text", .words = "FILE"},
                      info = {.name = "data info", .words = "FILE"},
                      bench = {.name = "bench comm", .words = ""},
                      help = {.name = "help", .words = ""};
    static const Verb *const verbs[] = {&train, &import, &import_text, &info, &bench, &help};
    config_completion(out, verbs, sizeof verbs / sizeof *verbs);
}

/* Every entry of the table is complete, and its default is valid. */
static void test_table(void)
{
    for (int i = 0; i < option_count; ++i) {
        const Option *o = &options[i];
        bool known = false;
        for (int s = 0; s < section_count; ++s) known = known || option_is_in(o, sections[s].name);
        CU_ASSERT_TRUE(known);
        CU_ASSERT_PTR_NOT_NULL(o->help);
        CU_ASSERT_EQUAL(option_find(o->key), i);
        CU_ASSERT_EQUAL(
            o->help[strlen(o->help) - 1] == '.' || strchr(o->help, '{') || strchr(o->help, ':'), 1);
        if (o->unset) continue;
        Config *config = NULL;
        char *word = mem_format("%s=%s", o->key, o->default_text), *words[] = {word};
        Status status = config_parse(&config, "defaults", NULL, 1, words);
        /* constants of rules and keys of curves are parsed, then refused because sgd and a
         * constant rate do not use them */
        bool idle = option_is_in(o, "optim") && strstr(fail_message(), "is used only by ");
        CU_ASSERT(status == OK || idle);
        config_free(&config);
        mem_free(&word);
    }
}

static void test_help(void)
{
    char *text = text_of(config_help);
    for (int i = 0; i < option_count; ++i) CU_ASSERT_PTR_NOT_NULL(strstr(text, options[i].key));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "INT, at least 1; default: 128 samples"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "sgd|adam|adamw|lars|lamb; default: sgd"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "NUMBER, from 0 to below 1; default: 0.9"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "BYTES, at least 1; default: what the machine has"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, &SCHEDULES(SCHEDULE_WORD)[1]));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "[NAME, ...]; default: by cost"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "LIST|INT; default: none"));
    /* llama has no size, but defaults */
    CU_ASSERT_PTR_NOT_NULL(strstr(options[option_find("model.width")].help, "llama: 384;"));
    CU_ASSERT_PTR_NOT_NULL(strstr(options[option_find("model.heads")].help, "llama: 6;"));
    CU_ASSERT_PTR_NULL(strstr(text, "default: as model.size says"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "list of flip|crop|cutout; default: []"));
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        CU_ASSERT(strcspn(line, "\n") <= 130);
    free(text);
}

/* Passes text to a command's standard input; returns its exit code. */
static int pipe_to(const char *command, const char *text)
{
    fflush(stdout);
    FILE *in = popen(command, "w");
    if (!in) return -1;
    fputs(text, in);
    int status = pclose(in);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_man(void)
{
    char *text = text_of(print_man);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, ".TH WEFT 1"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, ".B train\n"));
    for (int i = 0; i < option_count; ++i) CU_ASSERT_PTR_NOT_NULL(strstr(text, options[i].key));
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        CU_ASSERT(*line != '.' || (line[1] >= 'A' && line[1] <= 'z'));
    if (system("command -v groff >/dev/null") == 0)
        CU_ASSERT_EQUAL(pipe_to("test -z \"$(groff -man -ww -Tutf8 2>&1 >/dev/null)\"", text), 0);
    free(text);
}

/* Completes the last of the words as bash does; the answer must contain want (nothing if want is
 * ""). */
static void complete(const char *script, const char *words, const char *want)
{
    char *text = mem_format("%s\nCOMP_WORDS=(%s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_weft\n"
                            "if [ -z '%s' ]; then [ ${#COMPREPLY[@]} = 0 ]; exit; fi\n"
                            "case \" ${COMPREPLY[*]} \" in *' %s '*) exit 0;; esac\n"
                            "echo \"  completing %s: ${COMPREPLY[*]}\" >&2; exit 1\n",
                            script, words, want, want, words);
    CU_ASSERT_EQUAL(pipe_to("bash", text), 0);
    mem_free(&text);
}

static void test_completion(void)
{
    char *script = text_of(print_completion);
    if (system("command -v bash >/dev/null") != 0) TEST_SKIP("no bash");
    complete(script, "weft ''", "train data bench help --help --version");
    complete(script, "weft tr", "train");
    complete(script, "weft zz", "");
    complete(script, "weft data ''", "import info --help");
    complete(script, "weft data im", "import");
    complete(script, "weft data import ''", "idx text --help");
    complete(script, "weft data import idx --h", "--help");
    complete(script, "weft train a.yaml --st", "--steps --stage");
    complete(script, "weft train a.yaml --device ''", "cpu cuda");
    complete(script, "weft train a.yaml --device = cu", "cuda");
    complete(script, "weft train a.yaml train.ba", "train.batch=");
    complete(script, "weft train a.yaml optim.name =", "sgd adam adamw lars lamb");
    complete(script, "weft train a.yaml optim.name = ada", "adam adamw");
    complete(script, "weft train a.yaml optim.name=la", "lars lamb");
    complete(script, "weft train a.yaml run.trace = t", "true");
    complete(script, "weft train a.yaml data.augment = ''", "[flip] [crop] [cutout]");
    complete(script, "weft train a.yaml grid.pipeline_schedule = g", "gpipe");
    complete(script, "weft train --j", "--json");
    free(script);
}

/* Parses the words of a command line, separated by blanks, with the rows above. */
static Status read_line(const char *line, Options *o, int *left)
{
    static char text[200];
    static char *word[16];
    Verb verb = {.name = "try", .words = "", VERB_FLAGS(Options, flags)};
    int count = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) word[count++] = w;
    memset(o, 0, sizeof *o);
    Status status = verb_options_init(&verb, &count, word, o);
    *left = count;
    if (status != OK) verb_options_fini(&verb, o);
    return status;
}

static void test_flags(void)
{
    static const Verb verb = {.name = "try", .words = "", VERB_FLAGS(Options, flags)};
    Options o;
    int left;
    CHECK_OK(read_line("a -o x b", &o, &left));
    CU_ASSERT_EQUAL(left, 2);
    CU_ASSERT_STRING_EQUAL(o.out, "x");
    CU_ASSERT_PTR_NULL(o.test);
    CU_ASSERT_FALSE(o.json);
    CU_ASSERT_EQUAL(o.steps, 20);
    CU_ASSERT_EQUAL(o.stage, -1);
    CU_ASSERT(isnan(o.share));
    CU_ASSERT_EQUAL(o.device, -1);
    CU_ASSERT_EQUAL(o.names.count, 1);
    verb_options_fini(&verb, &o);
    CHECK_OK(read_line(
        "--json -o=x --steps 1000 --test t --share 1 --device=cuda --names a,b -- --c", &o, &left));
    CU_ASSERT_EQUAL(left, 1);
    CU_ASSERT(o.json);
    CU_ASSERT_EQUAL(o.steps, 1000);
    CU_ASSERT_EQUAL(o.share, 1);
    CU_ASSERT_EQUAL(o.device, 1);
    CU_ASSERT_EQUAL(o.names.count, 2);
    CU_ASSERT_STRING_EQUAL(o.names.word[1], "b");
    verb_options_fini(&verb, &o);
}

static void test_bad_flags(void)
{
    static const struct BadKind {
        const char *line, *says;
    } bad[] = {
        {"--json", "-o OUT is missing: the file to write"},
        {"-o", "-o needs a value, OUT: the file to write"},
        {"-o a -o b", "-o is given twice"},
        {"-o a --json=1", "--json takes no value"},
        {"-o a --jsn", "unknown option --jsn; did you mean --json?"},
        {"-o a -n 2", "weft try starts no ranks: leave -n out"},
        {"-o a --steps 0", "--steps 0: expected a whole number from 1 to 1000: how many steps"},
        {"-o a --steps 1001", "a whole number from 1 to 1000"},
        {"-o a --steps 1.5", "a whole number from 1 to 1000"},
        {"-o a --steps 1e3", "a whole number from 1 to 1000"},
        {"-o a --steps 99999999999999999999", "a whole number from 1 to 1000"},
        {"-o a --steps=", "a whole number from 1 to 1000"},
        {"-o a --stage -1", "a whole number from 0 to 9007199254740992"},
        {"-o a --test t --share 0", "--share 0: expected a number above 0, at most 1"},
        {"-o a --test t --share nan", "--share nan: expected a number above 0, at most 1"},
        {"-o a --share 0.5", "--share needs --test OUT: a second file"},
        {"-o a --stage 1 --json", "--stage and --json exclude each other: leave one out"},
        {"-o a --device cuda", "--device needs --json: one JSON object"},
        {"-o a --device gpu", "--device gpu: expected cpu|cuda: where"},
        {"-o a --names a,,b", "--names a,,b: a word between commas is empty"},
    };
    Options o;
    int left;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        CHECK_FAILS(read_line(bad[i].line, &o, &left), ERR_USAGE, bad[i].says);
}

TEST_MAIN("config help", {"words of modules", use_test_words}, {"flags", test_flags},
          {"bad flags", test_bad_flags}, {"table", test_table}, {"help", test_help},
          {"man page", test_man}, {"completion", test_completion})
