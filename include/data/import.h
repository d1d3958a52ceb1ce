/* Imports write a new weft data set to out: first as out.part, which is renamed at the end. An
 * existing file is overwritten only with force. */
#ifndef WEFT_DATA_IMPORT_H
#define WEFT_DATA_IMPORT_H

#include "data.h"

/* Files may be gzip, which is unpacked while reading. */
Status data_import_idx(const char *images, const char *labels, const char *const *class_names,
                       int classes, const char *out, bool force);
Status data_import_cifar(const char *const *files, int count, bool fine100, const char *out,
                         bool force);
/* Import a text file's bytes, or an array of token ids. bits: 16, 32 or 64 for a
 * little-endian array without a header; 0: the file has a header (.npy, llm.c's shards). The last
 * test_share of the tokens goes to test_out (NULL: no test set). vocab 0: 1 + the largest token
 * (256 for text). gzip is unpacked. ERR_DATA: the file is damaged or not of the expected kind. */
Status data_import_text(const char *file, const char *out, const char *test_out, double test_share,
                        bool force);
/* How a text is converted to tokens. */
typedef struct TextTokens {
    /* path of the tokenizer, as tokenizer_open takes it */
    const char *tokenizer;
    /* <|endoftext|> in the text becomes one token */
    bool special;
} TextTokens;
Status data_import_encoded(const char *file, const TextTokens *options, const char *out,
                           const char *test_out, double test_share, bool force);
Status data_import_tokens(const char *file, int bits, int64_t vocab, const char *out,
                          const char *test_out, double test_share, bool force);
/* Samples to leave out: those with this label. count: result, the number of samples left out. */
typedef struct LabelDrop {
    int64_t label, count;
} LabelDrop;
/* Imports any HDF5 file with data sets x and y (only x for tokens) as contiguous arrays. HDF5
 * unpacks them in a separate process, so isolated_begin must not have been called before. drop
 * NULL: keeps all samples. */
Status data_import_hdf5(const char *file, const char *x, const char *y, const char *out, bool force,
                        LabelDrop *drop);
/* Import of a folder of pictures as (N,3,S,S) of uint8, or as the files' bytes. */
typedef struct FolderImport {
    /* list: file that lists pictures and classes; NULL: sub-folders of dir are the classes */
    const char *dir, *list, *out;
    /* file with the classes: a data set (its order), or a text with one name per line; a class
     * without pictures is kept. NULL: the classes found, sorted */
    const char *classes;
    bool encoded, orient, skip_broken, allow_empty, force;
    /* decoded pictures: side of the square in pixels, and the filter for resizing */
    int side;
    ImageFilter filter;
    /* threads of each rank */
    int threads;
} FolderImport;
/* The caller's side of an import on several ranks: agreement, broadcast, progress. */
typedef struct ImportHost {
    int rank, size;
    void *user;
    /* Returns the worst status of all ranks. Collective. */
    Status (*agree)(void *user, Status mine);
    /* Broadcasts rank 0's bytes. Collective. */
    void (*send)(void *user, void *bytes, size_t count);
    /* Reports progress of this rank's samples from time to time, and once at the end with done ==
     * total. */
    void (*progress)(void *user, int64_t done, int64_t total, int64_t broken);
} ImportHost;
/* Imports a folder. The file has the same bytes for any number of ranks and threads. Finished work
 * stays in OUT.part and OUT.part.journal, and the same import resumes from there. ERR_STOPPED: a
 * signal came (stop_begin). host NULL: one process. Collective on host's ranks, which share a file
 * system. */
Status data_import_folder(const FolderImport *import, const ImportHost *host);
/* The import verbs (`weft data import ...`) in the order of the help, then NULL. Each row stands
 * next to its function. */
extern const Verb *const importers[];
/* Writes random uint8 images of shape sample (1,C,H,W), for timing; overwrites out. */
Status data_import_random(const char *out, Shape sample, int64_t classes, int64_t samples,
                          uint64_t seed);

#endif
