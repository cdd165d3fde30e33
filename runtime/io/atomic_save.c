/* runtime/io/atomic_save.c: atomic saves: a file is complete, or the former one is left as it was.

   A temporary is called `.NAME.HOST-PID-N.saving`. One whose process has died on this host is
   stale: the next save in the folder removes it.

   Write, fsync, rename, fsync of the folder: rename(2) replaces a file atomically, but without
   the first fsync a crash may leave an empty one under the new name, and without the second the
   rename itself may be lost (T. Pillai and others, All File Systems Are Not Created Equal,
   2014). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "io/file.h"
#include "io/memory_files.h"

static const char SUFFIX[] = ".saving";
enum { MAX_TRIES = 100 };

static bool fail_errno(lt_ctx *c, const lt_saving *s, const char *verb) {
  return lt_fail(c, LT_EIO, "%s: cannot %s %s: %s", s->op, verb, s->path, strerror(errno));
}

/* Hosts that share a file system must not remove each other's temporaries: process ids mean nothing
   elsewhere. A CRC of the name is enough for that. */
static unsigned host_id(void) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return (unsigned)crc32(0, (const Bytef *)name, (uInt)strlen(name));
}

/* Length of the folder part of a path with its slash; 0: the current folder. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static bool folder_of(const char *path, char *out) {
  size_t n = folder_length(path);
  if (n >= LT_PATH_MAX) return false;
  memcpy(out, n > 0 ? path : "./", n > 0 ? n : 2);
  out[n > 0 ? n : 2] = 0;
  return true;
}

typedef struct sweep {
  const lt_file_ops *files;
  const char *folder;
  unsigned host;
} sweep;

/* Is this the name of a temporary that a dead process of this host has left? A number that was
   given to another process since keeps the file for a while longer: that is harmless. */
static bool is_stale(const char *name, unsigned host) {
  size_t n = strlen(name), suffix = sizeof SUFFIX - 1;
  if (name[0] != '.' || n <= suffix || strcmp(name + n - suffix, SUFFIX) != 0) return false;
  const char *at = name + n - suffix;
  while (at > name && at[-1] != '.') at--;
  char *end;
  unsigned long of_host = strtoul(at, &end, 16);
  if (end != at + 8 || *end != '-' || of_host != host) return false;
  long pid = strtol(end + 1, &end, 10);
  return *end == '-' && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static bool unlink_one(void *ud, const char *name) {
  const sweep *s = ud;
  char path[LT_PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/%s", s->folder, name);
  if (n > 0 && n < LT_PATH_MAX) s->files->unlink(path);
  return true;
}

/* A file, or a folder with its files. */
static bool remove_any(const lt_file_ops *files, const char *path) {
  if (files->unlink(path) == 0) return true;
  files->list(path, unlink_one, &(sweep){.files = files, .folder = path});
  return files->rmdir(path) == 0;
}

/* Best effort: what cannot be removed is left. */
static bool sweep_one(void *ud, const char *name) {
  const sweep *s = ud;
  char path[LT_PATH_MAX];
  if (!is_stale(name, s->host)) return true;
  int n = snprintf(path, sizeof path, "%s%s", s->folder, name);
  if (n > 0 && n < LT_PATH_MAX) remove_any(s->files, path);
  return true;
}

bool lt_saving_remove_stale(lt_ctx *c, const char *op, const char *folder) {
  char path[LT_PATH_MAX];
  if (!lt_file_may_write(c, op, folder)) return false;
  if (lt_is_memory_file(c, folder)) return true;
  if (snprintf(path, sizeof path, "%s/", folder) >= LT_PATH_MAX)
    return lt_fail(c, LT_EIO, "%s: path too long: %.60s...", op, folder);
  const lt_file_ops *files = lt_files(c);
  files->list(path, sweep_one, &(sweep){.files = files, .folder = path, .host = host_id()});
  return true;
}

static bool name_temporary(lt_ctx *c, lt_saving *s, int try) {
  int folder = (int)folder_length(s->path);
  int n = snprintf(s->temporary, sizeof s->temporary, "%.*s.%s.%08x-%ld-%d%s", folder, s->path,
                   s->path + folder, host_id(), (long)getpid(), try, SUFFIX);
  return (n >= 0 && n < LT_PATH_MAX) ||
         lt_fail(c, LT_EIO, "%s: path too long: %.60s...", s->op, s->path);
}

/* The temporary is in the same folder, since rename(2) works within one file system only. A device
   or a pipe at the path would be replaced by the rename: refused. */
bool lt_saving_open(lt_ctx *c, lt_saving *s, const char *op, const char *path) {
  s->op = op;
  s->path = path;
  s->fd = -1;
  s->buffer = NULL;
  s->buffer_size = s->buffer_capacity = 0;
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) {
    s->fd = LT_HELD_FD;
    return true;
  }
  const lt_file_ops *files = lt_files(c);
  size_t folder = folder_length(path);
  if (path[folder] == 0) return lt_fail(c, LT_EIO, "%s: not the name of a file: '%s'", op, path);
  struct stat there;
  if (files->stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
    return lt_fail(c, LT_EIO, "%s: not a plain file: %s", op, path); /* a rename would replace it */
  char name[LT_PATH_MAX];
  if (!folder_of(path, name)) return lt_fail(c, LT_EIO, "%s: path too long: %.60s...", op, path);
  files->list(name, sweep_one, &(sweep){.files = files, .folder = name, .host = host_id()});
  for (int i = 0; i < MAX_TRIES && s->fd < 0; i++) {
    if (!name_temporary(c, s, i)) return false;
    /* O_EXCL: a temporary of that name is another's, and is not written into. */
    s->fd = files->open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (s->fd < 0 && errno != EEXIST && errno != EINTR) break;
  }
  return s->fd >= 0 || fail_errno(c, s, "write");
}

/* Grows by half: a checkpoint in memory is written in pieces of unknown number. */
static bool write_buffer(lt_ctx *c, lt_saving *s, const void *data, size_t n) {
  if (n > s->buffer_capacity - s->buffer_size) {
    size_t capacity = s->buffer_capacity + n + s->buffer_capacity / 2;
    char *more = lt_realloc(c, s->buffer, s->buffer_capacity, capacity);
    if (more == NULL) return false;
    s->buffer = more;
    s->buffer_capacity = capacity;
  }
  memcpy(s->buffer + s->buffer_size, data, n);
  s->buffer_size += n;
  return true;
}

bool lt_saving_write(lt_ctx *c, lt_saving *s, const void *data, size_t n) {
  if (!lt_ok(c) || s->fd < 0) return false;
  if (n > 0 && lt_is_memory_fd(s->fd)) return write_buffer(c, s, data, n);
  size_t done = 0;
  while (done < n) {
    ssize_t put = lt_files(c)->write(s->fd, (const char *)data + done, n - done);
    if (put < 0 && errno == EINTR) continue;
    /* write(2) of more than nothing does not end so on a plain file; without this it would be tried
       for ever. */
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return fail_errno(c, s, "write");
    done += (size_t)put;
  }
  return true;
}

/* The rename itself must survive a crash. File systems that cannot sync a folder say EINVAL. */
static bool sync_folder(lt_ctx *c, const lt_saving *s) {
  char folder[LT_PATH_MAX];
  const lt_file_ops *files = lt_files(c);
  folder_of(s->path, folder);
  int fd = files->open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return fail_errno(c, s, "sync the folder of");
  bool ok = files->fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
  if (!ok) fail_errno(c, s, "sync the folder of");
  files->close(fd);
  return ok;
}

/* The order is write, fsync, close, rename, fsync of the folder; a failure anywhere removes the
   temporary and leaves the former file. */
bool lt_saving_commit(lt_ctx *c, lt_saving *s) {
  const lt_file_ops *files = lt_files(c);
  if (s->fd < 0) return false;
  if (lt_is_memory_fd(s->fd)) {
    s->fd = -1;
    bool ok = lt_ok(c) && lt_memory_file_put(c, s->op, s->path, s->buffer, s->buffer_size);
    lt_free(c, s->buffer, s->buffer_capacity);
    return ok;
  }
  if (lt_ok(c) && files->fsync(s->fd) != 0) fail_errno(c, s, "sync");
  /* Network file systems report a full disk at close. */
  if (files->close(s->fd) != 0 && lt_ok(c)) fail_errno(c, s, "write");
  s->fd = -1;
  if (lt_ok(c) && files->rename(s->temporary, s->path) != 0) fail_errno(c, s, "rename to");
  if (!lt_ok(c)) {
    files->unlink(s->temporary);
    return false;
  }
  return sync_folder(c, s);
}

bool lt_file_save(lt_ctx *c, const char *op, const char *path, const void *data, size_t n) {
  lt_saving s;
  if (!lt_saving_open(c, &s, op, path)) return false;
  lt_saving_write(c, &s, data, n);
  return lt_saving_commit(c, &s);
}

/* link(2) fails where the name is taken, unlike rename(2). NFS may report that of its own request,
   sent twice: then the temporary has two names. */
static bool claim_name(lt_ctx *c, const lt_saving *s, bool *made) {
  const lt_file_ops *files = lt_files(c);
  struct stat there;
  *made = files->link(s->temporary, s->path) == 0;
  if (!*made && errno != EEXIST) return fail_errno(c, s, "create");
  if (!*made && files->stat(s->temporary, &there) == 0) *made = there.st_nlink == 2;
  return true;
}

bool lt_file_create(lt_ctx *c, const char *op, const char *path, const void *data, size_t n,
                    bool *made) {
  lt_saving s;
  *made = false;
  if (!lt_saving_open(c, &s, op, path)) return false;
  if (lt_is_memory_fd(s.fd))
    return lt_fail(c, LT_EIO, "%s: no file in memory can be shared: %s", op, path);
  const lt_file_ops *files = lt_files(c);
  bool ok = lt_saving_write(c, &s, data, n);
  if (files->close(s.fd) != 0 && ok) ok = fail_errno(c, &s, "write");
  ok = ok && claim_name(c, &s, made);
  files->unlink(s.temporary);
  return ok;
}

/* A link is made beside its place and renamed over it: at no time is there no `path`. */
bool lt_file_link(lt_ctx *c, const char *op, const char *target, const char *path) {
  lt_saving s = {.op = op, .path = path, .fd = -1};
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path))
    return lt_fail(c, LT_EIO, "%s: no link can be in memory: %s", op, path);
  const lt_file_ops *files = lt_files(c);
  int made = -1;
  for (int i = 0; i < MAX_TRIES && made != 0; i++) {
    if (!name_temporary(c, &s, i)) return false;
    made = files->symlink(target, s.temporary);
    if (made != 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (made != 0) return fail_errno(c, &s, "link");
  if (files->rename(s.temporary, path) == 0) return sync_folder(c, &s);
  fail_errno(c, &s, "link");
  files->unlink(s.temporary);
  return false;
}

/* ---- folders ---- */

bool lt_folder_begin(lt_ctx *c, const char *op, const char *path, char *temporary, size_t size) {
  lt_saving s = {.op = op, .path = path, .fd = -1};
  char folder[LT_PATH_MAX];
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path))
    return lt_fail(c, LT_EIO, "%s: no folder can be in memory: %s", op, path);
  if (!folder_of(path, folder) || !name_temporary(c, &s, 0))
    return lt_fail(c, LT_EIO, "%s: path too long: %.60s...", op, path);
  const lt_file_ops *files = lt_files(c);
  files->list(folder, sweep_one, &(sweep){.files = files, .folder = folder, .host = host_id()});
  int made = -1;
  for (int i = 0; i < MAX_TRIES && made != 0; i++) {
    if (!name_temporary(c, &s, i)) return false;
    made = files->mkdir(s.temporary, 0777);
    if (made != 0 && errno != EEXIST) break;
  }
  if (made != 0) return fail_errno(c, &s, "write");
  if (strlen(s.temporary) >= size) return lt_fail(c, LT_EIO, "%s: path too long: %s", op, path);
  strcpy(temporary, s.temporary);
  return true;
}

/* Gives what is at the path of `s` a temporary name, which is kept there; false with errno. */
static bool move_aside(lt_ctx *c, lt_saving *s) {
  const lt_file_ops *files = lt_files(c);
  struct stat there;
  for (int i = 0; i < MAX_TRIES; i++) {
    if (!name_temporary(c, s, i)) return false;
    if (files->stat(s->temporary, &there) == 0) continue;
    return files->rename(s->path, s->temporary) == 0;
  }
  errno = EEXIST;
  return false;
}

bool lt_folder_commit(lt_ctx *c, const char *op, const char *temporary, const char *path) {
  lt_saving s = {.op = op, .path = path, .fd = -1};
  const lt_file_ops *files = lt_files(c);
  if (!lt_file_may_write(c, op, path)) return false;
  if (files->rename(temporary, path) == 0) return sync_folder(c, &s);
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EISDIR)
    return fail_errno(c, &s, "rename to");
  if (files->exchange != NULL && files->exchange(temporary, path) == 0) {
    bool ok = sync_folder(c, &s);
    remove_any(files, temporary);
    return ok;
  }
  /* A file system that cannot exchange: a kill between the two leaves the new one under its
     temporary name. */
  if (!move_aside(c, &s)) return lt_ok(c) ? fail_errno(c, &s, "replace") : false;
  if (files->rename(temporary, path) != 0) {
    fail_errno(c, &s, "rename to");
    files->rename(s.temporary, path);
    return false;
  }
  remove_any(files, s.temporary);
  return sync_folder(c, &s);
}

bool lt_folder_discard(lt_ctx *c, const char *op, const char *path) {
  lt_saving s = {.op = op, .path = path, .fd = -1};
  struct stat there;
  const lt_file_ops *files = lt_files(c);
  if (!lt_file_may_write(c, op, path)) return false;
  if (files->stat(path, &there) != 0 && errno == ENOENT) return true;
  size_t n = strlen(path), suffix = sizeof SUFFIX - 1;
  bool is_temporary = n > suffix && strcmp(path + n - suffix, SUFFIX) == 0;
  if (!is_temporary && !move_aside(c, &s)) return lt_ok(c) ? fail_errno(c, &s, "remove") : false;
  return remove_any(files, is_temporary ? path : s.temporary) || fail_errno(c, &s, "remove");
}
