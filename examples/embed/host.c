/* examples/embed/host.c: ltrain inside another program: trains mlp.lua, then asks it about a digit.
 *
 *   cc host.c -o host $(pkg-config --cflags --libs ltrain)
 *   ./host ../mlp.lua [batches]
 *
 * The program owns the process: what the script prints and logs comes through callbacks, and the
 * image goes in without a copy. Prints the progress, the accuracy, and what the drawing looks like
 * to the network. */
#include <inttypes.h>
#include <ltrain.h>
#include <stdio.h>
#include <stdlib.h>

/* What the host asks of the script, in Lua. */
static const char glue[] =
    "local lt = require 'ltrain'\n"
    "local mlp = dofile(script)\n"
    "function train(batches)\n"
    "  local trainer = lt.Trainer{max_epochs = 1, limit_train_batches = batches,\n"
    "    limit_val_batches = 4, logger = false, enable_checkpointing = false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}\n"
    "  trainer:fit(mlp.model, mlp.data)\n"
    "  mlp.model:eval()\n"
    "  return trainer.callback_metrics.val_acc\n"
    "end\n"
    "function classify(image)\n"
    "  local _ <close> = lt.no_grad()\n"
    "  return mlp.model.layers(image):softmax(-1)[1]\n"
    "end\n";

static void on_log(void *ud, int level, const char *text) {
  (void)ud;
  if (level == LTRAIN_WARNING) fprintf(stderr, "%s\n", text);
}

static void on_progress(void *ud, const char *stage, int64_t epoch, int64_t batch,
                        int64_t batches) {
  (void)ud;
  if (batch % 20 == 0)
    printf("%s: epoch %" PRId64 ", batch %" PRId64 " of %" PRId64 "\n", stage, epoch, batch,
           batches);
}

/* A vertical stroke of 28 x 28 pixels: a one. */
static void draw(float *image) {
  for (int row = 4; row < 24; row++)
    for (int column = 13; column < 16; column++) image[28 * row + column] = 1;
}

static int fail(ltrain *l) {
  fprintf(stderr, "host: %s\n", ltrain_errmsg(l));
  ltrain_close(l);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: host MLP.LUA [BATCHES]\n");
    return 2;
  }
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.threads = 2;
  config.allow = LTRAIN_READ_FILES; /* for dofile */
  config.log = on_log;
  config.progress = on_progress;
  ltrain *l = ltrain_open(&config);
  double accuracy;
  int64_t batches = argc > 2 ? atoi(argv[2]) : 100;
  if (l == NULL || !ltrain_set(l, "script", "s", argv[1]) || !ltrain_dostring(l, glue, "glue") ||
      !ltrain_call(l, "train", "i>d", batches, &accuracy))
    return fail(l);
  printf("accuracy %.3f\n", accuracy);

  float image[28 * 28] = {0};
  const int64_t shape[] = {1, 1, 28, 28};
  draw(image);
  lt_tensor *in = ltrain_wrap(l, image, LT_F32, 4, shape, NULL, NULL), *out;
  if (in == NULL || !ltrain_call(l, "classify", "T>T", in, &out)) return fail(l);
  const float *likely = ltrain_data(l, out, 0);
  if (likely == NULL) return fail(l);
  for (int digit = 0; digit < 10; digit++) printf("%d: %4.1f %%\n", digit, 100 * likely[digit]);
  ltrain_release(l, out);
  ltrain_release(l, in);
  ltrain_close(l);
  return 0;
}
