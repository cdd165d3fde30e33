/* runtime/io/overlay.c: an overlay over the file system: what a process writes goes to a folder of
   its own.

   Below the folder are two trees: in `new` lies what was written, under its absolute path, in
   `gone` an empty file for each real one that was removed.

   For commands that try what a script does without leaving traces (a check, a sandboxed run): reads
   see the overlay first, then the real file; writes go to the overlay alone, a file that is changed
   in part is copied there first. As Linux's overlayfs, in user space and without privileges: `gone`
   are its whiteouts. One overlay a process; not for threads that change folders. */
#include "io/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"

static char root[LT_PATH_MAX]; /* "": no shadow is open */
static bool makes_folders;

static bool too_long(void) {
  errno = ENAMETOOLONG;
  return false;
}

/* The absolute path, without "." and "..", below root/tree. "..", as text: a path through a
   symbolic link to a folder is resolved as the script wrote it. */
static bool place(const char *path, const char *tree, char *out) {
  char absolute[2 * LT_PATH_MAX], here[LT_PATH_MAX] = "";
  if (path[0] != '/' && getcwd(here, sizeof here) == NULL) return false;
  if (snprintf(absolute, sizeof absolute, "%s/%s", here, path) >= (int)sizeof absolute)
    return too_long();
  int n = snprintf(out, LT_PATH_MAX, "%s/%s", root, tree), base = n;
  for (char *rest = absolute, *part; (part = strsep(&rest, "/")) != NULL;) {
    if (part[0] == 0 || strcmp(part, ".") == 0) continue;
    if (strcmp(part, "..") == 0) {
      while (n > base && out[--n] != '/') continue;
      out[n] = 0;
      continue;
    }
    int wrote = snprintf(out + n, (size_t)(LT_PATH_MAX - n), "/%s", part);
    if (wrote >= LT_PATH_MAX - n) return too_long();
    n += wrote;
  }
  return true;
}

static bool is_there(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

/* Whether a real file was removed. */
static bool is_gone(const char *path) {
  char mark[LT_PATH_MAX];
  struct stat info;
  return place(path, "gone", mark) && stat(mark, &info) == 0 && S_ISREG(info.st_mode);
}

/* Where a path is to be read: in the overlay if it is there, or was removed (the open then fails);
   else as it is. */
bool lt_overlay_read_path(const char *path, char *out) {
  if (root[0] != 0) {
    if (!place(path, "new", out)) return false;
    if (is_there(out) || is_gone(path)) return true;
  }
  return snprintf(out, LT_PATH_MAX, "%s", path) < LT_PATH_MAX || too_long();
}

/* The folders above a path of the shadow. */
static bool make_above(char *path) {
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = 0;
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    *at = '/';
    if (!made) return false;
  }
  return true;
}

static bool copy_file(const char *from, const char *to) {
  char bytes[1 << 14];
  struct stat info;
  int in = open(from, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (in < 0) return errno == ENOENT;
  if (fstat(in, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(in);
    errno = EINVAL;
    return false;
  }
  int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ssize_t n = out < 0 ? -1 : 1;
  while (n > 0 && (n = read(in, bytes, sizeof bytes)) > 0)
    if (write(out, bytes, (size_t)n) != n) n = -1;
  close(in);
  if (out >= 0) close(out);
  return n == 0;
}

/* Whether the folder that a path is in is there: else writing fails, as it would. */
static bool has_folder(const char *path) {
  char folder[LT_PATH_MAX], real[LT_PATH_MAX];
  struct stat info;
  if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) return too_long();
  size_t n = strlen(folder);
  while (n > 1 && folder[n - 1] == '/') folder[--n] = 0;
  char *slash = strrchr(folder, '/');
  if (slash == NULL)
    strcpy(folder, ".");
  else
    slash[slash == folder ? 1 : 0] = 0;
  if (!lt_overlay_read_path(folder, real) || stat(real, &info) != 0) return false;
  errno = ENOTDIR;
  return S_ISDIR(info.st_mode);
}

/* What a path of the shadow may hold; the mark that the real one was removed goes. */
static bool begin_writing(const char *path, char *out) {
  if (!makes_folders && !has_folder(path)) return false;
  if (!place(path, "new", out) || !make_above(out)) return false;
  char mark[LT_PATH_MAX];
  if (place(path, "gone", mark)) unlink(mark);
  return true;
}

/* Where a path is to be written. `keep`: its contents stay, so a real file is copied first. Devices
   such as /dev/null are written directly. */
bool lt_overlay_write_path(const char *path, bool keep, char *out) {
  if (root[0] == 0) return snprintf(out, LT_PATH_MAX, "%s", path) < LT_PATH_MAX || too_long();
  struct stat info;
  if (stat(path, &info) == 0 && S_ISCHR(info.st_mode)) /* /dev/null, a terminal */
    return snprintf(out, LT_PATH_MAX, "%s", path) < LT_PATH_MAX;
  bool gone = is_gone(path);
  if (!begin_writing(path, out)) return false;
  return !keep || gone || is_there(out) || copy_file(path, out);
}

/* Leaves a mark for a real file. */
static int hide(const char *path) {
  char mark[LT_PATH_MAX];
  if (!place(path, "gone", mark) || !make_above(mark)) return -1;
  int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  close(fd);
  return 0;
}

/* Removing: what is in `new` goes, and a real file gets its mark. */
static int drop(const char *path, int (*real)(const char *path)) {
  char out[LT_PATH_MAX];
  bool gone = is_gone(path);
  if (!place(path, "new", out)) return -1;
  bool is_new = is_there(out);
  if (is_new && real(out) != 0) return -1;
  if (!gone && is_there(path)) return hide(path);
  errno = ENOENT;
  return is_new ? 0 : -1;
}

int lt_overlay_unlink(const char *path) { return root[0] != 0 ? drop(path, unlink) : unlink(path); }

/* Within the overlay a rename, which is atomic; from the real tree a copy, and a mark for the
   source. */
int lt_overlay_rename(const char *from, const char *to) {
  if (root[0] == 0) return rename(from, to);
  char old[LT_PATH_MAX], new[LT_PATH_MAX];
  if (!lt_overlay_read_path(from, old) || !is_there(old)) {
    errno = ENOENT;
    return -1;
  }
  if (!lt_overlay_write_path(to, false, new)) return -1;
  if (strncmp(old, root, strlen(root)) == 0) {
    if (rename(old, new) != 0) return -1;
    return is_there(from) ? hide(from) : 0;
  }
  return copy_file(old, new) ? hide(from) : -1;
}

/* The calls. */

static int shadow_open(const char *path, int flags, mode_t mode) {
  char real[LT_PATH_MAX];
  bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (writes && (flags & O_EXCL) != 0 && lt_overlay_read_path(path, real) && is_there(real)) {
    errno = EEXIST;
    return -1;
  }
  bool found = writes ? lt_overlay_write_path(path, (flags & O_TRUNC) == 0, real)
                      : lt_overlay_read_path(path, real);
  return found ? open(real, flags, mode) : -1;
}

static int shadow_stat(const char *path, struct stat *out) {
  char real[LT_PATH_MAX];
  return lt_overlay_read_path(path, real) ? stat(real, out) : -1;
}

static int shadow_link(const char *from, const char *to) {
  char old[LT_PATH_MAX], new[LT_PATH_MAX];
  return lt_overlay_read_path(from, old) && begin_writing(to, new) ? link(old, new) : -1;
}

static int shadow_symlink(const char *target, const char *path) {
  char real[LT_PATH_MAX];
  return begin_writing(path, real) ? symlink(target, real) : -1;
}

static int shadow_rmdir(const char *path) { return drop(path, rmdir); }

static int shadow_mkdir(const char *path, mode_t mode) {
  char real[LT_PATH_MAX];
  struct stat info;
  if (shadow_stat(path, &info) == 0) {
    errno = EEXIST;
    return -1;
  }
  return begin_writing(path, real) ? mkdir(real, mode) : -1;
}

static int shadow_access(const char *path, int mode) {
  char real[LT_PATH_MAX];
  if (!lt_overlay_read_path(path, real)) return -1;
  return access(real, mode & ~W_OK); /* every file may be written: in the shadow */
}

typedef struct listing {
  const char *folder, *other; /* the real one; the one whose entries were given before, or NULL */
  bool (*each)(void *ud, const char *name);
  void *ud;
  bool stopped;
} listing;

static bool give(void *ud, const char *name) {
  listing *l = ud;
  char path[2 * LT_PATH_MAX];
  if (l->other != NULL) {
    snprintf(path, sizeof path, "%s/%s", l->other, name);
    if (is_there(path)) return true;
    snprintf(path, sizeof path, "%s/%s", l->folder, name);
    if (strlen(path) < LT_PATH_MAX && is_gone(path)) return true;
  }
  l->stopped = !l->each(l->ud, name);
  return !l->stopped;
}

/* The overlay's entries, then those real ones that are neither replaced nor marked. */
static int shadow_list(const char *folder, bool (*each)(void *ud, const char *name), void *ud) {
  char new[LT_PATH_MAX];
  listing l = {.folder = folder, .each = each, .ud = ud};
  bool found = place(folder, "new", new) && lt_system_files.list(new, give, &l) == 0;
  if (l.stopped) return 0;
  l.other = new;
  bool real = !is_gone(folder) && lt_system_files.list(folder, give, &l) == 0;
  return found || real ? 0 : -1;
}

static lt_file_ops shadow_files;

bool lt_overlay_open(lt_ctx *c, const char *folder) {
  if (root[0] != 0) return lt_fail(c, LT_EARG, "shadow: one is open");
  char path[PATH_MAX];
  if (realpath(folder, path) == NULL || strlen(path) + 32 >= sizeof root)
    return lt_fail(c, LT_EIO, "shadow: cannot open %s: %s", folder, strerror(errno));
  shadow_files = lt_system_files;
  shadow_files.open = shadow_open;
  shadow_files.stat = shadow_stat;
  shadow_files.rename = lt_overlay_rename;
  shadow_files.link = shadow_link;
  shadow_files.symlink = shadow_symlink;
  shadow_files.unlink = lt_overlay_unlink;
  shadow_files.rmdir = shadow_rmdir;
  shadow_files.mkdir = shadow_mkdir;
  shadow_files.access = shadow_access;
  shadow_files.list = shadow_list;
  snprintf(root, sizeof root, "%s", path);
  makes_folders = false;
  c->root->files = &shadow_files;
  return true;
}

void lt_overlay_close(lt_ctx *c) {
  if (root[0] == 0) return;
  root[0] = 0;
  c->root->files = NULL;
}

void lt_overlay_make_folders(void) { makes_folders = true; }
