/*
** Object headers of version 1, looked at before libhdf5 decodes the attributes in them: libhdf5
** takes the lengths that an attribute states without asking whether its message is so long, and
** reads up to 128 KiB beyond its memory. Headers of version 2 have a checksum, which libhdf5
** verifies.
**
** Format: HDF5 File Format Specification 3.0, IV.A.1.a (header), IV.A.2.b (dataspace), IV.A.2.m
** (attribute), IV.A.2.q (continuation).
*/
#define _GNU_SOURCE
#include "files/h5/library/h5library.h"
#include "files/positioned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ATTRIBUTE = 0x0c, CONTINUATION = 0x10 };

#define PREFIX_BYTES 16 /* of a header, before its first message */
#define MESSAGE_BYTES 8 /* of a message, before its data */
#define SHARED 2        /* flag: the data are elsewhere */
#define MOST_CHUNKS 4096

typedef struct header {
    int fd;
    uint64_t base;         /* where the addresses of the file begin */
    size_t offset, length; /* bytes of an address and of a length */
    uint64_t file_bytes;
} header;

static uint64_t number(const unsigned char *from, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

/* The bytes that the head of a dataspace asks for. 0: libhdf5 refuses such a head, and
** says why. `elements`: how many it has. */
static uint64_t space_bytes(const header *h, const unsigned char *space, uint64_t bytes,
                            uint64_t *elements)
{
    *elements = 1;
    if (bytes < 4)
        return 4;
    const int version = space[0], rank = space[1], maximum = space[2] & 1;
    const uint64_t head = version == 1 ? 8 : 4;
    if (version < 1 || version > 2 || rank > H5S_MAX_RANK)
        return 0;
    const uint64_t all = head + (uint64_t)rank * h->length * (maximum ? 2 : 1);
    for (int axis = 0; axis < rank && all <= bytes; axis++)
        *elements =
            mb_bytes_mul(*elements, number(space + head + (size_t)axis * h->length, h->length));
    if (version == 2 && space[3] == 2)
        *elements = 0;
    return all;
}

/* Are the parts of an attribute within its message? */
static bool attribute_fits(const header *h, const unsigned char *message, uint64_t bytes)
{
    if (bytes < 8)
        return false;
    const int version = message[0], shared = version > 1 ? message[1] : 0;
    if (version < 1 || version > 3)
        return true; /* libhdf5 refuses it */
    const uint64_t unit = version == 1 ? 8 : 1, name = number(message + 2, 2),
                   type = number(message + 4, 2), space = number(message + 6, 2);
    const uint64_t type_at = 8 + (version == 3) + (name + unit - 1) / unit * unit;
    const uint64_t space_at = type_at + (type + unit - 1) / unit * unit;
    const uint64_t data_at = space_at + (space + unit - 1) / unit * unit;
    uint64_t elements = 1;
    if (data_at > bytes)
        return false;
    if (shared & 2)
        return true;
    if (space_bytes(h, message + space_at, space, &elements) > space)
        return false;
    if (shared & 1)
        return true;
    return type >= 8 && mb_bytes_mul(number(message + type_at + 4, 4), elements) <= bytes - data_at;
}

/* Looks at the messages of one block of a header; finds where others are. */
static bool block_fits(const header *h, const unsigned char *block, uint64_t bytes,
                       uint64_t (*blocks)[2], int *count)
{
    uint64_t at = 0;
    while (at + MESSAGE_BYTES <= bytes) {
        const unsigned char *message = block + at;
        const uint64_t kind = number(message, 2), size = number(message + 2, 2);
        const bool shared = message[4] & SHARED;
        at += MESSAGE_BYTES + size;
        if (at > bytes)
            return true; /* libhdf5 refuses it */
        message += MESSAGE_BYTES;
        if (kind == ATTRIBUTE && !shared && !attribute_fits(h, message, size))
            return false;
        if (kind == CONTINUATION && size >= h->offset + h->length && *count < MOST_CHUNKS) {
            blocks[*count][0] = number(message, h->offset);
            blocks[(*count)++][1] = number(message + h->offset, h->length);
        }
    }
    return true;
}

/* Looks at the header at `address`. Whatever cannot be read is libhdf5's to refuse. */
static bool header_fits(const header *h, uint64_t address)
{
    unsigned char prefix[PREFIX_BYTES];
    if (mb_read_at(h->fd, prefix, sizeof prefix, h->base + address) != PREFIX_BYTES ||
        prefix[0] != 1)
        return true;
    bool fits = true;
    int count = 1;
    uint64_t(*blocks)[2] = malloc(MOST_CHUNKS * sizeof *blocks);
    if (!blocks)
        return true;
    blocks[0][0] = address + PREFIX_BYTES;
    blocks[0][1] = number(prefix + 8, 4);
    for (int i = 0; i < count && fits; i++) {
        const uint64_t bytes = blocks[i][1];
        unsigned char *block = bytes <= h->file_bytes ? malloc(bytes + 1) : NULL;
        if (block && mb_read_at(h->fd, block, bytes, h->base + blocks[i][0]) == (int64_t)bytes)
            fits = block_fits(h, block, bytes, blocks, &count);
        free(block);
    }
    free(blocks);
    return fits;
}

mb_status mb_h5_check_header(mb_h5 *file, hid_t object, const char *path)
{
    H5O_info_t about;
    struct stat status;
    hsize_t base = 0;
    header h = {0};
    if (file->writable || H5Oget_info2(object, &about, H5O_INFO_BASIC | H5O_INFO_HDR) < 0 ||
        about.hdr.version != 1)
        return MB_STATUS_OK;
    H5_OWNED hid_t owner = H5Iget_file_id(object); /* the file that a link leads to */
    H5_OWNED hid_t made = H5Fget_create_plist(owner);
    h.fd = mb_h5_descriptor(owner);
    if (h.fd < 0 || fstat(h.fd, &status) != 0 || H5Pget_userblock(made, &base) < 0 ||
        H5Pget_sizes(made, &h.offset, &h.length) < 0)
        return MB_STATUS_OK;
    h.base = base;
    h.file_bytes = (uint64_t)status.st_size;
    if (h.offset > 8 || h.length > 8 || header_fits(&h, about.addr))
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_IO, NULL,
                   "cannot list the attributes of '%s' of '%s': one of them is longer than its "
                   "place; the file is damaged: copy it again, or use another copy",
                   path, file->path);
}
