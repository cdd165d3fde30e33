/* runtime/registry.h: what this build contains. */
#ifndef LT_RUNTIME_REGISTRY_H
#define LT_RUNTIME_REGISTRY_H

#include "device/device.h"

/* Filled once, at the first call; immutable afterwards. */
const lt_registry *lt_registry_here(void);

/* A part that a build may have, for `ltrain info`. */
typedef struct lt_part {
  const char *name;
  bool present;
  const char *text; /* what it is; or why it is not there */
} lt_part;

const lt_part *lt_registry_parts(int *n);

#endif
