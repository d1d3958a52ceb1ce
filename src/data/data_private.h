/* Shared inside the data module: element types, HDF5 helpers (call them under hdf5_lock), runs of
 * samples, the writer that imports use. */
#ifndef WEFT_DATA_PRIVATE_H
#define WEFT_DATA_PRIVATE_H

#include "data.h"

#define H5_USE_110_API /* the calls keep their 1.10 form under newer libraries */
#include <hdf5.h>
#include <zlib.h>

/* ---- element types ---- */
size_t element_bytes(ElementType type);
/* HDF5's type in memory; borrowed */
hid_t element_native(ElementType type);
bool element_is_float(ElementType type);
/* One value at p, in this machine's byte order. Unsigned values above INT64_MAX become
 * INT64_MAX. */
int64_t element_integer(ElementType type, const void *p);
/* The value in decimal digits, whatever its size; returns text. */
char *element_integer_text(ElementType type, const void *p, char text[24]);
/* to[i * to_step] = from[i * from_step] * a + b for i < n; to_step is 1 or -1. */
void element_row(ElementType type, float *to, int to_step, const void *from, int64_t from_step,
                 int64_t n, float a, float b);
/* Index of the first of n whole numbers that is not in 0..below-1, or -1; and their copy as int32,
 * once they are. */
int64_t element_outside(ElementType type, const void *from, int64_t n, int64_t below);
void element_int32(ElementType type, int32_t *to, const void *from, int64_t n);
/* The same as ids: all 64 bits, negative ones as their two's complement. to may be where from
 * is. */
void element_ids(ElementType type, uint64_t *to, const void *from, int64_t n);
/* Index of the first NaN or infinity among n values, or double beyond float32, as which it would be
 * one; or -1. */
int64_t element_not_finite(ElementType type, const void *from, int64_t n);
/* What such a value is not, in words. */
const char *element_finite(ElementType type);

/* ---- HDF5 ---- */
/* Opens path to read. ERR_NOINPUT: missing, a folder, no permission. ERR_DATA: empty, not HDF5,
 * truncated. */
Status h5_open(hid_t *file, const char *path);
/* Opens data set `name`; where it is missing the message lists what is there and which key names
 * it. key NULL: none does, for weft's own sets have it by this name. */
Status h5_dataset(hid_t *dataset, hid_t file, const char *path, const char *name, const char *key);
bool h5_has(hid_t file, const char *name);
/* Root attributes. Of a text, of `room` bytes with its zero: the first, where there are several;
 * empty where it is absent or of another type. Numbers absent: *count is 0. ERR_DATA where it
 * cannot be read, or numbers' type or size cannot be used. */
Status h5_attr_text(hid_t file, const char *path, const char *name, char *out, size_t room);
Status h5_attr_floats(hid_t file, const char *path, const char *name, float *out, int max,
                      int *count);
bool h5_attr_integer(hid_t file, const char *name, int64_t *value);
/* HDF5's own innermost words about what just failed; borrowed until the next call. */
const char *h5_words(void);
/* "contiguous", "chunked 64x1x28x28, deflate", ... into out. */
void h5_storage_text(hid_t dataset, char *out, size_t out_bytes);

/* ---- sets ---- */
Status data_set_open_file(DataSet *set, const Config *config, const char *path);
/* files.c: paths with line breaks between them -> one set. ERR_DATA names the file that differs. */
Status files_open(DataSet *set, const Config *config, const char *paths);
/* Which file of a set of several holds a sample. */
int files_find(const DataSet *set, int64_t sample);
/* The index of an encoded set rises, and stays inside the bytes. */
Status index_check(const DataSet *set);
/* ERR_DATA: this entry does not. */
Status index_fail(const DataSet *set, int64_t sample);
/* ERR_DATA: the index of this sample's ids is broken. */
Status ids_fail(const DataSet *set, int64_t sample, int64_t field);
/* ERR_DATA: one of this sample's is not below id_rows. */
Status ids_range_check(const DataSet *set, int64_t sample, const uint64_t *ids,
                       const int32_t *first);
/* Reads all ids. */
Status ids_check(const DataSet *set, Reader *reader);
/* "FILE: sample N", the file and the number in it; returns out. */
char *sample_name(const DataSet *set, int64_t sample, char *out, size_t room);
/* check_encoded.c: decodes every picture, on several threads. ERR_DATA names the first that is
 * broken. */
Status encoded_check(const DataSet *set, Reader *reader);

/* ---- several threads ---- */
/* Calls run(user, worker, i) for each i below count, on several threads; worker: 0 .. threads - 1.
 * The failure of the smallest i comes out, whatever thread met one first. */
typedef Status CrewWork(void *user, int worker, int64_t i);
Status crew_work(int threads, int64_t count, CrewWork *run, void *user);
/* The failure of the smallest number; all zero: none. Under the caller's lock. */
typedef struct FirstFailure {
    int64_t i;
    Status status;
    /* owned */
    char *why;
} FirstFailure;
/* On the thread that has just failed. */
void failure_note(FirstFailure *first, int64_t i, Status status);
/* Returns it once more, or OK, and releases it. */
Status failure_end(FirstFailure *first);

/* ---- what is done to pictures ---- */
/* view.c: height and width of an image set as the model takes it, by the keys of `data`. config may
 * be NULL: an encoded set has 0 then. ERR_CONFIG where keys do not fit each other or the set. */
Status view_shape(DataSet *set, const Config *config);
/* `box` of a picture is resampled to width x height, of which `part` is kept; where it reaches over
 * the border there are zeros. */
typedef struct PictureView {
    ImageBox box, part;
    int width, height;
} PictureView;
/* Where a part lies that is in the middle, halves rounded to even as torchvision's CenterCrop does;
 * what is too small has a border on both sides. */
int view_middle(int of, int part);
/* A size in proportion that covers to_width x to_height: one side is that, the other cut to whole
 * pixels. */
void view_cover(int64_t to_width, int64_t to_height, int64_t *width, int64_t *height);
/* view's width and height become what its box is brought to by view_cover. ERR_DATA, with name: one
 * of them cannot be counted. */
Status view_resize(PictureView *view, int64_t to_width, int64_t to_height, const char *name);
/* Of a picture of this size, called name in messages. ERR_DATA: too narrow for its short side to be
 * brought to data.resize, or too small for data.random_crop. */
Status view_evaluation(PictureView *view, const DataSet *set, const Config *config, int width,
                       int height, const char *name);
Status view_training(PictureView *view, const DataSet *set, const Config *config, RngKey key,
                     int width, int height, const char *name);
/* A rectangle to blank, by data.erasing; height 0: none. */
ImageBox view_erasing(const DataSet *set, const Config *config, RngKey key);
/* data.color_jitter */
void picture_jitter(Image *image, const Config *config, RngKey key);
/* All random choices of a sample: a key, and which of its blocks are for what. */
RngKey augment_key(const Config *config, int64_t epoch, int64_t sample);
enum {
    DRAW_PLAIN,
    DRAW_CUTOUT,
    DRAW_RESIZED_CROP,
    DRAW_TRIES = 10,
    DRAW_CROP = DRAW_RESIZED_CROP + DRAW_TRIES,
    DRAW_JITTER,
    DRAW_ORDER,
    DRAW_ERASE,
    DRAW_ERASE_BOX
};
/* below `below`, each alike; and in [lo, hi) */
int64_t draw_below(uint32_t word, int64_t below);
double draw_between(uint32_t word, double lo, double hi);
/* A picture of the set's height and width -> float NCHW: flip, crop, normalise, cutout, erasing. */
void augment_picture(const DataSet *set, const Config *config, bool training, int64_t epoch,
                     int64_t sample, const Image *picture, float *out);
/* Rows of RGB bytes -> planes: to[c][i] = from[3 * i + c] * a[c] + b[c]; mirrored: to[c][-i]. */
void rgb_row(float *const to[3], const uint8_t *from, int n, const float a[3], const float b[3],
             bool mirrored);

/* mix.c: images of a micro-batch mixed in pairs, by data.mixup and data.cutmix. */
typedef struct Mix {
    /* of its own image; 1: nothing is mixed */
    float share;
    /* cut out of the other; else all is blended */
    bool cut;
    ImageBox box;
} Mix;
Mix mix_choose(const DataSet *set, const Config *config, const Batch *batch);
/* Row r with the row before it, row 0 with the last. spare: one sample. */
void mix_images(const Mix *mix, const DataSet *set, const Batch *batch, float *spare);
void mix_labels(const Batch *batch);

/* ---- reading ---- */
/* One array of a single file, as if it were its x: for runs of whole rows. */
Status reader_new_array(Reader **reader, const DataSet *set, const DataArray *array);
/* A reader of x (and ids) or y alone, where the other is not wanted. */
Status reader_new_part(Reader **reader, const DataSet *set, bool x, bool y);
/* ERR_DATA: the token at this position of x, stored at raw, is not in the set's vocabulary. */
Status token_fail(const DataSet *set, int64_t position, const void *raw);
/* Reads all tokens: each must be in the vocabulary. */
Status tokens_check(const DataSet *set);
/* Reads all labels, or tokens: each must be of a class, or in the vocabulary. *use: those that
 * occur. */
Status integers_scan(const DataSet *set, LabelUse *use);
/* ERR_DATA: this sample's label, stored at raw, is not among the set's classes. */
Status label_fail(const DataSet *set, int64_t sample, const void *raw);
/* Warns of odd labels in a data set that an import has written. */
void data_import_warn_of_labels(const char *out);
/* The class that a label in the file stands for; outside 0..classes-1 where it stands for none, as
 * one beyond the classes that the file itself has. */
static inline int64_t label_class(const DataSet *set, int64_t label)
{
    int64_t i;
    if (__builtin_sub_overflow(label, set->label_base, &i) || i < 0) return -1;
    if (set->named > 0 && i >= set->named) return -1;
    if (set->map.count == 0) return i;
    if (i >= set->map.count) return -1;
    uint16_t class = set->class_of[set->map.first + i];
    return class == DATA_NO_CLASS ? -1 : class;
}
/* "60000x1x28x28" into out, of DIMS_TEXT bytes; returns out. */
enum { DIMS_TEXT = 120 };
const char *dims_text(const DataArray *array, char *out);
/* `count` samples (of token sets: tokens) from `first` on, raw, in one read where the storage
 * allows. */
Status reader_get_run(Reader *reader, int64_t first, int64_t count, void *x);
/* The first `bytes` of one sample's x. x is large enough for all of it: where HDF5 reads, it reads
 * the whole sample. */
Status reader_get_head(Reader *reader, int64_t sample, int64_t bytes, void *x);
/* to[0..n) = from[0..n) out of a mapped file; false where the file has become shorter or its file
 * system failed. */
bool map_copy(void *to, const void *from, size_t n);
void map_guard_install(void);

/* ---- importing: a file as it is, or .gz ---- */
/* A plain file, or the members of a gzip file one behind the other (RFC 1952). */
typedef struct PackedFile {
    /* borrowed */
    const char *path;
    /* size of the file itself */
    int64_t bytes;
    /* open: packed_close has something to release. packed: the file is gzip. ended: all was read */
    bool open, packed, ended;
    int fd;
    /* owned: bytes read from the file; stream.avail_in of them, from stream.next_in on, are still
     * to be unpacked */
    uint8_t *in;
    z_stream stream;
    /* offset in the file behind what is in `in`; where the present member begins */
    int64_t read_to, member;
    bool in_member;
} PackedFile;
/* ERR_NOINPUT: not there, or no regular file; ERR_DATA: packed by another program than gzip.
 * Release with packed_close. */
Status packed_open(PackedFile *file, const char *path);
/* packed_open for a file of weft's own, which is plain whatever its first bytes are. */
Status packed_open_plain(PackedFile *file, const char *path);
void packed_close(PackedFile *file);
/* The next bytes; fewer than `most` only at the end. ERR_IO; ERR_DATA, with the byte of the file:
 * damaged, truncated, or something other than zeros behind the last member. */
Status packed_read(PackedFile *file, void *to, size_t most, size_t *got);
/* The next packed_read begins at the beginning again. */
Status packed_rewind(PackedFile *file);
/* Reads a whole file into *text, with a zero byte behind it; owned by the caller. ERR_DATA also
 * where it has more than `most` bytes. */
Status packed_text(const char *path, size_t most, char **text, size_t *bytes);
/* ERR_DATA where so many bytes are out of proportion to a .gz of this size. */
Status packed_bound(const PackedFile *file, int64_t unpacked);

/* ---- writing ---- */
herr_t h5_put_text(hid_t file, const char *name, const char *value);
/* n values of `type` as an attribute; n 0: a single one. */
herr_t h5_put_numbers(hid_t file, const char *name, hid_t stored, hid_t type, const void *value,
                      hsize_t n);
/* Makes one contiguous data set with its space reserved; *offset: where its bytes lie. */
herr_t h5_put_array(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dim,
                    int64_t *offset);

/* Writes all of it. */
herr_t h5_fill_array(hid_t file, const char *name, hid_t type, const void *from);
/* Names of classes (class_names.c says where); name NULL: "0", "1", ... */
herr_t h5_put_classes(hid_t file, const char *const *name, int64_t count);
/* The same under another name than `classes`. */
herr_t h5_put_names(hid_t file, const char *list, const char *const *name, int64_t count);
/* How many there are; 0: none that can be read. */
int64_t h5_class_count(hid_t file);
/* class_map.c: ERR_DATA: a name is there twice in the list of the file `path`. */
Status class_names_check(const ClassNames *names, const char *path);
/* While a list of files is opened: other->map becomes that of its labels into the classes `all` of
 * set, which grow by those that only other names; *joined: names have decided. ERR_DATA as
 * data_set_use_classes. */
Status files_join_classes(DataSet *set, ClassNames *all, DataSet *other, bool *joined);

/* OUT.part, on its way to become OUT */
typedef struct PartFile {
    /* owned */
    char *out, *part;
    int fd;
} PartFile;
/* called under hdf5_lock; negative: it failed */
typedef herr_t PartPut(void *user, hid_t file);
/* file_free_place of a training set and, unless test is NULL, a test set. ERR_USAGE, too: they are
 * one file. */
Status part_free_places(const char *out, const char *test, bool force);
/* ERR_USAGE: out, which may be NULL, is one of these files, by whatever name. */
Status part_no_input(const char *out, const char *const *in, int count);
/* Creates out.part, with `bytes` reserved for what put lays out in it. Nothing to release where it
 * failed. */
Status part_new(PartFile *part, const char *out, bool force, int64_t bytes, PartPut *put,
                void *user);
/* Signals that end the process remove this file from now on; no longer. Of part_new's files; not
 * for several threads. */
void part_stop_removes(const char *part);
void part_stop_keeps(const char *part);
Status part_write(const PartFile *part, const void *from, int64_t bytes, int64_t at);
/* These bytes may begin their way to the disk, which part_finish then waits less for. */
void part_begin_sync(const PartFile *part, int64_t bytes, int64_t at);
/* Bytes from .. end of another file, or of this one, where they only move down, to where `to`
 * is. */
Status part_take(const PartFile *part, int from_fd, int64_t from, int64_t end, int64_t to);
/* Opens the file through HDF5 once more for put. */
Status part_change(const PartFile *part, PartPut *put, void *user);
/* The other way round, for what is written over days, and by several processes. keep: out.part as
 * it is, ERR_IO where it cannot be opened; else a new one. `bytes` are reserved in it. */
Status part_open(PartFile *part, const char *out, bool keep, int64_t bytes);
/* On a rank that only writes samples: out.part as it is. */
Status part_join(PartFile *part, const char *out);
/* Lays out in a file beside it, whose data_bytes at *data_offset (put says where, its largest
 * array) stay a hole. fill: all around that hole then becomes out.part's. */
Status part_frame(const PartFile *part, PartPut *put, void *user, const int64_t *data_offset,
                  int64_t data_bytes, bool fill);
/* Closes it and leaves it as it is. */
void part_leave(PartFile *part);
/* Syncs and renames; on error, and in part_drop, out.part is removed and an earlier out stays as it
 * was. */
Status part_finish(PartFile *part);
void part_drop(PartFile *part);
/* ERR_IO */
Status part_failed(const PartFile *part, const char *why);

/* ---- writing a weft data set of uint8 images ---- */
/* Adds `pixels` values that lie `step` apart, and their squares: exact, for 2^48 pixels. */
void pixel_sums(const uint8_t *from, int64_t pixels, int step, uint64_t *sum, uint64_t *squares);
/* Mean and deviation in units of 0..1. A constant channel has no deviation: 1 leaves it as it is.
 * Both are 0 where there are no pixels. */
void pixel_stats(uint64_t sum, uint64_t squares, int64_t pixels, float *mean, float *std);
typedef struct ImageWriter ImageWriter;
typedef struct ImageLayout {
    int64_t samples, channels, height, width, classes;
    /* borrowed; `classes` of them, or NULL: numbers */
    const char *const *class_names;
} ImageLayout;
/* Lays out.part out and reserves its space, so that a full disk shows at once. ERR_USAGE: out
 * exists and not force. */
Status image_writer_new(ImageWriter **writer, const char *out, bool force, ImageLayout layout);
/* Adds images (N,C,H,W) with their labels, in order. */
Status image_writer_add(ImageWriter *writer, const uint8_t *images, const int32_t *labels,
                        int64_t count);
/* All samples are there: writes labels, mean and deviation, syncs, renames. Frees the writer. On
 * error, and in image_writer_drop, out.part is removed and an earlier out stays as it was. */
Status image_writer_finish(ImageWriter **writer);
void image_writer_drop(ImageWriter **writer);

#endif
