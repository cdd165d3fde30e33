/* runtime/registry.h: what this build contains. */
#ifndef LT_RUNTIME_REGISTRY_H
#define LT_RUNTIME_REGISTRY_H

#include "device/device.h"

/* Filled once, at the first call; immutable afterwards. */
const lt_registry *lt_registry_here(void);

#endif
