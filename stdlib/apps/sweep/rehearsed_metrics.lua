--- stdlib/apps/sweep/rehearsed_metrics.lua: how the process of a trial that is rehearsed
--- (apps/sweep/rehearsal) reports the names of its metrics: in a file, which a variable of its
--- environment names.
local c = require "ltrain.c"
local tree = require "ltrain.core.tree"

local rehearsed_metrics = {}

rehearsed_metrics.VARIABLE = "LTRAIN_SWEEP_METRICS"

--- A callback for the Trainers of the process; nil where nobody asks.
function rehearsed_metrics.callback()
  local path = c.runtime.getenv(rehearsed_metrics.VARIABLE)
  if not path then return nil end
  return { on_fit_end = function(_, trainer)
    if not trainer.is_global_zero then return end
    for name in tree.pairs(trainer.callback_metrics) do c.io.append_file(path, name .. "\n") end
  end }
end

return rehearsed_metrics
