/* examples/embed/game_loop.c: a policy that learns while a game runs, 5 ms of each frame.
 *
 *   cc game_loop.c -o game_loop $(pkg-config --cflags --libs ltrain)
 *   ./game_loop [frames]
 *
 * Balls fall, and paddles learn to catch them: 16 games side by side. What the games see goes into
 * memory of the host that the script trains on without a copy: moves that were rewarded become more
 * likely. Training is one call that never ends; ltrain_step_for gives it 5 ms, and it pauses
 * wherever it is. Prints how long frames took and how many balls were caught. */
#include <ltrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GAMES = 16, WIDTH = 11, HEIGHT = 11, ACTIONS = 3, MEMORY = 4096 };
static const double budget = 0.005; /* seconds of each frame */

static const char script[] =
    "local lt = require 'ltrain'\n"
    "local nn = lt.nn\n"
    "lt.seed(1)\n"
    "local Policy = lt.Module:extend 'Policy'\n"
    "function Policy:init()\n"
    "  self.net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),\n"
    "    nn.Linear(64, 3))\n"
    "end\n"
    "function Policy:training_step(batch)\n"
    "  local seen, action, reward = table.unpack(batch)\n"
    "  return (lt.cross_entropy(self.net(seen), action, {reduction = 'none'}) * reward):mean()\n"
    "end\n"
    "function Policy:configure_optimizers()\n"
    "  return lt.optim.Adam(self:parameters(), {lr = 1e-3})\n"
    "end\n"
    "local policy = Policy()\n"
    "filled = 0\n"
    "function chances(seen)\n"
    "  local _ <close> = lt.no_grad()\n"
    "  return policy.net(seen):softmax(-1)\n"
    "end\n"
    "function learn(seen, action, reward)\n"
    "  trainer = lt.Trainer{max_epochs = -1, logger = false, enable_checkpointing = false,\n"
    "    enable_progress_bar = false, enable_model_summary = false}\n"
    "  local function batches()\n"
    "    local at = lt.randint(0, filled, {256})\n"
    "    return {seen[at], action[at], reward[at]}\n"
    "  end\n"
    "  trainer:fit(policy, function() return batches end)\n"
    "end\n";

typedef struct game {
  int ball, paddle, row;
} game;

/* What was seen, done and got in the last MEMORY moves. */
static float seen[MEMORY][2], now[GAMES][2], reward[MEMORY];
static int64_t action[MEMORY];
static int64_t moves;
static int fallen, caught, early, early_caught;

static int die(ltrain *l) {
  fprintf(stderr, "game_loop: %s\n", ltrain_errmsg(l));
  exit(1);
}

static lt_tensor *wrap(ltrain *l, void *data, lt_dtype dtype, int ndim, int64_t rows,
                       int64_t columns) {
  lt_tensor *t = ltrain_wrap(l, data, dtype, ndim, (const int64_t[]){rows, columns}, NULL, NULL);
  if (t == NULL) die(l);
  return t;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int draw(const float *chance) {
  float left = (float)rand() / (float)RAND_MAX;
  int k = 0;
  while (k < ACTIONS - 1 && (left -= chance[k]) > 0) k++;
  return k;
}

static void start(game *g) { *g = (game){rand() % WIDTH, rand() % WIDTH, HEIGHT}; }

/* One move of a game: its ball falls, its paddle goes left, stays or goes right. */
static void move(game *g, int k, const float *chance) {
  int64_t at = moves++ % MEMORY;
  int before = abs(g->ball - g->paddle);
  memcpy(seen[at], now[k], sizeof seen[at]);
  action[at] = draw(chance);
  g->paddle += (int)action[at] - 1;
  int after = abs(g->ball - g->paddle);
  reward[at] = after < before || after == 0;
  if (--g->row > 0) return;
  fallen++;
  caught += after == 0;
  start(g);
}

static void play(ltrain *l, lt_tensor *eyes, game *games) {
  lt_tensor *out;
  for (int k = 0; k < GAMES; k++) {
    now[k][0] = (float)(games[k].ball - games[k].paddle) / WIDTH;
    now[k][1] = (float)games[k].row / HEIGHT;
  }
  if (!ltrain_call(l, "chances", "T>T", eyes, &out)) die(l);
  const float *chance = ltrain_data(l, out, 0);
  if (chance == NULL) die(l);
  for (int k = 0; k < GAMES; k++) move(&games[k], k, chance + ACTIONS * k);
  ltrain_release(l, out);
  if (!ltrain_set(l, "filled", "i", moves < MEMORY ? moves : MEMORY)) die(l);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int frames = argc > 1 ? atoi(argv[1]) : 600;
  if (frames < 10) {
    fprintf(stderr, "usage: game_loop [FRAMES], at least 10\n");
    return 2;
  }
  game games[GAMES];
  double *took = calloc((size_t)frames, sizeof *took);
  ltrain *l = ltrain_open(NULL);
  if (took == NULL || l == NULL || !ltrain_dostring(l, script, "policy")) die(l);
  lt_tensor *eyes = wrap(l, now, LT_F32, 2, GAMES, 2), *s = wrap(l, seen, LT_F32, 2, MEMORY, 2);
  lt_tensor *a = wrap(l, action, LT_I64, 1, MEMORY, 0), *r = wrap(l, reward, LT_F32, 1, MEMORY, 0);
  for (int k = 0; k < GAMES; k++) start(&games[k]);
  play(l, eyes, games);
  if (!ltrain_start(l, "learn", "TTT", s, a, r)) die(l);
  for (int k = 0; k < frames; k++) {
    double begin = seconds();
    play(l, eyes, games);
    if (ltrain_step_for(l, budget, NULL) == LTRAIN_FAILED) die(l);
    took[k] = seconds() - begin;
    if (k == frames / 10) early = fallen, early_caught = caught, fallen = caught = 0;
    if (k == frames - frames / 10) fallen = caught = 0;
  }
  int64_t steps;
  if (!ltrain_get(l, "trainer.global_step", "i", &steps)) die(l);
  qsort(took, (size_t)frames, sizeof *took, by_size);
  printf("%d frames: median %.1f ms, 99 %% within %.1f ms, longest %.1f ms\n", frames,
         1e3 * took[frames / 2], 1e3 * took[frames * 99 / 100], 1e3 * took[frames - 1]);
  printf("%.1f steps of training in a frame\n", (double)steps / frames);
  printf("balls caught: %d of %d at first, %d of %d at the end\n", early_caught, early, caught,
         fallen);
  ltrain_release(l, eyes), ltrain_release(l, s), ltrain_release(l, a), ltrain_release(l, r);
  ltrain_close(l);
  free(took);
  return 0;
}
