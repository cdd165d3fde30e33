--- stdlib/cli/words.lua: THE list of command words and of their own options.
--
-- The parser, `--help` and the page of the command line in docs/ are made from these rows. The
-- options of the Trainer are not here: they come from the Trainer's own list.
local words = {}

-- Options of every word that runs a script. `value` is how help writes what follows.
local SCRIPT <const> = {
  { name = "ckpt_path", type = "string", value = "FILE",
    doc = "checkpoint to start from: a file, 'last' or 'best'" },
  { name = "seed", type = "integer", value = "N", min = 0,
    doc = "seed of all random numbers, whatever the script says" },
  { name = "threads", type = "integer", value = "N", min = 1,
    doc = "threads that an operation may use; without it the cores this process may run on" },
  { name = "launcher", type = "string", value = "mpi", choices = { "mpi" },
    doc = "start devices x num_nodes ranks with mpirun; without it they are forked, or are there "
      .. "already (mpirun, srun)" },
  { name = "hosts", type = "string", value = "A,B:2",
    doc = "machines for --launcher mpi, with the ranks of each where they differ" },
  { name = "verbose", type = "boolean", value = "true|false",
    doc = "let every rank speak; the lines of ranks above 0 begin with their numbers" },
  { name = "launcher_args", type = "string", value = "TEXT", doc = "more arguments for mpirun" },
}

local PREDICT <const> = {
  { name = "output", type = "string", value = "FILE",
    doc = "safetensors file that gets the predictions, joined along dim 1, as 'predictions'" },
  table.unpack(SCRIPT),
}

local RETURNS <const> = "The script returns a module, or a table {model =, data =, trainer =}: "
  .. "data is a loader,\na table {train =, val =, test =, predict =} or a DataModule; trainer is "
  .. "a Trainer or its\noptions. "

--- Rows: name, what follows it, a line, the text of its help page, its options, whether a script
--- and options of the Trainer follow, the Trainer's loop that it runs, whether it takes more files
--- than one.
words.list = {
  { name = "run", args = "SCRIPT [--option value]... [-- args]", script = true, loop = "fit",
    doc = "run a script; fit the module that it returns", options = SCRIPT,
    text = RETURNS .. "It is fitted, unless the script called a loop of a Trainer itself. Options "
      .. "of the\nTrainer hold for every Trainer that the script makes." },
  { name = "fit", args = "SCRIPT [--option value]... [-- args]", script = true, loop = "fit",
    doc = "train the module that a script returns", options = SCRIPT,
    text = RETURNS .. "The module is trained; the script must not have run a loop itself." },
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
  { name = "info", args = "[FILE]", options = {},
    doc = "say what this build contains, or what a checkpoint or safetensors file holds",
    text = "Prints version, instruction level, libraries, devices and why others are missing. With "
      .. "a\ncheckpoint: its position, hyper-parameters and tensors; with another safetensors "
      .. "file: its tensors." },
  { name = "hash", args = "FILE... [--all]", files = true, options = {
      { name = "all", type = "boolean", value = "true|false",
        doc = "of checkpoints take the optimizers' state too" },
    },
    doc = "print a SHA-256 of the weights in checkpoints or safetensors files",
    text = "One line a file: the hash, two spaces, the name. It is taken over the names of the "
      .. "weights in\norder, each with dtype, shape and bytes: files that hold the same weights "
      .. "have the same hash,\nwhatever else is in them. lt.hash(net:state_dict()) is the same "
      .. "in a script." },
  { name = "doctor", args = "", options = {
      { name = "figure", type = "boolean", value = "true|false",
        doc = "in a launch of several ranks say the figure alone" },
    },
    doc = "say who launched this process and how fast ranks talk here",
    text = "Prints the launcher and on what evidence, cores for ranks, and for each comm why it is "
      .. "not there\nor how long 64 MB take. Within mpirun or srun it measures the ranks that are "
      .. "there." },
  { name = "diagnose", args = "FOLDER", options = {},
    doc = "say where the ranks of a failed job parted",
    text = "Reads failure.rank<N>.txt and ring.rank<N>.jsonl that the ranks of a job left in the "
      .. "folder of\nits logs (or ./ltrain_failure_<id>), and names the first collective that "
      .. "differs." },
}

words.by_name = {}
for _, row in ipairs(words.list) do words.by_name[row.name] = row end

--- What `ltrain` does without a word: as `lua` does. Rows: how it is written, meaning.
words.plain = {
  { "ltrain", "a prompt; `lt` is there, values are printed" },
  { "ltrain SCRIPT [args]", "run a script as lua does; - is standard input" },
  { "-e CODE", "run the code; `lt` is there; ranks of a launcher are joined for scripts alone" },
  { "-l MODULE", "require the module into a global of its name" },
  { "-i", "the prompt, after what else was asked for" },
  { "-E", "ignore environment variables" },
  { "-W", "turn warnings on" },
  { "-v, --version", "say the version" },
  { "-h, --help", "say this; after a word: what the word does and takes" },
}

--- Exit statuses.
words.statuses = {
  { 0, "done" },
  { 1, "the script raised an error" },
  { 2, "wrong usage, or a bad value of an option: nothing was trained" },
  { 130, "interrupted (Ctrl-C), after saving; 143 for SIGTERM" },
}

return words
