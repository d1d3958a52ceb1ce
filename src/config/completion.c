/* Prints the completion script for bash, which is made from the rows of verbs, flags and keys. The
 * script completes verbs, flags, file names, keys, and the words of flags and keys. It needs no
 * program but bash. */
#include "option.h"

#include <string.h>

/* The script's main function, and its registration. bash splits words at '=' and ':', so key=value
 * arrives as three words; to complete a value, the function reads the key from the word before
 * '='. */
static const char complete_function[] =
    "_weft() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key= words=\n"
    "    local before=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\" verb under\n"
    "    COMPREPLY=()\n"
    "    verb=$before under=$(_weft_under \"$before\")\n"
    "    while [ -n \"$verb\" ] && [ -z \"$(_weft_flags \"$verb\")\" ]; do\n"
    "        case $verb in *' '*) verb=${verb% *};; *) verb=;; esac\n"
    "    done\n"
    "    if [ \"$cur\" = = ]; then key=$prev cur=\n"
    "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -ge 2 ]; then "
    "key=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    elif [[ $cur == *=* ]]; then key=${cur%%=*} cur=${cur#*=}\n"
    "    elif [[ $prev == -* ]]; then words=$(_weft_flag_words \"$verb $prev\"); fi\n"
    "    case $key in\n"
    "        '') ;;\n"
    "        -*) words=$(_weft_flag_words \"$verb $key\");;\n"
    "        *) words=$(_weft_words \"$key\");;\n"
    "    esac\n"
    "    if [ -n \"$key$words\" ]; then\n"
    "        if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$under --help --version\" -- \"$cur\")); return\n"
    "    fi\n"
    "    if [ -n \"$under\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$under --help\" -- \"$cur\")); return\n"
    "    fi\n"
    "    case $cur in\n"
    "        -*) COMPREPLY=($(compgen -W \"$(_weft_flags \"$verb\")\" -- \"$cur\")); return;;\n"
    "    esac\n"
    "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "    case $_weft_keyed in\n"
    "        *\"|$verb|\"*)\n"
    "            local keys=($(compgen -W \"$_weft_keys\" -S = -- \"$cur\"))\n"
    "            [ ${#keys[@]} -gt 0 ] && COMPREPLY+=(\"${keys[@]}\") && compopt -o nospace "
    "2>/dev/null;;\n"
    "    esac\n"
    "    return 0\n"
    "}\n"
    "complete -o filenames -F _weft weft\n";

/* Returns whether both names begin with the same `length` characters and a word of `b` ends
 * there. */
static bool same_start(const char *a, const char *b, size_t length)
{
    return !strncmp(a, b, length) && strcspn(b + length, " ") == 0;
}

/* Prints one line of a case statement for a group of verbs: those whose names begin with the first
 * `length` characters of the name of verb i. The line lists the words that come next in the names
 * of the group, each word once. Prints nothing if the group was printed for an earlier verb. */
static void print_verb_group(FILE *out, const Verb *const *verbs, int count, int i, size_t length)
{
    const char *group = verbs[i]->name;
    for (int j = 0; j < i && length; ++j)
        if (same_start(group, verbs[j]->name, length) && verbs[j]->name[length]) return;
    fprintf(out, "        '%.*s') echo '", (int)length, group);
    size_t skip = length ? length + 1 : 0;
    for (int j = i, printed = 0; j < count; ++j) {
        const char *name = verbs[j]->name;
        if (length && (!same_start(group, name, length) || !name[length])) continue;
        size_t end = skip + strcspn(name + skip, " ");
        bool seen = false;
        for (int k = i; k < j; ++k) seen = seen || same_start(name, verbs[k]->name, end);
        if (!seen) fprintf(out, "%s%.*s", printed++ ? " " : "", (int)(end - skip), name + skip);
    }
    fputs("';;\n", out);
}

/* Prints two functions and a variable of the script. _weft_under lists the words that may follow
 * the first words of a verb; _weft_flags lists the flags of a verb; the variable _weft_keyed has
 * the verbs that accept key=value. */
static void print_verbs(FILE *out, const Verb *const *verbs, int count)
{
    fputs("_weft_under() {\n    case $1 in\n", out);
    print_verb_group(out, verbs, count, 0, 0);
    for (int i = 0; i < count; ++i)
        for (const char *space = verbs[i]->name; (space = strchr(space, ' ')); ++space)
            print_verb_group(out, verbs, count, i, (size_t)(space - verbs[i]->name));
    fputs("    esac\n}\n_weft_flags() {\n    case $1 in\n", out);
    for (int i = 0; i < count; ++i) {
        fprintf(out, "        '%s') echo '", verbs[i]->name);
        for (int f = 0; f < verbs[i]->flag_count; ++f) fprintf(out, "%s ", verbs[i]->flag[f].name);
        fputs("--help';;\n", out);
    }
    fputs("    esac\n}\n_weft_keyed='|", out);
    for (int i = 0; i < count; ++i)
        if (verbs[i]->words && strstr(verbs[i]->words, "key=value"))
            fprintf(out, "%s|", verbs[i]->name);
    fputs("'\n", out);
}

/* Prints the function _weft_flag_words, which lists the words of a flag of kind FLAG_CHOICE. */
static void print_choices(FILE *out, const Verb *const *verbs, int count)
{
    char word[WORD_BYTES];
    fputs("_weft_flag_words() {\n    case $1 in\n", out);
    for (int i = 0; i < count; ++i)
        for (int n = 0; n < verbs[i]->flag_count; ++n) {
            const Flag *f = &verbs[i]->flag[n];
            if (f->kind != FLAG_CHOICE) continue;
            fprintf(out, "        '%s %s') echo '", verbs[i]->name, f->name);
            for (int w = 0; w < words_count(f->value); ++w)
                fprintf(out, "%s%s", w ? " " : "", words_at(f->value, w, word));
            fputs("';;\n", out);
        }
    fputs("    *) ;;\n    esac\n}\n", out);
}

/* Prints the line of a case statement with the words of a key. */
static void print_words(FILE *out, const Option *o)
{
    char word[WORD_BYTES];
    bool is_bool = o->kind == &kind_bool;
    const char *words = is_bool ? "true|false" : option_words(o);
    fprintf(out, "        %s) echo '", o->key);
    for (int i = 0; i < words_count(words); ++i)
        fprintf(out, o->kind->list ? "%s[%s]" : "%s%s", i ? " " : "", words_at(words, i, word));
    fputs("';;\n", out);
}

void config_completion(FILE *out, const Verb *const *verbs, int count)
{
    fputs("# bash completion for weft; made by `weft help --completion`\n", out);
    print_verbs(out, verbs, count);
    print_choices(out, verbs, count);
    fputs("_weft_keys='", out);
    for (int i = 0; i < option_count; ++i) fprintf(out, "%s%s", i ? " " : "", options[i].key);
    fputs("'\n_weft_words() {\n    case $1 in\n", out);
    for (int i = 0; i < option_count; ++i)
        if (*option_words(&options[i]) || options[i].kind == &kind_bool)
            print_words(out, &options[i]);
    fputs("    esac\n}\n", out);
    fputs(complete_function, out);
}
