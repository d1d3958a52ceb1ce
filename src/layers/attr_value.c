/* Converts values of attributes from text, with a check of their range, and to text. A list "[3,
 * 5]" of a configuration is the text "3,5". */
#include "attr.h"
#include "kinds.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads the whole number at *text, and moves *text to the comma or the end of the text that must
 * follow it. Returns false if there is no such number. */
static bool read_int(const char **text, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(*text, &end, 10);
    if (end == *text || errno) return false;
    while (isspace((unsigned char)*end)) ++end;
    *text = end;
    return *end == '\0' || *end == ',';
}

static Status range_fail(const Attr *attr, const char *value)
{
    return fail(ERR_CONFIG, "%s: %s is out of range %g..%g%s", attr->name, value, attr->low,
                attr->high, attr->high_open ? " (exclusive)" : "");
}

static Status set_int(const Attr *attr, const char *value, int64_t *out)
{
    const char *text = value;
    long long n;
    if (!read_int(&text, &n) || *text)
        return fail(ERR_CONFIG, "%s: '%s' is not a whole number", attr->name, value);
    if ((double)n < attr->low || (double)n > attr->high) return range_fail(attr, value);
    *out = n;
    return OK;
}

/* Reads a list of at most `most` whole numbers, "3" or "3,5", into out[*count], and checks their
 * range. Sets *count to 0 if the text is not such a list. */
static Status read_ints(const Attr *attr, const char *value, int most, int *out, int *count)
{
    const char *text = value;
    long long n = 0;
    for (*count = 0; *count < most && read_int(&text, &n); ++text) {
        if ((double)n < attr->low || (double)n > attr->high) return range_fail(attr, value);
        out[(*count)++] = (int)n;
        if (!*text) return OK;
    }
    *count = 0;
    return OK;
}

/* Reads one number for height and width, "3", or two numbers, "3,5". */
static Status set_pair(const Attr *attr, const char *value, int pair[2])
{
    int n[2], count;
    TRY(read_ints(attr, value, 2, n, &count));
    if (count == 0)
        return fail(ERR_CONFIG, "%s: '%s' is neither a whole number nor a pair like [3, 5]",
                    attr->name, value);
    pair[0] = n[0];
    pair[1] = n[count - 1];
    return OK;
}

/* Reads one number for all edges, two numbers for height and width, or four numbers for the edges
 * above, below, left and right. */
static Status set_edges(const Attr *attr, const char *value, int edge[4])
{
    int n[4], count;
    TRY(read_ints(attr, value, 4, n, &count));
    if (count == 0 || count == 3)
        return fail(ERR_CONFIG,
                    "%s: '%s' is no whole number, no pair [height, width] and no list [above, "
                    "below, left, right]",
                    attr->name, value);
    for (int i = 0; i < 4; ++i) edge[i] = n[count == 4 ? i : count == 2 ? i / 2 : 0];
    return OK;
}

static Status set_float(const Attr *attr, const char *value, float *out)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end || !isfinite(v))
        return fail(ERR_CONFIG, "%s: '%s' is not a number", attr->name, value);
    if (v < attr->low || v > attr->high || (attr->high_open && v >= attr->high))
        return range_fail(attr, value);
    *out = (float)v;
    return OK;
}

static Status set_bool(const Attr *attr, const char *value, bool *out)
{
    *out = strcmp(value, "true") == 0;
    if (*out || strcmp(value, "false") == 0) return OK;
    return fail(ERR_CONFIG, "%s: '%s' is neither true nor false", attr->name, value);
}

/* Finds the word that consists of the first `length` characters of `value`, and sets *out to its
 * value. */
static Status find_word(const Attr *attr, const char *value, size_t length, int *out)
{
    char all[128] = "";
    for (const AttrWord *w = attr->words; w->word; ++w) {
        size_t used = strlen(all);
        if (strlen(w->word) == length && strncmp(value, w->word, length) == 0) {
            *out = w->value;
            return OK;
        }
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", w->word);
    }
    return fail(ERR_CONFIG, "%s: '%.*s' is none of %s", attr->name, (int)length, value, all);
}

static Status set_word(const Attr *attr, const char *value, int *out)
{
    return find_word(attr, value, strlen(value), out);
}

/* Reads one word for height and width, or two words. */
static Status set_word_pair(const Attr *attr, const char *value, int out[2])
{
    const size_t first = strcspn(value, ",");
    TRY(find_word(attr, value, first, &out[0]));
    out[1] = out[0];
    if (!value[first]) return OK;
    value += first + 1;
    return set_word(attr, value + strspn(value, " "), &out[1]);
}

/* Reads a list of numbers, "1,0.5,2", into `out`, which has room for `most` elements of `each`
 * numbers. *count: how many numbers there are. */
static Status read_floats(const Attr *attr, const char *value, int most, int each, float *out,
                          int *count)
{
    *count = 0;
    for (const char *at = value; *at;) {
        char *end;
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ','))
            return fail(ERR_CONFIG, "%s: '%s' is no list of numbers", attr->name, value);
        if (!(v >= attr->low && v <= attr->high)) return range_fail(attr, value);
        if (*count == most * each)
            return fail(ERR_CONFIG, "%s: more than %d values", attr->name, most);
        out[(*count)++] = (float)v;
        at = *end ? end + 1 : end;
    }
    return OK;
}

/* Reads the width and the height of each anchor: "10,13, 16,30". */
static Status set_anchors(const Attr *attr, const char *value, Anchors *out)
{
    Anchors read = {0};
    float side[2 * ANCHORS_MOST] = {0};
    int count;
    TRY(read_floats(attr, value, ANCHORS_MOST, 2, side, &count));
    if (count % 2)
        return fail(ERR_CONFIG, "%s: '%s' has a width without a height", attr->name, value);
    read.count = count / 2;
    memcpy(read.side, side, sizeof read.side);
    *out = read;
    return OK;
}

/* Reads a weight for each class: "1,0.5,2". */
static Status set_weights(const Attr *attr, const char *value, ClassWeights *out)
{
    ClassWeights read = {0};
    TRY(read_floats(attr, value, CLASS_WEIGHTS_MOST, 1, read.value, &read.count));
    *out = read;
    return OK;
}

Status attr_read(const Attr *attr, const char *value, void *field)
{
    int64_t n;
    switch (attr->type) {
    case ATTR_COUNT:
        return set_int(attr, value, field);
    case ATTR_INT:
        TRY(set_int(attr, value, &n));
        *(int *)field = (int)n;
        return OK;
    case ATTR_PAIR:
        return set_pair(attr, value, field);
    case ATTR_PAD:
        if (strcmp(value, "same") != 0) return set_pair(attr, value, field);
        ((int *)field)[0] = ((int *)field)[1] = PADDING_SAME;
        return OK;
    case ATTR_EDGES:
        return set_edges(attr, value, field);
    case ATTR_FLOAT:
        return set_float(attr, value, field);
    case ATTR_BOOL:
        return set_bool(attr, value, field);
    case ATTR_WORD:
        return set_word(attr, value, field);
    case ATTR_WORD_PAIR:
        return set_word_pair(attr, value, field);
    case ATTR_ANCHORS:
        return set_anchors(attr, value, field);
    case ATTR_WEIGHTS:
        return set_weights(attr, value, field);
    case ATTR_UNSET:
        break;
    }
    return fail(ERR_BUG, "attribute %s has no type", attr->name);
}

/* Returns the word with this value, or "". */
static const char *word_of(const Attr *attr, int value)
{
    const AttrWord *w = attr->words;
    while (w->word && w->value != value) ++w;
    return w->word ? w->word : "";
}

void attr_write(const Attr *attr, const void *field, char out[ATTR_VALUE])
{
    const int *n = field;
    out[0] = '\0';
    switch (attr->type) {
    case ATTR_COUNT:
        snprintf(out, ATTR_VALUE, "%lld", (long long)*(const int64_t *)field);
        break;
    case ATTR_INT:
        snprintf(out, ATTR_VALUE, "%d", *n);
        break;
    case ATTR_PAIR:
    case ATTR_PAD:
        snprintf(out, ATTR_VALUE, "[%d, %d]", n[0], n[1]);
        break;
    case ATTR_EDGES:
        snprintf(out, ATTR_VALUE, "[%d, %d, %d, %d]", n[0], n[1], n[2], n[3]);
        break;
    case ATTR_FLOAT:
        /* the fewest digits that give the same float */
        for (int digits = 6; digits <= 9; ++digits) {
            snprintf(out, ATTR_VALUE, "%.*g", digits, (double)*(const float *)field);
            if (strtof(out, NULL) == *(const float *)field) break;
        }
        break;
    case ATTR_BOOL:
        snprintf(out, ATTR_VALUE, "%s", *(const bool *)field ? "true" : "false");
        break;
    case ATTR_WORD:
        snprintf(out, ATTR_VALUE, "%s", word_of(attr, *n));
        break;
    case ATTR_WORD_PAIR:
        snprintf(out, ATTR_VALUE, "[%s, %s]", word_of(attr, n[0]), word_of(attr, n[1]));
        break;
    case ATTR_ANCHORS:
        snprintf(out, ATTR_VALUE, "%d anchors", ((const Anchors *)field)->count);
        break;
    case ATTR_WEIGHTS:
        snprintf(out, ATTR_VALUE, "%d weights", ((const ClassWeights *)field)->count);
        break;
    case ATTR_UNSET:
        break;
    }
}
