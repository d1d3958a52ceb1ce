/* weft predict on sets of fields. Makes forecasts from samples, of one step or a rollout. Prints
 * the errors at each lead for which the set has the truth. Also writes forecasts to a NetCDF-4 file
 * (-o) and draws them (--png). */
#include "predict_fields.h"

#include "checkpoint.h"

#include <math.h>
#include <string.h>

/* FIELD_BATCH: largest number of samples per forward pass; for a rollout of several steps there is
 * only one sample. SHEET_LEADS: largest number of leads in the picture of a rollout. */
enum { FIELD_BATCH = 8, SHEET_LEADS = 6 };

/* ---- errors ---- */

/* Adds the errors of one channel's pixels, except pixels whose value or truth is missing (NaN). */
static void add_errors(const Fields *f, const float *value, const float *truth, ErrorSums *sums)
{
    for (int64_t i = 0; i < f->pixels; ++i) {
        const double error = (double)value[i] - (double)truth[i], weight = f->pixel_weight[i];
        if (isnan(error)) continue;
        sums->squares += weight * error * error;
        sums->weight += weight;
    }
}

/* Adds the errors of a sample at all leads for which the set has the truth. For label fields it
 * counts the sample's pixels in f->confusion instead. predicted: forecasts from this sample. */
static Status add_sample(const Fields *f, int64_t sample, const float *predicted)
{
    const FieldSet *s = &f->set->field_set;
    const int64_t frame = field_sample_frame(s, sample);
    const FieldSegment *segment = &s->segment[field_find_segment(s, frame)];
    if (f->confusion) {
        predict_labels_add(f, predicted);
        return OK;
    }
    for (int l = 0; l < f->leads; ++l) {
        const int64_t lead = frame + rollout_lead_frames(f->rollout)[l];
        if (lead >= segment->first + segment->frames) continue;
        TRY(field_weights_at(&f->weights, f->set, f->reader, lead, f->pixel_weight));
        for (int i = 0; i < f->channels; ++i) {
            const int at = l * f->channels + i;
            const float *truth = f->truth + at * f->pixels;
            add_errors(f, predicted + at * f->pixels, truth, &f->model_errors[at]);
            add_errors(f, f->persistence + i * f->pixels, truth, &f->persistence_errors[at]);
        }
    }
    return OK;
}

/* Returns the RMSE over the channels `first` to `end` - 1 at one lead, or NaN if the set has no
 * truth. sums: errors at this lead, [channels]. */
static double rmse_of(const ErrorSums *sums, int first, int end)
{
    double squares = 0, weight = 0;
    for (int i = first; i < end; ++i) squares += sums[i].squares, weight += sums[i].weight;
    return weight > 0 ? sqrt(squares / weight) : (double)NAN;
}

/* Returns the RMSE of persistence over these channels, or NaN if one of them has a truth and no
 * persistence, because it is no input. model, last: errors of the model and of persistence at this
 * lead, [channels]. */
static double persistence_of(const ErrorSums *model, const ErrorSums *last, int first, int end)
{
    for (int i = first; i < end; ++i)
        if (model[i].weight > 0 && !(last[i].weight > 0)) return NAN;
    return rmse_of(last, first, end);
}

/* Channels that are levels of one variable follow each other. Returns the channel after the last
 * one of the variable that channel `first` belongs to. */
static int variable_end(const Fields *f, int first)
{
    const FieldChannel *c = f->set->field_set.target;
    int end = first + 1;
    while (end < f->channels && c[end].variable == c[first].variable) ++end;
    return end;
}

/* Writes a lead to text, and returns text. The unit is days only if the first lead is a multiple of
 * a day; otherwise a list of leads reads "18h", "24h", "30h". */
static const char *lead_text(const Fields *f, int lead, char text[FIELD_TIME_TEXT])
{
    const FieldSet *s = &f->set->field_set;
    const int64_t *frames = rollout_lead_frames(f->rollout);
    const double hours = (double)frames[lead] * s->step_s / 3600;
    const bool days = fmod((double)frames[0] * s->step_s, 86400) == 0;
    if (s->step_s == 0 || days || fmod(hours, 24) != 0)
        return field_offset_text(s, frames[lead], text);
    snprintf(text, FIELD_TIME_TEXT, "%gh", hours);
    return text;
}

static void print_lead(const Fields *f, int lead)
{
    const FieldSet *s = &f->set->field_set;
    const ErrorSums *model = f->model_errors + lead * f->channels,
                    *last = f->persistence_errors + lead * f->channels;
    char text[FIELD_TIME_TEXT];
    printf("%-8s", lead_text(f, lead, text));
    for (int i = 0, end; i < f->channels; i = end) {
        const FieldVariable *v = &s->variable[s->target[i].variable];
        end = variable_end(f, i);
        const double rmse = rmse_of(model, i, end),
                     persistence = persistence_of(model, last, i, end);
        printf("%s%s ", i ? ", " : " ", v->name);
        if (isnan(rmse))
            printf("no truth");
        else
            printf("RMSE %.5g%s%s", rmse, *v->units ? " " : "", v->units);
        if (!isnan(persistence)) printf(" (persistence %.5g)", persistence);
    }
    putchar('\n');
}

static void put_lead(const Fields *f, int lead)
{
    const FieldSet *s = &f->set->field_set;
    char text[FIELD_TIME_TEXT];
    for (int i = 0; i < f->channels; ++i) {
        const int at = lead * f->channels + i;
        const FieldChannelName label = field_channel_name(s, FIELD_TARGET, &s->target[i]);
        Json json = json_to(stdout, true);
        json_object(&json, NULL);
        json_text(&json, "variable", label.variable);
        if (!isnan(label.level)) json_real(&json, "level", label.level);
        json_text(&json, "lead", lead_text(f, lead, text));
        json_text(&json, "units", label.units);
        json_real(&json, "rmse", rmse_of(f->model_errors, at, at + 1));
        json_real(&json, "rmse_persistence", rmse_of(f->persistence_errors, at, at + 1));
        json_end(&json);
    }
}

/* ---- pictures ---- */

const char *predict_time_text(const FieldSet *f, int64_t sample, char text[FIELD_TIME_TEXT])
{
    return field_time_text(f, field_frame_time(f, field_sample_frame(f, sample)), text);
}

Status predict_write_image(const Fields *f, const Image *image, const char *name, int64_t sample)
{
    char *path = mem_format("%s/%s-%lld.png", f->predict->options->png, name, (long long)sample);
    for (char *c = path + strlen(f->predict->options->png) + 1; *c; ++c)
        if (*c == '/') *c = '_';
    Status st = file_check_writable(path, f->predict->options->force);
    if (st == OK) st = image_write_png(image, path);
    mem_free(&path);
    return st;
}

/* Draws input, truth, prediction and difference of one channel at one lead. */
static Status draw_target(const Fields *f, int64_t sample, int lead, int channel,
                          const float *predicted)
{
    const FieldSet *s = &f->set->field_set;
    const int at = lead * f->channels + channel;
    const FieldChannelName label = field_channel_name(s, FIELD_TARGET, &s->target[at]);
    char time[FIELD_TIME_TEXT];
    char *title =
        mem_format("%s, %s after %s", label.name, label.lead, predict_time_text(s, sample, time));
    const bool has_input = field_last_input(s, channel) >= 0;
    const FieldPicture picture = {.set = f->set,
                                  .target = at,
                                  .title = title,
                                  .input = has_input ? f->persistence + channel * f->pixels : NULL,
                                  .predicted = predicted + at * f->pixels,
                                  .truth = f->truth + at * f->pixels};
    Image image = {0};
    field_picture_draw(&image, &picture);
    const Status st = predict_write_image(f, &image, label.name, sample);
    image_fini(&image);
    mem_free(&title);
    return st;
}

/* Draws truth, prediction and difference of one channel at up to SHEET_LEADS leads of a rollout,
 * spread evenly from the first to the last. */
static Status draw_rollout(const Fields *f, int64_t sample, int channel, const float *predicted)
{
    const FieldSet *s = &f->set->field_set;
    const int shown = f->leads < SHEET_LEADS ? f->leads : SHEET_LEADS;
    FieldChannelName label = field_channel_name(s, FIELD_TARGET, &s->target[channel]);
    /* ranges of colours. range: of the truth; without: of the predictions, used if there is no
     * truth; difference: of the differences */
    ColourRange range = {.low = 1, .high = 0}, without = range, difference = {0};
    float *change = mem_new((size_t)(shown * f->pixels) * sizeof *change);
    FieldPanel panel[3 * SHEET_LEADS];
    char time[FIELD_TIME_TEXT], text[FIELD_TIME_TEXT], title[3 * SHEET_LEADS][96];
    for (int k = 0; k < shown; ++k) {
        const int lead = shown > 1 ? (int)((int64_t)k * (f->leads - 1) / (shown - 1)) : 0;
        const int64_t at = (lead * f->channels + channel) * f->pixels;
        const float *value[] = {f->truth + at, predicted + at, change + k * f->pixels};
        const bool known = field_has_values(value[0], f->pixels);
        colour_range_add(&range, value[0], f->pixels);
        colour_range_add(&without, value[1], f->pixels);
        field_subtract(value[1], value[0], f->pixels, change + k * f->pixels, &difference);
        lead_text(f, lead, text);
        for (int row = 0; row < 3; ++row) {
            static const char *const name[] = {"truth", "prediction", "prediction - truth"};
            char *to = title[row * shown + k];
            snprintf(to, sizeof title[0], "%s, %s", name[row], text);
            panel[row * shown + k] =
                (FieldPanel){.title = to, .value = known || row == 1 ? value[row] : NULL};
        }
    }
    if (range.low > range.high) range = without;
    for (int i = 0; i < 3 * shown; ++i) panel[i].range = i < 2 * shown ? range : difference;
    label.name[strlen(label.name) - strlen(label.lead) - 1] = 0;
    char *head = mem_format("%s from %s", label.name, predict_time_text(s, sample, time));
    FieldSheet sheet = {
        .title = head, .units = label.units, .panel = panel, .panels = 3 * shown, .across = shown};
    Image image = {0};
    field_sheet_fit(&sheet, f->set);
    field_sheet_draw(&image, &sheet);
    const Status st = predict_write_image(f, &image, label.name, sample);
    image_fini(&image);
    mem_free(&head);
    mem_free(&change);
    return st;
}

static Status draw_sample(const Fields *f, int64_t sample, const float *predicted)
{
    if (f->confusion) return predict_labels_draw(f, sample, predicted);
    if (f->predict->options->rollout > 1) {
        for (int i = 0; i < f->channels; ++i) TRY(draw_rollout(f, sample, i, predicted));
        return OK;
    }
    for (int l = 0; l < f->leads; ++l)
        for (int i = 0; i < f->channels; ++i) TRY(draw_target(f, sample, l, i, predicted));
    return OK;
}

/* ---- samples ---- */

/* Lists the samples from which forecasts start: those of --samples or, without this flag, all
 * samples for which the set has the inputs of all steps. */
static Status list_starts(Fields *f)
{
    const Predict *p = f->predict;
    const int64_t steps = p->options->rollout > 0 ? p->options->rollout : 1;
    int64_t most = 0;
    if (p->options->samples && p->last_sample >= f->set->samples)
        return fail(ERR_USAGE, "--samples %s: %s has %lld samples, and the first has number 0",
                    p->options->samples, f->set->path, (long long)f->set->samples);
    const int64_t last = predict_last(p, f->set);
    f->start = mem_new((size_t)(last - p->first_sample + 1) * sizeof *f->start);
    for (int64_t s = p->first_sample; s <= last; ++s) {
        const int64_t limit = rollout_limit(f->rollout, s);
        if (limit > most) most = limit;
        if (p->options->samples || limit >= steps) f->start[f->starts++] = s;
    }
    if (f->starts > 0) return OK;
    return fail(ERR_USAGE,
                "--rollout %lld: the set has inputs for %lld steps at most (those that the model "
                "does not predict)",
                (long long)steps, (long long)most);
}

/* Makes the forecasts from all samples of f->start, batch by batch, and adds, writes and draws
 * them. */
static Status predict_starts(Fields *f)
{
    const Predict *p = f->predict;
    const int64_t values = f->leads * f->channels * f->pixels;
    for (int64_t i = 0; i < f->starts; i += p->batch) {
        const int64_t left = f->starts - i;
        const int count = left < p->batch ? (int)left : p->batch;
        TRY(rollout_run(f->rollout, f->start + i, count, f->predicted));
        for (int b = 0; b < count; ++b) {
            const int64_t sample = f->start[i + b];
            const float *predicted = f->predicted + b * values;
            TRY(rollout_truth(f->rollout, sample, f->truth, f->persistence));
            TRY(add_sample(f, sample, predicted));
            if (f->output) TRY(field_output_put(f->output, sample, predicted, f->truth));
            if (p->options->png) TRY(draw_sample(f, sample, predicted));
        }
    }
    return OK;
}

static Status open_output(Fields *f, const char *checkpoint)
{
    const PredictOptions *o = f->predict->options;
    char *source = mem_format("weft predict, checkpoint %s", checkpoint);
    const char *names = f->confusion ? trainer_classes(f->predict->trainer) : NULL;
    char *meanings = names ? mem_text(names) : NULL;
    for (char *c = meanings; c && *c; ++c)
        if (*c == '\n') *c = ' ';
    const FieldOutputPlan plan = {.set = f->set,
                                  .path = o->out,
                                  .force = o->force,
                                  .writes_truth = o->truth,
                                  .samples = f->starts,
                                  .leads = f->leads,
                                  .channels = f->channels,
                                  .lead = rollout_lead_frames(f->rollout),
                                  .meanings = meanings,
                                  .title = "fields predicted by weft",
                                  .source = source};
    Status st = field_output_new(&f->output, &plan);
    mem_free(&meanings);
    mem_free(&source);
    return st;
}

static Status predict_all(Fields *f, const char *checkpoint)
{
    const PredictOptions *o = f->predict->options;
    const bool latitude = trainer_config(f->predict->trainer)->train.eval_latitude;
    TRY(rollout_new(&f->rollout, f->predict->trainer, f->set, o->rollout > 0 ? o->rollout : 1));
    f->leads = rollout_leads(f->rollout);
    f->channels = rollout_channels(f->rollout);
    TRY(list_starts(f));
    const size_t one = (size_t)(f->channels * f->pixels) * sizeof(float);
    const size_t sums = (size_t)(f->leads * f->channels) * sizeof(ErrorSums);
    f->predicted = mem_new((size_t)(f->predict->batch * f->leads) * one);
    f->truth = mem_new((size_t)f->leads * one);
    f->persistence = mem_new(one);
    f->pixel_weight = mem_new((size_t)f->pixels * sizeof *f->pixel_weight);
    TRY(field_reader_new(&f->reader, f->set));
    TRY(field_weights_init(&f->weights, f->set, f->reader, latitude));
    f->model_errors = mem_new(sums);
    f->persistence_errors = mem_new(sums);
    if (data_has_label_fields(f->set)) {
        const size_t classes = (size_t)f->set->classes;
        f->confusion = mem_new(classes * classes * sizeof *f->confusion);
    }
    if (o->png) TRY(file_make_folders(o->png));
    if (o->out) TRY(open_output(f, checkpoint));
    TRY(predict_starts(f));
    if (o->out) TRY(field_output_finish(&f->output));
    if (f->confusion) predict_labels_print(f);
    for (int l = 0; !f->confusion && l < f->leads; ++l)
        if (o->json)
            put_lead(f, l);
        else
            print_lead(f, l);
    if (o->out && !o->json)
        printf("wrote %s: %lld samples, %d lead%s\n", o->out, (long long)f->starts, f->leads,
               f->leads == 1 ? "" : "s");
    return OK;
}

/* ---- options ---- */

static Status check_options(const Predict *p, const Config *config, int count, char *const *paths)
{
    const PredictOptions *o = p->options;
    const char *other = o->top > 0         ? "--top"
                        : !isnan(o->score) ? "--score"
                        : o->draw          ? "--draw"
                        : o->schema        ? "--schema"
                                           : NULL;
    if (other) return fail(ERR_USAGE, "%s: the samples are fields (data.variables)", other);
    if (o->png && !*o->png) return fail(ERR_USAGE, "--png: '' is no folder");
    if (count == 0 && !config->data.test)
        return config_fail_key(config, "data.test",
                               "no data: set data.test, or name files after the configuration");
    if (!o->out) return OK;
    TRY(job_check_output(config, o->out));
    TRY(file_check_not_input(o->out, (const char *const *)paths, count));
    return file_check_writable(o->out, o->force);
}

/* Makes the files of the command line the test set of the configuration. If the checkpoint
 * describes its samples, removes the training set from the configuration, because it is not
 * needed. */
static Status choose_data(Config *config, const char *checkpoint, int count, char *const *paths)
{
    CheckpointMeta meta;
    TRY(checkpoint_read_meta(checkpoint, &meta));
    if (meta.input.channels > 0) mem_free(&config->data.train);
    checkpoint_meta_fini(&meta);
    if (count == 0) return OK;
    /* data.test_time was chosen for the configured data.test, not for these files */
    mem_free(&config->data.test_time.from);
    mem_free(&config->data.test_time.to);
    char *list = mem_text(paths[0]);
    for (int i = 1; i < count; ++i) {
        char *longer = mem_format("%s\n%s", list, paths[i]);
        mem_free(&list);
        list = longer;
    }
    mem_free(&config->data.test);
    config->data.test = list;
    return OK;
}

Status predict_fields(Predict *p, const Job *job, const char *checkpoint, int count,
                      char *const *paths)
{
    const PredictOptions *o = p->options;
    TRY(check_options(p, job->config, count, paths));
    TRY(predict_parse_samples(p));
    TRY(choose_data(job->config, checkpoint, count, paths));
    const int64_t samples = p->last_sample - p->first_sample;
    p->batch = o->rollout > 1 ? 1 : samples < FIELD_BATCH ? (int)samples + 1 : FIELD_BATCH;
    job_use_one_rank(job->config, p->batch);
    TRY(trainer_new_to_load(&p->trainer, job->config, &job->world, NULL, checkpoint));
    TRY(train_load(p->trainer, checkpoint, o->no_ema ? LOAD_PARAMS : LOAD_AVERAGES));
    Fields f = {.predict = p, .set = trainer_test_set(p->trainer)};
    f.pixels = f.set->y.dim[2] * f.set->y.dim[3];
    Status st = predict_all(&f, checkpoint);
    field_output_drop(&f.output);
    rollout_free(&f.rollout);
    field_weights_fini(&f.weights);
    field_reader_free(&f.reader);
    mem_free(&f.pixel_weight);
    mem_free(&f.start);
    mem_free(&f.predicted);
    mem_free(&f.truth);
    mem_free(&f.persistence);
    mem_free(&f.model_errors);
    mem_free(&f.persistence_errors);
    mem_free(&f.confusion);
    return st;
}
