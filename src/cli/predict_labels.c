/* weft predict on label fields: prints accuracy, IoU and Dice if the set has labels, and draws
 * pictures with a colour for each class. */
#include "predict_fields.h"

#include "observe.h"

#include <math.h>
#include <string.h>

void predict_labels_add(const Fields *f, const float *predicted)
{
    for (int64_t i = 0; i < f->pixels; ++i)
        if (!isnan(f->truth[i]))
            ++f->confusion[(int64_t)f->truth[i] * f->set->classes + (int64_t)predicted[i]];
}

/* ---- metrics ---- */

static void print_json(const LabelMetrics *m)
{
    Json json = json_to(stdout, true);
    const EvalLine line = {.labels = m};
    json_object(&json, NULL);
    eval_put_metrics(&line, &json);
    json_end(&json);
}

static void print_text(const LabelMetrics *m)
{
    printf("accuracy %.2f %%, IoU %.4f, Dice %.4f, of %lld pixels\n", 100 * m->accuracy, m->iou,
           m->dice, (long long)m->pixels);
    for (int c = 0; c < m->classes; ++c)
        printf("  %-12s IoU %.4f, Dice %.4f, %lld pixels, %lld predicted\n", m->item[c].name,
               text_nan_without_sign(m->item[c].iou), text_nan_without_sign(m->item[c].dice),
               (long long)m->item[c].pixels, (long long)m->item[c].predicted);
}

void predict_labels_print(const Fields *f)
{
    LabelMetrics *m = mem_new(sizeof *m);
    ClassNames names;
    char number[24];
    class_names_from_lines(&names, trainer_classes(f->predict->trainer));
    label_metrics_fill(m, (int)f->set->classes, f->confusion);
    for (int c = 0; c < m->classes; ++c)
        snprintf(m->item[c].name, sizeof m->item[c].name, "%s", class_name(&names, c, number));
    if (f->predict->options->json)
        print_json(m);
    else if (m->pixels == 0)
        printf("no pixel has a label, so there are no metrics\n");
    else
        print_text(m);
    class_names_free(&names);
    mem_free(&m);
}

/* ---- pictures ---- */

Status predict_labels_draw(const Fields *f, int64_t sample, const float *predicted)
{
    const FieldSet *s = &f->set->field_set;
    const FieldChannelName label = field_channel_name(s, FIELD_TARGET, &s->target[0]);
    ClassNames names;
    char time[FIELD_TIME_TEXT];
    class_names_from_lines(&names, trainer_classes(f->predict->trainer));
    char *title = mem_format("%s, %s", label.name, predict_time_text(s, sample, time));
    const char *const *name = (const char *const *)names.name;
    const FieldPicture picture = {.set = f->set,
                                  .title = title,
                                  .input = field_shown_input(f->set) >= 0 ? f->persistence : NULL,
                                  .predicted = predicted,
                                  .truth = f->truth,
                                  .class_name = names.count == f->set->classes ? name : NULL};
    Image image = {0};
    field_picture_draw(&image, &picture);
    const Status st = predict_write_image(f, &image, label.name, sample);
    image_fini(&image);
    class_names_free(&names);
    mem_free(&title);
    return st;
}
