/* A completion script for bash, out of the option table: verbs, verbs of verbs, YAML files, keys and their words. It needs
 * nothing but bash itself. */
#include "option.h"

#include <string.h>

/* bash breaks words at '=' and ':', so that key=value arrives as three words; the script looks behind the '='. */
static const char body[] =
    "_weft() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key=\n"
    "    COMPREPLY=()\n"
    "    if [ \"$cur\" = = ]; then key=$prev cur=\n"
    "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -ge 2 ]; then "
    "key=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    elif [[ $cur == *=* ]]; then key=${cur%%=*} cur=${cur#*=}; fi\n"
    "    if [ -n \"$key\" ]; then\n"
    "        local words=$(_weft_words \"$key\")\n"
    "        if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$_weft_verbs --help --version\" -- \"$cur\")); return\n"
    "    fi\n"
    "    local under=$(_weft_under \"${COMP_WORDS[1]}\")\n"
    "    if [ -n \"$under\" ] && [ \"$COMP_CWORD\" = 2 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$under --help\" -- \"$cur\")); return\n"
    "    fi\n"
    "    case $cur in\n"
    "        -*) COMPREPLY=($(compgen -W \"--help --json\" -- \"$cur\")); return;;\n"
    "    esac\n"
    "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "    case ${COMP_WORDS[1]} in\n"
    "        train|eval|plan|verify|bench)\n"
    "            local keys=($(compgen -W \"$_weft_keys\" -S = -- \"$cur\"))\n"
    "            [ ${#keys[@]} -gt 0 ] && COMPREPLY+=(\"${keys[@]}\") && compopt -o nospace "
    "2>/dev/null;;\n"
    "    esac\n"
    "    return 0\n"
    "}\n"
    "complete -o filenames -F _weft weft\n";

/* The first word of a verb such as "data import"; true where an earlier verb begins with it, too. */
static bool seen_before(const char *const *verbs, int i, size_t length)
{
    for (int j = 0; j < i; ++j)
        if (!strncmp(verbs[j], verbs[i], length) && strcspn(verbs[j], " ") == length) return true;
    return false;
}

static void print_verbs(FILE *out, const char *const *verbs, int count)
{
    fputs("_weft_verbs='", out);
    for (int i = 0; i < count; ++i) {
        size_t length = strcspn(verbs[i], " ");
        if (!seen_before(verbs, i, length)) fprintf(out, " %.*s", (int)length, verbs[i]);
    }
    fputs("'\n_weft_under() {\n    case $1 in\n", out);
    for (int i = 0; i < count; ++i) {
        size_t length = strcspn(verbs[i], " ");
        if (!verbs[i][length] || seen_before(verbs, i, length)) continue;
        fprintf(out, "        %.*s) echo '", (int)length, verbs[i]);
        for (int j = i; j < count; ++j)
            if (!strncmp(verbs[j], verbs[i], length) && verbs[j][length] == ' ')
                fprintf(out, "%s%s", j > i ? " " : "", verbs[j] + length + 1);
        fputs("';;\n", out);
    }
    fputs("    esac\n}\n", out);
}

static void print_words(FILE *out, const Option *o)
{
    char word[64];
    bool flag = o->kind == &kind_bool;
    const char *words = flag ? "true|false" : o->words;
    fprintf(out, "        %s) echo '", o->key);
    for (int i = 0; i < words_count(words); ++i)
        fprintf(out, o->kind->list ? "%s[%s]" : "%s%s", i ? " " : "", words_at(words, i, word));
    fputs("';;\n", out);
}

void config_completion(FILE *out, const char *const *verbs, int count)
{
    fputs("# bash completion for weft; made by `weft help --completion`\n", out);
    print_verbs(out, verbs, count);
    fputs("_weft_keys='", out);
    for (int i = 0; i < option_count; ++i) fprintf(out, "%s%s", i ? " " : "", options[i].key);
    fputs("'\n_weft_words() {\n    case $1 in\n", out);
    for (int i = 0; i < option_count; ++i)
        if (options[i].words || options[i].kind == &kind_bool) print_words(out, &options[i]);
    fputs("    esac\n}\n", out);
    fputs(body, out);
}
