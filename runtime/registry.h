/* runtime/registry.h: the table of the devices and comm backends of this build, for the layers
   below that do not know them by name. */
#ifndef LT_REGISTRY_H
#define LT_REGISTRY_H

#include "device/device.h"

/* Filled once, at the first call; immutable afterwards. */
const lt_registry *lt_registry_here(void);

/* A part that a build may have, for `ltrain info`. */
enum { LT_PARTS = 9, LT_PART_TEXT = 512 };
typedef struct lt_part {
  const char *name;
  bool present;
  char text[LT_PART_TEXT]; /* what it is; or why it is not there */
} lt_part;

/* Fills in all parts. Opens backends to see whether they can be, where the policy allows it. */
int lt_registry_parts(lt_ctx *c, lt_part parts[LT_PARTS]);

#endif
