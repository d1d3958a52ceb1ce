/* Declares the list of pictures that an import reads. It is made from the content of folders
 * (folder_scan.c) or from a list file (folder_list.c). */
#ifndef WEFT_DATA_FOLDER_FILES_H
#define WEFT_DATA_FOLDER_FILES_H

#include "data/import.h"

/* a picture to import */
typedef struct FolderFile {
    /* offset of the file's path in FolderFiles.text */
    size_t path;
    /* size in bytes by stat; -1: not a regular file, or stat failed */
    int64_t bytes;
    /* modification time by stat, in nanoseconds since 1970 */
    int64_t modified_ns;
    /* index of the picture's class, from 0 */
    int32_t label;
} FolderFile;

/* all pictures, in the order of the samples */
typedef struct FolderFiles {
    /* number of pictures */
    int64_t count;
    /* number of entries for which `file` has memory */
    int64_t room;
    /* [count], owned */
    FolderFile *file;
    /* paths of all files, each with a zero byte at its end; owned */
    char *text;
    /* bytes of `text` in use */
    size_t text_bytes;
    /* bytes allocated for `text` */
    size_t text_room;
    /* names of the classes, [classes], owned with the texts; set on rank 0 only. NULL: the classes
     * have numbers, but no names */
    char **class_name;
    /* number of classes */
    int64_t classes;
} FolderFiles;
/* Appends a picture, and finds the size and the modification time of its file. A file that does not
 * exist gets the size -1. */
void files_add(FolderFiles *files, const char *path, int32_t label);
static inline const char *files_path(const FolderFiles *files, int64_t i)
{
    return files->text + files->file[i].path;
}
/* Returns whether the size or the modification time of file i differs from what files_add has
 * found. */
bool files_changed(const FolderFiles *files, int64_t i);
void files_fini(FolderFiles *files);

/* Lists all files below dir. Each sub-folder of dir is a class, and all files below it, at any
 * depth, belong to this class. Names that begin with a dot and files directly in dir are skipped.
 * Classes are sorted by the bytes of their names. ERR_NOINPUT, ERR_IO; ERR_DATA: dir has no
 * sub-folders, or a link leads to a folder above itself. */
Status folder_scan(FolderFiles *files, const char *dir);
/* Lists all files below dir in the order in which folder_scan lists the files of a class, with
 * label 0. The classes are not set. ERR_NOINPUT, ERR_IO; ERR_DATA: a link leads to a folder above
 * itself. */
Status folder_scan_flat(FolderFiles *files, const char *dir);
/* Reads the file `list`, whose lines each have the path of a picture and its label. A path that
 * does not begin with a slash is relative to dir. ERR_NOINPUT; ERR_DATA names the line. */
Status folder_list(FolderFiles *files, const char *dir, const char *list);
/* Does what folder_list does, for a list that is in memory. text: content of the list, which is
 * modified; list: path of the list, for messages. */
Status folder_list_text(FolderFiles *files, const char *dir, const char *list, char *text);
/* Replaces the classes by those that the file `path` (FolderImport.classes) lists, in its order.
 * ERR_NOINPUT; ERR_DATA: a class of the pictures is not in the file, or the file is unusable
 * (folder_read_classes). */
Status folder_set_classes(FolderFiles *files, const char *path);
/* Reads names of classes from a data set, from a YAML file, or from a text with one name per line.
 * Returns the errors of class_names_read, yaml_classes_read or file_text. ERR_DATA, too: the file
 * names no class, or a class twice. Release `names` with class_names_free. */
Status folder_read_classes(ClassNames *names, const char *path);
/* Reads names of classes from the key `names` of a YAML file: a list, or a mapping from the numbers
 * 0, 1, 2, ... to names. ERR_NOINPUT; ERR_DATA with line and column. */
Status yaml_classes_read(ClassNames *names, const char *path);
/* Returns ERR_DATA if a class has no picture. left_out: for each file, not 0 if the import leaves
 * it out; NULL: none is left out. */
Status files_check_classes(const FolderFiles *files, const uint8_t *left_out);

enum {
    /* number of samples in a block; the journal records progress block by block */
    FOLDER_BLOCK = 256,
    /* size in bytes of a page of the journal, which has the record of one block */
    FOLDER_RECORD = 4096,
};

#endif
