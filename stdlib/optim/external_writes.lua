-- stdlib/optim/external_writes.lua: detects writes to an optimizer's parameters between two of its
-- steps.
--
-- `net.w:mul_(0.9)` in a hook, on one rank or on all, spoils a training silently. What is meant is
-- written within lt.allow_update: steps of optimizers, load_state_dict and averaging of weights do.

local c = require "ltrain.c"
local console = require "ltrain.core.console"
local parameters_of = require "ltrain.core.parameters_of"

local external_writes = {}

local function warn(optimizer, name, writer)
  optimizer.changed_by[name] = writer
  local text = ("warning: parameter %s was changed by %s, not by its optimizer; if that is meant, "
    .. "write it within lt.allow_update(function() ... end)"):format(name, writer)
  local report = optimizer._report_external_write or console.say_anywhere
  report(text)
end

-- Takes what was noted; warns of each parameter once. What an optimizer finds at its first step was
-- written between trainings.
local function take(optimizer)
  local first = optimizer.changed_by == nil
  optimizer.changed_by = optimizer.changed_by or {}
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local name = group.names[i]
      local writer = c.runtime.take_external_write(parameter)
      local fresh = writer and not first and not optimizer.changed_by[name]
      if fresh then warn(optimizer, name, writer) end
    end
  end
end

--- Called at each step, before the optimizer changes anything; costs a comparison when there was no
--- such write. From the first step on they are noted, in `optimizer.changed_by` by name.
function external_writes.look(optimizer)
  local count = c.runtime.external_writes()
  if count == optimizer._external_writes_seen then return end
  take(optimizer)
  c.runtime.watch(parameters_of(optimizer))
  optimizer._external_writes_seen = count
end

--- The optimizer has other parameters now.
function external_writes.forget(optimizer)
  optimizer._external_writes_seen = nil
end

return external_writes
