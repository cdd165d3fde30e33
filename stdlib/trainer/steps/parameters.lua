--- stdlib/trainer/steps/parameters.lua: the parameters of a fit's optimizers when it started, to
--- detect parameters that were added or replaced since.
--
-- One that is replaced, or made later, would not be trained: it is looked for before each step
-- (ranks/replica_checks.lua), at the start of an epoch, and before weights are saved.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local walk = require "ltrain.core.walk"

local parameters = {}

local NAMED <const> = 3 -- of those that no optimizer has

-- The set of the parameters that optimizers step.
local function optimized_parameters(state)
  local set = {}
  for _, optimizer in ipairs(state.optimizers) do
    for _, parameter in ipairs(parameters_of(optimizer)) do set[parameter] = true end
  end
  return set
end

local function warn_not_optimized(state, left, count)
  local shown = table.concat(left, ", ", 1, math.min(#left, NAMED))
  state.trainer:warn(("configure_optimizers: %d of %d parameters that require grad are in no "
    .. "optimizer, and do not train: %s%s: give them to one, or freeze them"):format(#left, count,
    shown, #left > NAMED and ", ..." or ""))
end

--- Remembers the parameters that are there.
function parameters.follow(state)
  local known = { list = {}, by_name = {}, tensors = {} }
  for name, tensor in state.module:named_parameters() do
    known.list[#known.list + 1] = name
    known.by_name[name], known.tensors[tensor] = tensor, true
  end
  state.loop.parameters = known
end

--- Remembers which parameters the optimizers were made for; warns of those that none has.
function parameters.note(state)
  parameters.follow(state)
  local stepped, left, count = optimized_parameters(state), {}, 0
  for name, tensor in state.module:named_parameters() do
    if tensor.requires_grad then
      count = count + 1
      if not stepped[tensor] then left[#left + 1] = name end
    end
  end
  if #left > 0 and #state.optimizers > 0 then warn_not_optimized(state, left, count) end
end

-- `tensor`: the new one, which knows the line of lt.parameter.
local function raise_changed(state, name, what, when, tensor)
  local path = name:gsub("%.(%d+)", function(n) return ("[%d]"):format(tonumber(n) + 1) end)
  errors.blame("%s: parameter %s.%s %s since configure_optimizers%s", when,
    getmetatable(state.module).__name or "Module", path, what,
    tensor and (" (made at %s)"):format(c.runtime.parameter_line(tensor)) or "")
end

--- Raises when a parameter was lost, replaced, or is new and in no optimizer; one that has another
--- name now (nn.utils.prune) is neither. Returns what walk.modules gives, nil before note.
function parameters.check(state, when)
  local known = state.loop.parameters
  if not known then return end
  local seen, stepped = {}, nil
  local tensors, _, modules = walk.tensors(state.module)
  for _, item in ipairs(tensors) do
    if not item.buffer then
      local name, tensor = item.name, item.value
      local before = known.by_name[name]
      seen[name], seen[tensor] = true, true
      if before == nil and not known.tensors[tensor] then
        stepped = stepped or optimized_parameters(state)
        if not stepped[tensor] then raise_changed(state, name, "is new", when, tensor) end
      elseif before and not rawequal(before, tensor) then
        raise_changed(state, name, "was replaced", when, tensor)
      end
    end
  end
  for _, name in ipairs(known.list) do
    local is_there = seen[name] or seen[known.by_name[name]]
    if not is_there then raise_changed(state, name, "was lost", when) end
  end
  return modules
end

return parameters
