/* Measures COCO's evaluation of boxes from files. Prints the seconds of the fastest of five calls,
 * with one thread and with more, then COCO's twelve numbers and the AP of each class. usage:
 * detect_bench FOLDER [THREADS]; bench/detection.py writes the files, all of float64: head.bin
 * (numbers of images, classes, truths and detections), truths.bin (image, class, x, y, w, h, area,
 * crowd, id for each truth) and detections.bin (image, class, x, y, w, h, score for each
 * detection). */
#include "detect.h"

#include <stdlib.h>

static double *read_values(const char *folder, const char *name, size_t count)
{
    char *path = mem_format("%s/%s", folder, name);
    double *value = mem_new((count + 1) * sizeof *value);
    FILE *file = fopen(path, "r");
    if (!file || fread(value, sizeof *value, count, file) != count) die("%s: cannot be read", path);
    fclose(file);
    mem_free(&path);
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 2) die("usage: detect_bench FOLDER [THREADS]");
    const double *head = read_values(argv[1], "head.bin", 4);
    CocoBoxes boxes = {.images = (int64_t)head[0],
                       .categories = (int)head[1],
                       .truths = (int64_t)head[2],
                       .detections = (int64_t)head[3]};
    const double *t = read_values(argv[1], "truths.bin", 9 * (size_t)boxes.truths);
    const double *d = read_values(argv[1], "detections.bin", 7 * (size_t)boxes.detections);
    TruthBox *truth = mem_new((size_t)boxes.truths * sizeof *truth);
    DetectedBox *detected = mem_new((size_t)boxes.detections * sizeof *detected);
    for (int64_t i = 0; i < boxes.truths; ++i, t += 9)
        truth[i] = (TruthBox){
            {t[2], t[3], t[4], t[5]}, t[6], (int64_t)t[8], (int64_t)t[0], (int32_t)t[1], t[7] != 0};
    for (int64_t i = 0; i < boxes.detections; ++i, d += 7)
        detected[i] = (DetectedBox){{d[2], d[3], d[4], d[5]}, d[6], (int64_t)d[0], (int32_t)d[1]};
    boxes.truth = truth;
    boxes.detected = detected;
    CocoResult result = {0};
    for (int threads = 1; threads <= (argc > 2 ? atoi(argv[2]) : 2); ++threads) {
        double best_s = 1e30;
        for (int k = 0; k < 5; ++k) {
            coco_result_fini(&result);
            double begin_s = clock_s();
            if (coco_evaluate(&boxes, threads, &result) != OK) die("%s", fail_message());
            double took_s = clock_s() - begin_s;
            if (took_s < best_s) best_s = took_s;
        }
        fprintf(stderr, "weft, %d threads: %.3f s\n", threads, best_s);
    }
    for (int i = 0; i < COCO_NUMBERS; ++i) printf("%.17g\n", result.number[i]);
    for (int c = 0; c < result.categories; ++c) printf("%.17g\n", result.ap[c]);
    return 0;
}
