/* Decodes pictures into OUT.part, on several threads of each rank:
 *
 *   files -> a thread takes the next sample -> decode, turn, resize, crop -> pwrite at its offset
 *                                          \-> size, state, sums of its block
 *   the calling thread: blocks that are done -> fdatasync -> the journal, once a second
 *
 * Rank r has every size-th block from r on. A sample depends on its file only, and sums are of
 * integers, so the number of threads and ranks changes no byte. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_S 1.0
#define LOOK_S  0.1
enum { FILE_BYTES = 1 << 30 };

/* a block that this rank decodes */
typedef struct Block {
    int64_t number;
    /* samples not yet done */
    atomic_int left;
    /* all samples were done before the last sync */
    bool ready;
    /* owned; NULL: it is in the journal already */
    FolderRecord *record;
    pthread_mutex_t lock;
} Block;

typedef struct Team {
    FolderWork *work;
    Block *block;
    int64_t blocks;
    /* next: next sample number over all blocks. done, broken: samples done, those of the journal
     * included, and how many of them are broken. total: this rank's samples. */
    atomic_llong next, done, broken;
    int64_t total;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* number of running threads; the first failure; protected by lock */
    int running;
    Status status;
    char why[1024];
} Team;

/* state of one thread */
typedef struct Hand {
    const FolderWork *work;
    ImageDecoder *decoder;
    ImageResampler *resampler;
    Image image, spare;
    uint8_t *bytes, *planes;
    size_t bytes_room;
    uint64_t sum[3], squares[3], pixels;
} Hand;

static void hand_init(Hand *hand, const FolderWork *work)
{
    int64_t side = work->import->side;
    *hand = (Hand){.work = work, .decoder = image_decoder_new()};
    if (work->import->encoded) return;
    hand->resampler = image_resampler_new();
    hand->planes = mem_new((size_t)(3 * side * side));
}

static void hand_fini(Hand *hand)
{
    image_decoder_free(&hand->decoder);
    image_resampler_free(&hand->resampler);
    image_fini(&hand->image);
    image_fini(&hand->spare);
    mem_free(&hand->bytes);
    mem_free(&hand->planes);
}

/* Reads a file, which must have the size that stat gave. ERR_DATA: it cannot be read. */
static Status read_picture(Hand *hand, const char *path, const FolderFile *file)
{
    if (file->bytes < 0) return fail(ERR_DATA, "%s: is no file that can be read", path);
    if (file->bytes > FILE_BYTES)
        return fail(ERR_DATA, "%s: has more than 1 GB: no picture that is decoded here", path);
    if (hand->bytes_room < (size_t)file->bytes + 1) {
        mem_free(&hand->bytes);
        hand->bytes_room = (size_t)file->bytes + (size_t)file->bytes / 2 + 1;
        hand->bytes = mem_new(hand->bytes_room);
    }
    int fd = file_open(path, O_RDONLY);
    if (fd < 0) return fail(ERR_DATA, "%s: cannot be opened: %s", path, file_error(errno));
    int64_t have = 0;
    ssize_t n;
    /* Reading one byte more shows whether the file has become longer. */
    while ((n = read(fd, hand->bytes + have, (size_t)(file->bytes + 1 - have))) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        have += n;
        if (have > file->bytes) break;
    }
    int error = n < 0 ? errno : 0;
    close(fd);
    if (error) return fail(ERR_DATA, "%s: cannot be read: %s", path, strerror(error));
    if (have == file->bytes) return OK;
    return fail(ERR_IO, "%s: has changed while it was imported: start the import again", path);
}

/* Resizes the picture so that its short side is `side`. */
static Status resize(Hand *hand, const char *path)
{
    const FolderImport *import = hand->work->import;
    Image *image = &hand->image, *to = &hand->spare;
    int64_t width = image->width, height = image->height;
    view_cover(import->side, import->side, &width, &height);
    if (width == image->width && height == image->height) return OK;
    if (width > IMAGE_PIXELS_MOST / height)
        return fail(ERR_DATA, "%s: %dx%d pixels are too narrow to be resized to %d", path,
                    image->width, image->height, import->side);
    image_resize_room(to, (int)width, (int)height);
    image_resample(hand->resampler, image, (ImageBox){0, 0, image->width, image->height}, to,
                   import->filter);
    Image swap = *image;
    *image = *to;
    *to = swap;
    return OK;
}

/* Copies the centre square as three planes. */
static void cut_square(Hand *hand)
{
    const Image *image = &hand->image;
    int side = hand->work->import->side;
    int left = view_middle(image->width, side), top = view_middle(image->height, side);
    uint8_t *r = hand->planes, *g = r + (size_t)side * (size_t)side;
    uint8_t *b = g + (size_t)side * (size_t)side;
    for (int y = 0; y < side; ++y) {
        const uint8_t *from =
            image->pixel + 3 * ((size_t)(top + y) * (size_t)image->width + (size_t)left);
        for (int x = 0; x < side; ++x, from += 3) *r++ = from[0], *g++ = from[1], *b++ = from[2];
    }
}

static void add_pixels(Hand *hand)
{
    const FolderImport *import = hand->work->import;
    int64_t square = (int64_t)import->side * import->side;
    int64_t all = (int64_t)hand->image.width * hand->image.height;
    memset(hand->sum, 0, sizeof hand->sum);
    memset(hand->squares, 0, sizeof hand->squares);
    hand->pixels = (uint64_t)(import->encoded ? all : square);
    for (int c = 0; c < 3; ++c) {
        if (import->encoded)
            pixel_sums(hand->image.pixel + c, all, 3, &hand->sum[c], &hand->squares[c]);
        else
            pixel_sums(hand->planes + c * square, square, 1, &hand->sum[c], &hand->squares[c]);
    }
}

/* Turns a file into what is stored. ERR_DATA: not a usable picture. */
static Status take_picture(Hand *hand, int64_t i, FolderSample *sample)
{
    const FolderWork *work = hand->work;
    const FolderImport *import = work->import;
    const char *path = files_path(&work->files, i);
    const FolderFile *file = &work->files.file[i];
    ImageHead head;
    TRY(read_picture(hand, path, file));
    TRY(image_head(&head, hand->bytes, (size_t)file->bytes, path));
    TRY(image_decode(hand->decoder, &hand->image, hand->bytes, (size_t)file->bytes, path));
    *sample = (FolderSample){head.height, head.width, (uint8_t)head.orientation, FOLDER_GOOD, {0}};
    if (!import->encoded) {
        if (import->orient) image_turn(&hand->image, &hand->spare, head.orientation);
        TRY(resize(hand, path));
        cut_square(hand);
    }
    add_pixels(hand);
    return OK;
}

/* Decodes and writes one sample, and adds it to the block's record; broken pictures are recorded,
 * too. */
static Status do_sample(Team *team, Hand *hand, Block *block, int64_t i)
{
    const FolderWork *work = team->work;
    FolderRecord *record = block->record;
    FolderSample sample = {.state = FOLDER_BROKEN};
    Status status = take_picture(hand, i, &sample);
    if (status == OK) {
        bool encoded = work->import->encoded;
        int64_t bytes = sample_offset(work, i + 1) - sample_offset(work, i);
        status = part_write(&work->part, encoded ? hand->bytes : hand->planes, bytes,
                            work->data_offset + sample_offset(work, i));
        if (status != OK) return status;
    } else if (status != ERR_DATA) {
        return status;
    } else {
        sample = (FolderSample){.state = FOLDER_BROKEN};
        atomic_fetch_add(&team->broken, 1);
    }
    pthread_mutex_lock(&block->lock);
    record->sample[i % FOLDER_BLOCK] = sample;
    for (int c = 0; c < 3 && sample.state == FOLDER_GOOD; ++c) {
        record->sum[c] += hand->sum[c];
        record->squares[c] += hand->squares[c];
    }
    if (sample.state == FOLDER_GOOD) record->pixels += hand->pixels;
    pthread_mutex_unlock(&block->lock);
    return OK;
}

static void team_fail(Team *team, Status status)
{
    pthread_mutex_lock(&team->lock);
    if (team->status == OK) {
        team->status = status;
        snprintf(team->why, sizeof team->why, "%s", fail_message());
    }
    pthread_mutex_unlock(&team->lock);
    atomic_store(&team->stop, true);
}

static void *run_thread(void *of)
{
    Team *team = of;
    Hand hand;
    hand_init(&hand, team->work);
    while (!atomic_load(&team->stop)) {
        int64_t at = atomic_fetch_add(&team->next, 1);
        if (at >= team->blocks * FOLDER_BLOCK) break;
        Block *block = &team->block[at / FOLDER_BLOCK];
        if (at % FOLDER_BLOCK >= block_samples(team->work, block->number)) continue;
        Status status =
            do_sample(team, &hand, block, block->number * FOLDER_BLOCK + at % FOLDER_BLOCK);
        if (status != OK) {
            team_fail(team, status);
            break;
        }
        atomic_fetch_sub(&block->left, 1);
        atomic_fetch_add(&team->done, 1);
    }
    hand_fini(&hand);
    pthread_mutex_lock(&team->lock);
    --team->running;
    pthread_cond_signal(&team->wake);
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* Syncs the blocks that are done to the disk, then writes them to the journal. Blocks that become
 * done meanwhile wait for the next call. */
static Status flush(Team *team)
{
    bool any = false;
    for (int64_t b = 0; b < team->blocks; ++b) {
        Block *block = &team->block[b];
        block->ready = block->record && atomic_load(&block->left) == 0;
        any |= block->ready;
    }
    if (!any) return OK;
    if (fdatasync(team->work->part.fd) != 0) return part_failed(&team->work->part, strerror(errno));
    for (int64_t b = 0; b < team->blocks; ++b) {
        Block *block = &team->block[b];
        if (!block->ready) continue;
        TRY(journal_write(team->work, block->number, block->record));
        mem_free(&block->record);
    }
    return OK;
}

/* Flushes, reports progress and watches for stop requests until all threads have ended. */
static void attend(Team *team)
{
    const ImportHost *host = team->work->host;
    double flushed_s = clock_s();
    pthread_mutex_lock(&team->lock);
    while (team->running > 0) {
        cond_wait_for(&team->wake, &team->lock, LOOK_S);
        pthread_mutex_unlock(&team->lock);
        if (stop_wanted()) atomic_store(&team->stop, true);
        if (clock_s() - flushed_s > FLUSH_S) {
            Status status = flush(team);
            if (status != OK) team_fail(team, status);
            flushed_s = clock_s();
        }
        host->progress(host->user, atomic_load(&team->done), team->total,
                       atomic_load(&team->broken));
        pthread_mutex_lock(&team->lock);
    }
    pthread_mutex_unlock(&team->lock);
}

/* Collects this rank's blocks that are not in the journal. */
static void team_init(Team *team, FolderWork *work)
{
    const ImportHost *host = work->host;
    FolderRecord *record = mem_new(sizeof *record);
    *team = (Team){.work = work, .stop = stop_wanted()};
    team->block = mem_new((size_t)(work->blocks / host->size + 1) * sizeof *team->block);
    for (int64_t b = host->rank; b < work->blocks; b += host->size) {
        int samples = (int)block_samples(work, b);
        team->total += samples;
        if (journal_read(work, b, record)) {
            for (int i = 0; i < samples; ++i)
                team->broken += record->sample[i].state != FOLDER_GOOD;
            team->done += samples;
            continue;
        }
        Block *block = &team->block[team->blocks++];
        block->number = b;
        block->record = mem_new(sizeof *block->record);
        atomic_init(&block->left, samples);
        pthread_mutex_init(&block->lock, NULL);
    }
    mem_free(&record);
    pthread_mutex_init(&team->lock, NULL);
    cond_init(&team->wake);
}

static void team_fini(Team *team)
{
    for (int64_t b = 0; b < team->blocks; ++b) {
        mem_free(&team->block[b].record);
        pthread_mutex_destroy(&team->block[b].lock);
    }
    mem_free(&team->block);
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->wake);
}

static Status team_status(Team *team)
{
    if (team->status != OK) return fail(team->status, "%s", team->why);
    if (atomic_load(&team->done) == team->total) return OK;
    return fail(
        ERR_STOPPED,
        "stopped after %lld of %lld pictures: the same command goes on from those in %s, where "
        "they are kept by blocks of %d",
        (long long)atomic_load(&team->done), (long long)team->total, team->work->part.part,
        FOLDER_BLOCK);
}

Status folder_decode_blocks(FolderWork *work)
{
    Team team;
    int threads = work->import->threads < 1 ? 1 : work->import->threads;
    pthread_t *thread = mem_new((size_t)threads * sizeof *thread);
    int begun = 0;
    team_init(&team, work);
    if (team.done)
        log_info("going on with %s: %lld of %lld pictures are there", work->part.part,
                 (long long)team.done, (long long)team.total);
    for (; begun < threads && team.blocks; ++begun) {
        pthread_mutex_lock(&team.lock);
        ++team.running;
        pthread_mutex_unlock(&team.lock);
        int error = thread_begin(&thread[begun], run_thread, &team);
        if (error == 0) continue;
        pthread_mutex_lock(&team.lock);
        --team.running;
        pthread_mutex_unlock(&team.lock);
        if (begun == 0)
            team_fail(&team, fail(ERR_IO, "no thread can be made: %s", strerror(error)));
        break;
    }
    attend(&team);
    for (int i = 0; i < begun; ++i) pthread_join(thread[i], NULL);
    Status status = flush(&team);
    if (status != OK) team_fail(&team, status);
    status = team_status(&team);
    work->host->progress(work->host->user, atomic_load(&team.done), team.total,
                         atomic_load(&team.broken));
    team_fini(&team);
    mem_free(&thread);
    return status;
}

Status folder_try(const FolderWork *work, int64_t i)
{
    Hand hand;
    FolderSample sample;
    hand_init(&hand, work);
    Status status = take_picture(&hand, i, &sample);
    hand_fini(&hand);
    return status;
}
