/* Loads libraries at run time and looks up their symbols. The loader searches the program's run
 * path, LD_LIBRARY_PATH and the system's directories. */
#include "base.h"

#include <dlfcn.h>
#include <string.h>

Status library_bind(const Library *library, void *table)
{
    void *file = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return fail(ERR_CONFIG, "%s needs %s: %s; put its directory into LD_LIBRARY_PATH, or %s",
                    library->user, library->name, dlerror(), library->cure);
    void *found[LIBRARY_SYMBOLS];
    for (int i = 0; library->symbol[i].name; ++i) {
        if (i == LIBRARY_SYMBOLS) die("%s: more than %d symbols", library->name, LIBRARY_SYMBOLS);
        found[i] = dlsym(file, library->symbol[i].name);
        if (found[i]) continue;
        dlclose(file);
        return fail(ERR_CONFIG,
                    "%s: %s has no %s: install the version that weft was built with, or %s",
                    library->user, library->file, library->symbol[i].name, library->cure);
    }
    for (int i = 0; library->symbol[i].name; ++i)
        memcpy((char *)table + library->symbol[i].slot, &found[i], sizeof found[i]);
    for (const LibrarySymbol *s = library->optional; s && s->name; ++s) {
        void *address = dlsym(file, s->name);
        memcpy((char *)table + s->slot, &address, sizeof address);
    }
    return OK;
}
