/* Reads all frames of a set of fields and reports what a user should know before a run: gaps and
 * repeated times, missing values, constant variables, values beyond float32. A finding is an error
 * only if a run could not read the data, or could learn nothing from it. */
#include "fields_private.h"

#include <float.h>
#include <math.h>
#include <pthread.h>

/* largest number of gaps and repeated times that are listed one by one */
enum { BREAKS_LISTED = 10 };

/* Statistics of the values of one level of a variable in some frames. */
typedef struct Values {
    /* number of values that are not missing */
    int64_t count;
    /* number of missing values */
    int64_t missing;
    /* number of values beyond the range of float32 */
    int64_t beyond;
    /* smallest and largest value that is not missing */
    double least, most;
} Values;

typedef struct Checking {
    FieldReader *reader;
    const DataSet *set;
    const FieldSet *f;
    /* protects the members below it, which cover all frames read so far */
    pthread_mutex_t lock;
    /* number of pixels of each class */
    int64_t pixels[FIELD_CLASSES];
    /* number of pixels without a label */
    int64_t unlabelled;
    /* values of each variable and selected level */
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

/* Returns whether a variable is the label field (the target whose pixels have classes) and is not
 * an input, too. */
static bool has_only_labels(const FieldSet *f, int variable)
{
    bool input = false;
    for (int i = 0; i < f->inputs; ++i) input |= f->input[i].variable == variable;
    return f->classes.count > 0 && f->target[0].variable == variable && !input;
}

/* Counts the labels of a frame. */
static Status count_labels(Checking *c, int64_t frame)
{
    const int64_t pixels = data_labels_per_sample(c->set);
    int64_t count[FIELD_CLASSES] = {0}, none = 0;
    int32_t *label = mem_new((size_t)pixels * sizeof *label);
    const Status st = field_read_labels(c->reader, c->set, frame, label);
    for (int64_t i = 0; st == OK && i < pixels; ++i) ++*(label[i] < 0 ? &none : &count[label[i]]);
    pthread_mutex_lock(&c->lock);
    c->unlabelled += none;
    for (int i = 0; i < FIELD_CLASSES; ++i) c->pixels[i] += count[i];
    pthread_mutex_unlock(&c->lock);
    mem_free(&label);
    return st;
}

/* Reads one frame of one variable and adds its values to the results. i: number of the frame,
 * counted through all frames of variable 0, then those of variable 1, and so on. */
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
    if (f->classes.count > 0 && f->target[0].variable == variable) TRY(count_labels(c, frame));
    if (has_only_labels(f, variable)) return OK;
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
    int listed = 0, breaks = 0;
    for (int i = 1; f->step_s > 0 && i < f->segments; ++i) {
        const FieldSegment *s = &f->segment[i - 1];
        const double last = field_frame_time(f, s->first + s->frames - 1);
        const int number = field_find_file(f, f->segment[i].first);
        const FieldFile *file = &f->file[number];
        const char *path = field_path(f, number);
        const bool gap = f->segment[i].start > last;
        /* A file whose times begin again is another member of an ensemble. */
        if (!gap && file->first_frame == f->segment[i].first) continue;
        if (++breaks > BREAKS_LISTED) continue;
        ++listed;
        field_time_text(f, last, a);
        field_time_text(f, f->segment[i].start, b);
        if (gap)
            log_warn("%s: frames are missing between %s and %s: no sample goes over this gap", path,
                     a, b);
        else
            log_warn("%s: times fall or repeat: %s follows %s", path, b, a);
    }
    if (breaks > listed)
        log_warn("%s: and %d more gaps or repeated times", field_path(f, 0), breaks - listed);
}

static const char *level_text(const FieldVariable *v, int level, char text[FIELD_NAME + 40])
{
    if (v->size[FIELD_LEVEL] == 1)
        snprintf(text, FIELD_NAME + 40, "%s", v->name);
    else if (isnan(v->level_value[level]))
        snprintf(text, FIELD_NAME + 40, "%s, level number %d,", v->name, v->level_index[level]);
    else
        snprintf(text, FIELD_NAME + 40, "%s at level %g", v->name, v->level_value[level]);
    return text;
}

/* Warns of missing, constant and too large values of a level. all: statistics of its values in all
 * frames. ERR_DATA: all values are missing. */
static Status check_values(const FieldSet *f, const FieldVariable *v, int level, const Values *all)
{
    char name[FIELD_NAME + 40];
    const char *path = field_path(f, 0);
    level_text(v, level, name);
    if (all->count == 0) return fail(ERR_DATA, "%s: all values of %s are missing", path, name);
    if (all->missing > 0)
        log_warn("%s: %.3g %% of the values of %s are missing", path,
                 100.0 * (double)all->missing / (double)(all->missing + all->count), name);
    if (all->least == all->most) log_warn("%s: %s is %g everywhere", path, name, all->least);
    if (all->beyond > 0)
        log_warn("%s: %lld values of %s are beyond the range of float32", path,
                 (long long)all->beyond, name);
    return OK;
}

/* Logs how many pixels each class has, and warns of classes that have none. ERR_DATA: no pixel has
 * a label. */
static Status report_labels(const Checking *c)
{
    const FieldSet *f = c->f;
    const FieldVariable *v = &f->variable[f->target[0].variable];
    TextList absent;
    int64_t all = 0;
    int missing = 0;
    for (int i = 0; i < f->classes.count; ++i) all += c->pixels[i];
    if (all == 0)
        return fail(ERR_DATA, "%s: no pixel of %s has a label", field_path(f, 0), v->name);
    text_list_begin(&absent, 8);
    for (int i = 0; i < f->classes.count; ++i) {
        log_info("%s: %s: class %d%s%s has %lld pixels, %.3g %%", field_path(f, 0), v->name, i,
                 f->classes.named ? " " : "", f->classes.named ? f->classes.name[i] : "",
                 (long long)c->pixels[i], 100.0 * (double)c->pixels[i] / (double)all);
        if (c->pixels[i] > 0) continue;
        ++missing;
        text_list_add(&absent, f->classes.name[i]);
    }
    char *list = text_list_end(&absent);
    if (missing > 0) log_warn("%s: no pixel of %s has class %s", field_path(f, 0), v->name, list);
    if (c->unlabelled > 0)
        log_info("%s: %s: %lld pixels, %.3g %%, have no label", field_path(f, 0), v->name,
                 (long long)c->unlabelled,
                 100.0 * (double)c->unlabelled / (double)(all + c->unlabelled));
    mem_free(&list);
    return OK;
}

Status field_check(const DataSet *set)
{
    Checking *c = mem_new(sizeof *c);
    const FieldSet *f = c->f = &set->field_set;
    c->set = set;
    int64_t reads = 0;
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < f->stored; ++i) reads += frames_of(f, i);
    Status st = field_reader_new(&c->reader, set);
    if (st == OK) st = worker_pool_run(threads_share(1), reads, check_frame, c);
    if (st == OK) warn_of_times(f);
    for (int i = 0; st == OK && i < f->stored; ++i)
        for (int k = 0; st == OK && k < f->variable[i].levels && !has_only_labels(f, i); ++k)
            st = check_values(f, &f->variable[i], k, &c->all[i][k]);
    if (st == OK && f->classes.count > 0) st = report_labels(c);
    field_reader_free(&c->reader);
    pthread_mutex_destroy(&c->lock);
    mem_free(&c);
    return st;
}
