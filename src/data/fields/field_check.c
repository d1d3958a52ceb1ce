/* Reads all frames of a set of fields and says what a user should know before a run: gaps and
 * repeated times, missing values, constant variables, values beyond float32. Only what a run could
 * not read, or learn nothing from, is an error. */
#include "fields_private.h"

#include <float.h>
#include <math.h>
#include <pthread.h>

/* gaps and repeated times that are named one by one */
enum { BREAKS_LISTED = 10 };

/* Values of one level of a variable in some frames. */
typedef struct Values {
    int64_t count, missing, beyond;
    double least, most;
} Values;

typedef struct Checking {
    FieldReader *reader;
    const FieldSet *f;
    pthread_mutex_t lock;
    /* protected by lock: values of all frames that have been read */
    Values all[FIELD_VARIABLES][FIELD_LEVELS];
} Checking;

static int64_t frames_of(const FieldSet *f, int variable)
{
    return f->variable[variable].is_static ? 1 : field_frames(f);
}

static void values_add(Values *all, const double *value, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        if (isnan(value[i])) {
            ++all->missing;
            continue;
        }
        if (all->count++ == 0) all->least = all->most = value[i];
        all->beyond += fabs(value[i]) > FLT_MAX;
        if (value[i] < all->least) all->least = value[i];
        if (value[i] > all->most) all->most = value[i];
    }
}

static void values_join(Values *all, const Values *one)
{
    if (one->count > 0) {
        all->least = all->count == 0 ? one->least : fmin(all->least, one->least);
        all->most = all->count == 0 ? one->most : fmax(all->most, one->most);
    }
    all->count += one->count;
    all->missing += one->missing;
    all->beyond += one->beyond;
}

/* Reads one frame of a variable: number i of all frames of all variables. */
static Status check_frame(void *user, int worker, int64_t i)
{
    Checking *c = user;
    const FieldSet *f = c->f;
    int variable = 0;
    int64_t frame = i;
    (void)worker;
    while (frame >= frames_of(f, variable)) frame -= frames_of(f, variable++);
    const FieldVariable *v = &f->variable[variable];
    const int64_t pixels = v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
    double *plane = mem_new((size_t)(v->levels * pixels) * sizeof *plane);
    Status st = field_read_variable(c->reader, variable, frame, plane);
    Values one[FIELD_LEVELS] = {0};
    for (int k = 0; st == OK && k < v->levels; ++k) values_add(&one[k], plane + k * pixels, pixels);
    pthread_mutex_lock(&c->lock);
    for (int k = 0; k < v->levels; ++k) values_join(&c->all[variable][k], &one[k]);
    pthread_mutex_unlock(&c->lock);
    mem_free(&plane);
    return st;
}

static void warn_of_times(const FieldSet *f)
{
    char a[FIELD_TIME_TEXT], b[FIELD_TIME_TEXT];
    int named = 0, breaks = 0;
    for (int i = 1; f->step_s > 0 && i < f->segments; ++i) {
        const FieldSegment *s = &f->segment[i - 1];
        const double last = field_frame_time(f, s->first + s->frames - 1);
        const int number = field_find_file(f, f->segment[i].first);
        const FieldFile *file = &f->file[number];
        const char *path = field_path(f, number);
        const bool gap = f->segment[i].start > last;
        /* a file that begins again is another member of an ensemble */
        if (!gap && file->first == f->segment[i].first) continue;
        if (++breaks > BREAKS_LISTED) continue;
        ++named;
        field_time_text(f, last, a);
        field_time_text(f, f->segment[i].start, b);
        if (gap)
            log_warn("%s: frames are missing between %s and %s: no sample goes over this gap", path,
                     a, b);
        else
            log_warn("%s: times fall or repeat: %s follows %s", path, b, a);
    }
    if (breaks > named) log_warn("%s: and %d more gaps", field_path(f, 0), breaks - named);
}

static const char *level_text(const FieldVariable *v, int level, char text[FIELD_NAME + 40])
{
    if (v->size[FIELD_LEVEL] == 1)
        snprintf(text, FIELD_NAME + 40, "%s", v->name);
    else if (isnan(v->level_value[level]))
        snprintf(text, FIELD_NAME + 40, "%s, level number %d,", v->name, v->level[level]);
    else
        snprintf(text, FIELD_NAME + 40, "%s at level %g", v->name, v->level_value[level]);
    return text;
}

static Status check_values(const FieldSet *f, const FieldVariable *v, int level, const Values *all)
{
    char name[FIELD_NAME + 40];
    const char *path = field_path(f, 0);
    level_text(v, level, name);
    if (all->count == 0)
        return fail(ERR_DATA, "%s: %s has no value that is not missing", path, name);
    if (all->missing > 0)
        log_warn("%s: %.3g %% of the values of %s are missing", path,
                 100.0 * (double)all->missing / (double)(all->missing + all->count), name);
    if (all->least == all->most) log_warn("%s: %s is %g everywhere", path, name, all->least);
    if (all->beyond > 0)
        log_warn("%s: %lld values of %s are beyond the range of float32", path,
                 (long long)all->beyond, name);
    return OK;
}

Status field_check(const DataSet *set)
{
    Checking *c = mem_new(sizeof *c);
    const FieldSet *f = c->f = &set->field_set;
    int64_t reads = 0;
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < f->stored; ++i) reads += frames_of(f, i);
    Status st = field_reader_new(&c->reader, set);
    if (st == OK) st = worker_pool_run(threads_share(1), reads, check_frame, c);
    if (st == OK) warn_of_times(f);
    for (int i = 0; st == OK && i < f->stored; ++i)
        for (int k = 0; st == OK && k < f->variable[i].levels; ++k)
            st = check_values(f, &f->variable[i], k, &c->all[i][k]);
    field_reader_free(&c->reader);
    pthread_mutex_destroy(&c->lock);
    mem_free(&c);
    return st;
}
