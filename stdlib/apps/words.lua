--- stdlib/apps/words.lua: the commands of the apps, and the options that they add to commands which
--- run scripts: rows as in stdlib/cli/words.lua.
local words = {}

words.options = {
  { name = "dashboard", type = "boolean", value = "true|false",
    doc = "show the run, and those beside its folder, in a browser while it goes on" },
  { name = "dashboard_control", type = "boolean", value = "true|false",
    doc = "let dashboards stop the fit and have it save, by a socket in the folder of the run" },
  { name = "debug", type = "boolean|string", value = "[nan]", choices = { true, false, "nan" },
    doc = "open a prompt where an error is raised that ends the script; with nan also where an "
      .. "operation or its derivative makes the first NaN, or backward the first infinity" },
  { name = "debug_rank", type = "integer", value = "K", min = 0,
    doc = "of several ranks only this one stops, at errors and breakpoints" },
}

local CHECK <const> = {
  { name = "config", type = "string", value = "FILE", repeated = "configs",
    doc = "values from a file of JSON, or of Lua that returns a table, as for `ltrain run`" },
  { name = "seed", type = "integer", value = "N", min = 0, doc = "seed of all random numbers" },
  { name = "threads", type = "integer", value = "N", min = 1,
    doc = "threads that an operation may use" },
}

words.list = {
  { name = "check", load = function() return require "ltrain.apps.check.command" end,
    script = true, loop = "fit",
    args = "SCRIPT [--option value]... [-- args]",
    doc = "examine a script without training it: names, shapes, gradients, data", options = CHECK,
    text = "Runs the script as far as its first loop of a Trainer, then one batch of two samples "
      .. "through the\nloop, in one process on the CPU, and reports errors and warnings with their "
      .. "lines, and what could\nnot be checked. Nothing is trained, no file is changed, no "
      .. "program started. The exit status is 0\nwhere nothing was found, 1 where something was, "
      .. "2 for wrong usage, 130 after Ctrl-C." },
  { name = "inspect", load = function() return require "ltrain.apps.inspect" end,
    args = "FILE", options = {},
    doc = "print what a file or the folder of a run contains",
    text = "FILE is a checkpoint, a file of safetensors, lt.save or torch.save, of NumPy (npy, "
      .. "npz), IDX\n(MNIST), an image, a csv, JSON, a tokenizer.json, or the folder of a run "
      .. "or of runs. Of tensors\nit prints names, shapes and dtypes, of a run its options and "
      .. "metrics. Of a csv of more\nthan 4 MiB it reads the first rows, JSON of more than 64 MiB "
      .. "it does not list. `ltrain info FILE` is\nthe same." },
  { name = "plot", load = function() return require "ltrain.apps.runs.plot" end,
    args = "[RUN...] [--option value]...", files = true, options = {
      { name = "metric", type = "string", value = "NAME,...", doc = "which; by default all" },
      { name = "svg", type = "string", value = "FILE", doc = "write an SVG, print nothing" },
      { name = "log_y", type = "boolean", value = "true|false", doc = "a logarithmic y axis" },
      { name = "smooth", type = "number", value = "X", min = 0, below = 1,
        doc = "weight of an exponential moving average, from 0 (none) to below 1" },
      { name = "x", type = "string", value = "step|epoch", choices = { "step", "epoch" },
        doc = "the x axis (default step)" },
    },
    doc = "draw the metrics of runs, in the terminal or as an SVG",
    text = "RUN is the folder of a run (ltrain_logs/version_3), or a folder above some; by default "
      .. "ltrain_logs.\nOne chart a metric, one line a run. Runs that go on, failed or were killed "
      .. "are drawn as far as\nthey came. Values that are not finite are left out." },
  { name = "compare", load = function() return require "ltrain.apps.runs.compare" end,
    args = "[RUN...] [--metric NAME,...]", files = true, options = {
      { name = "metric", type = "string", value = "NAME,...",
        doc = "which, by default all; runs are sorted by the first" },
    },
    doc = "print a table of runs: what differs between them, and what came of it",
    text = "RUN is as for `ltrain plot`. One row a run: status, time, the hyper-parameters that "
      .. "are not the same\nin all, and of each metric the last and the best value (the lowest; "
      .. "the highest of accuracies and\nthe like)." },
  { name = "dashboard", load = function() return require "ltrain.apps.dashboard.command" end,
    args = "[RUN...] [--option value]...", files = true, options = {
      { name = "port", type = "integer", value = "N", min = 1, max = 65535,
        doc = "of 127.0.0.1; by default 8490, or the next one that is free" },
      { name = "dashboard_control", type = "boolean", value = "true|false",
        doc = "show buttons that stop and save runs which were started with this option too" },
      { name = "beside", type = "boolean", value = "true|false",
        doc = "as --dashboard of `ltrain run` starts it: print the address once" },
    },
    doc = "show runs in a browser on this machine, while they go on",
    text = "RUN is as for `ltrain plot`. Prints an address of 127.0.0.1 with a token that is good "
      .. "once, and\nserves it until Ctrl-C. Only reads the folders of runs; needs libmicrohttpd "
      .. "(libmicrohttpd12)." },
  { name = "sweep", load = function() return require "ltrain.apps.sweep" end,
    args = "SCRIPT --option VALUES... --metric NAME", loose = true, options = {
      { name = "metric", type = "string", value = "NAME", doc = "which metric is to be best" },
      { name = "mode", type = "string", value = "min|max", choices = { "min", "max" },
        doc = "whether the lowest or the highest is best; by default as its name has it" },
      { name = "method", type = "string", value = "grid|random|halving",
        choices = { "grid", "random", "halving" },
        doc = "all combinations, random ones, or the best of them for longer; by default random "
          .. "with ranges or --trials, else grid" },
      { name = "trials", type = "integer", value = "N", min = 1,
        doc = "how many (default: the whole grid, or 10)" },
      { name = "jobs", type = "integer", value = "N", min = 1, doc = "at a time (default 1)" },
      { name = "eta", type = "integer", value = "N", min = 2,
        doc = "of halving: one trial in N goes on, for N times as long (default 3)" },
      { name = "dir", type = "string", value = "FOLDER",
        doc = "folder of the sweep; by default ltrain_sweeps/<name of the script>" },
      { name = "sweep_seed", type = "integer", value = "N", min = 0,
        doc = "seed of random values (default 0)" },
      { name = "rehearse", type = "boolean", value = "true|false",
        doc = "run a batch of the first trial before all others, to find options that nobody knows "
          .. "and a metric that is not logged (default true)" },
      { name = "retry_failed", type = "boolean", value = "true|false",
        doc = "run trials again that have failed" },
      { name = "dashboard", type = "boolean", value = "true|false",
        doc = "show the trials in a browser while the sweep goes on" },
      { name = "dashboard_control", type = "boolean", value = "true|false",
        doc = "let dashboards stop trials and have them save" },
    },
    doc = "train a script with several values of its options",
    text = "Every other option is one of the script (lt.args) or of the Trainer: --lr "
      .. "1e-4,1e-3 tries both\nvalues, --width 64..512 draws from a range (in logarithms "
      .. "if it spans a factor of 10), a single\nvalue is for all trials; values with "
      .. "commas in them are separated by semicolons. Each trial is a\nprocess and the "
      .. "folder of a run; sweep.csv in the folder of the sweep is their table. The "
      .. "same\ncommand continues a sweep that was ended, with the trials that are "
      .. "missing." },
}

return words
