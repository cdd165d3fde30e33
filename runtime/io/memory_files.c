/* runtime/io/memory_files.c: a list of named byte strings; helper threads write to it too.

   A file's bytes never change once they are stored: a write makes a new file of the same name, and
   whoever reads the old one keeps it (`readers`), as with rename(2) on disk. So bytes are read
   without the lock, which guards the list alone. Names are few: a linear search. */
#include "io/memory_files.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "io/file.h"

/* A file; without a name one that was replaced or removed while it is open. */
typedef struct memory_file {
  struct memory_file *next;
  int id, readers;
  bool named;
  double written;
  size_t size, capacity; /* of the bytes, of the struct */
  char *bytes, path[];
} memory_file;

typedef struct memory_files {
  pthread_mutex_t lock;
  memory_file *first;
  int last_id;
} memory_files;

static memory_files *files_of(const lt_ctx *c) { return c->root->slot[LT_SLOT_HELD_FILES]; }

static void end(lt_ctx *c, void *slot) {
  memory_files *h = slot;
  for (memory_file *f = h->first, *next; f != NULL; f = next) {
    next = f->next;
    lt_free(c, f, f->capacity);
  }
  pthread_mutex_destroy(&h->lock);
  lt_free(c, h, sizeof *h);
}

bool lt_memory_file_begin(lt_ctx *c) {
  memory_files *h = lt_alloc(c, sizeof *h);
  if (h == NULL) return false;
  memset(h, 0, sizeof *h);
  pthread_mutex_init(&h->lock, NULL);
  c->root->slot[LT_SLOT_HELD_FILES] = h;
  c->root->slot_drop[LT_SLOT_HELD_FILES] = end;
  return true;
}

bool lt_is_memory_file(const lt_ctx *c, const char *path) {
  return files_of(c) != NULL && strncmp(path, LT_HELD_PREFIX, sizeof LT_HELD_PREFIX - 1) == 0;
}

/* The link to the named file, or to the end; under the lock. */
static memory_file **find(memory_files *h, const char *path) {
  memory_file **at = &h->first;
  while (*at != NULL && !((*at)->named && strcmp((*at)->path, path) == 0)) at = &(*at)->next;
  return at;
}

static memory_file **find_open(memory_files *h, int fd) {
  memory_file **at = &h->first;
  while (*at != NULL && (*at)->id != fd - LT_HELD_FD) at = &(*at)->next;
  return at;
}

/* Its name goes; the file goes with the last who reads it. */
static void let_go(lt_ctx *c, memory_file **at) {
  memory_file *f = *at;
  f->named = false;
  if (f->readers > 0) return;
  *at = f->next;
  lt_free(c, f, f->capacity);
}

int lt_memory_file_open(lt_ctx *c, const char *path) {
  memory_files *h = files_of(c);
  pthread_mutex_lock(&h->lock);
  memory_file *f = *find(h, path);
  if (f != NULL) f->readers++;
  int fd = f != NULL ? LT_HELD_FD + f->id : -1;
  pthread_mutex_unlock(&h->lock);
  return fd;
}

void lt_memory_file_close(lt_ctx *c, int fd) {
  memory_files *h = files_of(c);
  pthread_mutex_lock(&h->lock);
  memory_file **at = find_open(h, fd);
  if (*at != NULL && --(*at)->readers == 0 && !(*at)->named) let_go(c, at);
  pthread_mutex_unlock(&h->lock);
}

const char *lt_memory_file_bytes(lt_ctx *c, int fd, size_t *size) {
  memory_files *h = files_of(c);
  pthread_mutex_lock(&h->lock);
  const memory_file *f = *find_open(h, fd);
  pthread_mutex_unlock(&h->lock);
  *size = f != NULL ? f->size : 0;
  return f != NULL ? f->bytes : NULL;
}

/* A file of `before` (optional) and `data`, one after the other. One allocation for header, name
   and bytes; the file is complete before it gets its place in the list. */
static bool put(lt_ctx *c, const char *op, const char *path, const memory_file *before,
                const void *data, size_t size) {
  memory_files *h = files_of(c);
  size_t n = strlen(path) + 1, kept = before != NULL ? before->size : 0;
  if (path[sizeof LT_HELD_PREFIX - 1] == 0 || path[n - 2] == '/')
    return lt_fail(c, LT_EIO, "%s: not the name of a file: '%s'", op, path);
  size_t capacity = sizeof(memory_file) + n + kept + 1;
  if (__builtin_add_overflow(capacity, size, &capacity) || capacity > PTRDIFF_MAX)
    return lt_fail(c, LT_EMEMORY, "%s: %s: no file has %zu bytes", op, path, size);
  memory_file *f = lt_alloc(c, capacity);
  if (f == NULL) return false;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *f = (memory_file){.named = true,
                   .size = kept + size,
                   .capacity = capacity,
                   .bytes = f->path + n,
                   .written = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec};
  memcpy(f->path, path, n);
  if (kept > 0) memcpy(f->bytes, before->bytes, kept);
  if (size > 0) memcpy(f->bytes + kept, data, size);
  f->bytes[f->size] = 0;
  pthread_mutex_lock(&h->lock);
  memory_file **at = find(h, path);
  if (*at != NULL) let_go(c, at);
  f->id = ++h->last_id;
  f->next = h->first;
  h->first = f;
  pthread_mutex_unlock(&h->lock);
  return true;
}

bool lt_memory_file_put(lt_ctx *c, const char *op, const char *path, const void *data,
                        size_t size) {
  return put(c, op, path, NULL, data, size);
}

/* A copy of the whole: appending n times costs O(n^2), which logs of a hosted run, some kilobytes,
   can bear. */
bool lt_memory_file_append(lt_ctx *c, const char *op, const char *path, const void *data,
                           size_t size) {
  memory_files *h = files_of(c);
  int fd = lt_memory_file_open(c, path); /* it stays while its bytes are copied */
  pthread_mutex_lock(&h->lock);
  const memory_file *before = fd >= 0 ? *find_open(h, fd) : NULL;
  pthread_mutex_unlock(&h->lock);
  bool ok = put(c, op, path, before, data, size);
  if (fd >= 0) lt_memory_file_close(c, fd);
  return ok;
}

bool lt_memory_file_remove(lt_ctx *c, const char *path) {
  memory_files *h = files_of(c);
  pthread_mutex_lock(&h->lock);
  memory_file **at = find(h, path);
  bool there = *at != NULL;
  if (there) let_go(c, at);
  pthread_mutex_unlock(&h->lock);
  return there;
}

bool lt_memory_file_modified(lt_ctx *c, const char *path, double *when) {
  memory_files *h = files_of(c);
  pthread_mutex_lock(&h->lock);
  const memory_file *f = *find(h, path);
  if (f != NULL) *when = f->written;
  pthread_mutex_unlock(&h->lock);
  return f != NULL;
}

/* What follows the folder in the path of a file that is in it; NULL for others. */
static const char *below(const memory_file *f, const char *folder) {
  size_t n = strlen(folder);
  while (n > 0 && folder[n - 1] == '/') n--;
  if (!f->named || strncmp(f->path, folder, n) != 0) return NULL;
  if (n == sizeof LT_HELD_PREFIX - 1) return f->path + n; /* all of them */
  return f->path[n] == '/' ? f->path + n + 1 : NULL;
}

bool lt_memory_file_is_folder(lt_ctx *c, const char *path) {
  memory_files *h = files_of(c);
  bool found = false;
  pthread_mutex_lock(&h->lock);
  for (const memory_file *f = h->first; f != NULL && !found; f = f->next)
    found = below(f, path) != NULL;
  pthread_mutex_unlock(&h->lock);
  return found;
}

/* Whether a file before `f` in the list gave the same name. */
static bool is_listed(const memory_files *h, const memory_file *f, const char *folder, size_t n) {
  const char *name = below(f, folder);
  for (const memory_file *g = h->first; g != f; g = g->next) {
    const char *other = below(g, folder);
    if (other != NULL && strcspn(other, "/") == n && memcmp(other, name, n) == 0) return true;
  }
  return false;
}

void lt_memory_file_list(lt_ctx *c, const char *folder, bool (*each)(void *ud, const char *name),
                  void *ud) {
  memory_files *h = files_of(c);
  bool more = true;
  pthread_mutex_lock(&h->lock);
  for (const memory_file *f = h->first; f != NULL && more; f = f->next) {
    const char *name = below(f, folder);
    size_t n = name != NULL ? strcspn(name, "/") : 0;
    char part[LT_PATH_MAX];
    if (n == 0 || n >= sizeof part || is_listed(h, f, folder, n)) continue;
    memcpy(part, name, n);
    part[n] = 0;
    more = each(ud, part);
  }
  pthread_mutex_unlock(&h->lock);
}
