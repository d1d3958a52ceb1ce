/* data: data sets in HDF5, the sampler, augmentation, the loader thread that keeps micro-batches
 * ready, imports. Files are opened by one rank; others get the DataSet by world_bcast (plain
 * bytes). */
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

/* The words of data.layout: how images lie in the file; and of data.augment, a bit each. */
#define LAYOUT_WORDS(W)  W(LAYOUT_NCHW, "nchw") W(LAYOUT_NHWC, "nhwc")
#define AUGMENT_WORDS(W) W(AUGMENT_FLIP, "flip") W(AUGMENT_CROP, "crop") W(AUGMENT_CUTOUT, "cutout")
#define FILTER_WORDS(W)  W(FILTER_BILINEAR, "bilinear") W(FILTER_BICUBIC, "bicubic")
#define SHUFFLE_WORDS(W) W(SHUFFLE_AUTO, "auto") W(SHUFFLE_FULL, "full") W(SHUFFLE_CHUNKS, "chunks")
typedef enum DataLayout { LAYOUT_WORDS(LIST_CONSTANT) } DataLayout;
/* The words of data.filter, as ImageFilter has them; and of data.shuffle. */
enum { FILTER_WORDS(LIST_CONSTANT) };
typedef enum DataShuffle { SHUFFLE_WORDS(LIST_CONSTANT) } DataShuffle;
enum { AUGMENT_WORDS(LIST_NUMBER) };
enum { AUGMENT_WORDS(LIST_BIT) };
enum { DATA_WORDS = 4 };
extern const ConfigWords data_words[DATA_WORDS];

/* ids that a sample may have */
enum { DATA_IDS_MOST = 1 << 20 };
enum { DATA_CHANNELS = 64, DATA_PATH = 1024, DATA_TOKENIZER = 256 };
const char *element_name(ElementType type);
/* one HDF5 data set, as the ranks read it */
typedef struct DataArray {
    char name[256];
    ElementType type;
    bool big_endian;
    int ndim;
    int64_t dim[SHAPE_DIMS];
    /* of the contiguous bytes in the file; -1: chunked or compressed, ask HDF5 */
    int64_t offset;
    int64_t sample_bytes;
    /* samples in a chunk; 0: not chunked */
    int64_t chunk_rows;
    /* "contiguous", "chunked 64x1x28x28, deflate" */
    char storage[120];
} DataArray;
/* Where an array's samples lie in one file of several. */
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
    /* of the set, the number of this file's first sample; and how many it has */
    int64_t first, samples;
    DataPlace x, y, index, orient, ids, id_first;
    LabelMap map;
    /* number of classes that the file itself has; 0: not said */
    int64_t named;
} DataFile;
enum { DATA_FILES = 64 };
/* number of entries of DataSet.class_of; value of an entry that stands for no class */
enum { DATA_LABELS = 1 << 15, DATA_NO_CLASS = UINT16_MAX };
/* What a table's ids stand for: they are below rows, 0: any; hashes of where each field's begin and
 * of the vocabularies' words, 0: not known. */
typedef struct DataIds {
    uint64_t rows, begins, words;
} DataIds;
/* plain bytes: may be broadcast; holds no handle */
typedef struct DataSet {
    /* of the first file, where there are several */
    char path[DATA_PATH];
    DataKind kind;
    int64_t samples;
    DataArray x, y;
    /* Pictures as their files are: x is the bytes of all, one behind the other, index (N+1) where
     * each begins, in decoded form they have 3 channels. oriented: each is turned as `orient` (N)
     * says. */
    bool encoded, oriented;
    DataArray index, orient;
    /* What the import has done with pictures, which has to be done with others, too: turned them as
     * their orientation says; decoded: resized them with IMAGE_BICUBIC. */
    bool turned, bicubic;
    /* 0: a single file; else they are one set, and all but where samples lie is alike */
    int file_count;
    DataFile file[DATA_FILES];
    /* images, as the model takes them; vectors: channels = D, 1, 1 */
    int64_t channels, height, width;
    /* images as they are stored; 0: of many sizes */
    int64_t stored_height, stored_width;
    bool channels_last;
    /* 1 + the largest label, or the classes attribute; 0: float targets */
    int64_t classes;
    /* Number of classes by the file's own list or count, 0: not said; no label goes beyond it. A
     * label is its class after label_base is taken off and map, or with several files each file's,
     * is applied. */
    int64_t named, label_base;
    LabelMap map;
    uint16_t class_of[DATA_LABELS];
    /* float targets: K */
    int64_t target_width;
    bool has_stats;
    /* 0, 1 or channels */
    int stats_count;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* raw value * scale, then (v - mean) / std */
    float scale;
    /* tokens: how many there are; T, tokens of a sample (model.context) */
    int64_t vocab, context;
    /* tables: ids (N,F), or all behind each other with id_first (N*F+1) where each field of each
     * sample begins; fields F, 0: it has none. A sample has id_most ids at most. Ids are below
     * id_rows; 0: any of 64 bits. id_begins, id_words: DataIds'. */
    DataArray ids, id_first;
    int64_t fields, id_most;
    uint64_t id_rows, id_begins, id_words;
    /* which tokenizer made them: where it was, and its hash; "": not known */
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[32];
} DataSet;

/* What a kind of data set is, for all who read or feed it. */
typedef struct DataKindInfo {
    /* The root attribute `kind` of a file. */
    const char *name;
    /* Where its samples lie in a file of weft's own. */
    const char *array;
    /* Of so many samples, as the model takes them. */
    Shape (*shape)(const DataSet *set, int64_t samples);
    /* The labels are the next tokens: there are no others, and rows of the loss are tokens. */
    bool next_token;
    /* data.augment means something. */
    bool augments;
} DataKindInfo;
const DataKindInfo *data_kind(const DataSet *set);
const DataKindInfo *data_kind_of(DataKind kind);
/* The DataKind of that name; -1: there is none. */
int data_kind_find(const char *name);

/* Opens path, or several with a line break between two as one set, reads and checks metadata
 * (shapes agree; labels in range: data_set_check_labels). Errors name the file and the cure:
 * ERR_NOINPUT missing, ERR_DATA not HDF5 / truncated / empty / wrong shape. Only metadata is read.
 */
Status data_set_open(DataSet *set, const Config *config, const char *path);
/* File i of a set of several, as a set of its own. */
void data_set_file(const DataSet *set, int i, DataSet *file);
DataIds data_set_ids(const DataSet *set);
/* Do ids of a set mean what they mean to a model of the other's, as far as it is known? */
bool data_ids_fit(DataIds set, DataIds model);
/* Classes that have samples, by the labels of a data set. */
enum { DATA_CLASSES_SEEN = 1 << 16 };
typedef struct LabelUse {
    /* the least and the largest class with samples, and the largest one below that, -1: none */
    int64_t least, most, second;
    /* number of classes below DATA_CLASSES_SEEN that have samples, and a bit for each of them */
    int64_t count;
    uint64_t seen[DATA_CLASSES_SEEN / 64];
} LabelUse;
/* Reads all labels once: each must be of a class. Nothing to do for tokens and targets. */
Status data_set_check_labels(const DataSet *set);
/* data_set_check_labels that also sets *use to the classes that have samples; tokens and targets
 * have none. */
Status data_set_count_labels(const DataSet *set, LabelUse *use);
/* A warning about odd labels (no label 0, or one far above the others) of a set whose classes have
 * no names and are not counted by model.classes, with the key or command that changes it. NULL:
 * nothing is odd. Owner: the caller. */
char *data_set_odd_labels(const DataSet *set, const Config *config, const LabelUse *use);
/* Values of up to 256 samples, spread evenly, times the set's scale; values 0: there are none, or
 * samples are tokens or encoded. ERR_IO. */
typedef struct DataRange {
    int64_t values;
    double least, most, mean, deviation;
} DataRange;
Status data_set_range(const DataSet *set, DataRange *range);
/* Are values of two sets of one kind alike by their ranges, or those of the files of one set by the
 * first file's? *line says how they differ, or is NULL. Owner of *line: the caller. */
Status data_ranges_compare(const DataSet *set, const DataSet *like, char **line);
Status data_files_compare(const DataSet *set, char **line);
/* A line where labels of a set are 1, 2, ... and those of the other one 0, 1, ..., and both go by
 * number; NULL: they are alike. Owner: the caller. */
char *data_labels_shifted(const DataSet *set, const LabelUse *use, const DataSet *like,
                          const LabelUse *like_use);
/* The same of the files of a set, beside its first one. Owner of *line: the caller. */
Status data_files_shifted(const DataSet *set, char **line);
/* Reads everything once: truncation, labels of no class, NaN. classes 0: the set's own. */
Status data_set_check(const DataSet *set, int64_t classes);
/* What a set holds, wherever it lies, whatever its arrays are called and however they are stored:
 * the same text for the same shapes, types and values, as "200x1x28x28 uint8, labels 200 int32,
 * xxh3-1 0123456789abcdef". The hash is of all labels, of 4,096 samples spread evenly and of mean
 * and deviation (fingerprint.c says which bytes): a sample between them may differ unseen. Not
 * collective. */
enum { DATA_FINGERPRINT = 256 };
Status data_set_fingerprint(const DataSet *set, char text[DATA_FINGERPRINT]);
/* data_set_fingerprint of the bytes that the files have now, in a process of its own: HDF5 keeps
 * parts of a file that a reader has open. ERR_IO, too, where no process can be made. */
Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT]);
/* Was this text made by the rule that this weft knows? Others cannot be compared. */
bool data_fingerprint_known(const char *text);
Status data_set_print(const DataSet *set, FILE *out, bool json);
/* ERR_CONFIG where no key says what size its pictures are brought to. */
Status data_set_sized(const DataSet *set, const Config *config);
/* of one micro-batch */
Shape data_set_shape(const DataSet *set, int64_t micro_batch);

/* Does the file begin as HDF5 does? */
bool data_is_hdf5(const char *path);
/* HDF5 itself is not safe to call from two threads, and a loader's thread may be reading a
 * compressed file through it: whoever calls HDF5 holds this lock (recursive). Also switches HDF5's
 * own error printing off for this thread. */
void hdf5_lock(void);
/* Before MPI and threads, in a process that will open files: apart_begin, with the library ready in
 * the copy. */
void hdf5_begin(void);
void hdf5_unlock(void);
/* Limits of a process in which HDF5 unpacks so many bytes of a stranger's file, `held` of them at a
 * time beside its chunks; the rest is the caller's. */
ApartJob hdf5_unpacking(int64_t bytes, int64_t held);
/* ERR_DATA, with the command that copies it into one file, where an open HDF5 data set lies outside
 * `file` (both hid_t): behind an external link, in external storage, or in the files of a virtual
 * data set. What is read by its offset would be other bytes. what: its name, for the message. Under
 * hdf5_lock. */
Status hdf5_in_one_file(int64_t file, int64_t dataset, const char *path, const char *what);
/* A property list (hid_t) to open objects with: external links are not followed, and *met becomes
 * true where one is met; then hdf5_link_fail is its ERR_DATA. H5Pclose it. Under hdf5_lock. */
int64_t hdf5_access_inside(bool *met);
Status hdf5_link_fail(const char *path, const char *what);

/* Reads samples by number. Several threads may use one reader, but for opening and freeing it. */
typedef struct Reader Reader;
Status reader_new(Reader **reader, const DataSet *set);
void reader_free(Reader **reader);
/* One sample's x (of tokens: T of them), raw, in this machine's byte order, and its y: the label,
 * or target_width floats. Each of x, label and target may be NULL. A failed read is ERR_IO; a label
 * out of range ERR_DATA naming file and sample. */
Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target);
/* Of an encoded set: the bytes of the sample's file into *bytes (owned by the caller, mem_free),
 * which has *room and grows; *count of them; its orientation, 1 where the set is not oriented.
 * ERR_DATA where the index points outside. */
Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *room,
                          size_t *count, int *orientation);
/* Of sets with fields: one sample's ids (room for id_most), those of field f from first[f] on, up
 * to first[f + 1]; first: fields + 1. ERR_DATA with file, sample and field: an id that is not below
 * id_rows, an index that does not rise or points outside, more than id_most. */
Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first);
/* This sample is read soon: brings it nearer where that is cheap (random reads from a cached file
 * get about twice as fast). Never fails, never waits. */
void reader_hint(const Reader *reader, int64_t sample);

/* Sample at position i of epoch e: a keyed permutation of 0..n-1 (Feistel network with cycle
 * walking), O(1). */
int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position);
/* The same for files in chunks of `chunk` samples: the chunks are shuffled, and behind them the
 * samples within a window of so many samples, so that a reader comes back to few chunks at a time.
 * O(1). */
int64_t sampler_in_chunks(int64_t n, int64_t chunk, int64_t window, uint64_t seed, int64_t epoch,
                          int64_t position);
/* How a set's epochs are shuffled: samples in a chunk and in a window; chunk 0: all at once. */
typedef struct ShufflePlan {
    int64_t chunk, window;
} ShufflePlan;
ShufflePlan data_shuffle(const DataSet *set, const Config *config);
/* Sample that training takes at this position of an epoch. */
int64_t data_sample_at(const DataSet *set, const Config *config, int64_t epoch, int64_t position);

/* Raw sample -> float NCHW, scaled, augmented, normalised, where it keeps its size. Random choices
 * are keyed by (seed, epoch, sample). */
void augment_sample(const DataSet *set, const Config *config, bool training, int64_t epoch,
                    int64_t sample, const void *raw, float *out);

/* Are the set's images decoded, resampled, cut or changed in colour (PictureWork), or only what
 * augment_sample does? config may be NULL. */
bool data_resamples(const DataSet *set, const Config *config);
/* Brings pictures to what the model takes, by the keys of `data`: a part of the picture is
 * resampled and cut; in training changed by random choices, keyed by (seed, epoch, sample). Scratch
 * of one thread; set and config are borrowed. */
typedef struct PictureWork PictureWork;
PictureWork *picture_work_new(const DataSet *set, const Config *config);
void picture_work_free(PictureWork **work);
/* One picture as evaluation takes it, for whoever has pictures of another source: any size, upright
 * -> out, float (C,H,W) of the set, scaled and normalised by its mean and deviation. Of a set that
 * stores decoded images it is first brought to their size (short side resampled, middle cut out),
 * as the import does. ERR_DATA, with name: it is too narrow for that. */
Status picture_evaluate(PictureWork *work, const Image *picture, const char *name, float *out);
/* A sample of a set that data_resamples; ERR_DATA with file and sample. */
Status picture_sample(PictureWork *work, Reader *reader, bool training, int64_t epoch,
                      int64_t sample, float *out);
/* About what a PictureWork takes for pictures of usual size, for a plan of memory. */
size_t picture_work_bytes(const DataSet *set);

/* one micro-batch, owned by the loader until its slot is taken again */
typedef struct Batch {
    /* (N,C,H,W) plain; rows beyond `rows` are zero */
    float *x;
    /* (N,T) of token sets, and x is NULL; else NULL */
    int32_t *tokens;
    /* N, or (N,T): each the token after; or NULL */
    int32_t *labels;
    /* mixed images: the labels of the others, which count 1 - label_share; or NULL */
    int32_t *labels_other;
    float label_share;
    /* N x target_width; or NULL */
    float *targets;
    /* of sets with ids, else NULL: those of row r's field f begin at ids[id_first[r * F + f]], and
     * end before ids[id_first[r * F + f + 1]]; rows beyond `rows` have none. id_first: N * F + 1 */
    uint64_t *ids;
    int32_t *id_first;
    /* what bags have of them, by OpSpec.bag; NULL: nobody has asked. Borrowed: not the loader's */
    const BagRun *bag;
    /* N sample ids */
    int64_t *sample;
    /* real samples; may be 0 */
    int rows;
    /* step within the epoch */
    int64_t step, epoch;
    /* global number; from M on there are no rows */
    int micro;
} Batch;

/* Tables of text as samples for a model that has learnt a set which `weft data import` made of such
 * tables: with that set's schema, vocabularies, means and deviations. Labels need not be there. */
typedef struct TableText TableText;
/* schema: a file in YAML, or NULL: the one that the set keeps. Owner: the caller. ERR_NOINPUT,
 * ERR_CONFIG, ERR_DATA: the set keeps none, or was made by another. */
Status table_text_new(TableText **text, const DataSet *set, const char *schema);
void table_text_free(TableText **text);
/* Does what a value becomes depend on what the set holds: by a vocabulary, or a mean? */
bool table_text_learnt(const TableText *text);
/* Records of a file, packed or not, as batches of up to `most` samples, in their order, on this
 * thread. take's error comes out; ERR_NOINPUT; ERR_DATA with file, line and column, once all
 * records before that have been taken. */
typedef Status TableTextTake(void *user, const Batch *batch);
Status table_text_read(const TableText *text, const char *path, int most, TableTextTake *take,
                       void *user);

typedef struct LoaderPlan {
    /* batch is a multiple of micro_batch */
    int64_t batch, micro_batch;
    /* this replica's of the M micro-batches; those from M on are empty */
    int micro_first, micro_count;
    /* how many of others lie between two of them */
    int micro_gap;
    /* where to begin: step within the epoch */
    int64_t epoch, step;
    /* shuffle and augment; else in order, one epoch, plain */
    bool training;
    /* this rank reads no x, ids or tokens, no labels or targets: they are NULL */
    bool no_x, no_y;
    /* micro-batches kept ready, at least 2 */
    int slots;
    /* borrowed: they lie where its copies reach them; NULL: anywhere */
    Backend *backend;
    /* threads; 0: one */
    int workers;
    /* training, added to the positions of the first epoch: earlier steps had another batch size */
    int64_t shift;
} LoaderPlan;
/* Threads that run ahead; what they give does not depend on how many they are. Position of micro m,
 * row r in step s: s*batch + m*micro_batch + r (+ shift in the first epoch); positions >= n are
 * padding. An epoch has ceil(n/batch) steps. Training goes on into the next epoch for ever. */
typedef struct Loader Loader;
/* Threads that a loader of this set takes in a rank of so many cores: data.workers, or its
 * default. */
int data_workers(const DataSet *set, const Config *config, int cores);
/* What ids of so many samples take, as Batch has them; 0: the set has none. */
size_t data_ids_bytes(const DataSet *set, int64_t samples);
/* Are a training micro-batch's images mixed in pairs (Batch.labels_other)? */
bool data_mixes(const Config *config);
Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan);
void loader_free(Loader **loader);
/* The next micro-batch, waiting for it if need be (*wait_s grows by the time waited, may be NULL);
 * *batch is NULL at the end of an evaluation pass. It stays valid until loader_release; at most
 * slots - 1 may be out when the next is asked for. Errors of the thread come out here. */
Status loader_next(Loader *loader, const Batch **batch, double *wait_s);
/* Releases the oldest micro-batch that is out, for the thread to fill again. */
void loader_release(Loader *loader);

/* Names of classes, in the order of the labels; fewer than classes, or none, where the file has no
 * more. Names of a table's columns and fields are lists like it. */
typedef struct ClassNames {
    int64_t count;
    /* owned */
    char **name, *text;
} ClassNames;
/* Of the data set at path, whoever made it. Release with class_names_free. ERR_DATA, ERR_IO. */
Status class_names_read(ClassNames *names, const char *path);
/* The same of another list: "columns", "fields". */
Status class_names_read_of(ClassNames *names, const char *path, const char *list);
/* Of a text of so many bytes, which is taken over: a name ends at each byte `end`, and at the last
 * byte whatever it is. Control characters in it become '?'. */
void class_names_take(ClassNames *names, char *text, size_t bytes, char end);
void class_names_free(ClassNames *names);
/* The names of a set's classes: of several files the first one's, and behind them the names that
 * only later files have. Release with class_names_free. ERR_DATA: a file has one name twice. */
Status data_set_class_names(const DataSet *set, ClassNames *names);
/* Labels of set, whose classes are `own`, become those of the classes that `whose` names ("a.h5"),
 * by name, where one of the two lists has all names of the other; *line says so, or is NULL where
 * the lists are equal. No sample may then be of a class that is only in own: data_set_check_labels.
 * ERR_DATA with the first names that differ where each list has a name that the other lacks. A list
 * that is empty, or counts 0, 1, 2, ... and does not fit, names nothing: labels stay as they are,
 * and *line says so, or is NULL where neither names anything. Owner of *line: the caller. */
Status data_set_use_classes(DataSet *set, const ClassNames *own, const ClassNames *classes,
                            const char *whose, char **line);
/* Adds the names of more that all lacks to all, in their order, where one of the two lists has all
 * names of the other. */
void class_names_join(ClassNames *all, const ClassNames *more);
/* Are the names only the numbers 0, 1, 2, ...? Importers write such lists where they know no
 * names. */
bool class_names_count(const ClassNames *names);
/* The names, a line each. Owner: the caller. */
char *class_names_lines(const ClassNames *names);
/* A class's name, or its number, written there. */
const char *class_name(const ClassNames *names, int64_t i, char number[24]);

/* tokens of a sample; config may be NULL */
int64_t data_context(const Config *config);
int64_t data_steps_per_epoch(int64_t samples, int64_t batch);

/* Imports: to a new weft data set at out (never overwrites unless force; written as out.part, then
 * renamed). */
/* .gz read directly */
Status data_import_idx(const char *images, const char *labels, const char *const *class_names,
                       int classes, const char *out, bool force);
Status data_import_cifar(const char *const *files, int count, bool fine100, const char *out,
                         bool force);
/* A text file's bytes, or an array of numbers -> tokens. bits 16, 32 or 64: of a little-endian
 * array without a header; 0: the file has a header that says it (.npy, llm.c's shards). test_share
 * of the end goes to a second file, test_out (NULL: none). vocab 0: 1 + the largest token (256 for
 * text). .gz read directly. ERR_DATA: damaged, of another kind, or not what it is read as. */
Status data_import_text(const char *file, const char *out, const char *test_out, double test_share,
                        bool force);
/* The same text through a tokenizer. */
typedef struct TextTokens {
    /* its path, as tokenizer_open takes it */
    const char *tokenizer;
    /* <|endoftext|> is one token */
    bool special;
} TextTokens;
Status data_import_encoded(const char *file, const TextTokens *how, const char *out,
                           const char *test_out, double test_share, bool force);
Status data_import_tokens(const char *file, int bits, int64_t vocab, const char *out,
                          const char *test_out, double test_share, bool force);
/* Samples to leave out: those with this label; count: their number, a result. */
typedef struct LabelDrop {
    int64_t label, count;
} LabelDrop;
/* Any HDF5 file with a data set at x and y (tokens: x) -> plain arrays, unpacked in a process of
 * its own: nothing may have called apart_begin. drop NULL: all samples stay. */
Status data_import_hdf5(const char *file, const char *x, const char *y, const char *out, bool force,
                        LabelDrop *drop);
/* Pictures in folders -> (N,3,S,S) of uint8, or the files' bytes as they are. */
typedef struct FolderImport {
    /* list NULL: sub-folders of dir are the classes */
    const char *dir, *list, *out;
    /* file with the classes: a data set, in its order, or a text with a name a line; NULL: they are
     * sorted. A class without pictures stays one. */
    const char *classes;
    bool encoded, orient, skip_broken, allow_empty, force;
    /* decoded: the square's side, and how it is resized */
    int side;
    ImageFilter filter;
    /* of each rank */
    int threads;
} FolderImport;
/* What an import asks of those who run it on several ranks, and show how far it is. */
typedef struct ImportHost {
    int rank, size;
    void *user;
    /* All leave with the worst status. Collective. */
    Status (*agree)(void *user, Status mine);
    /* Rank 0's bytes to all. Collective. */
    void (*send)(void *user, void *bytes, size_t count);
    /* Of this rank's samples, now and then; done == total once at the end. */
    void (*progress)(void *user, int64_t done, int64_t total, int64_t broken);
} ImportHost;
/* The file has the same bytes for any number of ranks and threads. What is done stays in OUT.part
 * and OUT.part.journal, and the same import goes on from there. ERR_STOPPED: a signal came
 * (stop_begin). host NULL: alone. Collective on host's ranks, who share a file system. */
Status data_import_folder(const FolderImport *import, const ImportHost *host);
/* The importers, in the order of the help: verbs that write a data set. Each is a row beside its
 * function. */
/* NULL at the end */
extern const Verb *const importers[];
/* Random uint8 images of shape sample (1,C,H,W), for timing; overwrites out. */
Status data_import_random(const char *out, Shape sample, int64_t classes, int64_t samples,
                          uint64_t seed);

#endif
