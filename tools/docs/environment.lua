-- tools/docs/environment.lua: what ltrain reads from the environment, and the files that it keeps:
-- for the page of the command line and the manual page.
return {
  -- Rows: names, meaning.
  variables = {
    { "LT_SEED", "the seed of all random numbers where neither the script nor `--seed` says it" },
    { "OMP_NUM_THREADS", "threads that an operation uses, unless `--threads` says it" },
    { "OMP_WAIT_POLICY, GOMP_SPINCOUNT", "how threads of operations wait for each other; without "
      .. "them they spin, and while other programs use the same cores fewer work, or they sleep" },
    { "LTRAIN_CPU_LEVEL", "level of instructions: `v2`, `v3` or `v4` on x86-64; without it the "
      .. "best that the processor runs" },
    { "LT_TIMEOUT", "seconds that a rank waits for the others before it is an error" },
    { "LTRAIN_BACKENDS", "the one folder in which backends (`ltrain_mpi.so`) are looked for" },
    { "LTRAIN_STDLIB", "a folder whose Lua files replace those compiled into the binary" },
    { "LUA_PATH_5_4, LUA_PATH, LUA_CPATH_5_4, LUA_CPATH", "where `require` looks, as in `lua`" },
    { "LUA_INIT_5_4, LUA_INIT", "code, or `@` and a file, to run first, as in `lua`" },
    { "XDG_STATE_HOME", "where the prompt keeps its history; without it `~/.local/state`" },
    { "TERM", "`dumb`: no progress bar that is drawn again and again" },
  },
  -- Rows: path, what is there.
  files = {
    { "ltrain_logs/version_N", "one run: `metrics.csv`, hyper-parameters, and in `checkpoints` "
      .. "safetensors files named `epoch=E-step=S.ckpt`, `last.ckpt` or `interrupted.ckpt`" },
    { "$XDG_STATE_HOME/ltrain/history", "lines of the prompt" },
  },
}
