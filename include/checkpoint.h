/* checkpoint: saves and loads checkpoints, and converts them. A checkpoint is one HDF5 file that
 * any HDF5 tool can read and any grid can load. Its HDF5 data sets are whole tensors:
 *  - /params/<name>, /buffers/<name>, /optim/<slot>/<name> and /ema/<name>: fp32, in plain order
 *    (dimensions as in PyTorch), each with a checksum in an attribute xxh64
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

/* largest number of losses that a checkpoint has */
enum { CHECKPOINT_LOSSES = 200 };
/* Description of a sample, for programs that have the checkpoint and no data set. */
typedef struct CheckpointInput {
    /* shape (C,H,W) of a sample as the model reads it; channels 0: the shape is unknown, or the
     * sample is no image */
    int64_t channels, height, width;
    /* size of images in the data set; 0: encoded files of several sizes */
    int64_t stored_height, stored_width;
    /* number of classes */
    int64_t classes;
    /* number of values in mean and in std: 0, 1 or channels */
    int stat_count;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* sets of fields: number of targets */
    int target_count;
    /* sets of fields: mean and standard deviation of each target in the form that the model
     * learns */
    float target_mean[FIELD_CHANNELS], target_std[FIELD_CHANNELS];
    /* factor on stored values, applied before mean and std */
    float scale;
    /* DataSet.orient_requested and DataSet.bicubic; false if the file lacks them */
    int64_t turned, bicubic;
} CheckpointInput;
/* The root attributes of a checkpoint. */
typedef struct CheckpointMeta {
    /* number of steps done */
    int64_t step;
    /* epoch: number of epochs done; data_step, epoch_samples: numbers of steps and of samples done
     * in the next epoch, in which a run resumes */
    int64_t epoch, data_step, epoch_samples;
    /* samples: number of samples in an epoch; batch: train.batch of step number `step`;
     * schedule_batch: train.batch of the first step of the run; the curve of the learning rate
     * counts steps of this size. All are 0 in files of earlier versions. */
    int64_t samples, batch, schedule_batch;
    int64_t seed;
    /* best value of an evaluation so far; NaN before the first evaluation */
    double best_metric;
    /* name of the metric of best_metric (checkpoint.best_metric); "": unknown */
    char best_of[16];
    /* number of evaluations that have been recorded. While it is 0, stop_best, stop_bad_evaluations
     * and all members of lr except lr.lr are invalid. */
    int64_t evaluations;
    LrState lr;
    /* train.early_stop: best value so far; NaN before the first evaluation */
    double stop_best;
    /* train.early_stop: number of evaluations since stop_best */
    int64_t stop_bad_evaluations;
    /* true if run.hook has requested the end of the run */
    int hook_stop;
    /* true if a stop interrupted the evaluation after this step */
    int evaluation_due;
    CheckpointInput input;
    /* loss scale of fp16; 0: none is used */
    double loss_scale;
    /* loss_scale_good: number of steps since loss_scale changed; skipped: number of steps without
     * an update since the run began */
    int64_t loss_scale_good, skipped;
    /* losses of the last loss_count steps that made an update, oldest first */
    float loss[CHECKPOINT_LOSSES];
    int loss_count;
    /* config: resolved configuration (config_text); version: version of weft that saved the file.
     * Owned after a load (release with checkpoint_meta_fini). */
    char *config, *version;
    /* names of the classes, one per line, in the order of their numbers; NULL: the classes have no
     * names. Owned after a load. */
    char *classes;
    /* list of the files of a training set that grows (data.refresh), a text of data_set_list_files;
     * NULL: other sets. Owned after a load. */
    char *data_files;
    /* record of the algorithms that train.cuda_tune chose (tensor/algorithm_record.h); NULL if the
     * libraries chose them, or the run was on CPUs. Owned after a load. */
    char *algorithms;
    /* after a load: number of tensors in /ema */
    int64_t average_count;
    /* grid of the run that saved the file: "2x1x1" */
    char grid[32];
    /* data_train, data_test: fingerprints of the training set and of the test set; "": unknown, or
     * none */
    char data_train[DATA_FINGERPRINT], data_test[DATA_FINGERPRINT];
    /* meaning of the training set's ids; all 0: it is unknown, or the set has no ids */
    DataIds data_ids;
    /* meaning of the training set's columns */
    DataColumns columns;
    /* statistics of the training set's values; a DataRange with count 0 is unknown. ranges.column
     * is owned after a load, and set only on rank 0. */
    DataRanges ranges;
    /* identity of the tokenizer that made the training set's tokens; "": unknown, or none */
    char tokenizer_hash[TOKENIZER_IDENTITY];
    /* model.init_from: path of the file, its step, and a hash of the values with which the run
     * began; "": it is not used */
    char init_from[DATA_PATH + 64];
} CheckpointMeta;
void checkpoint_meta_fini(CheckpointMeta *meta);

/* A tensor of a checkpoint, as the caller of a save or load describes it. Values pass through
 * CheckpointIo.get and CheckpointIo.set in row-major order. */
typedef struct CheckpointTensor {
    /* "/params/conv1.weight"; borrowed */
    const char *path;
    /* ndim 1..4 */
    Shape shape;
    /* save: ranks rank_first .. rank_first + rank_count - 1 can supply the tensor; rank_count 0:
     * all ranks can */
    int rank_first, rank_count;
    /* true: the values are 64-bit ids. `shape` is (n,2), because each id takes the memory of two
     * floats; in the file the shape is (n). */
    bool ids;
    /* true: the tensor is a block of the rows of a data set: "/tables/embed/rows#0002" is a block
     * of the data set "/tables/embed/rows". Blocks follow each other in the file, from #0000 on,
     * and each has a checksum. */
    bool block;
} CheckpointTensor;
/* character between the path of a data set and the number of a block */
enum { CHECKPOINT_BLOCK = '#' };
/* Beginning of the path of the average (train.ema) of a parameter or running statistic. */
#define CHECKPOINT_EMA "/ema/"
/* Returns "/params/NAME", or "/buffers/NAME" for a running statistic. The caller owns the text. */
char *checkpoint_param_path(const Param *param);
/* Returns a pointer to NAME in a path that checkpoint_param_path can return, or NULL for any other
 * path. */
const char *checkpoint_leaf(const char *path);
/* A tensor of a file, for CheckpointIo.match. path: borrowed; hash: its checksum, 0 if there is
 * none. */
typedef struct CheckpointStored {
    const char *path;
    Shape shape;
    uint64_t hash;
} CheckpointStored;
/* Functions that a save calls on rank 0. A background save calls them on its own thread. Either may
 * be NULL. before: called just before each file is created or renamed; after: called once, when the
 * last file has its final name. */
typedef struct CheckpointHooks {
    void *user;
    void (*before)(void *user), (*after)(void *user);
} CheckpointHooks;
/* The tensors of a save or load, and the functions of the caller that read and write their values.
 * `user` is the first argument of each function. */
typedef struct CheckpointIo {
    int count;
    /* tensors, [count], equal on every rank; borrowed */
    const CheckpointTensor *tensor;
    void *user;
    /* Save: writes tensor i to `plain` and returns plain, or returns a pointer to the tensor that
     * is valid until the next call of get. */
    const float *(*get)(void *user, int i, float *plain);
    /* Save: called on rank 0 once everything is in the .part file. An error discards the .part
     * file, and an existing file at path does not change. The member may be NULL. */
    Status (*got_all)(void *user);
    /* Load: copies tensor i from plain to the caller's memory. */
    void (*set)(void *user, int i, const float *plain);
    /* Load with sets_early: returns the caller's memory for tensor i, in row-major order, if this
     * rank needs the tensor. The tensor is read into this memory and then passed to set; after an
     * error the content is undefined. If the member `place` or its result is NULL, the tensor is
     * read into a buffer, which `set` copies. */
    float *(*place)(void *user, int i);
    /* Save: these two functions gather tensor i, which is distributed over several ranks, on rank
     * `writer`. All ranks call collect_begin for several tensors in the same order, at most one for
     * each writer, then collect_wait, which waits for all of them. Both are NULL if no tensor is
     * distributed. */
    void (*collect_begin)(void *user, int i, int writer);
    void (*collect_wait)(void *user);
    /* Save. */
    CheckpointHooks hooks;
    /* Save: path of a second file with the same bytes, which rank 0 writes once the first file is
     * complete. The second file gets its final name before the first. NULL: there is no second
     * file. */
    const char *second_path;
    /* Load: returns true if this rank sets tensor i. The member is NULL if every rank sets all
     * tensors. */
    bool (*wants)(void *user, int i);
    /* Load: true: everything in the file under /optim and /ema is skipped. false: tensors under
     * /ema are set if both the caller and the file have averages, and are skipped otherwise. */
    bool params_only;
    /* Load: true: the averages in /ema, as far as the file has them, are read instead of the
     * parameters and running statistics of the same names. */
    bool loads_averages;
    /* Load, on rank 0: chooses a tensor of the file for each tensor i. stored[count] are the
     * tensors of the file, sorted by path; match sets from[i] to an index into stored, or leaves it
     * at -1, and the tensor is then not set. Both tensors must have the same shape. checkpoint_load
     * returns an error of this function. If the member is NULL, file and caller must have the same
     * tensors. */
    Status (*match)(void *user, const CheckpointMeta *meta, const CheckpointStored *stored,
                    int count, int *from);
    /* Load: true: each tensor is set as soon as it has been verified, so that it is read only once.
     * After ERR_DATA for a checksum some tensors may have been set, and the caller must load
     * another file or end. false: all tensors are verified before the first is set. */
    bool sets_early;
} CheckpointIo;

/* Part of the message of a save that has found no free space; callers recognize this error by
 * it. */
#define CHECKPOINT_MAKE_ROOM "make room there"
/* Writes the file `path`. Ranks divide the tensors among themselves by bytes. The file is read back
 * before it is renamed, from the disk if the kernel permits. After a failure an earlier file at
 * path is unchanged, the .part file is removed, and every rank returns the same Status. ERR_IO: the
 * disk is full, or another write has failed. ERR_DATA: a tensor has a NaN or an infinity; the
 * message names it. Collective. */
Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io);
/* checkpoint_save in the background: a thread hashes, writes, syncs and reads back without sending
 * messages. Each call of checkpoint_save_next, by all ranks, waits for the current stage on all of
 * them, exchanges results and starts the next stage, until *done is true. world, meta and io are
 * borrowed until checkpoint_save_free. */
typedef struct CheckpointSave CheckpointSave;
/* Starts a save. in_background = true: a thread does the work and calls io->get; tensors must not
 * change until checkpoint_save_free, and io must have no collect functions. false:
 * checkpoint_save_begin and checkpoint_save_next do all work. Release with checkpoint_save_free.
 * Collective. */
CheckpointSave *checkpoint_save_begin(const World *world, const char *path,
                                      const CheckpointMeta *meta, const CheckpointIo *io,
                                      bool in_background);
/* Returns true while this rank's thread works on its stage, so that checkpoint_save_next would
 * wait. Not collective. */
bool checkpoint_save_busy(const CheckpointSave *save);
/* Returns the seconds that this rank has spent on the save so far, in checkpoint_save_begin,
 * checkpoint_save_next and its thread. Do not call it while the thread works. */
double checkpoint_save_seconds(const CheckpointSave *save);
/* Completes a stage and starts the next one. Errors as in checkpoint_save; after one, *done is
 * true. Collective; all ranks return the same Status. */
Status checkpoint_save_next(CheckpointSave *save, bool *done);
/* Frees a save. Call it once *done is true, or if no rank will continue the save. Not
 * collective. */
void checkpoint_save_free(CheckpointSave **save);
/* Assigns tensor i to rank owner[i], 0 <= owner[i] < ranks, which writes all of it. Tensors are
 * assigned in descending order of their size, each to the rank with the fewest bytes so far (the
 * lowest of several) among the ranks that can supply it. A pure function, so every rank computes
 * the same owners. */
void checkpoint_owners(const CheckpointIo *io, int ranks, int *owner);
/* Loads the file `path` on every rank. ERR_DATA names file and tensor if the file is no checkpoint,
 * is truncated, or has a wrong checksum. ERR_DATA lists the differences, before any tensor is set,
 * if the file is of another model or optimizer (missing, surplus or differently shaped tensors).
 * Tensors that another program has rewritten (chunked, compressed, other float types) are unpacked
 * in a separate process; a warning counts the tensors without a checksum. meta may be NULL.
 * Collective; all ranks return the same Status. */
Status checkpoint_load(const World *world, const char *path, CheckpointMeta *meta,
                       const CheckpointIo *io);
/* Verifies attributes, table of tensors and all checksums of the file `path`. ERR_DATA: the file is
 * damaged, or is no checkpoint. meta may be NULL. Not collective. */
Status checkpoint_verify(const char *path, CheckpointMeta *meta);
/* A list of tensors. */
typedef struct CheckpointList {
    int count;
    /* [count]; owned, including the paths */
    CheckpointTensor *tensor;
} CheckpointList;
/* Lists the blocks of the sparse tables' rows in a file, sorted by path. Callers need the list
 * before a load, because only the file has the number of rows. Release with checkpoint_list_fini.
 * Collective; all ranks return the same Status. */
Status checkpoint_list_blocks(const World *world, const char *path, CheckpointList *list);
void checkpoint_list_fini(CheckpointList *list);
/* Checks that the model of the file's configuration and the model of `config` compute the same from
 * the same tensors: layers with the same name must have the same attributes and inputs. model:
 * graph of config, which gives the input shape and the classes; it may be fused and sliced. A file
 * passes if it has no configuration, or if the model of its configuration cannot be built for this
 * input. ERR_DATA lists the differences, up to a limit. Not collective. */
Status checkpoint_check_layers(const char *path, const CheckpointMeta *meta, const Config *config,
                               const Graph *model);
/* Reads only the attributes of a checkpoint. Not collective. */
Status checkpoint_read_meta(const char *path, CheckpointMeta *meta);
/* A set of files that this process has found to be good, or has seen. A file is identified by
 * device, inode, size and time of modification when it was added. */
typedef struct KnownFiles KnownFiles;
KnownFiles *known_files_new(void);
void known_files_free(KnownFiles **known);
void known_files_add(KnownFiles *known, const char *path);
/* Returns true if path is an unchanged file of the set, under this or another name. */
bool known_files_have(const KnownFiles *known, const char *path);
/* Finds the newest good "step-*.h5" in dir and verifies its checksums; damaged files are named in a
 * warning and skipped. *path: owned by the caller; NULL if dir has no step file. ERR_IO or
 * ERR_NOINPUT: the folder cannot be listed, or a file cannot be read at present. ERR_DATA: there
 * are step files, but none can be loaded. If an older step file or best.h5 is good, the error's
 * message names it. good: files that need not be verified again; may be NULL. Not collective: rank
 * 0 calls it and sends the result to the other ranks. */
Status checkpoint_newest(const char *dir, KnownFiles *good, char **path);
/* Checks that the attributes of path, a run's best.h5, can be read. If they cannot, the message
 * names the newest good "step-*.h5" in dir. Not collective. */
Status checkpoint_check_best(const char *dir, const char *path);
/* Returns the path of the newest "step-*.h5" in dir without reading its tensors; checkpoint_load
 * verifies them. Returns NULL if there is none, or if its table of tensors or its attributes are
 * damaged; checkpoint_newest then finds the file to load, or fails with the reason. The caller owns
 * the path. Not collective. */
char *checkpoint_newest_unverified(const char *dir);
/* Finds the newest "step-*.h5" in dir that is not in `seen` and whose table and attributes can be
 * read. *step: the step of that file, or -1 if there is none. Adds all step files of the folder to
 * `seen`. ERR_IO. Not collective. */
Status checkpoint_find_unseen(const char *dir, KnownFiles *seen, int64_t *step);
/* Removes the ".part" files of saves that died and, if keep is not 0, each step-*.h5 that is older
 * than the newest `keep` good ones. Files that are not in `good` are verified by reading; a file
 * that cannot be loaded is not counted. best.h5 is not removed. saved: path of a file that has just
 * been saved, which is kept and counted, whatever its step; may be NULL. Not collective. */
Status checkpoint_prune(const char *dir, int64_t keep, KnownFiles *good, const char *saved);

/* Prints attributes and tensors with their hashes: `weft ckpt info`. Not collective. */
Status checkpoint_print(const char *path, FILE *out, bool json);
/* Verifies a file, or all checkpoints in a run's folder or in its folder checkpoints/, newest
 * first; prints a line for each, and a line with the file from which a run resumes. ERR_DATA: the
 * file, or a file in the folder, is damaged. ERR_NOINPUT: the folder has no checkpoint. Not
 * collective. */
Status checkpoint_check(const char *path, FILE *out);
/* Compares the checkpoints a and b and prints the first differences: `weft ckpt diff`. *equal: true
 * if tensors and state of training are equal to the bit. Not collective. */
Status checkpoint_diff(const char *a, const char *b, FILE *out, bool *equal);

/* Arguments and results of an import. */
typedef struct CheckpointImport {
    /* from: path of FILE.safetensors, FILE.pth, or an .index.json with its shards; out: path of the
     * checkpoint to write, which is replaced; borrowed */
    const char *from, *out;
    /* group of tensors to read from a .pth file, for example "model"; borrowed; NULL: the only
     * group that is not an optimizer's; if several are not, the only one of them with a usual name
     * (state_dict, model_state_dict, model or module) */
    const char *key;
    /* path of transformers' config.json, which describes the model; borrowed; NULL: config.json in
     * the folder of `from`, if it exists */
    const char *description;
    /* rename: OLD:NEW, [rename_count]: a name that begins with OLD begins with NEW afterwards; the
     * first entry that fits a name is applied; drop: patterns of names to leave out, [drop_count];
     * borrowed */
    char *const *rename, *const *drop;
    int rename_count, drop_count;
    /* result: number of values in the parameters */
    int64_t values;
    /* result: help line of the model family to which the file's names and layouts belong; static */
    const char *family;
    /* result: lines of section `model` of a configuration for the described model; owned by the
     * caller; NULL: there is no description */
    char *model;
    /* result: length of context for which the model was made */
    int64_t context;
} CheckpointImport;
/* Writes all parameters and running statistics of a file as a checkpoint of step 0. The names of
 * the tensors in the file decide the family of models, and the family decides names and layouts in
 * the checkpoint. A description is checked against the tensors, and its model becomes the
 * checkpoint's configuration. ERR_NOINPUT, ERR_IO. ERR_USAGE: `key` is no group, or `out` is a file
 * that is read. ERR_DATA: the description has a field that changes results and is not supported,
 * tensors do not fit the described model, the file violates its format, or a tensor has elements
 * that are no floats or not finite. Not collective. */
Status checkpoint_import(CheckpointImport *import);
/* Checks the const tables of file formats and of families of models. ERR_BUG names the first that
 * is incomplete. */
Status checkpoint_rows_check(void);
/* These two functions return the name of file format i of other programs, or of model family i;
 * NULL if i is past the last one. *help: description of the format or family. */
const char *checkpoint_format_name(int i, const char **help);
const char *checkpoint_family_name(int i, const char **help);
/* Arguments and results of an export as safetensors. */
typedef struct CheckpointExport {
    /* from: path of the checkpoint; out: path of the file to write; borrowed */
    const char *from, *out;
    /* true: averages (train.ema) are exported instead of parameters, as far as the file has them */
    bool exports_averages;
    /* results. tensors: number of tensors written; averaged: number of averages among them */
    int tensors, averaged;
    /* result: help line of the model family; static */
    const char *family;
} CheckpointExport;
/* Verifies parameters and running statistics of a checkpoint, and writes them in fp32 to a
 * safetensors file, with the names and layouts of the model's family. Not collective. */
Status checkpoint_export(CheckpointExport *export);
/* Checks a checkpoint before an export as safetensors or ONNX. ERR_DATA: it has sparse tables,
 * which neither format can hold. form: name of the format, for the message. Not collective. */
Status checkpoint_export_check(const char *from, const char *form);

/* Arguments of checkpoint_shrink, which removes channels from a checkpoint. */
typedef struct CheckpointShrink {
    /* from: path of the checkpoint; out: path of the file to write; borrowed */
    const char *from, *out;
    /* units of the graph of the checkpoint's model as graph_build made it, before fusion and
     * slicing; borrowed */
    const Units *units;
    /* method, sparsity and round are those of PruneOptions */
    const PruneMethod *method;
    double sparsity;
    int64_t round;
} CheckpointShrink;
/* Writes a checkpoint without the channels of the units that prune_choose chooses to remove:
 * parameters, running statistics and optimizer state, at the same step. removed: result,
 * bool[number of units]. config: the remaining widths are set in it, and it becomes the
 * configuration of the new file. If channels are
 * removed, the best metric and the losses of the new file are unknown. *after: graph of the smaller
 * model, owned by the caller. ERR_DATA: tensors do not fit the model. Not collective. */
Status checkpoint_shrink(const CheckpointShrink *options, Config *config, bool *removed,
                         Graph **after);

/* Arguments of an export to ONNX: opset 17, IR 8, fp32 values, any number of samples. */
typedef struct OnnxModel {
    /* configuration of the model to which the checkpoint's parameters belong; borrowed */
    const Config *config;
    /* description of one sample: int32 tokens, which become int64 in the file, or floats */
    Desc input;
    /* data set with scale, mean and deviation; borrowed; NULL: they are unknown */
    const DataSet *set;
    /* normalize: true if the exported model reads data as it is stored; softmax: true if it returns
     * probabilities */
    bool normalize, softmax;
    /* true: averages (train.ema) are exported instead of parameters, as far as the file has them */
    bool averages;
    /* largest number of bytes of the written file OUT; 0: 2 GiB, the limit of the format. The
     * tensors of a larger model are stored separately in OUT.data. */
    int64_t bytes_max;
    /* true: an existing OUT.data may be overwritten, or removed if OUT does not need it */
    bool force;
} OnnxModel;
/* The result of an export to ONNX. */
typedef struct OnnxExported {
    /* nodes: number of nodes; averaged: number of tensors that are averages */
    int nodes, averaged;
    int64_t classes;
    /* true: values are in OUT.data */
    bool external;
} OnnxExported;
/* Writes the model with the verified parameters of the checkpoint `from` to the file `out`. The
 * number of classes or tokens comes from the configuration or from the shapes of tensors.
 * ERR_CONFIG: ONNX lacks a layer. ERR_DATA: the parameters are of another model. ERR_USAGE:
 * OUT.data is needed and exists, and force is false. Not collective. */
Status checkpoint_export_onnx(const char *from, const char *out, const OnnxModel *model,
                              OnnxExported *made);

/* The hash of a tensor. */
typedef struct CheckpointHash {
    /* path of the tensor in the file; owned */
    char *path;
    uint64_t hash;
} CheckpointHash;
typedef struct CheckpointHashes {
    int count;
    /* hashes, sorted by path, [count]; owned */
    CheckpointHash *tensor;
} CheckpointHashes;
/* Computes the hash of every tensor after verifying its checksum. Release with
 * checkpoint_hashes_fini. Not collective. */
Status checkpoint_hashes(const char *path, CheckpointHashes *hashes);
void checkpoint_hashes_fini(CheckpointHashes *hashes);

#endif
