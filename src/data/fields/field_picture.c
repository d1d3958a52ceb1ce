/* Draws the fields of a sample in four panels: input, prediction, truth, and prediction - truth.
 * For labels, the last panel shows where the prediction is wrong. */
#include "data/field_picture.h"

#include <math.h>
#include <string.h>

void field_sheet_fit(FieldSheet *sheet, const DataSet *set)
{
    const FieldSet *f = &set->field_set;
    sheet->rows = (int)set->y.dim[2];
    sheet->columns = (int)set->y.dim[3];
    const FieldAxis *rows = &f->target_rows;
    sheet->flip = rows->count > 1 && rows->value[0] < rows->value[rows->count - 1];
}

void field_subtract(const float *predicted, const float *truth, int64_t count, float *to,
                    ColourRange *range)
{
    ColourRange both = {.low = 1, .high = 0};
    for (int64_t i = 0; i < count; ++i) to[i] = predicted[i] - truth[i];
    colour_range_add(&both, to, count);
    if (both.low > both.high) return;
    range->high = fmax(range->high, fmax(fabs(both.low), fabs(both.high)));
    range->low = -range->high;
    range->diverging = true;
}

bool field_has_values(const float *field, int64_t count)
{
    int64_t i = 0;
    while (field && i < count && isnan(field[i])) ++i;
    return field && i < count;
}

int field_shown_input(const DataSet *set)
{
    const FieldSet *f = &set->field_set;
    int i = 0;
    while (i < f->inputs && (f->input[i].offset != f->offsets[FIELD_INPUT] - 1 ||
                             f->variable[f->input[i].variable].is_static ||
                             f->variable[f->input[i].variable].is_scalar ||
                             f->variable[f->input[i].variable].extra_kind))
        ++i;
    return i < f->inputs && set->y.dim[2] == set->height && set->y.dim[3] == set->width ? i : -1;
}

/* Draws a sheet of four panels. */
static void draw(Image *image, const FieldPicture *p, const FieldPanel *panel, const char *units)
{
    FieldSheet sheet = {.title = p->title,
                        .units = units,
                        .panel = panel,
                        .panels = 4,
                        .across = 2,
                        .category = p->class_name};
    field_sheet_fit(&sheet, p->set);
    field_sheet_draw(image, &sheet);
}

/* Draws a target of numbers. change: buffer of `pixels` values for prediction - truth. */
static void draw_numbers(Image *image, const FieldPicture *p, int64_t pixels, float *change)
{
    const FieldSet *f = &p->set->field_set;
    const FieldChannelName label = field_channel_name(f, FIELD_TARGET, &f->target[p->target]);
    const float *truth = field_has_values(p->truth, pixels) ? p->truth : NULL;
    ColourRange range = {.low = 1, .high = 0}, difference = {0};
    colour_range_add(&range, truth ? truth : p->predicted, pixels);
    if (truth) field_subtract(p->predicted, truth, pixels, change, &difference);
    const FieldPanel panel[] = {{"input", p->input, range},
                                {"prediction", p->predicted, range},
                                {"truth", truth, range},
                                {"prediction - truth", truth ? change : NULL, difference}};
    draw(image, p, panel, label.units);
}

/* Writes to each pixel of `to` the predicted class if it is wrong, -1 if it is right, and NaN if
 * there is no truth. */
static void find_errors(const FieldPicture *p, int64_t pixels, float *to)
{
    for (int64_t i = 0; i < pixels; ++i)
        to[i] = !p->truth || isnan(p->truth[i])  ? NAN
                : p->predicted[i] == p->truth[i] ? -1
                                                 : p->predicted[i];
}

/* Draws a label field. errors: buffer of `pixels` values for find_errors. */
static void draw_labels(Image *image, const FieldPicture *p, int64_t pixels, float *errors)
{
    const FieldSet *f = &p->set->field_set;
    const int input = field_shown_input(p->set);
    const ColourRange classes = {.categories = f->classes.count};
    ColourRange range = {.low = 1, .high = 0};
    char first[FIELD_NAME + 80] = "input";
    find_errors(p, pixels, errors);
    if (p->input) colour_range_add(&range, p->input, pixels);
    if (input >= 0)
        snprintf(first, sizeof first, "input: %s",
                 field_channel_name(f, FIELD_INPUT, &f->input[input]).name);
    const FieldPanel panel[] = {{first, p->input, range},
                                {"prediction", p->predicted, classes},
                                {"truth", p->truth, classes},
                                {"prediction where wrong", errors, classes}};
    draw(image, p, panel, input >= 0 ? f->variable[f->input[input].variable].units : "");
}

void field_picture_draw(Image *image, const FieldPicture *p)
{
    const int64_t pixels = p->set->y.dim[2] * p->set->y.dim[3];
    float *buffer = mem_new((size_t)pixels * sizeof *buffer);
    if (p->set->field_set.classes.count > 0)
        draw_labels(image, p, pixels, buffer);
    else
        draw_numbers(image, p, pixels, buffer);
    mem_free(&buffer);
}
