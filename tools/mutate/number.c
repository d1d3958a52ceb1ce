/* Linked to a build with mutants (mutate.c): the number of the mutant that runs, from MUTANT in the
 * environment; 0: none. */
#include <stdlib.h>

extern int mutant_number;
int mutant_number;

__attribute__((constructor)) static void mutant_number_read(void)
{
    const char *text = getenv("MUTANT");
    mutant_number = text ? atoi(text) : 0;
}
