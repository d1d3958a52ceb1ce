/* Target: the file of `weft data import folder --list`, with lines path,label. */
#include "fuzz.h"
#include "data/folder/folder_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FolderFiles files = {0};
    char *text = mem_new(size + 1);
    memcpy(text, data, size);
    if (folder_list_text(&files, "/nowhere", "list", text) == OK) {
        for (int64_t i = 0; i < files.count; ++i)
            if (files.file[i].label < 0 || files.file[i].label >= files.classes) die("a label");
        fuzz_took(files_check_classes(&files, NULL));
    }
    files_fini(&files);
    mem_free(&text);
    return 0;
}
