/* checkpoint: saves and loads checkpoints, and converts them. A checkpoint is one HDF5 file that
 * any HDF5 tool can read and any grid can load. Its data sets are whole tensors:
 *  - /params/<name>, /buffers/<name>, /optim/<slot>/<name> and /ema/<name>: fp32, in the model's
 *    own order, each with a checksum in an attribute xxh64
 *  - /tables/<name>/ids (64-bit), /tables/<name>/rows and /optim/<slot>/tables/<name> (fp32): a
 *    sparse table and its state, with a checksum for each block of rows
 * Its root attributes are format ("weft-checkpoint"), version, and the fields of CheckpointMeta;
 * docs/formats.md describes them. A file is written as NAME.<unique>.part, synced, read back and
 * renamed; a .part is never loaded. */
#ifndef WEFT_CHECKPOINT_H
#define WEFT_CHECKPOINT_H

#include "data.h"
#include "model/units.h"
#include "optim.h"
#include "parallel.h"

enum { CHECKPOINT_LOSSES = 200 };
/* Description of a sample, for programs that have the checkpoint and no data set. */
typedef struct CheckpointInput {
    /* shape (C,H,W) of a sample as the model reads it; channels is 0 if it is unknown or the sample
     * is not an image */
    int64_t channels, height, width;
    /* size of images in the data set, or 0 for encoded files of several sizes */
    int64_t stored_height, stored_width;
    /* number of classes */
    int64_t classes;
    /* number of values in mean and in std: 0, 1 or channels */
    int stats;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* for sets of fields: number of targets; mean and standard deviation of each target in the form
     * that the model learns */
    int targets;
    float target_mean[FIELD_CHANNELS], target_std[FIELD_CHANNELS];
    /* factor on stored values, applied before mean and std */
    float scale;
    /* DataSet.turned and DataSet.bicubic; false if the file lacks them */
    int64_t turned, bicubic;
} CheckpointInput;
typedef struct CheckpointMeta {
    /* number of steps done */
    int64_t step;
    /* epoch: number of epochs done. A run resumes in the next epoch, of which data_step steps and
     * epoch_samples samples are done. */
    int64_t epoch, data_step, epoch_samples;
    /* samples: number of samples in an epoch. batch: train.batch of the last step. schedule_batch:
     * train.batch of the first step; the learning rate's curve counts in steps of this batch. All
     * are 0 in files of earlier versions. */
    int64_t samples, batch, schedule_batch;
    int64_t seed;
    /* best value of an evaluation so far; NaN before the first evaluation */
    double best_metric;
    /* name of the metric of which best_metric is a value (checkpoint.best_metric); "" if unknown */
    char best_of[16];
    /* Number of evaluations that have been recorded. While it is 0, stop_best, stop_bad and all
     * fields of lr except lr.lr are invalid. */
    int64_t evaluations;
    LrState lr;
    /* state of train.early_stop: the best value so far (NaN before the first evaluation), and the
     * number of evaluations since then */
    double stop_best;
    int64_t stop_bad;
    /* true if run.hook has requested the end of the run */
    int hook_stop;
    /* true if a stop interrupted the evaluation after this step */
    int evaluation_due;
    CheckpointInput input;
    /* fp16 loss scale; 0 if none is used */
    double loss_scale;
    /* loss_scale_good: number of steps since loss_scale changed. skipped: number of steps without
     * an update since the run began. */
    int64_t loss_scale_good, skipped;
    /* losses of the last `losses` steps that had an update, oldest first */
    float loss[CHECKPOINT_LOSSES];
    int losses;
    /* texts; owned after a load (release with checkpoint_meta_fini) */
    char *config, *version;
    /* names of classes, one per line, by class number; NULL if they have none. Owned after a
     * load. */
    char *classes;
    /* list of the files of a training set that grows (data.refresh), in the form of
     * data_set_list_files; NULL for other sets. Owned after a load. */
    char *data_files;
    /* record of the algorithms that train.cuda_tune chose (tensor/algorithm_record.h); NULL if the
     * libraries chose them, or the run was on CPUs. Owned after a load. */
    char *algorithms;
    /* after a load: number of tensors in /ema */
    int64_t averages;
    /* grid of the run that saved the file: "2x1x1" */
    char grid[32];
    /* fingerprints of the data sets; "": unknown, or none */
    char data_train[DATA_FINGERPRINT], data_test[DATA_FINGERPRINT];
    /* meaning of the training set's ids; all fields are 0 if it is unknown or the set has no ids */
    DataIds data_ids;
    /* names of the training set's columns, and hashes of the names and of their scaling */
    DataColumns columns;
    /* ranges of the training set's values; a range with `values` 0 is unknown. ranges.column is
     * owned after a load and set on rank 0 only. */
    DataRanges ranges;
    /* identity of the tokenizer that made the training set's tokens; "": unknown, or none */
    char tokenizer_hash[TOKENIZER_IDENTITY];
    /* model.init_from: the file, its step and a hash of the values that the run began with; "" if
     * it is not used */
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
    /* when saving, ranks rank_first .. rank_first + rank_count - 1 can supply the tensor;
     * rank_count 0 means all ranks */
    int rank_first, rank_count;
    /* true if the values are 64-bit ids: shape (n,2), each id in the memory of two floats; shape
     * (n) in the file */
    bool ids;
    /* true if the tensor is a block of a data set's rows: "/tables/embed/rows#0002" is a block of
     * data set "/tables/embed/rows". Blocks follow each other in the file, from #0000 on, and each
     * has a checksum. */
    bool block;
} CheckpointTensor;
/* Separates the number of a block from the path of its data set. */
enum { CHECKPOINT_BLOCK = '#' };
/* First characters of the path of an average (train.ema) of a parameter or running statistic. */
#define CHECKPOINT_EMA "/ema/"
/* Returns "/params/NAME", or "/buffers/NAME" for a running statistic. Owner: the caller. */
char *checkpoint_path(const Param *param);
/* Returns a pointer to NAME in a path that checkpoint_path can return, or NULL for any other
 * path. */
const char *checkpoint_leaf(const char *path);
/* A tensor of a file, as it is passed to match: path (borrowed), shape, and checksum (0 if there is
 * none). */
typedef struct CheckpointStored {
    const char *path;
    Shape shape;
    uint64_t hash;
} CheckpointStored;
/* Functions that a save calls on rank 0: `before` each time just before a file is created or
 * renamed, `after` once, when the last file has its final name. A background save calls them on its
 * own thread. Either may be NULL. */
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
    /* Save: called on rank 0 once everything is in the .part file; an error discards the .part
     * file, and the file at path stays as it is. May be NULL. */
    Status (*got_all)(void *user);
    /* Load: copies tensor i from plain to the caller's memory. */
    void (*set)(void *user, int i, const float *plain);
    /* Load with at_once: returns the caller's memory for tensor i, in row-major order, if this rank
     * wants the tensor. The tensor is read into this memory and then passed to set; after an error
     * the content is undefined. If place or its result is NULL, the tensor is read into a buffer
     * and set copies it. */
    float *(*place)(void *user, int i);
    /* Save: gathers tensor i, which is distributed over several ranks, on rank `writer`. All ranks
     * call collect_begin for the tensors of a turn in the same order (at most one for each writer),
     * then collect_wait for all of them. Both are NULL if no tensor is distributed. */
    void (*collect_begin)(void *user, int i, int writer);
    void (*collect_wait)(void *user);
    /* for saving */
    CheckpointHooks hooks;
    /* Save: path of a second file with the same bytes. Rank 0 writes the second file once the first
     * is complete; the second gets its final name earlier than the first. NULL for no second
     * file. */
    const char *also;
    /* Load: returns true if this rank sets tensor i. NULL if every rank sets all tensors. */
    bool (*wants)(void *user, int i);
    /* Load: true to skip everything in the file under /optim and /ema. If false, tensors of /ema
     * are set if both the caller and the file have averages, and are skipped otherwise. */
    bool params_only;
    /* Load: true to read the averages in /ema, as far as the file has them, instead of the
     * parameters and running statistics of the same names. */
    bool averages;
    /* Load, on rank 0: chooses a tensor of the file for each tensor i. stored[count] are the file's
     * tensors, sorted by path; match sets from[i] to an index into stored. Both tensors must have
     * the same shape. A tensor whose from[i] stays -1 is not set. checkpoint_load returns an error
     * of this function. If match is NULL, file and caller must have the same tensors. */
    Status (*match)(void *user, const CheckpointMeta *meta, const CheckpointStored *stored,
                    int count, int *from);
    /* Load: true to set each tensor as soon as it has been verified, so that it is read only once.
     * After ERR_DATA for a checksum some tensors may have been set, so that the caller must load
     * another file or end. If false, all tensors are verified before any is set. */
    bool at_once;
} CheckpointIo;

/* Part of the message of a save that found no free space, by which callers recognize this error. */
#define CHECKPOINT_MAKE_ROOM "make room there"
/* Writes path. Ranks divide the tensors among themselves by bytes. The file is read back before it
 * is renamed, from the disk if the kernel permits. After a failure an earlier file at path is
 * unchanged, the .part is removed, and every rank returns the same Status: ERR_IO after a full disk
 * or another failed write; ERR_DATA with the tensor's name if a tensor has a NaN or an infinity.
 * Collective. */
Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io);
/* checkpoint_save in the background: a thread hashes, writes, syncs and reads back without sending
 * messages. Each call of checkpoint_save_next, by all ranks, waits for the current stage on all of
 * them, exchanges results and starts the next stage, until *done. world, meta and io are borrowed
 * until checkpoint_save_free. */
typedef struct CheckpointSave CheckpointSave;
/* Starts a save. in_background true: a thread does the work and calls io->get; tensors must not
 * change until checkpoint_save_free, and io must have no collect functions. false:
 * checkpoint_save_begin and checkpoint_save_next do all work. Collective. Owner: the caller. */
CheckpointSave *checkpoint_save_begin(const World *world, const char *path,
                                      const CheckpointMeta *meta, const CheckpointIo *io,
                                      bool in_background);
/* Returns true while this rank's thread works on its stage, so that checkpoint_save_next would
 * wait. Not collective. */
bool checkpoint_save_busy(const CheckpointSave *save);
/* Returns the seconds that this rank has spent on the save so far, in checkpoint_save_begin,
 * checkpoint_save_next and its thread. Do not call it while the thread works. */
double checkpoint_save_seconds(const CheckpointSave *save);
/* Completes a stage and starts the next. Errors as in checkpoint_save, after which *done is true.
 * Collective; all ranks return the same. */
Status checkpoint_save_next(CheckpointSave *save, bool *done);
/* Call it once *done is true, or if no rank will continue the save. Not collective. */
void checkpoint_save_free(CheckpointSave **save);
/* Assigns tensor i to rank owner[i], 0 <= owner[i] < ranks, which writes all of it: largest tensor
 * first, each to the rank with the fewest bytes so far (the lowest rank of several) among the ranks
 * that can supply it. A pure function, so that every rank computes the same owners. */
void checkpoint_owners(const CheckpointIo *io, int ranks, int *owner);
/* Loads path on every rank. ERR_DATA that names file and tensor: not a checkpoint, truncated, or a
 * wrong checksum. ERR_DATA that lists the differences, before any tensor is set: the file is of
 * another model or optimizer (missing, surplus or differently shaped tensors). Tensors that another
 * program rewrote (chunked, compressed, other float types) are unpacked in a separate process; a
 * warning counts the tensors without a checksum. meta may be NULL. Collective; all ranks return the
 * same Status. */
Status checkpoint_load(const World *world, const char *path, CheckpointMeta *meta,
                       const CheckpointIo *io);
/* Verifies attributes, table and every checksum: ERR_DATA if path is not a good checkpoint. meta
 * may be NULL. Not collective. */
Status checkpoint_verify(const char *path, CheckpointMeta *meta);
/* Lists the blocks of rows in a file, sorted by path; callers need the list because only the file
 * tells the number of rows. Owner: the caller; release with checkpoint_list_fini. Collective; all
 * ranks return the same. */
typedef struct CheckpointList {
    int count;
    /* owned, including the paths */
    CheckpointTensor *tensor;
} CheckpointList;
Status checkpoint_list_blocks(const World *world, const char *path, CheckpointList *list);
void checkpoint_list_fini(CheckpointList *list);
/* Checks that the model of the file's configuration and config's model compute the same from the
 * same tensors: layers with the same name must have the same attributes and inputs. model: the
 * graph of config, which supplies input shape and classes; it may be fused and sliced. A file
 * passes if it has no configuration, or if the model of its configuration cannot be built for this
 * input. ERR_DATA lists the differences, up to a bound. Not collective. */
Status checkpoint_check_layers(const char *path, const CheckpointMeta *meta, const Config *config,
                               const Graph *model);
/* Reads only the attributes. Not collective. */
Status checkpoint_read_meta(const char *path, CheckpointMeta *meta);
/* A set of files that this process has read back as good, or has seen. A file is identified by
 * device, inode, size and time of modification when it was added. Owner: the caller. */
typedef struct KnownFiles KnownFiles;
KnownFiles *known_files_new(void);
void known_files_free(KnownFiles **known);
void known_files_add(KnownFiles *known, const char *path);
/* Returns true if path is an unchanged file of the set, under this or another name. */
bool known_files_have(const KnownFiles *known, const char *path);
/* Finds the newest good "step-*.h5" in dir and verifies its checksums; damaged files are named in a
 * warning and skipped. *path is NULL if dir has no such file; otherwise it is owned by the caller.
 * ERR_IO or ERR_NOINPUT: the folder cannot be listed, or a file cannot be read for now. ERR_DATA:
 * there are files and none loads. If an older step file or best.h5 is good, the error's message
 * names it. good: files that need not be verified again; may be NULL. Not collective: rank 0 calls
 * it and sends the result to the others. */
Status checkpoint_newest(const char *dir, KnownFiles *good, char **path);
/* Reads the attributes of path, a run's best.h5. If that fails, the message names the newest good
 * "step-*.h5" in dir. Not collective. */
Status checkpoint_check_best(const char *dir, const char *path);
/* Returns the newest "step-*.h5" in dir without reading its tensors: checkpoint_load verifies them.
 * NULL if there is none, or if its table or attributes are damaged; checkpoint_newest then finds
 * the file to load, or fails with the reason. Owner: the caller. Not collective. */
char *checkpoint_newest_unread(const char *dir);
/* Finds the newest "step-*.h5" in dir that is not in seen and opens as a checkpoint (its tensors
 * are not read). step: the step of that file, or -1 if there is none. Adds all of the folder's step
 * files to seen. ERR_IO. Not collective. */
Status checkpoint_new_step(const char *dir, KnownFiles *seen, int64_t *step);
/* Removes the ".part" files of saves that died and, if keep is not 0, each step-*.h5 that is older
 * than the newest `keep` good ones. Files not in `good` are verified by reading; a file that does
 * not load is not counted. best.h5 is not removed. saved: a file that has just been saved; it is
 * kept and counted, whatever its step; may be NULL. Not collective. */
Status checkpoint_prune(const char *dir, int64_t keep, KnownFiles *good, const char *saved);

/* Prints attributes and tensors with their hashes: `weft ckpt info`. Not collective. */
Status checkpoint_print(const char *path, FILE *out, bool json);
/* Verifies a file, or all checkpoints of a run's folder or of its checkpoints/, newest first;
 * prints a line for each, and a line with the file from which a run resumes. ERR_DATA: the file, or
 * a file in the folder, is bad. ERR_NOINPUT: the folder has no checkpoint. */
Status checkpoint_check(const char *path, FILE *out);
/* Compares two checkpoints and prints the first differences: `weft ckpt diff`. *equal is true if
 * tensors and state of training are equal to the bit. Not collective. */
Status checkpoint_diff(const char *a, const char *b, FILE *out, bool *equal);

/* Arguments and results of an import. */
typedef struct CheckpointImport {
    /* borrowed. from: FILE.safetensors, FILE.pth, or an .index.json with its shards; out: the
     * checkpoint to write, which is replaced */
    const char *from, *out;
    /* borrowed: group of tensors to read from a .pth, for example "model"; NULL for the only group
     * that is not an optimizer's, or else the only group with a usual name (state_dict,
     * model_state_dict, model or module) */
    const char *key;
    /* borrowed: path of transformers' config.json, which describes the model; NULL for config.json
     * in the folder of `from`, if it exists */
    const char *description;
    /* borrowed. rename: replacements OLD:NEW of a prefix of names; the first that fits a name is
     * applied. drop: patterns of names to leave out. */
    char *const *rename, *const *drop;
    int renames, drops;
    /* result: number of values in the parameters */
    int64_t values;
    /* result: help line of the family (names and layouts); static */
    const char *family;
    /* results. model: the lines of `model:` that follow from the description, owned by the caller;
     * NULL without a description. context: the context length that the model was made for. */
    char *model;
    int64_t context;
} CheckpointImport;
/* Writes all parameters and running statistics of a file as a checkpoint of step 0. The names of
 * the tensors determine the family of models, which determines names and layouts. A description is
 * checked against the tensors, and its model becomes the checkpoint's configuration. ERR_NOINPUT,
 * ERR_IO. ERR_USAGE: `key` names no group, or `out` is a file that is read. ERR_DATA: a field of
 * the description that changes results and is not supported, tensors that do not fit the described
 * model, a violation of the format, a tensor whose elements are not floats, a value that is not
 * finite. Not collective. */
Status checkpoint_import(CheckpointImport *import);
/* ERR_BUG, with the name of the file format or of the family of models, if its const table is
 * incomplete. */
Status checkpoint_rows_check(void);
/* Return the name of file format i of other programs, or of model family i; or NULL if i is past
 * the last. *help: its description. */
const char *checkpoint_format_name(int i, const char **help);
const char *checkpoint_family_name(int i, const char **help);
/* Arguments and results of an export as safetensors. */
typedef struct CheckpointExport {
    /* borrowed */
    const char *from, *out;
    /* true: averages (train.ema) are exported instead of parameters, as far as the file has them */
    bool averages;
    /* results. tensors: number of tensors written; averaged: number of averages among them; family:
     * help line of the family, static */
    int tensors, averaged;
    const char *family;
} CheckpointExport;
/* Verifies parameters and running statistics of a checkpoint, and writes them as F32 to a
 * safetensors file, with the names and layouts of the model's family. Not collective. */
Status checkpoint_export(CheckpointExport *export);
/* Call it before an export as safetensors or ONNX: ERR_DATA if the checkpoint has sparse tables,
 * which neither format can hold. form: name of the target for the message. Not collective. */
Status checkpoint_export_check(const char *from, const char *form);

/* Arguments of checkpoint_shrink, which removes channels from a checkpoint. */
typedef struct CheckpointShrink {
    /* the checkpoint, and the file to write; borrowed */
    const char *from, *out;
    /* borrowed: units of the graph of `from`'s model as graph_build made it, before fusion and
     * slicing */
    const Units *units;
    /* these three as in PruneOptions */
    const PruneMethod *method;
    double sparsity;
    int64_t round;
} CheckpointShrink;
/* Chooses the units to remove (removed, bool[unit_count], by prune_choose), sets the remaining
 * widths in config, and writes parameters, running statistics and optimizer state without the
 * removed channels to `out`, with config as its configuration, at the same step. If channels are
 * removed, the new file's best metric and losses are unknown. *after: the graph of the smaller
 * model; owner: the caller. ERR_DATA: tensors that do not fit the model. Not collective. */
Status checkpoint_shrink(const CheckpointShrink *what, Config *config, bool *removed,
                         Graph **after);

/* Arguments of an export to ONNX: opset 17, IR 8, fp32 values, any number of samples. */
typedef struct OnnxModel {
    /* borrowed: configuration of the model that the checkpoint's parameters belong to */
    const Config *config;
    /* description of one sample: int32 tokens, which become int64 in the file, or floats */
    Desc input;
    /* borrowed: data set with scale, mean and deviation; NULL if they are unknown */
    const DataSet *set;
    /* normalize true: the model reads data as it is stored; softmax true: it returns
     * probabilities */
    bool normalize, softmax;
    /* true: averages (train.ema) are exported instead of parameters, as far as the file has them */
    bool averages;
    /* largest size of OUT in bytes: of a larger model the tensors are stored separately in
     * OUT.data. 0: 2 GiB, the limit of the format */
    int64_t most;
    /* true: an existing OUT.data may be overwritten, or removed if OUT does not need it */
    bool force;
} OnnxModel;
typedef struct OnnxExported {
    /* averaged: number of tensors that are averages */
    int nodes, averaged;
    int64_t classes;
    /* true: values are in OUT.data */
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
