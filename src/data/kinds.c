/* Has the table of kinds of data set, the functions that look a kind up, and data_words: the words
 * that are allowed as values of keys such as data.layout. */
#include "data.h"

#include <string.h>

static Shape image_shape(const DataSet *set, int64_t samples)
{
    return shape_of(4, samples, set->channels, set->height, set->width);
}

static Shape tokens_shape(const DataSet *set, int64_t samples)
{
    return shape_of(2, samples, set->context, 1, 1);
}

static Shape table_shape(const DataSet *set, int64_t samples)
{
    return shape_of(2, samples, set->channels, 1, 1);
}

/* the row of each DataKind (data/set.h) */
static const DataKindInfo kinds[] = {
    [DATA_IMAGE] = {.name = "image",
                    .array = "/x",
                    .shape = image_shape,
                    .x = X_IMAGES,
                    .labels = LABELS_IN_Y},
    [DATA_TOKENS] = {.name = "tokens",
                     .array = "/tokens",
                     .shape = tokens_shape,
                     .x = X_TOKENS,
                     .labels = LABELS_NEXT_TOKEN},
    [DATA_BOXES] = {.name = "boxes",
                    .array = "/x",
                    .shape = image_shape,
                    .x = X_IMAGES,
                    .labels = LABELS_BOXES},
    [DATA_FIELDS] = {.name = "fields",
                     .array = "/",
                     .shape = image_shape,
                     .x = X_FIELDS,
                     .labels = LABELS_FIELDS},
    [DATA_TABLE] = {.name = "table",
                    .array = "/dense",
                    .shape = table_shape,
                    .x = X_ROWS,
                    .labels = LABELS_IN_Y},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == DATA_KINDS, "a row for each kind");

const DataKindInfo *data_kind_info(DataKind kind)
{
    return &kinds[kind];
}

const DataKindInfo *data_kind(const DataSet *set)
{
    return data_kind_info(set->kind);
}

bool data_has_label_fields(const DataSet *set)
{
    return data_has_fields(set) && set->field_set.classes.count > 0;
}

int64_t data_labels_per_sample(const DataSet *set)
{
    if (data_has_tokens(set)) return set->context;
    if (data_has_label_fields(set)) return set->y.dim[2] * set->y.dim[3];
    return set->target_width == 0 && !data_has_boxes(set) ? 1 : 0;
}

int data_kind_find(const char *name)
{
    for (int i = 0; i < DATA_KINDS; ++i)
        if (strcmp(kinds[i].name, name) == 0) return i;
    return -1;
}

_Static_assert((int)FILTER_BILINEAR == IMAGE_BILINEAR && (int)FILTER_BICUBIC == IMAGE_BICUBIC,
               "data.filter's words are ImageFilter's");

const ConfigWords data_words[DATA_WORDS] = {
    {"data.layout", .text = LIST_TEXT(LAYOUT_WORDS)},
    {"data.augment", .text = LIST_TEXT(AUGMENT_WORDS)},
    {"data.filter", .text = LIST_TEXT(FILTER_WORDS)},
    {"data.shuffle", .text = LIST_TEXT(SHUFFLE_WORDS)},
    {"data.predict", .text = LIST_TEXT(PREDICT_WORDS)},
    {"data.refresh", .text = LIST_TEXT(REFRESH_WORDS)},
};
