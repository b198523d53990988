/*
** Links, and the files that they and other references may lead to.
*/
#ifndef MB_FILES_H5LINKS_H
#define MB_FILES_H5LINKS_H

#include "files/h5/library/h5structs.h"

/* Sets file->folder to the real folder of the file that is called `name`. */
mb_status mb_h5_set_folder(mb_h5 *file, const char *name);
/* Sets file->folder and file->links; frees both. */
mb_status mb_h5_begin_links(mb_h5 *file);
void mb_h5_end_links(mb_h5 *file);
/* A list of class `kind` by which links are followed as file->links says; to be closed. */
hid_t mb_h5_link_access(mb_h5 *file, hid_t kind);
/* The link creation list that makes parent groups; to be closed. */
hid_t mb_h5_parents(void);
/* Finds the file that libhdf5 will take for `name`, which the file `parent` refers to: its name in
** `found` (PATH_MAX bytes). `prefixes` is the environment variable with folders to look in.
** `problem` (H5_PROBLEM_BYTES) says what is wrong where it is not found. */
h5_verdict mb_h5_resolve(mb_h5 *file, const char *parent, const char *name, const char *prefixes,
                         char *found, char *problem);
/* The same for a file of external storage. */
h5_verdict mb_h5_resolve_storage(mb_h5 *file, const char *name, char *found, char *problem);

#endif
