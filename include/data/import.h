/* Imports, which write a new data set of weft to the path `out`: first as OUT.part, which is
 * renamed at the end. An existing file is overwritten only if `force` is true. Errors of all
 * imports: ERR_NOINPUT, ERR_IO: a file cannot be read or written. ERR_DATA: a file is damaged, or
 * of another kind than expected. ERR_USAGE: an argument is unusable. All except data_import_folder
 * and data_import_boxes run on one rank. */
#ifndef WEFT_DATA_IMPORT_H
#define WEFT_DATA_IMPORT_H

#include "data.h"

/* Imports files in MNIST's format, plain or gzip: uint8 images (N,H,W) and labels (N). class_names:
 * names of the classes, [classes]; classes 0: the numbers of the labels are the names. */
Status data_import_idx(const char *images, const char *labels, const char *const *class_names,
                       int classes, const char *out, bool force);
/* Imports the binary files of CIFAR-10 or, if `fine` is true, the binary files of CIFAR-100 with
 * its 100 fine labels. */
Status data_import_cifar(const char *const *files, int count, bool fine, const char *out,
                         bool force);
/* Imports a text file, plain or gzip, whose bytes are the tokens. test_share: fraction of the
 * tokens, from the end of the text, that goes to test_out, 0 to 1. test_out NULL: all tokens go to
 * out. */
Status data_import_text(const char *file, const char *out, const char *test_out, double test_share,
                        bool force);
/* How a text is converted to tokens by data_import_encoded. */
typedef struct TextTokens {
    /* path of the tokenizer, as for tokenizer_open */
    const char *tokenizer;
    /* true: <|endoftext|> in the text becomes one token, if the tokenizer has it */
    bool special;
} TextTokens;
/* Imports a text file as the tokens of a tokenizer. The other arguments are those of
 * data_import_text. */
Status data_import_encoded(const char *file, const TextTokens *options, const char *out,
                           const char *test_out, double test_share, bool force);
/* Imports an array of token ids, plain or gzip. bits: 16, 32 or 64, the number of bits of an id in
 * a little-endian array without a header; 0: the file has a header (.npy, llm.c's shards). vocab:
 * size of the vocabulary; 0: 1 + the largest id. The other arguments are those of
 * data_import_text. */
Status data_import_tokens(const char *file, int bits, int64_t vocab, const char *out,
                          const char *test_out, double test_share, bool force);
/* Samples that an import leaves out. */
typedef struct LabelDrop {
    /* label of the samples to leave out */
    int64_t label;
    /* result: number of samples that were left out */
    int64_t count;
} LabelDrop;
/* Imports any HDF5 file with an array of samples named by `x` and one of labels named by `y` (for
 * tokens only `x`), as contiguous arrays. A separate process reads the arrays through HDF5 and
 * writes them to the new file, whose descriptor it inherits from the caller. Therefore
 * isolated_begin must not have been called before: the process would then be forked from a helper
 * that does not have the descriptor. drop NULL: all samples are kept. */
Status data_import_hdf5(const char *file, const char *x, const char *y, const char *out, bool force,
                        LabelDrop *drop);
struct BoxSet;
struct FolderLabels;
/* Import of a folder of pictures. */
typedef struct FolderImport {
    /* dir: path of the folder of the pictures; list: path of a file with a picture and its class in
     * each line, NULL: the sub-folders of dir are the classes; out: path of the new set */
    const char *dir, *list, *out;
    /* path of a file with the classes in order: a data set, a YAML file with the key `names`, or a
     * text with one name per line. Classes without pictures are kept. NULL: the classes that are
     * found, sorted. */
    const char *classes;
    /* true: samples are the bytes of the files; false: (N,3,side,side) of uint8 */
    bool encoded;
    /* labels to store instead of a class for each picture; borrowed; only for the data module
     * (src/data/folder/folder.h). Decoded pictures are then resized as a whole into their squares,
     * with margins. NULL: classes are stored, and squares are cut from the centre of pictures. */
    const struct FolderLabels *labels;
    /* true: EXIF orientations are applied: the import rotates pictures that are stored decoded, and
     * readers rotate encoded pictures */
    bool orient;
    /* true: files that are no usable pictures are left out; false: they are errors */
    bool skip_broken;
    /* true: classes without pictures are allowed */
    bool allow_empty;
    /* true: overwrite an existing file */
    bool force;
    /* decoded pictures: side of the square in pixels */
    int side;
    /* decoded pictures: filter that resizes them */
    ImageFilter filter;
    /* threads of each rank */
    int threads;
} FolderImport;
/* The ranks of an import, and functions of the caller by which they communicate. `user` is the
 * first argument of each function. */
typedef struct ImportRanks {
    int rank, size;
    void *user;
    /* Returns the worst status of all ranks. Collective. */
    Status (*agree)(void *user, Status mine);
    /* Broadcasts rank 0's bytes. Collective. */
    void (*broadcast)(void *user, void *bytes, size_t count);
    /* Receives the progress of this rank, several times per second or after each frame, and at the
     * end. done: number of pictures or frames that are done; total: number of all pictures or
     * frames of this rank; broken: number of broken pictures among those done. */
    void (*progress)(void *user, int64_t done, int64_t total, int64_t broken);
} ImportRanks;
/* the ranks of an import in one process */
extern const ImportRanks import_alone;
/* Imports a folder. The new file has the same bytes for any number of ranks and threads. Blocks of
 * pictures that are done stay in OUT.part and OUT.part.journal, and the same import continues from
 * there. ERR_STOPPED: a signal requested a stop (stop_begin). ranks NULL: one process. Collective
 * on these ranks, which share a file system. */
Status data_import_folder(const FolderImport *import, const ImportRanks *ranks);
/* A format of labelled boxes. */
typedef struct BoxFormat {
    /* Reads all labels into the set (src/data/boxes/box_set.h). */
    Status (*read)(struct BoxSet *set);
} BoxFormat;
/* All formats of labelled boxes; a new format goes here, too. */
#define BOX_FORMATS(_)           _(coco) _(yolo) _(voc)
#define DECLARE_BOX_FORMAT(name) extern const BoxFormat box_format_##name;
BOX_FORMATS(DECLARE_BOX_FORMAT)
/* Returns ERR_BUG, with the name of the member, if a format lacks a member. */
Status box_format_check(const char *name, const BoxFormat *format);
/* Import of pictures with labelled boxes. */
typedef struct BoxImport {
    const BoxFormat *format;
    /* images: path of the folder of the pictures; for voc, of the folder that has the folders
     * JPEGImages and Annotations. labels: path of the file or folder of the labels; NULL: the
     * format's usual place */
    const char *images, *labels;
    /* voc: path of a text file with the names of the pictures to import; NULL: all pictures */
    const char *list;
    /* classes, for yolo and voc: path of a file with the classes in order, as FolderImport.classes;
     * NULL: the classes that are found. out: path of the new set */
    const char *classes, *out;
    /* 0: samples are the bytes of the files; else the side of squares: samples are uint8
     * (N,3,side,side), each a whole picture, centred, with margins of the value 114 */
    int side;
    /* true: EXIF orientations are applied, and boxes are in pixels of the rotated pictures */
    bool orient;
    /* true: boxes and pictures that cannot be used are left out; false: they are errors */
    bool skip_broken;
    /* true: classes without boxes are allowed */
    bool allow_empty;
    /* true: overwrite an existing file */
    bool force;
    /* threads of each rank */
    int threads;
} BoxImport;
/* Imports pictures with labelled boxes, as data_import_folder imports a folder. Messages about
 * labels name file, box and image. Collective on these ranks. */
Status data_import_boxes(const BoxImport *import, const ImportRanks *ranks);
/* The verbs of this module that import or make data sets, in the order of the help, then NULL. Each
 * verb is defined in the file of its import; other such verbs are in src/cli/data. */
extern const Verb *const importers[];
/* Writes a set of random uint8 images, for timing; overwrites the file `out`. sample: (1,C,H,W). */
Status data_import_random(const char *out, Shape sample, int64_t classes, int64_t samples,
                          uint64_t seed);
/* Writes a set of random square pictures with 7 random boxes each on average, for timing;
 * overwrites the file `out`. sample: (1,C,H,W). */
Status data_import_random_boxes(const char *out, Shape sample, int64_t classes, int64_t samples,
                                uint64_t seed);

#endif
