/* A row of the table of checks, and the state that is passed to its measuring function. */
#ifndef WEFT_DOCTOR_PRIVATE_H
#define WEFT_DOCTOR_PRIVATE_H

#include "doctor.h"
#include "report.h"

/* State of the checks on this rank. */
typedef struct Doctor {
    const DoctorOptions *options;
    World world;
    /* world of the node leaders, that is, the first ranks of all nodes; only valid on leaders */
    World leaders;
    /* true: this rank is the leader of its node */
    bool is_leader;
    /* true: the probe that tests the folder did not end in time, so this rank starts no further
     * probe */
    bool folder_timed_out;
    /* clock_s at the beginning of doctor_run */
    double begin_s;
    /* ThreadsLimits.waited_s before the first check: seconds for which a quota had stalled
     * processes */
    double throttled_s;
} Doctor;

/* A check: one row of the table. Its judge is a pure function of the measurements of all ranks.
 * Only the judge reads the threshold, except that the measuring function of check_core_speed reads
 * it, too. */
typedef struct Check Check;
struct Check {
    const char *name;
    /* quantity and unit of the threshold, for the manual: "bytes per rank" */
    const char *threshold_meaning;
    double threshold;
    /* seconds that a call of `measure` may take; 0 if there is no `measure` */
    double limit_s;
    /* size of the struct that a rank fills (measurements.h) */
    size_t bytes;
    /* Fills `mine`, a zeroed struct of size `bytes`. All ranks call it at the same time, so it may
     * be collective. NULL: the check judges the structs that the nearest earlier row with a
     * function `measure` has filled. */
    void (*measure)(Doctor *doctor, void *mine);
    /* Judges the measurements and adds findings to the report. all: the structs of all ranks,
     * [ranks]. Called on rank 0 only. */
    void (*judge)(const Check *check, const Allocation *allocation, const void *all,
                  Report *report);
};

int check_count(void);
const Check *check_at(int i);
/* Declared here because the check's own measuring function reads the threshold. */
extern const Check check_core_speed;

#endif
