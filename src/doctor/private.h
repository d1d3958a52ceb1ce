/* The row of a check, the state that its measuring works with, and small readers of /proc and
 * /sys. */
#ifndef WEFT_DOCTOR_PRIVATE_H
#define WEFT_DOCTOR_PRIVATE_H

#include "doctor.h"
#include "report.h"

/* State of the checks on this rank. */
typedef struct Doctor {
    const DoctorOptions *options;
    World world;
    /* the first ranks of all nodes; not used on other ranks */
    World leaders;
    bool leads;
    /* the file system did not answer the last probe, so no further probe is started */
    bool folder_silent;
    /* clock_s when the program began; seconds for which control groups had stalled their processes
     * before the first check */
    double begin_s, throttled_s;
} Doctor;

/* A check: one row of the table. Its judge is a pure function of what all ranks measured and is the
 * only reader of the threshold, except for check_core_speed. */
typedef struct Check Check;
struct Check {
    const char *name;
    /* meaning of the threshold, for the manual: "bytes free, a rank" */
    const char *what;
    double threshold;
    /* seconds within which all ranks must have measured */
    double limit_s;
    /* size of the struct that a rank measures. If measure is NULL, judge gets the structs that the
     * row before it measured. */
    size_t bytes;
    /* Fills mine, a zeroed struct of `bytes`. All ranks call it at the same time, so it may be
     * collective. */
    void (*measure)(Doctor *doctor, void *mine);
    /* Judges the structs of all ranks, one after the other in all. Called on rank 0 only. */
    void (*judge)(const Check *check, const Allocation *allocation, const void *all,
                  Report *report);
};

int check_count(void);
const Check *check_at(int i);
/* The measuring function of this check reads the threshold, too. */
extern const Check check_core_speed;

/* Writes this host's name. */
void doctor_host(char out[HOST_BYTES]);
/* Reads the first word of the file root/path, or the number at its beginning. If the file cannot be
 * read: false and "", or -1. */
bool doctor_word(const char *root, const char *path, char *out, size_t room);
double doctor_number(const char *root, const char *path);
/* Calls see for each name in the folder root/path except hidden ones; for none if the folder cannot
 * be read. */
void doctor_each(const char *root, const char *path,
                 void (*see)(const char *root, const char *name, void *user), void *user);
/* Returns the number of files in the folder root/path, hidden ones excluded; 0 if there is no such
 * folder. */
int doctor_entries(const char *root, const char *path);

#endif
