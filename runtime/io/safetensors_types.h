/* runtime/io/safetensors_types.h: element types of safetensors files, in the order of the reference
   writer; those that are dtypes have the name that tensor/dtype.def gives them. */
#ifndef LT_IO_SAFETENSORS_TYPES_H
#define LT_IO_SAFETENSORS_TYPES_H

#include "ltrain/tensor.h"

enum { LT_FORMAT_COUNT = 22 };

typedef struct lt_format {
  const char *name;
  int bits;
} lt_format;

extern const lt_format lt_formats[LT_FORMAT_COUNT];

/* The index into lt_formats of a name, LT_FORMAT_COUNT: there is none. */
int lt_format_named(const char *name);

#endif
