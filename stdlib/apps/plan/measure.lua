--- stdlib/apps/plan/measure.lua: what a step takes under a row of a plan: one with `make`, or with
--- `own`, a Pipeline.
local pipeline_step = require "ltrain.apps.plan.pipeline_step"
local rehearsal = require "ltrain.apps.plan.rehearsal"
local times = require "ltrain.apps.plan.times"
local traffic = require "ltrain.apps.plan.traffic"

local measure = {}

local function with_strategy(row, o)
  return setmetatable({ strategy = row.make() }, { __index = o })
end

--- What rehearsal.run gives under a row, with `sent`. `o`: as of rehearsal.run without a strategy.
--- nil and a message where no step can be made.
function measure.bytes(row, o)
  if row.own then return pipeline_step.bytes(row, o) end
  local found, message = rehearsal.run(with_strategy(row, o))
  if not found then return nil, message end
  found.sent = traffic.of(found.timeline)
  return found
end

--- Adds to that what times.add does. nil and a message where no step can be made.
function measure.add_times(found, row, o, hardware)
  if row.own then return pipeline_step.add_times(found, row, o, hardware) end
  return times.add(found, with_strategy(row, o), hardware)
end

return measure
