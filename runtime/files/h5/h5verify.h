/*
** Verification of a created file.
*/
#ifndef MB_FILES_H5VERIFY_H
#define MB_FILES_H5VERIFY_H

#include "files/h5/library/h5structs.h"

/* Fails unless the file, opened again as `reopened`, has what was written to it (h5made.h). */
mb_status mb_h5_verify(mb_h5 *file, hid_t reopened);

#endif
