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

/* Makes an empty record for a GPU's model and its libraries' versions. Owner: the caller. */
AlgorithmRecord *algorithm_record_new(const char *gpu, const char *libraries);
void algorithm_record_free(AlgorithmRecord **record);
/* Parses a record's text. from: name of the text's source, for messages. ERR_DATA with the number
 * of the malformed line. Owner of *record: the caller. */
Status algorithm_record_read(AlgorithmRecord **record, const char *text, const char *from);
/* The record as text, sorted by key: equal records have equal texts. Owner: the caller
 * (mem_free). */
char *algorithm_record_text(const AlgorithmRecord *record);
const char *algorithm_record_gpu(const AlgorithmRecord *record);
const char *algorithm_record_libraries(const AlgorithmRecord *record);
int algorithm_record_count(const AlgorithmRecord *record);
/* The algorithm of a key, or NULL. Borrowed until the next entry is added. */
const char *algorithm_record_find(const AlgorithmRecord *record, const char *key);
/* Adds or replaces the entry of a key. Neither text contains a newline, and the key does not
 * contain the separator of key and algorithm. */
void algorithm_record_set(AlgorithmRecord *record, const char *key, const char *algorithm);
/* Entry i in the order of keys. Both texts are borrowed. */
void algorithm_record_entry(const AlgorithmRecord *record, int i, const char **key,
                            const char **algorithm);
/* Marks a key whose recorded algorithm the library rejects. The caller has to end the run. */
void algorithm_record_reject(AlgorithmRecord *record, const char *key);
/* The key of the first rejected entry, or NULL. Borrowed. */
const char *algorithm_record_rejected(const AlgorithmRecord *record);
/* Adds the entries of `from` whose keys `record` lacks. */
void algorithm_record_merge(AlgorithmRecord *record, const AlgorithmRecord *from);

#endif
