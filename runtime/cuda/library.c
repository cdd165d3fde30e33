/* runtime/cuda/library.c: finds and opens NVIDIA's libraries (library.h).

   dlopen at run time, in the order: the folder of LTRAIN_CUDA_LIBS, the loader's own search,
   CUDA_HOME, /usr/local/cuda, packages of Python. RTLD_LOCAL: other libraries of the process may
   have another version. */
#include "cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH = 1024 };

/* The first of the names that opens: newer versions first. */
static void *open_in(const lt_cuda_library *l, const char *folder) {
  char path[PATH];
  for (int k = 0; l->names[k] != NULL; k++) {
    snprintf(path, sizeof path, "%s%s%s", folder, *folder != '\0' ? "/" : "", l->names[k]);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) return handle;
  }
  return NULL;
}

/* The folder that a variable names, and a folder in it. */
static void *open_below(const lt_cuda_library *l, const char *variable, const char *folder) {
  char path[PATH];
  const char *home = getenv(variable);
  if (home == NULL || *home == '\0') return NULL;
  snprintf(path, sizeof path, "%s%s", home, folder);
  return open_in(l, path);
}

#ifndef LT_CUDA_LIBS /* a folder where specs find all libraries */
static void *open_matching(const lt_cuda_library *l, const char *pattern) {
  glob_t found;
  void *handle = NULL;
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  for (size_t k = 0; k < found.gl_pathc && handle == NULL; k++)
    handle = open_in(l, found.gl_pathv[k]);
  globfree(&found);
  return handle;
}

/* The packages of PyPI, in the environment that is active, else in the system's Python. */
static void *open_of_python(const lt_cuda_library *l) {
  static const char *const system[] = {"/usr/local/lib/python3*/dist-packages/nvidia/*/lib",
                                       "/usr/local/lib/python3*/site-packages/nvidia/*/lib",
                                       "/usr/lib/python3*/site-packages/nvidia/*/lib"};
  static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
  char pattern[PATH];
  void *handle = NULL;
  for (int k = 0; k < 2 && handle == NULL; k++) {
    const char *home = getenv(variables[k]);
    if (home == NULL) continue;
    snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/nvidia/*/lib", home);
    handle = open_matching(l, pattern);
  }
  for (int k = 0; k < 3 && handle == NULL; k++) handle = open_matching(l, system[k]);
  return handle;
}

/* The variable first, since it is the user's word; a path with no folder leaves the search to the
   loader (LD_LIBRARY_PATH, ld.so.conf). */
static void *open_anywhere(const lt_cuda_library *l) {
  void *handle = open_below(l, "LTRAIN_CUDA_LIBS", "");
  if (handle == NULL) handle = open_in(l, "");
  if (handle == NULL) handle = open_below(l, "CUDA_HOME", "/lib64");
  if (handle == NULL) handle = open_in(l, "/usr/local/cuda/lib64");
  return handle != NULL ? handle : open_of_python(l);
}
#else
static void *open_anywhere(const lt_cuda_library *l) {
  bool named = getenv("LTRAIN_CUDA_LIBS") != NULL;
  return named ? open_below(l, "LTRAIN_CUDA_LIBS", "") : open_in(l, LT_CUDA_LIBS);
}
#endif

/* Tried once in a process: a library that was installed since is found by the next one. */
bool lt_cuda_library_open(lt_cuda_library *l) {
  if (!l->tried) l->handle = open_anywhere(l);
  l->tried = true;
  if (l->handle == NULL)
    snprintf(l->why, sizeof l->why,
             "%s not found (%s): install the CUDA Toolkit or the Python package %s, or let "
             "LTRAIN_CUDA_LIBS name its folder",
             l->called, l->names[0], l->package);
  return l->handle != NULL;
}

/* The first function that is missing becomes the reason: the version is too old. */
void *lt_cuda_library_find(lt_cuda_library *l, const char *name) {
  void *f = l->handle != NULL ? dlsym(l->handle, name) : NULL;
  if (f == NULL && l->why[0] == '\0')
    snprintf(l->why, sizeof l->why, "%s is too old: it has no %s", l->called, name);
  return f;
}
