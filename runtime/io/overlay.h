/* runtime/io/shadow.h: files that a process writes without a trace.

   While a shadow is open, every file and folder that the library or a script makes, changes or
   removes is one below the shadow's folder; reads find those before the real ones, which stay as
   they are. `ltrain check` runs scripts so. A process has one shadow at most. */
#ifndef LT_IO_SHADOW_H
#define LT_IO_SHADOW_H

#include "base/ctx.h"

/* Opens the shadow in a folder that is there; false with a failure in the ctx. */
bool lt_shadow_open(lt_ctx *c, const char *folder);

/* Files are the real ones again; the folder stays. */
void lt_shadow_close(lt_ctx *c);

/* Folders that are missing above a file which is written are made. */
void lt_shadow_make_folders(void);

/* The path in `out`, of LT_PATH_MAX bytes, under which a path is to be read, or written (`keep`:
   what it holds stays); false with errno set. */
bool lt_shadow_read_path(const char *path, char *out);
bool lt_shadow_write_path(const char *path, bool keep, char *out);

/* As unlink: of a real file it only hides it. */
int lt_shadow_unlink(const char *path);
int lt_shadow_rename(const char *from, const char *to);

#endif
