/* Reads samples of a data set by number. */
#ifndef WEFT_DATA_READER_H
#define WEFT_DATA_READER_H

#include "data/set.h"

/* Reads samples by number. Several threads may read with one reader at once. */
typedef struct Reader Reader;
Status reader_new(Reader **reader, const DataSet *set);
void reader_free(Reader **reader);
/* Reads one sample: raw x (T tokens for token sets) in this machine's byte order, and the label's
 * class or target_width floats. Of a set of fields, x and target are normalised floats, label is
 * the class of each pixel, and a patch is that of epoch 0. A set of tokens or boxes has neither
 * label nor target. x, label and target may each be NULL. ERR_IO: the read failed; ERR_DATA, with
 * file and sample: the file has become shorter, or the label has no class. */
Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target);
/* Reads the bytes of a sample's picture file (encoded sets) into *bytes, a buffer of *capacity
 * bytes, which is replaced by a larger one if necessary; the caller frees it with mem_free. *count:
 * bytes read; *orientation: EXIF orientation, 1 if the set is not oriented. ERR_DATA: the index
 * points outside the data. */
Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *capacity,
                          size_t *count, int *orientation);
/* Reads one sample's ids: those of field f are ids[first[f]] to ids[first[f + 1] - 1]. ids has
 * space for id_most, first for fields + 1 entries. ERR_DATA, with file, sample and field: an id is
 * not below id_rows, the index does not rise or points outside, or there are more than id_most
 * ids. */
Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first);
/* Prefetches a mapped sample into the CPU's cache, which makes random reads from a cached file
 * about twice as fast. Samples that are not mapped are ignored. Never waits. */
void reader_prefetch(const Reader *reader, int64_t sample);

#endif
