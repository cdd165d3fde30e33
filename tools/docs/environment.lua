-- tools/docs/environment.lua: what ltrain reads from the environment, and the files that it keeps:
-- for the page of the command line and the manual page.
return {
  -- Rows: names, meaning.
  variables = {
    { "LT_SEED", "the seed of all random numbers, unless the script or `--seed` sets it" },
    { "OMP_NUM_THREADS", "threads that an operation may use, unless `--threads` is given" },
    { "OMP_WAIT_POLICY, GOMP_SPINCOUNT", "how threads of operations wait for each other: by "
      .. "default they spin; while other programs use the same cores, they sleep, or fewer "
      .. "threads are used; `passive`: ranks that wait for each other sleep, too" },
    { "LTRAIN_BIND", "`0`: ranks are not bound to the cores near their GPU" },
    { "LTRAIN_CPU_LEVEL", "instruction level: `v2`, `v3` or `v4` on x86-64; by default the "
      .. "highest that the processor supports" },
    { "LT_TIMEOUT", "seconds that a rank waits for the others before it raises an error" },
    { "LT_LAUNCH_TIMEOUT", "seconds in which all ranks of a launcher must have come together; 60" },
    { "LTRAIN_TOKEN", "any text, the same on all ranks of a job that meet at `MASTER_ADDR`, "
      .. "`MASTER_PORT`: those of another job are refused" },
    { "LTRAIN_LAUNCH, LTRAIN_INCARNATION, LTRAIN_REASON, LTRAIN_ERROR_FILE, LTRAIN_SNAPSHOT, "
      .. "LTRAIN_SEED",
      "set by `ltrain launch` for its ranks: the job, how often its ranks have been started again, "
      .. "why, the file in which a rank that fails writes why, descriptors of the memory of "
      .. "snapshots, and the seed of a job that sets none" },
    { "LTRAIN_BACKENDS", "the only folder that is searched for backends (`ltrain_mpi.so`, "
      .. "`ltrain_ucx.so`)" },
    { "LTRAIN_CUDA_LIBS", "the folder of NVIDIA's libraries (`libcublasLt.so.13`, "
      .. "`libcudnn.so.9`), if neither the dynamic linker nor `CUDA_HOME` finds them `CUDA_HOME`" },
    { "LTRAIN_PJRT_PLUGIN", "the PJRT plugin of devices `xla`, as its file or NAME=FILE, where "
      .. "NAME is what the devices are called (`hpu`); "
      .. "`TPU_LIBRARY_PATH`, `VIRTUAL_ENV`, `CONDA_PREFIX`: where one is looked for otherwise" },
    { "LTRAIN_XLA_CACHE", "the folder in which compiled programs of devices `xla` are kept for "
      .. "later runs, empty: none; by default `ltrain/xla` in `XDG_CACHE_HOME` or in `~/.cache`" },
    { "LTRAIN_XLA_CACHE_MB", "how many MB of them are kept, 1024; those used longest ago go" },
    { "LTRAIN_PJRT_OPTIONS", "options of the plugin's client, such as `cpu_device_count=8` or "
      .. "`memory_fraction=0.5,preallocate=false`" },
    { "LTRAIN_STDLIB", "a folder whose Lua files replace those compiled into the binary, and add "
      .. "names to `nn` and its like" },
    { "LUA_PATH_5_4, LUA_PATH, LUA_CPATH_5_4, LUA_CPATH", "where `require` searches, as in `lua`" },
    { "LUA_INIT_5_4, LUA_INIT", "code, or `@` and a file, to run first, as in `lua`" },
    { "XDG_STATE_HOME", "folder of the history of the prompt; by default `~/.local/state`" },
    { "TERM", "`dumb`: the progress bar is not redrawn, the prompt reads plain lines" },
    { "NO_COLOR", "not empty: no colours and hints at the prompt" },
  },
  -- Rows: path, what is there.
  files = {
    { "ltrain_logs/version_N", "a run: `metrics.csv`, hyper-parameters, and in `checkpoints` "
      .. "safetensors files named `epoch=E-step=S.ckpt`, `last.ckpt` or `interrupted.ckpt`" },
    { "$XDG_STATE_HOME/ltrain/history", "history of the prompt" },
  },
}
