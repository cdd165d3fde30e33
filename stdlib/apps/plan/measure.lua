--- stdlib/apps/plan/measure.lua: what a step takes under a row of a plan.
local pipeline_step = require "ltrain.apps.plan.pipeline_step"
local rehearsal = require "ltrain.apps.plan.rehearsal"
local times = require "ltrain.apps.plan.times"
local traffic = require "ltrain.apps.plan.traffic"

--- measure(row, o, hardware): what rehearsal.run gives of row.make(), with `sent`, and with
--- hardware what times.add adds; of a row with `own`, a Pipeline, what pipeline_step.lua computes.
--- `o`: as of rehearsal.run without a strategy. nil and a message where no step can be made.
return function(row, o, hardware)
  if row.own then return pipeline_step(row, o, hardware) end
  local with = setmetatable({ strategy = row.make() }, { __index = o })
  local found, message = rehearsal.run(with)
  if not found then return nil, message end
  found.sent = traffic.of(found.timeline)
  if not hardware then return found end
  with.strategy = row.make()
  local ok
  ok, message = times.add(found, with, hardware)
  return ok and found or nil, message
end
