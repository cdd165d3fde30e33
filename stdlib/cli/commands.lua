--- stdlib/cli/commands.lua: the table of subcommands: names, texts and options.
--
-- The parser, `--help` and the page of the command line in docs/ are made from these rows and those
-- of stdlib/apps/commands.lua. The options of the Trainer come from its own list.
local apps = require "ltrain.cli.apps"
local config_option = require "ltrain.cli.config_option"
local launch_options = require "ltrain.cli.launch_options"

local commands = {}

-- Options of every word that runs a script. `value` is how help writes what follows.
local SCRIPT <const> = {
  config_option,
  { name = "print_config", type = "boolean", value = "true|false",
    doc = "print the configuration of the first loop, as --config takes it, and exit" },
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
    doc = "folder of the run, instead of version_N of its logger" },
  { name = "no_save_code", type = "boolean", value = "true|false",
    doc = "copy neither the script nor its modules into the folder of the run" },
  { name = "verbose", type = "boolean", value = "true|false",
    doc = "print the output of all ranks; lines of ranks above 0 begin with their numbers" },
  { name = "launcher_args", type = "string", value = "TEXT",
    doc = "additional arguments for mpirun" },
  table.unpack(apps.options),
}

-- Of launch: its own, and those of the ranks that it starts.
local LAUNCH <const> = table.move(launch_options.rows, 1, #launch_options.rows, 1, {})
for _, row in ipairs(SCRIPT) do
  if not row.name:find "^launcher" and row.name ~= "hosts" then LAUNCH[#LAUNCH + 1] = row end
end

local PREDICT <const> = {
  { name = "output", type = "string", value = "FILE",
    doc = "safetensors file for the predictions, concatenated along dim 1, as 'predictions'" },
  table.unpack(SCRIPT),
}

local RETURNS <const> = "The script returns a module, or a table {model =, data =, trainer =}: "
  .. "data is a loader,\na table {train =, val =, test =, predict =} or a DataModule; trainer is "
  .. "a Trainer or its\noptions. "

--- Rows: name, what follows it, a line, the text of its help page, its options, whether a script
--- and options of the Trainer follow, the Trainer's loop that it runs, whether it takes more files
--- than one, what loads its module (else one of its name in stdlib/cli).
commands.list = {
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
  { name = "launch", args = "[--nproc_per_node N] SCRIPT [--option value]... [-- args]",
    script = true, loop = "fit", load = function() return require "ltrain.cli.launch" end,
    doc = "run a script on ranks that are started again when one fails or hosts come and go",
    options = LAUNCH,
    text = "To be run on each host of a job: starts N ranks of `ltrain run SCRIPT` there. When a "
      .. "rank fails, or\nhosts come or go, all ranks end, the hosts that are there meet again, "
      .. "and new ranks resume from the\nnewest snapshot or checkpoint. Needs neither MPI nor ssh. "
      .. "The exit status is that of the job.\n\n"
      .. "  ltrain launch --nproc_per_node 2 model.lua\n"
      .. "  ltrain launch --nnodes 1:4 --nproc_per_node 2 --rdzv tcp://host1 model.lua" },
  { name = "info", args = "[FILE]", options = {},
    doc = "print the contents of this build, or of a checkpoint or safetensors file",
    text = "Prints version, instruction level, libraries, devices and why others are missing. With "
      .. "a\ncheckpoint: its position, hyper-parameters and tensors; with another safetensors "
      .. "file: its tensors." },
  { name = "hash", args = "FILE... [--all]", files = true, options = {
      { name = "all", type = "boolean", value = "true|false",
        doc = "include the state of optimizers in checkpoints" },
    },
    doc = "print a SHA-256 of the weights in checkpoints or safetensors files",
    text = "Prints one line per file: the hash, two spaces, the name. The hash is that of the "
      .. "names of the\nweights in order, each with dtype, shape and bytes: files with the same "
      .. "weights have the same hash,\nwhatever else is in them. In a script, "
      .. "lt.hash(net:state_dict()) is the same." },
  { name = "convert", args = "FROM TO [--ranks N]", files = true, options = {
      { name = "ranks", type = "integer", value = "N", min = 1,
        doc = "the number of parts that a file is cut into" },
    },
    doc = "make one file of a sharded checkpoint, or the reverse",
    text = "FROM is a checkpoint in parts (a folder, of state_dict_type = 'sharded'): TO becomes "
      .. "the file that\nstate_dict_type = 'full' would have saved. With --ranks FROM is a file, "
      .. "and TO becomes a folder with\nthe parts of N ranks. One tensor is in memory at a time." },
  { name = "doctor", args = "", options = {
      { name = "figure", type = "boolean", value = "true|false",
        doc = "with several ranks, print only the number" },
    },
    doc = "print the detected launcher, and the speed of communication",
    text = "Prints the detected launcher, the cores for ranks, for each communication backend why "
      .. "it is\nmissing, or the time for 64 MB, and what the PJRT plugin drives. Under mpirun or "
      .. "srun it measures\nthe ranks there." },
  { name = "diagnose", args = "FOLDER", options = {},
    doc = "print the first collective that differs between the ranks of a failed job",
    text = "Reads failure.rank<N>.txt and ring.rank<N>.jsonl, which the ranks of a job wrote into "
      .. "the folder\nof its logs (or ./ltrain_failure_<id>), and prints the first collective that "
      .. "differs; and\nsystem.csv and system.rank<N>.csv of a run, and prints how long each rank "
      .. "takes for a step\nwithout waiting for the others, and which of them are slow." },
}

table.move(apps.rows, 1, #apps.rows, #commands.list + 1, commands.list)
commands.list[#commands.list + 1] = { name = "help", args = "[COMMAND]", options = {},
  doc = "print this help, or that of a command", text = "The same as `ltrain COMMAND --help`." }

commands.by_name = {}
for _, row in ipairs(commands.list) do commands.by_name[row.name] = row end

--- What `ltrain` does without a subcommand: as `lua` does. Rows: how it is written, meaning.
commands.plain = {
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
commands.statuses = {
  { 0, "success" },
  { 1, "the script raised an error" },
  { 2, "wrong usage, or an invalid value of an option: nothing was run" },
  { 130, "interrupted (Ctrl-C), after saving; 143 for SIGTERM" },
}

return commands
