-- spec/bench/shards_fit.lua: ltrain's side of ./dev bench shards and parallel.
--
--   ltrain shards_fit.lua ddp|1|2|3|tensor MODEL RANKS WINDOWS STEPS
--
-- Prints of rank 0, which has most: `window SECONDS` of a step, a line for each window of STEPS
-- whole steps; `tensors MIB`, the most at once in these; and `formula MIB`: 16 bytes a parameter,
-- divided as the stage says, with two units of parameters and one of gradients.
local c = require "ltrain.c"
local lt = require "ltrain"
local models = require "spec.bench.torch_models"

local stage, name = math.tointeger(tonumber(arg[1])), arg[2]
local ranks = math.tointeger(tonumber(arg[3]))
local windows, steps = tonumber(arg[4]), tonumber(arg[5])
local is_tensor_parallel = arg[1] == "tensor"
local WARM_UP <const> = 3

lt.seed(1)
c.runtime.set_threads(1)
local clock <const> = c.runtime.clock

local net = models.net(name)
function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function net:configure_optimizers() return models.optimizer(name, self) end

-- The heads and the hidden units of each block are divided.
local function plan()
  local Colwise, Rowwise = lt.parallel.ColwiseParallel, lt.parallel.RowwiseParallel
  return { ["blocks.*.qkv"] = Colwise { blocks = 3 }, ["blocks.*.out"] = Rowwise(),
    ["blocks.*.up"] = Colwise(), ["blocks.*.down"] = Rowwise() }
end

function net:configure_model()
  if not is_tensor_parallel then return end
  for _, block in ipairs(self.blocks) do block.heads = block.heads // ranks end
  lt.parallelize(self, self.device_mesh, plan())
end

local began, most = nil, 0
function net:on_train_batch_end(_, _, index)
  local done = index + 1 - WARM_UP
  if done == 0 then c.runtime.reset_peak_memory() end
  if done > 0 then most = math.max(most, c.runtime.memory().peak_bytes) end -- not of the fit's end
  if done < 0 or done % steps ~= 0 then return end
  local now = clock()
  if began and self.trainer.is_global_zero then
    print(("window %.6g"):format((now - began) / steps))
  end
  began = now
end

local function elements(module)
  local n = 0
  for _, parameter in module:named_parameters() do n = n + parameter:numel() end
  return n
end

function net:on_train_end()
  if not self.trainer.is_global_zero then return end
  local whole, unit = elements(self), elements(self.blocks[1])
  local part = whole / ranks
  local of_stage = { 8 * whole + 8 * part, 4 * whole + 12 * part + 4 * unit,
    16 * part + 12 * unit }
  print(("tensors %.6g"):format(most / 2 ^ 20))
  if is_tensor_parallel then return end
  print(("formula %.6g"):format((stage and of_stage[stage] or 16 * whole) / 2 ^ 20))
end

local Batches = lt.data.Dataset:extend "Batches"
function Batches:init() self.batch = models.batch(name) end
function Batches:__len()
  return (is_tensor_parallel and 1 or ranks) * (WARM_UP + windows * steps)
end
function Batches:get() return self.batch end

lt.Trainer { devices = ranks, max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false,
  strategy = is_tensor_parallel and "model_parallel"
    or stage and lt.strategies.Sharded { stage = stage } or "ddp" }
  :fit(net, lt.data.DataLoader(Batches(), { collate = function(list) return list[1] end }))
