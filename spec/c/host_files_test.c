/* spec/c/host_files_test.c: files in memory: a checkpoint in them is that of a file, bit for bit,
   and resumes in another state; what they hold needs no permission and counts to the cap. */
#include <stdlib.h>
#include <unistd.h>

#include "host_test.h"

static const char fits[] =
    "lt = require 'ltrain'\n"
    "Net = lt.Module:extend('Net')\n"
    "function Net:init(o)\n"
    "  self:save_hyperparameters(o or {width = 300})\n"
    "  self.net = lt.nn.Sequential(lt.nn.Linear(4, self.hparams.width), lt.nn.Dropout(0.2),\n"
    "    lt.nn.Linear(self.hparams.width, 100), lt.nn.Linear(100, 1))\n"
    "end\n"
    "function Net:forward(x) return self.net(x) end\n"
    "function Net:training_step(b)\n"
    "  local loss = lt.mse_loss(self(b[1]), b[2])\n"
    "  self:log('loss', loss)\n"
    "  return loss\n"
    "end\n"
    "function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end\n"
    "lt.seed(3)\n"
    "local x = lt.randn(24, 4)\n"
    "local loader = lt.data.DataLoader(lt.data.TensorDataset(x, x:sum(2, true)),\n"
    "  {batch_size = 4, shuffle = true})\n"
    "net = Net()\n"
    "function fit(epochs, from, folder)\n"
    "  lt.seed(3)\n"
    "  trainer = lt.Trainer{max_epochs = epochs, logger = false, enable_checkpointing = folder "
    "~= nil,\n"
    "    callbacks = folder and {lt.callbacks.ModelCheckpoint{dirpath = folder, monitor = 'loss',\n"
    "      save_last = true, save_top_k = 2}} or nil,\n"
    "    enable_progress_bar = false, enable_model_summary = false}\n"
    "  trainer:fit(net, loader, nil, {ckpt_path = from})\n"
    "  return lt.hash(net:state_dict())\n"
    "end\n"
    "function save(path) trainer:save_checkpoint(path) end\n"
    "function tree() return {a = {1, 2.5, 'x'}, big = lt.arange(0, 40000):to('f32'), b = true} "
    "end\n"
    "function same(path)\n"
    "  local t = assert(lt.load(path))\n"
    "  assert(t.a[2] == 2.5 and t.b == true and t.big:sum():item() == tree().big:sum():item())\n"
    "end\n";

static ltrain *open_fits(unsigned allow) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = allow;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l, fits, "fits.lua"));
  return l;
}

static char *copy_file(ltrain *l, const char *path, size_t *size) {
  const void *bytes = ltrain_get_file(l, path, size);
  if (bytes == NULL) fail_msg("%s", ltrain_errmsg(l));
  char *copy = malloc(*size + 1);
  assert_non_null(copy);
  memcpy(copy, bytes, *size);
  return copy;
}

static void must_be_the_file(ltrain *l, const char *held, const char *path) {
  size_t size = 0, n;
  const void *bytes = ltrain_get_file(l, held, &size);
  assert_non_null(bytes);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *read = malloc(size + 2);
  n = fread(read, 1, size + 1, file);
  fclose(file);
  assert_true(n == size);
  assert_memory_equal(read, bytes, size);
  free(read);
}

static void the_bytes_are_those_of_a_file(void **state) {
  (void)state;
  char folder[] = "/tmp/ltrain_held_XXXXXX", path[200];
  assert_non_null(mkdtemp(folder));
  ltrain *l = open_fits(LTRAIN_READ_FILES | LTRAIN_WRITE_FILES);
  must(l, ltrain_call(l, "fit", "i", INT64_C(2)));
  snprintf(path, sizeof path, "%s/run.ckpt", folder);
  must(l, ltrain_call(l, "save", "s", path));
  must(l, ltrain_call(l, "save", "s", "memory:runs/one/run.ckpt"));
  must_be_the_file(l, "memory:runs/one/run.ckpt", path);
  unlink(path);
  snprintf(path, sizeof path, "%s/tree", folder);
  must(l, ltrain_set(l, "path", "s", path));
  must(l, ltrain_dostring(l,
                          "assert(lt.save(path, tree())) assert(lt.save('memory:tree', tree()))\n"
                          "same(path) same('memory:tree')",
                          "save.lua"));
  must_be_the_file(l, "memory:tree", path);
  unlink(path);
  rmdir(folder);
  ltrain_close(l);
}

/* From one state, through the host's memory, to another that may touch no file. */
static void a_run_resumes_from_memory(void **state) {
  (void)state;
  char whole[100];
  const char *hash = NULL;
  ltrain *l = open_fits(0);
  must(l, ltrain_call(l, "fit", "i>s", INT64_C(4), &hash));
  snprintf(whole, sizeof whole, "%s", hash);
  ltrain_close(l);
  l = open_fits(0);
  must(l, ltrain_call(l, "fit", "i", INT64_C(2)));
  must(l, ltrain_call(l, "save", "s", "memory:run.ckpt"));
  size_t size;
  char *bytes = copy_file(l, "memory:run.ckpt", &size);
  ltrain_close(l);
  l = open_fits(0);
  must(l, ltrain_put_file(l, "memory:mine", bytes, size));
  must(l, ltrain_call(l, "fit", "is>s", INT64_C(4), "memory:mine", &hash));
  assert_string_equal(hash, whole);
  bytes[size / 2] ^= 1;
  must(l, ltrain_put_file(l, "memory:mine", bytes, size));
  must_say(l, ltrain_call(l, "fit", "is", INT64_C(4), "memory:mine"), "memory:mine: damaged");
  must(l, ltrain_put_file(l, "memory:mine", bytes, size / 2));
  must_say(l, ltrain_call(l, "fit", "is", INT64_C(4), "memory:mine"), "memory:mine: ");
  must(l, ltrain_put_file(l, "memory:mine", NULL, 0));
  must_say(l, ltrain_call(l, "fit", "is", INT64_C(4), "memory:mine"), "memory:mine");
  must_say(l, ltrain_call(l, "fit", "is", INT64_C(4), "memory:none"), "memory:none: No such file");
  free(bytes);
  ltrain_close(l);
}

static void callbacks_keep_checkpoints_in_memory(void **state) {
  (void)state;
  ltrain *l = open_fits(0);
  must(l, ltrain_call(l, "fit", "iss", INT64_C(4), NULL, "memory:runs/a"));
  must(l, ltrain_dostring(l,
                          "local best = trainer:best_model_path()\n"
                          "assert(best:find '^memory:runs/a/', best)\n"
                          "local other = Net:load_from_checkpoint(best)\n"
                          "assert(other.hparams.width == 300)\n"
                          "local last = Net:load_from_checkpoint('memory:runs/a/last.ckpt')\n"
                          "assert(lt.hash(last:state_dict()) == lt.hash(net:state_dict()))",
                          "load.lua"));
  must(l, ltrain_call(l, "fit", "iss", INT64_C(6), "last", "memory:runs/a"));
  must(l, ltrain_dostring(l, "assert(trainer.current_epoch == 6)", "load.lua"));
  ltrain_close(l);
}

static void what_they_are_not(void **state) {
  (void)state;
  size_t size = 7;
  ltrain *l = open_fits(0);
  must_say(l, ltrain_put_file(l, "run.ckpt", "x", 1),
           "put_file: the path must begin with \"memory:\"");
  must_say(l, ltrain_put_file(l, "memory:", "x", 1), "put_file: not the name of a file: 'memory:'");
  must_say(l, ltrain_put_file(l, "memory:a/", "x", 1), "not the name of a file: 'memory:a/'");
  must_say(l, ltrain_put_file(l, "memory:a", NULL, 1), "put_file: the data is NULL");
  must_say(l, ltrain_put_file(l, NULL, "x", 1), "put_file: the path is NULL");
  must_say(l, ltrain_get_file(l, "memory:a", &size) != NULL, "get_file: no such file: memory:a");
  assert_true(size == 0);
  must_say(l, ltrain_remove_file(l, "memory:a"), "remove_file: no such file: memory:a");
  assert_false(ltrain_put_file(NULL, "memory:a", "x", 1));
  assert_null(ltrain_get_file(NULL, "memory:a", NULL));
  assert_false(ltrain_remove_file(NULL, "memory:a"));
  must_say(l, ltrain_dostring(l, "assert(lt.save('/tmp/x', {1}))", "s.lua"), "LTRAIN_WRITE_FILES");
  must_say(l, ltrain_dostring(l, "assert(lt.load('/etc/passwd'))", "s.lua"), "LTRAIN_READ_FILES");
  must_say(l, ltrain_dostring(l, "assert(lt.load('memory:/etc/passwd'))", "s.lua"), "No such file");
  must_say(l, ltrain_dostring(l, "assert(lt.load('memory:../../etc/passwd'))", "s.lua"),
           "No such file");
  must_say(l, ltrain_dostring(l, "assert(lt.save('memory:', {1}))", "s.lua"),
           "not the name of a file");
  must(l, ltrain_put_file(l, "memory:a", "", 0));
  assert_non_null(ltrain_get_file(l, "memory:a", &size));
  must(l, ltrain_remove_file(l, "memory:a"));
  must(l, ltrain_dostring(l, "lt.save('memory:b', {1})", "s.lua"));
  assert_non_null(ltrain_get_file(l, "memory:b", NULL));
  ltrain_close(l);
}

static void scripts_run_from_memory(void **state) {
  (void)state;
  ltrain *l = open_fits(0);
  static const char code[] = "x = 41\n\nfunction fails() error('no') end";
  must(l, ltrain_put_file(l, "memory:lib/code.lua", code, sizeof code - 1));
  must(l, ltrain_dofile(l, "memory:lib/code.lua"));
  must_say(l, ltrain_call(l, "fails", ""), "memory:lib/code.lua:3: no");
  must_say(l, ltrain_dofile(l, "memory:none.lua"), "cannot open memory:none.lua");
  must(l, ltrain_put_file(l, "memory:code.lua", "x = = 1", 7));
  must_say(l, ltrain_dofile(l, "memory:code.lua"), "memory:code.lua:1: unexpected symbol");
  must(l, ltrain_put_file(l, "memory:code.lua", "\033Lua", 4));
  must_say(l, ltrain_dofile(l, "memory:code.lua"), "attempt to load a binary chunk");
  ltrain_close(l);
}

static void they_count_to_the_cap(void **state) {
  (void)state;
  enum { MIB = 1 << 20 };
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = 24 * MIB;
  ltrain *l = open_with(&config);
  char *bytes = calloc(1, 64 * MIB);
  must_say(l, ltrain_put_file(l, "memory:a", bytes, 64 * MIB), "memory");
  must(l, ltrain_put_file(l, "memory:a", bytes, 4 * MIB));
  must(l, ltrain_put_file(l, "memory:a", bytes, 4 * MIB)); /* in its place */
  must_say(l,
           ltrain_dostring(l,
                           "lt = require 'ltrain' local x = lt.zeros(1 << 18)\n"
                           "for k = 1, 1e9 do assert(lt.save('memory:' .. k, {x})) end",
                           "fill.lua"),
           "fill.lua:2: ");
  must_say(l, false, "memory");
  for (int k = 1; k < 20; k++) {
    char path[40];
    snprintf(path, sizeof path, "memory:%d", k);
    ltrain_remove_file(l, path);
  }
  must(l, ltrain_put_file(l, "memory:b", bytes, 8 * MIB));
  free(bytes);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bytes_are_those_of_a_file),
      cmocka_unit_test(a_run_resumes_from_memory),
      cmocka_unit_test(callbacks_keep_checkpoints_in_memory),
      cmocka_unit_test(what_they_are_not),
      cmocka_unit_test(scripts_run_from_memory),
      cmocka_unit_test(they_count_to_the_cap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
