/*
** Whether a file can be used, and created files at rest: closed by libhdf5, while their bytes are
** still written at known places (data/h5raw.h).
*/
#ifndef MB_FILES_H5READY_H
#define MB_FILES_H5READY_H

#include "files/h5/library/h5structs.h"

/* Fails unless the file is open, and open for writing if `writing`. Restores a latched failure. A
** file at rest is opened again. */
mb_status mb_h5_ready(mb_h5 *file, bool writing);
/* The same for what does without libhdf5: a file at rest stays at rest. */
mb_status mb_h5_usable(mb_h5 *file, bool writing);

/* The access list (a new one) by which libhdf5 opens the descriptor of a created file. */
hid_t mb_h5_created_access(mb_h5 *file);
/* Has libhdf5 write and close a created file, and its datasets with it. Their handles stay. */
mb_status mb_h5_begin_rest(mb_h5 *file);

#endif
