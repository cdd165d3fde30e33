--- stdlib/strategies/model_parallel/checks.lua: refuses what is not possible where ranks have parts
--- of a module, of its gradients or of the state of its optimizers.
local check_elementwise = require "ltrain.strategies.check_elementwise"
local class = require "ltrain.core.class"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"

local checks = {}

--- Refuses callbacks that read on one rank what ranks have parts of. `who`: the strategy, in
--- errors; `divides`: parameters are cut; `stage`: of sharding.
function checks.callbacks(who, list, divides, stage)
  local divided = { gradients = divides or stage > 1, parameters = divides or stage > 2 }
  for _, callback in ipairs(list) do
    local reads = callback.reads_whole or divides and callback.averages_parameters and "parameters"
    if reads and divided[reads] then
      errors.blame("%s: the callback %s needs whole %s, of which a rank has parts: remove it", who,
        class.of(callback).__name, reads)
    end
  end
end

--- Refuses what needs whole gradients. The module has its trainer.
function checks.sharding(who, module, stage)
  if stage > 1 and module.trainer.options.deterministic == "world" then
    errors.blame("%s: deterministic = 'world' needs whole gradients, which stage = %d divides: "
      .. "write stage = 1", who, stage)
  elseif stage > 1 and module.configure_ddp then
    errors.blame("%s: configure_ddp of the module reduces whole gradients, which stage = %d "
      .. "divides: write stage = 1, or remove it", who, stage)
  end
end

--- Refuses an optimizer that computes with whole parameters, of which it has parts.
function checks.optimizer(who, optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if cuts.of(parameter) then return check_elementwise(optimizer, who, "parts") end
  end
end

return checks
