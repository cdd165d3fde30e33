--- stdlib/strategies/pipeline/stage_state.lua: which parameters and which state of an optimizer a
--- stage of a pipeline has.
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"

local stage_state = {}

--- The parameters of an optimizer that this rank has, by the Division (nil: all). With `common`
--- those of them that all stages have.
function stage_state.parameters(optimizer, division, common)
  local list = parameters_of(optimizer)
  if not division then return common and {} or list end
  local own = {}
  for _, parameter in ipairs(list) do
    local is_wanted = division:has(parameter)
    if common then is_wanted = division:is_common(parameter) end
    if is_wanted then own[#own + 1] = parameter end
  end
  return own
end

--- Drops what an optimizer keeps for parameters that other ranks have: it was loaded when the
--- module was whole.
function stage_state.drop_foreign(optimizer, division)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if not division:has(parameter) then optimizer.state[parameter] = nil end
  end
end

--- The part of a saved state of an optimizer that is of this rank's parameters.
function stage_state.select(optimizer, saved, division)
  local own = {}
  for key, value in next, saved do own[key] = value end
  own.state = {}
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local name = group.names[i]
      if division:has(parameter) then own.state[name] = saved.state[name] end
    end
  end
  return own
end

--- From here on the state of an optimizer cannot be used: its parts on other ranks are lost. `who`:
--- the strategy, in errors.
function stage_state.lose(optimizer, who)
  local function refuse()
    errors.blame("optim.%s: its state is incomplete: a fit under %s failed, and the other ranks "
      .. "ended with their stages: resume from a checkpoint with ckpt_path, or create a new "
      .. "optimizer", class.of(optimizer).__name, who)
  end
  optimizer.state = setmetatable({}, { __index = refuse, __newindex = refuse, __pairs = refuse })
end

return stage_state
