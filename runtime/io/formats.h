/* runtime/io/formats.h: element types of safetensors files, in the order of the reference writer.
 */
#ifndef LT_IO_FORMATS_H
#define LT_IO_FORMATS_H

#include "ltrain/tensor.h"

enum { LT_FORMAT_COUNT = 22 };

typedef struct lt_format {
  const char *name;
  int bits;
  lt_dtype dtype; /* LT_DTYPE_NONE: not in ltrain */
} lt_format;

extern const lt_format lt_formats[LT_FORMAT_COUNT];

#endif
