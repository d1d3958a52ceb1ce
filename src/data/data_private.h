/* Declares what files of the data module share: element types, HDF5 helpers (called under
 * hdf5_lock), checks of sets, work on pictures, readers, and the writers of imports. */
#ifndef WEFT_DATA_PRIVATE_H
#define WEFT_DATA_PRIVATE_H

#include "data/import.h"

#define H5_USE_110_API /* the calls keep their 1.10 form under newer libraries */
#include <hdf5.h>
#include <zlib.h>

/* ---- element types ---- */
size_t element_bytes(ElementType type);
/* Returns HDF5's type of such an element in memory; borrowed. */
hid_t element_native(ElementType type);
bool element_is_float(ElementType type);
/* Returns the integer at p, which has this machine's byte order. An unsigned value above INT64_MAX
 * becomes INT64_MAX. */
int64_t element_integer(ElementType type, const void *p);
/* Writes the integer at p in decimal digits, even if it is above INT64_MAX; returns text. */
char *element_integer_text(ElementType type, const void *p, char text[24]);
/* Computes to[i * to_step] = from[i * from_step] * a + b for i from 0 to n - 1; to_step is 1 or
 * -1. */
void element_scale_row(ElementType type, float *to, int to_step, const void *from,
                       int64_t from_step, int64_t n, float a, float b);
/* Copies n values, which are from_step elements apart, to doubles. */
void element_doubles(ElementType type, double *to, const void *from, int64_t from_step, int64_t n);
/* Returns the index of the first of n integers that is outside 0..below-1; -1: there is none. */
int64_t element_find_outside(ElementType type, const void *from, int64_t n, int64_t below);
/* Copies n integers, whose values must fit into int32. */
void element_int32(ElementType type, int32_t *to, const void *from, int64_t n);
/* Copies n integers as 64-bit ids; negative integers become their two's complement. `to` may be
 * equal to `from`. */
void element_ids(ElementType type, uint64_t *to, const void *from, int64_t n);
/* Returns the index of the first of n values that is NaN or infinite, or that is a double beyond
 * float32's range; -1: there is none. */
int64_t element_find_not_finite(ElementType type, const void *from, int64_t n);
/* Returns what element_find_not_finite requires of values of this type, for messages ("value ... is
 * not ..."): "a finite number" or a longer text. */
const char *element_finite_text(ElementType type);

/* ---- HDF5 ---- */
/* Opens a file for reading. ERR_NOINPUT: missing, a folder, no permission. ERR_DATA: empty, not
 * HDF5, truncated or damaged. ERR_IO. The caller closes it. */
Status h5_open(hid_t *file, const char *path);
/* Opens the data set `name`, which the caller closes. key: configuration key that sets the name,
 * for the message; NULL: no key sets it. ERR_DATA: it is behind an external link or missing; if it
 * is missing, the message lists the file's data sets and the key. */
Status h5_dataset(hid_t *dataset, hid_t file, const char *path, const char *name, const char *key);
/* Returns whether the file has an object of this name. */
bool h5_has(hid_t file, const char *name);
/* Opens an attribute of a file's root or of a data set, and sets *count to the number of its
 * elements. Returns a negative number if there is none. The caller closes the attribute. */
hid_t h5_attr_open(hid_t object, const char *name, int64_t *count);
/* The next three functions read an attribute of `object`, which is a file (its root) or a data set.
 * h5_attr_text writes the attribute's first text to out, of `room` bytes, with a final zero. The
 * text is empty if the attribute is missing, is not a string, or is very large. ERR_DATA: the
 * attribute cannot be read. */
Status h5_attr_text(hid_t object, const char *path, const char *name, char *out, size_t room);
/* Reads numbers as floats. *count: their number; 0: the attribute is missing. ERR_DATA: the
 * attribute cannot be read, is not numeric, or has more than max numbers. */
Status h5_attr_floats(hid_t object, const char *path, const char *name, float *out, int max,
                      int *count);
/* Reads an attribute that is one integer. Returns false if the attribute is missing or is anything
 * else. */
bool h5_attr_integer(hid_t object, const char *name, int64_t *value);
/* Returns HDF5's innermost message about the call that has just failed; borrowed until
 * h5_error_text is called again on this thread. */
const char *h5_error_text(void);
/* Writes how the data set is stored, for example "contiguous" or "chunked 64x1x28x28, deflate". */
void h5_storage_text(hid_t dataset, char *out, size_t out_bytes);
/* Returns whether weft can read the chunks of a data set without HDF5. This needs HDF5 1.10.5 or
 * newer, which gives their addresses, and a file without a user block, which not all versions count
 * in addresses. The filters of `create` must be none, shuffle, deflate, or both in this order. Sets
 * *shuffle and *deflate to whether there is such a filter; the caller has set both to false. */
bool h5_chunk_filters(hid_t dataset, hid_t create, bool *shuffle, bool *deflate);
/* Adds to a hash how an array is stored: the offset of its header, the offset and the size of its
 * bytes, its layout as text, and numbers, offsets and sizes of some of its chunks, spread
 * evenly. */
void h5_layout_hash(hid_t dataset, HashPieces *hash);

/* ---- sets ---- */
/* Opens one file as a set. */
Status data_set_open_file(DataSet *set, const Config *config, const char *path);
/* Opens several files as one set. paths: their paths, one per line. ERR_DATA names the file that
 * differs. */
Status files_open(DataSet *set, const Config *config, const char *paths);
/* Returns the index of the last of `count` structures whose sort field is at most `value`; 0 if
 * there is none. The structures have `stride` bytes and are sorted by this int64_t field. first:
 * address of the field in the first structure. */
int index_at_most(const int64_t *first, size_t stride, int count, int64_t value);
/* Returns the index of the file that holds a sample of a set of several files. */
int files_find_sample(const DataSet *set, int64_t sample);
/* Checks that the index of an encoded set rises and stays inside the data. ERR_DATA, ERR_IO. */
Status index_check(const DataSet *set);
/* Returns ERR_DATA, with the message that this sample's entry of the index is wrong. */
Status index_fail(const DataSet *set, int64_t sample);
/* Returns ERR_DATA, with the message that the index of the ids is wrong at this sample's field. */
Status ids_fail(const DataSet *set, int64_t sample, int64_t field);
/* Returns ERR_DATA if an id of this sample is not below set->id_limit (0: any id is allowed). The
 * ids of field f are ids[first[f]] to ids[first[f + 1] - 1], as reader_get_ids returns them. */
Status ids_range_check(const DataSet *set, int64_t sample, const uint64_t *ids,
                       const int32_t *first);
/* Reads and checks all ids. */
Status ids_check(const DataSet *set, Reader *reader);
/* Writes "FILE: sample N", with the sample's file and its number in that file; returns out. */
char *sample_name(const DataSet *set, int64_t sample, char *out, size_t room);
/* Decodes every picture on several threads. size: height and width that each picture must have when
 * it is upright, (N,2); NULL: any. ERR_DATA names the broken picture with the lowest number. */
Status encoded_check(const DataSet *set, Reader *reader, const int32_t *size);

/* ---- boxes ---- */
/* Number of rows that an array of boxes has. */
typedef enum BoxRows {
    /* a row for each picture */
    BOX_PER_SAMPLE,
    /* samples + 1 rows: index of the first box of each picture, and the end of the last picture's
     * boxes */
    BOX_PER_END,
    /* a row for each box */
    BOX_PER_BOX,
    /* a row for each class */
    BOX_PER_CLASS
} BoxRows;
/* An array that sets of boxes have. */
typedef struct BoxArrayInfo {
    const char *name;
    ElementType type;
    int columns;
    BoxRows rows;
    /* true: sets of decoded pictures have this array, and sets of encoded pictures must not have
     * it */
    bool decoded_only;
} BoxArrayInfo;
extern const BoxArrayInfo box_array_info[BOX_ARRAYS];
/* Returns the name of an array that is missing, that must not be there (BoxArrayInfo.decoded_only),
 * whose shape or type is wrong, or that is not contiguous. NULL: all arrays are good. */
const char *box_arrays_find_bad(const DataArray box[BOX_ARRAYS], int64_t samples, bool encoded);
/* Reads all boxes and checks them; logs the first 100 problems. ERR_DATA: there are problems.
 * Release `boxes` with data_boxes_free if OK is returned. */
Status boxes_check(const DataSet *set, DataBoxes *boxes);
/* Counts of the labels in a set of boxes. All counts include the boxes with DataBoxes.crowd. */
typedef struct BoxCounts {
    /* number of boxes of each class; owned */
    int64_t *of_class;
    /* empty_pictures: number of pictures without boxes; boxes_max: largest number of boxes of a
     * picture; crowds: number of boxes with DataBoxes.crowd; without_area: number of boxes without
     * area */
    int64_t empty_pictures, boxes_max, crowds, without_area;
} BoxCounts;
/* Counts labels, whose classes must still be those of the file (before data_boxes_map_classes). */
BoxCounts box_counts(const DataBoxes *boxes);
/* Sets set->box_most from /box_start and /box_crowd. Leaves it unchanged, and returns OK, if
 * /box_start is damaged: data_boxes_read reports that later. ERR_NOINPUT, ERR_IO, ERR_DATA: the
 * file cannot be opened, or an array cannot be read. */
Status boxes_find_most(DataSet *set);

/* ---- several threads ---- */
/* Calls run(user, worker, i) for each i from 0 to count - 1 on at most `threads` threads, one of
 * which is the calling one. worker: number of the thread, 0 to threads - 1. After a failure no
 * further call begins. Returns the failure with the smallest i. */
typedef Status PoolWork(void *user, int worker, int64_t i);
Status worker_pool_run(int threads, int64_t count, PoolWork *run, void *user);
/* Calls `make`, which writes an item of `bytes` bytes, for each i from 0 to count - 1. Uses many
 * threads, since `make` mostly waits for files. Calls `take` with each item on the calling thread,
 * in the order of i. Returns the failure with the smallest i. */
typedef Status PoolMake(void *user, int64_t i, void *item);
typedef Status PoolTake(void *user, int64_t i, const void *item);
Status worker_pool_ahead(int64_t count, size_t bytes, PoolMake *make, PoolTake *take, void *user);
/* The failure of the work item with the smallest number. All zero: there is no failure. The
 * caller's lock protects it. */
typedef struct FirstFailure {
    /* number of the item */
    int64_t i;
    Status status;
    /* message; owned */
    char *why;
} FirstFailure;
/* Records the failure of item i unless an item with a smaller number has failed. Call it on the
 * thread that failed, since fail_message is per thread. */
void failure_record(FirstFailure *first, int64_t i, Status status);
/* Returns the recorded failure, or OK, and releases it. */
Status failure_end(FirstFailure *first);

/* ---- cropping, resampling and augmenting pictures ---- */
/* Sets height and width of an image set to the model's input size, by the keys data.*. An encoded
 * set gets 0 if config is NULL, or if no key gives the size. ERR_CONFIG: keys contradict each other
 * or the set. */
Status view_set_model_size(DataSet *set, const Config *config);
/* The part of a picture that is used, and its size. `box` is the part, which is resampled to width
 * x height pixels. `kept` is the box of the result that is kept. Pixels of `kept` outside the
 * result are zero, or grey in a letterbox. */
typedef struct PictureView {
    ImageBox box, kept;
    int width, height;
} PictureView;
/* Returns the offset at which `part` pixels are centred in `whole` pixels, as in torchvision's
 * CenterCrop: a half is rounded to the even neighbour. If part is larger than whole, the picture
 * must be padded on both sides: the offset is then negative, and a half is rounded towards 0. */
int view_centre_offset(int whole, int part);
/* Scales *width x *height to the smallest size of the same ratio that covers to_width x to_height.
 * One side becomes equal; the other is rounded down to whole pixels. */
void view_cover_size(int64_t to_width, int64_t to_height, int64_t *width, int64_t *height);
/* Sets the view's width and height to the size of its box, scaled by view_cover_size. name: name of
 * the picture, for messages. ERR_DATA: a side exceeds INT_MAX. */
Status view_set_size(PictureView *view, int64_t to_width, int64_t to_height, const char *name);
/* Choose the view of a picture of width x height pixels. name: name of the picture, for messages.
 * ERR_DATA: after its short side is resized, its long side exceeds INT_MAX, or (in training) one of
 * its sides is below data.random_crop. */
Status view_choose_evaluation(PictureView *view, const DataSet *set, const Config *config,
                              int width, int height, const char *name);
Status view_choose_training(PictureView *view, const DataSet *set, const Config *config, RngKey key,
                            int width, int height, const char *name);
/* Returns where a complete picture lies in a square with sides of `side` pixels: resized to fit,
 * and centred. The margins of the square are LETTERBOX_GREY. */
enum { LETTERBOX_GREY = 114 };
ImageBox letterbox(int width, int height, int side);
/* Returns a rectangle to erase from an input, chosen with probability data.erasing; height 0:
 * none. */
ImageBox choose_erasing(const DataSet *set, const Config *config, RngKey key);
/* Writes a sample's input in a set of boxes to out, float (C,H,W): composes its scene
 * (picture/scene.h), changes colours, mirrors, normalises. ERR_DATA names file and sample. */
Status picture_prepare_scene(PictureConverter *converter, Reader *reader, const DataBoxes *boxes,
                             bool training, int64_t epoch, int64_t sample, float *out);
/* Changes the colours of a picture at random, as data.color_jitter says. */
void picture_jitter(Image *image, const Config *config, RngKey key);
/* Returns whether training mirrors this sample. */
bool augment_flips(const Config *config, int64_t epoch, int64_t sample);
/* Returns the key of all random choices of a sample. */
RngKey augment_key(const Config *config, int64_t epoch, int64_t sample);
/* Numbers of the blocks of random words (rng_block) under the key augment_key. A resized crop, and
 * a box to erase, are drawn up to DRAW_TRIES times, each time from the next block. */
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
/* draw_below maps a random word to a uniform integer in 0..below-1, draw_between to a uniform
 * number in [lo, hi). */
int64_t draw_below(uint32_t word, int64_t below);
double draw_between(uint32_t word, double lo, double hi);
/* Converts a picture of the set's height and width to float (C,H,W): flips, crops, normalises, and
 * applies cutout and erasing. */
void augment_picture(const DataSet *set, const Config *config, bool training, int64_t epoch,
                     int64_t sample, const Image *picture, float *out);
/* Converts a row of n RGB pixels to a row in each of three planes: to[c][i] = from[3 * i + c] *
 * a[c] + b[c]. If mirrored is true, it writes to[c][-i]. */
void rgb_row(float *const to[3], const uint8_t *from, int n, const float a[3], const float b[3],
             bool mirrored);

/* How the images of a micro-batch are mixed in pairs, by data.mixup and data.cutmix. */
typedef struct Mix {
    /* weight of the row's own image; 1: nothing is mixed */
    float share;
    /* true: cutmix, which replaces `box` by the same box of the other image; false: mixup, which
     * blends the images */
    bool is_cutmix;
    ImageBox box;
} Mix;
/* Chooses how the images of a micro-batch are mixed. */
Mix mix_choose(const DataSet *set, const Config *config, const MicroBatch *batch);
/* Mixes row r with row r - 1, and row 0 with the last row that is not padding. spare: memory for x
 * of one sample. */
void mix_images(const Mix *mix, const DataSet *set, const MicroBatch *batch, float *spare);
/* Sets the batch's labels_other to the labels of the other row of each pair. */
void mix_labels(const MicroBatch *batch);

/* ---- reading ---- */
/* Creates a reader of one array of a set that is one file. Functions that read x then read this
 * array. */
Status reader_new_array(Reader **reader, const DataSet *set, const DataArray *array);
/* Creates a reader of x and the ids if `x` is true, and of y if `y` is true. A reader of fields
 * always reads both. */
Status reader_new_part(Reader **reader, const DataSet *set, bool x, bool y);
/* Returns the reader of a set of fields, borrowed; NULL: the set is of another kind. */
struct FieldReader *reader_fields(const Reader *reader);
/* Returns ERR_DATA, with the message that the token at this position of x is not in the vocabulary.
 * raw: the token as it is stored. */
Status token_fail(const DataSet *set, int64_t position, const void *raw);
/* Reads all tokens; ERR_DATA: a token is not in the vocabulary. */
Status tokens_check(const DataSet *set);
/* Reads all labels, or in a set of tokens all tokens, and sets *use to the classes or tokens that
 * occur. ERR_DATA: a label has no class, or a token is not in the vocabulary. */
Status integers_scan(const DataSet *set, LabelUse *use);
/* Returns ERR_DATA, with the message that the label of this sample is not one of the set's classes.
 * raw: the label as it is stored. */
Status label_fail(const DataSet *set, int64_t sample, const void *raw);
/* Returns a warning that says what to do if y, an array of numbers in one file, seems to hold
 * classes: one-hot rows, or whole numbers in a floating-point type. NULL: it does not. Owner: the
 * caller. */
char *number_labels_warning(const DataSet *set, const DataArray *y);
/* Logs data_set_label_warning for a data set that an import has just written. */
void data_import_warn_of_labels(const char *out);
/* Returns the class of a label of the file, or a number outside 0..classes-1 if the label has no
 * class. A label beyond the classes that the file itself lists has none. */
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
/* Reads x of `count` consecutive samples, as it is stored, from number `first` on, with one read
 * per file. In a set of tokens, `first` and `count` are in tokens. Samples of fields are read one
 * by one, normalised. */
Status reader_get_rows(Reader *reader, int64_t first, int64_t count, void *x);
/* Reads the inputs, and the targets or labels, of a sample of fields, or of the patch that is cut
 * from the sample in this epoch. x, label and target may each be NULL. */
Status reader_get_fields(Reader *reader, int64_t epoch, int64_t sample, float *x, int32_t *label,
                         float *target);
/* Reads the first `bytes` bytes of x of one sample. `x` must have space for the complete sample,
 * since HDF5 and readers of fields read all of it. */
Status reader_get_head(Reader *reader, int64_t sample, int64_t bytes, void *x);
/* Copies n bytes from a mapped file. Returns false if the file has become shorter, or its file
 * system has failed. mapped_copy_init must have been called. */
bool mapped_copy(void *to, const void *from, size_t n);
void mapped_copy_init(void);

/* ---- reading files to import, plain or .gz ---- */
/* A plain file, or a gzip file (RFC 1952), whose members are unpacked one after the other. */
typedef struct PackedFile {
    /* borrowed */
    const char *path;
    /* size of the file on disk */
    int64_t bytes;
    /* open: true if packed_close has something to release; packed: true if the file is gzip; ended:
     * true if all of the file has been read */
    bool open, packed, ended;
    int fd;
    /* buffer of bytes read from the file, of which the last stream.avail_in are unused; owned */
    uint8_t *in;
    z_stream stream;
    /* offsets in the file. read_to: end of the buffer; member: first byte of the current member */
    int64_t read_to, member;
    /* true: the next byte is inside a member; false: it begins a member, or follows the last one */
    bool in_member;
} PackedFile;
/* Opens a file. ERR_NOINPUT: it cannot be opened, or is not a regular file; ERR_DATA: it is in
 * another compressed format or from torch.save, or its name ends in .gz and it is not gzip; ERR_IO.
 * Release with packed_close. */
Status packed_open(PackedFile *file, const char *path);
/* Opens a file that weft itself wrote. It is read as a plain file even if it begins like a
 * compressed one. */
Status packed_open_plain(PackedFile *file, const char *path);
void packed_close(PackedFile *file);
/* Reads the next `most` unpacked bytes. *got: their number, which is less only at the end of the
 * file. ERR_IO; ERR_DATA, with the offset in the file: it is damaged or truncated, or bytes other
 * than zeros follow the last member. */
Status packed_read(PackedFile *file, void *to, size_t most, size_t *got);
/* Goes back to the beginning of the file. */
Status packed_rewind(PackedFile *file);
/* Reads a complete file into *text, which the caller owns, and adds a zero byte. *bytes: length
 * without this zero. Also ERR_DATA: the file has more than `most` bytes. */
Status packed_text(const char *path, size_t most, char **text, size_t *bytes);
/* Returns ERR_DATA if a gzip file has expanded more than any honest file does. unpacked: number of
 * bytes unpacked so far. Call it while reading, before memory or disk space is used for the
 * bytes. */
Status packed_check_expansion(const PackedFile *file, int64_t unpacked);

/* ---- writing ---- */
/* Writes a text as an attribute of a file's root or of a data set; negative: failed. */
herr_t h5_put_text(hid_t object, const char *name, const char *value);
/* Writes n values as an attribute. type: their type in memory; stored: in the file; n 0: a
 * scalar. */
herr_t h5_put_numbers(hid_t object, const char *name, hid_t stored, hid_t type, const void *value,
                      hsize_t n);
/* Creates a contiguous data set and allocates its space. *offset: offset of its bytes in the
 * file. */
herr_t h5_put_array(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dim,
                    int64_t *offset);

/* Writes all values of a data set. type: their type in memory. */
herr_t h5_fill_array(hid_t file, const char *name, hid_t type, const void *from);
/* Writes names of classes (class_names.c has the format). name NULL: the names "0", "1", ... */
herr_t h5_put_classes(hid_t file, const char *const *name, int64_t count);
/* Writes another list of names, such as "columns". */
herr_t h5_put_names(hid_t file, const char *list, const char *const *name, int64_t count);
/* Returns the number of names in the list of classes; 0: there is no list that can be read. */
int64_t h5_class_count(hid_t file);
/* Adds the names of a list to a hash, and appends them, one per line, to `lines` (as
 * DataColumns.lines) as far as there is space. Returns false if no list can be read. */
bool h5_names_hash(hid_t file, const char *list, HashPieces *pieces, char *lines);
/* Returns ERR_DATA if a name occurs twice in the list of classes. path: path of the list's file. */
Status class_names_check(const ClassNames *names, const char *path);
/* Joins the classes of one more file, `other`, to those of a set of several files. all: the class
 * names of the set so far; the call for the second file fills it first. If names can be matched,
 * appends the names that only `other` has to `all`, and sets other->map. If not, labels keep their
 * numbers, and `all` becomes the list that names classes, if there is one. *joined true: `all`
 * names the classes of both, and set->classes is at least their number. *joined false: the set and
 * `other` must have the same number of classes, which the caller checks. ERR_DATA: both lists name
 * classes, and each has a name that the other lacks, or a file has a name twice. */
Status files_join_classes(DataSet *set, ClassNames *all, DataSet *other, bool *joined);

/* A file that is written as OUT.part and becomes OUT at the end. */
typedef struct PartFile {
    /* out: path of the finished file; part: path OUT.part; both owned */
    char *out, *part;
    /* descriptor of OUT.part; -1: not open */
    int fd;
} PartFile;
/* Function that writes into an open HDF5 file; called under hdf5_lock. Negative: failed. */
typedef herr_t PartPut(void *user, hid_t file);
/* Checks with file_check_writable that a data set `out` and, unless `test` is NULL, a second data
 * set `test` can be written. Also ERR_USAGE: both have the same path. */
Status part_check_outputs(const char *out, const char *test, bool force);
/* Returns ERR_USAGE if `out` is one of the input files name[0 .. count - 1] in `folder`. out NULL:
 * OK. */
Status part_check_not_input(const char *out, const char *folder, const char *const *name,
                            int count);
/* Creates OUT.part, reserves `bytes` bytes, which are those of the arrays, and calls `put` to lay
 * out the file through HDF5. ERR_USAGE: `out` exists and `force` is false; ERR_IO. If it fails,
 * nothing needs to be released. */
Status part_new(PartFile *part, const char *out, bool force, int64_t bytes, PartPut *put,
                void *user);
/* Does what part_new does, for a file that keeps the order in which `put` creates arrays and
 * attributes, as NetCDF-4 needs. */
Status part_new_ordered(PartFile *part, const char *out, bool force, int64_t bytes, PartPut *put,
                        void *user);
/* part_remove_on_signal registers a file for removal by signals that end the process;
 * part_keep_on_signal ends the registration. part: path of the file. */
void part_remove_on_signal(const char *part);
void part_keep_on_signal(const char *part);
/* Writes `bytes` bytes at offset `at` of the file. May be called from any thread. ERR_IO. */
Status part_write(const PartFile *part, const void *from, int64_t bytes, int64_t at);
/* Starts to sync the `bytes` bytes at offset `at` to the disk in the background, which shortens
 * part_finish. */
void part_begin_sync(const PartFile *part, int64_t bytes, int64_t at);
/* Copies the bytes from offset `from` to offset `end` of the file from_fd to offset `to` of this
 * file. from_fd may be this file if `to` is below `from`. ERR_IO. */
Status part_copy(const PartFile *part, int from_fd, int64_t from, int64_t end, int64_t to);
/* Allocates the first `bytes` bytes of the file on the disk, if the file system supports it.
 * ERR_IO: the disk is full. */
Status part_reserve(const PartFile *part, int64_t bytes);
/* Opens the file again through HDF5, for reading and writing; negative: failed. Called under
 * hdf5_lock; the caller closes it. */
hid_t part_open_hdf5(const PartFile *part);
/* Opens the file again through HDF5, calls `put`, and closes it. ERR_IO. */
Status part_update(const PartFile *part, PartPut *put, void *user);
/* Opens an OUT.part that several processes write, and that part_lay_out lays out later. keep true:
 * it must exist; false: it is created. Reserves `bytes` bytes. ERR_IO. */
Status part_open(PartFile *part, const char *out, bool keep, int64_t bytes);
/* Opens the existing OUT.part on a rank that only writes samples. ERR_IO. */
Status part_open_existing(PartFile *part, const char *out);
/* Lays out OUT.part around its largest array, whose data_bytes bytes are written with part_write.
 * `put` lays out a temporary file in which this array is a hole, and stores the array's offset
 * where data_offset points (a field of `user`). If `copy` is true, everything around the hole is
 * then copied to OUT.part; if it is false, only the offset is of interest. */
Status part_lay_out(const PartFile *part, PartPut *put, void *user, const int64_t *data_offset,
                    int64_t data_bytes, bool copy);
/* Closes the file and leaves it as it is. */
void part_close(PartFile *part);
/* part_finish syncs OUT.part and renames it to OUT; if it fails, it removes OUT.part. part_drop
 * removes OUT.part. An earlier OUT is kept in both cases, with one exception: if part_finish fails
 * only because the folder cannot be synced, the new file has replaced it already. */
Status part_finish(PartFile *part);
void part_drop(PartFile *part);
/* Returns ERR_IO, with the message that OUT.part cannot be written because of `why`. */
Status part_fail(const PartFile *part, const char *why);

/* ---- writing a weft data set of uint8 images ---- */
/* Adds `pixels` values of a byte, which are `step` bytes apart, to *sum, and their squares to
 * *squares. The sums are exact for up to 2^48 pixels. */
void pixel_sums(const uint8_t *from, int64_t pixels, int step, uint64_t *sum, uint64_t *squares);
/* Computes mean and standard deviation of pixels, scaled to 0..1, from pixel_sums. A constant
 * channel gets the deviation 1, so that it is not scaled. Without pixels, both are 0. */
void pixel_stats(uint64_t sum, uint64_t squares, int64_t pixels, float *mean, float *std);
typedef struct ImageWriter ImageWriter;
typedef struct ImageLayout {
    int64_t samples, channels, height, width, classes;
    /* names of the classes, [classes], borrowed; NULL: the classes are named by their numbers */
    const char *const *class_names;
} ImageLayout;
/* Lays out OUT.part and reserves its space. ERR_USAGE: `out` exists and `force` is false; ERR_IO,
 * also if the disk is full. */
Status image_writer_new(ImageWriter **writer, const char *out, bool force, ImageLayout layout);
/* Appends `count` images, (count,C,H,W), and their labels. */
Status image_writer_add(ImageWriter *writer, const uint8_t *images, const int32_t *labels,
                        int64_t count);
/* image_writer_finish completes the file after the last sample: writes labels, mean and deviation,
 * syncs, renames. image_writer_drop, and a finish that fails before the rename, remove OUT.part and
 * leave an earlier OUT unchanged. Both free the writer. */
Status image_writer_finish(ImageWriter **writer);
void image_writer_drop(ImageWriter **writer);

#endif
