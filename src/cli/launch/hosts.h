/* The hosts given to a batch job or listed in a file: which of them answer, and how ranks are
 * started on them. */
#ifndef WEFT_CLI_HOSTS_H
#define WEFT_CLI_HOSTS_H

#include "base.h"

/* program that starts ranks on hosts */
typedef enum Starter { STARTER_MPIRUN, STARTER_SRUN } Starter;
typedef struct Host {
    /* owned */
    char *name;
    /* largest number of ranks on this host */
    int slots;
    /* true: the host did not answer the last probe */
    bool lost;
    /* number of ranks that were last placed on this host */
    int ranks;
} Host;
typedef struct Hosts {
    int count;
    /* owned */
    Host *host;
    Starter starter;
    /* origin of the list: "Slurm", "PBS", "LSF" or a file's name; NULL: there is none, and ranks
     * start on this host. Borrowed */
    const char *source;
} Hosts;

/* Lists the hosts of the file or, if `file` is NULL, of the batch job (Slurm, PBS, LSF). Without
 * both the list is empty. slots: ranks per host; 0: as given in the list. Release with hosts_fini.
 * ERR_USAGE, ERR_NOINPUT. */
Status hosts_init(Hosts *hosts, const char *file, int slots);
void hosts_fini(Hosts *hosts);
/* Sets the environment variables that mpirun needs on these hosts; does nothing if another program
 * starts the ranks. */
void hosts_set_launcher_env(const Hosts *hosts);
/* Starts a command on each host. Marks the hosts on which it does not succeed within 15 s as lost,
 * and all others as not lost. */
void hosts_probe(Hosts *hosts);
/* Distributes `ranks` ranks over the first hosts that are not lost, at most hosts_max of them (0:
 * any number), as far as their slots suffice; returns the number of ranks placed. */
int hosts_place_ranks(Hosts *hosts, int ranks, int hosts_max);
/* True if all ranks are placed on this host and mpirun starts them. */
bool hosts_are_local(const Hosts *hosts);
/* Return the names of the hosts with ranks, as "n1,n3", and of the lost hosts. Owned by the
 * caller. */
char *hosts_text(const Hosts *hosts);
char *hosts_lost_text(const Hosts *hosts);
/* Returns the words that start the command on the hosts with ranks. Release with words_free. */
char **hosts_words(const Hosts *hosts, char *const *command);

#endif
