/*
** The lock of libhdf5, which one thread at a time may use.
*/
#ifndef MB_FILES_H5LOCK_H
#define MB_FILES_H5LOCK_H

/* Every function that uses libhdf5 begins with MB_H5_GUARD, which holds the lock until the function
** returns. The lock is recursive. */
#define MB_H5_GUARD int mb_h5_guard_ __attribute__((cleanup(mb_h5_unlock), unused)) = mb_h5_lock()
int mb_h5_lock(void);
void mb_h5_unlock(int *guard);
/* Names the file that the calling thread is about to use libhdf5 for. */
void mb_h5_now_at(const char *path);
/* The path of that file if the calling thread is inside libhdf5, else NULL. Signal handlers may
** ask: some damaged files crash libhdf5. */
const char *mb_h5_inside(void);

#endif
