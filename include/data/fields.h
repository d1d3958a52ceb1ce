/* Sets of fields: variables on a grid of rows and columns that simulation codes write to HDF5 or
 * NetCDF-4 files, read as they are. A frame is all variables at one time; a sample has frames at
 * fixed offsets from its own time. */
#ifndef WEFT_DATA_FIELDS_H
#define WEFT_DATA_FIELDS_H

#include "config.h"
#include "data/array.h"

#include <sys/stat.h>

/* Roles of data.variables. Inputs and targets have offsets (data.window). Scalars have a time, but
 * no rows and columns. Extra channels are made by weft. */
typedef enum FieldRole {
    FIELD_INPUT,
    FIELD_STATIC,
    FIELD_TARGET,
    FIELD_SCALAR,
    FIELD_EXTRA,
    FIELD_ROLES
} FieldRole;
/* length of FieldSet.offset, whose index is a role; the entry of FIELD_STATIC is not used */
enum { FIELD_WINDOWS = FIELD_TARGET + 1 };
/* Kinds of extra channels; the last two are constant over space. */
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

/* Meanings of a dimension of an array. */
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
    /* values that mean missing */
    FIELD_MISSING = 6,
    /* bytes of a variable's name */
    FIELD_NAME = 128,
    /* classes of labels, and bytes of the name of a class */
    FIELD_CLASSES = 256,
    FIELD_CLASS_NAME = 48
};

/* How a stored value becomes a number: stored * scale + add, unless the stored value is one of
 * `missing`. */
typedef struct FieldPacking {
    double scale, add;
    int missing_count;
    double missing[FIELD_MISSING];
} FieldPacking;

/* A variable's array in one file. */
typedef struct FieldArray {
    ElementType type;
    /* true: the bytes of an element in the file are big-endian */
    bool big_endian;
    /* byte offset of contiguous data; -1: the array is not contiguous, or it must be read through
     * HDF5 */
    int64_t offset;
    /* bytes of an unpacked chunk, and number of chunks; 0: HDF5 reads the array, or it has no
     * chunks */
    int64_t chunk_bytes, chunks;
    FieldPacking packing;
} FieldArray;

typedef struct FieldVariable {
    char name[FIELD_NAME], units[80];
    /* number of dimensions, and FieldDim of each, the same in all files */
    int ndim;
    int8_t dim[SHAPE_DIMS];
    /* sizes of the dimensions, by FieldDim; 1: the variable lacks this dimension */
    int64_t size[FIELD_DIMS];
    /* true: the variable has one frame for all times */
    bool is_static;
    /* true: the variable has one number for all rows and columns */
    bool is_scalar;
    /* 1 + FieldExtra of a variable that weft makes; 0: the variable is in the files */
    int8_t made;
    /* how the first file stores it: "chunked 1x64x128, shuffle, deflate" */
    char storage[120];
    /* number of selected levels; for each of them its index in the array, and the value of its
     * coordinate (NaN: unknown) */
    int levels;
    int16_t level[FIELD_LEVELS];
    double level_value[FIELD_LEVELS];
} FieldVariable;

typedef struct FieldFile {
    /* number in the set of this file's first frame; number of its frames */
    int64_t first, frames;
    /* byte in FieldSet.text at which its path begins */
    int64_t path;
    /* the file's state when it was opened, and a hash of how it stored its arrays then
     * (data_set_hash_layout) */
    struct stat stat;
    uint64_t layout;
} FieldFile;

/* A run of frames at equal distances in time, which may extend over several files. Its samples are
 * those whose frames are all in the segment. */
typedef struct FieldSegment {
    /* number in the set of the first frame; number of frames */
    int64_t first, frames;
    /* number in the set of the first sample; the frame of that sample; number of samples */
    int64_t first_sample, sample_frame, samples;
    /* time of the first frame, in seconds since 1970-01-01 00:00 in the set's calendar; 0 if frames
     * have no times */
    double start;
} FieldSegment;

/* Mean and deviation of one level of a variable: of its values, or of their changes. */
typedef struct FieldStat {
    int16_t variable, level;
    /* the row is of changes over this number of frames; 0: the row is of the values themselves */
    int change;
    /* NAN: all values are missing */
    double mean, deviation;
} FieldStat;
/* All means and deviations that a set needs. */
enum { FIELD_STATS = 3 * FIELD_CHANNELS };
typedef struct FieldStats {
    int count;
    FieldStat row[FIELD_STATS];
} FieldStats;
/* Moments of some values: their number, mean, and sum of squared distances from the mean. */
typedef struct FieldMoments {
    double count, mean, squares;
} FieldMoments;

/* One channel of a sample: a variable's level at an offset. */
typedef struct FieldChannel {
    int16_t variable, level, offset;
} FieldChannel;

/* The target of a set of label fields: each pixel has a class, below `count`, or none. */
typedef struct FieldClasses {
    /* 0: targets are numbers */
    int count;
    /* true: names of classes are known, from flag_values and flag_meanings (CF conventions, section
     * 3.5); a class without a meaning has its number as name */
    bool named;
    char name[FIELD_CLASSES][FIELD_CLASS_NAME];
    /* true: the value `ignore` means that a pixel has no label */
    bool ignores;
    double ignore;
} FieldClasses;

/* Patches (data.patch): each sample is a rectangle that is cut out of the fields. */
typedef struct FieldPatch {
    /* rows and columns of the inputs of a patch (0: samples are whole fields), and of whole
     * inputs */
    int64_t size[2], whole[2];
    /* Along each axis input_unit rows of the inputs are as long as target_unit rows of the targets;
     * one of the two is 1. */
    int64_t input_unit[2], target_unit[2];
    /* number of tiles along each axis; 0: patches lie at random places */
    int64_t tiles[2];
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

/* The fields of a DataSet: plain bytes, like the DataSet, except for one block. */
typedef struct FieldSet {
    int variables, files, segments;
    /* number of variables that the files have, which are the first; those that weft makes follow */
    int stored;
    FieldVariable variable[FIELD_VARIABLES];
    /* One block of memory with everything that grows with the number of files (field_block.c):
     * files; arrays [files][stored]; paths, each ended by a zero; segments. The DataSet that was
     * opened owns it, copies borrow it. */
    FieldFile *file;
    FieldArray *array;
    char *text;
    FieldSegment *segment;
    int64_t text_bytes, block_bytes;
    /* number of offsets of each role, and the offsets in frames from a sample's own time */
    int offsets[FIELD_WINDOWS];
    int offset[FIELD_WINDOWS][FIELD_OFFSETS];
    /* Numbers of channels of inputs and of targets. Inputs are ordered by offset; static and extra
     * channels follow, and last those that are constant over space. Targets are ordered by
     * offset. */
    int inputs, targets;
    /* Rollouts (train.rollout). steps: number of steps; 1: no rollout, and any number of offsets of
     * targets; above 1: each step has one offset of targets. step_inputs, step_targets: numbers of
     * inputs and of targets of one step. The inputs from index step_inputs on are those that later
     * steps read from the data; later: number of their offsets, which follow the first
     * offsets[FIELD_INPUT] entries of offset[FIELD_INPUT]. */
    int steps, step_inputs, step_targets, later;
    FieldChannel input[FIELD_CHANNELS], target[FIELD_CHANNELS];
    /* If data.predict is change: for each target the index of the input channel from which its
     * change is counted, which has the same variable and level at the last offset. -1: the target
     * is a value. */
    int16_t change_from[FIELD_CHANNELS];
    /* mean and deviation of each target as the model learns it, value or change; those of inputs
     * are in DataSet.mean and std */
    float target_mean[FIELD_CHANNELS], target_std[FIELD_CHANNELS];
    FieldClasses classes;
    /* weight of each target in losses */
    float target_weight[FIELD_CHANNELS];
    /* true: losses weight rows by the cosine of their latitude */
    bool latitude_weights;
    /* index of the variable whose values weight the pixels of the targets in losses and metrics
     * (data.mask); -1: none */
    int mask;
    FieldPatch patch;
    /* seconds between frames; 0: frames have no time. The calendar of times, a Calendar
     * (fields/calendar.h). */
    double step_s;
    int calendar;
    /* coordinates of inputs, and of the rows of targets, which may have another size */
    FieldAxis rows, columns, target_rows;
} FieldSet;

/* Return the path of a file, borrowed, and the array of a variable in it. */
static inline const char *field_path(const FieldSet *f, int file)
{
    return f->text + f->file[file].path;
}
static inline FieldArray *field_array(const FieldSet *f, int file, int variable)
{
    return &f->array[(int64_t)file * f->stored + variable];
}

/* Returns the number of input channels that data.variables makes constant over space; they are the
 * last ones. */
int field_constants(const Config *config);

/* The source from which a step of a rollout reads an input channel: the sum of input `channel` of
 * the sample (-1: none) and of `target` of the earlier step `step` (-1: none). If both are given,
 * the target is a change; if not, it is a value. */
typedef struct FieldSource {
    int channel, step, target;
} FieldSource;
/* Returns the source of input `channel`, below step_inputs, of a step, counted from 1. */
FieldSource field_source(const FieldSet *f, int step, int channel);

struct DataSet;
/* Memory in which readers keep the unpacked chunks of a set. The processes of a node may map one
 * memory and share it, at different addresses. */
typedef struct FieldMemory {
    /* data_fields_kept_bytes bytes, at a multiple of 64, on which one process has called
     * data_fields_memory_init; borrowed; NULL: readers make their own */
    void *at;
    /* called from time to time by threads that wait for a chunk which another process unpacks, with
     * `user`; ends the job if that process has ended. NULL: no other process has the memory. */
    void (*check)(void *user);
    void *user;
} FieldMemory;
/* Returns the bytes of a memory for the chunks of a set that the readers of `ranks` ranks share; 0:
 * the set has no chunks that are unpacked without HDF5. */
size_t data_fields_kept_bytes(const struct DataSet *set, int ranks);
/* Prepares zeroed memory of that size. */
void data_fields_memory_init(const struct DataSet *set, int ranks, void *at);
/* Returns the number of chunks of a set that are unpacked without HDF5. */
int64_t data_fields_chunks(const struct DataSet *set);

#endif
