/* Decodes pictures into OUT.part, on several threads of each rank:
 *
 *   each thread: the next file -> decode, orient, resize, crop -> pwrite at the sample's offset
 *                                                             \-> add it to its block's record
 *   the calling thread, once a second: blocks that are done -> fdatasync -> the journal
 *
 * With n ranks, rank r decodes blocks r, r + n, r + 2 n, ... A sample depends only on its file and
 * the import's options, and sums are of integers, so the number of threads and ranks changes no
 * byte. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* seconds between writes to the journal */
#define FLUSH_S 1.0
/* longest time in seconds between checks for stop requests */
#define CHECK_S 0.1
enum { FILE_BYTES_MAX = 1 << 30 };

/* a block that this rank decodes */
typedef struct Block {
    /* index of the block among all blocks of the import */
    int64_t number;
    /* number of samples of the block that are not done */
    atomic_int left;
    /* true: all samples were done before the last sync, so the record may be written */
    bool ready;
    /* owned; NULL: the record has been written to the journal */
    FolderRecord *record;
    /* protects record */
    pthread_mutex_t lock;
} Block;

/* state shared by the threads of a rank */
typedef struct WorkerPool {
    FolderWork *work;
    /* the blocks of this rank that were not in the journal when decoding began, [blocks], owned */
    Block *block;
    int64_t blocks;
    /* number of the next sample to decode: sample k of block[b] has number b * FOLDER_BLOCK + k,
     * also after a short block */
    atomic_llong next;
    /* number of this rank's samples that are done, including those that were in the journal */
    atomic_llong done;
    /* number of broken samples among those done */
    atomic_llong broken;
    /* number of this rank's samples */
    int64_t total;
    /* true: the threads end after their current sample */
    atomic_bool stop;
    /* protects the fields below */
    pthread_mutex_t lock;
    /* signalled when a thread ends */
    pthread_cond_t wake;
    /* number of running threads */
    int running;
    /* status of the first failure, or OK */
    Status status;
    /* message of the first failure */
    char why[1024];
} WorkerPool;

/* state of one thread */
typedef struct Worker {
    const FolderWork *work;
    ImageDecoder *decoder;
    ImageResampler *resampler;
    /* decoded picture */
    Image image;
    /* result of operations that cannot work in place */
    Image spare;
    /* content of the picture's file; owned */
    uint8_t *bytes;
    /* number of bytes allocated for `bytes` */
    size_t bytes_room;
    /* sample to store decoded, (3,side,side), owned; NULL: samples are stored encoded */
    uint8_t *planes;
    /* sums of the pixels and of their squares, for each channel of the current sample */
    uint64_t sum[3], squares[3];
    /* number of pixels of the current sample */
    uint64_t pixels;
} Worker;

static void worker_init(Worker *worker, const FolderWork *work)
{
    int64_t side = work->import->side;
    *worker = (Worker){.work = work, .decoder = image_decoder_new()};
    if (work->import->encoded) return;
    worker->resampler = image_resampler_new();
    worker->planes = mem_new((size_t)(3 * side * side));
}

static void worker_fini(Worker *worker)
{
    image_decoder_free(&worker->decoder);
    image_resampler_free(&worker->resampler);
    image_fini(&worker->image);
    image_fini(&worker->spare);
    mem_free(&worker->bytes);
    mem_free(&worker->planes);
}

Status fail_file_changed(const char *path)
{
    return fail(ERR_IO, "%s: has changed while it was imported: start the import again", path);
}

/* Reads a file into worker->bytes. ERR_DATA: the file cannot be read, or is too large for a
 * picture. ERR_IO: its size is no longer the one that was listed. */
static Status read_picture(Worker *worker, const char *path, const FolderFile *file)
{
    if (file->bytes < 0) return fail(ERR_DATA, "%s: is not a file that can be read", path);
    if (file->bytes > FILE_BYTES_MAX)
        return fail(ERR_DATA, "%s: has more than 1 GB, too much for a picture", path);
    if (worker->bytes_room < (size_t)file->bytes + 1) {
        mem_free(&worker->bytes);
        worker->bytes_room = (size_t)file->bytes + (size_t)file->bytes / 2 + 1;
        worker->bytes = mem_new(worker->bytes_room);
    }
    int fd = file_open(path, O_RDONLY);
    if (fd < 0) return fail(ERR_DATA, "%s: cannot be opened: %s", path, file_error(errno));
    int64_t have = 0;
    ssize_t n;
    /* Reading one byte more shows whether the file has become longer. */
    while ((n = read(fd, worker->bytes + have, (size_t)(file->bytes + 1 - have))) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        have += n;
        if (have > file->bytes) break;
    }
    int error = n < 0 ? errno : 0;
    close(fd);
    if (error) return fail(ERR_DATA, "%s: cannot be read: %s", path, strerror(error));
    if (have == file->bytes) return OK;
    return fail_file_changed(path);
}

/* Resizes worker->image so that its short side is import->side. ERR_DATA: the long side would have
 * too many pixels. */
static Status resize(Worker *worker, const char *path)
{
    const FolderImport *import = worker->work->import;
    Image *image = &worker->image, *to = &worker->spare;
    int64_t width = image->width, height = image->height;
    view_cover_size(import->side, import->side, &width, &height);
    if (width == image->width && height == image->height) return OK;
    if (width > IMAGE_PIXELS_MAX / height)
        return fail(ERR_DATA, "%s: %dx%d pixels are too narrow to be resized to %d", path,
                    image->width, image->height, import->side);
    image_set_size(to, (int)width, (int)height);
    image_resample(worker->resampler, image, (ImageBox){0, 0, image->width, image->height}, to,
                   import->filter);
    Image swap = *image;
    *image = *to;
    *to = swap;
    return OK;
}

/* Copies the square at the centre of worker->image to worker->planes. */
static void cut_square(Worker *worker)
{
    const Image *image = &worker->image;
    int side = worker->work->import->side;
    int left = view_centre_offset(image->width, side),
        top = view_centre_offset(image->height, side);
    uint8_t *r = worker->planes, *g = r + (size_t)side * (size_t)side;
    uint8_t *b = g + (size_t)side * (size_t)side;
    for (int y = 0; y < side; ++y) {
        const uint8_t *from =
            image->pixel + 3 * ((size_t)(top + y) * (size_t)image->width + (size_t)left);
        for (int x = 0; x < side; ++x, from += 3) *r++ = from[0], *g++ = from[1], *b++ = from[2];
    }
}

/* Resizes worker->image so that its longer side is import->side, and copies it to the centre of
 * worker->planes, whose margins are grey. */
static void fit_square(Worker *worker)
{
    const Image *image = &worker->image;
    const int side = worker->work->import->side;
    const ImageBox at = letterbox(image->width, image->height, side);
    if (at.width != image->width || at.height != image->height) {
        image_set_size(&worker->spare, at.width, at.height);
        image_resample(worker->resampler, image, (ImageBox){0, 0, image->width, image->height},
                       &worker->spare, worker->work->import->filter);
        image = &worker->spare;
    }
    size_t square = (size_t)side * (size_t)side;
    size_t first = (size_t)at.y * (size_t)side + (size_t)at.x;
    memset(worker->planes, LETTERBOX_GREY, 3 * square);
    for (int y = 0; y < at.height; ++y) {
        const uint8_t *from = image->pixel + 3 * (size_t)y * (size_t)at.width;
        uint8_t *to = worker->planes + first + (size_t)y * (size_t)side;
        for (int x = 0; x < at.width; ++x, from += 3, ++to)
            to[0] = from[0], to[square] = from[1], to[2 * square] = from[2];
    }
}

/* Computes sum, squares and pixels of the current sample: if samples are stored encoded, of the
 * whole decoded picture, else of the stored planes. */
static void sum_pixels(Worker *worker)
{
    const FolderImport *import = worker->work->import;
    int64_t square = (int64_t)import->side * import->side;
    int64_t all = (int64_t)worker->image.width * worker->image.height;
    memset(worker->sum, 0, sizeof worker->sum);
    memset(worker->squares, 0, sizeof worker->squares);
    worker->pixels = (uint64_t)(import->encoded ? all : square);
    for (int c = 0; c < 3; ++c) {
        if (import->encoded)
            pixel_sums(worker->image.pixel + c, all, 3, &worker->sum[c], &worker->squares[c]);
        else
            pixel_sums(worker->planes + c * square, square, 1, &worker->sum[c],
                       &worker->squares[c]);
    }
}

/* Reads file i and converts it to the sample that is stored, in worker->bytes if samples are
 * encoded, else in worker->planes. Computes its sums, too. ERR_DATA: the file is not a usable
 * picture. ERR_IO: the file has changed. */
static Status convert_picture(Worker *worker, int64_t i, FolderSample *sample)
{
    const FolderWork *work = worker->work;
    const FolderImport *import = work->import;
    const char *path = files_path(&work->files, i);
    const FolderFile *file = &work->files.file[i];
    ImageHeader head;
    TRY(read_picture(worker, path, file));
    TRY(image_read_header(&head, worker->bytes, (size_t)file->bytes, path));
    TRY(image_decode(worker->decoder, &worker->image, worker->bytes, (size_t)file->bytes, path));
    *sample = (FolderSample){head.height, head.width, (uint8_t)head.orientation, FOLDER_GOOD, {0}};
    if (!import->encoded) {
        if (import->orient)
            image_apply_orientation(&worker->image, &worker->spare, head.orientation);
        if (import->labels) {
            fit_square(worker);
        } else {
            TRY(resize(worker, path));
            cut_square(worker);
        }
    }
    sum_pixels(worker);
    return OK;
}

/* Decodes sample i, writes it to OUT.part, and adds its result to the block's record. A picture
 * that cannot be used is recorded as broken. */
static Status process_sample(WorkerPool *pool, Worker *worker, Block *block, int64_t i)
{
    const FolderWork *work = pool->work;
    FolderRecord *record = block->record;
    FolderSample sample = {.state = FOLDER_BROKEN};
    Status status = convert_picture(worker, i, &sample);
    if (status == OK) {
        bool encoded = work->import->encoded;
        int64_t bytes = sample_offset(work, i + 1) - sample_offset(work, i);
        status = part_write(&work->part, encoded ? worker->bytes : worker->planes, bytes,
                            work->data_offset + sample_offset(work, i));
        if (status != OK) return status;
    } else if (status != ERR_DATA) {
        return status;
    } else {
        sample = (FolderSample){.state = FOLDER_BROKEN};
        atomic_fetch_add(&pool->broken, 1);
    }
    pthread_mutex_lock(&block->lock);
    record->sample[i % FOLDER_BLOCK] = sample;
    for (int c = 0; c < 3 && sample.state == FOLDER_GOOD; ++c) {
        record->sum[c] += worker->sum[c];
        record->squares[c] += worker->squares[c];
    }
    if (sample.state == FOLDER_GOOD) record->pixels += worker->pixels;
    pthread_mutex_unlock(&block->lock);
    return OK;
}

static void pool_fail(WorkerPool *pool, Status status)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->status == OK) {
        pool->status = status;
        snprintf(pool->why, sizeof pool->why, "%s", fail_message());
    }
    pthread_mutex_unlock(&pool->lock);
    atomic_store(&pool->stop, true);
}

/* Body of each thread: processes samples until none is left or pool->stop is set. */
static void *worker_run(void *arg)
{
    WorkerPool *pool = arg;
    Worker worker;
    worker_init(&worker, pool->work);
    while (!atomic_load(&pool->stop)) {
        int64_t at = atomic_fetch_add(&pool->next, 1);
        if (at >= pool->blocks * FOLDER_BLOCK) break;
        Block *block = &pool->block[at / FOLDER_BLOCK];
        if (at % FOLDER_BLOCK >= block_samples(pool->work, block->number)) continue;
        Status status =
            process_sample(pool, &worker, block, block->number * FOLDER_BLOCK + at % FOLDER_BLOCK);
        if (status != OK) {
            pool_fail(pool, status);
            break;
        }
        atomic_fetch_sub(&block->left, 1);
        atomic_fetch_add(&pool->done, 1);
    }
    worker_fini(&worker);
    pthread_mutex_lock(&pool->lock);
    --pool->running;
    pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Syncs the samples of all complete blocks to the disk, then writes the blocks' records to the
 * journal. A block that becomes complete during the sync waits for the next call. ERR_IO. */
static Status flush(WorkerPool *pool)
{
    bool any = false;
    for (int64_t b = 0; b < pool->blocks; ++b) {
        Block *block = &pool->block[b];
        block->ready = block->record && atomic_load(&block->left) == 0;
        any |= block->ready;
    }
    if (!any) return OK;
    if (fdatasync(pool->work->part.fd) != 0) return part_fail(&pool->work->part, strerror(errno));
    for (int64_t b = 0; b < pool->blocks; ++b) {
        Block *block = &pool->block[b];
        if (!block->ready) continue;
        TRY(journal_write(pool->work, block->number, block->record));
        mem_free(&block->record);
    }
    return OK;
}

/* Runs on the calling thread until all other threads have ended: flushes, reports progress and
 * checks for stop requests. */
static void watch_threads(WorkerPool *pool)
{
    const ImportRanks *ranks = pool->work->ranks;
    double flushed_s = clock_s();
    pthread_mutex_lock(&pool->lock);
    while (pool->running > 0) {
        cond_wait_for(&pool->wake, &pool->lock, CHECK_S);
        pthread_mutex_unlock(&pool->lock);
        if (stop_wanted()) atomic_store(&pool->stop, true);
        if (clock_s() - flushed_s > FLUSH_S) {
            Status status = flush(pool);
            if (status != OK) pool_fail(pool, status);
            flushed_s = clock_s();
        }
        ranks->progress(ranks->user, atomic_load(&pool->done), pool->total,
                        atomic_load(&pool->broken));
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Collects this rank's blocks that are not in the journal, and counts the samples of those that
 * are. */
static void pool_init(WorkerPool *pool, FolderWork *work)
{
    const ImportRanks *ranks = work->ranks;
    FolderRecord *record = mem_new(sizeof *record);
    *pool = (WorkerPool){.work = work, .stop = stop_wanted()};
    pool->block = mem_new((size_t)(work->blocks / ranks->size + 1) * sizeof *pool->block);
    for (int64_t b = ranks->rank; b < work->blocks; b += ranks->size) {
        int samples = (int)block_samples(work, b);
        pool->total += samples;
        if (journal_read(work, b, record)) {
            for (int i = 0; i < samples; ++i)
                pool->broken += record->sample[i].state != FOLDER_GOOD;
            pool->done += samples;
            continue;
        }
        Block *block = &pool->block[pool->blocks++];
        block->number = b;
        block->record = mem_new(sizeof *block->record);
        atomic_init(&block->left, samples);
        pthread_mutex_init(&block->lock, NULL);
    }
    mem_free(&record);
    pthread_mutex_init(&pool->lock, NULL);
    cond_init(&pool->wake);
}

static void pool_fini(WorkerPool *pool)
{
    for (int64_t b = 0; b < pool->blocks; ++b) {
        mem_free(&pool->block[b].record);
        pthread_mutex_destroy(&pool->block[b].lock);
    }
    mem_free(&pool->block);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
}

static Status pool_status(WorkerPool *pool)
{
    if (pool->status != OK) return fail(pool->status, "%s", pool->why);
    if (atomic_load(&pool->done) == pool->total) return OK;
    return fail(ERR_STOPPED,
                "stopped after %lld of %lld pictures: the same command continues from the complete "
                "blocks of %d pictures in %s",
                (long long)atomic_load(&pool->done), (long long)pool->total, FOLDER_BLOCK,
                pool->work->part.part);
}

Status folder_decode_blocks(FolderWork *work)
{
    WorkerPool pool;
    int threads = work->import->threads < 1 ? 1 : work->import->threads;
    pthread_t *thread = mem_new((size_t)threads * sizeof *thread);
    int started = 0;
    pool_init(&pool, work);
    if (pool.done)
        log_info("resuming %s: %lld of %lld pictures are done", work->part.part,
                 (long long)pool.done, (long long)pool.total);
    for (; started < threads && pool.blocks; ++started) {
        pthread_mutex_lock(&pool.lock);
        ++pool.running;
        pthread_mutex_unlock(&pool.lock);
        int error = thread_begin(&thread[started], worker_run, &pool);
        if (error == 0) continue;
        pthread_mutex_lock(&pool.lock);
        --pool.running;
        pthread_mutex_unlock(&pool.lock);
        if (started == 0)
            pool_fail(&pool, fail(ERR_IO, "no thread can be started: %s", strerror(error)));
        break;
    }
    watch_threads(&pool);
    for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
    Status status = flush(&pool);
    if (status != OK) pool_fail(&pool, status);
    status = pool_status(&pool);
    work->ranks->progress(work->ranks->user, atomic_load(&pool.done), pool.total,
                          atomic_load(&pool.broken));
    pool_fini(&pool);
    mem_free(&thread);
    return status;
}

Status folder_check_picture(const FolderWork *work, int64_t i, FolderSample *sample)
{
    Worker worker;
    worker_init(&worker, work);
    Status status = convert_picture(&worker, i, sample);
    worker_fini(&worker);
    return status;
}
