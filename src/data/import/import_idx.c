/* Imports IDX files, the format of MNIST and similar data sets (LeCun). A file has the bytes 0, 0,
 * element type and number of dimensions; each dimension as a big-endian 32-bit number; and the
 * elements. Reads images (N,H,W) and labels (N), both uint8, plain or .gz. Refuses other element
 * types and numbers of dimensions, files shorter or longer than their header says, and different
 * numbers of images and labels. */
#include "../data_private.h"

enum { IDX_UINT8 = 0x08, BLOCK_BYTES = 1 << 20 };

typedef struct IdxFile {
    PackedFile in;
    /* N, H and W of images; N of labels */
    int64_t dim[3];
} IdxFile;

static Status idx_fail(const IdxFile *f, const char *what)
{
    return fail(ERR_DATA, "%s: %s; fetch it again", f->in.path, what);
}

static Status idx_read(IdxFile *f, void *to, int64_t bytes)
{
    for (uint8_t *p = to; bytes > 0;) {
        size_t n;
        TRY(packed_read(&f->in, p, (size_t)(bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES), &n));
        if (n == 0) return idx_fail(f, "is truncated: it has less data than its header says");
        p += n, bytes -= (int64_t)n;
    }
    return OK;
}

/* Compares the size that the header gives with the file's size, before memory is allocated for it.
 * ndim: number of dimensions. */
static Status idx_check_size(const IdxFile *f, int ndim)
{
    int64_t bytes, sample_bytes = ndim == 3 ? f->dim[1] * f->dim[2] : 1;
    if (__builtin_mul_overflow(f->dim[0], sample_bytes, &bytes)) bytes = INT64_MAX;
    if (!f->in.packed && bytes > f->in.bytes)
        return idx_fail(f, "is truncated: it has less data than its header says");
    return packed_check_expansion(&f->in, bytes);
}

static Status idx_header(IdxFile *f, int ndim)
{
    uint8_t head[4], size[4];
    TRY(idx_read(f, head, 4));
    if (head[0] != 0 || head[1] != 0 || head[2] != IDX_UINT8 || head[3] != ndim)
        return fail(ERR_DATA,
                    "%s: begins with %02x%02x%02x%02x, but an IDX file of %s begins with "
                    "0000080%d; give the images first, then the labels",
                    f->in.path, head[0], head[1], head[2], head[3], ndim == 3 ? "images" : "labels",
                    ndim);
    for (int i = 0; i < ndim; ++i) {
        TRY(idx_read(f, size, 4));
        f->dim[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (f->dim[i] < 1 || (i > 0 && f->dim[i] > 65536))
            return fail(ERR_DATA, "%s: its header gives %lld for dimension %d; fetch it again",
                        f->in.path, (long long)f->dim[i], i);
    }
    return idx_check_size(f, ndim);
}

static Status idx_open(IdxFile *f, const char *path, int ndim)
{
    *f = (IdxFile){0};
    TRY(packed_open(&f->in, path));
    return idx_header(f, ndim);
}

/* Checks that no bytes follow. This read also makes zlib verify the checksum at the end of a .gz
 * file. */
static Status idx_check_end(IdxFile *f)
{
    uint8_t one;
    size_t n;
    TRY(packed_read(&f->in, &one, 1, &n));
    return n == 0 ? OK : idx_fail(f, "is longer than its header says");
}

/* Reads all labels, [N], which the caller owns. *label_end: 1 + the largest label. */
static Status read_labels(IdxFile *f, int32_t **labels, int64_t *label_end)
{
    int64_t n = f->dim[0];
    uint8_t *raw = mem_new((size_t)n);
    *labels = NULL;
    *label_end = 1;
    Status st = idx_read(f, raw, n);
    if (st == OK) st = idx_check_end(f);
    if (st == OK) {
        *labels = mem_new((size_t)n * sizeof **labels);
        for (int64_t i = 0; i < n; ++i) {
            (*labels)[i] = raw[i];
            if (raw[i] >= *label_end) *label_end = raw[i] + 1;
        }
    }
    mem_free(&raw);
    return st;
}

static Status copy_images(IdxFile *f, ImageWriter *writer, const int32_t *labels)
{
    int64_t image_bytes = f->dim[1] * f->dim[2];
    int64_t block = BLOCK_BYTES / image_bytes < 1 ? 1 : BLOCK_BYTES / image_bytes;
    uint8_t *raw = mem_new((size_t)(block * image_bytes));
    Status st = OK;
    for (int64_t at = 0; st == OK && at < f->dim[0]; at += block) {
        int64_t n = f->dim[0] - at < block ? f->dim[0] - at : block;
        st = idx_read(f, raw, n * image_bytes);
        if (st == OK) st = image_writer_add(writer, raw, labels + at, n);
    }
    mem_free(&raw);
    return st == OK ? idx_check_end(f) : st;
}

/* Writes the data set. labels: all are below label_end; classes: number of `names`; 0: no names are
 * given. */
static Status convert(IdxFile *x, const IdxFile *y, const int32_t *labels, int64_t label_end,
                      const char *const *names, int classes, const char *out, bool force)
{
    ImageWriter *writer;
    if (x->dim[0] != y->dim[0])
        return fail(ERR_DATA,
                    "%s has %lld images, but %s has %lld labels; give two files of one data set",
                    x->in.path, (long long)x->dim[0], y->in.path, (long long)y->dim[0]);
    if (classes > 0 && label_end > classes)
        return fail(ERR_DATA,
                    "%s: has label %lld, but %d class names are given; give at least %lld",
                    y->in.path, (long long)label_end - 1, classes, (long long)label_end);
    ImageLayout layout = {.samples = x->dim[0],
                          .channels = 1,
                          .height = x->dim[1],
                          .width = x->dim[2],
                          .classes = classes > 0 ? classes : label_end,
                          .class_names = classes > 0 ? names : NULL};
    TRY(image_writer_new(&writer, out, force, layout));
    Status st = copy_images(x, writer, labels);
    if (st == OK) return image_writer_finish(&writer);
    image_writer_drop(&writer);
    return st;
}

Status data_import_idx(const char *images, const char *labels, const char *const *class_names,
                       int classes, const char *out, bool force)
{
    IdxFile x = {0}, y = {0};
    int32_t *label = NULL;
    int64_t label_end;
    Status st = idx_open(&x, images, 3);
    if (st == OK) st = idx_open(&y, labels, 1);
    if (st == OK) st = read_labels(&y, &label, &label_end);
    if (st == OK) st = convert(&x, &y, label, label_end, class_names, classes, out, force);
    packed_close(&x.in);
    packed_close(&y.in);
    mem_free(&label);
    return st;
}

/* ---- the verb ---- */

typedef struct IdxOptions {
    const char *out;
    FlagList classes;
    bool force;
} IdxOptions;

static const Flag flags[] = {
    FLAG_OUT(IdxOptions, out, "the data set to write"),
    {"--classes", FLAG_FIELD(IdxOptions, classes), .value = "a,b,c",
     .help = "names of the classes"},
    FLAG_FORCE(IdxOptions, force),
};

static Status run(int argc, char **argv, const void *options)
{
    const IdxOptions *o = options;
    (void)argc;
    TRY(data_import_idx(argv[0], argv[1], (const char *const *)o->classes.word, o->classes.count,
                        o->out, o->force));
    log_info("wrote %s", o->out);
    data_import_warn_of_labels(o->out);
    return OK;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_idx = {
    .name = "data import idx",
    .words = "IMAGES LABELS",
    .words_min = 2,
    .words_max = 2,
    .expects = "an images file and a labels file",
    .help = "imports IDX files (MNIST's format, .gz too)",
    VERB_FLAGS(IdxOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
