/* The versions of the program and of its libraries. */
#include "train.h"

#include <hdf5.h>
#include <mpi.h>
#include <string.h>

void train_print_versions(FILE *out, bool gpus)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char pictures[128];
    unsigned major = 0, minor = 0, release = 0;
    int length = 0, mpi_major = 0, mpi_minor = 0;
    MPI_Get_version(&mpi_major, &mpi_minor);
    fprintf(out, "weft %s\n", WEFT_VERSION);
    backend_versions(out, gpus);
    if (gpus) comm_versions(out);
    MPI_Get_library_version(mpi, &length);
    fprintf(out, "%.*s (MPI %d.%d; built against MPI %d.%d)\n", (int)strcspn(mpi, ",\n"), mpi,
            mpi_major, mpi_minor, MPI_VERSION, MPI_SUBVERSION);
    H5get_libversion(&major, &minor, &release);
    fprintf(out, "HDF5 %u.%u.%u (built against %d.%d.%d)\n", major, minor, release, H5_VERS_MAJOR,
            H5_VERS_MINOR, H5_VERS_RELEASE);
    image_versions(pictures, sizeof pictures);
    fprintf(out, "pictures: %s\n", pictures);
}
