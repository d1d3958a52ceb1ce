/* Checks that all ranks run the same program on the same configuration. A stale copy on one node
 * would otherwise cause a hang or different numbers. The program is identified by its build ID, a
 * hash made by the linker. */
#include "private.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* Puts a hash of the main program's build ID into *id; 0 if the linker made none. */
static int read_build(struct dl_phdr_info *info, size_t size, void *id)
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
                *(uint64_t *)id = hash_bytes(bytes, note.n_descsz);
            at = bytes + (note.n_descsz + 3) / 4 * 4;
        }
    }
    /* the first object is the program itself */
    return 1;
}

static uint64_t build_id(void)
{
    uint64_t id = hash_text(WEFT_VERSION);
    dl_iterate_phdr(read_build, &id);
    return id;
}

/* Reports how this rank differs from rank 0. */
static Status differs(const Config *config, uint64_t build, uint64_t build0, const char *text0)
{
    char a[160], b[160];
    if (build != build0)
        return fail(ERR_CONFIG,
                    "this rank runs another build of weft than rank 0: install one on all nodes");
    char *text = config_text(config);
    bool differ = config_difference(text, text0, a, b, sizeof a);
    mem_free(&text);
    if (!differ) return OK;
    return fail(ERR_CONFIG,
                "this rank's configuration says `%s`, rank 0's `%s`: give all ranks the same file "
                "and the same key=value",
                a, b);
}

Status job_same(const Job *job)
{
    const World *world = &job->world;
    if (world->size == 1) return OK;
    uint64_t build = build_id(), build0 = build;
    world_bcast(world, &build0, sizeof build0, 0);
    char *text0 = world_bcast_text(world, world->rank == 0 ? config_text(job->config) : NULL);
    Status mine = differs(job->config, build, build0, text0);
    mem_free(&text0);
    return status_agree(world, mine);
}
