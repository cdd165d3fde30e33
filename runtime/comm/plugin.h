/* runtime/comm/plugin.h: backends that are shared objects of their own, opened when asked for.

   Heavy libraries (MPI) stay out of ltrain's own objects: it starts on machines that lack them, and
   whoever asks gets a sentence with the reason. */
#ifndef LT_COMM_PLUGIN_H
#define LT_COMM_PLUGIN_H

#include "base/ctx.h"
#include "ltrain/backend.h"

/* The collectives of the backend `name`: of the file at `path`, or when that is NULL of
   `ltrain_<name>.so` in the folder that the variable LTRAIN_BACKENDS names, else in the build tree
   or beside the installed library. Opened once a process, never closed; from any thread. NULL with
   a failure that begins with the name, e.g. "mpi: libmpi.so.40 not found". */
const lt_comm_ops *lt_backend_load(lt_ctx *c, const char *name, const char *path);

/* What an opened backend says of itself ("Open MPI v4.1.4"); NULL when it is not opened. */
const char *lt_backend_about(const char *name);

#endif
