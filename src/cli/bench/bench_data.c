/* Random data for benchmarks of steps. They are in a file, so that the loader works as in
 * training. */
#include "bench.h"
#include "../private.h"

#include "data/import.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Status bench_input_parse(const char *text, Input *input)
{
    *input = (Input){0};
    if (!text) return OK;
    TRY(input_parse(text, input));
    if (input->shape.ndim != 2) return OK;
    return fail(ERR_USAGE, "--input %s: only images and tokens are generated; set data.train",
                text);
}

static Status make_tokens(const Config *config, const char *path)
{
    int64_t vocab = config->model.vocab  ? config->model.vocab
                    : config->model.size ? GPT2_VOCAB
                                         : 256;
    int64_t context = config->model.context ? config->model.context : 1024;
    int64_t count = 4 * config->train.batch * context + 1;
    char *raw = mem_format("%s.raw", path);
    uint32_t *token = mem_new((size_t)count * sizeof *token);
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    for (int64_t i = 0; i < count; ++i) token[i] = rng_u32(key, (uint64_t)i) % (uint32_t)vocab;
    FILE *file = file_create_stream(raw);
    bool good = file && fwrite(token, sizeof *token, (size_t)count, file) == (size_t)count;
    good = file && fclose(file) == 0 && good;
    Status st = good ? OK : fail(ERR_IO, "%s: cannot be written", raw);
    if (good) st = data_import_tokens(raw, 32, vocab, path, NULL, 0, true);
    unlink(raw);
    mem_free(&token);
    mem_free(&raw);
    return st;
}

/* Makes the file of random samples. Writes it to a path that only this rank uses and then renames
 * it, because several nodes may write the file in one shared folder. */
static Status make_file(const Job *job, const Input *input, const char *path)
{
    int64_t classes = job->config->model.classes ? job->config->model.classes : 10;
    int64_t samples = 4 * job->config->train.batch;
    const bool boxes = loss_info(job->config)->reads == LOSS_READS_BOXES;
    char *rank_path = mem_format("%s.%d", path, job->world.rank);
    Status st = input->tokens ? make_tokens(job->config, rank_path)
                              : (boxes ? data_import_random_boxes : data_import_random)(
                                    rank_path, input->shape, classes, samples, 1);
    if (st == OK && rename(rank_path, path) != 0) st = fail(ERR_IO, "%s: cannot be written", path);
    mem_free(&rank_path);
    return st;
}

/* Checks that --input describes samples that train.loss can read. A detector needs square samples;
 * if data.letterbox is set, it is changed to the side of the samples, so that they are not resized.
 * ERR_USAGE: the samples do not fit. */
static Status check_input(Job *job, const Input *input)
{
    const Shape x = input->shape;
    if (loss_info(job->config)->reads == LOSS_READS_TARGETS)
        return fail(
            ERR_USAGE,
            "--input: its random samples have labels, but train.loss %s reads targets: name "
            "a set with data.train",
            loss_name(job->config));
    if (loss_info(job->config)->reads != LOSS_READS_BOXES) return OK;
    if (input->tokens || x.dim[2] != x.dim[3])
        return fail(ERR_USAGE, "--input: a detector (train.loss: yolo) takes squares: 3x640x640");
    if (job->config->data.letterbox) job->config->data.letterbox = x.dim[2];
    return OK;
}

/* Makes the file of random samples on each node, on the node's first rank. All files are equal and
 * have the same path. */
static Status make_data(Job *job, const Input *input, char path[DATA_PATH])
{
    TRY(check_input(job, input));
    const char *folder = getenv("TMPDIR");
    if (job->world.rank == 0)
        snprintf(path, DATA_PATH, "%s/weft-bench-%d.h5", folder ? folder : "/tmp", (int)getpid());
    world_bcast(&job->world, path, DATA_PATH, 0);
    TRY(status_agree(&job->world, job->world.node_rank == 0 ? make_file(job, input, path) : OK));
    mem_free(&job->config->data.train);
    mem_free(&job->config->data.test);
    job->config->data.train = mem_text(path);
    return OK;
}

Status bench_data_begin(Job *job, const Input *input, char path[DATA_PATH])
{
    memset(path, 0, DATA_PATH);
    if (input->shape.ndim || input->tokens) return make_data(job, input, path);
    if (job->config->data.train) return OK;
    return config_fail_key(job->config, "data.train",
                           "no data: set data.train, or generate random data with --input "
                           "3x224x224 or --input tokens");
}

void bench_data_end(const Job *job, const char *path)
{
    if (*path && job->world.node_rank == 0) unlink(path);
}
