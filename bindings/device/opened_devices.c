#include "device/opened_devices.h"

static mb_device *opened[MBL_MOST_DEVICES + 1];

mb_device *mbl_opened_device(int i)
{
    return opened[i];
}

bool mbl_is_opened(const mb_device *device)
{
    int i = 0;
    while (opened[i] && opened[i] != device)
        i++;
    return opened[i];
}

void mbl_add_opened(mb_device *device)
{
    int i = 0;
    while (opened[i] && opened[i] != device)
        i++;
    if (i < MBL_MOST_DEVICES)
        opened[i] = device;
}
