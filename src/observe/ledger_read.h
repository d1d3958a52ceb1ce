/* Reading ledger.jsonl: the values of the line at a start's end. */
#ifndef WEFT_OBSERVE_LEDGER_READ_H
#define WEFT_OBSERVE_LEDGER_READ_H

#include "observer.h"

#include "base/json_scan.h"
#include "observe/history.h"

/* A key with a number, and where to put it. */
typedef struct LedgerNumber {
    const char *key;
    double *value;
} LedgerNumber;

/* Reads the value of a key; one that is not known is skipped. ERR_DATA. */
Status ledger_read_end(LedgerHistory *history, JsonScan *scan, const char *key);
/* Frees what ledger_read_end has read. */
void ledger_forget_end(LedgerHistory *history);

#endif
