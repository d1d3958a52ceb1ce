/* A record of the algorithms that a GPU's libraries use, with one entry for each operation and
 * shape. Algorithms add numbers in different orders, so the bits of a run's results depend on its
 * record. As text, a record has three header lines and then one line per entry:
 *
 *     weft-algorithms 1
 *     gpu NVIDIA H100 80GB HBM3
 *     libraries cuBLASLt 13.1.0, cuDNN 9.19.0
 *     KEY = ALGORITHM
 * */
#ifndef WEFT_TENSOR_ALGORITHM_RECORD_H
#define WEFT_TENSOR_ALGORITHM_RECORD_H

#include "base.h"

typedef struct AlgorithmRecord AlgorithmRecord;

/* Makes an empty record for a model of GPU and versions of its libraries. Release with
 * algorithm_record_free. */
AlgorithmRecord *algorithm_record_new(const char *gpu, const char *libraries);
void algorithm_record_free(AlgorithmRecord **record);
/* Parses the text of a record. from: name of the text's source, for messages. ERR_DATA: a line is
 * malformed; the message has its number. The caller owns *record. */
Status algorithm_record_read(AlgorithmRecord **record, const char *text, const char *from);
/* Returns the record as text, sorted by key, so that equal records have equal texts. The caller
 * owns the text. */
char *algorithm_record_text(const AlgorithmRecord *record);
const char *algorithm_record_gpu(const AlgorithmRecord *record);
const char *algorithm_record_libraries(const AlgorithmRecord *record);
int algorithm_record_count(const AlgorithmRecord *record);
/* Returns the algorithm of a key, or NULL. Borrowed until the next entry is added. */
const char *algorithm_record_find(const AlgorithmRecord *record, const char *key);
/* Adds or replaces the entry of a key. Neither text may contain a line break, and the key may not
 * contain " = ". */
void algorithm_record_set(AlgorithmRecord *record, const char *key, const char *algorithm);
/* Sets *key and *algorithm to entry i, in the order of the keys. Both texts are borrowed. */
void algorithm_record_entry(const AlgorithmRecord *record, int i, const char **key,
                            const char **algorithm);
/* Marks a key whose recorded algorithm the library rejects. The caller must then end the run. */
void algorithm_record_reject(AlgorithmRecord *record, const char *key);
/* Returns the key of the first rejected entry, or NULL. Borrowed. */
const char *algorithm_record_rejected(const AlgorithmRecord *record);
/* Adds to `record` the entries of `from` whose keys it lacks. */
void algorithm_record_merge(AlgorithmRecord *record, const AlgorithmRecord *from);

#endif
