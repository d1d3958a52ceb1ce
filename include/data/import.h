/* Imports, which write a new weft data set to the path out: first as out.part, which is renamed at
 * the end. An existing file is overwritten only with force. All fail with ERR_NOINPUT or ERR_IO for
 * files that cannot be read or written, with ERR_DATA for files that are damaged or of another kind
 * than expected, and with ERR_USAGE for unusable arguments. All but data_import_folder and
 * data_import_boxes run on one rank. */
#ifndef WEFT_DATA_IMPORT_H
#define WEFT_DATA_IMPORT_H

#include "data.h"

/* Imports MNIST's format: uint8 images (N,H,W) and labels (N), plain or gzip. class_names has
 * `classes` names; classes 0: the classes are named by the numbers of the labels. */
Status data_import_idx(const char *images, const char *labels, const char *const *class_names,
                       int classes, const char *out, bool force);
/* Imports the binary files of CIFAR-10, or, if `fine` is set, those of CIFAR-100 with its 100 fine
 * labels. */
Status data_import_cifar(const char *const *files, int count, bool fine, const char *out,
                         bool force);
/* Imports a text file, plain or gzip; its bytes are the tokens. The last test_share (0 to 1) of the
 * tokens goes to test_out; test_out NULL: all tokens go to out. */
Status data_import_text(const char *file, const char *out, const char *test_out, double test_share,
                        bool force);
/* How a text is converted to tokens. */
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
/* Imports an array of token ids, plain or gzip. bits: 16, 32 or 64, the width of an id in a
 * little-endian array without a header; 0: the file has a header (.npy, llm.c's shards). vocab:
 * size of the vocabulary; 0: 1 + the largest id. The other arguments are those of
 * data_import_text. */
Status data_import_tokens(const char *file, int bits, int64_t vocab, const char *out,
                          const char *test_out, double test_share, bool force);
/* Samples that an import leaves out. */
typedef struct LabelDrop {
    /* label of the samples to leave out */
    int64_t label;
    /* result: the number of samples left out */
    int64_t count;
} LabelDrop;
/* Imports any HDF5 file with arrays named x and y (only x for tokens) as contiguous arrays. A
 * separate process reads the arrays through HDF5 and writes them to the new file. It inherits this
 * open file from the caller, so isolated_begin must not have been called before: processes that its
 * helper forks do not have the file. drop NULL: keeps all samples. */
Status data_import_hdf5(const char *file, const char *x, const char *y, const char *out, bool force,
                        LabelDrop *drop);
struct BoxSet;
struct FolderExtra;
/* Import of a folder of pictures. */
typedef struct FolderImport {
    /* dir: folder of the pictures. list: file with a picture and its class in each line; NULL:
     * sub-folders of dir are the classes. out: path of the new set. */
    const char *dir, *list, *out;
    /* file with the classes in order: a data set, or a text with one name per line; classes without
     * pictures are kept. NULL: the classes found, sorted */
    const char *classes;
    /* true: samples are the bytes of the files; false: (N,3,side,side) of uint8 */
    bool encoded;
    /* labels to store instead of a class for each picture. Decoded pictures are then fitted whole
     * into their squares, with margins. Borrowed; NULL: classes are stored, and squares are cut
     * from the centre of pictures. Only for the data module (src/data/folder/folder.h) */
    const struct FolderExtra *extra;
    /* true: apply EXIF orientations: the import rotates pictures that are stored decoded, and
     * readers rotate encoded pictures */
    bool orient;
    /* true: leave out files that are not usable pictures; false: they are errors */
    bool skip_broken;
    /* true: allow classes without pictures */
    bool allow_empty;
    /* true: overwrite an existing file */
    bool force;
    /* decoded pictures: side of the square in pixels, and the filter for resizing */
    int side;
    ImageFilter filter;
    /* threads of each rank */
    int threads;
} FolderImport;
/* The ranks of an import, and functions of the caller by which they communicate; `user` is the
 * first argument of each. */
typedef struct ImportRanks {
    int rank, size;
    void *user;
    /* Returns the worst status of all ranks. Collective. */
    Status (*agree)(void *user, Status mine);
    /* Broadcasts rank 0's bytes. Collective. */
    void (*broadcast)(void *user, void *bytes, size_t count);
    /* Receives the progress of this rank, several times per second or after each frame, and at the
     * end: the number of pictures or frames that are done, of all pictures or frames of this rank,
     * and of broken pictures among those done. */
    void (*progress)(void *user, int64_t done, int64_t total, int64_t broken);
} ImportRanks;
/* the ranks of an import in one process */
extern const ImportRanks import_alone;
/* Imports a folder. The file has the same bytes for any number of ranks and threads. Blocks of
 * pictures that are done stay in OUT.part and OUT.part.journal, and the same import resumes from
 * there. ERR_STOPPED: a signal requested a stop (stop_begin). ranks NULL: one process. Collective
 * on these ranks, which share a file system. */
Status data_import_folder(const FolderImport *import, const ImportRanks *ranks);
/* A format of labelled boxes. */
typedef struct BoxFormat {
    /* Reads all labels into the set (src/data/boxes/box_set.h). */
    Status (*read)(struct BoxSet *set);
} BoxFormat;
extern const BoxFormat box_format_coco, box_format_yolo, box_format_voc;
/* Import of pictures with labelled boxes. */
typedef struct BoxImport {
    const BoxFormat *format;
    /* folder of the pictures; file or folder of the labels; NULL: the format's usual place */
    const char *images, *labels;
    /* voc: text file with the names of the pictures to import; NULL: all */
    const char *list;
    /* yolo, voc: file with the classes in order, as FolderImport.classes; NULL: the classes that
     * are found */
    const char *classes, *out;
    /* 0: samples are the bytes of the files; else (N,3,side,side) of uint8: whole pictures in
     * squares, centred, with a margin of 114 */
    int side;
    /* true: apply EXIF orientations: boxes are given in pixels of the rotated pictures */
    bool orient;
    /* true: leave out boxes and pictures that cannot be used; false: they are errors */
    bool skip_broken;
    /* true: allow classes without boxes */
    bool allow_empty;
    /* true: overwrite an existing file */
    bool force;
    /* threads of each rank */
    int threads;
} BoxImport;
/* Imports pictures with labelled boxes, in the same way as data_import_folder. Errors of labels
 * name file, box and image. Collective on these ranks. */
Status data_import_boxes(const BoxImport *import, const ImportRanks *ranks);
/* The verbs of this module that import or make data sets, in the order of the help, then NULL. Each
 * verb is defined in the file of its import; other such verbs are in src/cli/data. */
extern const Verb *const importers[];
/* Writes random uint8 images of shape sample (1,C,H,W), for timing; overwrites out. */
Status data_import_random(const char *out, Shape sample, int64_t classes, int64_t samples,
                          uint64_t seed);
/* Writes random square pictures with 7 random boxes each on average, for timing; overwrites out. */
Status data_import_random_boxes(const char *out, Shape sample, int64_t classes, int64_t samples,
                                uint64_t seed);

#endif
