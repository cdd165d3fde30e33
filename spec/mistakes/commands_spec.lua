-- spec/mistakes/commands_spec.lua: what the command line is given wrongly, and what it answers.
--
-- A row is what is wrong, the arguments, the exit status, and the first line on standard error that
-- is not a note of what the command line sets.
local child = require "spec.cli.child"

-- Files of the folder in which the commands run.
local FILES <const> = {
  ["model.lua"] = [[
local lt = require "ltrain"
lt.seed(0)
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(4, 2) end
function Net:training_step(batch)
  local loss = self.fc(batch[1]):mean()
  return loss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = lt.data.TensorDataset(lt.ones(8, 4))
return {model = Net(), data = {train = lt.data.DataLoader(data, {batch_size = 4})},
  trainer = {max_epochs = 1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false}}]],
  ["nothing.lua"] = "local x = 1",
  ["three.lua"] = "return 3",
  ["key.lua"] = "return {module = {training_step = print}}",
  ["unfinished.lua"] = "local x =",
  ["python.lua"] = "local x = 1\nx += 1",
  ["class.lua"] = "local Scaler = require 'ltrain'.data.Scaler\nScaler:fit(3)",
  ["groups.lua"] = "local Adam = require 'ltrain'.optim.Adam\nAdam:zero_grad()",
  ["dot.lua"] = "local lt = require 'ltrain'\nlt.csv.table{{'a', lt.ones(3)}}.write('a.csv')",
  ["names.lua"] = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(4, 2) end
function Net:training_step(batch)
  local loss = self.fc(batch[1]):mean()
  return debug and losss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
if missing or not other then made = 1 end
local data = lt.data.TensorDataset(lt.ones(made and 8 or 4, 4))
return {model = Net(), data = {train = lt.data.DataLoader(data, {batch_size = 4})},
  trainer = {max_epochs = 1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false}}]],
  ["bytes"] = "\200\7\0\0\0\0\0\0{",
  ["empty.ckpt"] = "",
  ["text.ckpt"] = "hello\n",
}

local FIT <const> = "model.lua:13: "

local ROWS <const> = {
  { "a misspelt command", "rnu model.lua", 2,
    "no command and no file is called 'rnu'; did you mean 'run'?" },
  { "help of what is no command", "help rnu", 2,
    "help: there is no command 'rnu'; did you mean 'run'?" },
  { "several hosts without a place to meet", "launch --nnodes 1:4 model.lua", 2,
    "launch: --nnodes: 4 hosts need --rdzv, the place where they meet: tcp://HOST:PORT of one of "
      .. "them, etcd://HOST:PORT, or file:///FOLDER" },
  { "a range of hosts that is none", "launch --nnodes 4:1 model.lua", 2,
    "launch: --nnodes: must be N or MIN:MAX, from 1 to 4096: got '4:1'" },
  { "restarts below none", "launch --max_restarts -1 model.lua", 2,
    "launch: --max_restarts must be at least 0: got -1" },
  { "a store that is none", "launch --rdzv foo://h/job model.lua", 2,
    "launch: foo://h/job: unknown store 'foo': write tcp://, etcd://, etcds:// or file://" },
  { "a store in a folder with a host", "launch --rdzv file://rel/store model.lua", 2,
    "launch: file://rel/store: a folder has three slashes before it: file:///shared/folder" },
  { "an address that is none", "launch --local_addr 999.1.1.1 --nproc_per_node 2 model.lua", 2,
    "launch: --local_addr: 999.1.1.1 is not the name or address of a host" },
  { "a launch of a script that is missing", "launch nowhere.lua", 2,
    "launch: cannot open nowhere.lua: there is no such file on this host" },
  { "an option of torchrun that is none here", "launch --no-python model.lua", 2,
    "launch: --no-python is not an option: it is not needed: ranks run `ltrain run SCRIPT`" },
  { "an option of Horovod and accelerate", "launch --nprocs 2 model.lua", 2,
    "launch: --nprocs is not an option: write --nproc_per_node N" },
  { "an option of the Trainer that launch has itself", "launch --devices 2 model.lua", 2,
    "launch: --devices is not an option: write --nproc_per_node N" },
  { "a launch among ranks of one", "launch --standalone --nnodes 2 --rdzv tcp://a:1 model.lua", 2,
    "launch: --standalone is for one host: leave out --nnodes" },
  { "a misspelt option of ltrain", "--verison", 2,
    "unknown option --verison; did you mean --version?" },
  { "-e without code", "-e", 2, "-e needs an argument" },
  { "run without a script", "run", 2, "run: which script?" },
  { "a script that is missing", "run nowhere.lua", 2,
    "cannot open nowhere.lua: No such file or directory" },
  { "a folder as a script", "run folder", 1, "cannot read folder: Is a directory" },
  { "a command without its script", "run test", 2,
    "cannot open test: No such file or directory: the script to run is missing" },
  { "a misspelt option", "run model.lua --max_epoch 3", 2,
    "run: unknown option --max_epoch; did you mean --max_epochs?" },
  { "an option that is none", "run model.lua --lr 0.1", 2, "run: unknown option --lr" },
  { "an option without a value", "run model.lua --max_epochs", 2,
    "run: --max_epochs needs a value" },
  { "a text in place of a number", "run model.lua --max_epochs x", 2,
    "run: --max_epochs must be an integer: got 'x'" },
  { "a second argument", "run model.lua data.csv", 2,
    "run: unexpected 'data.csv': the script's own arguments come after --" },
  { "an option without its dashes", "run model.lua max_epochs=3", 2,
    "run: unexpected 'max_epochs=3': write --max_epochs=3" },
  { "an option with one dash", "run model.lua -max_epochs 3", 2,
    "run: unknown option -max_epochs; did you mean --max_epochs?" },
  { "a checkpoint as the script", "run bytes", 1,
    "bytes:1: unexpected symbol near '<\\200>'; outside of strings and comments a Lua script is "
    .. "plain ASCII text: letters a to z, digits, _, and \" or ' around strings" },
  { "an empty checkpoint", "inspect empty.ckpt", 1, "inspect: empty.ckpt is empty" },
  { "an argument of a command that takes none", "doctor quickly", 2,
    "doctor: unexpected 'quickly'" },
  { "a script as a checkpoint", "hash model.lua", 1,
    "hash: model.lua is not a safetensors file: it does not begin with the size of a header" },
  { "devices that are none", "run model.lua --devices x", 2,
    "Trainer: devices = 'x': must be a number of ranks or 'auto'" },
  { "no devices", "run model.lua --devices 0", 2,
    "Trainer: devices = 0: must be a number of ranks or 'auto'" },
  { "an accelerator that is none", "run model.lua --accelerator gpuu", 2,
    "Trainer: accelerator = 'gpuu': must be 'auto', 'cpu', 'gpu' (or 'cuda') or the kind of a "
    .. "backend in LTRAIN_BACKENDS; did you mean 'gpu'?" },
  { "a precision that is none", "run model.lua --precision fp16", 2,
    "Trainer: precision = 'fp16': must be one of 16-mixed, 16-true, 32-true, 64-true, "
    .. "bf16-mixed, bf16-true, fp8-mixed, transformer-engine, transformer-engine-float16" },
  { "machines without a launcher", "run model.lua --num_nodes 2", 2,
    "Local: num_nodes = 2, but no launcher started ranks on 2 machines: mpirun -n 2 ltrain run, "
    .. "or srun --mpi=pmix" },
  { "a checkpoint that is not there", "run model.lua --ckpt_path none.ckpt", 1,
    FIT .. "fit: cannot load the checkpoint: load: cannot open none.ckpt: No such file or "
    .. "directory" },
  { "a checkpoint that is a text", "run model.lua --ckpt_path text.ckpt", 1,
    FIT .. "fit: cannot load the checkpoint: load: text.ckpt is not a safetensors file: only 6 "
    .. "bytes" },
  { "the last checkpoint without runs", "run model.lua --ckpt_path last", 0,
    "warning: ckpt_path = 'last': nothing was saved yet: fit starts from the beginning" },
  { "fit of a script that returns nothing", "fit nothing.lua", 1,
    "nothing.lua:1: fit: nothing to fit: it returned nothing" },
  { "options for a script without a Trainer", "run nothing.lua --max_epochs 3", 1,
    "nothing.lua:1: run: --max_epochs is for a Trainer: the script made none and returned "
    .. "nothing" },
  { "a script that returns a number", "run three.lua", 1,
    "three.lua:1: run: nothing to fit: it returned 3" },
  { "a model under another name", "run key.lua", 1,
    "key.lua:1: run: unknown option 'module'; did you mean 'model'?" },
  { "a script that ends early", "run unfinished.lua", 1,
    "unfinished.lua:1: unexpected symbol near <eof>" },
  { "a script with a line of Python", "run python.lua", 1,
    "python.lua:2: syntax error near '+'; there is no +=: write x = x + ..." },
  { "test of a model without test_step", "test model.lua --ckpt_path text.ckpt", 1,
    FIT .. "test: Net has no test_step: define function Net:test_step(batch)" },
  { "a seed that is a text", "run model.lua --seed x", 2,
    "run: --seed must be an integer: got 'x'" },
  { "a method of a class", "class.lua", 1,
    "class.lua:2: Scaler is a class: make an object first: local x = Scaler(...)" },
  { "the class of an optimizer", "groups.lua", 1,
    "groups.lua:2: Adam is a class: make an object first: local x = Adam(...)" },
  { "a method called with a dot", "dot.lua", 1,
    "dot.lua:2: a method was called with a dot: write x:name(...): got 'a.csv' for the object" },
  { "a name that nothing defines", "run names.lua", 0,
    "warning: names.lua:6: nothing is called 'losss', it is nil: write loss" },
  { "check without a script", "check", 2, "check: which script?" },
  { "inspect of a file that is missing", "inspect none.ckpt", 1,
    "inspect: cannot open none.ckpt: No such file or directory" },
  { "a dashboard of runs that are missing", "dashboard nowhere", 1,
    "dashboard: nowhere: there is no such folder" },
  { "a port that is a text", "dashboard --port x", 2,
    "dashboard: --port must be an integer: got 'x'" },
  { "a sweep without a metric", "sweep model.lua", 2,
    "sweep: --metric is needed: which metric is to be best?" },
  { "plot without runs", "plot", 1, "plot: which runs? (there is no folder ltrain_logs here)" },
  { "runs to compare that are missing", "compare a b", 1, "compare: a: there is no such folder" },
  { "a hash of a file that is missing", "hash none", 1,
    "hash: cannot open none: No such file or directory" },
}

-- The first line that says what is wrong.
local function said(err)
  for line in err:gmatch "ltrain: ([^\n]*)\n" do
    if not line:find "%(command line" and not line:find "^seed " then return line end
  end
end

describe("a mistake on the command line:", function()
  local folder <const> = child.folder()
  for name, text in pairs(FILES) do child.write(folder .. "/" .. name, text) end
  assert(os.execute(("mkdir '%s/folder'"):format(folder)))
  teardown(function() child.remove(folder) end)

  for _, row in ipairs(ROWS) do
    local what, words, status, expected = table.unpack(row)
    it(what, function()
      local arguments = {}
      for word in words:gmatch "%S+" do arguments[#arguments + 1] = word end
      local code, _, err = child.run(arguments, { dir = folder })
      assert.equal(expected, said(err))
      assert.equal(status, code, err)
    end)
  end
end)
