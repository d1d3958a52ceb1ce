/* A data set: its metadata, opened and checked. One rank opens and checks it; the others receive
 * the DataSet by train_bcast_set. Each reader and each loader opens the files on its own rank. No
 * function is collective. */
#ifndef WEFT_DATA_SET_H
#define WEFT_DATA_SET_H

#include "config.h"
#include "data/array.h"
#include "data/boxes.h"
#include "data/class_names.h"
#include "data/fields.h"
#include "data/tokenizer.h"
#include "tensor.h"

/* Kinds of data set; src/data/kinds.c has the row of each. */
typedef enum DataKind {
    DATA_IMAGE,
    DATA_TOKENS,
    DATA_TABLE,
    DATA_BOXES,
    DATA_FIELDS,
    DATA_KINDS
} DataKind;
/* largest number of ids of a sample */
enum { DATA_SAMPLE_IDS_MAX = 1 << 20 };
/* DATA_CHANNELS: largest number of values of mean and of std. DATA_PATH, DATA_TOKENIZER: bytes of a
 * path, and of the path of a tokenizer, with the final zero. */
enum { DATA_CHANNELS = 256, DATA_PATH = 1024, DATA_TOKENIZER = 256 };
/* The members of a DataArray that differ between the files of a set. rows: dim[0] of the array. */
typedef struct DataFileArray {
    int64_t rows, offset, chunk_rows;
} DataFileArray;
/* Map from a file's labels to classes: label DataSet.label_base + i has the class
 * DataSet.class_of[first + i], for i < count. count 0: label DataSet.label_base + i is class i. */
typedef struct LabelMap {
    int first, count;
} LabelMap;
/* One file of a set of several files. */
typedef struct DataFile {
    char path[DATA_PATH];
    /* first_sample: index, in the whole set, of this file's first sample; samples: count of the
     * file's samples */
    int64_t first_sample, samples;
    DataFileArray x, y, index, orient, ids, id_first;
    LabelMap map;
    /* number of classes that the file lists or gives; 0: unknown */
    int64_t listed_classes;
} DataFile;
/* largest number of files of a set */
enum { DATA_FILES = 64 };
/* DATA_LABELS: number of entries of DataSet.class_of. DATA_NO_CLASS: its entry for a label that has
 * no class. */
enum { DATA_LABELS = 1 << 15, DATA_NO_CLASS = UINT16_MAX };
/* The meaning of a table's ids: two sets with equal values number their ids in the same way. */
typedef struct DataIds {
    /* all ids are below this number; 0: there is no bound */
    uint64_t id_limit;
    /* field_first_hash: hash of the first id of each field; vocabulary_hash: hash of the words of
     * the vocabularies; 0: unknown */
    uint64_t field_first_hash, vocabulary_hash;
} DataIds;
/* bytes of DataColumns.lines */
enum { DATA_COLUMN_LINES = 2048 };
/* The meaning of a table's columns. */
typedef struct DataColumns {
    /* names: hash of the names of columns and fields; scaling: hash of the transforms, scales,
     * means and deviations that the import has applied to columns; 0: unknown */
    uint64_t names, scaling;
    /* the first names, one per line, for messages; for a set of fields what its numbers
     * mean (fields/field_meaning.c); "": unknown */
    char lines[DATA_COLUMN_LINES];
} DataColumns;
/* The metadata of a data set: plain bytes without handles, and one block of memory in a set of
 * fields, which data_set_fini frees. N: number of samples. */
typedef struct DataSet {
    /* path of the file; of the first file if there are several */
    char path[DATA_PATH];
    DataKind kind;
    int64_t samples;
    /* x: samples; y: labels or targets (sets of tokens and of boxes have no y) */
    DataArray x, y;
    /* encoded: true if x has the bytes of all picture files, one after the other; a decoded picture
     * then has 3 channels. rotates_on_read: true if each picture is rotated or mirrored after
     * decoding, by its EXIF orientation. */
    bool encoded, rotates_on_read;
    /* index: if encoded is true, the offset of each picture file in x, (N+1); orient: if
     * rotates_on_read is true, the EXIF orientation of each picture, (N) */
    DataArray index, orient;
    /* Treatment of pictures by the import, which pictures from other sources need, too.
     * orient_requested: true if pictures are rotated by their EXIF orientation, by the import or,
     * if they are stored encoded, when they are read. bicubic: true if they were resized with
     * IMAGE_BICUBIC. */
    bool orient_requested, bicubic;
    /* number of files of a set of several files; 0: the set is one file */
    int file_count;
    /* the files, [file_count] of them set */
    DataFile file[DATA_FILES];
    /* shape of a sample as the model takes it; for a table of D columns: channels = D, height =
     * width = 1 */
    int64_t channels, height, width;
    /* size of stored images; 0: images differ in size */
    int64_t stored_height, stored_width;
    /* true: stored images are (N,H,W,C); false: (N,C,H,W) */
    bool channels_last;
    /* number of classes: model.classes, or the number that the file gives, or 1 + the largest
     * label; for tokens the size of the vocabulary; 0: targets are floats */
    int64_t classes;
    /* number of classes that the file lists or gives; larger labels are errors; 0: unknown */
    int64_t listed_classes;
    /* label of class 0 in the files: label - label_base is a class, or is mapped to one
     * (LabelMap) */
    int64_t label_base;
    /* map from labels to classes; in a set of several files each file has its own */
    LabelMap map;
    /* entries of all maps (LabelMap) */
    uint16_t class_of[DATA_LABELS];
    /* number of floats of a sample's target; 0: the set has no float targets */
    int64_t target_width;
    /* true: `mean` and `std` are applied to inputs */
    bool has_stats;
    /* number of values in mean and std: 0, 1 or channels */
    int stats_count;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* factor on raw values: an input of the model is (raw * scale - mean) / std */
    float scale;
    /* tokens. vocab: size of the vocabulary; context: number of tokens of a sample
     * (model.context) */
    int64_t vocab, context;
    /* tables: ids is (N,F), or it is a flat list of ids. For a flat list, id_first (N*F+1) has the
     * index in the list at which the ids of each field of each sample begin */
    DataArray ids, id_first;
    /* tables. fields: number F of fields of ids, 0: there are no ids; ids_per_sample_max: largest
     * number of ids of a sample */
    int64_t fields, ids_per_sample_max;
    /* tables: the members of DataIds */
    uint64_t id_limit, field_first_hash, vocabulary_hash;
    DataColumns columns;
    /* sets of boxes: the arrays that box_array_info describes; ndim 0: the set does not have the
     * array */
    DataArray box[BOX_ARRAYS];
    /* sets of boxes: largest number of boxes of a picture, without boxes around groups */
    int64_t box_most;
    /* sets of fields: variables, files, samples */
    FieldSet field_set;
    /* tokenizer: path of the tokenizer that made the tokens; tokenizer_hash: its identity
     * (data/tokenizer.h); "": unknown */
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[TOKENIZER_IDENTITY];
} DataSet;

/* The samples of a kind of data set. In this and in the next enum, the value 0 means that the
 * description of a kind does not set the member, which is an error. */
typedef enum DataSamples {
    X_UNSET,
    /* images, which data.augment may change */
    X_IMAGES,
    X_TOKENS,
    /* fields, (C,H,W) */
    X_FIELDS,
    /* rows of numbers */
    X_ROWS,
} DataSamples;
/* The labels or targets of a kind of data set. */
typedef enum DataLabels {
    LABELS_UNSET,
    /* the array y */
    LABELS_IN_Y,
    /* the label of a token is the next token, so no labels are stored, and the loss has a row for
     * each token */
    LABELS_NEXT_TOKEN,
    /* boxes with classes (data/boxes.h); there is no y */
    LABELS_BOXES,
    /* fields, (C,H,W) */
    LABELS_FIELDS,
} DataLabels;
/* The facts about a kind of data set that readers and the model need. */
typedef struct DataKindInfo {
    /* value of the root attribute `kind` of files */
    const char *name;
    /* name of the array with the samples in files that weft has written */
    const char *array;
    /* Returns the shape of `samples` samples as the model takes them. */
    Shape (*shape)(const DataSet *set, int64_t samples);
    DataSamples x;
    DataLabels labels;
} DataKindInfo;
/* data_kind returns the description of the set's kind, data_kind_info the description of `kind`;
 * both are static. */
const DataKindInfo *data_kind(const DataSet *set);
const DataKindInfo *data_kind_info(DataKind kind);
/* Return whether the samples of the set are images, are tokens, have boxes as labels, or are
 * fields. */
static inline bool data_has_images(const DataSet *set)
{
    return data_kind(set)->x == X_IMAGES;
}
static inline bool data_has_tokens(const DataSet *set)
{
    return data_kind(set)->x == X_TOKENS;
}
static inline bool data_has_boxes(const DataSet *set)
{
    return data_kind(set)->labels == LABELS_BOXES;
}
static inline bool data_has_fields(const DataSet *set)
{
    return data_kind(set)->x == X_FIELDS;
}
/* Returns ERR_BUG, with the name of the member, if the description of a kind lacks a member. */
Status data_kind_check(const DataKindInfo *kind);
/* Checks the constant tables of the module: kinds of data set, formats of boxes, kinds of flow.
 * ERR_BUG, with the names of the row and of the member: a row lacks a member. */
Status data_tables_check(void);
/* Returns the DataKind with this name; -1: unknown. */
int data_kind_find(const char *name);
/* Returns the target of data.variables that has labels, borrowed; NULL: none has. */
const ConfigVariable *data_label_target(const Config *config);
/* Returns true if each pixel of the samples' targets has a label. */
bool data_has_label_fields(const DataSet *set);
/* Returns the number of labels of a sample in MicroBatch.labels: one for each token or pixel, else
 * one; 0 for targets and boxes. */
int64_t data_labels_per_sample(const DataSet *set);

/* Opens the set in the file `path`, or in several files, whose paths are separated by line breaks.
 * config NULL: the keys have their defaults. Reads and checks metadata, such as shapes, and indexes
 * of pictures, ids and boxes; data_set_check_labels reads the labels. Reads labels or tokens only
 * if neither a file nor config gives the number of classes or tokens. Messages name the file and
 * what to do. ERR_NOINPUT: a file is missing. ERR_DATA: a file is no HDF5 file, truncated or empty,
 * or has a wrong shape. ERR_CONFIG: a key contradicts the file. Release with data_set_fini. */
Status data_set_open(DataSet *set, const Config *config, const char *path);
/* Frees the block of an opened set. A set of zeros has no block; copies of the struct borrow the
 * block of the original. */
void data_set_fini(DataSet *set);
/* Sets *copy to a copy of the set that has its own copy of the block. Release with
 * data_set_fini. */
void data_set_copy(DataSet *copy, const DataSet *set);
/* Returns the block of a set of fields, borrowed, and sets *bytes to its size; NULL and 0: the set
 * is of another kind. */
void *data_set_block(const DataSet *set, size_t *bytes);
/* Completes a copy of the struct of an opened set. block: a copy of the opened set's block, which
 * *set then owns. */
void data_set_give_block(DataSet *set, void *block);
/* data_set_files returns the number of a set's files; data_set_path returns the path of file i,
 * borrowed. */
int data_set_files(const DataSet *set);
const char *data_set_path(const DataSet *set, int i);
/* Returns the bytes that an epoch reads from the set's files; 0: a file does not exist. For a file
 * of fields it counts the uncompressed size of the variables in use, or the size of the file if
 * that is less. It multiplies the sum by the fraction of frames that are selected, and by the
 * fraction of the area that patches cover. */
double data_set_file_bytes(const DataSet *set);
/* Writes the size and a hash of the set's file (file_describe) to `out`, which has `room` bytes.
 * For several files it writes their number, and a hash over the descriptions of at most 64 files,
 * spread evenly. */
void data_set_describe(const DataSet *set, char *out, size_t room);
/* Sets *file to a set that consists only of file i of a set of several files. */
void data_set_file(const DataSet *set, int i, DataSet *file);
/* Returns the meaning of a table's ids. */
DataIds data_set_ids(const DataSet *set);
/* Returns true if equal ids mean the same in both sets. An unknown value matches every value. */
bool data_ids_match(DataIds set, DataIds model);
/* Returns true if the columns of both tables were transformed and scaled in the same way. An
 * unknown way matches every way. */
bool data_scaling_matches(const DataColumns *a, const DataColumns *b);
/* Compares the columns of the set `set` with those of the set `like`. ERR_DATA: names of columns,
 * or facts about fields (data_fields_differ), are known in both sets and differ; the message has
 * the first difference. Warns if the columns were transformed or scaled differently, and logs if
 * the vocabulary of only one set is known. */
Status data_columns_check(const DataSet *set, const DataSet *like);
/* A fact about the numbers of fields that two sets do not share (fields/field_meaning.c). */
typedef struct FieldDifference {
    /* subject: subject of the fact, such as a variable; fact: the fact in both sets; "": unknown */
    char subject[FIELD_NAME + 24], fact[2][160];
    /* advice for the user; a constant */
    const char *advice;
} FieldDifference;
/* Compares the units and levels of variables, the time between frames if offsets of data.window are
 * in steps, and the order of rows and columns of two sets of fields. Finds the first fact that is
 * known in both and differs; if `unknown` is true, the first one that is known in only one. Returns
 * false if there is none. */
bool data_fields_differ(const DataColumns *a, const DataColumns *b, bool unknown,
                        FieldDifference *difference);
/* Writes a fact as words, such as "u in m s-1". side: 0 for set a, 1 for set b. */
void data_fields_difference_text(const FieldDifference *difference, int side, char *text,
                                 size_t bytes);
/* Logs the first fact that is known in only one of two sets. now, then: columns of the two sets;
 * path, other: names of the two sets. */
void data_fields_log_unknown(const char *path, const DataColumns *now, const char *other,
                             const DataColumns *then);
/* Reads all of the set once and checks it. ERR_DATA: a file is truncated, a picture is damaged, a
 * label has no class, an id or a token is out of range, or a value is not finite. classes: number
 * of classes; 0: the number that the set has. */
Status data_set_check(const DataSet *set, int64_t classes);
/* Writes a fingerprint of the set's content. It depends on shapes, types and values, but not on
 * paths, names of arrays or the way in which arrays are stored. An example: "200x1x28x28 uint8,
 * labels 200 int32, xxh3-1 0123456789abcdef". The hash covers all labels, 4,096 samples spread
 * evenly (at most 256 of a set of fields), mean and deviation; fingerprint.c says which bytes. A
 * change in other samples may go unnoticed. */
enum { DATA_FINGERPRINT = 256 };
Status data_set_fingerprint(const DataSet *set, char text[DATA_FINGERPRINT]);
/* Sets layout[i], for each file i of the set, to a hash of the way in which the file stores its
 * arrays: offsets and sizes of the arrays, and of some of their chunks. If the hash of a file has
 * changed since a reader opened it, that reader reads wrong bytes. Also sets the offsets of arrays
 * in *set to those that the files have now. */
Status data_set_hash_layout(DataSet *set, uint64_t *layout);
/* Returns the state of file i when the set was opened, borrowed, and sets *layout to the hash of
 * its layout then. NULL: sets of this kind do not keep them. */
const struct stat *data_set_stat_at_open(const DataSet *set, int i, uint64_t *layout);
/* Computes fingerprint and layout in a new process, that is from the bytes that the files have now:
 * HDF5 caches parts of a file that is open in this process. ERR_IO: a file cannot be read, or the
 * process cannot be started. Other errors: as from data_set_open. */
Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT], uint64_t *layout);
/* Returns true if the fingerprint was made by the rule of this version of weft. Fingerprints of
 * other rules cannot be compared. */
bool data_fingerprint_known(const char *text);
/* Prints a description of the set: `weft data info`. */
Status data_set_print(const DataSet *set, FILE *out, bool json);
/* Checks that the size of the model's input is known. ERR_CONFIG: pictures differ in size, and no
 * key gives a size. */
Status data_set_check_size(const DataSet *set, const Config *config);
/* Keeps only the frames of a set of fields between the times of data.train_time, or of
 * data.test_time if `test` is true, and only the samples that keep all their frames. Does nothing
 * if the key is not set, or to a set of another kind. Call it before data_set_take_patch.
 * ERR_CONFIG, with the key: a time is no date of the calendar, no sample remains, or frames have no
 * times. */
Status data_set_select_times(DataSet *set, const Config *config, bool test);
/* Files that did not join a set that grows. With this list, the log names a file once, and again
 * only after the file has changed. The caller owns it. */
typedef struct DataLeftOut DataLeftOut;
DataLeftOut *data_left_out_new(void);
void data_left_out_free(DataLeftOut **list);
/* Returns true if one of the paths, which are separated by line breaks, is a pattern. */
bool data_paths_have_pattern(const char *paths);
/* Looks for complete files that data.train names or matches, and that the set of fields `set` does
 * not have yet. *added: number of such files. If there are any, *next is the set of all files,
 * opened as data.train, without mean and deviation. Files that are not complete are added to the
 * list, and the log names them. The same holds for files that differ from the set's first file;
 * these are looked for only if all files together cannot be opened as one set. Errors: as from
 * data_set_open. */
Status data_set_extend(DataSet *next, const DataSet *set, const Config *config, DataLeftOut *list,
                       int *added);
/* data_set_list_files returns a text with a line "PATH<tab>SIZE AND HASH" for each file
 * (file_describe). data_listed_paths returns the paths in such a text, separated by line breaks.
 * The caller owns both results. */
char *data_set_list_files(const DataSet *set);
char *data_listed_paths(const char *list);
/* Makes each sample a patch of the size data.patch: one that is cut out at a random place or, if
 * `tiles` is true, one of the tiles that cover the fields. Does nothing if the key is not set.
 * ERR_CONFIG, with the key: the set has no fields, fields are smaller than a patch, or the grids of
 * inputs and targets cannot be cut in the same way. */
Status data_set_take_patch(DataSet *set, const Config *config, bool tiles);
/* Returns the number of tiles that cover the fields of a sample; 1: samples are not tiles. */
int64_t data_tiles(const DataSet *set);
/* Makes each sample a whole field again. */
void data_set_drop_patch(DataSet *set);
/* Returns the frame of a sample. If samples are tiles, sets *row and *column to the place in the
 * whole fields at which the sample's targets begin; if not, to 0. */
int64_t data_sample_place(const DataSet *set, int64_t sample, int64_t *row, int64_t *column);
/* Returns the shape of one micro-batch of inputs. */
Shape data_set_shape(const DataSet *set, int64_t micro_batch);
/* Returns the number of tokens of a sample (model.context); config NULL: the default. */
int64_t data_context(const Config *config);
/* Logs a warning that a function of this module has returned, and frees it. Does nothing if line is
 * NULL. */
void data_warn(char *line);

#endif
