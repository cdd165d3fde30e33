/* runtime/xla/identity.c: what an executable is made for: the plugin, the device, the processor. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "xla/compile.h"
#include "xla/plugin.h"

static char identity[4096];
static size_t used;

static void add(const char *text, size_t size) {
  size_t n = size < sizeof identity - 1 - used ? size : sizeof identity - 1 - used;
  memcpy(identity + used, text, n);
  used += n;
  identity[used] = '\n';
  used += used + 1 < sizeof identity;
}

static void add_plugin(void) {
  struct stat s;
  char path[4096], why[256], text[160];
  bool found = lt_xla_find_plugin(path, sizeof path, why, sizeof why) && stat(path, &s) == 0;
  const pjrt_version *v = lt_xla_interface();
  int n = snprintf(text, sizeof text, "%s, PJRT %d.%d, %lld bytes", lt_xla_platform(), v->major,
                   v->minor, found ? (long long)s.st_size : 0);
  add(text, (size_t)n);
  add(lt_xla_version(), strlen(lt_xla_version()));
}

static void add_device(void) {
  pjrt_device_description of = {.head = {.size = sizeof of}, .device = lt_xla_device(0)};
  pjrt_kind kind = {.head = {.size = sizeof kind}};
  if (!lt_xla_has(PJRT_DEVICE_DESCRIPTION) || !lt_xla_has(PJRT_DESCRIPTION_KIND) ||
      !lt_xla_passed(lt_xla_call(PJRT_DEVICE_DESCRIPTION, &of)))
    return;
  kind.description = of.description;
  if (lt_xla_passed(lt_xla_call(PJRT_DESCRIPTION_KIND, &kind))) add(kind.kind, kind.size);
}

/* Its instructions, of which code for the host may use all. */
static void add_processor(void) {
  char line[2048];
  FILE *file = fopen("/proc/cpuinfo", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
    add(line, strlen(line));
    break;
  }
  if (file != NULL) fclose(file);
}

const char *lt_xla_identity(size_t *size) {
  char options[LT_COMPILE_OPTIONS];
  size_t options_size = lt_xla_compile_options(options);
  used = 0;
  add(options, options_size);
  add_plugin();
  add_device();
  add_processor();
  *size = used;
  return identity;
}
