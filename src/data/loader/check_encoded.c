/* Checks on all cores of this process that every picture of an encoded set decodes completely. In a
 * set of boxes it also checks that each picture has the size for which its boxes were made. The
 * message names the broken picture with the lowest number, and how many more are broken; the log
 * lists the next LISTED_MAX - 1 of them. Message and log do not depend on the threads' timing. */
#include "../data_private.h"

#include <stdatomic.h>

/* largest number of broken pictures whose failures are kept */
enum { LISTED_MAX = 100 };

typedef struct Check {
    const DataSet *set;
    Reader *reader;
    /* required height and width of each picture when it is upright, (N,2), borrowed; NULL: any */
    const int32_t *size;
    /* number of the next sample to decode */
    atomic_llong next;
    /* protects the fields below */
    pthread_mutex_t lock;
    /* number of broken pictures */
    int64_t bad;
    /* failures of the broken pictures with the lowest numbers, in ascending order of numbers */
    FirstFailure failure[LISTED_MAX];
} Check;

/* Records the failure of picture i if it is among the LISTED_MAX broken pictures with the lowest
 * numbers. Called under the lock. */
static void record(Check *check, int64_t i, Status status)
{
    int64_t at = check->bad < LISTED_MAX ? check->bad : LISTED_MAX;
    ++check->bad;
    for (; at > 0 && check->failure[at - 1].i > i; --at) {
        if (at == LISTED_MAX)
            mem_free(&check->failure[at - 1].why);
        else
            check->failure[at] = check->failure[at - 1];
    }
    if (at == LISTED_MAX) return;
    check->failure[at] = (FirstFailure){i, status, mem_text(fail_message())};
}

/* Returns ERR_DATA if picture i, when it is upright, does not have the size for which its boxes
 * were made. */
static Status check_size(const Check *check, int64_t i, const Image *image, int orientation,
                         const char *name)
{
    const int32_t *size = check->size + 2 * i;
    int height = orientation >= 5 ? image->width : image->height;
    int width = orientation >= 5 ? image->height : image->width;
    if (size[0] == height && size[1] == width) return OK;
    return fail(ERR_DATA, "%s: has %dx%d pixels, its boxes are of %dx%d", name, width, height,
                size[1], size[0]);
}

/* Body of each thread: decodes samples until none is left. */
static Status decode_samples(void *user, int worker, int64_t thread)
{
    Check *check = user;
    ImageDecoder *decoder = image_decoder_new();
    Image image = {0};
    uint8_t *bytes = NULL;
    size_t capacity = 0, count;
    int orientation;
    char name[DATA_PATH + 32];
    (void)worker, (void)thread;
    for (int64_t i; (i = atomic_fetch_add(&check->next, 1)) < check->set->samples;) {
        Status st = reader_get_encoded(check->reader, i, &bytes, &capacity, &count, &orientation);
        sample_name(check->set, i, name, sizeof name);
        if (st == OK) st = image_decode(decoder, &image, bytes, count, name);
        if (st == OK && check->size) st = check_size(check, i, &image, orientation, name);
        if (st == OK) continue;
        pthread_mutex_lock(&check->lock);
        record(check, i, st);
        pthread_mutex_unlock(&check->lock);
    }
    image_fini(&image);
    image_decoder_free(&decoder);
    mem_free(&bytes);
    return OK;
}

Status encoded_check(const DataSet *set, Reader *reader, const int32_t *size)
{
    int threads = threads_share(1);
    Check check = {.set = set, .reader = reader, .size = size};
    pthread_mutex_init(&check.lock, NULL);
    (void)worker_pool_run(threads, threads, decode_samples, &check);
    pthread_mutex_destroy(&check.lock);
    for (int i = 1; i < check.bad && i < LISTED_MAX; ++i) {
        log_warn("%s", check.failure[i].why);
        mem_free(&check.failure[i].why);
    }
    Status st = failure_end(&check.failure[0]);
    if (check.bad < 2) return st;
    return fail(st, "%s; %lld more cannot be used, either", fail_message(),
                (long long)check.bad - 1);
}
