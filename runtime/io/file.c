/* runtime/io/file.c: reading, appending, folders. Saving is in atomic_save.c.

   All system calls on paths go through lt_file_ops of the root ctx, so that an overlay (overlay.c)
   or a test can stand in for the file system; memory files (memory_files.c) are distinguished by
   their prefix. */
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/memory_files.h"

static int system_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }

enum { SMALL_FILE = 64 << 20, FIRST_PIECE = 1 << 16, WAIT_MS = 200 };

/* Private and writable: in-place ops on a loaded tensor change its pages, not the file. The advice
   may fail (kernels before 5.14): pages then come by faults. */
static void *system_map(int fd, size_t n) {
  void *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  /* Small files at once: else each page would be a fault in the step that first reads it. */
  if (bytes != MAP_FAILED && n <= SMALL_FILE) madvise(bytes, n, MADV_POPULATE_READ);
  return bytes != MAP_FAILED ? bytes : NULL;
}

static int system_exchange(const char *a, const char *b) {
  return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static int system_list(const char *folder, bool (*each)(void *ud, const char *name), void *ud) {
  DIR *dir = opendir(folder);
  if (dir == NULL) return -1;
  struct dirent *entry;
  while ((entry = readdir(dir)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
        !each(ud, entry->d_name))
      break;
  closedir(dir);
  return 0;
}

const lt_file_ops lt_system_files = {
    .open = system_open,
    .read = read,
    .pread = pread,
    .write = write,
    .ftruncate = ftruncate,
    .fsync = fsync,
    .close = close,
    .fstat = fstat,
    .stat = stat,
    .rename = rename,
    .exchange = system_exchange,
    .link = link,
    .symlink = symlink,
    .unlink = unlink,
    .rmdir = rmdir,
    .mkdir = mkdir,
    .access = access,
    .map = system_map,
    .list = system_list,
};

const lt_file_ops *lt_files(const lt_ctx *c) {
  return c->root->files != NULL ? c->root->files : &lt_system_files;
}

static bool fail_errno(lt_ctx *c, const char *op, const char *verb, const char *path) {
  return lt_fail(c, LT_EIO, "%s: cannot %s %s: %s", op, verb, path, strerror(errno));
}

static bool may_read(lt_ctx *c, const char *op, const char *path) {
  if (!lt_ok(c)) return false;
  return c->policy.read_files || lt_is_memory_file(c, path) ||
         lt_fail(c, LT_EIO, "%s: this state may not read files (LTRAIN_READ_FILES): %s", op, path);
}

bool lt_file_may_write(lt_ctx *c, const char *op, const char *path) {
  if (!lt_ok(c)) return false;
  return c->policy.write_files || lt_is_memory_file(c, path) ||
         lt_fail(c, LT_EIO, "%s: this state may not write files (LTRAIN_WRITE_FILES): %s", op,
                 path);
}

/* "/dev/stdin" and what a shell gives for <(command): the path itself names a descriptor of the
   process, so that a pipe is meant. A pipe in the place of a file of a folder is not. */
static bool names_descriptor(const char *path) {
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  for (int k = 0; k < 2; k++) {
    size_t n = strlen(folders[k]);
    if (strncmp(path, folders[k], n) == 0)
      return path[n] != 0 && path[n + strspn(path + n, "0123456789")] == 0;
  }
  return strcmp(path, "/dev/stdin") == 0;
}

bool lt_file_may_wait(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) &&
         !names_descriptor(path);
}

static int open_to_read(lt_ctx *c, const char *op, const char *path, int flags) {
  int fd;
  do fd = lt_files(c)->open(path, O_RDONLY | O_CLOEXEC | flags, 0);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) fail_errno(c, op, "open", path);
  return fd;
}

static bool check_plain(lt_ctx *c, const char *op, const char *path, const struct stat *info) {
  return S_ISREG(info->st_mode) || lt_fail(c, LT_EIO, "%s: not a plain file: %s", op, path);
}

static int open_memory(lt_ctx *c, const char *op, const char *path, int64_t *size) {
  errno = ENOENT;
  int fd = lt_memory_file_open(c, path);
  size_t n = 0;
  if (fd < 0) fail_errno(c, op, "open", path);
  else lt_memory_file_bytes(c, fd, &n);
  *size = (int64_t)n;
  return fd;
}

/* Opening alone may do something to a device: what is there is checked before, and what was opened
   after. O_NONBLOCK: opening a pipe without a writer would wait for one. O_NOCTTY: a terminal must
   not become ours. fstat after the open closes the window in which the path may be exchanged. */
static int open_file(lt_ctx *c, const char *op, const char *path, bool pipes, int64_t *size) {
  struct stat info;
  if (!may_read(c, op, path)) return -1;
  if (lt_is_memory_file(c, path)) return open_memory(c, op, path, size);
  bool found = lt_files(c)->stat(path, &info) == 0;
  bool is_pipe = pipes && found && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) &&
                 names_descriptor(path);
  if (found && pipes && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    fail_errno(c, op, "read", path);
    return -1;
  }
  if (found && !is_pipe && !check_plain(c, op, path, &info)) return -1;
  int fd = open_to_read(c, op, path, is_pipe ? 0 : O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  if (is_pipe)
    *size = -1;
  else if (lt_files(c)->fstat(fd, &info) != 0)
    fail_errno(c, op, "read", path);
  else if (check_plain(c, op, path, &info))
    *size = (int64_t)info.st_size;
  if (lt_ok(c)) return fd;
  lt_file_close(c, fd);
  return -1;
}

int lt_file_open(lt_ctx *c, const char *op, const char *path, int64_t *size) {
  return open_file(c, op, path, false, size);
}

void lt_file_close(lt_ctx *c, int fd) {
  if (lt_is_memory_fd(fd))
    lt_memory_file_close(c, fd);
  else if (fd >= 0)
    lt_files(c)->close(fd);
}

static ssize_t read_some(lt_ctx *c, int fd, void *out, size_t n, int64_t offset) {
  if (!lt_is_memory_fd(fd)) return lt_files(c)->pread(fd, out, n, (off_t)offset);
  size_t size, at = (size_t)offset;
  const char *bytes = lt_memory_file_bytes(c, fd, &size);
  if (at >= size) return 0;
  if (n > size - at) n = size - at;
  memcpy(out, bytes + at, n);
  return (ssize_t)n;
}

/* pread in a loop: a single call returns at most 2^31 bytes on Linux, and less at a signal. */
bool lt_file_read_at(lt_ctx *c, const char *op, const char *path, int fd, void *out, size_t n,
                     int64_t offset) {
  size_t done = 0;
  while (done < n) {
    ssize_t got = read_some(c, fd, (char *)out + done, n - done, offset + (int64_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(c, op, "read", path);
    if (got == 0)
      return lt_fail(c, LT_EIO, "%s: %s ends at byte %lld, %zu more expected", op, path,
                     (long long)offset + (long long)done, n - done);
    done += (size_t)got;
  }
  return true;
}

/* Waits until a pipe has bytes or has ended; false where the user ends the wait. Calls of read
   restart after a signal, poll never does. */
static bool wait_for_bytes(lt_ctx *c, const char *op, const char *path, int fd) {
  const atomic_int *interrupts = c->root->interrupts;
  for (;;) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    if (poll(&one, 1, WAIT_MS) > 0) return true;
    if ((interrupts != NULL && atomic_load(interrupts) > 0) || atomic_load(c->cancel))
      return lt_fail(c, LT_EIO, "%s: interrupted while it read %s", op, path);
  }
}

static ssize_t read_next(lt_ctx *c, const char *op, const char *path, int fd, bool is_pipe,
                         char *out, size_t n, size_t at) {
  if (!is_pipe) return read_some(c, fd, out, n, (int64_t)at);
  return wait_for_bytes(c, op, path, fd) ? lt_files(c)->read(fd, out, n) : 0;
}

/* For what is parsed as a whole: at most `limit` bytes and a zero byte behind them. Sizes are hints
   only: a file may grow while it is read. */
char *lt_file_load(lt_ctx *c, const char *op, const char *path, size_t limit, size_t *size) {
  int64_t stated = 0;
  int fd = open_file(c, op, path, true, &stated);
  if (fd < 0) return NULL;
  bool is_pipe = stated < 0;
  /* One byte more than a file has: its end is met without another piece. Pipes grow, and so do
     files of /proc, whose size is 0. */
  size_t capacity = is_pipe || stated == 0 ? FIRST_PIECE : (size_t)stated + 1, n = 0;
  char *data = NULL;
  if (stated > 0 && (size_t)stated > limit)
    lt_fail(c, LT_EIO, "%s: %s is larger than %zu bytes: it has %lld", op, path, limit,
            (long long)stated);
  else
    data = lt_alloc(c, capacity);
  while (data != NULL) {
    if (n == capacity) {
      char *more = lt_realloc(c, data, capacity, 2 * capacity);
      if (more == NULL) break;
      data = more;
      capacity *= 2;
    }
    ssize_t got = read_next(c, op, path, fd, is_pipe, data + n, capacity - n, n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(c, op, "read", path);
    if (got > 0 && n + (size_t)got > limit)
      lt_fail(c, LT_EIO, "%s: %s is larger than %zu bytes", op, path, limit);
    if (got <= 0 || !lt_ok(c)) break;
    n += (size_t)got;
  }
  lt_file_close(c, fd);
  char *exact = lt_ok(c) ? lt_realloc(c, data, capacity, n + 1) : NULL;
  if (exact == NULL) {
    lt_free(c, data, capacity);
    return NULL;
  }
  exact[n] = 0;
  *size = n;
  return exact;
}

/* What waits for a reader, a pipe without one, is refused. */
static int open_to_append(lt_ctx *c, const char *path) {
  int fd;
  do
    fd = lt_files(c)->open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           0666);
  while (fd < 0 && errno == EINTR);
  int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
  if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  return fd;
}

/* O_APPEND makes each write go to the end, also of several processes. After a failed write the file
   is cut back to where it ended, so that no half line stays; a pipe cannot be. */
bool lt_file_append(lt_ctx *c, const char *op, const char *path, const void *data, size_t n) {
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) return lt_memory_file_append(c, op, path, data, n);
  const lt_file_ops *files = lt_files(c);
  int fd = open_to_append(c, path);
  if (fd < 0) return fail_errno(c, op, "open", path);
  struct stat before;
  bool plain = files->fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
  size_t done = 0;
  while (done < n) {
    ssize_t put = files->write(fd, (const char *)data + done, n - done);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) {
      fail_errno(c, op, "write", path);
      if (plain && done > 0) (void)!files->ftruncate(fd, before.st_size); /* reported already */
      break;
    }
    done += (size_t)put;
  }
  if (files->close(fd) != 0) fail_errno(c, op, "write", path);
  return lt_ok(c);
}

bool lt_file_remove(lt_ctx *c, const char *op, const char *path) {
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) return lt_memory_file_remove(c, path) || true;
  const lt_file_ops *files = lt_files(c);
  struct stat info;
  bool folder = files->stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  if ((folder ? files->rmdir(path) : files->unlink(path)) == 0 || errno == ENOENT) return true;
  return fail_errno(c, op, "remove", path);
}

/* The target of a symbolic link, for messages: where a checkpoint really is. */
bool lt_file_follow(lt_ctx *c, const char *path, char *out, size_t size) {
  struct stat info;
  if (!c->policy.read_files || lt_is_memory_file(c, path)) return false;
  if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) return false;
  char *resolved = realpath(path, NULL);
  bool fits = resolved != NULL && strlen(resolved) < size;
  if (fits) strcpy(out, resolved);
  free(resolved);
  return fits;
}

/* mkdir, content with a folder that is there. */
static bool make_one(lt_ctx *c, const char *op, const char *path) {
  if (lt_files(c)->mkdir(path, 0777) == 0) return true;
  int error = errno;
  struct stat info;
  if (error == EEXIST && lt_files(c)->stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return true;
  errno = error;
  return fail_errno(c, op, "make folder", path);
}

/* mkdir -p: each prefix in turn. One that another process makes at the same time is as good. */
bool lt_folder_make(lt_ctx *c, const char *op, const char *path) {
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) return true; /* it is there with its first file */
  char part[LT_PATH_MAX];
  size_t n = strlen(path);
  if (n == 0 || n >= sizeof part) return lt_fail(c, LT_EIO, "%s: not a path: '%.60s'", op, path);
  memcpy(part, path, n + 1);
  for (size_t i = 1; i < n; i++)
    if (part[i] == '/' && part[i - 1] != '/') {
      part[i] = 0;
      if (!make_one(c, op, part)) return false;
      part[i] = '/';
    }
  return make_one(c, op, path);
}

/* mkdir(2) is atomic: of several processes that ask for the same new folder one gets it (*made). */
bool lt_folder_claim(lt_ctx *c, const char *op, const char *path, bool *made) {
  *made = false;
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) return *made = !lt_memory_file_is_folder(c, path), true;
  *made = lt_files(c)->mkdir(path, 0777) == 0;
  return *made || errno == EEXIST || fail_errno(c, op, "make folder", path);
}

/* Cuts a path to the folder above it: "a/b" to "a", "a" to ".". */
static void cut_last(char *path) {
  char *slash = strrchr(path, '/');
  if (slash == NULL)
    strcpy(path, ".");
  else
    slash[slash == path] = 0;
}

/* Asked before a long fit, not at its first checkpoint: the nearest folder that exists decides. */
bool lt_folder_writable(lt_ctx *c, const char *op, const char *path) {
  if (!lt_file_may_write(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) return true;
  const lt_file_ops *files = lt_files(c);
  char part[LT_PATH_MAX];
  size_t n = strlen(path);
  if (n == 0 || n >= sizeof part) return lt_fail(c, LT_EIO, "%s: not a path: '%.60s'", op, path);
  memcpy(part, path, n + 1);
  struct stat info;
  while (files->stat(part, &info) != 0) {
    if (errno != ENOENT || strcmp(part, ".") == 0 || strcmp(part, "/") == 0)
      return fail_errno(c, op, "write in", part);
    cut_last(part);
  }
  if (S_ISDIR(info.st_mode) && files->access(part, W_OK | X_OK) == 0) return true;
  if (!S_ISDIR(info.st_mode)) errno = ENOTDIR;
  return fail_errno(c, op, "write in", part);
}

bool lt_folder_list(lt_ctx *c, const char *op, const char *path,
                    bool (*each)(void *ud, const char *name), void *ud) {
  if (!may_read(c, op, path)) return false;
  if (lt_is_memory_file(c, path)) return lt_memory_file_list(c, path, each, ud), true;
  return lt_files(c)->list(path, each, ud) == 0 || fail_errno(c, op, "list", path);
}

lt_file_kind lt_file_kind_of(lt_ctx *c, const char *path) {
  struct stat info;
  double when;
  if (lt_is_memory_file(c, path) && lt_memory_file_modified(c, path, &when)) return LT_PLAIN_FILE;
  if (lt_is_memory_file(c, path)) return lt_memory_file_is_folder(c, path) ? LT_FOLDER : LT_NO_FILE;
  if (!c->policy.read_files || lt_files(c)->stat(path, &info) != 0) return LT_NO_FILE;
  if (S_ISREG(info.st_mode)) return LT_PLAIN_FILE;
  return S_ISDIR(info.st_mode) ? LT_FOLDER : LT_OTHER_FILE;
}

bool lt_file_modified(lt_ctx *c, const char *path, double *out) {
  struct stat info;
  if (lt_is_memory_file(c, path)) return lt_memory_file_modified(c, path, out);
  if (!c->policy.read_files || lt_files(c)->stat(path, &info) != 0) return false;
  *out = (double)info.st_mtim.tv_sec + 1e-9 * (double)info.st_mtim.tv_nsec;
  return true;
}

/* By device and inode: names may differ by links. */
bool lt_file_same(lt_ctx *c, const char *a, const char *b) {
  struct stat x, y;
  double when;
  const lt_file_ops *files = lt_files(c);
  if (lt_is_memory_file(c, a)) return strcmp(a, b) == 0 && lt_memory_file_modified(c, a, &when);
  return c->policy.read_files && files->stat(a, &x) == 0 && files->stat(b, &y) == 0 &&
         x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
