/* Describes, in words and as a hash of addresses, how the bytes of a data set are stored in its
 * file. Decides whether weft can read its chunks without HDF5. All functions are called under
 * hdf5_lock. */
#include "../data_private.h"

#include <string.h>

/* Writes the size of the chunks and the names of their filters, for example "chunked 64x1x28x28,
 * deflate". */
static void chunk_text(hid_t create, char *out, size_t out_bytes)
{
    hsize_t chunk[32];
    int ndim = H5Pget_chunk(create, 32, chunk);
    size_t used = (size_t)snprintf(out, out_bytes, "chunked ");
    for (int i = 0; i < ndim && used < out_bytes; ++i)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%llu", i ? "x" : "",
                                 (unsigned long long)chunk[i]);
    int filters = H5Pget_nfilters(create);
    for (int i = 0; i < filters && used < out_bytes; ++i) {
        unsigned flags, config;
        size_t values = 0;
        char name[40] = "";
        H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL, sizeof name, name, &config);
        used += (size_t)snprintf(out + used, out_bytes - used, ", %s", name);
    }
}

static bool has_user_block(hid_t dataset)
{
    hid_t file = H5Iget_file_id(dataset), create = H5Fget_create_plist(file);
    hsize_t bytes = 0;
    const bool known = H5Pget_userblock(create, &bytes) >= 0;
    H5Pclose(create);
    H5Fclose(file);
    return !known || bytes > 0;
}

bool h5_chunk_filters(hid_t dataset, hid_t create, bool *shuffle, bool *deflate)
{
    const int filters = H5Pget_nfilters(create);
    /* An older HDF5 has no function that returns where chunks are. */
    bool good = filters >= 0 && filters <= 2 && H5_VERSION_GE(1, 10, 5) && !has_user_block(dataset);
    for (int i = 0; good && i < filters; ++i) {
        unsigned flags, config;
        size_t values = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        good = (id == H5Z_FILTER_SHUFFLE && i == 0) || (id == H5Z_FILTER_DEFLATE && !*deflate);
        *shuffle |= id == H5Z_FILTER_SHUFFLE;
        *deflate |= id == H5Z_FILTER_DEFLATE;
    }
    return good;
}

void h5_storage_text(hid_t dataset, char *out, size_t out_bytes)
{
    hid_t create = H5Dget_create_plist(dataset);
    switch (H5Pget_layout(create)) {
    case H5D_CONTIGUOUS:
        snprintf(out, out_bytes, "contiguous");
        break;
    case H5D_COMPACT:
        snprintf(out, out_bytes, "compact");
        break;
    case H5D_CHUNKED:
        chunk_text(create, out, out_bytes);
        break;
    default:
        snprintf(out, out_bytes, "virtual");
        break;
    }
    H5Pclose(create);
}

/* Hashes number, address and size of some chunks, spread evenly. To find a chunk, HDF5 walks
 * through all chunks before it. At least HASHED_MIN chunks are hashed, and more as long as HDF5
 * walks through at most about STEPS_MAX chunks for them. */
static void hash_chunks(hid_t dataset, HashPieces *hash)
{
#if H5_VERSION_GE(1, 10, 5)
    enum { STEPS_MAX = 4 << 20, HASHED_MIN = 16 };
    hid_t space = H5Dget_space(dataset);
    hsize_t chunks = 0, start[32];
    H5Dget_num_chunks(dataset, space, &chunks);
    hsize_t hashed = chunks > 0 ? STEPS_MAX / chunks : 0;
    if (hashed < HASHED_MIN) hashed = HASHED_MIN;
    if (hashed > chunks) hashed = chunks;
    for (hsize_t i = 0; i < hashed; ++i) {
        hsize_t chunk = hashed > 1 ? i * (chunks - 1) / (hashed - 1) : 0, bytes = 0;
        haddr_t address = 0;
        unsigned mask;
        H5Dget_chunk_info(dataset, space, chunk, start, &mask, &address, &bytes);
        const uint64_t value[] = {chunk, address, bytes};
        hash_add(hash, value, sizeof value);
    }
    H5Sclose(space);
#endif
}

void h5_layout_hash(hid_t dataset, HashPieces *hash)
{
    H5O_info_t info = {0};
    char text[120];
    H5Oget_info(dataset, &info);
    const uint64_t value[] = {info.addr, H5Dget_offset(dataset), H5Dget_storage_size(dataset)};
    hash_add(hash, value, sizeof value);
    h5_storage_text(dataset, text, sizeof text);
    hash_add(hash, text, strlen(text));
    if (strncmp(text, "chunked", 7) == 0) hash_chunks(dataset, hash);
}
