/* runtime/io/zip_save.h: writing zip files, as Python's zipfile writes and reads them. */
#ifndef LT_IO_ZIP_SAVE_H
#define LT_IO_ZIP_SAVE_H

#include "io/file.h"
#include "io/json.h"

typedef struct lt_zip_saving {
  lt_saving file;
  lt_json directory;
  int64_t at, count;
} lt_zip_saving;

/* Open, add members, commit, as lt_saving: commit ends it whatever failed. */
bool lt_zip_saving_open(lt_ctx *c, lt_zip_saving *z, const char *op, const char *path);

/* A member of n bytes, as they are or deflated. */
bool lt_zip_saving_add(lt_ctx *c, lt_zip_saving *z, const char *name, const void *data, size_t n,
                       bool deflated);
bool lt_zip_saving_commit(lt_ctx *c, lt_zip_saving *z);

#endif
