/* runtime/xla/find_plugin.c: where PJRT plugins are: named by the user, or packages of the active
   Python environment, of which only the shared object is used. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xla/plugin.h"

/* In an environment's site-packages; accelerators before the CPU. */
static const char *const packages[] = {
    "libtpu/libtpu.so",
    "jax_plugins/*/*plugin*.so",
    "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
};

static bool in_environment(const char *folder, char *path, size_t size) {
  for (size_t k = 0; folder != NULL && k < sizeof packages / sizeof *packages; k++) {
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/%s", folder, packages[k]);
    bool any = glob(pattern, 0, NULL, &found) == 0;
    if (any) snprintf(path, size, "%s", found.gl_pathv[0]);
    globfree(&found);
    if (any) return true;
  }
  return false;
}

/* The length of the name in NAME=FILE; 0: a file alone. */
static size_t name_length(const char *text) {
  size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return text[n] == '=' ? n : 0;
}

const char *lt_xla_name(void) {
  static char name[32];
  const char *text = getenv("LTRAIN_PJRT_PLUGIN");
  size_t n = text != NULL ? name_length(text) : 0;
  if (name[0] == 0 && n > 0 && n < sizeof name) memcpy(name, text, n);
  return name[0] != 0 ? name : "xla";
}

static bool named(const char *variable, const char *file, char *path, size_t size, char *why,
                  size_t why_size) {
  size_t n = name_length(file);
  snprintf(path, size, "%s", n > 0 ? file + n + 1 : file);
  if (access(path, R_OK) == 0) return true;
  snprintf(why, why_size, "no PJRT plugin %.180s (%s)", path, variable);
  return false;
}

bool lt_xla_find_plugin(char *path, size_t size, char *why, size_t why_size) {
  static const char *const variables[] = {"LTRAIN_PJRT_PLUGIN", "TPU_LIBRARY_PATH"};
  for (int k = 0; k < 2; k++) {
    const char *file = getenv(variables[k]);
    if (file != NULL && file[0] != 0)
      return named(variables[k], file, path, size, why, why_size);
  }
  if (in_environment(getenv("VIRTUAL_ENV"), path, size) ||
      in_environment(getenv("CONDA_PREFIX"), path, size))
    return true;
  snprintf(why, why_size, "no PJRT plugin: set LTRAIN_PJRT_PLUGIN to its file, or activate a "
           "Python environment that has one");
  return false;
}
