/* Reads samples of a data set by number. Not collective. */
#ifndef WEFT_DATA_READER_H
#define WEFT_DATA_READER_H

#include "data/set.h"

/* A reader of a set. Several threads may use one reader at the same time. */
typedef struct Reader Reader;
Status reader_new(Reader **reader, const DataSet *set);
void reader_free(Reader **reader);
/* Reads one sample. x: its raw values in this machine's byte order; in a set of tokens,
 * DataSet.context tokens. label: its class. target: its target_width floats. In a set of fields, x
 * and target are normalised floats, label has the class of each pixel, and a patch is cut out as in
 * epoch 0. Samples of tokens or boxes have neither label nor target. x, label and target may each
 * be NULL. ERR_IO: reading failed. ERR_DATA: the file has become shorter, or the label has no
 * class; the message has file and sample. */
Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target);
/* Reads the bytes of a sample's picture file, in encoded sets, into *bytes, a buffer of *capacity
 * bytes. A larger buffer replaces it if necessary; the caller frees it with mem_free. *count:
 * number of bytes read; *orientation: EXIF orientation, 1 if DataSet.rotates_on_read is false.
 * ERR_DATA: the index points outside the data. */
Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *capacity,
                          size_t *count, int *orientation);
/* Reads the ids of one sample: field f has ids[first[f]] .. ids[first[f + 1] - 1]. ids has room for
 * DataSet.ids_per_sample_max ids, first for fields + 1 entries. ERR_DATA: an id is not below
 * DataSet.id_limit, the index descends or points outside, or there are more ids than that; the
 * message has file, sample and field. */
Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first);
/* Prefetches a sample into the CPU's cache, which makes random reads from a cached file about twice
 * as fast. Samples that are not mapped into memory are ignored. Never waits. */
void reader_prefetch(const Reader *reader, int64_t sample);

#endif
