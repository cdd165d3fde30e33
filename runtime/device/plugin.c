/* runtime/device/plugin.c: finds, opens and checks shared objects that hold a backend.

   Opened objects are never closed: MPI cannot be started twice in a process, and tables that were
   handed out point into them. One list a process, whatever the number of contexts. */
#include "device/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "device/host.h"
#include "ltrain/version.h"

enum { BACKENDS = 16, NAME = 32 };
static const char NAME_BYTES[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

typedef struct opened {
  char name[NAME];
  char path[PATH_MAX]; /* as it was asked for; "" for one found by its name */
  lt_backend backend;
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opened list[BACKENDS];
static int n_list;

static const opened *find_opened(const char *name) {
  for (int k = 0; k < n_list; k++)
    if (strcmp(list[k].name, name) == 0) return &list[k];
  return NULL;
}

/* Where backends are: from the folder of the program or libltrain, in the build tree and installed.
   No others, since any user who can write there could run code in this process. The module for
   stock Lua may open none. */
typedef struct home {
  char folder[PATH_MAX];
  const char *places[2];
} home;

/* dladdr1 of a variable of this file names the object that it is in: libltrain, or the program
   itself, which has an empty name in the link map. */
static bool find_home(home *h) {
  Dl_info info;
  struct link_map *map = NULL;
  if (dladdr1(&list, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return false;
  bool library = map->l_name[0] != '\0';
  if (realpath(library ? map->l_name : "/proc/self/exe", h->folder) == NULL) return false;
  *strrchr(h->folder, '/') = '\0';
  h->places[0] = "backends";
  h->places[1] = library ? "ltrain" : LT_BACKENDS_FROM_BIN;
  return true;
}

/* Where ltrain_<name>.so is; false when it is nowhere. */
static bool find_file(const char *name, char path[PATH_MAX]) {
  const char *folder = getenv("LTRAIN_BACKENDS");
  home h;
  if (folder != NULL) {
    int n = snprintf(path, PATH_MAX, "%s/ltrain_%s.so", folder, name);
    return n < PATH_MAX && access(path, F_OK) == 0;
  }
  if (!find_home(&h)) return false;
  for (size_t k = 0; k < sizeof h.places / sizeof h.places[0]; k++) {
    int n = snprintf(path, PATH_MAX, "%s/%s/ltrain_%s.so", h.folder, h.places[k], name);
    if (n < PATH_MAX && access(path, F_OK) == 0) return true;
  }
  return false;
}

/* Whether the backend is one of the list LT_BACKENDS_BUILT, "mpi,ucx". */
static bool was_built(const char *name) {
  char built[] = "," LT_BACKENDS_BUILT ",", with_commas[NAME + 3];
  snprintf(with_commas, sizeof with_commas, ",%s,", name);
  return strstr(built, with_commas) != NULL;
}

static bool fail_absent(lt_ctx *c, const char *name) {
  const char *folder = getenv("LTRAIN_BACKENDS");
  home h;
  if (folder != NULL)
    return lt_fail(c, LT_EIO, "%s: no ltrain_%s.so in %s (LTRAIN_BACKENDS)", name, name, folder);
  if (was_built(name) && find_home(&h))
    return lt_fail(c, LT_EIO,
                   "%s: ltrain_%s.so, which was built with this ltrain, is neither in %s/%s nor "
                   "in %s/%s: put it there, or set LTRAIN_BACKENDS to its folder",
                   name, name, h.folder, h.places[0], h.folder, h.places[1]);
  if (strcmp(name, "mpi") == 0)
    return lt_fail(c, LT_EIO,
                   "mpi: this ltrain was built without MPI: install Open MPI's headers (Debian: "
                   "apt-get install libopenmpi-dev) and build it with -DLT_MPI=ON");
  if (strcmp(name, "ucx") == 0)
    return lt_fail(c, LT_EIO,
                   "ucx: this ltrain was built without UCX: install its headers (Debian: apt-get "
                   "install libucx-dev) and build it with -DLT_UCX=ON");
  if (strcmp(name, "nccl") == 0)
    return lt_fail(c, LT_EIO,
                   "nccl: this ltrain was built without NCCL: install its headers (nccl.h) and "
                   "build it again");
  if (strcmp(name, "cuda") == 0)
    return lt_fail(c, LT_EIO,
                   "cuda: this ltrain was built without CUDA: install NVIDIA's CUDA Toolkit "
                   "(`./dev cuda` says what is missing) and build it again");
  return lt_fail(c, LT_EIO, "%s: no such backend: neither built in nor as ltrain_%s.so", name,
                 name);
}

/* dlerror's "libmpi.so.40: cannot open shared object file: ..." names what is missing first. */
static bool fail_open(lt_ctx *c, const char *name, const char *path, const char *why) {
  const char *colon = strstr(why, ": cannot open shared object file: No such file");
  if (colon == NULL) return lt_fail(c, LT_EIO, "%s: cannot open %s: %s", name, path, why);
  return lt_fail(c, LT_EIO, "%s: %.*s not found", name, (int)(colon - why), why);
}

/* The first member of a table of collectives that must be there and is not; NULL: all are. A member
   that is optional is NULL and asked for at each use; these are used without a question. */
static const char *lacking(const lt_comm_ops *o) {
  if (o->name == NULL) return "name";
  if (o->open == NULL) return "open";
  if (o->close == NULL) return "close";
  if (o->rank == NULL) return "rank";
  if (o->ranks == NULL) return "ranks";
  if (o->move == NULL) return "move";
  if (o->device != NULL) return NULL; /* the host's link does the rest */
  if (o->compare == NULL) return "compare";
  if (o->split == NULL) return "split";
  if (o->compare_pair == NULL) return "compare_pair";
  return NULL;
}

static bool check_comm(lt_ctx *c, const char *name, const lt_comm_ops *o) {
  if (o->version != LT_COMM_VERSION || o->size != sizeof(lt_comm_ops))
    return lt_fail(c, LT_EIO,
                   "%s: its collectives are of version %u (%u bytes), this ltrain has version %d "
                   "(%zu bytes)",
                   name, o->version, o->size, LT_COMM_VERSION, sizeof(lt_comm_ops));
  const char *missing = lacking(o);
  return missing == NULL || lt_fail(c, LT_EIO, "%s: its table lacks `%s`", name, missing);
}

static bool add_device(lt_ctx *c, const char *name, const lt_device_ops *o) {
  char why[LT_BACKEND_TEXT];
  if (!lt_device_add(o, why, sizeof why)) return lt_fail(c, LT_EIO, "%s: %s", name, why);
  return true;
}

static bool check(lt_ctx *c, const char *name, const lt_backend *b, uint64_t op_hash) {
  if (b->version != LT_BACKEND_VERSION)
    return lt_fail(c, LT_EIO, "%s: made for backends of version %u, this ltrain has version %d",
                   name, b->version, LT_BACKEND_VERSION);
  if (b->op_hash != 0 && b->op_hash != op_hash)
    return lt_fail(c, LT_EIO, "%s: built with other operations than this ltrain %s: build it again",
                   name, LT_VERSION);
  if (b->comm == NULL && b->device == NULL)
    return lt_fail(c, LT_EIO, "%s: has neither collectives nor devices", name);
  return (b->comm == NULL || check_comm(c, name, b->comm)) &&
         (b->device == NULL || add_device(c, name, b->device));
}

/* RTLD_NOW: a symbol that is missing is an error here and not in the middle of a run. RTLD_LOCAL:
   two backends that bring different versions of a library do not see each other's symbols. The hash
   of the op table refuses a backend whose op numbers mean other operations. */
static bool open_file(lt_ctx *c, const char *name, const char *path, lt_backend *out) {
  uint64_t op_hash = lt_device_table(c, LT_CPU_DEVICE)->op_hash;
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object == NULL) return fail_open(c, name, path, dlerror());
  bool (*start)(const lt_host *, lt_backend *);
  *(void **)&start = dlsym(object, "lt_backend_open");
  if (start == NULL) {
    dlclose(object);
    return lt_fail(c, LT_EIO, "%s: not a backend: no lt_backend_open in %s", name, path);
  }
  *out = (lt_backend){.size = sizeof *out, .version = LT_BACKEND_VERSION};
  if (!start(lt_host_here(op_hash), out))
    return lt_fail(c, LT_EIO, "%s: %s", name, out->text[0] ? out->text : "could not start");
  return check(c, name, out, op_hash);
}

static bool check_name(lt_ctx *c, const char *name) {
  size_t n = strspn(name, NAME_BYTES);
  return (n > 0 && n < NAME && name[n] == '\0') ||
         lt_fail(c, LT_EARG, "backend: not a name of lower case letters: '%s'", name);
}

/* An entry of the list is complete before n_list counts it, and the list never moves: pointers into
   it stay valid without the lock. */
static const opened *load(lt_ctx *c, const char *name, const char *path) {
  const opened *found = find_opened(name);
  if (found != NULL) {
    if (path == NULL || strcmp(path, found->path) == 0) return found;
    lt_fail(c, LT_EARG, "%s: a backend of this name is open already, from %s", name,
            found->path[0] ? found->path : "this build");
    return NULL;
  }
  if (n_list == BACKENDS) {
    lt_fail(c, LT_EARG, "%s: %d backends are open already", name, BACKENDS);
    return NULL;
  }
  opened *o = &list[n_list];
  char file[PATH_MAX];
  if (path == NULL && !find_file(name, file)) {
    fail_absent(c, name);
    return NULL;
  }
  /* A name without a slash would be looked for in the system's folders. */
  if (path != NULL && realpath(path, file) == NULL) {
    lt_fail(c, LT_EIO, "%s: cannot open %s: %s", name, path, strerror(errno));
    return NULL;
  }
  if (!open_file(c, name, file, &o->backend)) return NULL;
  strcpy(o->name, name);
  strncpy(o->path, path != NULL ? path : "", sizeof o->path - 1);
  n_list++;
  return o;
}

const lt_backend *lt_backend_load(lt_ctx *c, const char *name, const char *path) {
  if (!lt_ok(c) || !check_name(c, name)) return NULL;
  if (!c->policy.dlopen) {
    lt_fail(c, LT_EIO, "%s: this state may not open libraries (LTRAIN_LOAD_LIBRARIES)", name);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  const opened *o = load(c, name, path);
  pthread_mutex_unlock(&lock);
  return o != NULL ? &o->backend : NULL;
}

const lt_comm_ops *lt_backend_comm(lt_ctx *c, const char *name, const char *path) {
  const lt_backend *b = lt_backend_load(c, name, path);
  if (b == NULL) return NULL;
  if (b->comm == NULL) lt_fail(c, LT_EIO, "%s: has no collectives", name);
  return b->comm;
}

static const lt_comm_ops *find_link(const char *device) {
  const lt_comm_ops *found = NULL;
  pthread_mutex_lock(&lock);
  for (int k = 0; k < n_list && found == NULL; k++) {
    const lt_comm_ops *o = list[k].backend.comm;
    if (o != NULL && o->device != NULL && strcmp(o->device, device) == 0) found = o;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* What the kinds' backends said when they were tried; "": nothing. By the main thread alone. */
static struct {
  const lt_device_ops *device;
  char why[LT_FAILURE_TEXT];
} links[LT_DEVICE_KINDS];

static int link_of(const lt_device_ops *device) {
  int k = 0;
  while (k < LT_DEVICE_KINDS - 1 && links[k].device != NULL && links[k].device != device) k++;
  return k;
}

/* Tried once a process, as a second try would fail alike. Why it failed is kept for
   `lt_backend_link_why`, as a run without it continues over the host. */
const lt_comm_ops *lt_backend_link(lt_ctx *c, const lt_device_ops *device) {
  const lt_comm_ops *found = find_link(device->name);
  int k = link_of(device);
  if (found != NULL || device->link == NULL || links[k].device == device || !lt_ok(c))
    return found;
  lt_failure f;
  links[k].device = device;
  if (lt_backend_load(c, device->link, NULL) != NULL) return find_link(device->name);
  if (lt_take_failure(c, &f)) snprintf(links[k].why, sizeof links[k].why, "%s", f.text);
  return NULL;
}

const char *lt_backend_link_why(const lt_device_ops *device) {
  const char *why = links[link_of(device)].why;
  return links[link_of(device)].device == device && why[0] != '\0' ? why : NULL;
}

const char *lt_backend_about(const char *name) {
  pthread_mutex_lock(&lock);
  const opened *o = find_opened(name);
  pthread_mutex_unlock(&lock);
  return o != NULL ? o->backend.about : NULL;
}

const char *const lt_devices_known[] = {LT_DEVICES_KNOWN NULL};

static bool copy_name(char out[NAME], const char *name, size_t length) {
  if (length == 0 || length >= NAME) return false;
  memcpy(out, name, length);
  out[length] = 0;
  return strspn(out, NAME_BYTES) == length;
}

bool lt_device_known(const char *name, size_t length) {
  char own[NAME];
  if (!copy_name(own, name, length)) return false;
  for (int k = 0; lt_devices_known[k] != NULL; k++)
    if (strcmp(lt_devices_known[k], own) == 0) return true;
  return false;
}

bool lt_device_has_file(const char *name, size_t length) {
  char own[NAME], path[PATH_MAX];
  return copy_name(own, name, length) && find_file(own, path);
}

static bool has_devices(const lt_backend *b, const char *name) {
  return b != NULL && b->device != NULL &&
         (strcmp(b->device->name, name) == 0 ||
          (b->device->alias != NULL && strcmp(b->device->alias, name) == 0));
}

/* Loads the backend that has devices of this name. A backend may have another name than its
   devices: then those known to bring devices are tried, and what they report is dropped. */
bool lt_device_backend(lt_ctx *c, const char *name, size_t length) {
  char own[NAME], path[PATH_MAX];
  if (!lt_ok(c) || !copy_name(own, name, length)) return false;
  if (find_file(own, path)) return has_devices(lt_backend_load(c, own, NULL), own);
  for (int k = 0; lt_devices_known[k] != NULL; k++) {
    if (!find_file(lt_devices_known[k], path)) continue;
    if (has_devices(lt_backend_load(c, lt_devices_known[k], NULL), own)) return true;
    lt_take_failure(c, NULL); /* it was not asked for */
  }
  return false;
}
