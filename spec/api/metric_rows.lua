-- spec/api/metric_rows.lua: the rows of spec/api/rows.lua that are of metrics.
local lt = require "ltrain"

-- What makes a metric where an option is required.
local MADE <const> = {
  ExactMatch = "{num_labels = 2}", FBetaScore = "{beta = 1}", MinkowskiDistance = "{p = 2}",
}

-- Metrics without options.
local BARE <const> = { Cat = true, Max = true, Mean = true, Min = true, Sum = true, Metric = true }

-- Classes that several metrics are below, and one of these.
local BASES <const> = {
  Aggregation = "Sum", Curve = "ROC", Moments = "R2Score", Pointwise = "LogCoshError",
}

return function(rows)
  local function add(path, class, name)
    local made = ("lt.metrics.%s%s"):format(name, MADE[name] or "()")
    if not BARE[name] and rawget(class, "init") then
      rows.options[path] = ("lt.metrics.%s(OPTIONS)"):format(name)
    end
    if rawget(class, "compute") then
      rows.options[path .. ":compute"] = made .. ":compute(OPTIONS)"
    end
    if rawget(class, "update") then
      rows.extra[path .. ":update"] = made .. ":update(x, x, EXTRA)"
    end
  end
  for _, name in pairs(lt.metrics) do
    if name ~= "Metric" then add("lt.metrics." .. name, lt.metrics[name], name) end
  end
  for base, name in pairs(BASES) do add("base." .. base, lt.metrics[name].super, name) end
end
