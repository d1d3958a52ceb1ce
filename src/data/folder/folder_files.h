/* The list of pictures to import, from folders (folder_scan.c) or from a list file
 * (folder_list.c). */
#ifndef WEFT_DATA_FOLDER_FILES_H
#define WEFT_DATA_FOLDER_FILES_H

#include "data/import.h"

/* a picture to import */
typedef struct FolderFile {
    /* offset of its path in FolderFiles.text */
    size_t path;
    /* size by stat; -1: not a regular file, or stat failed */
    int64_t bytes;
    /* modification time by stat */
    int64_t changed_ns;
    /* class, from 0 */
    int32_t label;
} FolderFile;

/* all pictures, in the order of the samples */
typedef struct FolderFiles {
    int64_t count, room;
    /* owned */
    FolderFile *file;
    /* owned: paths, each with a zero byte */
    char *text;
    /* bytes of text in use, and allocated */
    size_t text_bytes, text_room;
    /* owned, with its entries; only on rank 0. NULL: classes have numbers only */
    char **class_name;
    /* number of classes */
    int64_t classes;
} FolderFiles;
/* Appends a picture, and finds its size and modification time. */
void files_add(FolderFiles *files, const char *path, int32_t label);
static inline const char *files_path(const FolderFiles *files, int64_t i)
{
    return files->text + files->file[i].path;
}
/* Returns whether the size or modification time of file i has changed since files_add. */
bool files_changed(const FolderFiles *files, int64_t i);
void files_fini(FolderFiles *files);

/* Finds the pictures below dir. Each sub-folder of dir is a class, and all files below it belong to
 * this class; names that begin with a dot are skipped. Classes are sorted by the bytes of their
 * names. ERR_NOINPUT, ERR_IO, ERR_DATA. */
Status folder_scan(FolderFiles *files, const char *dir);
/* Finds all files below dir, in the order in which folder_scan finds the files of a class. Their
 * label is 0; the classes are not set. ERR_NOINPUT, ERR_IO, ERR_DATA. */
Status folder_scan_flat(FolderFiles *files, const char *dir);
/* Reads the file `list`, with a picture and its label in each line; paths that do not begin with a
 * slash are relative to dir. ERR_NOINPUT; ERR_DATA names the line. */
Status folder_list(FolderFiles *files, const char *dir, const char *list);
/* Does the same for a list that has been read. text: its content, which is modified; list: its
 * path, for messages. */
Status folder_list_text(FolderFiles *files, const char *dir, const char *list, char *text);
/* Replaces the classes by the list of names in the file `path` (FolderImport.classes), in the order
 * of the list. ERR_NOINPUT; ERR_DATA: a class that was found is not in the list. */
Status folder_set_classes(FolderFiles *files, const char *path);
/* Reads names of classes from a data set, a YAML file (yaml_classes_read), or a text with one name
 * per line. ERR_DATA, too: the file names no class, or one class twice. Release with
 * class_names_free. */
Status folder_read_classes(ClassNames *names, const char *path);
/* Reads names of classes from the key `names` of a YAML file: a list, or a mapping from the numbers
 * 0, 1, 2, ... to names. ERR_NOINPUT; ERR_DATA with line and column. */
Status yaml_classes_read(ClassNames *names, const char *path);
/* Fails with ERR_DATA if a class has no picture. left_out: per file, not 0 if it is left out; NULL:
 * no file is. */
Status files_check_classes(const FolderFiles *files, const uint8_t *left_out);

enum {
    /* samples of a block, the unit of progress */
    FOLDER_BLOCK = 256,
    /* bytes of a block's record, a page of the journal */
    FOLDER_RECORD = 4096,
};

#endif
