/* runtime/io/overlay.h: an overlay over the file system: what a process writes goes to a folder of
   its own.

   While a shadow is open, every file and folder that the library or a script makes, changes or
   removes is one below the shadow's folder; reads find those before the real ones, which stay as
   they are. `ltrain check` runs scripts so. A process has one shadow at most. */
#ifndef LT_IO_OVERLAY_H
#define LT_IO_OVERLAY_H

#include "base/ctx.h"

/* Opens the shadow in a folder that is there; false with a failure in the ctx. */
bool lt_overlay_open(lt_ctx *c, const char *folder);

/* Files are the real ones again; the folder stays. */
void lt_overlay_close(lt_ctx *c);

/* Folders that are missing above a file which is written are made. */
void lt_overlay_make_folders(void);

/* The path in `out`, of LT_PATH_MAX bytes, under which a path is to be read, or written (`keep`:
   what it holds stays); false with errno set. */
bool lt_overlay_read_path(const char *path, char *out);
bool lt_overlay_write_path(const char *path, bool keep, char *out);

/* As unlink: of a real file it only hides it. */
int lt_overlay_unlink(const char *path);
int lt_overlay_rename(const char *from, const char *to);

#endif
