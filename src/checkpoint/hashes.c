/* Computes hashes of all tensors of a checkpoint, with which callers compare many files without
 * keeping the values. Tensors are read, and their checksums verified, one at a time. */
#include "stored.h"

static Status read_hashes(StoredFile *file, CheckpointHashes *out)
{
    float *plain = stored_buffer(file);
    Status status = OK;
    out->tensor = mem_new((size_t)(file->count + 1) * sizeof *out->tensor);
    for (int i = 0; i < file->count && status == OK; ++i) {
        const StoredTensor *t = &file->tensor[i];
        status = stored_read(file, t, plain);
        CheckpointHash *hash = &out->tensor[out->count++];
        hash->path = mem_text(t->path);
        hash->hash = hash_bytes(plain, (size_t)shape_count(t->shape) * sizeof *plain);
    }
    mem_free(&plain);
    return status;
}

Status checkpoint_hashes(const char *path, CheckpointHashes *out)
{
    StoredFile file;
    *out = (CheckpointHashes){0};
    Status status = stored_open(&file, path);
    if (status == OK) status = stored_list(&file);
    if (status == OK) status = read_hashes(&file, out);
    stored_close(&file);
    if (status != OK) checkpoint_hashes_fini(out);
    return status;
}

void checkpoint_hashes_fini(CheckpointHashes *hashes)
{
    for (int i = 0; i < hashes->count; ++i) mem_free(&hashes->tensor[i].path);
    mem_free(&hashes->tensor);
    hashes->count = 0;
}
