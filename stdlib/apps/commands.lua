--- stdlib/apps/commands.lua: the subcommands of the apps, and the options that they add to commands
--- that run scripts: rows as in stdlib/cli/commands.lua.
local config_option = require "ltrain.cli.config_option"

local commands = {}

commands.options = {
  { name = "dashboard", type = "boolean", value = "true|false",
    doc = "show the run, and others in the same folder, in a browser while it is running" },
  { name = "dashboard_control", type = "boolean", value = "true|false",
    doc = "let dashboards stop the fit or request a checkpoint, by a socket in the folder of the "
      .. "run" },
  { name = "debug", type = "boolean|string", value = "[nan]", choices = { true, false, "nan" },
    doc = "open a prompt at an uncaught error; with nan also where an operation or its "
      .. "derivative produces the first NaN, or backward the first infinity" },
  { name = "debug_rank", type = "integer", value = "K", min = 0,
    doc = "on several ranks, stop only this one at errors and breakpoints" },
}

local CHECK <const> = {
  config_option,
  { name = "seed", type = "integer", value = "N", min = 0, doc = "seed of all random numbers" },
  { name = "threads", type = "integer", value = "N", min = 1,
    doc = "threads that an operation may use" },
}

local PLAN <const> = {
  { name = "devices", type = "integer", value = "N", min = 1,
    doc = "ranks of a machine; by default the script's" },
  { name = "nodes", type = "integer", value = "M", min = 1,
    doc = "machines; by default the script's num_nodes" },
  { name = "memory", type = "string", value = "SIZE",
    doc = "memory of a rank, like 80GB or 512MiB: which strategies fit" },
  { name = "strategy", type = "string", value = "NAME|all",
    doc = "a name that the Trainer takes, or all (default): ddp and the three stages of Sharded" },
  { name = "time", type = "boolean", value = "true|false",
    doc = "the time of a step too: by some steps of a rank on this CPU, with links measured here" },
  { name = "flops", type = "string", value = "RATE",
    doc = "of a rank elsewhere, in products of matrices, a second: 300T; with --bandwidth" },
  { name = "bandwidth", type = "string", value = "RATE",
    doc = "of its memory, bytes a second: 3T" },
  { name = "link", type = "string", value = "LINK",
    doc = "between ranks, with its latency: '100Gb 5us' (b: bits, B: bytes), or within and "
      .. "between machines: 'intra=450GB 3us, inter=100Gb 10us'" },
  { name = "simulate", type = "string", value = "A..B|N,...",
    doc = "steps on so many ranks, each number twice the one before, or on those of a list" },
  { name = "json", type = "boolean", value = "true|false",
    doc = "print JSON, in bytes and seconds" },
  table.unpack(CHECK),
}

commands.list = {
  { name = "check", load = function() return require "ltrain.apps.check.command" end,
    script = true, loop = "fit",
    args = "SCRIPT [--option value]... [-- args]",
    doc = "check a script without training it: names, shapes, gradients, data", options = CHECK,
    text = "Runs the script up to its first loop of a Trainer, then one batch of two samples "
      .. "through the\nloop, in one process on the CPU, and reports errors and warnings with their "
      .. "lines, and what could\nnot be checked. Nothing is trained, no file is changed, no "
      .. "program started. The exit status is 0\nwithout findings, 1 with findings, 2 for wrong "
      .. "usage, 130 after Ctrl-C." },
  { name = "plan", load = function() return require "ltrain.apps.plan.command" end,
    script = true, loop = "fit",
    args = "SCRIPT [--devices N] [--memory SIZE] [--option value]... [-- args]",
    doc = "print what a fit would need of memory and time on N ranks, without training",
    options = PLAN,
    text = "Runs the script up to its first trainer:fit, and makes two steps as one of the ranks, "
      .. "on the\nmeta device: nothing is computed, and no memory is taken. Prints a row for each "
      .. "strategy: bytes of\nparameters, gradients, the state of optimizers, activations and "
      .. "temporaries, the peak, and bytes\nsent in a step; then which "
      .. "strategy to take, and what options would change. Scripts that read\nvalues of tensors in "
      .. "training_step make the steps on the CPU. The exit status is 0, 1 where the\nscript "
      .. "failed, 2 for wrong usage." },
  { name = "inspect", load = function() return require "ltrain.apps.inspect" end,
    args = "FILE", options = {},
    doc = "print the contents of a file or of the folder of a run",
    text = "FILE is a checkpoint, a file of safetensors, lt.save or torch.save, of NumPy (npy, "
      .. "npz), IDX\n(MNIST), an image, a csv, JSON, a tokenizer.json, or the folder of a run "
      .. "or of runs. Of tensors\nit prints names, shapes and dtypes, of a run its options and "
      .. "metrics. Of a csv of more\nthan 4 MiB it reads the first rows; JSON of more than 64 "
      .. "MiB is not listed. `ltrain info FILE` is\nthe same." },
  { name = "plot", load = function() return require "ltrain.apps.runs.plot" end,
    args = "[RUN...] [--option value]...", files = true, options = {
      { name = "metric", type = "string", value = "NAME,...",
        doc = "metrics to plot; by default all" },
      { name = "svg", type = "string", value = "FILE", doc = "write an SVG file instead" },
      { name = "log_y", type = "boolean", value = "true|false", doc = "a logarithmic y axis" },
      { name = "smooth", type = "number", value = "X", min = 0, below = 1,
        doc = "weight of an exponential moving average, from 0 (none) to below 1" },
      { name = "x", type = "string", value = "step|epoch", choices = { "step", "epoch" },
        doc = "the x axis (default step)" },
    },
    doc = "plot the metrics of runs, in the terminal or as an SVG",
    text = "RUN is the folder of a run (ltrain_logs/version_3), or a folder with runs; by default "
      .. "ltrain_logs.\nOne chart per metric, one line per run. Runs that are training, failed or "
      .. "were killed are\nplotted up to their last value. Values that are not finite are "
      .. "omitted." },
  { name = "compare", load = function() return require "ltrain.apps.runs.compare" end,
    args = "[RUN...] [--metric NAME,...]", files = true, options = {
      { name = "metric", type = "string", value = "NAME,...",
        doc = "metrics, by default all; runs are sorted by the first" },
    },
    doc = "print a table of runs: their hyper-parameters and results",
    text = "RUN is as for `ltrain plot`. One row per run: status, time, the hyper-parameters "
      .. "that differ,\nand the last and the best value of each metric (the lowest; for "
      .. "accuracies and the like the\nhighest)." },
  { name = "dashboard", load = function() return require "ltrain.apps.dashboard.command" end,
    args = "[RUN...] [--option value]...", files = true, options = {
      { name = "port", type = "integer", value = "N", min = 1, max = 65535,
        doc = "port of 127.0.0.1; by default the first free one from 8490 on" },
      { name = "dashboard_control", type = "boolean", value = "true|false",
        doc = "show buttons to stop and save runs that were also started with this option" },
      { name = "beside", type = "boolean", value = "true|false",
        doc = "used by --dashboard of `ltrain run`: print the address once" },
    },
    doc = "show runs in a browser on this machine, live or afterwards",
    text = "RUN is as for `ltrain plot`. Prints an address of 127.0.0.1 with a token for one "
      .. "use, and\nruns until Ctrl-C. Only reads the folders of runs; needs libmicrohttpd "
      .. "(libmicrohttpd12)." },
  { name = "sweep", load = function() return require "ltrain.apps.sweep" end,
    args = "SCRIPT --option VALUES... --metric NAME", loose = true, options = {
      { name = "metric", type = "string", value = "NAME",
        doc = "the metric by which trials are ranked" },
      { name = "mode", type = "string", value = "min|max", choices = { "min", "max" },
        doc = "minimize or maximize it; by default inferred from its name" },
      { name = "method", type = "string", value = "grid|random|halving",
        choices = { "grid", "random", "halving" },
        doc = "all combinations, random ones, or successive halving; by default random with "
          .. "ranges or --trials, else grid" },
      { name = "trials", type = "integer", value = "N", min = 1,
        doc = "number of trials (default: the whole grid, or 10)" },
      { name = "jobs", type = "integer", value = "N", min = 1, doc = "trials at a time (default "
        .. "1)" },
      { name = "eta", type = "integer", value = "N", min = 2,
        doc = "for halving: one trial in N continues, for N times as long (default 3)" },
      { name = "dir", type = "string", value = "FOLDER",
        doc = "folder of the sweep; by default ltrain_sweeps/<name of the script>" },
      { name = "sweep_seed", type = "integer", value = "N", min = 0,
        doc = "seed of random values (default 0)" },
      { name = "rehearse", type = "boolean", value = "true|false",
        doc = "run one batch of the first trial first, to find unknown options and a metric that "
          .. "is not logged (default true)" },
      { name = "retry_failed", type = "boolean", value = "true|false",
        doc = "run failed trials again" },
      { name = "dashboard", type = "boolean", value = "true|false",
        doc = "show the trials in a browser while the sweep is running" },
      { name = "dashboard_control", type = "boolean", value = "true|false",
        doc = "let dashboards stop trials or request checkpoints" },
    },
    doc = "train a script with several values of its options",
    text = "All other options are those of the script (lt.args) or of the Trainer: --lr "
      .. "1e-4,1e-3 tries both\nvalues, --width 64..512 draws from a range (log-uniformly if it "
      .. "spans a factor of 10), a single\nvalue applies to all trials; values that contain commas "
      .. "are separated by semicolons. Each trial\nis a process with the folder of a run; "
      .. "sweep.csv in the folder of the sweep lists them. The same\ncommand resumes a sweep, "
      .. "with the missing trials." },
}

return commands
