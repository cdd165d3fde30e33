/* runtime/device/meta.h: the meta device. */
#ifndef LT_DEVICE_META_H
#define LT_DEVICE_META_H

#include "device/device.h"

const lt_device_ops *lt_meta_ops(const lt_device_ops *cpu);

#endif
