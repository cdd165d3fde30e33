--- stdlib/apps/runs/selected_runs.lua: the runs that a command selects by folders, or by folders
--- that contain runs.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local runs = require "ltrain.runs"
local version = require "ltrain.loggers.version"

local chosen_runs = {}

--- The runs of the paths, in their order; without one those below ltrain_logs. Nil and what is
--- wrong. A folder that is named itself must be readable; of those found below one the others are
--- left out, with warn(text).
function chosen_runs.read(paths, warn)
  local list = {}
  if #paths == 0 then
    if not c.io.kind(version.NAME) then
      return nil, ("which runs? (there is no folder %s here)"):format(version.NAME)
    end
    paths = { version.NAME }
  end
  for _, path in ipairs(paths) do
    local found, message = runs.find(path)
    if not found then return nil, message end
    for _, one in ipairs(found) do
      local run, why = runs.read(one)
      if not run and #found == 1 then return nil, why end
      if run then list[#list + 1] = run else warn(why) end
    end
  end
  return list
end

-- The number of letters that all paths begin with, up to a "/".
local function shared(paths)
  local n = #paths[1]
  for _, path in ipairs(paths) do
    n = math.min(n, #path)
    while paths[1]:sub(1, n) ~= path:sub(1, n) do n = n - 1 end
  end
  return #(paths[1]:sub(1, n):match "^.*/" or "")
end

--- Short names of runs: their paths, without what all have in common.
function chosen_runs.labels(list)
  local paths, labels = {}, {}
  for i, run in ipairs(list) do paths[i] = run.path end
  local n = #list > 1 and shared(paths) or 0
  for i, path in ipairs(paths) do
    labels[i] = errors.printable(n < #path and path:sub(n + 1) or path)
  end
  return labels
end

--- All names of metrics of runs, sorted.
function chosen_runs.metrics(list)
  local seen, names = {}, {}
  for _, run in ipairs(list) do
    for _, name in ipairs(run.names) do
      if not seen[name] then seen[name], names[#names + 1] = true, name end
    end
  end
  table.sort(names)
  return names
end

return chosen_runs
