/* A data set: its metadata, opened and checked. One rank opens and checks it; the others receive
 * the DataSet by train_bcast_set. Each reader and each loader opens the files on its own rank. */
#ifndef WEFT_DATA_SET_H
#define WEFT_DATA_SET_H

#include "config.h"
#include "data/array.h"
#include "data/boxes.h"
#include "data/class_names.h"
#include "data/fields.h"
#include "data/tokenizer.h"
#include "tensor.h"

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
/* DATA_CHANNELS: largest number of values of mean and std; DATA_PATH, DATA_TOKENIZER: bytes of a
 * path, and of a tokenizer's path, with the final zero */
enum { DATA_CHANNELS = 256, DATA_PATH = 1024, DATA_TOKENIZER = 256 };
/* The fields of a DataArray that differ between the files of a set. rows: dim[0]. */
typedef struct DataFileArray {
    int64_t rows, offset, chunk_rows;
} DataFileArray;
/* Map from a file's labels to classes: entries first to first + count - 1 of DataSet.class_of;
 * count 0: a label is its class. */
typedef struct LabelMap {
    int first, count;
} LabelMap;
/* One file of a set of several files. */
typedef struct DataFile {
    char path[DATA_PATH];
    /* number in the set of this file's first sample; number of samples in this file */
    int64_t first, samples;
    DataFileArray x, y, index, orient, ids, id_first;
    LabelMap map;
    /* number of classes that the file itself lists or gives; 0: unknown */
    int64_t listed_classes;
} DataFile;
/* largest number of files of a set */
enum { DATA_FILES = 64 };
/* number of entries of DataSet.class_of; entry of a label that has no class */
enum { DATA_LABELS = 1 << 15, DATA_NO_CLASS = UINT16_MAX };
/* Identity of a table's ids: two sets with equal values number their ids in the same way. */
typedef struct DataIds {
    /* ids are below rows; 0: unbounded */
    uint64_t rows;
    /* hash of the first id of each field; hash of the vocabularies' words; 0: unknown */
    uint64_t field_first_hash, vocabulary_hash;
} DataIds;
/* bytes of DataColumns.lines */
enum { DATA_COLUMN_LINES = 2048 };
/* Hashes of the names of a table's columns and fields, and of the transforms, scales, means and
 * deviations that its import applied to columns; 0: unknown. */
typedef struct DataColumns {
    uint64_t names, scaling;
    /* the first names, one per line, for messages; of a set of fields its variables and their
     * units (fields/field_units.c); "": unknown */
    char lines[DATA_COLUMN_LINES];
} DataColumns;
/* A data set's metadata: plain bytes without handles, and the block of a set of fields, which
 * data_set_fini frees. N: samples. */
typedef struct DataSet {
    /* path of the file; of the first file if there are several */
    char path[DATA_PATH];
    DataKind kind;
    int64_t samples;
    /* samples; labels or targets (token sets have no y) */
    DataArray x, y;
    /* encoded: true if x holds the bytes of all picture files, one after the other, and index (N+1)
     * the offset of each; a decoded picture has 3 channels. oriented: true if each picture is
     * rotated or mirrored after decoding, by the EXIF orientation in orient (N). */
    bool encoded, oriented;
    DataArray index, orient;
    /* How the import treated pictures; pictures from other sources need the same treatment. turned:
     * true if rotated by their EXIF orientation, encoded pictures when they are read. bicubic: true
     * if resized with IMAGE_BICUBIC. */
    bool turned, bicubic;
    /* number of files of a set of several files; 0: the set is one file */
    int file_count;
    DataFile file[DATA_FILES];
    /* shape of a sample as the model takes it; vectors: channels = D, height = width = 1 */
    int64_t channels, height, width;
    /* size of stored images; 0: images differ in size */
    int64_t stored_height, stored_width;
    /* true: stored images are (N,H,W,C); false: (N,C,H,W) */
    bool channels_last;
    /* model.classes, the number that the file gives, or 1 + the largest label; tokens: vocab; 0:
     * float targets */
    int64_t classes;
    /* Number of classes that the file itself lists or gives; labels beyond it are errors; 0:
     * unknown. */
    int64_t listed_classes;
    /* A label's class is label - label_base, then mapped by map; in a set of several files by the
     * file's map. */
    int64_t label_base;
    LabelMap map;
    uint16_t class_of[DATA_LABELS];
    /* float targets: width of a target, K */
    int64_t target_width;
    /* true: mean and std below are applied to inputs */
    bool has_stats;
    /* number of values in mean and std: 0, 1 or channels */
    int stats_count;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* input = (raw * scale - mean) / std */
    float scale;
    /* tokens: size of the vocabulary, and tokens of a sample (T, model.context) */
    int64_t vocab, context;
    /* Tables: ids is (N,F); or ids is a flat list, and id_first (N*F+1) has the index in this list
     * of the first id of each field of each sample. fields: F, 0: no ids. id_most: largest number
     * of ids of a sample. id_rows: ids are below it, 0: unbounded. The hashes are those of
     * DataIds. */
    DataArray ids, id_first;
    int64_t fields, id_most;
    uint64_t id_rows, field_first_hash, vocabulary_hash;
    DataColumns columns;
    /* Sets of boxes: arrays of box_array_info; ndim 0: the set does not have it. */
    DataArray box[BOX_ARRAYS];
    /* largest number of boxes of a picture, without those around groups */
    int64_t box_most;
    /* sets of fields: variables, files, samples */
    FieldSet field_set;
    /* path and identity (data/tokenizer.h) of the tokenizer of the tokens; "": unknown */
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[TOKENIZER_IDENTITY];
} DataSet;

/* A kind of data set: what readers and the model need to know about it. */
typedef struct DataKindInfo {
    /* value of the file's root attribute `kind` */
    const char *name;
    /* name of the array with the samples in weft's own files */
    const char *array;
    /* Returns the shape of `samples` samples as the model takes them. */
    Shape (*shape)(const DataSet *set, int64_t samples);
    /* true: the label of a token is the next token, so no labels are stored, and the loss has a row
     * for each token */
    bool next_token;
    /* true: samples are images, which data.augment may change */
    bool is_image;
    /* true: the labels of a sample are boxes with classes (data/boxes.h), and there is no y */
    bool has_boxes;
    /* true: samples and targets are fields, (C,H,W) */
    bool has_fields;
} DataKindInfo;
/* data_kind returns the description of the set's kind, data_kind_info the description of `kind`;
 * both are static. */
const DataKindInfo *data_kind(const DataSet *set);
const DataKindInfo *data_kind_info(DataKind kind);
/* Returns the DataKind with this name; -1: unknown. */
int data_kind_find(const char *name);
/* Returns the target of data.variables that has labels, borrowed; NULL: none has. */
const ConfigVariable *data_label_target(const Config *config);
/* Does each pixel of the samples' targets have a label? */
bool data_has_label_fields(const DataSet *set);
/* Returns the number of labels of a sample in Batch.labels: one for each token or pixel, else one;
 * 0 for targets and boxes. */
int64_t data_labels_per_sample(const DataSet *set);

/* Opens path, or several paths separated by line breaks as one set; config NULL: defaults. Reads
 * and checks metadata, such as shapes, and indices of pictures, ids and boxes;
 * data_set_check_labels reads the labels. Reads labels or tokens only if neither file nor config
 * gives the number of classes or tokens. Errors name the file and what to do: ERR_NOINPUT: missing;
 * ERR_DATA: not HDF5, truncated, empty, wrong shape; ERR_CONFIG: a key contradicts the file. */
Status data_set_open(DataSet *set, const Config *config, const char *path);
/* Frees the block that an opened set owns; a set of zeros owns nothing. Copies of the struct borrow
 * the block. */
void data_set_fini(DataSet *set);
/* Sets *copy to a copy of the set with a block of its own. Release with data_set_fini. */
void data_set_copy(DataSet *copy, const DataSet *set);
/* Returns the block of a set of fields, borrowed, and sets *bytes to its size; NULL and 0: the set
 * is of another kind. */
void *data_set_block(const DataSet *set, size_t *bytes);
/* Completes a copy of the struct of an opened set: `block` is a copy of that set's block, which the
 * copy then owns. */
void data_set_give_block(DataSet *set, void *block);
/* Return the number of a set's files, and the path of file i, borrowed. */
int data_set_files(const DataSet *set);
const char *data_set_path(const DataSet *set, int i);
/* Returns the bytes that an epoch reads from the set's files. Of a file of fields it counts the
 * uncompressed size of the variables in use, or the file's size if that is less, and only the
 * selected frames and the area of patches. 0: a file is not there. */
double data_set_file_bytes(const DataSet *set);
/* Writes to out, of `room` bytes, size and hash of the set's file (file_describe); for several
 * files their number, and a hash over the descriptions of at most 64 files, spread evenly. */
void data_set_describe(const DataSet *set, char *out, size_t room);
/* Sets *file to file i of a set of several files, as a set of one file. */
void data_set_file(const DataSet *set, int i, DataSet *file);
DataIds data_set_ids(const DataSet *set);
/* Do equal ids mean the same in both sets? An unknown value matches every value. */
bool data_ids_match(DataIds set, DataIds model);
/* Were the columns of both tables transformed and scaled in the same way? An unknown way matches
 * every way. */
bool data_scaling_matches(const DataColumns *a, const DataColumns *b);
/* Compares the columns of set with those of `like`. ERR_DATA, with the first difference, if the
 * names of both, or the units of fields, are known and differ. Warns if the columns were
 * transformed or scaled differently, and logs if the vocabulary of only one is known. */
Status data_columns_check(const DataSet *set, const DataSet *like);
/* A variable of fields and its units in two sets. */
typedef struct DataUnitsPair {
    char variable[FIELD_NAME], units[2][80];
} DataUnitsPair;
/* Finds the first variable whose units differ in two sets of fields; if `unknown` is set, the first
 * variable whose units only one of the two has. Returns false if there is none. */
bool data_units_differ(const DataColumns *a, const DataColumns *b, bool unknown,
                       DataUnitsPair *pair);
/* Logs the first variable whose units only one of two sets has. path, other: names of the sets. */
void data_units_log_unknown(const char *path, const DataColumns *now, const char *other,
                            const DataColumns *then);
/* Reads all of the set once and checks it. ERR_DATA: a file is truncated, a picture is broken, a
 * label has no class, an id or a token is out of range, or a value is not finite. classes: number
 * of classes; 0: the set's own number. */
Status data_set_check(const DataSet *set, int64_t classes);
/* Writes a fingerprint of the set's content, which depends on shapes, types and values but not on
 * paths, names of arrays or storage: "200x1x28x28 uint8, labels 200 int32, xxh3-1
 * 0123456789abcdef". The hash covers all labels, 4,096 samples spread evenly (at most 256 of a set
 * of fields), mean and deviation (fingerprint.c says which bytes), so a change in the other samples
 * may go unnoticed. */
enum { DATA_FINGERPRINT = 256 };
Status data_set_fingerprint(const DataSet *set, char text[DATA_FINGERPRINT]);
/* Sets layout[i], for each file i of the set, to a hash of how the file stores its arrays: offsets
 * and sizes of the arrays, and of some of their chunks. If the hash of a file has changed since a
 * reader opened it, that reader reads wrong bytes. Also changes the offsets of arrays in *set to
 * those that the files have now. */
Status data_set_hash_layout(DataSet *set, uint64_t *layout);
/* Returns the state of file i when the set was opened, borrowed, and the hash of its layout then;
 * NULL: sets of this kind do not keep them. */
const struct stat *data_set_opened(const DataSet *set, int i, uint64_t *layout);
/* Computes fingerprint and layout in a new process, and so from the bytes that the files have now:
 * HDF5 caches parts of a file that is open in this process. ERR_IO: also if the process cannot be
 * started. */
Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT], uint64_t *layout);
/* Was this fingerprint made by the rule of this version of weft? Fingerprints of other rules cannot
 * be compared. */
bool data_fingerprint_known(const char *text);
/* Prints the description of `weft data info`. */
Status data_set_print(const DataSet *set, FILE *out, bool json);
/* ERR_CONFIG: pictures differ in size, and no key gives the size that the model takes. */
Status data_set_check_size(const DataSet *set, const Config *config);
/* Keeps the frames of a set of fields between the times of data.train_time, or of data.test_time if
 * `test` is set, and the samples whose frames all remain; does nothing without this key, or to a
 * set of another kind. Call it before data_set_take_patch. ERR_CONFIG, with key: a time is no date
 * of the calendar, no sample remains, or frames have no times. */
Status data_set_select_times(DataSet *set, const Config *config, bool test);
/* Files that did not join a set that grows. By this list, the log names a file once, and again only
 * after the file has changed. Owned by the caller. */
typedef struct DataLeftOut DataLeftOut;
DataLeftOut *data_left_out_new(void);
void data_left_out_free(DataLeftOut **list);
/* Is one of the paths, which are separated by line breaks, a pattern? */
bool data_paths_have_pattern(const char *paths);
/* Looks for complete files that data.train names or matches, and that a set of fields does not have
 * yet. *added: number of such files; if there are any, *next is the set of all files, opened as
 * data.train, with no mean and deviation. Files that are not complete are added to the list, and
 * the log names them; so are files that are unlike the set's first file, which are looked for only
 * if all files together cannot be opened as one set. ERR_*, as data_set_open. */
Status data_set_extend(DataSet *next, const DataSet *set, const Config *config, DataLeftOut *list,
                       int *added);
/* data_set_list_files returns a line "PATH<tab>SIZE AND HASH" for each file (file_describe);
 * data_listed_paths returns the paths in such a list, separated by line breaks. Owner of both: the
 * caller. */
char *data_set_list_files(const DataSet *set);
char *data_listed_paths(const char *list);
/* Makes each sample a patch, by data.patch: one that is cut out at a random place, or, if `tiles`
 * is set, one of the tiles that cover the fields. Does nothing without this key. ERR_CONFIG, with
 * key: the set has no fields, fields are smaller than a patch, or the grids of inputs and targets
 * cannot be cut alike. */
Status data_set_take_patch(DataSet *set, const Config *config, bool tiles);
/* Returns the number of tiles that cover the fields of a sample; 1: samples are not tiles. */
int64_t data_tiles(const DataSet *set);
/* Makes samples whole fields again. */
void data_set_drop_patch(DataSet *set);
/* Returns the frame of a sample, and sets *row and *column to the place in the whole fields at
 * which the sample's targets begin, if samples are tiles; to 0 if samples are whole fields. */
int64_t data_sample_place(const DataSet *set, int64_t sample, int64_t *row, int64_t *column);
/* Returns the shape of one micro-batch of inputs. */
Shape data_set_shape(const DataSet *set, int64_t micro_batch);
/* Returns the number of tokens of a sample (model.context); config NULL: the default. */
int64_t data_context(const Config *config);
/* Logs a warning that a function of this module has returned, and frees it; NULL: does nothing. */
void data_warn(char *line);

#endif
