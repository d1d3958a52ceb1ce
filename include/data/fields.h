/* Sets of fields: variables on a grid of rows and columns that simulation codes write to HDF5 or
 * NetCDF-4 files, read without an import. A frame is all variables at one time; a sample has frames
 * at fixed offsets from its own time. Not collective. */
#ifndef WEFT_DATA_FIELDS_H
#define WEFT_DATA_FIELDS_H

#include "config.h"
#include "data/array.h"

#include <sys/stat.h>

/* Roles of variables in data.variables. Inputs and targets have offsets (data.window). Scalars have
 * a time, but no rows and columns. Extra channels are computed by weft. */
typedef enum FieldRole {
    FIELD_INPUT,
    FIELD_STATIC,
    FIELD_TARGET,
    FIELD_SCALAR,
    FIELD_EXTRA,
    FIELD_ROLES
} FieldRole;
/* length of the arrays FieldSet.offsets and FieldSet.offset, which are indexed by role; their entry
 * of FIELD_STATIC is not used */
enum { FIELD_WINDOWS = FIELD_TARGET + 1 };
/* Kinds of extra channels; hour and year are constant over space. */
#define EXTRA_WORDS(W)                                                                             \
    W(EXTRA_LATITUDE, "latitude")                                                                  \
    W(EXTRA_LONGITUDE, "longitude")                                                                \
    W(EXTRA_ROW, "row")                                                                            \
    W(EXTRA_COLUMN, "column")                                                                      \
    W(EXTRA_LOCAL_HOUR, "local_hour") W(EXTRA_HOUR, "hour") W(EXTRA_YEAR, "year")
typedef enum FieldExtra { EXTRA_WORDS(LIST_CONSTANT) FIELD_EXTRAS } FieldExtra;
/* Words of data.predict. */
#define PREDICT_WORDS(W) W(PREDICT_VALUE, "value") W(PREDICT_CHANGE, "change")
typedef enum FieldPredict { PREDICT_WORDS(LIST_CONSTANT) } FieldPredict;

/* Meanings of the dimensions of an array. */
typedef enum FieldDim { FIELD_TIME, FIELD_LEVEL, FIELD_ROW, FIELD_COLUMN, FIELD_DIMS } FieldDim;

/* Limits of a set. */
enum {
    FIELD_VARIABLES = 48,
    /* selected levels of a variable */
    FIELD_LEVELS = 64,
    /* channels of a sample's inputs, or of its targets */
    FIELD_CHANNELS = 256,
    /* offsets in time of a role */
    FIELD_OFFSETS = 32,
    FIELD_SEGMENTS = 1 << 17,
    FIELD_FILES = 1 << 14,
    /* values of the coordinate of rows or of columns (FieldAxis) */
    FIELD_ROWS = 8192,
    /* stored values of a variable that mean that the value is missing */
    FIELD_MISSING_CODES_MAX = 6,
    /* bytes of a variable's name */
    FIELD_NAME = 128,
    /* classes of labels */
    FIELD_CLASSES = 256,
    /* bytes of the name of a class */
    FIELD_CLASS_NAME = 48
};

/* How a stored value becomes a number: stored * scale + add. If the stored value is one of
 * `missing`, the number is missing. */
typedef struct FieldPacking {
    double scale, add;
    int missing_count;
    double missing[FIELD_MISSING_CODES_MAX];
} FieldPacking;

/* A variable's array in one file. */
typedef struct FieldArray {
    ElementType type;
    /* true: the bytes of an element in the file are big-endian */
    bool big_endian;
    /* byte offset in the file of contiguous data; -1: the array is not contiguous, or it must be
     * read through HDF5 */
    int64_t offset;
    /* chunk_bytes: size of an unpacked chunk, in bytes; chunks: number of chunks. Both are 0 if the
     * array has no chunks or HDF5 reads it. */
    int64_t chunk_bytes, chunks;
    FieldPacking packing;
} FieldArray;

/* A variable of data.variables. */
typedef struct FieldVariable {
    char name[FIELD_NAME], units[80];
    /* number of dimensions, the same in all files */
    int ndim;
    /* meaning of each dimension, a FieldDim, the same in all files */
    int8_t dim[SHAPE_DIMS];
    /* size of each dimension, by FieldDim; 1: the variable lacks this dimension */
    int64_t size[FIELD_DIMS];
    /* true: the variable has only one frame, which is used at all times */
    bool is_static;
    /* true: the variable has one number for all rows and columns */
    bool is_scalar;
    /* 1 + FieldExtra for a variable that weft computes; 0: the variable is in the files */
    int8_t extra_kind;
    /* the way in which the first file stores the variable: "chunked 1x64x128, shuffle, deflate" */
    char storage[120];
    /* number of selected levels */
    int levels;
    /* for each selected level, its index along the array's dimension FIELD_LEVEL */
    int16_t level_index[FIELD_LEVELS];
    /* for each selected level, the value of its coordinate; NaN: unknown */
    double level_value[FIELD_LEVELS];
} FieldVariable;

/* A file of a set of fields. */
typedef struct FieldFile {
    /* first_frame: index, in the whole set, of this file's first frame; frames: number of frames */
    int64_t first_frame, frames;
    /* index in FieldSet.text of the first byte of the file's path */
    int64_t path_at;
    /* the file's state when it was opened */
    struct stat stat;
    /* hash of how the file stored its arrays when it was opened (data_set_hash_layout) */
    uint64_t layout;
} FieldFile;

/* Consecutive frames at equal distances in time, which may extend over several files. Its samples
 * are those that have all their frames in the segment. */
typedef struct FieldSegment {
    /* first: index, in the whole set, of the segment's first frame; frames: count of its frames */
    int64_t first, frames;
    /* first_sample: index, in the whole set, of the segment's first sample; first_sample_frame:
     * index, in the whole set, of the frame at that sample's own time (offset 0); samples: count of
     * the segment's samples */
    int64_t first_sample, first_sample_frame, samples;
    /* time of the first frame, in seconds since 1970-01-01 00:00 in the set's calendar; 0 if frames
     * have no times */
    double start;
} FieldSegment;

/* Mean and standard deviation of one level of a variable: of its values, or of their changes. */
typedef struct FieldStat {
    /* variable: index of the variable; level: index among its selected levels */
    int16_t variable, level;
    /* number of frames over which changes are taken; 0: the mean is that of the values */
    int change;
    /* NAN: all values are missing */
    double mean, deviation;
} FieldStat;
/* largest number of rows of FieldStats */
enum { FIELD_STATS = 3 * FIELD_CHANNELS };
/* All means and deviations that a set needs. */
typedef struct FieldStats {
    int count;
    FieldStat row[FIELD_STATS];
} FieldStats;
/* Moments of some values: their number, mean, and sum of squared distances from the mean. */
typedef struct FieldMoments {
    double count, mean, squares;
} FieldMoments;

/* One channel of a sample: a level of a variable at an offset in time. */
typedef struct FieldChannel {
    /* variable: index in FieldSet.variable; level: index among the variable's selected levels;
     * offset: index in FieldSet.offset[FIELD_INPUT] or, for a target, in
     * FieldSet.offset[FIELD_TARGET] */
    int16_t variable, level, offset;
} FieldChannel;

/* The classes of a set of label fields: each pixel of the target has a class below `count`, or
 * none. */
typedef struct FieldClasses {
    /* number of classes; 0: targets are numbers */
    int count;
    /* true: names of classes are known, from flag_values and flag_meanings (CF conventions, section
     * 3.5); a class without a meaning has its number as name */
    bool named;
    /* names of the classes, [count] of them set */
    char name[FIELD_CLASSES][FIELD_CLASS_NAME];
    /* true: a pixel with the value `ignore` has no label */
    bool has_ignore;
    double ignore;
} FieldClasses;

/* Patches (data.patch): each sample is a rectangle that is cut out of the fields. */
typedef struct FieldPatch {
    /* size: rows and columns of the inputs of a patch, 0: samples are whole fields; field_size:
     * rows and columns of whole inputs */
    int64_t size[2], field_size[2];
    /* ratio of the resolutions of rows, then of columns: input_unit rows (or columns) of the inputs
     * cover the same distance as target_unit rows (or columns) of the targets. One of the two
     * numbers is 1. */
    int64_t input_unit[2], target_unit[2];
    /* number of tiles along rows and columns; 0: patches lie at random places */
    int64_t tiles[2];
    /* seed of the random places */
    uint64_t seed;
} FieldPatch;

/* The coordinate of rows or columns. */
typedef struct FieldAxis {
    /* number of values; 0: unknown */
    int count;
    /* true: the values are latitudes or longitudes, in degrees */
    bool degrees;
    float value[FIELD_ROWS];
} FieldAxis;

/* The variables, files and samples of a set of fields: plain bytes, like the DataSet, except for
 * one block of memory. */
typedef struct FieldSet {
    int variables, files, segments;
    /* number of variables that are in the files. They come first in `variable`; the variables that
     * weft computes follow */
    int stored;
    FieldVariable variable[FIELD_VARIABLES];
    /* The files of the set, [files]. `file`, `array`, `text` and `segment` are in one block of
     * memory (field_block.c). The opened DataSet owns the block; copies of this DataSet borrow
     * it. */
    FieldFile *file;
    /* the array of each variable in each file, [files][stored] */
    FieldArray *array;
    /* paths of the files, each with a final zero; text_bytes bytes */
    char *text;
    /* the segments of the set, [segments] */
    FieldSegment *segment;
    int64_t text_bytes, block_bytes;
    /* number of offsets of each role */
    int offsets[FIELD_WINDOWS];
    /* offsets of each role, in frames from a sample's own time */
    int offset[FIELD_WINDOWS][FIELD_OFFSETS];
    /* inputs: number of channels of inputs; targets: number of channels of targets. The first
     * step_inputs inputs are ordered by offset; static and extra channels follow, and then the
     * channels that are constant over space. Targets are ordered by offset. */
    int inputs, targets;
    /* Rollouts (train.rollout). steps: number of steps. If it is 1, there is no rollout, and
     * targets may have several offsets; if it is above 1, each step has one offset of targets.
     * step_inputs, step_targets: numbers of inputs and of targets of one step. The inputs with
     * index step_inputs, step_inputs + 1, ... are read by later steps only. later_offsets: number
     * of offsets that only later steps read; they are in offset[FIELD_INPUT], from index
     * offsets[FIELD_INPUT] on. */
    int steps, step_inputs, step_targets, later_offsets;
    /* the channels of the inputs and of the targets */
    FieldChannel input[FIELD_CHANNELS], target[FIELD_CHANNELS];
    /* For each target that is a change (data.predict), the index of the input that is subtracted
     * from the future value: the same variable and level at the last offset of the inputs. -1: the
     * target is a value. */
    int16_t change_from[FIELD_CHANNELS];
    /* mean and standard deviation of each target in the form that the model learns, value or
     * change; those of inputs are DataSet.mean and DataSet.std */
    float target_mean[FIELD_CHANNELS], target_std[FIELD_CHANNELS];
    FieldClasses classes;
    /* weight of each target in losses */
    float target_weight[FIELD_CHANNELS];
    /* true: losses weight each row of pixels by the cosine of its latitude */
    bool latitude_weights;
    /* index of the variable whose values weight the pixels of the targets in losses and metrics
     * (data.mask); -1: none */
    int mask;
    FieldPatch patch;
    /* seconds between frames; 0: frames have no times */
    double step_s;
    /* calendar of times, a Calendar (fields/calendar.h) */
    int calendar;
    /* rows, columns: coordinates of the inputs; target_rows: coordinate of the rows of targets,
     * which may have another size */
    FieldAxis rows, columns, target_rows;
} FieldSet;

/* field_path returns the path of a file, field_array the array of a variable in a file; both are
 * borrowed. */
static inline const char *field_path(const FieldSet *f, int file)
{
    return f->text + f->file[file].path_at;
}
static inline FieldArray *field_array(const FieldSet *f, int file, int variable)
{
    return &f->array[(int64_t)file * f->stored + variable];
}

/* Returns the number of input channels of data.variables that are constant over space. They are the
 * last of the first step_inputs inputs of the set. */
int field_constants(const Config *config);

/* The source of an input channel of a step in a rollout. The value is the sum of two parts: input
 * number `channel` of the sample, and target number `target` as predicted by the earlier step
 * `step`. A number of -1 means that this part is absent; if `target` is -1, `step` is 0. If both
 * parts are there, the target is a change; if only the target is there, it is a value. */
typedef struct FieldSource {
    int channel, step, target;
} FieldSource;
/* Returns the source of an input channel of a step. step: counted from 1; channel: below
 * step_inputs. */
FieldSource field_source(const FieldSet *f, int step, int channel);

struct DataSet;
/* Memory in which readers keep the unpacked chunks of a set. The processes of a node may map the
 * same memory, at different addresses. */
typedef struct FieldMemory {
    /* memory of the size that data_fields_kept_bytes returns, aligned to 64 bytes, which one
     * process has prepared with data_fields_memory_init; borrowed; NULL: each reader allocates its
     * own memory */
    void *at;
    /* Called with `user` from time to time by threads that wait for a chunk which another process
     * unpacks. The function ends the job if that process has ended. The member is NULL if no other
     * process maps the memory. */
    void (*check)(void *user);
    void *user;
} FieldMemory;
/* Returns the bytes of memory for the chunks of a set that the readers of `ranks` ranks share; 0:
 * the set has no chunks that are unpacked without HDF5. */
size_t data_fields_kept_bytes(const struct DataSet *set, int ranks);
/* Prepares zeroed memory of data_fields_kept_bytes bytes for `ranks` ranks. */
void data_fields_memory_init(const struct DataSet *set, int ranks, void *at);
/* Returns the number of chunks of a set that are unpacked without HDF5. */
int64_t data_fields_chunks(const struct DataSet *set);

#endif
