/* Does every picture of an encoded set decode whole? On all of this process's cores; the one with
 * the lowest number is named, and the others are counted, whatever thread met them first. */
#include "data_private.h"

#include <stdatomic.h>

typedef struct Check {
    const DataSet *set;
    Reader *reader;
    atomic_llong next;
    /* under lock: how many are bad, the first of them, and what is said of it */
    pthread_mutex_t lock;
    int64_t bad, first;
    Status status;
    char why[2 * DATA_PATH];
} Check;

static void note(Check *check, int64_t sample, Status status)
{
    pthread_mutex_lock(&check->lock);
    if (check->bad++ == 0 || sample < check->first) {
        check->first = sample;
        check->status = status;
        snprintf(check->why, sizeof check->why, "%s", fail_message());
    }
    pthread_mutex_unlock(&check->lock);
}

static void *run(void *of)
{
    Check *check = of;
    ImageDecoder *decoder = image_decoder_new();
    Image image = {0};
    uint8_t *bytes = NULL;
    size_t room = 0, count;
    int orientation;
    char name[DATA_PATH + 32];
    for (int64_t i; (i = atomic_fetch_add(&check->next, 1)) < check->set->samples;) {
        Status st = reader_get_encoded(check->reader, i, &bytes, &room, &count, &orientation);
        sample_name(check->set, i, name, sizeof name);
        if (st == OK) st = image_decode(decoder, &image, bytes, count, name);
        if (st != OK) note(check, i, st);
    }
    image_fini(&image);
    image_decoder_free(&decoder);
    mem_free(&bytes);
    return NULL;
}

Status encoded_check(const DataSet *set, Reader *reader)
{
    int threads = threads_share(1), begun = 0;
    pthread_t *thread = mem_new((size_t)threads * sizeof *thread);
    Check check = {.set = set, .reader = reader};
    pthread_mutex_init(&check.lock, NULL);
    while (begun < threads - 1 && thread_begin(&thread[begun], run, &check) == 0) ++begun;
    run(&check);
    for (int i = 0; i < begun; ++i) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&check.lock);
    mem_free(&thread);
    if (check.bad == 0) return OK;
    if (check.bad == 1) return fail(check.status, "%s", check.why);
    return fail(check.status, "%s; %lld others cannot be used, either", check.why,
                (long long)check.bad - 1);
}
