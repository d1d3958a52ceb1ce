/* checkpoint: one HDF5 file per checkpoint that any HDF5 tool reads and any grid loads.
 * /params/<name>, /optim/<slot>/<name>, /buffers/<name>: whole tensors, fp32, in the model's own
 * order; each with an attribute xxh64. Root attributes: format="weft-checkpoint", version, step,
 * epoch, data_step and epoch_samples (steps and samples within the epoch), seed, config (the
 * resolved text), weft (version),
 * best_metric; data_train and data_test (what the data sets held); of fp16 loss_scale,
 * loss_scale_good and skipped; losses (of the last good steps); what evaluations and a hook have
 * left; what a sample is, and the names of classes; algorithms (of cuBLASLt and cuDNN). Written as
 * NAME.<unique>.part, synced, read back, renamed: a .part is never loaded. */
#ifndef WEFT_CHECKPOINT_H
#define WEFT_CHECKPOINT_H

#include "data.h"
#include "model/units.h"
#include "optim.h"
#include "parallel.h"

enum { CHECKPOINT_LOSSES = 200 };
/* What a sample is, for those who have the checkpoint and no data set. */
typedef struct CheckpointInput {
    /* (C,H,W) as the model takes it; channels 0: not known, or no image */
    int64_t channels, height, width;
    /* images as the data set stores them; 0: of many sizes, as files */
    int64_t stored_height, stored_width;
    /* that the labels tell apart */
    int64_t classes;
    /* 0, 1 or channels */
    int stats;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* on raw values, before these */
    float scale;
    /* DataSet's; a file without them: false */
    int64_t turned, bicubic;
} CheckpointInput;
typedef struct CheckpointMeta {
    /* steps done */
    int64_t step;
    /* epochs done, and steps and samples of the next one: a run resumes there */
    int64_t epoch, data_step, epoch_samples;
    /* samples of an epoch; train.batch of the last step, and of the first one, whose steps the
     * learning rate's curve counts. 0, all: a file of before these were kept */
    int64_t samples, batch, schedule_batch;
    int64_t seed;
    /* NaN: none yet */
    double best_metric;
    /* the word of checkpoint.best_metric that it is; "": not said */
    char best_of[16];
    /* Evaluations that have counted. 0: of lr only .lr says something, and stop_ nothing. */
    int64_t evaluations;
    LrState lr;
    /* of train.early_stop: the best value that counted, NaN: none; evaluations since */
    double stop_best;
    int64_t stop_bad;
    /* run.hook has asked for the run's end */
    int hook_stop;
    /* a stop has broken off the evaluation after this step */
    int evaluation_due;
    CheckpointInput input;
    /* of fp16; 0: none */
    double loss_scale;
    /* steps since it changed; of all steps, those without update */
    int64_t loss_scale_good, skipped;
    /* of the last good steps, oldest first: so many */
    float loss[CHECKPOINT_LOSSES];
    int losses;
    /* texts; owned where loaded (checkpoint_meta_fini) */
    char *config, *version;
    /* likewise: names of classes, a line each, in their order; NULL: there are none */
    char *classes;
    /* likewise: the record of algorithms of train.cuda_tune (tensor/algorithm_record.h); NULL: the
     * libraries' own first choice, or a run on CPUs */
    char *algorithms;
    /* "2x1x1" */
    char grid[32];
    /* "": not known, or none */
    char data_train[DATA_FINGERPRINT], data_test[DATA_FINGERPRINT];
    /* of the training set; 0: not known, or none */
    DataIds data_ids;
    /* model.init_from: the file, its step and a hash of what was taken; "": the run began anew */
    char init_from[DATA_PATH + 64];
} CheckpointMeta;
void checkpoint_meta_fini(CheckpointMeta *meta);

/* What a checkpoint holds, as the caller knows it: tensors come and go through get and set, in
 * plain order. */
typedef struct CheckpointTensor {
    /* "/params/conv1.weight"; borrowed */
    const char *path;
    /* ndim 1..4 */
    Shape shape;
    /* the ranks that can give it when saving; rank_count 0: all */
    int rank_first, rank_count;
    /* (n,2): n whole numbers of 64 bits, in the memory of two floats each; in the file (n) */
    bool ids;
    /* "/tables/embed/rows#0002" is a block of rows of the data set before the #: its blocks come
     * one behind the other, from #0000 on, and each has a checksum of its own */
    bool block;
} CheckpointTensor;
/* In front of the number of a block. */
enum { CHECKPOINT_BLOCK = '#' };
/* "/params/NAME" or, of a running statistic, "/buffers/NAME". Owner: the caller. */
char *checkpoint_path(const Param *param);
/* The NAME of such a path, in it; NULL: of another one. */
const char *checkpoint_leaf(const char *path);
/* A tensor of a file, as match sees it: borrowed path, plain shape, its checksum or 0. */
typedef struct CheckpointStored {
    const char *path;
    Shape shape;
    uint64_t hash;
} CheckpointStored;
/* Called on rank 0 before each file is made or renamed, and once the last one has its name, by the
 * thread that works beside training. May be NULL. */
typedef struct CheckpointHooks {
    void *user;
    void (*before)(void *user), (*after)(void *user);
} CheckpointHooks;
typedef struct CheckpointIo {
    int count;
    /* borrowed; the same on every rank */
    const CheckpointTensor *tensor;
    void *user;
    /* fills plain and returns it, or says where the tensor lies until the next call of get */
    const float *(*get)(void *user, int i, float *plain);
    void (*set)(void *user, int i, const float *plain);
    /* Load, at_once: where tensor i, which this rank wants, is to lie in plain order. It is read to
     * there, and set is called with that; after an error anything may lie there. NULL, or NULL for
     * i: it is read elsewhere, for set to take. */
    float *(*place)(void *user, int i);
    /* Save: brings what lies in parts on several ranks to `writer`. All ranks begin for the tensors
     * of a turn, in the same order, which has one of each writer at most; then they wait for all of
     * them, and each writer gets its own. NULL, both: nothing lies in parts. */
    void (*collect_begin)(void *user, int i, int writer);
    void (*collect_wait)(void *user);
    /* save */
    CheckpointHooks hooks;
    /* Save: a second file of the same bytes, which rank 0 writes once the first one is whole, and
     * which takes its name before. NULL: there is none. */
    const char *also;
    /* load: does this rank set it? NULL: every rank sets all */
    bool (*wants)(void *user, int i);
    /* load: what the file holds under /optim is passed over */
    bool params_only;
    /* Load, on rank 0: which of the file's tensors, sorted by path, becomes tensor i: from[i], that
     * has i's shape; -1, as it comes: i stays as it is. An error is checkpoint_load's. NULL: the
     * two have the same tensors. */
    Status (*match)(void *user, const CheckpointMeta *meta, const CheckpointStored *stored,
                    int count, int *from);
    /* Load: each tensor is set as soon as it has been verified, so that it is read once; after
     * ERR_DATA for a checksum some may have been set, and the caller loads another file, or ends.
     * Else nothing is set before all of them are verified. */
    bool at_once;
} CheckpointIo;

/* In the message of a save that had no room, for who knows what else takes it. */
#define CHECKPOINT_MAKE_ROOM "make room there"
/* Writes path; ranks share the tensors out among themselves by bytes. What was written is read
 * back, from the disk where the kernel allows, before it takes its name. A full disk or any failure
 * leaves earlier files alone, removes the .part, and is ERR_IO on every rank. A tensor with a NaN
 * or an infinity is not saved: ERR_DATA naming it. Collective. */
Status checkpoint_save(const World *world, const char *path, const CheckpointMeta *meta,
                       const CheckpointIo *io);
/* The same beside other work: a thread hashes, writes, syncs and reads back, without messages; each
 * call of next, by all ranks, waits for a stage of theirs, tells the ranks of each other's and
 * starts the following one, until *done. The world, meta and io are borrowed until free. */
typedef struct CheckpointSave CheckpointSave;
/* beside: the thread calls io's get, which gives what nobody changes until free, and there is no
 * collect; else begin and next do all themselves. Collective. Owner: the caller. */
CheckpointSave *checkpoint_save_begin(const World *world, const char *path,
                                      const CheckpointMeta *meta, const CheckpointIo *io,
                                      bool beside);
/* Does this rank's thread still work at its stage? next would wait. Not collective. */
bool checkpoint_save_busy(const CheckpointSave *save);
/* What this rank has spent on it so far, in begin, in next and in its thread; not while that
 * works. */
double checkpoint_save_seconds(const CheckpointSave *save);
/* Errors as checkpoint_save's; after one *done is true. Collective; all ranks agree. */
Status checkpoint_save_next(CheckpointSave *save, bool *done);
/* Once done, or where no rank will go on. Not collective. */
void checkpoint_save_free(CheckpointSave **save);
/* owner[i]: which of so many ranks writes tensor i, wholly; largest first, each to the rank with
 * the fewest bytes (the lowest of equals) of those that hold it. A pure function: every rank finds
 * the same. */
void checkpoint_owners(const CheckpointIo *io, int ranks, int *owner);
/* Loads path on every rank. Not a checkpoint, truncated or a tensor whose checksum is off: ERR_DATA
 * naming file and tensor. Another model (missing, surplus or differently shaped tensors): ERR_DATA
 * that names the first difference and nothing is set. Tensors that another program rewrote
 * (chunked, compressed, other float types) are unpacked in a process of their own; one without a
 * checksum is named in a warning. meta may be NULL. Collective. */
Status checkpoint_load(const World *world, const char *path, CheckpointMeta *meta,
                       const CheckpointIo *io);
/* Attributes, table and every checksum: ERR_DATA where path is not a good checkpoint. meta may be
 * NULL. Not collective. */
Status checkpoint_verify(const char *path, CheckpointMeta *meta);
/* The blocks of a file, in the order of paths: how many rows there are is not known before. Owner:
 * the caller; release with checkpoint_list_fini. Collective; all ranks agree. */
typedef struct CheckpointList {
    int count;
    /* owned, paths, too */
    CheckpointTensor *tensor;
} CheckpointList;
Status checkpoint_list_blocks(const World *world, const char *path, CheckpointList *list);
void checkpoint_list_fini(CheckpointList *list);
/* Does the configuration in the file compute the same with its tensors as config does? model: of
 * config, for its data and classes; it may be fused and sliced. A file without a configuration has
 * nothing to compare. ERR_DATA names all layers that differ, up to a bound. Not collective. */
Status checkpoint_same_model(const char *path, const CheckpointMeta *meta, const Config *config,
                             const Graph *model);
/* Only the attributes. Not collective. */
Status checkpoint_read_meta(const char *path, CheckpointMeta *meta);
/* Files as they were when they were added: those that this process has read back as good, or has
 * seen. Owner: the caller. */
typedef struct KnownFiles KnownFiles;
KnownFiles *known_files_new(void);
void known_files_free(KnownFiles **known);
void known_files_add(KnownFiles *known, const char *path);
/* Is path one of them, by this or another name? */
bool known_files_have(const KnownFiles *known, const char *path);
/* Newest good "step-*.h5" in dir, checksums verified; torn ones are named in a warning and skipped.
 * *path NULL if dir has none; else owned by caller. A folder that cannot be listed, or a file that
 * cannot be read for now: ERR_IO or ERR_NOINPUT; none of several loads: ERR_DATA; the message says
 * which others are good. good may be NULL. Not collective: rank 0 asks and tells the others. */
Status checkpoint_newest(const char *dir, KnownFiles *good, char **path);
/* The newest "step-*.h5" in dir, whose tensors are not read: checkpoint_load verifies them. NULL
 * where there is none, or its table and attributes are not whole; then checkpoint_newest
 * finds the one to load, or why there is none. Owner: the caller. Not collective. */
char *checkpoint_newest_unread(const char *dir);
/* The step of the newest "step-*.h5" in dir that is not in seen and opens as a checkpoint (its
 * tensors are not read); -1: there is none. All that are there are added to seen. ERR_IO. Not
 * collective. */
Status checkpoint_new_step(const char *dir, KnownFiles *seen, int64_t *step);
/* Removes what is older than the newest `keep` good step-*.h5 (keep 0: nothing; those not known as
 * good are read), and what saves that died left as *.part. A file that does not load counts for
 * nothing; best.h5 stays. saved: a file that has just been saved, and is one of those to keep
 * whatever its number; NULL: none. Not collective. */
Status checkpoint_prune(const char *dir, int64_t keep, KnownFiles *good, const char *saved);

/* The verbs: print attributes and tensors (with hashes); verify checksums; compare two files,
 * *equal false and the first difference printed where they differ. Not collective. */
Status checkpoint_print(const char *path, FILE *out, bool json);
/* A file, or all of a run's folder or of its checkpoints/, newest first, with a line for each and
 * one that says which a run goes on from. A folder with a bad one is ERR_DATA, without any
 * ERR_NOINPUT. */
Status checkpoint_check(const char *path, FILE *out);
Status checkpoint_diff(const char *a, const char *b, FILE *out, bool *equal);

/* Arguments and results of an import. */
typedef struct CheckpointImport {
    /* borrowed: FILE.safetensors, FILE.pth, or an .index.json with its shards; the checkpoint to
     * write, which is replaced */
    const char *from, *out;
    /* borrowed: the group of tensors to take out of a .pth ("model"); NULL: the only or the
     * obvious one */
    const char *key;
    /* borrowed: config.json of transformers, which says what model it is; NULL: the one beside
     * `from`, if there is one */
    const char *description;
    /* borrowed: prefixes OLD:NEW of names, the first that fits; patterns of names that are left
     * out */
    char *const *rename, *const *drop;
    int renames, drops;
    /* result: number of values in the parameters */
    int64_t values;
    /* result: names and layouts in words; static */
    const char *family;
    /* result: the lines of `model:` that the description says; NULL: there is none; owned by the
     * caller; and the tokens that it was made for */
    char *model;
    int64_t context;
} CheckpointImport;
/* Writes all parameters and running statistics of a file as a checkpoint of step 0. Names and
 * layouts are those of the family that the names tell. A description is checked: what changes a
 * result and is not to be had is ERR_DATA, and so are tensors that are not that model's; its model
 * becomes the checkpoint's configuration. ERR_NOINPUT, ERR_IO; ERR_DATA: what the
 * format does not allow, a tensor that is not of floats, a value that is not finite. Not
 * collective. */
Status checkpoint_import(CheckpointImport *import);
/* Name of format i of other programs' files, or of model family i in them; *help: its description.
 * NULL: there are no more. */
const char *checkpoint_format_name(int i, const char **help);
const char *checkpoint_family_name(int i, const char **help);
/* Parameters and running statistics of a checkpoint, verified, as F32 to a safetensors file, in the
 * names and layouts of its family. Not collective. */
Status checkpoint_export(const char *from, const char *out, int *tensors, const char **family);
/* Before either export: ERR_DATA where the checkpoint has sparse tables, which `form`, its word for
 * the reader, takes none of. Likewise. */
Status checkpoint_export_check(const char *from, const char *form);

/* Takes channels out of a checkpoint. */
typedef struct CheckpointShrink {
    const char *from, *out;
    /* of the model that `from` is of, as graph_build left it; channels of that graph */
    const Units *units;
    const PruneMethod *method;
    double sparsity;
    int64_t round;
} CheckpointShrink;
/* Chooses what goes (gone, one a unit: prune_choose), says the widths that are left in config, and
 * writes parameters, running statistics and optimizer's state without it to `out`, with config as
 * its configuration, at the same step; its best metric and losses are not known. after: that model.
 * ERR_DATA: tensors that are not that model's. Owner of *after: the caller. Not collective. */
Status checkpoint_shrink(const CheckpointShrink *what, Config *config, bool *gone, Graph **after);

/* What is exported as ONNX: opset 17, IR 8, values fp32, samples in any number. */
typedef struct OnnxModel {
    /* whose model the file's parameters are; borrowed */
    const Config *config;
    /* one sample: int32 tokens, which become int64, or floats */
    Desc input;
    /* scale, mean and deviation of its data; NULL: not known; borrowed */
    const DataSet *set;
    /* Takes data as it is stored; gives probabilities. */
    bool normalize, softmax;
    /* A file of more bytes has its tensors beside it, in OUT.data. 0: 2 GiB, what one can have */
    int64_t most;
    /* an OUT.data that is there may be written over; one that OUT no longer needs goes */
    bool force;
} OnnxModel;
typedef struct OnnxExported {
    int nodes;
    int64_t classes;
    bool beside;
} OnnxExported;
/* The model with a checkpoint's parameters, verified. How many classes or tokens there are tells
 * the configuration, or the tensors' shapes. ERR_CONFIG: a layer that ONNX does not have; ERR_DATA:
 * another model's parameters; ERR_USAGE: OUT.data is needed, is there and not force. Not
 * collective. */
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
/* The hash of every tensor, checksums verified. Release with checkpoint_hashes_fini. Not
 * collective. */
Status checkpoint_hashes(const char *path, CheckpointHashes *hashes);
void checkpoint_hashes_fini(CheckpointHashes *hashes);

#endif
