/* What the option table says to people and shells: the help names every key, the man page passes groff, bash takes the
 * completion script and completes verbs, keys and words with it. */
#include "config/option.h"
#include "harness.h"

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

static void print_man(FILE *out)
{
    config_man(out, ".TP\n.B train\nTrains.\n");
}

static void print_completion(FILE *out)
{
    static const char *const verbs[] = {"train", "data import", "data info", "bench comm", "help"};
    config_completion(out, verbs, 5);
}

/* Every entry of the table is whole, and its default is one that it takes. */
static void test_table(void)
{
    for (int i = 0; i < option_count; ++i) {
        const Option *o = &options[i];
        bool known = false;
        for (int s = 0; s < section_count; ++s) known = known || option_in(o, sections[s].name);
        CU_ASSERT_TRUE(known);
        CU_ASSERT_PTR_NOT_NULL(o->help);
        CU_ASSERT_EQUAL(option_find(o->key), i);
        CU_ASSERT_EQUAL(
            o->help[strlen(o->help) - 1] == '.' || strchr(o->help, '{') || strchr(o->help, ':'), 1);
        if (o->unset) continue;
        Config *config = NULL;
        char *word = mem_format("%s=%s", o->key, o->fallback), *words[] = {word};
        CHECK_OK(config_parse(&config, "defaults", NULL, 1, words));
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
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "1f1b|gpipe|interleaved|zero-bubble|file:PATH; default: 1f1b"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "[NAME, ...]; default: by cost"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "LIST|INT; default: none"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "list of flip|crop|cutout; default: []"));
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        CU_ASSERT(strcspn(line, "\n") <= 130);
    free(text);
}

/* Gives text to a command's standard input; its exit code. */
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

/* Completes the last of the words, bash's way; the answer must hold want (or nothing where want is ""). */
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

TEST_MAIN("config help", {"table", test_table}, {"help", test_help}, {"man page", test_man},
          {"completion", test_completion})
