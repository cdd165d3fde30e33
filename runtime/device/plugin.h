/* runtime/device/plugin.h: backends in shared objects, opened on demand.

   Heavy libraries (MPI) stay out of ltrain's own objects: it starts on machines that lack them, and
   a script that asks for one gets an error with the reason. */
#ifndef LT_DEVICE_PLUGIN_H
#define LT_DEVICE_PLUGIN_H

#include "base/ctx.h"
#include "ltrain/backend.h"

/* The backend `name`: of the file at `path`, or when that is NULL of `ltrain_<name>.so` in the
   folder that the variable LTRAIN_BACKENDS names, else in the build tree or beside the installed
   library. Opened once a process, never closed; may be called from any thread; adds its devices to
   the table. NULL with a failure that begins with the name, e.g. "mpi: libmpi.so.40 not found". */
const lt_backend *lt_backend_load(lt_ctx *c, const char *name, const char *path);

/* The collectives of it; fails if it has none. */
const lt_comm_ops *lt_backend_comm(lt_ctx *c, const char *name, const char *path);

/* The link between devices of this kind: that of an opened backend, else of the one that the device
   names, which is then tried once a process. NULL: none, without a failure. */
const lt_comm_ops *lt_backend_link(lt_ctx *c, const lt_device_ops *device);
/* Why the backend that a device names could not be opened; NULL: it was, or was not tried. */
const char *lt_backend_link_why(const lt_device_ops *device);

/* The description of an opened backend ("Open MPI v4.1.4"); NULL when it is not opened. */
const char *lt_backend_about(const char *name);

/* For device/device_names.c, of the first `length` bytes of `name`: whether a build can have
   devices of that name; whether a backend's file of that name is there; and whether a backend that
   has such devices, by name or alias, is open now. The last leaves the failure of the one that has
   the name. */
extern const char *const lt_devices_known[]; /* of which builds can have devices; ends with NULL */
bool lt_device_known(const char *name, size_t length);
bool lt_device_has_file(const char *name, size_t length);
bool lt_device_backend(lt_ctx *c, const char *name, size_t length);

#endif
