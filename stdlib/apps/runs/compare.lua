--- stdlib/apps/runs/compare.lua: `ltrain compare RUN...`: a table of runs: what differs in their
--- hyper-parameters, what came of them.
local better_mode = require "ltrain.runs.better_mode"
local c = require "ltrain.c"
local chosen_runs = require "ltrain.apps.runs.selected_runs"
local errors = require "ltrain.core.errors"
local is_better = require "ltrain.core.is_better"
local refuse = require "ltrain.cli.refuse"
local runs = require "ltrain.runs"
local tree = require "ltrain.core.tree"

local compare = {}

local function value_text(value)
  if value == nil then return "-" end
  if value ~= value then return "nan" end
  if math.type(value) == "float" then return (("%.5g"):format(value)) end
  if type(value) == "string" then return errors.printable(value) end
  if type(value) == "table" then return c.io.json_encode(value, { plain = true }) end
  return tostring(value)
end

local function seconds_text(seconds)
  if not seconds then return "-" end
  if seconds < 60 then return ("%.1fs"):format(seconds) end
  if seconds < 3600 then return ("%dm%02ds"):format(seconds // 60, seconds % 60 // 1) end
  return ("%dh%02dm"):format(seconds // 3600, seconds % 3600 // 60)
end

-- Hyper-parameters as one level of names: a.b of {a = {b = 1}}.
local function flat(params, before, out)
  for name, value in tree.pairs(params) do
    if type(value) == "table" and #value == 0 and next(value) ~= nil then
      flat(value, before .. tostring(name) .. ".", out)
    else
      out[before .. tostring(name)] = value_text(value)
    end
  end
  return out
end

-- The names whose values are not the same in all runs.
local function differing(params)
  local names, differs = {}, {}
  for _, one in ipairs(params) do
    for name in next, one do names[name] = true end
  end
  for name in tree.pairs(names) do
    for _, one in ipairs(params) do
      if one[name] ~= params[1][name] then
        differs[#differs + 1] = name
        break
      end
    end
  end
  return differs
end

-- Columns: {title, cells...}.
local function columns_of(list, metrics)
  local columns = { { "run" }, { "status" }, { "time" } }
  local params = {}
  for i, run in ipairs(list) do params[i] = flat(run.hparams, "", {}) end
  local labels = chosen_runs.labels(list)
  for i, run in ipairs(list) do
    columns[1][i + 1], columns[2][i + 1] = labels[i], run.status
    columns[3][i + 1] = seconds_text(run.seconds)
  end
  for _, name in ipairs(differing(params)) do
    local column = { name }
    for i in ipairs(list) do column[i + 1] = params[i][name] or "-" end
    columns[#columns + 1] = column
  end
  for _, name in ipairs(metrics) do
    local last, best = { name }, { ("%s %s"):format(better_mode(name), name) }
    for i, run in ipairs(list) do
      last[i + 1] = value_text(runs.last(run, name))
      best[i + 1] = value_text((runs.best(run, name)))
    end
    columns[#columns + 1], columns[#columns + 2] = last, best
  end
  return columns
end

local function width_of(text) return utf8.len(text) or #text end

local function print_table(host, columns)
  local widths = {}
  for k, column in ipairs(columns) do
    widths[k] = 0
    for _, cell in ipairs(column) do widths[k] = math.max(widths[k], width_of(cell)) end
  end
  for row = 1, #columns[1] do
    local cells = {}
    for k, column in ipairs(columns) do
      cells[k] = column[row] .. (" "):rep(widths[k] - width_of(column[row]))
    end
    host.write((table.concat(cells, "  "):gsub("%s+$", "")) .. "\n")
  end
end

-- The list with the best run first, by a metric; runs without it come last.
local function sort(list, name)
  local mode = better_mode(name)
  local order = {}
  for i, run in ipairs(list) do order[run] = i end
  table.sort(list, function(a, b)
    local x, y = runs.best(a, name), runs.best(b, name)
    if x and y and x ~= y then return is_better(mode, x, y) end
    if (x ~= nil) ~= (y ~= nil) then return x ~= nil end
    return order[a] < order[b]
  end)
end

--- The word's main: returns the exit status.
function compare.main(word, parsed, host)
  local _ <close> = c.runtime.plain_locale()
  local function warn(text) host.complain(("ltrain: %s: warning: %s\n"):format(word.name, text)) end
  local list, message = chosen_runs.read({ parsed.script, table.unpack(parsed.args) }, warn)
  if not list then return refuse(host, word, message) end
  local metrics, known = {}, chosen_runs.metrics(list)
  for name in (parsed.options.metric or table.concat(known, ",")):gmatch "[^,]+" do
    local near = errors.did_you_mean(name, known)
    local is_known = false
    for _, one in ipairs(known) do is_known = is_known or one == name end
    if not is_known then
      return refuse(host, word, ("no run has a metric %s%s"):format(errors.show(name), near))
    end
    metrics[#metrics + 1] = name
  end
  if parsed.options.metric then sort(list, metrics[1]) end
  print_table(host, columns_of(list, metrics))
  for _, run in ipairs(list) do
    if run.error then
      host.write(("%s: %s\n"):format(errors.printable(run.path),
        errors.printable(run.error:match "^[^\n]*")))
    end
  end
  return 0
end

return compare
