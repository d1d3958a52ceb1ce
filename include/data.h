/* Data sets in HDF5 files, the order of samples, augmentation, the loader whose threads prepare
 * micro-batches in the background. One rank opens the files; the others receive the DataSet, which
 * is plain bytes, by world_bcast. data/import.h makes data sets. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include "config.h"
#include "data/tokenizer.h"
#include "image.h"
#include "tensor.h"

typedef enum DataKind { DATA_IMAGE, DATA_TOKENS, DATA_TABLE, DATA_KINDS } DataKind;
#define ELEMENTS(W)                                                                                \
    W(ELEM_U8, "uint8")                                                                            \
    W(ELEM_I8, "int8")                                                                             \
    W(ELEM_U16, "uint16")                                                                          \
    W(ELEM_I16, "int16")                                                                           \
    W(ELEM_U32, "uint32")                                                                          \
    W(ELEM_I32, "int32")                                                                           \
    W(ELEM_U64, "uint64")                                                                          \
    W(ELEM_I64, "int64")                                                                           \
    W(ELEM_F32, "float32")                                                                         \
    W(ELEM_F64, "float64")
typedef enum ElementType { ELEMENTS(LIST_CONSTANT) } ElementType;

/* Values of the keys data.layout (order of dimensions of stored images), data.augment (a bit each),
 * data.filter and data.shuffle. */
#define LAYOUT_WORDS(W)  W(LAYOUT_NCHW, "nchw") W(LAYOUT_NHWC, "nhwc")
#define AUGMENT_WORDS(W) W(AUGMENT_FLIP, "flip") W(AUGMENT_CROP, "crop") W(AUGMENT_CUTOUT, "cutout")
#define FILTER_WORDS(W)  W(FILTER_BILINEAR, "bilinear") W(FILTER_BICUBIC, "bicubic")
#define SHUFFLE_WORDS(W) W(SHUFFLE_AUTO, "auto") W(SHUFFLE_FULL, "full") W(SHUFFLE_CHUNKS, "chunks")
typedef enum DataLayout { LAYOUT_WORDS(LIST_CONSTANT) } DataLayout;
/* data.filter, with the numbers of ImageFilter */
enum { FILTER_WORDS(LIST_CONSTANT) };
typedef enum DataShuffle { SHUFFLE_WORDS(LIST_CONSTANT) } DataShuffle;
enum { AUGMENT_WORDS(LIST_NUMBER) };
enum { AUGMENT_WORDS(LIST_BIT) };
enum { DATA_WORDS = 4 };
extern const ConfigWords data_words[DATA_WORDS];

/* largest number of ids of a sample */
enum { DATA_IDS_MOST = 1 << 20 };
enum { DATA_CHANNELS = 64, DATA_PATH = 1024, DATA_TOKENIZER = 256 };
const char *element_name(ElementType type);
/* One HDF5 data set (array), described so that all ranks can read it. */
typedef struct DataArray {
    char name[256];
    ElementType type;
    bool big_endian;
    int ndim;
    int64_t dim[SHAPE_DIMS];
    /* byte offset in the file of contiguous data; -1: read through HDF5 (chunked, compressed, or
     * the other byte order) */
    int64_t offset;
    int64_t sample_bytes;
    /* samples per chunk; 0: not chunked */
    int64_t chunk_rows;
    /* description for messages: "contiguous", "chunked 64x1x28x28, deflate" */
    char storage[120];
} DataArray;
/* Location of an array's samples in one file of a set of several files. */
typedef struct DataPlace {
    int64_t rows, offset, chunk_rows;
} DataPlace;
/* Map from a file's labels to classes: a range of entries of DataSet.class_of; count 0: a label is
 * its class. */
typedef struct LabelMap {
    int first, count;
} LabelMap;
typedef struct DataFile {
    char path[DATA_PATH];
    /* number in the set of this file's first sample, and its number of samples */
    int64_t first, samples;
    DataPlace x, y, index, orient, ids, id_first;
    LabelMap map;
    /* number of classes by the file's own list or count; 0: unknown */
    int64_t named;
} DataFile;
enum { DATA_FILES = 64 };
/* number of entries of DataSet.class_of; value of an entry that stands for no class */
enum { DATA_LABELS = 1 << 15, DATA_NO_CLASS = UINT16_MAX };
/* Identity of a table's ids. Ids are below rows (0: unbounded). begins and words are hashes of each
 * field's first id and of the vocabularies' words; 0: unknown. */
typedef struct DataIds {
    uint64_t rows, begins, words;
} DataIds;
enum { DATA_COLUMN_LINES = 2048 };
/* Hashes of the names of a table's columns and fields, and of the transforms, scales, means and
 * deviations that its import applied to columns; 0: unknown. */
typedef struct DataColumns {
    uint64_t names, scaling;
    /* the first names, one per line, for messages; "": unknown */
    char lines[DATA_COLUMN_LINES];
} DataColumns;
/* A data set's metadata. Plain bytes without handles: may be broadcast. */
typedef struct DataSet {
    /* path of the set; the first file's where there are several */
    char path[DATA_PATH];
    DataKind kind;
    int64_t samples;
    DataArray x, y;
    /* Encoded pictures: x holds the bytes of all picture files, one behind the other, and index
     * (N+1) the offset of each; decoded they have 3 channels. oriented: each picture is rotated
     * or mirrored after decoding as its entry in orient (N) says. */
    bool encoded, oriented;
    DataArray index, orient;
    /* Treatment of the pictures by the import, which pictures from other sources then need, too:
     * rotation by their EXIF orientation; resizing with IMAGE_BICUBIC. */
    bool turned, bicubic;
    /* number of files of a set of several files, which differ only in where samples lie; 0: one
     * file */
    int file_count;
    DataFile file[DATA_FILES];
    /* shape of a sample as the model takes it; vectors: channels = D, height = width = 1 */
    int64_t channels, height, width;
    /* size of stored images; 0: images differ in size */
    int64_t stored_height, stored_width;
    bool channels_last;
    /* 1 + the largest label, or the classes attribute; 0: float targets */
    int64_t classes;
    /* Number of classes by the file's own list or count, 0: unknown; labels beyond it are errors. A
     * label's class is label - label_base, then mapped by map, or by the file's map where there are
     * several files. */
    int64_t named, label_base;
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
    /* Tables: ids is (N,F); or a flat list, with id_first (N*F+1) giving the first id of each field
     * of each sample. fields: F, 0: no ids. id_most: largest number of ids of a sample. id_rows:
     * ids are below it, 0: unbounded. id_begins, id_words: as in DataIds. */
    DataArray ids, id_first;
    int64_t fields, id_most;
    uint64_t id_rows, id_begins, id_words;
    DataColumns columns;
    /* path and identity (data/tokenizer.h) of the tokenizer that made the tokens; "": unknown */
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
    /* labels are the next tokens: no labels are stored, and rows of the loss are tokens */
    bool next_token;
    /* data.augment applies */
    bool augments;
} DataKindInfo;
const DataKindInfo *data_kind(const DataSet *set);
const DataKindInfo *data_kind_of(DataKind kind);
/* Returns the DataKind with this name; -1: unknown. */
int data_kind_find(const char *name);

/* Opens path, or several paths separated by line breaks as one set; reads and checks metadata only
 * (shapes agree; for labels see data_set_check_labels). Errors name the file and the cure:
 * ERR_NOINPUT missing, ERR_DATA not HDF5 / truncated / empty / wrong shape. */
Status data_set_open(DataSet *set, const Config *config, const char *path);
/* Describes file i of a set of several files as a set by itself. */
void data_set_file(const DataSet *set, int i, DataSet *file);
DataIds data_set_ids(const DataSet *set);
/* Do the set's ids mean the same as the ids that the model was trained with, as far as is known? */
bool data_ids_fit(DataIds set, DataIds model);
/* Were columns transformed and scaled alike, as far as is known? */
bool data_scaling_fits(const DataColumns *a, const DataColumns *b);
/* ERR_DATA, with the first difference, if the names of columns are known and differ. Warns if the
 * columns were transformed or scaled differently. */
Status data_columns_check(const DataSet *set, const DataSet *like);
/* Classes that occur in a data set's labels. */
enum { DATA_CLASSES_SEEN = 1 << 16 };
typedef struct LabelUse {
    /* the least and the largest class with samples, and the largest one below that, -1: none */
    int64_t least, most, second;
    /* number of classes below DATA_CLASSES_SEEN that have samples, and a bit for each of them */
    int64_t count;
    uint64_t seen[DATA_CLASSES_SEEN / 64];
} LabelUse;
/* Reads all labels once; ERR_DATA: a label is not a class. Does nothing for tokens and targets. */
Status data_set_check_labels(const DataSet *set);
/* data_set_check_labels that also sets *use to the classes that have samples; tokens and targets
 * have none. */
Status data_set_count_labels(const DataSet *set, LabelUse *use);
/* Returns a warning, with the key or command that helps, about odd labels (no label 0, or one far
 * above the others) in a set whose classes have no names and are not given by model.classes; about
 * targets (use may be NULL) that look like classes. NULL: nothing is odd. Owner: the caller. */
char *data_set_odd_labels(const DataSet *set, const Config *config, const LabelUse *use);
/* Statistics of finite values. values: their number. */
typedef struct DataRange {
    int64_t values;
    double least, most, mean, deviation;
} DataRange;
/* Statistics of the finite values of one column of a table. typical is the geometric mean of the
 * sizes of values that are not 0, and filled is their number. */
typedef struct ColumnRange {
    float least, most, mean, deviation, typical, filled;
} ColumnRange;
enum { COLUMN_RANGE_NUMBERS = 6, DATA_COLUMNS_RANGED = 1 << 16 };
/* Ranges of a set's values as the model takes them, with mean and deviation applied, and of its
 * targets. No values: samples are tokens or encoded; no targets. Release with data_ranges_fini. */
typedef struct DataRanges {
    DataRange inputs, targets;
    /* a table's columns, owned; columns 0: no table, more than DATA_COLUMNS_RANGED, or unknown */
    int64_t columns;
    ColumnRange *column;
} DataRanges;
/* Measures up to 256 samples, spread evenly: values times the set's scale. ERR_IO. */
Status data_set_range(const DataSet *set, DataRange *range);
Status data_set_ranges(const DataSet *set, DataRanges *ranges);
/* Measures rows of values as the model takes them; set describes them. */
DataRanges data_rows_ranges(const DataSet *set, const float *value, int64_t rows);
DataRange data_values_range(const float *value, int64_t count);
DataRanges data_ranges_copy(const DataRanges *ranges);
void data_ranges_fini(DataRanges *ranges);
/* Compare the ranges of values and of targets of two sets of one kind, or of a set's files with its
 * first file. *line says how they differ; NULL: they are alike. Owner of *line: the caller. */
Status data_ranges_compare(const DataSet *set, const DataSet *like, char **line);
Status data_files_compare(const DataSet *set, char **line);
/* Compares the ranges of the samples in path, which are like those of set, with the ranges of
 * `like`, the words for data that are not at hand. Returns a line, or NULL: they are alike, or one
 * is not known. Owner: the caller. */
char *data_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                             const char *like, const DataRanges *then);
/* Logs a warning that such a function has returned, if any, and frees it. */
void data_warn(char *line);
/* Returns a line if labels of set are 1, 2, ... and those of like 0, 1, ..., and the two are
 * matched by number; else NULL. Owner: the caller. */
char *data_labels_shifted(const DataSet *set, const LabelUse *use, const DataSet *like,
                          const LabelUse *like_use);
/* Does the same for the files of a set, each compared with the first. Owner of *line: the
 * caller. */
Status data_files_shifted(const DataSet *set, char **line);
/* Reads everything once and finds truncation, labels without a class, and NaN. classes 0: the set's
 * own number of classes. */
Status data_set_check(const DataSet *set, int64_t classes);
/* Writes a fingerprint of the set's content, which depends on shapes, types and values but not on
 * paths, names of arrays or storage: "200x1x28x28 uint8, labels 200 int32, xxh3-1
 * 0123456789abcdef". The hash covers all labels, 4,096 samples spread evenly, mean and deviation
 * (fingerprint.c says which bytes), so a change in the other samples may go unnoticed. Not
 * collective. */
enum { DATA_FINGERPRINT = 256 };
Status data_set_fingerprint(const DataSet *set, char text[DATA_FINGERPRINT]);
/* Writes a hash for each file of the set: the addresses of its arrays and their chunks. Another
 * hash for a file that was written to means that an open reader would read wrong bytes. Also
 * changes the offsets of arrays in *set to those that the files have now. */
Status data_set_layout(DataSet *set, uint64_t layout[DATA_FILES]);
/* Does the same as both with the bytes that the files have now. It reads in a new process, because
 * HDF5 caches parts of an open file. ERR_IO, too, if the process cannot be started. */
Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT],
                                 uint64_t layout[DATA_FILES]);
/* Was this fingerprint made by the rule of this version of weft? Others cannot be compared. */
bool data_fingerprint_known(const char *text);
Status data_set_print(const DataSet *set, FILE *out, bool json);
/* ERR_CONFIG: pictures differ in size, and no key says what size to resize them to. */
Status data_set_sized(const DataSet *set, const Config *config);
/* Returns the shape of one micro-batch of inputs. */
Shape data_set_shape(const DataSet *set, int64_t micro_batch);

/* Does the file begin with HDF5's signature? */
bool data_is_hdf5(const char *path);
/* HDF5 is not thread-safe, and a loader's thread may be reading a compressed file through it: hold
 * this recursive lock during every call of HDF5. Also disables HDF5's own error printing in this
 * thread. */
void hdf5_lock(void);
/* Calls isolated_begin with the HDF5 library already initialised, so that the processes it forks
 * need not do it. Call before MPI and before any thread, in a process that will open files. */
void hdf5_begin(void);
void hdf5_unlock(void);
/* Returns limits for a process in which HDF5 unpacks `bytes` bytes of an untrusted file and keeps
 * up to `kept_bytes` of them in memory besides its chunks; the caller sets the other fields. */
IsolatedJob hdf5_unpacking(int64_t bytes, int64_t kept_bytes);
/* ERR_DATA, with the command that copies all into one file, if an open HDF5 data set lies outside
 * `file` (both hid_t): behind an external link, in external storage, or in the files of a virtual
 * data set. Reading it by its offset would give other bytes. what: its name, for the message. Call
 * under hdf5_lock. */
Status hdf5_in_one_file(int64_t file, int64_t dataset, const char *path, const char *what);
/* Creates a property list (hid_t) for opening objects without following external links. *met
 * becomes true if such a link is found; hdf5_link_fail is then its ERR_DATA. The caller closes it
 * with H5Pclose. Call under hdf5_lock. */
int64_t hdf5_access_inside(bool *elsewhere);
Status hdf5_link_fail(const char *path, const char *what);

/* Reads samples by number. Several threads may use one reader at once, except for opening and
 * freeing it. */
typedef struct Reader Reader;
Status reader_new(Reader **reader, const DataSet *set);
void reader_free(Reader **reader);
/* Reads one sample: raw x (T tokens for token sets) in this machine's byte order, and the label or
 * target_width floats. x, label and target may each be NULL. ERR_IO: the read failed; ERR_DATA,
 * with file and sample: the label is out of range. */
Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target);
/* Reads the bytes of a sample's picture file (encoded sets) into *bytes, a buffer of *room bytes
 * that grows; the caller frees it with mem_free. *count: bytes read; *orientation: EXIF
 * orientation, 1 if the set is not oriented. ERR_DATA: the index points outside the data. */
Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *room,
                          size_t *count, int *orientation);
/* Reads one sample's ids (room for id_most): those of field f are ids[first[f]] to ids[first[f + 1]
 * - 1]; first has fields + 1 entries. ERR_DATA, with file, sample and field: an id is not below
 * id_rows, the index does not rise or points outside, or there are more than id_most ids. */
Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first);
/* Prefetches a mapped sample that will be read soon into the CPU's cache (random reads from a
 * cached file become about twice as fast). Never fails, never waits. */
void reader_hint(const Reader *reader, int64_t sample);

/* Returns the sample at this position of an epoch: a keyed permutation of 0..n-1 (Feistel network
 * with cycle walking) in O(1). */
int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position);
/* Does the same for files in chunks of `chunk` samples: shuffles the chunks, then the samples
 * within windows of `window` samples, so that a reader has few chunks in use at a time. O(1). */
int64_t sampler_in_chunks(int64_t n, int64_t chunk, int64_t window, uint64_t seed, int64_t epoch,
                          int64_t position);
/* How a set's epochs are shuffled: samples in a chunk and in a window; chunk 0: no chunks, a full
 * shuffle. */
typedef struct ShufflePlan {
    int64_t chunk, window;
} ShufflePlan;
ShufflePlan data_shuffle(const DataSet *set, const Config *config);
/* Returns the sample that training reads at this position of an epoch. */
int64_t data_sample_at(const DataSet *set, const Config *config, int64_t epoch, int64_t position);

/* Converts a raw sample to float NCHW: augmented, scaled, normalised; for sets whose pictures are
 * not resampled. Random choices are keyed by (seed, epoch, sample). */
void augment_sample(const DataSet *set, const Config *config, bool training, int64_t epoch,
                    int64_t sample, const void *raw, float *out);

/* Do the set's images need decoding, resampling, cropping or colour changes (PictureWork), or is
 * augment_sample enough? config may be NULL. */
bool data_resamples(const DataSet *set, const Config *config);
/* Turns pictures into model inputs as the keys of `data` say: resamples and crops a part of the
 * picture, in training with random choices keyed by (seed, epoch, sample). Scratch memory of one
 * thread; borrows set and config. */
typedef struct PictureWork PictureWork;
PictureWork *picture_work_new(const DataSet *set, const Config *config);
void picture_work_free(PictureWork **work);
/* Prepares a picture from another source as evaluation does. picture: any size, upright. out: float
 * (C,H,W), scaled and normalised by the set's mean and deviation. For a set of decoded images it is
 * first resized to their size (short side resampled, centre cropped), as the import does. ERR_DATA,
 * with name: it is too narrow for that. */
Status picture_evaluate(PictureWork *work, const Image *picture, const char *name, float *out);
/* Prepares a sample of a set for which data_resamples is true. ERR_DATA with file and sample. */
Status picture_sample(PictureWork *work, Reader *reader, bool training, int64_t epoch,
                      int64_t sample, float *out);
/* Approximate bytes of a PictureWork for pictures of usual size, for the plan of memory. */
size_t picture_work_bytes(const DataSet *set);

/* One micro-batch, of N rows; owned by the loader, valid until it is released. */
typedef struct Batch {
    /* (N,C,H,W), contiguous; rows from `rows` on are zero */
    float *x;
    /* token sets: (N,T), and x is NULL; else NULL */
    int32_t *tokens;
    /* N classes, or (N,T) next tokens; or NULL */
    int32_t *labels;
    /* mixed images: labels of the other image of each pair, with weight 1 - label_share; or NULL */
    int32_t *labels_other;
    float label_share;
    /* (N, target_width); or NULL */
    float *targets;
    /* Sets with ids, else NULL: field f of row r has ids[id_first[r * F + f]] to ids[id_first[r * F
     * + f + 1] - 1]; rows from `rows` on have no ids. id_first has N * F + 1 entries. */
    uint64_t *ids;
    int32_t *id_first;
    /* bag layers' view of the ids, indexed by OpSpec.bag; NULL: not looked up yet. Borrowed, not
     * the loader's. */
    const BagRun *bag;
    /* N sample numbers */
    int64_t *sample;
    /* number of real samples; may be 0 */
    int rows;
    /* step within the epoch */
    int64_t step, epoch;
    /* number of the micro-batch in the step, over all replicas; those from M on have no rows */
    int micro;
} Batch;

/* Tables of text as input for a model that was trained on an imported table: converts records with
 * that set's schema, vocabularies, means and deviations. A label column is not needed. */
typedef struct TableText TableText;
/* schema: path of a YAML file; NULL: the schema stored in the set. Owner: the caller. ERR_NOINPUT,
 * ERR_CONFIG; ERR_DATA: the set stores no schema, or was imported with another one. */
Status table_text_new(TableText **text, const DataSet *set, const char *schema);
void table_text_free(TableText **text);
/* Does conversion depend on the set's content, by a vocabulary or a mean? */
bool table_text_learnt(const TableText *text);
/* Passes the records of a file (plain or gzip), in order and on this thread, to take as batches of
 * up to `most` samples. Returns take's error; ERR_NOINPUT; or, after all earlier records have been
 * passed, ERR_DATA with file, line and column. */
typedef Status TableTextTake(void *user, const Batch *batch);
Status table_text_read(const TableText *text, const char *path, int most, TableTextTake *take,
                       void *user);

typedef struct LoaderPlan {
    /* samples of a step over all replicas, and of a micro-batch; batch is a multiple of
     * micro_batch */
    int64_t batch, micro_batch;
    /* this replica's first micro-batch of the step and their number; those from M on are empty */
    int micro_first, micro_count;
    /* number of other replicas' micro-batches between two of this replica's */
    int micro_gap;
    /* first step: its epoch, and its number within it */
    int64_t epoch, step;
    /* shuffle, augment and repeat for ever; else one epoch in order, without augmentation */
    bool training;
    /* this rank does not need inputs (x, ids, tokens), or labels and targets: they are NULL */
    bool no_x, no_y;
    /* micro-batches kept ready, at least 2 */
    int slots;
    /* backend whose copies can reach the micro-batches' memory; borrowed; NULL: ordinary memory */
    Backend *backend;
    /* number of threads; 0: one */
    int workers;
    /* training: added to the positions of the first epoch, because earlier steps had another batch
     * size */
    int64_t shift;
} LoaderPlan;
/* Threads that prepare micro-batches ahead; the result does not depend on their number. Row r of
 * micro-batch m in step s has position s*batch + m*micro_batch + r (+ shift in the first epoch);
 * positions >= n are padding. An epoch has ceil(n/batch) steps. Training continues into the next
 * epoch for ever. */
typedef struct Loader Loader;
/* Returns the number of threads of a loader of this set on a rank with `cores` cores: data.workers,
 * or its default. */
int data_workers(const DataSet *set, const Config *config, int cores);
/* Bytes of Batch.ids and id_first for `samples` samples; 0: the set has no ids. */
size_t data_ids_bytes(const DataSet *set, int64_t samples);
/* Are a training micro-batch's images mixed in pairs (Batch.labels_other)? */
bool data_mixes(const Config *config);
Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan);
void loader_free(Loader **loader);
/* Returns the next micro-batch, waiting if necessary (*wait_s, which may be NULL, grows by the time
 * waited); *batch is NULL at the end of an evaluation pass. It is valid until loader_release; at
 * most slots - 1 may be in use when the next is requested. Returns errors of the loader's
 * threads. */
Status loader_next(Loader *loader, const Batch **batch, double *wait_s);
/* Releases the oldest micro-batch in use, so that a thread may fill it again. */
void loader_release(Loader *loader);

/* Names of classes in the order of the labels; there may be fewer than classes, or none. Names of a
 * table's columns and fields are stored in the same way. */
typedef struct ClassNames {
    int64_t count;
    /* owned */
    char **name, *text;
} ClassNames;
/* Reads the class names of the data set at path, whichever program made it. Release with
 * class_names_free. ERR_DATA, ERR_IO. */
Status class_names_read(ClassNames *names, const char *path);
/* Reads another list of names: "columns", "fields". */
Status class_names_read_of(ClassNames *names, const char *path, const char *list);
/* Splits text, of `bytes` bytes, into names that end at each byte `end` and at the last byte. Takes
 * ownership of text and replaces its control characters by '?'. */
void class_names_take(ClassNames *names, char *text, size_t bytes, char end);
void class_names_free(ClassNames *names);
/* Reads the names of a set's classes: the first file's, followed by names that only later files
 * have. Release with class_names_free. ERR_DATA: a file has a name twice. */
Status data_set_class_names(const DataSet *set, ClassNames *names);
/* Maps the labels of set, which has the classes `file_names`, to those of `classes_of` ("a.h5"), by
 * name, if one of the two lists contains all names of the other. *line tells the user; NULL: the
 * lists are equal. Samples of classes that only `file_names` has are then errors of
 * data_set_check_labels. ERR_DATA, with the first names that differ: each list has a name that the
 * other lacks. A list that is empty, or is 0, 1, 2, ... and does not fit, names nothing: labels
 * keep their numbers, and *line says so, or is NULL if neither list names anything. Owner of *line:
 * the caller. */
Status data_set_use_classes(DataSet *set, const ClassNames *file_names, const ClassNames *classes,
                            const char *classes_of, char **line);
/* Appends to `all` the names of `more` that it lacks, in order, if one of the two lists contains
 * all names of the other. */
void class_names_join(ClassNames *all, const ClassNames *more);
/* Are the names just the numbers 0, 1, 2, ...? Importers write such lists where they know no
 * names. */
bool class_names_count(const ClassNames *names);
/* Returns the names, one per line. Owner: the caller. */
char *class_names_lines(const ClassNames *names);
/* Returns the name of class i, or writes its number to `number` and returns that. */
const char *class_name(const ClassNames *names, int64_t i, char number[24]);

/* tokens of a sample (model.context); config may be NULL */
int64_t data_context(const Config *config);
int64_t data_steps_per_epoch(int64_t samples, int64_t batch);

#endif
