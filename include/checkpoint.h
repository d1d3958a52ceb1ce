/* checkpoint: one HDF5 file per checkpoint that any HDF5 tool reads and any grid loads.
 * /params/<name>, /optim/<slot>/<name>, /buffers/<name>, /ema/<name>: whole tensors, fp32, in the
 * model's own order; each with an attribute xxh64. Root attributes: format="weft-checkpoint",
 * version, step, epoch, data_step and epoch_samples (steps and samples within the epoch), seed,
 * config (the resolved text), weft (version), best_metric; data_train and data_test (fingerprints
 * of the data sets); for fp16 loss_scale, loss_scale_good and skipped; losses (of the last good
 * steps); the state of evaluations and of a hook; the shape of a sample, and the names of classes;
 * algorithms (of cuBLASLt and cuDNN). Written as NAME.<unique>.part, synced, read back, renamed: a
 * .part is never loaded. */
#ifndef WEFT_CHECKPOINT_H
#define WEFT_CHECKPOINT_H

#include "data.h"
#include "model/units.h"
#include "optim.h"
#include "parallel.h"

enum { CHECKPOINT_LOSSES = 200 };
/* Description of a sample, for programs that have the checkpoint and no data set. */
typedef struct CheckpointInput {
    /* shape (C,H,W) of a sample as the model takes it; channels 0: unknown, or not an image */
    int64_t channels, height, width;
    /* size of images in the data set; 0: encoded files of several sizes */
    int64_t stored_height, stored_width;
    /* number of classes */
    int64_t classes;
    /* number of values in mean and in std: 0, 1 or channels */
    int stats;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* sets of fields: number of targets, and the mean and deviation of each as the model learns
     * it */
    int targets;
    float target_mean[FIELD_CHANNELS], target_std[FIELD_CHANNELS];
    /* factor on raw values, applied before mean and std */
    float scale;
    /* DataSet.turned and DataSet.bicubic; false where the file lacks them */
    int64_t turned, bicubic;
} CheckpointInput;
typedef struct CheckpointMeta {
    /* number of steps done */
    int64_t step;
    /* number of epochs done; steps and samples done of the next epoch, where a run resumes */
    int64_t epoch, data_step, epoch_samples;
    /* samples in an epoch; train.batch of the last step; train.batch of the first step, whose steps
     * the learning rate's curve counts. All are 0 in files of earlier versions. */
    int64_t samples, batch, schedule_batch;
    int64_t seed;
    /* NaN: no evaluation yet */
    double best_metric;
    /* value of checkpoint.best_metric that best_metric was measured by; "": unknown */
    char best_of[16];
    /* Number of evaluations that have counted. While it is 0, only lr.lr of lr is valid, and
     * neither stop_best nor stop_bad is. */
    int64_t evaluations;
    LrState lr;
    /* state of train.early_stop: the best value so far (NaN: none), and the evaluations since
     * then */
    double stop_best;
    int64_t stop_bad;
    /* true where run.hook has requested the end of the run */
    int hook_stop;
    /* true where a stop interrupted the evaluation after this step */
    int evaluation_due;
    CheckpointInput input;
    /* fp16 loss scale; 0: not used */
    double loss_scale;
    /* steps since loss_scale changed; steps without an update since the run began */
    int64_t loss_scale_good, skipped;
    /* losses of the last good steps, oldest first, and their number */
    float loss[CHECKPOINT_LOSSES];
    int losses;
    /* texts; owned where loaded (release with checkpoint_meta_fini) */
    char *config, *version;
    /* names of classes, one per line, by class number; NULL: none. Owned where loaded. */
    char *classes;
    /* files of the training set that grows (data.refresh), as data_set_list_files; NULL: none.
     * Owned where loaded. */
    char *data_files;
    /* record of the algorithms that train.cuda_tune chose (tensor/algorithm_record.h); NULL: the
     * libraries' own first choice, or a run on CPUs. Owned where loaded. */
    char *algorithms;
    /* loaded files: number of tensors in /ema */
    int64_t averages;
    /* "2x1x1" */
    char grid[32];
    /* fingerprints of the data sets; "": unknown, or none */
    char data_train[DATA_FINGERPRINT], data_test[DATA_FINGERPRINT];
    /* meaning of the training set's ids; all 0: unknown, or none */
    DataIds data_ids;
    DataColumns columns;
    /* ranges of the training set, with values 0 where they are unknown. Columns are owned where
     * loaded, and known on rank 0 only. */
    DataRanges ranges;
    /* identity of the tokenizer that made the training set's tokens; "": unknown, or none */
    char tokenizer_hash[TOKENIZER_IDENTITY];
    /* model.init_from: the file, its step and a hash of the values taken; "": not used */
    char init_from[DATA_PATH + 64];
} CheckpointMeta;
void checkpoint_meta_fini(CheckpointMeta *meta);

/* One tensor of a checkpoint, as the caller describes it. Values pass through get and set in
 * row-major order. */
typedef struct CheckpointTensor {
    /* "/params/conv1.weight"; borrowed */
    const char *path;
    /* ndim 1..4 */
    Shape shape;
    /* range of ranks that can supply the tensor when saving; rank_count 0: all ranks */
    int rank_first, rank_count;
    /* true where the values are 64-bit ids: shape (n,2), each id in the memory of two floats; shape
     * (n) in the file */
    bool ids;
    /* true where the tensor is a block of a data set's rows: "/tables/embed/rows#0002" is a block
     * of data set "/tables/embed/rows". Blocks follow each other in the file, from #0000 on, and
     * each has a checksum. */
    bool block;
} CheckpointTensor;
/* Separates the number of a block from the path of its data set. */
enum { CHECKPOINT_BLOCK = '#' };
/* First characters of the path of an average (train.ema) of a parameter or running statistic. */
#define CHECKPOINT_EMA "/ema/"
/* Returns "/params/NAME", or "/buffers/NAME" for a running statistic. Owner: the caller. */
char *checkpoint_path(const Param *param);
/* Returns a pointer to NAME inside such a path; NULL: a path outside /params and /buffers. */
const char *checkpoint_leaf(const char *path);
/* A tensor of a file, as match sees it: path (borrowed), shape, and checksum (0: none). */
typedef struct CheckpointStored {
    const char *path;
    Shape shape;
    uint64_t hash;
} CheckpointStored;
/* Called on rank 0: `before` ahead of creating or renaming each file, `after` once the last file
 * has its final name. A background save calls them on its own thread. Either may be NULL. */
typedef struct CheckpointHooks {
    void *user;
    void (*before)(void *user), (*after)(void *user);
} CheckpointHooks;
typedef struct CheckpointIo {
    int count;
    /* borrowed; equal on every rank */
    const CheckpointTensor *tensor;
    void *user;
    /* Save: fills plain and returns it, or returns a pointer to tensor i that is valid until the
     * next call of get. */
    const float *(*get)(void *user, int i, float *plain);
    /* Save: called on rank 0 once everything is in the .part file; an error discards that file, and
     * the file at path stays as it is. NULL: no such check. */
    Status (*got_all)(void *user);
    void (*set)(void *user, int i, const float *plain);
    /* Load with at_once: returns the memory in which tensor i, which this rank wants, is to lie in
     * row-major order. The tensor is read into it and passed to set; after an error its content is
     * undefined. Where place or its result is NULL, the tensor is read into a buffer and set copies
     * it. */
    float *(*place)(void *user, int i);
    /* Save: gathers tensor i, which is distributed over several ranks, on rank `writer`. All ranks
     * call collect_begin for the tensors of a turn in the same order (at most one for each writer),
     * then collect_wait for all of them. Both are NULL where no tensor is distributed. */
    void (*collect_begin)(void *user, int i, int writer);
    void (*collect_wait)(void *user);
    /* for saving */
    CheckpointHooks hooks;
    /* Save: path of a second file with the same bytes. Rank 0 writes it once the first file is
     * complete, and renames it before the first. NULL: no second file. */
    const char *also;
    /* Load: returns whether this rank sets tensor i. NULL: every rank sets all tensors. */
    bool (*wants)(void *user, int i);
    /* Load: skips everything in the file under /optim and /ema. While false, tensors of /ema are
     * set if both the caller and the file have them; if only one has, they are skipped. */
    bool params_only;
    /* Load: takes the averages in the file, as far as it has them, in the place of the parameters
     * and running statistics of the same names. */
    bool averages;
    /* Load, on rank 0: chooses the file's tensor (an index into stored, sorted by path; it must
     * have the same shape) that becomes tensor i, and stores it in from[i], which is -1 at first:
     * tensor i is left unset. An error becomes checkpoint_load's. NULL: file and caller have the
     * same tensors. */
    Status (*match)(void *user, const CheckpointMeta *meta, const CheckpointStored *stored,
                    int count, int *from);
    /* Load: sets each tensor as soon as it has been verified, so that it is read only once. After
     * ERR_DATA for a checksum some tensors may have been set: the caller loads another file, or
     * ends. While false, all tensors are verified before any is set. */
    bool at_once;
} CheckpointIo;

/* Part of the message of a save that found no free space, for callers that know what else uses
 * it. */
#define CHECKPOINT_MAKE_ROOM "make room there"
/* Writes path. Ranks divide the tensors among themselves by bytes. The file is read back, from the
 * disk where the kernel allows, before it gets its name. A full disk or any other failure leaves
 * earlier files alone, removes the .part, and is ERR_IO on every rank. A tensor with a NaN or an
 * infinity is not saved: ERR_DATA naming it. Collective. */
Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io);
/* checkpoint_save in the background: a thread hashes, writes, syncs and reads back without sending
 * messages. Each call of checkpoint_save_next, by all ranks, waits for the current stage on all of
 * them, exchanges results and starts the next stage, until *done. world, meta and io are borrowed
 * until checkpoint_save_free. */
typedef struct CheckpointSave CheckpointSave;
/* Starts a save. in_background: the thread runs in the background and calls io->get, whose tensors
 * must not change until free, and io has no collect functions. Otherwise begin and next do all work
 * themselves. Collective. Owner: the caller. */
CheckpointSave *checkpoint_save_begin(const World *world, const char *path,
                                      const CheckpointMeta *meta, const CheckpointIo *io,
                                      bool in_background);
/* Returns whether this rank's thread is still working at its stage, so that next would wait. Not
 * collective. */
bool checkpoint_save_busy(const CheckpointSave *save);
/* Returns the seconds that this rank has spent on the save so far, in begin, in next and in its
 * thread. Not to be called while the thread works. */
double checkpoint_save_seconds(const CheckpointSave *save);
/* Completes a stage and starts the next. Errors as in checkpoint_save, after which *done is true.
 * Collective; all ranks return the same. */
Status checkpoint_save_next(CheckpointSave *save, bool *done);
/* Call it once done, or where no rank will continue. Not collective. */
void checkpoint_save_free(CheckpointSave **save);
/* Assigns tensor i to rank owner[i], 0 <= owner[i] < ranks, which writes all of it: largest tensor
 * first, each to the rank with the fewest bytes so far (the lowest rank of several) among those
 * that can supply it. A pure function, so that every rank computes the same. */
void checkpoint_owners(const CheckpointIo *io, int ranks, int *owner);
/* Loads path on every rank. ERR_DATA naming file and tensor: not a checkpoint, truncated, or a
 * tensor with a wrong checksum. ERR_DATA naming the differences, with nothing set: another model
 * (missing, surplus or differently shaped tensors). Tensors that another program rewrote (chunked,
 * compressed, other float types) are unpacked in a separate process; one without a checksum is
 * named in a warning. meta may be NULL. Collective. */
Status checkpoint_load(const World *world, const char *path, CheckpointMeta *meta,
                       const CheckpointIo *io);
/* Verifies attributes, table and every checksum: ERR_DATA where path is not a good checkpoint. meta
 * may be NULL. Not collective. */
Status checkpoint_verify(const char *path, CheckpointMeta *meta);
/* Lists the blocks of rows in a file, sorted by path; callers need it because the number of rows is
 * only known from the file. Owner: the caller; release with checkpoint_list_fini. Collective; all
 * ranks return the same. */
typedef struct CheckpointList {
    int count;
    /* owned, including the paths */
    CheckpointTensor *tensor;
} CheckpointList;
Status checkpoint_list_blocks(const World *world, const char *path, CheckpointList *list);
void checkpoint_list_fini(CheckpointList *list);
/* Checks that the model of the configuration in the file computes the same from its tensors as
 * config's: layers of one name have the same attributes and inputs. model: the graph of config,
 * which supplies input shape and classes; it may be fused and sliced. A file without a
 * configuration passes. ERR_DATA lists the differences, up to a bound. Not collective. */
Status checkpoint_check_layers(const char *path, const CheckpointMeta *meta, const Config *config,
                               const Graph *model);
/* Reads only the attributes. Not collective. */
Status checkpoint_read_meta(const char *path, CheckpointMeta *meta);
/* A set of files, each identified by inode, size and time of change when it was added: files that
 * this process has read back as good, or has seen. Owner: the caller. */
typedef struct KnownFiles KnownFiles;
KnownFiles *known_files_new(void);
void known_files_free(KnownFiles **known);
void known_files_add(KnownFiles *known, const char *path);
/* Returns whether path is an unchanged file of the set, under this or another name. */
bool known_files_have(const KnownFiles *known, const char *path);
/* Finds the newest good "step-*.h5" in dir and verifies its checksums; damaged ones are named in a
 * warning and skipped. *path: NULL if dir has none; else owned by the caller. ERR_IO or
 * ERR_NOINPUT: the folder cannot be listed, or a file cannot be read for now. ERR_DATA: there are
 * files and none loads. The message names a good file where there is another. good may be NULL. Not
 * collective: rank 0 calls it and sends the result to the others. */
Status checkpoint_newest(const char *dir, KnownFiles *good, char **path);
/* Reads the attributes of path, a run's best.h5. Where that fails, the message names the newest
 * good "step-*.h5" in dir. Not collective. */
Status checkpoint_check_best(const char *dir, const char *path);
/* Returns the newest "step-*.h5" in dir without reading its tensors: checkpoint_load verifies them.
 * NULL where there is none, or where its table or attributes are damaged; then checkpoint_newest
 * finds the one to load, or says why there is none. Owner: the caller. Not collective. */
char *checkpoint_newest_unread(const char *dir);
/* Finds the newest "step-*.h5" in dir that is not in seen and opens as a checkpoint (its tensors
 * are not read). step: the step of that file, or -1 if there is none. Adds all of the folder's step
 * files to seen. ERR_IO. Not collective. */
Status checkpoint_new_step(const char *dir, KnownFiles *seen, int64_t *step);
/* Removes step-*.h5 older than the newest `keep` good ones (keep 0: removes none; files not in
 * `good` are verified by reading), and the ".part" files of saves that died. A file that does not
 * load is not counted; best.h5 stays. saved: a file that has just been saved and is kept, and
 * counted, whatever its step; may be NULL. Not collective. */
Status checkpoint_prune(const char *dir, int64_t keep, KnownFiles *good, const char *saved);

/* Prints attributes and tensors with their hashes: `weft ckpt info`. Not collective. */
Status checkpoint_print(const char *path, FILE *out, bool json);
/* Verifies a file, or all checkpoints of a run's folder or of its checkpoints/, newest first;
 * prints a line for each and one naming the file from which a run resumes. A folder with a bad file
 * is ERR_DATA, one without any ERR_NOINPUT. */
Status checkpoint_check(const char *path, FILE *out);
Status checkpoint_diff(const char *a, const char *b, FILE *out, bool *equal);

/* Arguments and results of an import. */
typedef struct CheckpointImport {
    /* borrowed. from: FILE.safetensors, FILE.pth, or an .index.json with its shards; out: the
     * checkpoint to write, which is replaced */
    const char *from, *out;
    /* borrowed: group of tensors to take out of a .pth ("model"); NULL: the only or the obvious
     * one */
    const char *key;
    /* borrowed: path of transformers' config.json, which describes the model; NULL: the one in the
     * folder of `from`, if there is one */
    const char *description;
    /* borrowed. rename: prefixes OLD:NEW of names, of which the first that fits counts; drop:
     * patterns of names to leave out */
    char *const *rename, *const *drop;
    int renames, drops;
    /* result: number of values in the parameters */
    int64_t values;
    /* result: help line of the family (names and layouts); static */
    const char *family;
    /* result: the lines of `model:` that follow from the description, owned by the caller (NULL: no
     * description); and the context length that the model was made for */
    char *model;
    int64_t context;
} CheckpointImport;
/* Writes all parameters and running statistics of a file as a checkpoint of step 0. The names of
 * the tensors determine the family, and so names and layouts. A description is checked against the
 * tensors, and its model becomes the checkpoint's configuration. ERR_NOINPUT, ERR_IO. ERR_DATA: a
 * field of the description that changes results and is not supported, tensors that do not fit the
 * described model, a violation of the format, a tensor of other than floats, a value that is not
 * finite. Not collective. */
Status checkpoint_import(CheckpointImport *import);
/* ERR_BUG, naming the row, if a file format or a family of models lacks something. */
Status checkpoint_rows_check(void);
/* Return the name of file format i of other programs, or of model family i; *help: its description.
 * NULL: i is past the last one. */
const char *checkpoint_format_name(int i, const char **help);
const char *checkpoint_family_name(int i, const char **help);
/* Arguments and results of an export as safetensors. */
typedef struct CheckpointExport {
    /* borrowed */
    const char *from, *out;
    /* takes averages (train.ema) in the place of parameters, as far as the file has them */
    bool averages;
    /* results: number of tensors written, and of averages among them; help line of the family;
     * static */
    int tensors, averaged;
    const char *family;
} CheckpointExport;
/* Writes parameters and running statistics of a checkpoint, verified, as F32 to a safetensors file,
 * in the names and layouts of its family. Not collective. */
Status checkpoint_export(CheckpointExport *export);
/* Call it before either export: ERR_DATA where the checkpoint has sparse tables, which neither form
 * can hold. form: name of the target for the message. Not collective. */
Status checkpoint_export_check(const char *from, const char *form);

/* Arguments of checkpoint_shrink, which removes channels from a checkpoint. */
typedef struct CheckpointShrink {
    const char *from, *out;
    /* borrowed: units of the graph of `from`'s model as graph_build made it, before fusion and
     * slicing */
    const Units *units;
    const PruneMethod *method;
    double sparsity;
    int64_t round;
} CheckpointShrink;
/* Chooses the units to remove (removed, bool[unit_count], by prune_choose), sets the remaining
 * widths in config, and writes parameters, running statistics and optimizer state without those
 * channels to `out`, with config as its configuration, at the same step; its best metric and losses
 * are unknown. *after: the graph of the smaller model; owner: the caller. ERR_DATA: tensors that do
 * not fit the model. Not collective. */
Status checkpoint_shrink(const CheckpointShrink *what, Config *config, bool *removed,
                         Graph **after);

/* Arguments of an export to ONNX: opset 17, IR 8, fp32 values, any number of samples. */
typedef struct OnnxModel {
    /* borrowed: configuration of the model that the checkpoint's parameters belong to */
    const Config *config;
    /* description of one sample: int32 tokens, which become int64 in the file, or floats */
    Desc input;
    /* borrowed: data set with scale, mean and deviation; NULL: unknown */
    const DataSet *set;
    /* normalize: the model takes data as it is stored; softmax: it returns probabilities */
    bool normalize, softmax;
    /* takes averages (train.ema) in the place of parameters, as far as the file has them */
    bool averages;
    /* A file of more bytes stores its tensors separately in OUT.data. 0: 2 GiB, the most that one
     * file can have. */
    int64_t most;
    /* true where an existing OUT.data may be overwritten, and removed where OUT does not need it */
    bool force;
} OnnxModel;
typedef struct OnnxExported {
    /* averaged: number of tensors that are averages */
    int nodes, averaged;
    int64_t classes;
    /* true where values are in OUT.data */
    bool external;
} OnnxExported;
/* Writes the model with a checkpoint's verified parameters. The number of classes or tokens comes
 * from the configuration or from the tensors' shapes. ERR_CONFIG: a layer that ONNX lacks.
 * ERR_DATA: parameters of another model. ERR_USAGE: OUT.data is needed, exists, and force is false.
 * Not collective. */
Status checkpoint_export_onnx(const char *from, const char *out, const OnnxModel *model,
                              OnnxExported *made);

typedef struct CheckpointHash {
    /* owned */
    char *path;
    uint64_t hash;
} CheckpointHash;
typedef struct CheckpointHashes {
    int count;
    /* owned; sorted by path */
    CheckpointHash *tensor;
} CheckpointHashes;
/* Computes the hash of every tensor after verifying its checksum. Release with
 * checkpoint_hashes_fini. Not collective. */
Status checkpoint_hashes(const char *path, CheckpointHashes *hashes);
void checkpoint_hashes_fini(CheckpointHashes *hashes);

#endif
