/* The hosts that a batch job was given, or that a file lists: which of them answer, and how ranks
 * are started on them. */
#ifndef WEFT_CLI_HOSTS_H
#define WEFT_CLI_HOSTS_H

#include "base.h"

typedef enum Starter { STARTER_MPIRUN, STARTER_SRUN } Starter;
typedef struct Host {
    /* owned */
    char *name;
    int slots;
    /* it did not answer when it was asked last */
    bool lost;
    /* ranks of the start under way */
    int ranks;
} Host;
typedef struct Hosts {
    int count;
    /* owned */
    Host *host;
    Starter starter;
    /* what says so: "Slurm", a file's name; NULL: nothing, ranks are started on this host */
    const char *source;
} Hosts;

/* The file's, else the batch job's (Slurm, PBS, LSF), else none. slots: ranks of each host, 0: as
 * they say. Release with hosts_fini. ERR_USAGE, ERR_NOINPUT. */
Status hosts_init(Hosts *hosts, const char *file, int slots);
void hosts_fini(Hosts *hosts);
/* What the starter has to find in the environment. */
void hosts_settle(const Hosts *hosts);
/* Starts something on each of them and sees which do it within 15 s. */
void hosts_ask(Hosts *hosts);
/* Shares so many ranks among the first hosts that answer, `most` of them (0: any number), as far as
 * they have room; returns how many that are. */
int hosts_share(Hosts *hosts, int ranks, int most);
/* Have all ranks been given to this host? */
bool hosts_are_here(const Hosts *hosts);
/* "n1,n3": those with ranks; those that are lost. Owner: the caller. */
char *hosts_text(const Hosts *hosts);
char *hosts_lost_text(const Hosts *hosts);
/* The words that start the command, a whole one, on the shares. Release with words_free. */
char **hosts_words(const Hosts *hosts, char *const *command);

#endif
