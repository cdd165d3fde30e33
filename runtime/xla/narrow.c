/* runtime/xla/narrow.c: f64 on plugins that have none, such as those of TPUs: f32 in its place.

   Scripts are refused f64 tensors there (lt_device_ops.lacks). The library makes some of its own,
   sums of logged values and divisors of losses: programs compute them in f32, and copies from and
   to the host, where they are f64, convert. */
#include <stdlib.h>
#include <string.h>

#include "xla/plugin.h"

/* Whether a program of f64 compiles. */
static bool compiles(void) {
  static const char text[] = "module {\nfunc.func @main(%0: tensor<f64>) -> (tensor<f64>) {\n"
                             "%1 = stablehlo.add %0, %0 : tensor<f64>\n"
                             "return %1 : tensor<f64>\n}\n}\n";
  pjrt_loaded *loaded = NULL;
  return lt_xla_passed(lt_xla_compile(text, sizeof text - 1, &loaded));
}

/* A platform that is not in the list is tried with a program, once. XLA can imitate f64 on TPUs,
   slowly. */
bool lt_xla_has_f64(void) {
  static const struct { const char *name; bool has; } known[] = {
      {"cpu", true}, {"cuda", true}, {"rocm", true}, {"tpu", false}};
  static enum { UNKNOWN, HAS, LACKS } answer;
  if (answer != UNKNOWN || lt_xla_client() == NULL) return answer != LACKS;
  bool found = false, has = false;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (strcmp(lt_xla_platform(), known[k].name) != 0) continue;
    found = true, has = known[k].has;
  }
  if (!found) has = compiles();
  answer = has ? HAS : LACKS;
  return has;
}

float *lt_narrow_values(const void *doubles, int64_t n) {
  const double *from = doubles;
  float *to = malloc((size_t)n * sizeof *to + 1);
  for (int64_t k = 0; to != NULL && k < n; k++) to[k] = (float)from[k];
  return to;
}

void lt_narrow_read(void *to, const void *whole, size_t offset, size_t bytes) {
  const float *from = (const float *)whole + offset / sizeof(double);
  double *wide = to;
  for (size_t k = 0; k < bytes / sizeof *wide; k++) wide[k] = (double)from[k];
}
