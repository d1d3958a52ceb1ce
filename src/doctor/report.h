/* What a judge found: a summary, and findings, each with the ranks or hosts that it holds for. */
#ifndef WEFT_DOCTOR_REPORT_H
#define WEFT_DOCTOR_REPORT_H

#include "base.h"

/* Where a rank is. */
typedef struct Place {
    char host[HOST_BYTES];
    /* the first rank of its node, which may be the rank itself */
    int first, node_size;
} Place;
typedef struct Allocation {
    int ranks, nodes;
    double checkpoint_bytes;
    /* borrowed */
    const Place *place;
} Allocation;

/* SKIP: not measured, so nothing is known */
typedef enum Severity { SEVERITY_OK, SEVERITY_SKIP, SEVERITY_WARN, SEVERITY_FATAL } Severity;

typedef struct Finding {
    Severity severity;
    /* it holds for hosts, not for ranks of them */
    bool of_hosts;
    /* owned; cure may be "" */
    char *text, *cure;
    /* owned; none: for the whole allocation */
    int *rank, ranks;
} Finding;
typedef struct Report {
    char summary[256];
    bool skipped;
    /* owned */
    Finding *finding;
    int findings;
} Report;

/* What was measured, for the line of a check that has found nothing. */
void report_summary(Report *report, const char *fmt, ...) BASE_PRINTF(2, 3);
/* There is nothing to judge, as nothing was measured: "not measured", "not known". */
void report_skip(Report *report, const char *why);
/* Where text and cure are those of an earlier finding, the rank joins it. rank -1: it holds for
 * the whole allocation. cure: a command or what else to do; "": there is none. */
void report_host(Report *report, Severity severity, int rank, const char *cure, const char *fmt,
                 ...) BASE_PRINTF(5, 6);
void report_rank(Report *report, Severity severity, int rank, const char *cure, const char *fmt,
                 ...) BASE_PRINTF(5, 6);
Severity report_worst(const Report *report);
void report_print(FILE *out, const char *check, const Allocation *allocation, const Report *report);
void report_json(Json *json, const char *check, const Allocation *allocation, const Report *report);
void report_fini(Report *report);

/* Does a rank speak for its node? */
bool place_leads(const Allocation *allocation, int rank);
/* The median over the ranks that speak for their nodes of a number that lies `offset` bytes into
 * each rank's figures of `bytes`; 0s are left out. 0: there is none. */
double median_of_nodes(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
double median_of_ranks(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
/* The text that most ranks have, of those at `offset`, the first of equals; texts "" are no
 * answers. Borrowed; NULL: nobody has one. */
const char *most_common(const Allocation *allocation, const void *all, size_t bytes, size_t offset);

#endif
