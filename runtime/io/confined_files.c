/* runtime/io/confined_files.c: opens a path one folder at a time, so that no link leads out.

   openat with O_NOFOLLOW at each step: checking a path as text and opening it afterwards would
   leave time to exchange a folder for a link in between (Linux's openat2 with RESOLVE_BENEATH is
   not everywhere). Names "." and ".." are refused. */
#include "io/confined_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_NAME = 255 };

/* The name at *path, which is moved behind it; false where that is none. */
static bool next_name(const char **path, char *name) {
  size_t n = strcspn(*path, "/");
  if (n == 0 || n > LONGEST_NAME) return false;
  memcpy(name, *path, n);
  name[n] = 0;
  *path += n + ((*path)[n] == '/');
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The folder that the last name of the path is in, open, and that name, "" for the folder itself;
   -1 and errno. */
static int walk(const char *folder, const char *path, char *name) {
  int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  name[0] = 0;
  while (at >= 0 && *path != 0) {
    if (name[0] != 0) {
      int below = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      int wrong = errno;
      close(at);
      errno = wrong;
      at = below;
    }
    if (at >= 0 && !next_name(&path, name)) {
      close(at);
      errno = EINVAL;
      at = -1;
    }
  }
  return at;
}

bool lt_below_stat(lt_ctx *c, const char *folder, const char *path, struct stat *info) {
  char name[LONGEST_NAME + 1];
  if (!c->policy.read_files) return false;
  int at = walk(folder, path, name);
  if (at < 0) return false;
  bool there = name[0] == 0 ? fstat(at, info) == 0
                            : fstatat(at, name, info, AT_SYMLINK_NOFOLLOW) == 0;
  close(at);
  return there && !S_ISLNK(info->st_mode);
}

int lt_below_open(lt_ctx *c, const char *op, const char *folder, const char *path,
                  struct stat *info) {
  char name[LONGEST_NAME + 1];
  if (!c->policy.read_files) {
    lt_fail(c, LT_EIO, "%s: this state may not read files (LTRAIN_READ_FILES): %s", op, path);
    return -1;
  }
  int at = walk(folder, path, name), fd = at;
  if (at >= 0 && name[0] != 0) {
    /* Opening alone may do something to a device: it is checked before. */
    bool plain = fstatat(at, name, info, AT_SYMLINK_NOFOLLOW) == 0 &&
                 (S_ISREG(info->st_mode) || S_ISDIR(info->st_mode) || (errno = EINVAL) == 0);
    fd = plain ? openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    int wrong = errno;
    close(at);
    errno = wrong;
  }
  if (fd >= 0 && fstat(fd, info) == 0 && (S_ISREG(info->st_mode) || S_ISDIR(info->st_mode)))
    return fd;
  lt_fail(c, LT_EIO, "%s: cannot open %s/%s: %s", op, folder, path,
          fd >= 0 || errno == EINVAL ? "not a plain file below the folder"
          : errno == ELOOP || errno == ENOTDIR ? "a link"
                                               : strerror(errno));
  if (fd >= 0) close(fd);
  return -1;
}
