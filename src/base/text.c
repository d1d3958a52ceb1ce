/* Text for people: the nearest known word, bytes with a unit, times, and lists of words. */
#include "base.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* largest number of bytes of a word; text_nearest ignores longer words */
enum { WORD_MAX = 64 };

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the smallest number of edits that turn a into b. An edit inserts, deletes or replaces a
 * letter, or swaps two neighbours. Letter case is ignored. */
static int edit_distance(const char *a, const char *b)
{
    int la = (int)strlen(a), lb = (int)strlen(b), row[3][WORD_MAX + 1];
    for (int j = 0; j <= lb; ++j) row[0][j] = j;
    for (int i = 1; i <= la; ++i) {
        /* now, last, before: rows i, i - 1 and i - 2 of the table of distances */
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= lb; ++j) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
            now[j] = min_of(last[j - 1] + (ca != cb), 1 + min_of(last[j], now[j - 1]));
            bool swapped = i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
                           cb == tolower((unsigned char)a[i - 2]);
            if (swapped) now[j] = min_of(now[j], before[j - 2] + 1);
        }
    }
    return row[la % 3][lb];
}

int text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A word is near if the number of edits is at most a third of the letters of `word`, rounded up,
 * and less than the number of its letters. */
const char *text_nearest(const char *word, const char *const *words, int count)
{
    int length = (int)strlen(word), best = (length + 2) / 3 + 1;
    const char *nearest = NULL;
    if (length == 0 || length > WORD_MAX) return NULL;
    for (int i = 0; i < count; ++i) {
        if (strlen(words[i]) > WORD_MAX) continue;
        int distance = edit_distance(word, words[i]);
        if (distance < best && distance < length) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}

double text_nan_without_sign(double value)
{
    return isnan(value) ? fabs(value) : value;
}

char *text_bytes(double bytes, char *out)
{
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    int u = 0;
    while (bytes >= 999.95 && u < 5) {
        bytes /= 1000;
        ++u;
    }
    /* keeps the text within 16 bytes */
    if (bytes > 999999) bytes = 999999;
    snprintf(out, 16, u == 0 ? "%.0f %s" : "%.1f %s", bytes, unit[u]);
    return out;
}

char *text_seconds(double seconds, char *out)
{
    double capped = seconds < 0 ? 0 : seconds > 1e9 ? 1e9 : seconds;
    long s = (long)(capped + 0.5);
    if (s >= 3600)
        snprintf(out, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%ld:%02ld", s / 60, s % 60);
    return out;
}

void text_list_begin(TextList *list, int most)
{
    *list = (TextList){.most = most};
    list->out = open_memstream(&list->text, &list->bytes);
    if (!list->out) die_as(ERR_MEMORY, "out of memory");
}

void text_list_add(TextList *list, const char *word)
{
    if (list->count++ < list->most) fprintf(list->out, "%s%s", list->count > 1 ? ", " : "", word);
}

char *text_list_end(TextList *list)
{
    if (list->count > list->most) fprintf(list->out, " and %d more", list->count - list->most);
    if (fclose(list->out) != 0) die_as(ERR_MEMORY, "out of memory");
    return list->text;
}
