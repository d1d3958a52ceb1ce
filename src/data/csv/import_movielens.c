/* weft data import movielens: imports the ratings of MovieLens-100k (Harper and Konstan 2015),
 * u.data, or of a similar file. A line has a user, a film, a rating from 0.5 to 5 and a time, with
 * tabs between them. A rating of 4 or more becomes label 1. Rows are sorted by time, and the last
 * rows are the test set, because with a random test set a model would learn from later ratings. If
 * PATH is a folder, two more files in it are read if they exist. u.user gives the age, gender and
 * occupation of a user. u.item gives the genres of a film; a film may have several. */
#include "csv.h"
#include "moments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 256 << 20,
    /* bytes of a gender or an occupation that are used */
    WORD_BYTES_MAX = 200,
    /* largest number of parts into which a line is split */
    PARTS_MAX = 32,
    /* largest number by which a user or a film may be named */
    NUMBER_MAX = 10000000,
    /* number of genres */
    GENRES = 19,
    /* index of the first genre among the parts of a line of u.item */
    GENRE_PART = 5,
    /* smallest rating with label 1 */
    LIKED_MIN = 4
};
/* number of fields: user, item, gender, occupation, genre */
enum { FIELDS = 5 };

typedef struct Rating {
    /* in seconds */
    int64_t time;
    /* number of its line in the file */
    int64_t line;
    /* numbers of the user and of the film */
    int user, item;
    /* label: 1 for a rating of LIKED_MIN or more, else 0 */
    int liked;
} Rating;
typedef struct User {
    /* age in years; NAN: unknown */
    double age;
    /* indices in Movies.gender and Movies.occupation; -1: unknown */
    int gender, occupation;
} User;
typedef struct Movies {
    /* owned: `count` ratings, sorted by time */
    Rating *rating;
    int64_t count;
    /* largest number of a user, and of a film, in the ratings */
    int users, items;
    /* true: the file u.user was found */
    bool has_users;
    /* true: the file u.item was found */
    bool has_items;
    /* owned: users, indexed by their numbers */
    User *user;
    /* owned: for each film, indexed by its number, the bit set of its genres */
    uint32_t *genres;
    /* vocabularies */
    CsvVocab gender, occupation;
    /* mean and deviation of the age over the ratings for training */
    double mean, deviation;
    /* first id of each field that the table has; then the end of the last field's ids */
    uint64_t first_id[FIELDS + 1];
} Movies;

/* a text file of which one line at a time is split into parts */
typedef struct Lines {
    const char *path;
    /* owned */
    char *text;
    /* text after the current line, in `text`; NULL: none is left */
    char *rest;
    /* number of the current line, from 1 */
    int64_t line;
    /* the current line's parts, in `text`, [parts] */
    char *part[PARTS_MAX];
    int parts;
} Lines;

static Status lines_open(Lines *l, const char *path)
{
    size_t bytes;
    *l = (Lines){.path = path};
    TRY(packed_text(path, FILE_BYTES_MAX, &l->text, &bytes));
    l->rest = l->text;
    return OK;
}

/* Reads the next line that is not empty. Returns false if there is none. */
static bool lines_next(Lines *l, const char *separator)
{
    char *line;
    do {
        if (!(line = strsep(&l->rest, "\n"))) return false;
        ++l->line;
        line[strcspn(line, "\r")] = 0;
    } while (!*line);
    for (l->parts = 0; line && l->parts < PARTS_MAX; ++l->parts)
        l->part[l->parts] = strsep(&line, separator);
    return true;
}

static Status line_fail(const Lines *l, const char *what)
{
    return fail(ERR_DATA, "%s: line %lld: %s", l->path, (long long)l->line, what);
}

/* Parses a text that is an integer from lo to hi and nothing else. */
static bool parse_whole(const char *text, int64_t lo, int64_t hi, int64_t *value)
{
    return whole_read(&text, lo, hi, value) && *text == 0;
}

static bool parse_number(const char *text, double *value)
{
    CsvValue all = {text, strlen(text)};
    return csv_parse_number(&all, value) && isfinite(*value);
}

static Status parse_rating(Lines *l, Rating *r)
{
    int64_t user, item;
    double stars, time;
    if (l->parts != 4 || !parse_whole(l->part[0], 1, NUMBER_MAX, &user) ||
        !parse_whole(l->part[1], 1, NUMBER_MAX, &item))
        return line_fail(l, "expected user, film, rating and time, with tabs between them");
    if (!parse_number(l->part[2], &stars) || stars < 0.5 || stars > 5)
        return line_fail(l, "the rating is not from 0.5 to 5");
    if (!parse_number(l->part[3], &time) || fabs(time) > 9e15)
        return line_fail(l, "the time is not a number of seconds");
    *r = (Rating){(int64_t)time, l->line, (int)user, (int)item, stars >= LIKED_MIN};
    return OK;
}

static int by_time(const void *a, const void *b)
{
    const Rating *x = a, *y = b;
    if (x->time != y->time) return x->time > y->time ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

static Status read_ratings(Movies *m, const char *path)
{
    Lines l;
    int64_t room = 0;
    TRY(lines_open(&l, path));
    Status st = OK;
    while (st == OK && lines_next(&l, "\t")) {
        /* RecBole's copy of the file begins with the names of the columns. */
        if (l.line == 1 && strncmp(l.part[0], "user_id", 7) == 0) continue;
        if (m->count == room) {
            room = room ? 2 * room : 1 << 16;
            m->rating = mem_resize(m->rating, (size_t)room * sizeof *m->rating);
        }
        st = parse_rating(&l, &m->rating[m->count]);
        if (st != OK) break;
        const Rating *r = &m->rating[m->count++];
        if (r->user > m->users) m->users = r->user;
        if (r->item > m->items) m->items = r->item;
    }
    mem_free(&l.text);
    TRY(st);
    if (m->count == 0) return fail(ERR_DATA, "%s: holds no ratings", path);
    qsort(m->rating, (size_t)m->count, sizeof *m->rating, by_time);
    return OK;
}

/* Adds a word to a vocabulary and returns its index in the order of first occurrence. */
static int add_word(CsvVocab *vocab, const char *word)
{
    char text[WORD_BYTES_MAX + CSV_OVERREAD_BYTES] = "";
    CsvValue value = {text, strnlen(word, WORD_BYTES_MAX)};
    memcpy(text, word, value.length);
    /* Until csv_vocab_assign_ids is called, csv_vocab_find returns the smallest `first` with which
     * the word was added; here it is the word's index. */
    csv_vocab_add(vocab, &value, (uint64_t)vocab->count, 1);
    return (int)csv_vocab_find(vocab, &value, 0);
}

/* Reads u.user: number|age|gender|occupation|zip. */
static Status read_users(Movies *m, const char *path)
{
    Lines l;
    int64_t user;
    TRY(lines_open(&l, path));
    Status st = OK;
    for (int i = 0; i <= m->users; ++i) m->user[i] = (User){NAN, -1, -1};
    while (st == OK && lines_next(&l, "|")) {
        double years;
        if (l.parts != 5 || !parse_whole(l.part[0], 1, NUMBER_MAX, &user) ||
            !parse_number(l.part[1], &years))
            st = line_fail(&l, "expected number|age|gender|occupation|zip code");
        else if (user <= m->users)
            m->user[user] =
                (User){years, add_word(&m->gender, l.part[2]), add_word(&m->occupation, l.part[3])};
    }
    mem_free(&l.text);
    return st;
}

/* Reads u.item: number|title|date|date|address|19 genres, each 0 or 1. */
static Status read_items(Movies *m, const char *path)
{
    Lines l;
    int64_t item;
    TRY(lines_open(&l, path));
    Status st = OK;
    while (st == OK && lines_next(&l, "|")) {
        if (l.parts != GENRE_PART + GENRES || !parse_whole(l.part[0], 1, NUMBER_MAX, &item)) {
            st = line_fail(&l, "expected number|title|date|date|address and 19 genres, 0 or 1");
            break;
        }
        for (int g = 0; g < GENRES && item <= m->items; ++g)
            if (strcmp(l.part[GENRE_PART + g], "1") == 0) m->genres[item] |= 1U << g;
    }
    mem_free(&l.text);
    return st;
}

static Status read_files(Movies *m, const char *path)
{
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *data = mem_format("%s%s", path, folder ? "/u.data" : "");
    char *user = mem_format("%s/u.user", path), *item = mem_format("%s/u.item", path);
    Status status = read_ratings(m, data);
    if (status == OK) {
        m->user = mem_new((size_t)(m->users + 1) * sizeof *m->user);
        m->genres = mem_new((size_t)(m->items + 1) * sizeof *m->genres);
        m->has_users = folder && access(user, F_OK) == 0;
        m->has_items = folder && access(item, F_OK) == 0;
    }
    if (status == OK && m->has_users) status = read_users(m, user);
    if (status == OK && m->has_items) status = read_items(m, item);
    mem_free(&data);
    mem_free(&user);
    mem_free(&item);
    return status;
}

/* ---- the table ---- */

/* Lists the fields that the table has, and finds their first ids. The id of a user or film is the
 * field's first id + its number; no number is 0. The first id of fields gender and occupation means
 * "unknown". */
static void list_fields(Movies *m, const char **name, int *count)
{
    static const char *const names[FIELDS] = {"user", "item", "gender", "occupation", "genre"};
    const bool has_field[FIELDS] = {true, true, m->has_users, m->has_users, m->has_items};
    const uint64_t ids[FIELDS] = {(uint64_t)m->users + 1, (uint64_t)m->items + 1,
                                  (uint64_t)m->gender.count + 1, (uint64_t)m->occupation.count + 1,
                                  GENRES};
    uint64_t next = 0;
    for (int f = *count = 0; f < FIELDS; ++f) {
        if (!has_field[f]) continue;
        name[*count] = names[f];
        m->first_id[(*count)++] = next;
        next += ids[f];
    }
    m->first_id[*count] = next;
}

/* Returns the age of a rating's user, or the mean of the ages if it is unknown. */
static double age_or_mean(const Movies *m, const Rating *r)
{
    double age = m->user[r->user].age;
    return isnan(age) ? m->mean : age;
}

/* Computes mean and deviation of the users' ages over the first `rows` ratings, which are for
 * training. Ratings by users of unknown age are left out. */
static void compute_age_mean(Movies *m, int64_t rows)
{
    Moments age = {0};
    for (int64_t i = 0; m->has_users && i < rows; ++i) {
        double years = m->user[m->rating[i].user].age;
        if (!isnan(years)) moments_add(&age, years);
    }
    m->mean = moments_mean(&age);
    m->deviation = moments_deviation(&age);
}

/* Writes the ids of a rating to `ids` from index `at` on. Sets ends[f] to the index after the last
 * id of the table's field f. Returns the index after the last id of the rating. */
static uint64_t put_rating_ids(const Movies *m, const Rating *r, uint64_t *ids, uint64_t at,
                               uint64_t *ends)
{
    int f = 0;
    ids[at++] = m->first_id[f++] + (uint64_t)r->user;
    *ends++ = at;
    ids[at++] = m->first_id[f++] + (uint64_t)r->item;
    *ends++ = at;
    if (m->has_users) {
        ids[at++] = m->first_id[f++] + (uint64_t)(m->user[r->user].gender + 1);
        *ends++ = at;
        ids[at++] = m->first_id[f++] + (uint64_t)(m->user[r->user].occupation + 1);
        *ends++ = at;
    }
    if (!m->has_items) return at;
    for (unsigned g = 0; g < GENRES; ++g)
        if (m->genres[r->item] >> g & 1) ids[at++] = m->first_id[f] + g;
    *ends = at;
    return at;
}

static herr_t put_words(void *user, hid_t file)
{
    const Movies *m = user;
    hid_t group = H5Gcreate2(file, "/vocab", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool good = group >= 0;
    if (good && m->gender.count) good = csv_vocab_put(&m->gender, file, "gender") >= 0;
    if (good && m->occupation.count) good = csv_vocab_put(&m->occupation, file, "occupation") >= 0;
    if (group >= 0) H5Gclose(group);
    return good ? 0 : -1;
}

/* Writes ratings `first` to first + count - 1 as a data set. */
static Status write_set(Movies *m, const char *out, bool force, int64_t first, int64_t count)
{
    /* WORDS_BYTES: bytes reserved for the vocabularies */
    enum { SAMPLE_IDS_MAX = FIELDS - 1 + GENRES, WORDS_BYTES = 1 << 16 };
    const char *name[FIELDS], *column = m->has_users ? "age" : "one";
    int fields;
    TableWriter writer;
    list_fields(m, name, &fields);
    float *dense = mem_new((size_t)count * sizeof *dense);
    int32_t *y = mem_new((size_t)count * sizeof *y);
    uint64_t *ids = mem_new((size_t)(count * SAMPLE_IDS_MAX) * sizeof *ids), at = 0;
    uint64_t *ends = mem_new((size_t)(count * fields + 1) * sizeof *ends);
    int64_t sample_ids_max = 0;
    for (int64_t i = 0; i < count; ++i) {
        const Rating *r = &m->rating[first + i];
        uint64_t begin = at;
        dense[i] = m->has_users ? (float)((age_or_mean(m, r) - m->mean) / m->deviation) : 1;
        y[i] = r->liked;
        at = put_rating_ids(m, r, ids, at, ends + i * fields + 1);
        if ((int64_t)(at - begin) > sample_ids_max) sample_ids_max = (int64_t)(at - begin);
    }
    TableLayout layout = {.samples = count,
                          .columns = 1,
                          .fields = fields,
                          .column_name = &column,
                          .field_name = name,
                          .id_limit = m->first_id[fields],
                          .field_first = m->first_id,
                          .flat_ids = m->has_items ? (int64_t)at : 0,
                          .sample_ids_max = sample_ids_max,
                          .class_name = {"below 4", "4 and more"}};
    if (m->has_users) {
        layout.mean = &m->mean, layout.deviation = &m->deviation;
        layout.put_more = put_words, layout.user = m, layout.more_bytes = WORDS_BYTES;
        layout.vocab_hash = csv_vocab_hash(&m->occupation, csv_vocab_hash(&m->gender, 0));
    }
    Status st = table_new(&writer, out, force, &layout);
    if (st == OK) st = table_put(&writer, 0, count, dense, m->has_items ? NULL : ids, y);
    if (st == OK && m->has_items) st = table_put_flat(&writer, ids, ends);
    if (st == OK) st = table_finish(&writer);
    if (st == OK) log_info("wrote %s: %lld ratings", out, (long long)count);
    table_drop(&writer);
    mem_free(&dense);
    mem_free(&y);
    mem_free(&ids);
    mem_free(&ends);
    return st;
}

typedef struct MovieOptions {
    const char *out, *test;
    double test_share;
    bool force;
} MovieOptions;

static Status import(Movies *m, const MovieOptions *o, const char *path)
{
    static const char *const name[] = {"u.data", "u.user", "u.item"};
    TRY(part_check_outputs(o->out, o->test, o->force));
    TRY(part_check_not_input(o->out, path, name, 3));
    TRY(part_check_not_input(o->test, path, name, 3));
    TRY(read_files(m, path));
    int64_t test = o->test ? (int64_t)((double)m->count * o->test_share + 0.5) : 0;
    if (o->test && (test < 1 || test >= m->count))
        return fail(ERR_DATA,
                    "%s: --test-share %g of %lld ratings leaves one data set without ratings", path,
                    o->test_share, (long long)m->count);
    csv_vocab_assign_ids(&m->gender, false, 1, 0);
    csv_vocab_assign_ids(&m->occupation, false, 1, 0);
    compute_age_mean(m, m->count - test);
    if (o->test) TRY(write_set(m, o->test, o->force, m->count - test, test));
    return write_set(m, o->out, o->force, 0, m->count - test);
}

static const Flag flags[] = {
    FLAG_OUT(MovieOptions, out, "the data set to write"),
    {"--test", FLAG_FIELD(MovieOptions, test), .value = "OUT", .writes = true,
     .help = "second data set, with the latest ratings"},
    {"--test-share", FLAG_FIELD(MovieOptions, test_share), .value = "S", .hi = 1,
     .default_text = "0.1", .needs = "--test", .help = "fraction of the ratings for --test"},
    FLAG_FORCE(MovieOptions, force),
};

static Status run(int argc, char **argv, const void *options)
{
    Movies m = {0};
    (void)argc;
    Status st = import(&m, options, argv[0]);
    mem_free(&m.rating);
    mem_free(&m.user);
    mem_free(&m.genres);
    csv_vocab_fini(&m.gender);
    csv_vocab_fini(&m.occupation);
    return st;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_movielens = {
    .name = "data import movielens",
    .words = "PATH",
    .words_min = 1,
    .words_max = 1,
    .expects = "the folder of MovieLens-100k, or its ratings, and -o OUT",
    .help = "imports the ratings of MovieLens-100k: users, films, likes",
    .more = "Rows are sorted by time. In a folder u.data is read, and u.user and u.item if they "
            "exist.",
    VERB_FLAGS(MovieOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
