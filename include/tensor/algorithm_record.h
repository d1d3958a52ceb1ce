/* A record of the algorithms that a GPU's libraries take: one text for each shape. Algorithms add
 * in different orders, so a run's bits depend on its record. It is written as text, a line an
 * entry:
 *
 *     weft-algorithms 1
 *     gpu NVIDIA H100 80GB HBM3
 *     libraries cuBLASLt 13.1.0, cuDNN 9.19.0
 *     KEY = ALGORITHM
 */
#ifndef WEFT_TENSOR_ALGORITHM_RECORD_H
#define WEFT_TENSOR_ALGORITHM_RECORD_H

#include "base.h"

typedef struct AlgorithmRecord AlgorithmRecord;

/* An empty record for a GPU's model and its libraries' versions. Owner: the caller */
AlgorithmRecord *algorithm_record_new(const char *gpu, const char *libraries);
void algorithm_record_free(AlgorithmRecord **record);
/* Reads a text. ERR_DATA with `from` and the line where it is no such text. Owner: the caller */
Status algorithm_record_read(AlgorithmRecord **record, const char *text, const char *from);
/* The record as text, sorted by key, so that equal records have equal texts. Owner: the caller
 * (mem_free) */
char *algorithm_record_text(const AlgorithmRecord *record);
const char *algorithm_record_gpu(const AlgorithmRecord *record);
const char *algorithm_record_libraries(const AlgorithmRecord *record);
int algorithm_record_count(const AlgorithmRecord *record);
/* The algorithm of a key, NULL where there is none. Borrowed until the next entry is added. */
const char *algorithm_record_find(const AlgorithmRecord *record, const char *key);
/* Adds or replaces the entry of a key. Neither text has a line's end; the key has no " = ". */
void algorithm_record_set(AlgorithmRecord *record, const char *key, const char *algorithm);
/* Number i of the sorted entries. Borrowed */
void algorithm_record_entry(const AlgorithmRecord *record, int i, const char **key,
                            const char **algorithm);
/* Notes that the library does not take the recorded algorithm of a key: the run must not go on. */
void algorithm_record_reject(AlgorithmRecord *record, const char *key);
/* The first key so noted, NULL: none. Borrowed */
const char *algorithm_record_rejected(const AlgorithmRecord *record);
/* Adds the entries of `from` that `record` lacks. */
void algorithm_record_merge(AlgorithmRecord *record, const AlgorithmRecord *from);

#endif
