/* Checks that all ranks run the same program with the same configuration. An old copy on one node
 * would otherwise cause a hang or wrong numbers. The program is identified by its build ID, a hash
 * that the linker makes. If it has no build ID, its version is used. */
#include "private.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* Called by dl_iterate_phdr for the program. Writes a hash of its build ID to *hash, a uint64_t.
 * Leaves *hash unchanged if there is no build ID. */
static int read_build_id(struct dl_phdr_info *info, size_t size, void *hash)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
        const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        const char *end = at + info->dlpi_phdr[i].p_memsz;
        while (at + sizeof(ElfW(Nhdr)) < end) {
            ElfW(Nhdr) note;
            memcpy(&note, at, sizeof note);
            const char *name = at + sizeof note, *bytes = name + (note.n_namesz + 3) / 4 * 4;
            if (note.n_type == NT_GNU_BUILD_ID && memcmp(name, "GNU", 4) == 0)
                *(uint64_t *)hash = hash_bytes(bytes, note.n_descsz);
            at = bytes + (note.n_descsz + 3) / 4 * 4;
        }
    }
    /* 1 ends the iteration: the first object is the program itself, later objects are libraries */
    return 1;
}

/* Returns a hash of the build ID, or of the version if there is no build ID. */
static uint64_t build_hash(void)
{
    uint64_t hash = hash_text(WEFT_VERSION);
    dl_iterate_phdr(read_build_id, &hash);
    return hash;
}

/* Fails if this rank differs from rank 0. build: hash of this rank's build; build0: hash of rank
 * 0's build; text0: rank 0's configuration as text. */
static Status compare_with_rank_0(const Config *config, uint64_t build, uint64_t build0,
                                  const char *text0)
{
    char mine[160], rank0[160];
    if (build != build0)
        return fail(ERR_CONFIG,
                    "this rank runs another build of weft than rank 0: install one on all nodes");
    char *text = config_text(config);
    bool differ = config_difference(text, text0, mine, rank0, sizeof mine);
    mem_free(&text);
    if (!differ) return OK;
    return fail(ERR_CONFIG,
                "this rank's configuration says `%s`, rank 0's `%s`: give all ranks the same file "
                "and the same key=value",
                mine, rank0);
}

Status job_check_same(const Job *job)
{
    const World *world = &job->world;
    if (world->size == 1) return OK;
    uint64_t build = build_hash(), build0 = build;
    world_bcast(world, &build0, sizeof build0, 0);
    char *text0 = world_bcast_text(world, world->rank == 0 ? config_text(job->config) : NULL);
    Status mine = compare_with_rank_0(job->config, build, build0, text0);
    mem_free(&text0);
    return status_agree(world, mine);
}
