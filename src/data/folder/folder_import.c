/* Imports folders of pictures, decoded or as the bytes of their files. Rank 0 lists the files; all
 * ranks decode; then rank 0 reads the results of all samples from the journal, closes the gaps of
 * pictures that are left out, and writes HDF5's metadata and the smaller arrays around the samples:
 *
 *   OUT.part:  | HDF5's metadata | samples, each at its offset | metadata, sizes, labels |
 *
 * The array of samples is the first, so that its offset does not depend on the number of samples
 * that remain. */
#include "folder.h"

#include <string.h>
#include <unistd.h>

/* largest number of pictures left out that are logged one by one, each with its reason */
enum { LISTED_MAX = 10 };
/* reasons to leave a file out */
enum {
    /* The file is not a usable picture. */
    LEFT_OUT_BROKEN = 1,
    /* FolderLabels.check has refused the picture. */
    LEFT_OUT_UNFIT
};

/* everything that put_contents writes to the data set */
typedef struct Contents {
    const FolderWork *work;
    /* true: this is the first layout, which open_part makes before the pictures are decoded, to
     * learn the offset of the samples. All arrays below are then NULL */
    bool first_layout;
    /* number of samples that are not left out */
    int64_t samples;
    /* sums of the pixels and of their squares, for each channel, over all good samples */
    uint64_t sum[3], squares[3];
    /* number of pixels of all good samples */
    uint64_t pixels;
    /* for each file 0, LEFT_OUT_BROKEN or LEFT_OUT_UNFIT; owned */
    uint8_t *left_out;
    /* number of pictures left out, for either reason */
    int64_t left_out_count;
    /* number of samples with an EXIF orientation other than 1 */
    int64_t with_orientation;
    /* class of each sample, [samples], owned */
    int32_t *label;
    /* height and width of each picture in its file, [samples][2], owned */
    int32_t *size;
    /* EXIF orientation of each picture, [samples], owned */
    uint8_t *orientation;
    /* encoded samples: beginning of each in the array of samples, and the end of the last one, in
     * bytes, [samples + 1], owned */
    uint64_t *offset;
    /* offset of the array of samples in the file; put_contents sets it */
    int64_t data_offset;
} Contents;

static void contents_fini(Contents *c)
{
    mem_free(&c->left_out);
    mem_free(&c->label);
    mem_free(&c->size);
    mem_free(&c->orientation);
    mem_free(&c->offset);
}

/* ---- layout through HDF5 ---- */

static bool put_int(hid_t file, const char *name, int value)
{
    return h5_put_numbers(file, name, H5T_STD_I32LE, H5T_NATIVE_INT, &value, 0) >= 0;
}

static bool put_settings(hid_t file, const FolderImport *import)
{
    char versions[256];
    const DataKindInfo *kind = data_kind_info(import->labels ? import->labels->kind : DATA_IMAGE);
    image_versions(versions, sizeof versions);
    bool good = h5_put_text(file, "format", "weft-data") >= 0 &&
                h5_put_text(file, "kind", kind->name) >= 0 && put_int(file, "version", 1) &&
                h5_put_text(file, "store", import->encoded ? "encoded" : "decoded") >= 0 &&
                h5_put_text(file, "decoder", versions) >= 0 &&
                put_int(file, "orient", import->orient);
    if (!good || import->encoded) return good;
    return h5_put_text(file, "filter", import->filter == IMAGE_BICUBIC ? "bicubic" : "bilinear") >=
           0;
}

/* Writes the mean and the deviation of each channel over the pixels of all samples. */
static bool put_stats(hid_t file, const Contents *c)
{
    float mean[3], std[3];
    for (int i = 0; i < 3; ++i)
        pixel_stats(c->sum[i], c->squares[i], (int64_t)c->pixels, &mean[i], &std[i]);
    return h5_put_numbers(file, "mean", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, mean, 3) >= 0 &&
           h5_put_numbers(file, "std", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, std, 3) >= 0;
}

/* Creates an array and, unless `values` is NULL, fills it. stored: the elements' type in the file;
 * memory: their type in `values`. */
static bool put_values(hid_t file, const char *name, hid_t stored, hid_t memory, int ndim,
                       const hsize_t *dim, const void *values)
{
    int64_t offset;
    return h5_put_array(file, name, stored, ndim, dim, &offset) >= 0 &&
           (!values || h5_fill_array(file, name, memory, values) >= 0);
}

/* Creates the array of encoded samples, then the smaller arrays about them. */
static bool put_encoded(hid_t file, Contents *c)
{
    hsize_t n = (hsize_t)c->samples, size[2] = {n, 2}, offsets = n + 1;
    hsize_t bytes = (hsize_t)(c->first_layout ? c->work->data_bytes : (int64_t)c->offset[n]);
    return h5_put_array(file, "/x_bytes", H5T_STD_U8LE, 1, &bytes, &c->data_offset) >= 0 &&
           put_values(file, "/x_offset", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &offsets,
                      c->offset) &&
           put_values(file, "/x_size", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, size, c->size) &&
           put_values(file, "/x_orient", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n, c->orientation);
}

/* Writes the class of each picture or, if there is a FolderLabels, the arrays of its labels; the
 * first layout has none of the latter. */
static bool put_labels(hid_t file, const Contents *c)
{
    const FolderLabels *labels = c->work->import->labels;
    hsize_t n = (hsize_t)c->samples;
    if (labels) return c->first_layout || labels->put(labels->user, file, c->left_out);
    return put_values(file, "/y", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, &n, c->label);
}

/* Writes the attributes and all arrays; of the array of samples it only reserves the space. */
static herr_t put_contents(void *user, hid_t file)
{
    Contents *c = user;
    const FolderWork *work = c->work;
    const FolderImport *import = work->import;
    hsize_t n = (hsize_t)c->samples, side = (hsize_t)import->side, dim[4] = {n, 3, side, side};
    /* Detectors read values that are not normalised, so a set of boxes has no mean and
     * deviation. */
    if (!put_settings(file, import) || (!import->labels && !put_stats(file, c)) ||
        h5_put_classes(file, (const char *const *)work->files.class_name, work->files.classes) < 0)
        return -1;
    bool good = import->encoded
                    ? put_encoded(file, c)
                    : h5_put_array(file, "/x", H5T_STD_U8LE, 4, dim, &c->data_offset) >= 0;
    return good && put_labels(file, c) ? 0 : -1;
}

/* ---- the beginning ---- */

/* Computes the number of blocks, and the offsets of all samples. Each rank gets the same
 * results. */
static void place_samples(FolderWork *work)
{
    const FolderFiles *files = &work->files;
    work->blocks = (files->count + FOLDER_BLOCK - 1) / FOLDER_BLOCK;
    if (work->import->encoded) {
        work->offset = mem_new((size_t)(files->count + 1) * sizeof *work->offset);
        for (int64_t i = 0; i < files->count; ++i)
            work->offset[i + 1] =
                work->offset[i] + (files->file[i].bytes > 0 ? files->file[i].bytes : 0);
    }
    work->data_bytes = sample_offset(work, files->count);
}

static Status find_files(FolderWork *work)
{
    const FolderImport *import = work->import;
    FolderFiles *files = &work->files;
    TRY(file_check_writable(import->out, import->force));
    TRY(import->labels ? import->labels->find(import->labels->user, files)
        : import->list ? folder_list(files, import->dir, import->list)
                       : folder_scan(files, import->dir));
    if (files->count == 0) return fail(ERR_DATA, "%s: holds no pictures", import->dir);
    for (int64_t i = 0; access(import->out, F_OK) == 0 && i < files->count; ++i) {
        const char *path = files_path(files, i);
        TRY(file_check_not_input(import->out, &path, 1));
    }
    if (import->classes) return folder_set_classes(files, import->classes);
    return import->allow_empty ? OK : files_check_classes(files, NULL);
}

/* Opens OUT.part and the journal on rank 0, and finds the offset of the samples. If OUT.part is
 * missing or the journal has no record, both begin empty. */
static Status open_part(FolderWork *work)
{
    Contents contents = {.work = work, .first_layout = true, .samples = work->files.count};
    const char *out = work->import->out;
    TRY(journal_open(work, true));
    char *part = mem_format("%s.part", out);
    bool keep = lseek(work->journal_fd, 0, SEEK_END) > 0 && access(part, F_OK) == 0;
    mem_free(&part);
    /* space for HDF5's metadata and all arrays except the samples */
    const FolderLabels *labels = work->import->labels;
    int64_t rest_bytes =
        work->files.count * 32 + (1 << 20) + (labels ? labels->bytes(labels->user) : 0);
    if (!keep) TRY(journal_clear(work));
    Status status = part_open(&work->part, out, keep, work->data_bytes + rest_bytes);
    if (status != OK && !keep) unlink(work->journal);
    TRY(status);
    TRY(part_lay_out(&work->part, put_contents, &contents, &contents.data_offset, work->data_bytes,
                     false));
    work->data_offset = contents.data_offset;
    return OK;
}

/* Broadcasts rank 0's list of files and the offset of the samples. ERR_CONFIG: this rank has other
 * versions of the decoders than rank 0, so its pixels could differ. Collective. */
static Status broadcast_files(FolderWork *work)
{
    FolderFiles *files = &work->files;
    const ImportRanks *ranks = work->ranks;
    char mine[256] = "", rank0[256] = "";
    image_versions(mine, sizeof mine);
    memcpy(rank0, mine, sizeof rank0);
    ranks->broadcast(ranks->user, rank0, sizeof rank0);
    int64_t head[4] = {files->count, (int64_t)files->text_bytes, files->classes, work->data_offset};
    ranks->broadcast(ranks->user, head, sizeof head);
    if (ranks->rank > 0) {
        files->count = head[0], files->text_bytes = (size_t)head[1], files->classes = head[2];
        work->data_offset = head[3];
        files->file = mem_new((size_t)files->count * sizeof *files->file);
        files->text = mem_new(files->text_bytes);
    }
    ranks->broadcast(ranks->user, files->file, (size_t)files->count * sizeof *files->file);
    ranks->broadcast(ranks->user, files->text, files->text_bytes);
    if (strcmp(mine, rank0) == 0) return OK;
    return fail(ERR_CONFIG, "this rank decodes with %s, rank 0 with %s: use one build on all hosts",
                mine, rank0);
}

/* Lists the files, and opens OUT.part and the journal. Collective. */
static Status begin(FolderWork *work)
{
    const ImportRanks *ranks = work->ranks;
    Status status = OK;
    if (ranks->rank == 0) {
        status = find_files(work);
        if (status == OK) place_samples(work);
        if (status == OK && work->data_bytes == 0)
            status =
                fail(ERR_DATA, "%s: all files are empty, or cannot be read", work->import->dir);
        if (status == OK) status = open_part(work);
    }
    TRY(ranks->agree(ranks->user, status));
    status = broadcast_files(work);
    if (ranks->rank > 0) place_samples(work);
    if (ranks->rank > 0 && status == OK) {
        status = part_open_existing(&work->part, work->import->out);
        if (status == OK) status = journal_open(work, false);
    }
    return ranks->agree(ranks->user, status);
}

/* ---- the end, on rank 0 ---- */

/* Returns the reason to leave out file i, whose result is *sample; 0: it is not left out. */
static uint8_t reason_to_leave_out(const FolderWork *work, int64_t i, const FolderSample *sample)
{
    const FolderLabels *labels = work->import->labels;
    if (sample->state != FOLDER_GOOD) return LEFT_OUT_BROKEN;
    return labels && labels->check(labels->user, i, sample) != OK ? LEFT_OUT_UNFIT : 0;
}

/* Collects the results of all samples from the journal in *c, which contents_init has filled. */
static Status read_records(FolderWork *work, Contents *c)
{
    FolderRecord *record = mem_new(sizeof *record);
    Status status = journal_reopen(work);
    for (int64_t b = 0; status == OK && b < work->blocks; ++b) {
        if (!journal_read(work, b, record)) {
            status = fail(ERR_IO,
                          "%s: the record of block %lld (of %lld) was written but cannot be read",
                          work->journal, (long long)b, (long long)work->blocks);
            break;
        }
        for (int64_t i = 0; i < block_samples(work, b); ++i) {
            const FolderSample *sample = &record->sample[i];
            int64_t file = b * FOLDER_BLOCK + i;
            c->left_out[file] = reason_to_leave_out(work, file, sample);
            if (c->left_out[file]) continue;
            c->size[2 * c->samples] = sample->height;
            c->size[2 * c->samples + 1] = sample->width;
            c->orientation[c->samples] = sample->orientation;
            c->label[c->samples] = work->files.file[file].label;
            c->with_orientation += sample->orientation != 1;
            ++c->samples;
            c->offset[c->samples] =
                c->offset[c->samples - 1] +
                (uint64_t)(sample_offset(work, file + 1) - sample_offset(work, file));
        }
        for (int i = 0; i < 3; ++i) {
            c->sum[i] += record->sum[i];
            c->squares[i] += record->squares[i];
        }
        c->pixels += record->pixels;
    }
    mem_free(&record);
    return status;
}

static void contents_init(Contents *c, const FolderWork *work)
{
    size_t n = (size_t)work->files.count;
    *c = (Contents){.work = work};
    c->left_out = mem_new(n);
    c->label = mem_new(n * sizeof *c->label);
    c->size = mem_new(2 * n * sizeof *c->size);
    c->orientation = mem_new(n);
    c->offset = mem_new((n + 1) * sizeof *c->offset);
}

/* Warns of picture i, which is left out. Decodes the picture again to find the reason for the
 * message. ERR_IO: the picture has changed since it was listed, or it can be used now. In the
 * latter case the journal is removed, so that the next import decodes everything again. */
static Status warn_of_left_out(const FolderWork *work, const Contents *c, int64_t i)
{
    const FolderLabels *labels = work->import->labels;
    char name[32] = "";
    FolderSample sample;
    Status status = folder_check_picture(work, i, &sample);
    if (status == OK && c->left_out[i] == LEFT_OUT_UNFIT)
        status = labels->check(labels->user, i, &sample);
    if (status == OK) {
        unlink(work->journal);
        return fail(ERR_IO, "%s: %s: import again", files_path(&work->files, i),
                    c->left_out[i] == LEFT_OUT_BROKEN
                        ? "could not be decoded before, but can be now"
                        : "did not fit its labels before, but does now");
    }
    if (status != ERR_DATA) return status;
    if (labels) labels->name(labels->user, i, name, sizeof name);
    log_warn("%s%s", name, fail_message());
    return OK;
}

/* Warns of the pictures that are left out; for the first LISTED_MAX of them with the reason.
 * ERR_DATA: the import may not leave pictures out, or no picture would remain, or a class would
 * have none. ERR_IO: a file that is left out has changed since it was listed, or can be used
 * now. */
static Status check_left_out(const FolderWork *work, Contents *c)
{
    int listed = 0;
    c->left_out_count = work->files.count - c->samples;
    for (int64_t i = 0; i < work->files.count; ++i) {
        if (!c->left_out[i]) continue;
        if (files_changed(&work->files, i)) return fail_file_changed(files_path(&work->files, i));
        if (++listed <= LISTED_MAX) TRY(warn_of_left_out(work, c, i));
    }
    if (c->left_out_count > LISTED_MAX)
        log_warn("and %lld more pictures cannot be used",
                 (long long)c->left_out_count - LISTED_MAX);
    if (c->left_out_count == 0) return OK;
    if (!work->import->skip_broken)
        return fail(ERR_DATA,
                    "%s: %lld of %lld files cannot be used: repair them, or leave them out with "
                    "--broken skip; finished work stays in %s",
                    work->import->dir, (long long)c->left_out_count, (long long)work->files.count,
                    work->part.part);
    if (c->samples == 0)
        return fail(ERR_DATA, "%s: none of %lld files can be used", work->import->dir,
                    (long long)work->files.count);
    bool may_be_empty = work->import->allow_empty || work->import->classes;
    return may_be_empty ? OK : files_check_classes(&work->files, c->left_out);
}

/* Moves the samples that remain towards the beginning of the file, so that there are no gaps
 * between them. The journal is cleared first, since its offsets become wrong. The journal's file
 * stays, because its lock keeps other imports away. */
static Status close_gaps(FolderWork *work, const Contents *c)
{
    if (c->left_out_count == 0) return OK;
    int64_t to = work->data_offset, count = work->files.count;
    Status status = journal_clear(work);
    for (int64_t i = 0; status == OK && i < count;) {
        int64_t end = i;
        while (end < count && c->left_out[end] == c->left_out[i]) ++end;
        int64_t from = work->data_offset + sample_offset(work, i);
        int64_t until = work->data_offset + sample_offset(work, end);
        if (!c->left_out[i]) {
            if (from != to) status = part_copy(&work->part, work->part.fd, from, until, to);
            to += until - from;
        }
        i = end;
    }
    return status;
}

/* Logs how many pictures the smallest and the largest class have: users see here if a data set is
 * uneven or a folder is misplaced. */
static void report_classes(const FolderFiles *files, const Contents *c)
{
    int64_t *count = mem_new((size_t)files->classes * sizeof *count), min = c->samples, max = 0;
    for (int64_t i = 0; i < c->samples; ++i) ++count[c->label[i]];
    for (int64_t k = 0; k < files->classes; ++k) {
        min = count[k] < min ? count[k] : min;
        max = count[k] > max ? count[k] : max;
    }
    mem_free(&count);
    log_info("a class has %lld to %lld pictures; `weft data info` counts them", (long long)min,
             (long long)max);
}

static void report(const FolderWork *work, const Contents *c)
{
    const FolderImport *import = work->import;
    char left_out[64] = "", orientations[120] = "";
    if (c->left_out_count)
        snprintf(left_out, sizeof left_out, "; %lld left out", (long long)c->left_out_count);
    if (c->with_orientation)
        snprintf(orientations, sizeof orientations, "; %lld with an EXIF orientation, %s",
                 (long long)c->with_orientation,
                 import->orient ? "applied" : "not applied (--orient does)");
    if (import->labels) {
        import->labels->report(import->labels->user, c->samples, c->left_out_count, orientations);
        return;
    }
    log_info("wrote %s: %lld pictures of %lld classes%s%s", import->out, (long long)c->samples,
             (long long)work->files.classes, left_out, orientations);
    report_classes(&work->files, c);
}

static Status finish(FolderWork *work)
{
    Contents contents, *c = &contents;
    const FolderLabels *labels = work->import->labels;
    contents_init(c, work);
    Status status = read_records(work, c);
    if (status == OK) status = check_left_out(work, c);
    if (status == OK && labels) status = labels->complete(labels->user, c->left_out);
    if (status == OK) status = close_gaps(work, c);
    int64_t bytes =
        work->import->encoded ? (int64_t)c->offset[c->samples] : sample_offset(work, c->samples);
    if (status == OK)
        status = part_lay_out(&work->part, put_contents, c, &c->data_offset, bytes, true);
    if (status == OK && c->data_offset != work->data_offset)
        status = fail(ERR_BUG, "%s: HDF5 has changed the offset of the samples", work->part.part);
    if (status == OK) {
        status = part_finish(&work->part);
        if (status == OK) unlink(work->journal);
        if (status == OK) report(work, c);
    }
    contents_fini(c);
    return status;
}

/* ---- the import ---- */

Status data_import_folder(const FolderImport *import, const ImportRanks *ranks)
{
    if (!ranks) ranks = &import_alone;
    FolderWork work = {.import = import, .ranks = ranks};
    work.journal_fd = work.journal_lock = -1;
    work.part.fd = -1;
    work.journal = mem_format("%s.part.journal", import->out);
    Status status = begin(&work);
    if (status == OK) {
        status = folder_decode_blocks(&work);
        if (ranks->rank > 0) journal_close(&work);
        status = ranks->agree(ranks->user, status);
    }
    if (status == OK) {
        if (ranks->rank == 0) status = finish(&work);
        status = ranks->agree(ranks->user, status);
    }
    journal_close(&work);
    part_close(&work.part);
    files_fini(&work.files);
    mem_free(&work.offset);
    mem_free(&work.journal);
    return status;
}
