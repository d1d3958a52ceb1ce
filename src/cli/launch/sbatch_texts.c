/* Checks the names, sizes, lists of numbers and times that the user gives to weft sbatch in Slurm's
 * notation. The script has these texts in its #SBATCH and srun lines, so characters with a special
 * meaning for Slurm or the shell are refused. In --more they are allowed. */
#include "../private.h"

#include "sbatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Slurm's largest task number in an array */
enum { TASK_NUMBER_MAX = 4000000 };

static const char digits[] = "0123456789";
const char sbatch_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Checks that a text is not empty, has only letters, digits and the characters `marks`, and does
 * not begin with "-". text: NULL if the flag is not given. */
static Status check_word(const char *flag, const char *text, const char *marks)
{
    if (!text) return OK;
    size_t good = 0;
    while (text[good] && (strchr(sbatch_letters, text[good]) || strchr(marks, text[good]))) ++good;
    if (good > 0 && !text[good] && *text != '-') return OK;
    return fail(ERR_USAGE, "%s %s: expected letters, digits and %s", flag, text, marks);
}

static Status check_more(const char *more)
{
    if (!more) return OK;
    for (const char *at = more; *(at += strspn(at, " ")); at += strcspn(at, " "))
        if (strncmp(at, "--", 2) != 0)
            return fail(ERR_USAGE, "--more %s: expected options of sbatch, each as --NAME=VALUE",
                        more);
    for (const char *c = more; *c; ++c)
        if ((unsigned char)*c < ' ') return fail(ERR_USAGE, "--more: expected options on one line");
    return OK;
}

/* Checks a size, as sbatch accepts it: a whole number, perhaps followed by a unit: K, M, G or T,
 * perhaps with a B. */
static Status check_memory(const char *memory)
{
    if (!memory) return OK;
    size_t n = strspn(memory, digits);
    const char *unit = memory + n;
    if (*unit && strchr("KMGTkmgt", *unit)) unit += 1 + (unit[1] == 'B' || unit[1] == 'b');
    if (n > 0 && !*unit) return OK;
    return fail(ERR_USAGE,
                "--mem %s: expected a size in the form of sbatch: 8G, 64000M, 0 for all of a node",
                memory);
}

/* Reads a number of an array's list and moves *at past it. Returns whether there is a number, from
 * min to TASK_NUMBER_MAX. */
static bool read_number(const char **at, long min, long *number)
{
    if (!**at || !strchr(digits, **at)) return false;
    char *end;
    *number = strtol(*at, &end, 10);
    *at = end;
    return *number >= min && *number <= TASK_NUMBER_MAX;
}

/* Moves *at past `mark` and returns true; returns false if there is another character. */
static bool skip(const char **at, char mark)
{
    if (**at != mark) return false;
    ++*at;
    return true;
}

/* Returns whether the text is a list of task numbers: N, FIRST-LAST or FIRST-LAST:STEP, separated
 * by commas, perhaps with %LIMIT at the end. */
static bool is_array(const char *at)
{
    long first, number;
    do {
        if (!read_number(&at, 0, &first)) return false;
        if (!skip(&at, '-')) continue;
        if (!read_number(&at, first, &number)) return false;
        if (skip(&at, ':') && !read_number(&at, 1, &number)) return false;
    } while (skip(&at, ','));
    if (skip(&at, '%') && !read_number(&at, 1, &number)) return false;
    return !*at;
}

Status sbatch_check_texts(const SbatchOptions *o)
{
    TRY(check_word("--partition", o->partition, "_.,+-"));
    TRY(check_word("--account", o->account, "_.,+@:-"));
    TRY(check_word("--mpi", o->mpi, "_./-"));
    TRY(check_memory(o->memory));
    if (o->array && !is_array(o->array))
        return fail(
            ERR_USAGE,
            "--array %s: expected numbers in the form of sbatch, ascending and up to %d: 1-8, "
            "0,3,7, 0-9:3, 1-8%%2",
            o->array, TASK_NUMBER_MAX);
    return check_more(o->more);
}

Status sbatch_read_minutes(const char *text, int64_t *minutes)
{
    double seconds;
    if (!text_read_seconds(text, &seconds) || seconds <= 0 || seconds > 1e9)
        return fail(ERR_USAGE,
                    "--time %s: expected a length of time: 90m, 12h, 2d, 12:00:00, "
                    "1-12:00:00",
                    text);
    *minutes = (int64_t)ceil(seconds / 60);
    return OK;
}
