/* Data sets in HDF5 files: opening and checking them, the order of samples, augmentation, and the
 * loader, whose threads prepare micro-batches in the background. One rank opens the files; the
 * others receive the DataSet, which is plain bytes, by world_bcast. data/import.h declares the
 * imports, which write data sets. No function here is collective. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include "config.h"
#include "data/array.h"
#include "data/boxes.h"
#include "data/class_names.h"
#include "data/fields.h"
#include "data/tokenizer.h"
#include "image.h"
#include "tensor.h"

typedef enum DataKind {
    DATA_IMAGE,
    DATA_TOKENS,
    DATA_TABLE,
    DATA_BOXES,
    DATA_FIELDS,
    DATA_KINDS
} DataKind;
/* Values of the keys data.layout (order of dimensions of stored images), data.augment (a bit each),
 * data.filter and data.shuffle. */
#define LAYOUT_WORDS(W)  W(LAYOUT_NCHW, "nchw") W(LAYOUT_NHWC, "nhwc")
#define AUGMENT_WORDS(W) W(AUGMENT_FLIP, "flip") W(AUGMENT_CROP, "crop") W(AUGMENT_CUTOUT, "cutout")
#define FILTER_WORDS(W)  W(FILTER_BILINEAR, "bilinear") W(FILTER_BICUBIC, "bicubic")
#define SHUFFLE_WORDS(W) W(SHUFFLE_AUTO, "auto") W(SHUFFLE_FULL, "full") W(SHUFFLE_CHUNKS, "chunks")
typedef enum DataLayout { LAYOUT_WORDS(LIST_CONSTANT) } DataLayout;
/* The values of data.filter are those of ImageFilter. */
enum { FILTER_WORDS(LIST_CONSTANT) };
typedef enum DataShuffle { SHUFFLE_WORDS(LIST_CONSTANT) } DataShuffle;
enum { AUGMENT_WORDS(LIST_NUMBER) };
enum { AUGMENT_WORDS(LIST_BIT) };
enum { DATA_WORDS = 5 };
extern const ConfigWords data_words[DATA_WORDS];

/* largest number of ids of a sample */
enum { DATA_SAMPLE_IDS_MAX = 1 << 20 };
/* DATA_CHANNELS: largest number of values of mean and std; the others: bytes of a path, and of a
 * tokenizer's path, with the final zero */
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
    /* the first names, one per line, for messages; "": unknown */
    char lines[DATA_COLUMN_LINES];
} DataColumns;
/* A data set's metadata: plain bytes without handles, which may be broadcast. N: samples. */
typedef struct DataSet {
    /* path of the file; of the first file if there are several */
    char path[DATA_PATH];
    DataKind kind;
    int64_t samples;
    /* samples; labels or targets (token sets have no y) */
    DataArray x, y;
    /* Encoded pictures: x holds the bytes of all picture files, one behind the other, and index
     * (N+1) the offset of each; a decoded picture has 3 channels. oriented: each picture is rotated
     * or mirrored after decoding, by the EXIF orientation in orient (N). */
    bool encoded, oriented;
    DataArray index, orient;
    /* How the import treated pictures; pictures from other sources need the same treatment. turned:
     * rotated by their EXIF orientation. bicubic: resized with IMAGE_BICUBIC. */
    bool turned, bicubic;
    /* number of files of a set of several files; 0: the set is one file */
    int file_count;
    DataFile file[DATA_FILES];
    /* shape of a sample as the model takes it; vectors: channels = D, height = width = 1 */
    int64_t channels, height, width;
    /* size of stored images; 0: images differ in size */
    int64_t stored_height, stored_width;
    /* stored images are (N,H,W,C); else (N,C,H,W) */
    bool channels_last;
    /* model.classes, the number that the file gives, or 1 + the largest label; 0: float targets */
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
    bool has_stats;
    /* number of values in mean and std: 0, 1 or channels */
    int stats_count;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* input = (raw * scale - mean) / std */
    float scale;
    /* tokens: size of the vocabulary, and tokens of a sample (T, model.context) */
    int64_t vocab, context;
    /* Tables: ids is (N,F); or a flat list, and id_first (N*F+1) holds the index in it of the first
     * id of each field of each sample. fields: F, 0: no ids. id_most: largest number of ids of a
     * sample. id_rows: ids are below it, 0: unbounded. The hashes are those of DataIds. */
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
    /* The label of a token is the next token: no labels are stored, and the loss has a row for each
     * token. */
    bool next_token;
    /* samples are images, which data.augment may change */
    bool is_image;
    /* the labels of a sample are boxes with classes (data/boxes.h); there is no y */
    bool has_boxes;
    /* samples and targets are fields, (C,H,W) */
    bool has_fields;
} DataKindInfo;
/* Returns the row of the set's kind; data_kind_info returns that of `kind`. Static. */
const DataKindInfo *data_kind(const DataSet *set);
/* Labels of a sample in Batch.labels: one for each token, else one; 0 for targets and boxes. */
int64_t data_labels_per_sample(const DataSet *set);
const DataKindInfo *data_kind_info(DataKind kind);
/* Returns the DataKind with this name; -1: unknown. */
int data_kind_find(const char *name);

/* Opens path, or several paths separated by line breaks as one set; config NULL: defaults. Reads
 * and checks only metadata, such as shapes; data_set_check_labels reads the labels. Reads labels or
 * tokens only if neither file nor config gives the number of classes or tokens. Errors name the
 * file and what to do: ERR_NOINPUT: missing; ERR_DATA: not HDF5, truncated, empty, wrong shape;
 * ERR_CONFIG: a key contradicts the file. */
Status data_set_open(DataSet *set, const Config *config, const char *path);
/* Return the number of a set's files, and the path of file i, borrowed. */
int data_set_files(const DataSet *set);
const char *data_set_path(const DataSet *set, int i);
/* Sets *file to file i of a set of several files, as a set of one file. */
void data_set_file(const DataSet *set, int i, DataSet *file);
DataIds data_set_ids(const DataSet *set);
/* Do equal ids of the two mean the same? Unknown values match all others. */
bool data_ids_match(DataIds set, DataIds model);
/* Were the columns of both transformed and scaled in the same way? An unknown way matches all
 * others. */
bool data_scaling_matches(const DataColumns *a, const DataColumns *b);
/* Compares the columns of set with those of `like`. ERR_DATA, with the first difference, if the
 * names of both are known and differ. Warns if the columns were transformed or scaled differently,
 * and logs if the vocabulary of only one is known. */
Status data_columns_check(const DataSet *set, const DataSet *like);
/* Classes that occur in a data set's labels. */
enum { DATA_CLASSES_SEEN = 1 << 16 };
typedef struct LabelUse {
    /* the least and the largest class with samples, and the largest one below that; -1: none */
    int64_t least, most, second;
    /* number of classes below DATA_CLASSES_SEEN that have samples, and a bit for each of them */
    int64_t count;
    uint64_t seen[DATA_CLASSES_SEEN / 64];
} LabelUse;
/* Reads all labels once; ERR_DATA: a label has no class. Does nothing for tokens and targets. */
Status data_set_check_labels(const DataSet *set);
/* Does the same, and sets *use to the classes that have samples; tokens and targets have none. */
Status data_set_count_labels(const DataSet *set, LabelUse *use);
/* Returns a warning, with the key or command that helps, about labels that are probably wrong (no
 * label 0, one far above the others, or large gaps), unless classes have names or model.classes is
 * set; in a set of targets, whose use may be NULL, about targets that are probably classes. NULL:
 * no warning. Owner: the caller. */
char *data_set_label_warning(const DataSet *set, const Config *config, const LabelUse *use);
/* Statistics of the finite values of an array. values: number of finite values. */
typedef struct DataRange {
    int64_t values;
    double least, most, mean, deviation;
} DataRange;
/* Statistics of the finite values of one column of a table. filled: number of values other than 0.
 * typical: geometric mean of the absolute values of those. */
typedef struct ColumnRange {
    float least, most, mean, deviation, typical, filled;
} ColumnRange;
/* COLUMN_RANGE_NUMBERS: floats of a ColumnRange; DATA_COLUMNS_RANGED: largest number of columns
 * that are measured. */
enum { COLUMN_RANGE_NUMBERS = 6, DATA_COLUMNS_RANGED = 1 << 16 };
/* Ranges of a set's values as the model takes them, with mean and deviation applied, and of its
 * targets. inputs.values is 0 for tokens and encoded pictures, targets.values for a set without
 * targets. Release with data_ranges_fini. */
typedef struct DataRanges {
    DataRange inputs, targets;
    /* a table's columns, owned; columns 0: no table, more than DATA_COLUMNS_RANGED, or unknown */
    int64_t columns;
    ColumnRange *column;
} DataRanges;
/* Read up to 256 samples, spread evenly. The first measures values times the set's scale, without
 * mean and deviation. ERR_IO, ERR_DATA. */
Status data_set_measure_scaled(const DataSet *set, DataRange *range);
Status data_set_measure(const DataSet *set, DataRanges *ranges);
/* Returns the ranges of rows of values as the model takes them, (rows, set->channels). */
DataRanges data_rows_ranges(const DataSet *set, const float *value, int64_t rows);
DataRange data_values_range(const float *value, int64_t count);
DataRanges data_ranges_copy(const DataRanges *ranges);
void data_ranges_fini(DataRanges *ranges);
/* Compare the ranges of values and of targets of two sets of one kind, or of a set's files with its
 * first file. *line: a warning about the first difference; NULL: the ranges are similar. Owner of
 * *line: the caller. */
Status data_sets_compare_ranges(const DataSet *set, const DataSet *like, char **line);
Status data_files_compare_ranges(const DataSet *set, char **line);
/* Compares the ranges of the samples in path, which have the shape of set's, with ranges measured
 * earlier. like: describes the data of like_ranges in the warning, such as "the training set".
 * Returns a warning; NULL: the ranges are similar, or one is unknown. Owner: the caller. */
char *data_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                             const char *like, const DataRanges *like_ranges);
/* Logs a warning that one of the functions here has returned, and frees it; NULL: does nothing. */
void data_warn(char *line);
/* Returns a warning if labels of set are 1, 2, ... and those of like 0, 1, ..., and labels are
 * matched by number; else NULL. Owner: the caller. */
char *data_label_shift_warning(const DataSet *set, const LabelUse *use, const DataSet *like,
                               const LabelUse *like_use);
/* Does the same for each file of a set, compared with its first file. Owner of *line: the
 * caller. */
Status data_files_compare_labels(const DataSet *set, char **line);
/* Reads all of the set once; ERR_DATA: truncation, a label without a class, or a value that is not
 * finite. classes: number of classes; 0: the set's own. */
Status data_set_check(const DataSet *set, int64_t classes);
/* Writes a fingerprint of the set's content, which depends on shapes, types and values but not on
 * paths, names of arrays or storage: "200x1x28x28 uint8, labels 200 int32, xxh3-1
 * 0123456789abcdef". The hash covers all labels, 4,096 samples spread evenly, mean and deviation
 * (fingerprint.c says which bytes), so a change in the other samples may go unnoticed. */
enum { DATA_FINGERPRINT = 256 };
Status data_set_fingerprint(const DataSet *set, char text[DATA_FINGERPRINT]);
/* Sets layout[i] to a hash of the addresses of the arrays of file i and of their chunks. If the
 * hash of a file has changed since a reader opened it, that reader reads wrong bytes. Also changes
 * the offsets of arrays in *set to those that the files have now. */
Status data_set_hash_layout(DataSet *set, uint64_t layout[DATA_FILES]);
/* Computes fingerprint and layout in a new process, and so from the bytes that the files have now:
 * HDF5 caches parts of a file that is open in this process. ERR_IO: also if the process cannot be
 * started. */
Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT],
                                 uint64_t layout[DATA_FILES]);
/* Was this fingerprint made by the rule of this version of weft? Others cannot be compared. */
bool data_fingerprint_known(const char *text);
/* Prints the description of `weft data info`. */
Status data_set_print(const DataSet *set, FILE *out, bool json);
/* ERR_CONFIG: pictures differ in size, and no key gives the size that the model takes. */
Status data_set_check_size(const DataSet *set, const Config *config);
/* Keeps the frames of a set of fields between the times of data.train_time, or of data.test_time
 * if `test` is set, and the samples whose frames all remain; does nothing without this key and
 * to other sets. ERR_CONFIG, with key: no date of the calendar, no sample remains, frames have
 * no times. */
Status data_set_select_times(DataSet *set, const Config *config, bool test);
/* Mean and deviation of variables of a set of fields, over all frames of its segments, and of the
 * changes that it predicts. They are measured in blocks of frames, which ranks may divide; neither
 * threads nor ranks change a bit. data_fields_rows lists the rows that the set needs.
 * data_fields_measure_blocks writes the moments of blocks first .. first + count - 1 to moments,
 * FieldMoments[count][rows->count]; data_fields_join computes means and deviations from those of
 * all blocks; data_fields_use gives them to the set. data_fields_measure does all of it. ERR_IO;
 * ERR_DATA: a value is infinite, or a variable has none. */
void data_fields_rows(const DataSet *set, FieldStats *rows);
int64_t data_fields_blocks(const DataSet *set);
Status data_fields_measure_blocks(const DataSet *set, const FieldStats *rows, int threads,
                                  int64_t first, int64_t count, FieldMoments *moments);
void data_fields_join(FieldStats *stats, const FieldMoments *moments, int64_t blocks);
Status data_fields_use(DataSet *set, const FieldStats *stats);
Status data_fields_measure(DataSet *set, int threads);
/* Write and read the file of data.stats; saving replaces it. Loading finds the set's rows. ERR_IO,
 * ERR_NOINPUT, ERR_CONFIG (broken YAML); ERR_DATA: a row is missing, or units differ. */
Status data_fields_stats_save(const DataSet *set, const FieldStats *stats, const char *path);
Status data_fields_stats_load(const DataSet *set, FieldStats *stats, const char *path);
/* Gives the inputs and targets of a rollout's later steps the mean and deviation of the same fields
 * of its first step. */
void data_fields_share_stats(DataSet *set);
/* Returns the shape of one micro-batch of inputs. */
Shape data_set_shape(const DataSet *set, int64_t micro_batch);

/* Does the file begin with HDF5's signature? */
bool data_is_hdf5(const char *path);
/* HDF5 is not thread-safe, and a loader's thread may be reading a compressed file through it: hold
 * this recursive lock during every call of HDF5. Also disables HDF5's own error printing in this
 * thread. */
void hdf5_lock(void);
void hdf5_unlock(void);
/* Initialises HDF5 and then calls isolated_begin, so that processes forked later need not
 * initialise it. Call before MPI and before any thread, in a process that will open files. */
void hdf5_begin(void);
/* Returns an IsolatedJob with limits for a process in which HDF5 unpacks `bytes` bytes of an
 * untrusted file and keeps up to `kept_bytes` of them in memory; the caller sets the other
 * fields. */
IsolatedJob hdf5_unpack_limits(int64_t bytes, int64_t kept_bytes);
/* ERR_DATA, with the command that copies all into one file, if the bytes of an open HDF5 data set
 * are not in `file` (both hid_t): behind an external link, in external storage, or in the files of
 * a virtual data set. Reading it by its offset would give other bytes. what: its name, for the
 * message. Call under hdf5_lock. */
Status hdf5_check_in_one_file(int64_t file, int64_t dataset, const char *path, const char *what);
/* Returns a property list (hid_t) for opening objects without following external links. If an
 * object is behind such a link, opening it fails and *is_external becomes true; report it with
 * hdf5_link_fail (ERR_DATA). is_external must live as long as the list, which the caller closes
 * with H5Pclose. Call under hdf5_lock. */
int64_t hdf5_access_without_links(bool *is_external);
Status hdf5_link_fail(const char *path, const char *what);

/* Reads samples by number. Several threads may read with one reader at once. */
typedef struct Reader Reader;
Status reader_new(Reader **reader, const DataSet *set);
void reader_free(Reader **reader);
/* Reads one sample: raw x (T tokens for token sets) in this machine's byte order, and the label's
 * class or target_width floats. x, label and target may each be NULL. ERR_IO: the read failed;
 * ERR_DATA, with file and sample: the file has become shorter, or the label has no class. */
Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target);
/* Reads the bytes of a sample's picture file (encoded sets) into *bytes, a buffer of *capacity
 * bytes, which is replaced by a larger one if necessary; the caller frees it with mem_free. *count:
 * bytes read; *orientation: EXIF orientation, 1 if the set is not oriented. ERR_DATA: the index
 * points outside the data. */
Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *capacity,
                          size_t *count, int *orientation);
/* Reads one sample's ids: those of field f are ids[first[f]] to ids[first[f + 1] - 1]. ids has
 * space for id_most, first for fields + 1 entries. ERR_DATA, with file, sample and field: an id is
 * not below id_rows, the index does not rise or points outside, or there are more than id_most
 * ids. */
Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first);
/* Prefetches a mapped sample into the CPU's cache, which makes random reads from a cached file
 * about twice as fast. Samples that are not mapped are ignored. Never waits. */
void reader_prefetch(const Reader *reader, int64_t sample);

/* Returns the sample at this position of an epoch of n samples, by a keyed permutation of 0..n-1
 * (Feistel network with cycle walking). O(1). */
int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position);
/* Does the same for files in chunks of `chunk` samples: shuffles the chunks, then the samples
 * within each window of `window` samples, so that a reader needs only a window's chunks at a time.
 * O(1). */
int64_t sampler_in_chunks(int64_t n, int64_t chunk, int64_t window, uint64_t seed, int64_t epoch,
                          int64_t position);
/* How a set's epochs are shuffled: arguments of sampler_in_chunks; chunk 0: sampler_at is used. */
typedef struct ShufflePlan {
    int64_t chunk, window;
} ShufflePlan;
ShufflePlan data_shuffle_plan(const DataSet *set, const Config *config);
/* Returns the sample that training reads at this position of an epoch. */
int64_t data_sample_at(const DataSet *set, const Config *config, int64_t epoch, int64_t position);

/* Converts a raw sample to float (C,H,W): augmented (if training), scaled, normalised. Only for
 * sets for which data_needs_picture_work is false. Random choices are keyed by (seed, epoch,
 * sample). */
void augment_sample(const DataSet *set, const Config *config, bool training, int64_t epoch,
                    int64_t sample, const void *raw, float *out);

/* Do the set's images need decoding, resampling, cropping or colour changes? Then PictureWork
 * prepares them, otherwise augment_sample. config may be NULL. */
bool data_needs_picture_work(const DataSet *set, const Config *config);
/* Decoder, resampler and scratch memory of one thread, which converts pictures to model inputs by
 * the keys of `data`: resamples and crops a part of each, in training with random choices keyed by
 * (seed, epoch, sample). Borrows set and config. */
typedef struct PictureWork PictureWork;
PictureWork *picture_work_new(const DataSet *set, const Config *config);
void picture_work_free(PictureWork **work);
/* Prepares a picture from another source as evaluation prepares the set's. picture: any size,
 * upright. out: float (C,H,W), scaled and normalised by the set's mean and deviation. For a set of
 * decoded images it is first resized to their size (short side resampled, centre cropped; of boxes:
 * whole), as the import does. ERR_DATA, with name: it is too narrow for that. */
Status picture_prepare(PictureWork *work, const Image *picture, const char *name, float *out);
/* Prepares a sample of a set for which data_needs_picture_work is true. ERR_DATA with file and
 * sample. */
Status picture_prepare_sample(PictureWork *work, Reader *reader, bool training, int64_t epoch,
                              int64_t sample, float *out);
/* Reads the whole picture of a sample of a set of boxes, upright and without the margins of a
 * stored square. *picture: borrowed until the next call with this work. ERR_IO; ERR_DATA: it is
 * damaged, or its boxes belong to a picture of another size. */
Status picture_read(PictureWork *work, Reader *reader, const DataBoxes *boxes, int64_t sample,
                    const Image **picture);
/* Returns the approximate bytes of a PictureWork, for the memory plan; encoded pictures are assumed
 * to be of usual size. */
size_t picture_work_bytes(const DataSet *set);

/* One micro-batch, of N rows; owned by the loader, valid until it is released. */
typedef struct Batch {
    /* (N,C,H,W), contiguous; rows from `rows` on are zero */
    float *x;
    /* token sets: (N,T), and x is NULL; else NULL */
    int32_t *tokens;
    /* N classes, or (N,T) next tokens; or NULL */
    int32_t *labels;
    /* Mixed images: labels of the other image of each pair, or NULL. In the loss, labels have the
     * weight label_share and labels_other 1 - label_share. */
    int32_t *labels_other;
    float label_share;
    /* (N, target_width); or NULL. A target that is NaN is missing. */
    float *targets;
    /* weights of a sample's targets, float[target_width], the same array in all batches; borrowed;
     * NULL: all 1 */
    const float *target_weights;
    /* Sets of boxes, else NULL: sample i has rows box_start[i] to box_start[i + 1] - 1 of box_row,
     * which have BOX_NUMBERS numbers. matches: BoxTargets.normaliser of the global batch; in an
     * evaluation of the whole set. */
    int32_t *box_start;
    float *box_row;
    int64_t *matches;
    /* Sets with ids, else NULL: field f of row r has ids[id_first[r * F + f]] to ids[id_first[r * F
     * + f + 1] - 1]; rows from `rows` on have no ids. id_first has N * F + 1 entries. */
    uint64_t *ids;
    int32_t *id_first;
    /* bag layers' view of the ids, indexed by OpSpec.bag; NULL: not looked up yet. Borrowed; the
     * loader does not set it. */
    const BagRun *bag;
    /* N sample numbers */
    int64_t *sample;
    /* number of real samples; may be 0 */
    int rows;
    /* step within the epoch */
    int64_t step, epoch;
    /* index of the micro-batch in the step, over all replicas; those from batch / micro_batch on
     * have no rows */
    int micro;
} Batch;

/* Converts records of text files to inputs of a model that was trained on an imported table, with
 * that set's schema, vocabularies, means and deviations. A label column is not needed. */
typedef struct TableText TableText;
/* schema: path of a YAML file; NULL: the schema stored in the set. Owner of *text: the caller.
 * ERR_NOINPUT, ERR_CONFIG; ERR_DATA: the set stores no schema, or was imported with another one. */
Status table_text_new(TableText **text, const DataSet *set, const char *schema);
void table_text_free(TableText **text);
/* Does conversion depend on the set's content, by a vocabulary or a mean? */
bool table_text_learnt(const TableText *text);
/* Reads the records of a file (plain or gzip) in order, and calls take, on this thread, for each
 * batch of up to `most` samples. Returns take's error; ERR_NOINPUT; or, after take has been called
 * for all earlier records, ERR_DATA with file, line and column. */
typedef Status TableTextTake(void *user, const Batch *batch);
Status table_text_read(const TableText *text, const char *path, int most, TableTextTake *take,
                       void *user);

typedef struct LoaderPlan {
    /* samples of a step over all replicas, and of a micro-batch; batch is a multiple of
     * micro_batch */
    int64_t batch, micro_batch;
    /* index in the step of this replica's first micro-batch, and number of its micro-batches; those
     * with indices from batch / micro_batch on have no rows */
    int micro_first, micro_count;
    /* their indices, int[micro_count], borrowed until the loader is freed; NULL: consecutive ones
     * from micro_first on */
    const int *micro;
    /* first step: its epoch, and its number within the epoch */
    int64_t epoch, step;
    /* true: shuffles, augments and repeats for ever; false: one epoch in order, not augmented */
    bool training;
    /* this rank needs no inputs (x, ids, tokens), or no labels and targets: they are NULL */
    bool no_x, no_y;
    /* micro-batches kept ready, at least 2 */
    int slots;
    /* backend whose copies can reach the micro-batches' memory; borrowed; NULL: ordinary memory */
    Backend *backend;
    /* number of threads; 0: one */
    int workers;
    /* training: number of samples added to the positions of the first epoch, because its earlier
     * steps had another batch size */
    int64_t shift;
    /* losses for boxes: grids of the loss's inputs, by which matches are counted; levels 0: other
     * losses */
    BoxGrid grid[BOX_LEVELS];
    int levels;
} LoaderPlan;
/* Prepares micro-batches ahead on several threads; the result does not depend on their number. Row
 * r of micro-batch m in step s has position s*batch + m*micro_batch + r in its epoch (+ shift in
 * the first epoch); positions >= n are padding. An epoch has ceil(n/batch) steps. */
typedef struct Loader Loader;
/* Returns the number of threads of a loader of this set on a rank with `cores` cores: data.workers,
 * or its default. */
int data_workers(const DataSet *set, const Config *config, int cores);
/* Returns the bytes of Batch.ids and id_first for `samples` samples; 0: the set has no ids. */
size_t data_ids_bytes(const DataSet *set, int64_t samples);
/* Returns the bytes of the boxes of a training micro-batch: Batch.box_start, box_row and matches;
 * 0: the set has no boxes. */
size_t data_box_bytes(const DataSet *set, const Config *config, int64_t samples);
/* Returns the largest number of boxes of a sample; 0: the set has no boxes. */
int64_t data_box_most(const DataSet *set, const Config *config, bool training);
/* Are the images of a training micro-batch mixed in pairs (Batch.labels_other)? */
bool data_mixes_images(const Config *config);
Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan);
void loader_free(Loader **loader);
/* Sets *batch to the next micro-batch, valid until loader_release; NULL: the end of an evaluation.
 * Waits if necessary, and adds the time waited to *wait_s, which may be NULL. At most slots - 1
 * micro-batches may be in use when the next is requested. Returns errors of the loader's
 * threads. */
Status loader_next(Loader *loader, const Batch **batch, double *wait_s);
/* Releases the oldest micro-batch in use, so that a thread may fill it again. */
void loader_release(Loader *loader);

/* Reads the names of a set's classes: the first file's, followed by names that only later files
 * have. Release with class_names_free. ERR_DATA: a file has a name twice. */
Status data_set_class_names(const DataSet *set, ClassNames *names);
/* Maps the labels of set, whose classes have the names `file_names`, to the classes with the names
 * `classes`, if one of the two lists contains all names of the other. classes_of: owner of
 * `classes`, for messages ("a.h5"). A sample of a class that only `file_names` has is then an error
 * of data_set_check_labels. ERR_DATA, with the first names that differ: each list has a name that
 * the other lacks. If a list is empty, or is 0, 1, 2, ... and does not match the other, labels keep
 * their numbers. *line: a message for the user; NULL: the lists are equal, or neither names
 * classes. Owner of *line: the caller. */
Status data_set_use_classes(DataSet *set, const ClassNames *file_names, const ClassNames *classes,
                            const char *classes_of, char **line);

/* Returns the number of tokens of a sample (model.context); config NULL: the default. */
int64_t data_context(const Config *config);
/* Returns samples / batch, rounded up. */
int64_t data_steps_per_epoch(int64_t samples, int64_t batch);

#endif
