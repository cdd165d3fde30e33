--- stdlib/apps/check/checks/monitor.lua: metrics that a callback watches and nothing logs.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"
local visit = require "ltrain.apps.check.source.visit"

-- The line at which the script names the metric for a callback.
local function line_of(context, name)
  local line
  if not context.source then return nil end
  visit(context.source.tree, function(node)
    if node.kind == "item" and node.key and node.key.value == "monitor"
      and node.value.value == name then
      line = line or node.line
    end
  end)
  return line
end

-- What the names of metrics say of the direction in which they are good.
local BETTER <const> = { { "max", { "acc", "f1", "auc", "precision", "recall", "score", "iou" } },
  { "min", { "loss", "error", "perplexity", "mse", "rmse", "mae" } } }

local function direction(name)
  for _, row in ipairs(BETTER) do
    for _, word in ipairs(row[2]) do
      if name:lower():find("%f[%w]" .. word .. "%f[^%w]") or name:lower():find("_" .. word .. "$")
      then
        return row[1]
      end
    end
  end
end

local function check_mode(context, state, callback)
  local name, mode = callback.monitor, callback.mode
  local wanted = type(mode) == "string" and direction(name)
  if wanted and mode ~= wanted then
    context.report:warn("monitor", line_of(context, name)
      or c.runtime.function_line(state.module.training_step),
      ("%s treats the %s '%s' as the best"):format(getmetatable(callback).__name or "a callback",
        mode == "max" and "largest" or "smallest", name), ("write mode = '%s'"):format(wanted))
  end
end

return {
  at_end = function(context, state)
    local metrics = state.trainer.callback_metrics
    local names = tree.keys(metrics)
    for _, callback in ipairs(context.monitors) do
      local name = callback.monitor
      if metrics[name] == nil then
        local near = errors.nearest(name, names)
        context.report:error("monitor", line_of(context, name)
          or c.runtime.function_line(state.module.training_step),
          ("%s monitors '%s', which is not logged; there is: %s"):format(
            getmetatable(callback).__name or "a callback", name,
            #names > 0 and table.concat(names, ", ") or "nothing"),
          near and ("write monitor = '%s'"):format(near)
            or ("log it in validation_step: self:log('%s', value)"):format(name))
      else
        check_mode(context, state, callback)
      end
    end
  end,
}
