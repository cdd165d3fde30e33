/* runtime/xla/cache.c: executables of programs in a folder, a file each.

   A file holds what its executable is of as well, all of which is compared: so a hash serves for
   its name, and one sum of everything finds damage. Files are written under another name and
   renamed, so that other processes see whole ones only. A file is the code that this process will
   run: those that others own or may write to are ignored. Nothing here fails a run. */
#include "xla/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/write_all.h"

enum { FILES = 1 << 16, HOUR = 3600 };
static const char MAGIC[8] = "ltxla 1";
static const char ENDING[] = ".xla";

typedef struct head {
  char magic[sizeof MAGIC];
  uint64_t sum; /* of all that follows */
  uint64_t identity, text, executable; /* sizes */
} head;

static char folder[PATH_MAX];
static bool asked;
static char problem[PATH_MAX + 64];
static int64_t in_folder = -1; /* bytes, as far as this process knows; -1: not counted yet */

const char *lt_cache_folder(void) {
  const char *own = getenv("LTRAIN_XLA_CACHE"), *cache = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  if (asked) return folder;
  asked = true;
  if (own != NULL)
    snprintf(folder, sizeof folder, "%s", own);
  else if (cache != NULL && cache[0] != 0)
    snprintf(folder, sizeof folder, "%s/ltrain/xla", cache);
  else if (home != NULL && home[0] != 0)
    snprintf(folder, sizeof folder, "%s/.cache/ltrain/xla", home);
  return folder;
}

const char *lt_cache_problem(void) { return problem; }

/* At most this many bytes are kept: LTRAIN_XLA_CACHE_MB, by default 1024. */
static int64_t limit(void) {
  const char *text = getenv("LTRAIN_XLA_CACHE_MB");
  long long n = text != NULL ? atoll(text) : 0;
  return (n > 0 ? n : 1024) * 1000000;
}

static uint64_t hash(uint64_t h, const void *data, size_t size) {
  const char *at = data;
  for (; size > 0; at += 8, size -= size < 8 ? size : 8) {
    uint64_t word = 0;
    memcpy(&word, at, size < 8 ? size : 8);
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h;
}

static bool path_of(const lt_cache_key *key, char path[PATH_MAX]) {
  uint64_t h = hash(hash(1, key->identity, key->identity_size), key->text, key->text_size);
  if (lt_cache_folder()[0] == 0) return false;
  int n = snprintf(path, PATH_MAX, "%s/%016llx%s", folder, (unsigned long long)h, ENDING);
  return n > 0 && n < PATH_MAX;
}

static uint64_t sum_of(const head *h, const char *rest, size_t size) {
  return hash(hash(2, &h->identity, 3 * sizeof(uint64_t)), rest, size);
}

/* Whether only this user could have written a file. */
static bool is_ours(const struct stat *s) {
  return S_ISREG(s->st_mode) && s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool read_all(int file, char *to, size_t size) {
  while (size > 0) {
    ssize_t n = read(file, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= (size_t)n;
  }
  return true;
}

/* The whole file, or NULL. The time of its last use is that of its change. */
static char *load(const char *path, size_t *size) {
  struct stat s;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return NULL;
  char *all = NULL;
  if (fstat(file, &s) == 0 && is_ours(&s) && s.st_size >= (off_t)sizeof(head)) {
    *size = (size_t)s.st_size;
    all = malloc(*size);
    if (all != NULL && !read_all(file, all, *size)) {
      free(all);
      all = NULL;
    }
    if (all != NULL) futimens(file, NULL);
  }
  close(file);
  return all;
}

static bool is_of(const char *all, size_t size, const lt_cache_key *key) {
  head h;
  memcpy(&h, all, sizeof h);
  const char *rest = all + sizeof h;
  size_t n = size - sizeof h;
  return memcmp(h.magic, MAGIC, sizeof MAGIC) == 0 && h.identity == key->identity_size &&
         h.text == key->text_size && h.executable <= n &&
         h.identity + h.text + h.executable == n && sum_of(&h, rest, n) == h.sum &&
         memcmp(rest, key->identity, key->identity_size) == 0 &&
         memcmp(rest + h.identity, key->text, key->text_size) == 0;
}

bool lt_cache_read(const lt_cache_key *key, lt_cached *out) {
  char path[PATH_MAX];
  size_t size = 0;
  char *all = path_of(key, path) ? load(path, &size) : NULL;
  if (all == NULL) return false;
  if (!is_of(all, size, key)) {
    free(all);
    return false;
  }
  size_t before = sizeof(head) + key->identity_size + key->text_size;
  *out = (lt_cached){all, all + before, size - before};
  return true;
}

void lt_cache_remove(const lt_cache_key *key) {
  char path[PATH_MAX];
  if (path_of(key, path)) unlink(path);
}

static void make_folder(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", folder);
  for (char *at = path + 1; *at != 0; at++) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(path, 0700); /* that one fails is found when the file is made */
    *at = '/';
  }
  mkdir(path, 0700);
}

typedef struct entry {
  char name[32];
  time_t used;
  int64_t bytes;
} entry;

static int by_use(const void *a, const void *b) {
  time_t x = ((const entry *)a)->used, y = ((const entry *)b)->used;
  return (x > y) - (x < y);
}

/* The entries of the folder, whose bytes are counted; what interrupted writes left is removed. */
static size_t list(DIR *dir, entry *out) {
  size_t n = 0;
  in_folder = 0;
  for (struct dirent *d; n < FILES && (d = readdir(dir)) != NULL;) {
    struct stat s;
    const char *dot = strchr(d->d_name, '.');
    if (dot == NULL || strncmp(dot, ENDING, 4) != 0 || strlen(d->d_name) >= sizeof out->name ||
        fstatat(dirfd(dir), d->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (dot[4] != 0) { /* not renamed yet */
      if (time(NULL) - s.st_mtime > HOUR) unlinkat(dirfd(dir), d->d_name, 0);
      continue;
    }
    out[n] = (entry){.used = s.st_mtime, .bytes = s.st_size};
    strcpy(out[n++].name, d->d_name);
    in_folder += s.st_size;
  }
  return n;
}

/* Beyond the limit those that were not used for longest go, down to three quarters of it: the
   folder is not listed for each file. */
static void trim(void) {
  if (in_folder >= 0 && in_folder <= limit()) return;
  DIR *dir = opendir(folder);
  entry *all = dir != NULL ? malloc(FILES * sizeof *all) : NULL;
  size_t n = all != NULL ? list(dir, all) : 0;
  if (in_folder > limit()) {
    qsort(all, n, sizeof *all, by_use);
    for (size_t k = 0; k < n && in_folder > limit() / 4 * 3; k++)
      if (unlinkat(dirfd(dir), all[k].name, 0) == 0) in_folder -= all[k].bytes;
  }
  free(all);
  if (dir != NULL) closedir(dir);
}

static bool write_file(const char *path, const lt_cache_key *key, const void *executable,
                       size_t size) {
  head h = {.identity = key->identity_size, .text = key->text_size, .executable = size};
  size_t rest = key->identity_size + key->text_size + size;
  char *all = malloc(sizeof h + rest), *at = all + sizeof h;
  if (all == NULL) return false;
  memcpy(at, key->identity, key->identity_size);
  memcpy(at + key->identity_size, key->text, key->text_size);
  memcpy(at + key->identity_size + key->text_size, executable, size);
  memcpy(h.magic, MAGIC, sizeof MAGIC);
  h.sum = sum_of(&h, at, rest);
  memcpy(all, &h, sizeof h);
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool ok = file >= 0 && lt_write_all(file, all, sizeof h + rest);
  int why = errno;
  if (file >= 0 && close(file) != 0 && ok) {
    ok = false;
    why = errno;
  }
  free(all);
  errno = why;
  return ok;
}

void lt_cache_write(const lt_cache_key *key, const void *executable, size_t size) {
  char path[PATH_MAX], partial[PATH_MAX];
  int64_t bytes = (int64_t)(sizeof(head) + key->identity_size + key->text_size + size);
  if (problem[0] != 0 || !path_of(key, path) || bytes > limit()) return;
  make_folder();
  int n = snprintf(partial, sizeof partial, "%s.%d", path, (int)getpid());
  if (n < 0 || n >= (int)sizeof partial) return;
  unlink(partial); /* of a process of this number that was killed */
  if (write_file(partial, key, executable, size) && rename(partial, path) == 0) {
    if (in_folder >= 0) in_folder += bytes;
    trim();
    return;
  }
  snprintf(problem, sizeof problem, "%s: %s", folder, strerror(errno));
  unlink(partial);
}
