/* runtime/io/confined_files.h: files below a folder, and nowhere else, whatever symbolic links
   there are.

   For readers of folders that others have written: a path is made of names; a name that is empty,
   "." or "..", and one that is a link, is refused at each step, so that no path ends elsewhere,
   whoever changes the folder meanwhile. */
#ifndef LT_IO_CONFINED_FILES_H
#define LT_IO_CONFINED_FILES_H

#include <sys/stat.h>

#include "base/ctx.h"

/* Open what `path` is below `folder` (which may be a link; an empty path: the folder itself) for
   reading; -1 with a failure. Pipes and devices are refused. */
int lt_below_open(lt_ctx *c, const char *op, const char *folder, const char *path,
                  struct stat *info);

/* What is there, without opening it; false (no failure) where nothing is, or that is refused. */
bool lt_below_stat(lt_ctx *c, const char *folder, const char *path, struct stat *info);

#endif
