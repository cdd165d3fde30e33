/* runtime/base/library.c: opening shared libraries (library.h). */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { UNTRIED, OPEN, MISSING };

/* Whether the library has all the functions: their addresses are in the table then. */
static bool fill(const lt_library *l, void *handle) {
  for (size_t k = 0; k < l->n; k++) {
    void *f = dlsym(handle, l->functions[k].name);
    if (f == NULL) return false;
    memcpy((char *)l->table + l->functions[k].offset, &f, sizeof f);
  }
  return true;
}

static int open_first(const lt_library *l) {
  const size_t most = sizeof l->names / sizeof *l->names;
  for (size_t k = 0; k < most && l->names[k] != NULL; k++) {
    void *handle = dlopen(l->names[k], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL || !fill(l, handle)) continue;
    if (l->prepare != NULL) l->prepare(handle);
    return OPEN;
  }
  return MISSING;
}

bool lt_library_open(lt_ctx *c, lt_library *l, const char *op) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int state = atomic_load(&l->state);
  if (state == UNTRIED) {
    pthread_mutex_lock(&lock);
    state = atomic_load(&l->state);
    if (state == UNTRIED) atomic_store(&l->state, state = open_first(l));
    pthread_mutex_unlock(&lock);
  }
  return state == OPEN || lt_fail(c, LT_EDEVICE, "%s: %s", op, l->missing);
}
