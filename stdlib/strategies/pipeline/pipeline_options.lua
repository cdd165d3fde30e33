--- stdlib/strategies/pipeline/pipeline_options.lua: options of Pipeline: its own, those of DDP, and
--- of divided sequences those of ModelParallelStrategy.
local ModelParallelStrategy = require "ltrain.strategies.ModelParallelStrategy"
local ddp_options = require "ltrain.strategies.ddp_options"
local errors = require "ltrain.core.errors"
local schedules = require "ltrain.strategies.pipeline.schedules"
local sharding_options = require "ltrain.strategies.sharded.options"

local pipeline_options = {}

local function check_size(value)
  if value ~= "auto" and not (math.type(value) == "integer" and value >= 1) then
    return ("must be a number or 'auto': got %s"):format(errors.show(value))
  end
end

local function check_split(value)
  local before = 0
  for _, after in ipairs(value) do
    if math.type(after) ~= "integer" or after <= before then
      return ("must be a list of growing numbers of blocks: got %s"):format(errors.show(after))
    end
    before = after
  end
end

local ROWS <const> = {
  stages = { type = "integer|string", default = "auto", check = check_size,
    doc = "ranks of a pipeline; 'auto': all, or what data_parallel_size leaves" },
  data_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "pipelines, which read different samples; 'auto': as many as there are ranks for" },
  tensor_parallel_size = { type = "integer", default = 1, min = 1,
    doc = "ranks of a stage that divide its matrices: see lt.parallelize" },
  sharding_stage = { type = "integer", default = 0,
    check = function(value) return sharding_options.check_stage(value, 0) end,
    doc = "what is divided among the ranks that have the same stage, as by strategies.Sharded: 0: "
      .. "nothing; 1: the state of optimizers; 2: and gradients; 3: and parameters of blocks" },
  microbatches = { type = "integer", default = 8, min = 1,
    doc = "parts of each batch that a rank reads, cut along dim 1" },
  schedule = { type = "string", default = "1f1b", choices = schedules.names,
    doc = "order of forward and backward passes" },
  chunks = { type = "integer", default = 2, min = 2,
    doc = "schedule = 'interleaved': rows of blocks that each rank has" },
  module = { type = "string",
    doc = "name of the Sequential or ModuleList that is divided; by default the one with most "
      .. "parameters" },
  split = { type = "table", check = check_split,
    doc = "after which blocks the stages end, but the last: {4, 8}; by default see balance" },
  balance = { type = "string", default = "time", choices = { "time", "parameters" },
    doc = "what stages have equally much of: measured time of their blocks, or parameters" },
}

for _, name in ipairs { "context_parallel_size", "context_parallel_attention", "sequence_dim" } do
  ROWS[name] = ModelParallelStrategy.options[name]
end
for name, row in next, sharding_options.rows do ROWS[name] = row end

--- The rows, for the page of strategies.
pipeline_options.rows = ddp_options.with(ROWS)

--- Returns the checked options, and a list of notes to report.
function pipeline_options.check(options, where)
  local o, notes = ddp_options.check(options, pipeline_options.rows, where)
  sharding_options.check(where, o)
  sharding_options.check_hook(where, "sharding_stage", o)
  return o, notes
end

return pipeline_options
