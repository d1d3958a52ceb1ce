/* Which pictures there are to import, from folders (folder_scan.c) or from a list
 * (folder_list.c). */
#ifndef WEFT_DATA_FOLDER_FILES_H
#define WEFT_DATA_FOLDER_FILES_H

#include "data.h"

/* One picture to import. */
typedef struct FolderFile {
    /* of its path in FolderFiles.text */
    size_t path;
    /* as stat says; -1: it cannot be read */
    int64_t bytes, changed_ns;
    int32_t label;
} FolderFile;

/* All of them, in the order of the samples. */
typedef struct FolderFiles {
    int64_t count, room;
    /* owned */
    FolderFile *file;
    /* owned: paths, each with its zero byte */
    char *text;
    size_t text_bytes, text_room;
    /* owned, and each; only rank 0 has the names. NULL: numbers */
    char **class_name;
    int64_t classes;
} FolderFiles;
void files_add(FolderFiles *files, const char *path, int32_t label);
static inline const char *files_path(const FolderFiles *files, int64_t i)
{
    return files->text + files->file[i].path;
}
void files_fini(FolderFiles *files);

/* Sub-folders of dir are classes, in the order of their bytes, and what lies below one is of it.
 * ERR_NOINPUT, ERR_DATA. */
Status folder_scan(FolderFiles *files, const char *dir);
/* A picture and its label in each line of the file `list`; paths are relative to dir. ERR_NOINPUT;
 * ERR_DATA that names the line. */
Status folder_list(FolderFiles *files, const char *dir, const char *list);
/* The same of a text. */
Status folder_list_text(FolderFiles *files, const char *dir, const char *list, char *text);
/* The classes become those of the file `path` in its order (FolderImport.classes). ERR_NOINPUT;
 * ERR_DATA: a class that was found is not there. */
Status folder_classes(FolderFiles *files, const char *path);
/* ERR_DATA: a class without pictures. left_out: of each file, does it not
 * count? NULL: all do. */
Status files_check_classes(const FolderFiles *files, const uint8_t *left_out);

/* Samples are imported in blocks of so many; a block's record is a page of the journal. */
enum { FOLDER_BLOCK = 256, FOLDER_RECORD = 4096 };

#endif
