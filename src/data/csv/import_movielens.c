/* weft data import movielens: ratings of MovieLens-100k (Harper and Konstan 2015), u.data, or of a
 * similar file: lines of user, film, rating from 1 to 5 and time, separated by tabs. A rating of 4
 * or more becomes label 1. Rows are sorted by time, and the last ones are the test set, since a
 * random test set would reveal the future. In a folder, u.user and u.item are read if present: a
 * user's age, gender and occupation, and a film's genres, of which it may have several. */
#include "csv.h"
#include "moments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TEXT_BYTES = 256 << 20,
    WORD_BYTES = 200,
    NUMBER_MOST = 10000000,
    GENRES = 19,
    GENRE_AT = 5,
    LIKED = 4
};
enum { USER, ITEM, GENDER, OCCUPATION, GENRE, FIELDS };

typedef struct Rating {
    int64_t time, line;
    int user, item, liked;
} Rating;
typedef struct User {
    double age;
    /* numbers of the words; -1: unknown */
    int gender, occupation;
} User;
typedef struct Movies {
    /* owned: count ratings */
    Rating *rating;
    int64_t count;
    /* largest user and film number; is u.user or u.item present? */
    int users, items;
    bool has_users, has_items;
    /* owned: per user; per film, with a bit for each genre */
    User *user;
    uint32_t *genres;
    CsvVocab gender, occupation;
    double mean, deviation;
    uint64_t first[FIELDS + 1];
} Movies;

/* reads a file line by line and splits lines into parts */
typedef struct Lines {
    const char *path;
    /* owned */
    char *text;
    char *walk;
    int64_t line;
    char *part[32];
    int parts;
} Lines;

static Status lines_open(Lines *l, const char *path)
{
    size_t bytes;
    *l = (Lines){.path = path};
    TRY(packed_text(path, TEXT_BYTES, &l->text, &bytes));
    l->walk = l->text;
    return OK;
}

static bool lines_next(Lines *l, const char *separator)
{
    char *line;
    do {
        if (!(line = strsep(&l->walk, "\n"))) return false;
        ++l->line;
        line[strcspn(line, "\r")] = 0;
    } while (!*line);
    for (l->parts = 0; line && l->parts < 32; ++l->parts)
        l->part[l->parts] = strsep(&line, separator);
    return true;
}

static Status line_fail(const Lines *l, const char *what)
{
    return fail(ERR_DATA, "%s: line %lld: %s", l->path, (long long)l->line, what);
}

/* Parses a text that is a whole number and nothing else. */
static bool whole(const char *text, int64_t lo, int64_t hi, int64_t *value)
{
    return whole_read(&text, lo, hi, value) && *text == 0;
}

static bool number(const char *text, double *value)
{
    CsvValue all = {text, strlen(text)};
    return csv_number(&all, value) && isfinite(*value);
}

static Status rating_read(Lines *l, Rating *r)
{
    int64_t user, item;
    double stars, time;
    if (l->parts != 4 || !whole(l->part[0], 1, NUMBER_MOST, &user) ||
        !whole(l->part[1], 1, NUMBER_MOST, &item))
        return line_fail(l, "expected user, film, rating and time, with tabs between them");
    if (!number(l->part[2], &stars) || stars < 0.5 || stars > 5)
        return line_fail(l, "the rating is not from 0.5 to 5");
    if (!number(l->part[3], &time) || fabs(time) > 9e15)
        return line_fail(l, "the time is no number of seconds");
    *r = (Rating){(int64_t)time, l->line, (int)user, (int)item, stars >= LIKED};
    return OK;
}

static int by_time(const void *a, const void *b)
{
    const Rating *x = a, *y = b;
    if (x->time != y->time) return x->time > y->time ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

static Status ratings_read(Movies *m, const char *path)
{
    Lines l;
    int64_t room = 0;
    TRY(lines_open(&l, path));
    Status st = OK;
    while (st == OK && lines_next(&l, "\t")) {
        /* RecBole's copy begins with a line of names. */
        if (l.line == 1 && strncmp(l.part[0], "user_id", 7) == 0) continue;
        if (m->count == room) {
            room = room ? 2 * room : 1 << 16;
            m->rating = mem_resize(m->rating, (size_t)room * sizeof *m->rating);
        }
        st = rating_read(&l, &m->rating[m->count]);
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

/* Returns the number of a word in its field, in order of first occurrence. */
static int word_number(CsvVocab *vocab, const char *word)
{
    char text[WORD_BYTES + CSV_BEYOND] = "";
    CsvValue value = {text, strnlen(word, WORD_BYTES)};
    memcpy(text, word, value.length);
    /* Before csv_vocab_done, csv_vocab_find returns `first`: here the number that the word will
     * get. */
    csv_vocab_add(vocab, &value, (uint64_t)vocab->count, 1);
    return (int)csv_vocab_find(vocab, &value, 0);
}

/* Reads u.user: number|age|gender|occupation|zip. */
static Status users_read(Movies *m, const char *path)
{
    Lines l;
    int64_t user;
    TRY(lines_open(&l, path));
    Status st = OK;
    for (int i = 0; i <= m->users; ++i) m->user[i] = (User){NAN, -1, -1};
    while (st == OK && lines_next(&l, "|")) {
        double years;
        if (l.parts != 5 || !whole(l.part[0], 1, NUMBER_MOST, &user) || !number(l.part[1], &years))
            st = line_fail(&l, "expected number|age|gender|occupation|zip code");
        else if (user <= m->users)
            m->user[user] = (User){years, word_number(&m->gender, l.part[2]),
                                   word_number(&m->occupation, l.part[3])};
    }
    mem_free(&l.text);
    return st;
}

/* Reads u.item: number|title|two dates|address|19 genres, each 0 or 1. */
static Status items_read(Movies *m, const char *path)
{
    Lines l;
    int64_t item;
    TRY(lines_open(&l, path));
    Status st = OK;
    while (st == OK && lines_next(&l, "|")) {
        if (l.parts != GENRE_AT + GENRES || !whole(l.part[0], 1, NUMBER_MOST, &item)) {
            st = line_fail(&l, "expected number|title|date|date|address and 19 genres, 0 or 1");
            break;
        }
        for (int g = 0; g < GENRES && item <= m->items; ++g)
            if (strcmp(l.part[GENRE_AT + g], "1") == 0) m->genres[item] |= 1U << g;
    }
    mem_free(&l.text);
    return st;
}

static Status movies_read(Movies *m, const char *path)
{
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *data = mem_format("%s%s", path, folder ? "/u.data" : "");
    char *user = mem_format("%s/u.user", path), *item = mem_format("%s/u.item", path);
    Status status = ratings_read(m, data);
    if (status == OK) {
        m->user = mem_new((size_t)(m->users + 1) * sizeof *m->user);
        m->genres = mem_new((size_t)(m->items + 1) * sizeof *m->genres);
        m->has_users = folder && access(user, F_OK) == 0;
        m->has_items = folder && access(item, F_OK) == 0;
    }
    if (status == OK && m->has_users) status = users_read(m, user);
    if (status == OK && m->has_items) status = items_read(m, item);
    mem_free(&data);
    mem_free(&user);
    mem_free(&item);
    return status;
}

/* ---- as a table ---- */

/* Finds the first id of each field. Users and films keep their numbers (0 is nobody); words follow
 * an id for "unknown"; genres have no such id. */
static void fields_place(Movies *m, const char **name, int *count)
{
    static const char *const all[FIELDS] = {"user", "item", "gender", "occupation", "genre"};
    const bool has[FIELDS] = {true, true, m->has_users, m->has_users, m->has_items};
    const uint64_t rows[FIELDS] = {(uint64_t)m->users + 1, (uint64_t)m->items + 1,
                                   (uint64_t)m->gender.count + 1, (uint64_t)m->occupation.count + 1,
                                   GENRES};
    uint64_t at = 0;
    for (int f = *count = 0; f < FIELDS; ++f) {
        if (!has[f]) continue;
        name[*count] = all[f];
        m->first[(*count)++] = at;
        at += rows[f];
    }
    m->first[*count] = at;
}

static double age_of(const Movies *m, const Rating *r)
{
    double age = m->user[r->user].age;
    return isnan(age) ? m->mean : age;
}

/* Computes mean and deviation over the training ratings by users of known age. */
static void age_settle(Movies *m, int64_t rows)
{
    Moments age = {0};
    for (int64_t i = 0; m->has_users && i < rows; ++i) {
        double years = m->user[m->rating[i].user].age;
        if (!isnan(years)) moments_add(&age, years);
    }
    m->mean = moments_mean(&age);
    m->deviation = moments_deviation(&age);
}

/* Appends the ids of a rating at index `at` of ids; ends: index behind the last id of each field.
 * Returns the new number of ids. */
static uint64_t rating_ids(const Movies *m, const Rating *r, uint64_t *ids, uint64_t at,
                           uint64_t *ends)
{
    int f = 0;
    ids[at++] = m->first[f++] + (uint64_t)r->user;
    *ends++ = at;
    ids[at++] = m->first[f++] + (uint64_t)r->item;
    *ends++ = at;
    if (m->has_users) {
        ids[at++] = m->first[f++] + (uint64_t)(m->user[r->user].gender + 1);
        *ends++ = at;
        ids[at++] = m->first[f++] + (uint64_t)(m->user[r->user].occupation + 1);
        *ends++ = at;
    }
    if (!m->has_items) return at;
    for (unsigned g = 0; g < GENRES; ++g)
        if (m->genres[r->item] >> g & 1) ids[at++] = m->first[f] + g;
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

/* Writes ratings first .. first + count - 1 as a data set. */
static Status set_write(Movies *m, const char *out, bool force, int64_t first, int64_t count)
{
    enum { IDS_MOST = FIELDS - 1 + GENRES };
    const char *name[FIELDS], *column = m->has_users ? "age" : "one";
    int fields;
    TableWriter writer;
    fields_place(m, name, &fields);
    float *dense = mem_new((size_t)count * sizeof *dense);
    int32_t *y = mem_new((size_t)count * sizeof *y);
    uint64_t *ids = mem_new((size_t)(count * IDS_MOST) * sizeof *ids), at = 0;
    uint64_t *ends = mem_new((size_t)(count * fields + 1) * sizeof *ends);
    int64_t most = 0;
    for (int64_t i = 0; i < count; ++i) {
        const Rating *r = &m->rating[first + i];
        uint64_t begin = at;
        dense[i] = m->has_users ? (float)((age_of(m, r) - m->mean) / m->deviation) : 1;
        y[i] = r->liked;
        at = rating_ids(m, r, ids, at, ends + i * fields + 1);
        if ((int64_t)(at - begin) > most) most = (int64_t)(at - begin);
    }
    TableLayout layout = {.samples = count,
                          .columns = 1,
                          .fields = fields,
                          .column_name = &column,
                          .field_name = name,
                          .id_rows = m->first[fields],
                          .field_first = m->first,
                          .id_count = m->has_items ? (int64_t)at : 0,
                          .id_most = most,
                          .class_name = {"below 4", "4 and more"}};
    if (m->has_users) {
        layout.mean = &m->mean, layout.deviation = &m->deviation;
        layout.more = put_words, layout.user = m, layout.more_bytes = 1 << 16;
        layout.words = csv_vocab_hash(&m->occupation, csv_vocab_hash(&m->gender, 0));
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
    TRY(part_free_places(o->out, o->test, o->force));
    TRY(part_no_input(o->out, path, name, 3));
    TRY(part_no_input(o->test, path, name, 3));
    TRY(movies_read(m, path));
    int64_t test = o->test ? (int64_t)((double)m->count * o->test_share + 0.5) : 0;
    if (o->test && (test < 1 || test >= m->count))
        return fail(ERR_DATA,
                    "%s: --test-share %g of %lld ratings leaves one of the two without "
                    "any",
                    path, o->test_share, (long long)m->count);
    csv_vocab_done(&m->gender, false, 1, 0);
    csv_vocab_done(&m->occupation, false, 1, 0);
    age_settle(m, m->count - test);
    if (o->test) TRY(set_write(m, o->test, o->force, m->count - test, test));
    return set_write(m, o->out, o->force, 0, m->count - test);
}

static const Flag flags[] = {
    FLAG_OUT(MovieOptions, out, "the data set to write"),
    {"--test", FLAG_FIELD(MovieOptions, test), .value = "OUT", .writes = true,
     .help = "a second data set, with the latest ratings"},
    {"--test-share", FLAG_FIELD(MovieOptions, test_share), .value = "S", .hi = 1, .fallback = "0.1",
     .needs = "--test", .help = "fraction of the ratings that it holds"},
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

const Verb import_movielens = {
    .name = "data import movielens",
    .words = "PATH",
    .least = 1,
    .most = 1,
    .expects = "the folder of MovieLens-100k, or its ratings, and -o OUT",
    .help = "imports the ratings of MovieLens-100k: users, films, likes",
    .more = "Rows are sorted by time. In a folder u.data is read, and u.user and u.item if they "
            "exist.",
    VERB_FLAGS(MovieOptions, flags),
    .traits = VERB_PLAIN,
    .run = run,
};
