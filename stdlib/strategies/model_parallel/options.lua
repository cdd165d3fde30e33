--- stdlib/strategies/model_parallel/options.lua: options of ModelParallelStrategy: its own, those
--- of DDP, and of sharding.
local ddp_options = require "ltrain.strategies.ddp_options"
local errors = require "ltrain.core.errors"
local sharding_options = require "ltrain.strategies.sharded.options"

local options = {}

local function check_size(value)
  if value ~= "auto" and not (math.type(value) == "integer" and value >= 1) then
    return ("must be a number of ranks or 'auto': got %s"):format(errors.show(value))
  end
end

local ROWS <const> = {
  data_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "groups of ranks that read different samples; 'auto': as many as there are" },
  tensor_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "ranks that divide matrices; 'auto': what data_parallel_size leaves, else the ranks of a "
      .. "machine" },
  context_parallel_size = { type = "integer", default = 1, min = 1,
    doc = "ranks that divide sequences" },
  save_distributed_checkpoint = { type = "boolean",
    doc = "Lightning's name for state_dict_type: true is 'sharded', false 'full'" },
  stage = { type = "integer", default = 0,
    check = function(value) return sharding_options.check_stage(value, 0) end,
    doc = "what is divided among the ranks that have the same parts, as by strategies.Sharded: 0: "
      .. "nothing; 1: the state of optimizers; 2: and gradients; 3: and parameters" },
  expert_parallel_size = { type = "integer", min = 1, doc = "ranks that divide the experts of "
    .. "nn.MoE, along a dim that the mesh has if this is given; tensor_parallel_size is then 1 by "
    .. "default" },
  context_parallel_attention = { type = "string", default = "ring", choices = { "ring", "ulysses" },
    doc = "of divided sequences: keys and values go round a ring, or heads are exchanged" },
  sequence_dim = { type = "integer", default = 2, min = 2,
    doc = "the dim of batches' tensors that context_parallel divides: of those that are longest "
      .. "there" },
}
for name, row in next, sharding_options.rows do ROWS[name] = row end

--- Rows for a subclass: its own and the above.
function options.rows(own)
  local rows = ddp_options.with(ROWS)
  for name, row in next, own or {} do rows[name] = row end
  return rows
end

--- Returns the checked options, and a list of notes to report. `rows`: those of the class `who`.
function options.check(given, rows, who)
  local o, notes = ddp_options.check(given, rows, who)
  sharding_options.check_hook(who, "stage", o)
  return o, notes
end

return options
