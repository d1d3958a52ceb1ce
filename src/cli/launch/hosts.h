/* The hosts on which ranks are started. They are those of a batch job, or are listed in a file. The
 * functions list them, find out which hosts answer, and place ranks on them. */
#ifndef WEFT_CLI_HOSTS_H
#define WEFT_CLI_HOSTS_H

#include "base.h"

/* program that starts ranks on hosts */
typedef enum Starter { STARTER_MPIRUN, STARTER_SRUN } Starter;
typedef struct Host {
    /* name or address, as in the list; owned */
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
    /* [count], in the order of the list; owned */
    Host *host;
    Starter starter;
    /* origin of the list: "Slurm", "PBS", "LSF" or the path of a file; borrowed. NULL: there is no
     * list, and ranks start on this host. */
    const char *source;
} Hosts;

/* Lists the hosts of the file `file` or, if it is NULL, of the batch job (Slurm, PBS, LSF). If
 * there is no batch job either, the list is empty. slots: number of slots of each host; 0: as given
 * in the list. Release with hosts_fini. ERR_NOINPUT: the list cannot be read. ERR_USAGE: the list
 * is wrong, or weft was built with an MPI that cannot start ranks on these hosts. */
Status hosts_init(Hosts *hosts, const char *file, int slots);
void hosts_fini(Hosts *hosts);
/* Sets the environment variables that mpirun needs on these hosts; does nothing if another program
 * starts the ranks. */
void hosts_set_launcher_env(const Hosts *hosts);
/* Runs the command `true` on each host. Sets `lost` to true for hosts on which it does not succeed
 * within 15 s, and to false for all other hosts. */
void hosts_probe(Hosts *hosts);
/* Places `ranks` ranks on the first hosts that are not lost, and on no more than hosts_max hosts
 * (0: on any number). A host gets at most as many ranks as it has slots. Returns the number of
 * ranks that have been placed, which is less than `ranks` if there are too few slots. */
int hosts_place_ranks(Hosts *hosts, int ranks, int hosts_max);
/* Returns whether all ranks are placed on this host and mpirun starts them. */
bool hosts_are_local(const Hosts *hosts);
/* Return the names of the hosts that have ranks, or of the lost hosts, as "n1,n3". The caller owns
 * the text. */
char *hosts_text(const Hosts *hosts);
char *hosts_lost_text(const Hosts *hosts);
/* Returns the command line of srun or mpirun that runs `command` in each rank, on the hosts that
 * have ranks. Release with words_free. */
char **hosts_words(const Hosts *hosts, char *const *command);

#endif
