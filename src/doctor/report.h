/* The report of a judge on one check: a summary of the measurement, and findings, each with its
 * ranks or hosts. */
#ifndef WEFT_DOCTOR_REPORT_H
#define WEFT_DOCTOR_REPORT_H

#include "base.h"

/* The host and node of a rank. */
typedef struct Place {
    char host[HOST_BYTES];
    /* the node's leader, which is its first rank */
    int leader;
    /* number of ranks on the node */
    int node_size;
} Place;
/* The ranks and nodes of the job. */
typedef struct Allocation {
    int ranks, nodes;
    /* size of a checkpoint (DoctorOptions) */
    double checkpoint_bytes;
    /* place of each rank; borrowed */
    const Place *place;
} Allocation;

/* SEVERITY_SKIP: nothing was measured */
typedef enum Severity { SEVERITY_OK, SEVERITY_SKIP, SEVERITY_WARN, SEVERITY_FATAL } Severity;

typedef struct Finding {
    Severity severity;
    /* true: the hosts of the ranks are printed instead of the ranks */
    bool names_hosts;
    /* owned */
    char *text;
    /* owned: a command or advice, may be "" */
    char *remedy;
    /* owned: the ranks that the finding is about; if there are none, it is about the whole
     * allocation */
    int *rank;
    /* number of ranks in `rank` */
    int ranks;
} Finding;
typedef struct Report {
    /* the measurement in short */
    char summary[256];
    /* true: the check could not measure; the summary says why */
    bool skipped;
    /* owned */
    Finding *finding;
    /* number of findings */
    int findings;
} Report;

/* Sets the summary. report_print prints it if there is no finding, report_json always. */
void report_set_summary(Report *report, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Marks the check as skipped. reason: the new summary, for example "not measured". */
void report_skip(Report *report, const char *reason);
enum { WHOLE_ALLOCATION = -1 };
/* Add a finding about `rank`: report_add_host prints the host of the rank, report_add_rank the rank
 * itself. If an earlier finding has the same text and remedy, the rank is added to that finding.
 * rank WHOLE_ALLOCATION: the finding is about the whole allocation. remedy: a command or advice, or
 * "". */
void report_add_host(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...) BASE_PRINTF(5, 6);
void report_add_rank(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...) BASE_PRINTF(5, 6);
/* Returns the highest severity of the findings; without findings SKIP or OK. */
Severity report_worst(const Report *report);
/* Prints a line for each finding (beyond the tenth only their number), or a line with the summary
 * if there is none. */
void report_print(FILE *out, const char *check, const Allocation *allocation, const Report *report);
/* Writes the report as an object, with all findings. */
void report_json(Json *json, const char *check, const Allocation *allocation, const Report *report);
void report_fini(Report *report);

/* True if the rank is the first of its node. */
bool is_node_leader(const Allocation *allocation, int rank);
/* Return the median of the double at `offset` in the structs `all`, of `bytes` bytes each, over the
 * leaders of all nodes or over all ranks. Values of 0 or less are left out; if no value is left,
 * the result is 0. */
double median_of_nodes(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
double median_of_ranks(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
/* Returns the word for a message such as "most ranks have 2.1": "most" if `alike`, the number of
 * ranks that have it, is more than half of `all`, else "other". */
const char *most_or_other(int alike, int all);
/* Returns the most frequent text at `offset` in the structs `all`; of equally frequent texts, the
 * first. Texts "" are left out. *share: "most" or "other", as most_or_other returns for the number
 * of ranks with this text. Borrowed from all; NULL if all texts are "". */
const char *most_frequent_text(const Allocation *allocation, const void *all, size_t bytes,
                               size_t offset, const char **share);

#endif
