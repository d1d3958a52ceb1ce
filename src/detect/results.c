/* Writes detections as COCO's file of results: a JSON list of objects with image_id, category_id,
 * bbox and score. */
#include "detect.h"

#include <errno.h>
#include <stdlib.h>

/* Writes a number, rounded to `decimals` decimals. */
static void put_rounded(FILE *file, double value, int decimals)
{
    char text[400];
    snprintf(text, sizeof text, "%.*f", decimals, value);
    double rounded = strtod(text, NULL);
    /* negative zero is written as 0 */
    text_real(file, rounded == 0 ? 0 : rounded);
}

static void put_result(FILE *file, const DetectedBox *d, int64_t image, int64_t category)
{
    fprintf(file, "{\"image_id\": %lld, \"category_id\": %lld, \"bbox\": [", (long long)image,
            (long long)category);
    for (int i = 0; i < 4; ++i) {
        if (i) fputs(", ", file);
        put_rounded(file, d->box[i], 3);
    }
    fputs("], \"score\": ", file);
    put_rounded(file, d->score, 5);
    fputc('}', file);
}

Status coco_results_write(const char *path, const DetectedBox *detected, int64_t count,
                          const int64_t *image_id, const int64_t *category_id)
{
    FILE *file = file_create_stream(path);
    if (!file) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    fputc('[', file);
    for (int64_t i = 0; i < count; ++i) {
        const DetectedBox *d = &detected[i];
        if (i) fputs(",\n", file);
        put_result(file, d, image_id[d->image], category_id[d->category]);
    }
    fputs("]\n", file);
    return file_close_stream(file, path);
}
