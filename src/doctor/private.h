/* What a check is, and what it is given. */
#ifndef WEFT_DOCTOR_PRIVATE_H
#define WEFT_DOCTOR_PRIVATE_H

#include "doctor.h"
#include "report.h"

/* What a rank measures with. */
typedef struct Doctor {
    const DoctorOptions *options;
    World world;
    /* the first rank of each node; elsewhere a world of no use */
    World leaders;
    bool leads;
    /* it did not when it was last asked: it is left alone */
    bool folder_silent;
    /* clock_s; and the time of all control groups' waits, when the checks began */
    double begin_s, throttled_s;
} Doctor;

/* A check has a threshold of its own, and its judge alone reads it: a pure function of what all
 * ranks measured. */
typedef struct Check Check;
struct Check {
    const char *name;
    /* what the threshold is, for the manual: "bytes free, a rank" */
    const char *what;
    double threshold;
    /* the seconds within which all ranks are to have measured */
    double limit_s;
    /* of what a rank measures; NULL measure: what the row before has measured */
    size_t bytes;
    /* mine: zeroed. On every rank at the same time, so it may be collective. */
    void (*measure)(Doctor *doctor, void *mine);
    /* all: ranks x bytes. On rank 0. */
    void (*judge)(const Check *check, const Allocation *allocation, const void *all,
                  Report *report);
};

int check_count(void);
const Check *check_at(int i);
/* Its threshold is measured by, too. */
extern const Check check_core_speed;

/* "n1" */
void doctor_host(char out[HOST_BYTES]);
/* root/path's first word, or the number that it begins with; false, -1: cannot be read. */
bool doctor_word(const char *root, const char *path, char *out, size_t room);
double doctor_number(const char *root, const char *path);
/* Calls see for each name in the folder root/path, but hidden ones; for none where it cannot be
 * read. */
void doctor_each(const char *root, const char *path,
                 void (*see)(const char *root, const char *name, void *user), void *user);
/* Files in the folder root/path; 0: none, or no such folder. */
int doctor_entries(const char *root, const char *path);

#endif
