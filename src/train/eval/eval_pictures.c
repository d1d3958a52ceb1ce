/* Draws the first sample of a test set of fields in evaluations. The rank that has the model's
 * outputs for this sample reads the sample's inputs and truth again, draws the pictures, and sends
 * them to rank 0, which writes TensorBoard's events. */
#include "eval_pictures.h"

#include "data/field_picture.h"
#include "label_scores.h"
#include "scores.h"

#include <math.h>
#include <string.h>

/* The head of a picture in PictureMaking.message. The bytes of the picture's PNG follow it. */
typedef struct PictureHead {
    char tag[sizeof((EvalPicture *)0)->tag];
    int32_t width, height;
    int64_t bytes;
} PictureHead;

void eval_pictures_free(EvalPictures **at)
{
    if (!*at) return;
    for (int i = 0; i < (*at)->count; ++i) mem_free(&(*at)->picture[i].png);
    mem_free(&(*at)->picture);
    mem_free(at);
}

void eval_pictures_init(PictureMaking *making, const Trainer *t, const DataSet *set, bool wanted)
{
    *making = (PictureMaking){.set = set};
    making->wanted = wanted && data_has_fields(set) && t->config->train.eval_pictures > 0;
    if (!making->wanted || !train_collects_outputs(t)) return;
    making->trainer = t;
    error_keep(&making->error, field_reader_new(&making->reader, set));
}

void eval_pictures_fini(PictureMaking *making)
{
    field_reader_free(&making->reader);
    mem_free(&making->message);
    mem_free(&making->error.message);
}

/* Draws a picture and appends it to the message. */
static void put_picture(PictureMaking *m, const FieldPicture *picture, const char *tag)
{
    Image image = {0};
    size_t count;
    field_picture_draw(&image, picture);
    uint8_t *png = image_encode_png(&image, &count);
    PictureHead head = {.width = image.width, .height = image.height, .bytes = (int64_t)count};
    snprintf(head.tag, sizeof head.tag, "fields/%.150s", tag);
    m->message = mem_resize(m->message, m->message_bytes + sizeof head + count);
    memcpy(m->message + m->message_bytes, &head, sizeof head);
    memcpy(m->message + m->message_bytes + sizeof head, png, count);
    m->message_bytes += sizeof head + count;
    mem_free(&png);
    image_fini(&image);
}

static void draw_numbers(PictureMaking *m, const float *x, const float *truth, float *predicted)
{
    const FieldSet *f = &m->set->field_set;
    const int64_t pixels = m->set->y.dim[2] * m->set->y.dim[3];
    const int64_t wanted = m->trainer->config->train.eval_pictures;
    field_denormalise(m->set, x, predicted);
    for (int i = 0; i < f->targets && i < wanted; ++i) {
        const int input = field_last_input(f, i);
        const FieldChannelName label = field_channel_name(f, FIELD_TARGET, &f->target[i]);
        char *title = mem_format("%s after %s", label.name, label.lead);
        const FieldPicture picture = {.set = m->set,
                                      .target = i,
                                      .title = title,
                                      .input = input >= 0 ? x + input * pixels : NULL,
                                      .predicted = predicted + i * pixels,
                                      .truth = truth + i * pixels};
        put_picture(m, &picture, label.name);
        mem_free(&title);
    }
}

/* Converts the classes of pixels to floats for a picture; -1, which means no label, becomes NaN. */
static void to_numbers(const int32_t *class, int64_t pixels, float *to)
{
    for (int64_t i = 0; i < pixels; ++i) to[i] = class[i] < 0 ? NAN : (float)class[i];
}

static void draw_labels(PictureMaking *m, const float *x, const int32_t *label, const float *output)
{
    const DataSet *set = m->set;
    const int64_t pixels = data_labels_per_sample(set);
    const int input = field_shown_input(set);
    const FieldChannelName target =
        field_channel_name(&set->field_set, FIELD_TARGET, set->field_set.target);
    int32_t *class = mem_new((size_t)pixels * sizeof *class);
    float *predicted = mem_new((size_t)(2 * pixels) * sizeof *predicted),
          *truth = predicted + pixels;
    ClassNames names;
    class_names_from_lines(&names, m->trainer->classes);
    label_fields_choose(output, set->classes, pixels, m->trainer->backend->options.threads, class);
    to_numbers(class, pixels, predicted);
    to_numbers(label, pixels, truth);
    const char *const *name = (const char *const *)names.name;
    const FieldPicture picture = {.set = set,
                                  .title = target.name,
                                  .input = input >= 0 ? x + input * pixels : NULL,
                                  .predicted = predicted,
                                  .truth = truth,
                                  .class_name = names.count == set->classes ? name : NULL};
    put_picture(m, &picture, target.name);
    class_names_free(&names);
    mem_free(&class);
    mem_free(&predicted);
}

/* Draws the sample in row `row` of the micro-batch. */
static Status draw_row(PictureMaking *m, const MicroBatch *batch, int row)
{
    const DataSet *set = m->set;
    const bool labels = data_has_label_fields(set);
    const int64_t width =
        set->y.dim[2] * set->y.dim[3] * (labels ? set->classes : set->field_set.targets);
    const float *output = executor_logits(m->trainer->executor, 0) + row * width;
    float *x = mem_new((size_t)set->x.sample_bytes);
    float *truth = mem_new((size_t)width * sizeof *truth);
    Status st = field_read(m->reader, batch->sample[row], false, x, labels ? NULL : truth);
    if (st == OK && labels) {
        draw_labels(m, x, batch->labels + row * data_labels_per_sample(set), output);
    } else if (st == OK) {
        float *predicted = mem_new((size_t)width * sizeof *predicted);
        memcpy(predicted, output, (size_t)width * sizeof *predicted);
        draw_numbers(m, x, truth, predicted);
        mem_free(&predicted);
    }
    mem_free(&x);
    mem_free(&truth);
    return st;
}

void eval_pictures_add(PictureMaking *making, const MicroBatch *batch)
{
    for (int r = 0; making->trainer && making->error.status == OK && r < batch->rows; ++r)
        if (batch->sample[r] == 0) error_keep(&making->error, draw_row(making, batch, r));
}

void eval_pictures_line(PictureMaking *making, Trainer *t, EvalLine *line)
{
    line->picture = NULL;
    line->pictures = 0;
    if (!making->wanted) return;
    size_t bytes = making->message_bytes;
    char *all = gather_arrays(t->world, making->message, &bytes);
    eval_pictures_free(&t->eval_pictures);
    EvalPictures *p = t->eval_pictures = mem_new(sizeof *p);
    for (size_t at = 0; t->world->rank == 0 && at < bytes;) {
        PictureHead head;
        memcpy(&head, all + at, sizeof head);
        p->picture = mem_resize(p->picture, (size_t)(p->count + 1) * sizeof *p->picture);
        EvalPicture *to = &p->picture[p->count++];
        *to =
            (EvalPicture){.width = head.width, .height = head.height, .bytes = (size_t)head.bytes};
        memcpy(to->tag, head.tag, sizeof to->tag);
        to->png = mem_new(to->bytes);
        memcpy(to->png, all + at + sizeof head, to->bytes);
        at += sizeof head + to->bytes;
    }
    mem_free(&all);
    line->picture = p->picture;
    line->pictures = p->count;
}
