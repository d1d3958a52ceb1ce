/* Declares the functions that files of the data module share: element types, HDF5 helpers (called
 * under hdf5_lock), checks of sets, work on pictures, readers, and the writers of imports. */
#ifndef WEFT_DATA_PRIVATE_H
#define WEFT_DATA_PRIVATE_H

#include "data/import.h"

#define H5_USE_110_API /* the calls keep their 1.10 form under newer libraries */
#include <hdf5.h>
#include <zlib.h>

/* ---- element types ---- */
size_t element_bytes(ElementType type);
/* Returns HDF5's type of an element in memory; borrowed. */
hid_t element_native(ElementType type);
bool element_is_float(ElementType type);
/* Returns the value at p, which is in this machine's byte order, as an integer. Unsigned values
 * above INT64_MAX become INT64_MAX. */
int64_t element_integer(ElementType type, const void *p);
/* Writes the integer at p in decimal digits, also above INT64_MAX; returns text. */
char *element_integer_text(ElementType type, const void *p, char text[24]);
/* Computes to[i * to_step] = from[i * from_step] * a + b for i < n; to_step is 1 or -1. */
void element_scale_row(ElementType type, float *to, int to_step, const void *from,
                       int64_t from_step, int64_t n, float a, float b);
/* Copies n values, from_step elements apart, as doubles. */
void element_doubles(ElementType type, double *to, const void *from, int64_t from_step, int64_t n);
/* Returns the index of the first of n integers that is outside 0..below-1; -1: none. */
int64_t element_find_outside(ElementType type, const void *from, int64_t n, int64_t below);
/* Copies n integers, which must fit int32. */
void element_int32(ElementType type, int32_t *to, const void *from, int64_t n);
/* Copies n integers as ids of 64 bits; negative integers become their two's complement. to may
 * equal from. */
void element_ids(ElementType type, uint64_t *to, const void *from, int64_t n);
/* Returns the index of the first of n values that is NaN or infinite, or a double beyond float32's
 * range; -1: none. */
int64_t element_find_not_finite(ElementType type, const void *from, int64_t n);
/* Returns what element_find_not_finite requires of values of this type, for messages ("value ... is
 * not ..."): "a finite number", ... */
const char *element_finite_text(ElementType type);

/* ---- HDF5 ---- */
/* Opens a file for reading. ERR_NOINPUT: missing, a folder, no permission. ERR_DATA: empty, not
 * HDF5, truncated or damaged. ERR_IO. The caller closes it. */
Status h5_open(hid_t *file, const char *path);
/* Opens data set `name`, which the caller closes. ERR_DATA: it is behind an external link, or
 * missing; then the message lists the data sets that exist, and `key`, the configuration key that
 * names it. key is NULL for names that weft fixes in its own sets. */
Status h5_dataset(hid_t *dataset, hid_t file, const char *path, const char *name, const char *key);
bool h5_has(hid_t file, const char *name);
/* Opens an attribute of a file's root or of a data set; *count: number of its elements. Returns a
 * negative number if there is none. The caller closes the attribute. */
hid_t h5_attr_open(hid_t object, const char *name, int64_t *count);
/* The next three functions read an attribute of a file's root or of a data set. h5_attr_text writes
 * the attribute's first text to out, of `room` bytes with its final zero; the text is empty if the
 * attribute is missing or is not a string. ERR_DATA: the attribute is unreadable. */
Status h5_attr_text(hid_t object, const char *path, const char *name, char *out, size_t room);
/* *count: number of floats, 0 if the attribute is missing. ERR_DATA: the attribute is unreadable,
 * is not numeric, or has more than max numbers. */
Status h5_attr_floats(hid_t object, const char *path, const char *name, float *out, int max,
                      int *count);
/* Returns false, and leaves *value unchanged, unless the attribute is one integer. */
bool h5_attr_integer(hid_t object, const char *name, int64_t *value);
/* Returns HDF5's innermost message about the call that has just failed; borrowed until the next
 * call. */
const char *h5_error_text(void);
/* Writes a description: "contiguous", "chunked 64x1x28x28, deflate". */
void h5_storage_text(hid_t dataset, char *out, size_t out_bytes);
/* Can weft read the chunks itself, without HDF5? It can if their filters, in the creation property
 * list `create`, are none, shuffle, deflate, or shuffle and then deflate, and if HDF5 1.10.5 or
 * newer can say where the chunks are. Sets *shuffle and *deflate, which the caller has set to
 * false. */
bool h5_chunk_filters(hid_t create, bool *shuffle, bool *deflate);
/* Hashes how an array is stored: the offset of its header, the offset and the size of its bytes,
 * its layout as text, and numbers, offsets and sizes of some of its chunks, spread evenly. */
void h5_layout_hash(hid_t dataset, HashPieces *hash);

/* ---- sets ---- */
/* Opens one file. */
Status data_set_open_file(DataSet *set, const Config *config, const char *path);
/* Opens paths, separated by line breaks, as one set. ERR_DATA names the file that differs. */
Status files_open(DataSet *set, const Config *config, const char *paths);
/* Returns the index of the last of `count` structures whose sort field is at most `value`, or 0 if
 * there is none. The structures have `stride` bytes and are sorted by this int64_t field. first:
 * the field in the first structure. */
int index_at_most(const int64_t *first, size_t stride, int count, int64_t value);
/* Returns the index of the file that holds a sample, in a set of several files. */
int files_find_sample(const DataSet *set, int64_t sample);
/* Checks that the index of an encoded set rises and stays inside the data. */
Status index_check(const DataSet *set);
/* Returns ERR_DATA, with the message that this sample's entry of the index is wrong. */
Status index_fail(const DataSet *set, int64_t sample);
/* Returns ERR_DATA, with the message that the index of the ids is wrong at this sample's field. */
Status ids_fail(const DataSet *set, int64_t sample, int64_t field);
/* ERR_DATA: an id of this sample is not below id_rows (0: any id is allowed). The ids of field f
 * are ids[first[f]] to ids[first[f + 1] - 1], as reader_get_ids returns them. */
Status ids_range_check(const DataSet *set, int64_t sample, const uint64_t *ids,
                       const int32_t *first);
/* Reads and checks all ids. */
Status ids_check(const DataSet *set, Reader *reader);
/* Writes "FILE: sample N", with the sample's file and its number in that file; returns out. */
char *sample_name(const DataSet *set, int64_t sample, char *out, size_t room);
/* Decodes every picture, on several threads. size: height and width of each picture in turn, (N,2),
 * which it must have when it is upright; NULL: any. ERR_DATA names the first broken picture. */
Status encoded_check(const DataSet *set, Reader *reader, const int32_t *size);

/* ---- boxes ---- */
/* Number of rows of an array of boxes. */
typedef enum BoxRows {
    /* a row for each picture */
    BOX_PER_SAMPLE,
    /* samples + 1 rows: the first box of each picture, and the end of the last picture's boxes */
    BOX_PER_END,
    BOX_PER_BOX,
    BOX_PER_CLASS
} BoxRows;
typedef struct BoxArrayInfo {
    const char *name;
    ElementType type;
    int columns;
    BoxRows rows;
    /* true: sets of decoded pictures have this array, sets of encoded pictures must not have it */
    bool letterbox;
} BoxArrayInfo;
extern const BoxArrayInfo box_array_info[BOX_ARRAYS];
/* Returns the name of an array that is missing or must not be there (letterbox), or whose shape or
 * type is wrong, or that is not contiguous; NULL: all are good. */
const char *box_arrays_find_bad(const DataArray box[BOX_ARRAYS], int64_t samples, bool encoded);
/* Reads all labels; lists the first 100 problems in the log. ERR_DATA: there are problems. Release
 * with data_boxes_free unless it fails. */
Status boxes_check(const DataSet *set, DataBoxes *boxes);
/* Counts of the labels of a set of boxes. Every number includes the boxes around groups. */
typedef struct BoxCounts {
    /* owned: number of boxes of each class */
    int64_t *of_class;
    /* number of pictures without boxes; largest number of boxes of a picture; number of boxes
     * around groups, and of boxes without area */
    int64_t empty_pictures, most, crowds, without_area;
} BoxCounts;
/* Counts labels whose classes are those of the file (before data_boxes_map_classes). */
BoxCounts box_counts(const DataBoxes *boxes);
/* Sets set->box_most from /box_start and /box_crowd. Leaves it unchanged, and returns OK, if
 * /box_start is damaged: data_boxes_read reports that later. ERR_IO, ERR_DATA: an array cannot be
 * read. */
Status boxes_find_most(DataSet *set);

/* ---- several threads ---- */
/* Calls run(user, worker, i) for each i below count, on up to `threads` threads, among them the
 * calling one; worker is 0 to threads - 1. After a failure no further call begins. Returns the
 * failure with the smallest i. */
typedef Status PoolWork(void *user, int worker, int64_t i);
Status worker_pool_run(int threads, int64_t count, PoolWork *run, void *user);
/* Calls make for each i below count on many threads, because make waits for files; make writes an
 * item of `bytes` bytes. Calls take with each item, in the order of i, on this thread. Returns the
 * failure with the smallest i. */
typedef Status PoolMake(void *user, int64_t i, void *item);
typedef Status PoolTake(void *user, int64_t i, const void *item);
Status worker_pool_ahead(int64_t count, size_t bytes, PoolMake *make, PoolTake *take, void *user);
/* The failure of the work item with the smallest number; all zero: no failure. Protected by the
 * caller's lock. */
typedef struct FirstFailure {
    int64_t i;
    Status status;
    /* owned: message */
    char *why;
} FirstFailure;
/* Records a failure of item i if no item with a smaller number has failed. Call on the thread that
 * failed, since fail_message is per thread. */
void failure_record(FirstFailure *first, int64_t i, Status status);
/* Returns the recorded failure, or OK, and releases it. */
Status failure_end(FirstFailure *first);

/* ---- cropping, resampling and augmenting pictures ---- */
/* Sets height and width of an image set to the model's input size, by the keys of `data`. An
 * encoded set gets 0 if config is NULL, or if no key gives the size. ERR_CONFIG: keys contradict
 * each other or the set. */
Status view_set_model_size(DataSet *set, const Config *config);
/* The part of a picture that is used, and its size. `box`, a box of the picture, is resampled to
 * width x height pixels. `part`, a box of this result, is kept; its pixels outside the result are
 * zero, or grey in a letterbox. */
typedef struct PictureView {
    ImageBox box, part;
    int width, height;
} PictureView;
/* Returns the offset at which `part` pixels are centred in `whole` pixels, as by torchvision's
 * CenterCrop: halves are rounded to even. If `part` is larger, the picture is padded on both sides:
 * the offset is negative, and halves are rounded towards 0. */
int view_centre_offset(int whole, int part);
/* Scales *width x *height, keeping the ratio, to the smallest size that covers to_width x
 * to_height: one side becomes equal, the other is truncated to whole pixels. */
void view_cover_size(int64_t to_width, int64_t to_height, int64_t *width, int64_t *height);
/* Sets the view's width and height to its box's size, scaled by view_cover_size. ERR_DATA, with
 * name: a side exceeds INT_MAX. */
Status view_set_size(PictureView *view, int64_t to_width, int64_t to_height, const char *name);
/* Choose the view of a picture of this size; name is for messages. ERR_DATA: after its short side
 * is resized, its long side exceeds INT_MAX, or (in training) one of its sides is below
 * data.random_crop. */
Status view_choose_evaluation(PictureView *view, const DataSet *set, const Config *config,
                              int width, int height, const char *name);
Status view_choose_training(PictureView *view, const DataSet *set, const Config *config, RngKey key,
                            int width, int height, const char *name);
/* Returns where a whole picture lies, resized and centred, in a square with sides of `side` pixels,
 * whose margins are grey. */
enum { LETTERBOX_GREY = 114 };
ImageBox letterbox(int width, int height, int side);
/* Chooses a rectangle to erase, with probability data.erasing; height 0: none. */
ImageBox choose_erasing(const DataSet *set, const Config *config, RngKey key);
/* Writes the input of a sample of a set of boxes to out, float (C,H,W): composes its scene
 * (picture/scene.h), changes colours, mirrors, normalises. ERR_DATA with file and sample. */
Status picture_prepare_scene(PictureWork *work, Reader *reader, const DataBoxes *boxes,
                             bool training, int64_t epoch, int64_t sample, float *out);
/* Applies data.color_jitter. */
void picture_jitter(Image *image, const Config *config, RngKey key);
/* Does training mirror this sample? */
bool augment_flips(const Config *config, int64_t epoch, int64_t sample);
/* Returns the key of all random choices of a sample. */
RngKey augment_key(const Config *config, int64_t epoch, int64_t sample);
/* Numbers of the blocks of random words (rng_block) under the key of augment_key. A resized crop
 * and a box to erase are tried up to DRAW_TRIES times, each time with the next block. */
enum {
    DRAW_FLIP_CROP,
    DRAW_CUTOUT,
    DRAW_RESIZED_CROP,
    DRAW_TRIES = 10,
    DRAW_RANDOM_CROP = DRAW_RESIZED_CROP + DRAW_TRIES,
    DRAW_JITTER,
    DRAW_ORDER,
    DRAW_ERASE,
    DRAW_ERASE_BOX,
    DRAW_AFFINE = DRAW_ERASE_BOX + DRAW_TRIES,
    DRAW_MOSAIC,
    DRAW_PARTNERS
};
/* Map a random word to a uniform integer in 0..below-1, and to a uniform number in [lo, hi). */
int64_t draw_below(uint32_t word, int64_t below);
double draw_between(uint32_t word, double lo, double hi);
/* Converts a picture of the set's height and width to float (C,H,W): flip, crop, normalisation,
 * cutout, erasing. */
void augment_picture(const DataSet *set, const Config *config, bool training, int64_t epoch,
                     int64_t sample, const Image *picture, float *out);
/* Converts a row of n RGB pixels to a row of each of three planes: to[c][i] = from[3 * i + c] *
 * a[c] + b[c]; mirrored: to[c][-i] = ... */
void rgb_row(float *const to[3], const uint8_t *from, int n, const float a[3], const float b[3],
             bool mirrored);

/* How the images of a micro-batch are mixed in pairs, by data.mixup and data.cutmix. */
typedef struct Mix {
    /* fraction of the row's own image; 1: nothing is mixed */
    float share;
    /* true: cutmix, `box` is replaced by the same box of the other image; false: mixup, the images
     * are blended */
    bool cut;
    ImageBox box;
} Mix;
Mix mix_choose(const DataSet *set, const Config *config, const Batch *batch);
/* Mixes row r with row r - 1, and row 0 with the last row that is not padding. spare: memory for
 * one sample. */
void mix_images(const Mix *mix, const DataSet *set, const Batch *batch, float *spare);
/* Sets the batch's labels_other to the labels of the other row of each pair. */
void mix_labels(const Batch *batch);

/* ---- reading ---- */
/* Creates a reader of one array of a set that is one file: functions that read x read this array
 * instead. */
Status reader_new_array(Reader **reader, const DataSet *set, const DataArray *array);
/* Creates a reader of x and the ids if `x` is set, and of y if `y` is set; a reader of fields
 * always reads both. */
Status reader_new_part(Reader **reader, const DataSet *set, bool x, bool y);
/* Returns the reader of a set of fields, borrowed; NULL: other kinds. */
struct FieldReader *reader_fields(const Reader *reader);
/* Returns ERR_DATA, with the message that the token at this position of x, with raw bytes at raw,
 * is not in the vocabulary. */
Status token_fail(const DataSet *set, int64_t position, const void *raw);
/* Reads all tokens; ERR_DATA: a token is not in the vocabulary. */
Status tokens_check(const DataSet *set);
/* Reads all labels (or tokens) and sets *use to the classes (or tokens) that occur. ERR_DATA: a
 * label has no class (or a token is not in the vocabulary). */
Status integers_scan(const DataSet *set, LabelUse *use);
/* Returns ERR_DATA, with the message that this sample's label, with raw bytes at raw, is not one of
 * the set's classes. */
Status label_fail(const DataSet *set, int64_t sample, const void *raw);
/* Returns a warning, with what to do, if y, an array of numbers in one file, seems to hold classes:
 * one-hot rows, or whole numbers in a floating-point type. NULL: it does not. Owner: the caller. */
char *number_labels_warning(const DataSet *set, const DataArray *y);
/* Logs data_set_label_warning for a data set that an import has just written. */
void data_import_warn_of_labels(const char *out);
/* Returns the class of a label of the file, or a number outside 0..classes-1 if the label has no
 * class. Labels beyond the classes that the file itself lists have no class. */
static inline int64_t label_class(const DataSet *set, int64_t label)
{
    int64_t i;
    if (__builtin_sub_overflow(label, set->label_base, &i) || i < 0) return -1;
    if (set->listed_classes > 0 && i >= set->listed_classes) return -1;
    if (set->map.count == 0) return i;
    if (i >= set->map.count) return -1;
    uint16_t class = set->class_of[set->map.first + i];
    return class == DATA_NO_CLASS ? -1 : class;
}
/* Writes dimensions as "60000x1x28x28" to out, of DIMS_TEXT bytes; returns out. */
enum { DIMS_TEXT = 120 };
const char *dims_text(const DataArray *array, char *out);
/* Reads `count` raw samples (tokens of token sets) from number `first` on, with one read per file;
 * samples of a set of fields one by one, normalised. */
Status reader_get_run(Reader *reader, int64_t first, int64_t count, void *x);
/* Reads inputs, and targets or labels, of a sample of fields, or of the patch that is cut out of
 * the sample in this epoch. x, label and target may each be NULL. */
Status reader_get_fields(Reader *reader, int64_t epoch, int64_t sample, float *x, int32_t *label,
                         float *target);
/* Reads the first `bytes` of one sample's x. x must have space for the whole sample, since HDF5 and
 * readers of fields read it whole. */
Status reader_get_head(Reader *reader, int64_t sample, int64_t bytes, void *x);
/* Copies n bytes from a mapped file; false: the file has become shorter, or its file system failed.
 * mapped_copy_init must have been called. */
bool mapped_copy(void *to, const void *from, size_t n);
void mapped_copy_init(void);

/* ---- reading files to import, plain or .gz ---- */
/* A plain file, or a gzip file (RFC 1952), whose members are unpacked one after the other. */
typedef struct PackedFile {
    /* borrowed */
    const char *path;
    /* size of the file on disk */
    int64_t bytes;
    /* open: packed_close has something to release. packed: the file is gzip. ended: the whole file
     * has been read. */
    bool open, packed, ended;
    int fd;
    /* owned: buffer of bytes read from the file; the last stream.avail_in of them are unused */
    uint8_t *in;
    z_stream stream;
    /* offsets in the file: of the end of the buffer, and of the current member's first byte */
    int64_t read_to, member;
    /* true: the next byte is inside a member; false: it begins a member, or follows the last one */
    bool in_member;
} PackedFile;
/* Opens a file. ERR_NOINPUT: it cannot be opened, or is not a regular file; ERR_DATA: it is in
 * another compressed format or from torch.save, or its name ends in .gz and it is not gzip; ERR_IO.
 * Release with packed_close. */
Status packed_open(PackedFile *file, const char *path);
/* Opens a file that weft itself wrote: it is plain, even if it begins like a compressed file. */
Status packed_open_plain(PackedFile *file, const char *path);
void packed_close(PackedFile *file);
/* Reads the next `most` unpacked bytes; *got is less only at the end. ERR_IO; ERR_DATA, with the
 * offset in the file: damaged, truncated, or followed by something other than zeros. */
Status packed_read(PackedFile *file, void *to, size_t most, size_t *got);
/* Goes back to the beginning of the file. */
Status packed_rewind(PackedFile *file);
/* Reads a whole file into *text and adds a zero byte; owned by the caller. ERR_DATA, too, if it has
 * more than `most` bytes. */
Status packed_text(const char *path, size_t most, char **text, size_t *bytes);
/* Fails with ERR_DATA if a gzip file has expanded more than any honest file: to `unpacked` bytes so
 * far. Call it while reading, before memory or disk space is used for them. */
Status packed_check_expansion(const PackedFile *file, int64_t unpacked);

/* ---- writing ---- */
herr_t h5_put_text(hid_t file, const char *name, const char *value);
/* Writes n values of memory type `type` as an attribute of type `stored`; n 0: a scalar. */
herr_t h5_put_numbers(hid_t file, const char *name, hid_t stored, hid_t type, const void *value,
                      hsize_t n);
/* Creates a contiguous data set and allocates its space; *offset: the file offset of its bytes. */
herr_t h5_put_array(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dim,
                    int64_t *offset);

/* Writes all values of a data set. */
herr_t h5_fill_array(hid_t file, const char *name, hid_t type, const void *from);
/* Writes names of classes (class_names.c describes the format); name NULL: "0", "1", ... */
herr_t h5_put_classes(hid_t file, const char *const *name, int64_t count);
/* Writes another list of names, such as "columns". */
herr_t h5_put_names(hid_t file, const char *list, const char *const *name, int64_t count);
/* Returns the number of names of classes; 0: none can be read. */
int64_t h5_class_count(hid_t file);
/* Adds the names of a list to a hash, and appends them to `lines` (of DATA_COLUMN_LINES bytes, as
 * DataColumns.lines), one name per line, as far as they fit. Returns false if there is no list that
 * can be read. */
bool h5_names_hash(hid_t file, const char *list, HashPieces *pieces, char *lines);
/* ERR_DATA: a name occurs twice in the list that the file `path` stores. */
Status class_names_check(const ClassNames *names, const char *path);
/* Joins the classes of one more file, `other`, to those of a set of several files. all: the class
 * names of the set so far; filled at the second file. If names can be matched, appends the names
 * that only `other` has to `all`, and sets other->map. If not, labels keep their numbers, and `all`
 * becomes the list that names classes, if there is one. *joined true: `all` names the classes of
 * both, and set->classes is at least their number; false: the two numbers of classes must be equal,
 * which the caller checks. ERR_DATA: both lists name classes, and each has a name that the other
 * lacks, or a file has a name twice. */
Status files_join_classes(DataSet *set, ClassNames *all, DataSet *other, bool *joined);

/* A file that is written as OUT.part and becomes OUT at the end. */
typedef struct PartFile {
    /* owned: the two paths */
    char *out, *part;
    int fd;
} PartFile;
/* Writes into an open HDF5 file; called under hdf5_lock. Negative: failed. */
typedef herr_t PartPut(void *user, hid_t file);
/* Checks with file_free_place that a training set and, unless test is NULL, a test set can be
 * written. ERR_USAGE, too, if both have the same path. */
Status part_check_outputs(const char *out, const char *test, bool force);
/* Fails with ERR_USAGE if out (NULL: none) is one of the input files `name` in folder. */
Status part_check_not_input(const char *out, const char *folder, const char *const *name,
                            int count);
/* Creates out.part, reserves `bytes`, and calls put to lay out the file through HDF5. ERR_USAGE:
 * out exists and force is false; ERR_IO. Nothing needs to be released if it fails. */
Status part_new(PartFile *part, const char *out, bool force, int64_t bytes, PartPut *put,
                void *user);
/* Does the same as part_new, for a file that keeps the order in which put creates arrays and
 * attributes, as NetCDF-4 needs. */
Status part_new_ordered(PartFile *part, const char *out, bool force, int64_t bytes, PartPut *put,
                        void *user);
/* part_remove_on_signal registers a file of part_new for removal by signals that end the process;
 * part_keep_on_signal ends the registration. */
void part_remove_on_signal(const char *part);
void part_keep_on_signal(const char *part);
/* Writes bytes at offset `at` of the file. May be called from any thread. ERR_IO. */
Status part_write(const PartFile *part, const void *from, int64_t bytes, int64_t at);
/* Starts to sync these bytes to the disk in the background, which shortens part_finish. */
void part_begin_sync(const PartFile *part, int64_t bytes, int64_t at);
/* Copies the bytes between offsets `from` and `end` of a file to offset `to`. from_fd may be this
 * file if to < from. */
Status part_copy(const PartFile *part, int from_fd, int64_t from, int64_t end, int64_t to);
/* Allocates `bytes` of the file on the disk, if the file system supports it. ERR_IO: it is full. */
Status part_reserve(const PartFile *part, int64_t bytes);
/* Opens the file through HDF5 again for reading and writing; negative: failed. Called under
 * hdf5_lock; the caller closes it. */
hid_t part_open_hdf5(const PartFile *part);
/* Opens the file through HDF5 again, calls put and closes it. */
Status part_update(const PartFile *part, PartPut *put, void *user);
/* Opens a file that several processes write, and that is laid out later, by part_lay_out. keep:
 * opens the existing out.part, ERR_IO if impossible; false: creates it. Reserves `bytes`. */
Status part_open(PartFile *part, const char *out, bool keep, int64_t bytes);
/* Opens the existing out.part on a rank that only writes samples. */
Status part_open_existing(PartFile *part, const char *out);
/* Lays out OUT.part around its largest array, whose data_bytes bytes are written with part_write.
 * put lays out a temporary file in which this array is a hole, and stores the array's offset where
 * data_offset points (a field of `user`). copy: everything around the hole is then copied to
 * OUT.part; false: the caller needs only the offset. */
Status part_lay_out(const PartFile *part, PartPut *put, void *user, const int64_t *data_offset,
                    int64_t data_bytes, bool copy);
/* Closes the file and leaves it as it is. */
void part_close(PartFile *part);
/* part_finish syncs and renames to out. If it fails, and in part_drop, out.part is removed. An
 * earlier out is kept, unless part_finish fails after the rename, because the folder cannot be
 * synced. */
Status part_finish(PartFile *part);
void part_drop(PartFile *part);
/* Returns ERR_IO with this reason. */
Status part_fail(const PartFile *part, const char *why);

/* ---- writing a weft data set of uint8 images ---- */
/* Adds `pixels` values, `step` bytes apart, to *sum, and their squares to *squares. Exact for up to
 * 2^48 pixels. */
void pixel_sums(const uint8_t *from, int64_t pixels, int step, uint64_t *sum, uint64_t *squares);
/* Computes mean and standard deviation in units of 0..1. A constant channel gets deviation 1, so
 * that it is not scaled. Mean and deviation are 0 if there are no pixels. */
void pixel_stats(uint64_t sum, uint64_t squares, int64_t pixels, float *mean, float *std);
typedef struct ImageWriter ImageWriter;
typedef struct ImageLayout {
    int64_t samples, channels, height, width, classes;
    /* `classes` names, borrowed; NULL: numbers */
    const char *const *class_names;
} ImageLayout;
/* Lays out out.part and reserves its space. ERR_USAGE: out exists and force is false; ERR_IO, also
 * if the disk is full. */
Status image_writer_new(ImageWriter **writer, const char *out, bool force, ImageLayout layout);
/* Appends images (N,C,H,W) and their labels. */
Status image_writer_add(ImageWriter *writer, const uint8_t *images, const int32_t *labels,
                        int64_t count);
/* image_writer_finish completes the file after the last sample: writes labels, mean and deviation,
 * syncs, renames. image_writer_drop, and a finish that fails before the rename, remove out.part and
 * leave an earlier out unchanged. Both free the writer. */
Status image_writer_finish(ImageWriter **writer);
void image_writer_drop(ImageWriter **writer);

#endif
