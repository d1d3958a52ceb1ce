/* weft bench io FILE for a file of encoded pictures. Measures how many images per second the loader
 * prepares with one thread and, for comparison, how many images per second one thread only decodes.
 * The two rates are measured alternately, so that other load on the machine slows both. Images are
 * prepared as 224x224, with random resized crop, flip and normalisation. Images of a set of boxes
 * are prepared as 320x320, in mosaics of four with random scale, shift, colours and flip. Also
 * prints the time to open the file, and the memory of the process at the end. */
#include "../private.h"

#include "data.h"
#include "train.h"

enum {
    /* number of measurements of each rate */
    ROUNDS = 4,
    /* number of images in a micro-batch */
    MICRO = 16,
    /* number of micro-batches that the loader keeps prepared */
    SLOTS = 3,
    /* number of micro-batches at the beginning that are not counted; after them every slot has its
     * memory */
    WARM = 2 * SLOTS
};

typedef struct Pictures {
    DataSet *set;
    Config *config;
    /* time of one measurement */
    double seconds;
    /* number of images per second that are only decoded */
    double decoded_per_s;
    /* number of images per second that the loader prepares */
    double loaded_per_s;
} Pictures;

/* Measures decoding alone, on images in random order. round: number of the measurement, which
 * selects the order. *rate: images per second. */
static Status measure_decoding(const Pictures *p, int round, double *rate)
{
    Reader *reader;
    TRY(reader_new(&reader, p->set));
    ImageDecoder *decoder = image_decoder_new();
    Image image = {0};
    uint8_t *bytes = NULL;
    size_t room = 0, count;
    int orientation;
    int64_t done = 0;
    double begin_s = clock_s(), now_s = begin_s;
    Status st = OK;
    for (; st == OK && now_s < begin_s + p->seconds; now_s = clock_s(), ++done) {
        int64_t at = sampler_at(p->set->samples, 1, round, done % p->set->samples);
        st = reader_get_encoded(reader, at, &bytes, &room, &count, &orientation);
        if (st == OK) st = image_decode(decoder, &image, bytes, count, p->set->path);
    }
    *rate = (double)done / (now_s - begin_s);
    image_fini(&image);
    image_decoder_free(&decoder);
    mem_free(&bytes);
    reader_free(&reader);
    return st;
}

/* Measures the loader. round: number of the measurement, which is used as the epoch. *rate: images
 * per second that the loader prepares. */
static Status measure_loading(const Pictures *p, int round, double *rate)
{
    Loader *loader;
    const MicroBatch *batch;
    LoaderPlan plan = {.batch = MICRO,
                       .micro_batch = MICRO,
                       .micro_count = 1,
                       .epoch = round,
                       .training = true,
                       .slots = SLOTS,
                       .workers = 1};
    TRY(loader_new(&loader, p->set, p->config, plan));
    Status st = OK;
    int64_t done = -WARM;
    double begin_s = 0, now_s = 0;
    for (; st == OK && (done < 0 || now_s < begin_s + p->seconds); now_s = clock_s()) {
        st = loader_next(loader, &batch, NULL);
        if (st == OK) loader_release(loader);
        if (++done == 0) begin_s = clock_s();
    }
    loader_free(&loader);
    *rate = (double)(done * MICRO) / (now_s - begin_s);
    return st;
}

static Status measure(Pictures *p)
{
    double decoded[ROUNDS], loaded[ROUNDS];
    for (int i = 0; i < ROUNDS; ++i) {
        TRY(measure_decoding(p, i, &decoded[i]));
        TRY(measure_loading(p, i, &loaded[i]));
    }
    p->decoded_per_s = median(decoded, ROUNDS);
    p->loaded_per_s = median(loaded, ROUNDS);
    return OK;
}

static void report(const Pictures *p, double open_s, bool json)
{
    MemoryUse use = memory_use();
    if (json) {
        Json j = json_to(stdout, true);
        json_object(&j, NULL);
        json_text(&j, "bench", "io");
        json_text(&j, "file", p->set->path);
        json_int(&j, "samples", p->set->samples);
        json_fixed(&j, "open_s", 3, open_s);
        json_fixed(&j, "own_mb", 1, use.own_bytes / 1e6);
        json_fixed(&j, "decoded_per_s", 1, p->decoded_per_s);
        json_fixed(&j, "loaded_per_s", 1, p->loaded_per_s);
        json_end(&j);
        return;
    }
    printf("%s: %lld encoded pictures, opened in %.3f s, %.1f MB of memory\n", p->set->path,
           (long long)p->set->samples, open_s, use.own_bytes / 1e6);
    printf("  decoded whole          %8.1f images/s a core\n", p->decoded_per_s);
    printf("  loaded as %lldx%lld      %8.1f images/s a core: %.0f %%%s\n",
           (long long)p->set->height, (long long)p->set->width, p->loaded_per_s,
           100 * p->loaded_per_s / p->decoded_per_s,
           data_has_boxes(p->set) ? "; each is made of four" : "");
}

Status bench_pictures(const char *path, bool boxes, double seconds, bool json)
{
    char *crops[] = {"data.augment=[flip]", "data.random_resized_crop=224"};
    char *mosaics[] = {"train.loss=yolo",
                       "data.augment=[flip]",
                       "data.letterbox=320",
                       "data.mosaic=1",
                       "data.affine_scale=[0.5, 1.5]",
                       "data.affine_shift=0.1",
                       "data.color_jitter=[0.4, 0, 0.7, 0.015]",
                       "data.normalize=false"};
    Pictures p = {.set = mem_new(sizeof *p.set), .seconds = seconds / (2 * ROUNDS)};
    double begin_s = clock_s(), open_s;
    Status st = boxes ? config_load(&p.config, NULL, sizeof mosaics / sizeof *mosaics, mosaics)
                      : config_load(&p.config, NULL, sizeof crops / sizeof *crops, crops);
    if (st == OK) st = data_set_open(p.set, p.config, path);
    if (st == OK) st = data_set_check_labels(p.set);
    open_s = clock_s() - begin_s;
    if (st == OK) st = measure(&p);
    if (st == OK) report(&p, open_s, json);
    config_free(&p.config);
    data_set_fini(p.set);
    mem_free(&p.set);
    return st;
}
