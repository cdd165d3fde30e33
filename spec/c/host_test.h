/* spec/c/host_test.h: a host's state and a line to learn, for the tests of ltrain.h. */
#ifndef LT_SPEC_HOST_TEST_H
#define LT_SPEC_HOST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/ltrain.h"

/* A line to learn; nothing of it needs a file. */
static const char script[] =
    "local lt = require 'ltrain'\n"
    "lt.seed(1)\n"
    "local Line = lt.Module:extend('Line')\n"
    "function Line:init() self.layer = lt.nn.Linear(1, 1) end\n"
    "function Line:training_step(b)\n"
    "  return lt.mse_loss(self.layer(b[1]), b[2])\n"
    "end\n"
    "function Line:configure_optimizers()\n"
    "  return lt.optim.SGD(self:parameters(), {lr = 0.1})\n"
    "end\n"
    "line = Line()\n"
    "local x = lt.arange(0, 16):to('f32'):view(16, 1) / 16\n"
    "local loader = lt.data.DataLoader(lt.data.TensorDataset(x, 2 * x), {batch_size = 4})\n"
    "function train(epochs)\n"
    "  lt.Trainer{max_epochs = epochs, logger = false, enable_checkpointing = false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}:fit(line, loader)\n"
    "  return line.layer.weight:item()\n"
    "end\n";

static inline ltrain *open_with(const ltrain_config *config) {
  ltrain *l = ltrain_open(config);
  assert_non_null(l);
  return l;
}

static inline ltrain *open_line(const ltrain_config *config) {
  ltrain *l = open_with(config);
  if (!ltrain_dostring(l, script, "line.lua")) fail_msg("%s", ltrain_errmsg(l));
  return l;
}

/* A thread's work: a state of its own that learns the line; the weight, or -1. */
static inline void *train_alone(void *result) {
  ltrain *l = ltrain_open(NULL);
  double *weight = result;
  if (l == NULL || !ltrain_dostring(l, script, "line.lua") ||
      !ltrain_call(l, "train", "i>d", INT64_C(5), weight))
    *weight = -1;
  ltrain_close(l);
  return NULL;
}

static inline void must(ltrain *l, bool ok) {
  if (!ok) fail_msg("%s", ltrain_errmsg(l));
}

static inline void must_say(ltrain *l, bool ok, const char *text) {
  assert_false(ok);
  if (strstr(ltrain_errmsg(l), text) == NULL)
    fail_msg("'%s' is not in '%s'", text, ltrain_errmsg(l));
}

#endif
