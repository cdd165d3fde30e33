--- stdlib/cli/words.lua: THE list of subcommands and of their own options.
--
-- The parser, `--help` and the page of the command line in docs/ are made from these rows. The
-- options of the Trainer are not here: they come from the Trainer's own list.
local words = {}

-- Files of configuration, for every word that runs a script.
local CONFIG <const> = { name = "config", type = "string", value = "FILE", repeated = "configs",
  doc = "values from a file of JSON, or of Lua that returns a table: groups trainer, model, data "
    .. "and args, or their names; of several files the later ones win, and flags over all" }

-- Options of every word that runs a script. `value` is how help writes what follows.
local SCRIPT <const> = {
  CONFIG,
  { name = "print_config", type = "boolean", value = "true|false",
    doc = "print the configuration of the first loop, as --config takes it, and end" },
  { name = "ckpt_path", type = "string", value = "FILE",
    doc = "checkpoint to start from: a file, 'last' or 'best'" },
  { name = "seed", type = "integer", value = "N", min = 0,
    doc = "seed of all random numbers; overrides the script's" },
  { name = "threads", type = "integer", value = "N", min = 1,
    doc = "threads that an operation may use; by default the cores that this process may run on" },
  { name = "launcher", type = "string", value = "mpi", choices = { "mpi" },
    doc = "start devices x num_nodes ranks with mpirun; by default they are forked, or have been "
      .. "started already (mpirun, srun)" },
  { name = "hosts", type = "string", value = "A,B:2",
    doc = "machines for --launcher mpi, with the number of ranks on each if they differ" },
  { name = "run_dir", type = "string", value = "FOLDER",
    doc = "folder of the run, in place of version_N of its logger" },
  { name = "no_save_code", type = "boolean", value = "true|false",
    doc = "copy neither the script nor its modules into the folder of the run" },
  { name = "verbose", type = "boolean", value = "true|false",
    doc = "print the output of all ranks; lines of ranks above 0 begin with their numbers" },
  { name = "dashboard", type = "boolean", value = "true|false",
    doc = "show the run, and those beside its folder, in a browser while it goes on" },
  { name = "dashboard_control", type = "boolean", value = "true|false",
    doc = "let dashboards stop the fit and have it save, by a socket in the folder of the run" },
  { name = "debug", type = "boolean|string", value = "[nan]", choices = { true, false, "nan" },
    doc = "open a prompt where an error is raised that ends the script; with nan also where an "
      .. "operation or its derivative makes the first NaN, or backward the first infinity" },
  { name = "debug_rank", type = "integer", value = "K", min = 0,
    doc = "of several ranks only this one stops, at errors and breakpoints" },
  { name = "launcher_args", type = "string", value = "TEXT",
    doc = "additional arguments for mpirun" },
}

local PREDICT <const> = {
  { name = "output", type = "string", value = "FILE",
    doc = "safetensors file for the predictions, concatenated along dim 1, as 'predictions'" },
  table.unpack(SCRIPT),
}

local CHECK <const> = {
  CONFIG,
  { name = "seed", type = "integer", value = "N", min = 0, doc = "seed of all random numbers" },
  { name = "threads", type = "integer", value = "N", min = 1,
    doc = "threads that an operation may use" },
}

local RETURNS <const> = "The script returns a module, or a table {model =, data =, trainer =}: "
  .. "data is a loader,\na table {train =, val =, test =, predict =} or a DataModule; trainer is "
  .. "a Trainer or its\noptions. "

--- Rows: name, what follows it, a line, the text of its help page, its options, whether a script
--- and options of the Trainer follow, the Trainer's loop that it runs, whether it takes more files
--- than one.
words.list = {
  { name = "run", args = "[-i] SCRIPT [--option value]... [-- args]", script = true, loop = "fit",
    doc = "run a script, and train the module that it returns", options = SCRIPT,
    text = RETURNS .. "The module is trained, unless the script called a loop of a Trainer itself. "
      .. "Options\nof the Trainer apply to every Trainer that the script creates. "
      .. "With -i\na prompt follows, where model, data and trainer are what was run." },
  { name = "fit", args = "[-i] SCRIPT [--option value]... [-- args]", script = true, loop = "fit",
    doc = "train the module that a script returns", options = SCRIPT,
    text = RETURNS .. "The module is trained; the script must not run a loop itself." },
  { name = "validate", args = "SCRIPT [--ckpt_path FILE] [--option value]... [-- args]",
    script = true, loop = "validate",
    doc = "run the validation loop of the module that a script returns", options = SCRIPT,
    text = RETURNS .. "One pass over the validation data; prints its metrics." },
  { name = "test", args = "SCRIPT [--ckpt_path FILE] [--option value]... [-- args]",
    script = true, loop = "test",
    doc = "run the test loop of the module that a script returns", options = SCRIPT,
    text = RETURNS .. "One pass over the test data; prints its metrics." },
  { name = "predict", script = true, loop = "predict",
    args = "SCRIPT [--ckpt_path FILE] [--output FILE] [--option value]... [-- args]",
    doc = "run the prediction loop of the module that a script returns", options = PREDICT,
    text = RETURNS .. "One pass over the prediction data; prints or writes what predict_step "
      .. "returns." },
  { name = "check", script = true, loop = "fit", main = true,
    args = "SCRIPT [--option value]... [-- args]",
    doc = "examine a script without training it: names, shapes, gradients, data", options = CHECK,
    text = "Runs the script as far as its first loop of a Trainer, then one batch of two samples "
      .. "through the\nloop, in one process on the CPU, and reports errors and warnings with their "
      .. "lines, and what could\nnot be checked. Nothing is trained, no file is changed, no "
      .. "program started. The exit status is 0\nwhere nothing was found, 1 where something was, "
      .. "2 for wrong usage, 130 after Ctrl-C." },
  { name = "info", args = "[FILE]", options = {},
    doc = "print what this build contains, or the contents of a checkpoint or safetensors file",
    text = "Prints version, instruction level, libraries, devices and why others are missing. With "
      .. "a\ncheckpoint: its position, hyper-parameters and tensors; with another safetensors "
      .. "file: its tensors." },
  { name = "inspect", args = "FILE", options = {},
    doc = "print what a file or the folder of a run contains",
    text = "FILE is a checkpoint, a file of safetensors, lt.save or torch.save, of NumPy (npy, "
      .. "npz), IDX\n(MNIST), an image, a csv, JSON, a tokenizer.json, or the folder of a run "
      .. "or of runs. Of tensors\nit prints names, shapes and dtypes, of a run its options and "
      .. "metrics. Of a csv of more\nthan 4 MiB it reads the first rows, JSON of more than 64 MiB "
      .. "it does not list. `ltrain info FILE` is\nthe same." },
  { name = "hash", args = "FILE... [--all]", files = true, options = {
      { name = "all", type = "boolean", value = "true|false",
        doc = "include the state of optimizers in checkpoints" },
    },
    doc = "print a SHA-256 of the weights in checkpoints or safetensors files",
    text = "Prints one line per file: the hash, two spaces, the name. The hash is that of the "
      .. "names of the\nweights in order, each with dtype, shape and bytes: files with the same "
      .. "weights have the same hash,\nwhatever else is in them. In a script, "
      .. "lt.hash(net:state_dict()) is the same." },
  { name = "plot", args = "[RUN...] [--option value]...", files = true, options = {
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
  { name = "compare", args = "[RUN...] [--metric NAME,...]", files = true, options = {
      { name = "metric", type = "string", value = "NAME,...",
        doc = "which, by default all; runs are sorted by the first" },
    },
    doc = "print a table of runs: what differs between them, and what came of it",
    text = "RUN is as for `ltrain plot`. One row a run: status, time, the hyper-parameters that "
      .. "are not the same\nin all, and of each metric the last and the best value (the lowest; "
      .. "the highest of accuracies and\nthe like)." },
  { name = "dashboard", args = "[RUN...] [--option value]...", files = true, options = {
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
  { name = "sweep", args = "SCRIPT --option VALUES... --metric NAME", loose = true, options = {
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
  { name = "doctor", args = "", options = {
      { name = "figure", type = "boolean", value = "true|false",
        doc = "in a launch of several ranks print the number only" },
    },
    doc = "print who launched this process, and how fast ranks communicate",
    text = "Prints the detected launcher, the cores for ranks, and for each comm backend why it is "
      .. "missing,\nor how long 64 MB take. Under mpirun or srun it measures the ranks there." },
  { name = "diagnose", args = "FOLDER", options = {},
    doc = "print the first collective that differs between the ranks of a failed job",
    text = "Reads failure.rank<N>.txt and ring.rank<N>.jsonl, which the ranks of a job wrote into "
      .. "the folder\nof its logs (or ./ltrain_failure_<id>), and prints the first collective that "
      .. "differs." },
}

words.by_name = {}
for _, row in ipairs(words.list) do words.by_name[row.name] = row end

--- What `ltrain` does without a subcommand: as `lua` does. Rows: how it is written, meaning.
words.plain = {
  { "ltrain", "start a prompt; `lt` is predefined, values are printed" },
  { "ltrain SCRIPT [args]", "run a script as lua does; - is standard input" },
  { "-e CODE", "run the code; `lt` is predefined; only scripts join the ranks of a launcher" },
  { "-l MODULE", "require the module into a global with its name" },
  { "-i", "start the prompt after the script or code, also `ltrain run -i SCRIPT`" },
  { "-E", "ignore environment variables" },
  { "-W", "turn warnings on" },
  { "-v, --version", "print the version" },
  { "-h, --help", "print this help; after a command: its help" },
}

--- Exit statuses.
words.statuses = {
  { 0, "success" },
  { 1, "the script raised an error" },
  { 2, "wrong usage, or an invalid value of an option: nothing was run" },
  { 130, "interrupted (Ctrl-C), after saving; 143 for SIGTERM" },
}

return words
