--- stdlib/callbacks/ModelSummary.lua: prints the layers and their sizes before training.
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local parameter_counts = require "ltrain.core.parameter_counts"
local walk = require "ltrain.core.walk"

local ModelSummary = Callback:extend("ModelSummary")

--- false: it runs on rank 0 only.
ModelSummary.all_ranks = false

local OPTIONS <const> = {
  max_depth = { type = "integer", default = 1, min = -1,
    doc = "depth of the layers that are shown; -1: all, 0: none" },
}

ModelSummary.__arguments = "| max_depth"

--- ModelSummary{max_depth = 2}
function ModelSummary:init(options)
  self.max_depth = config.check(options, OPTIONS, "callbacks.ModelSummary").max_depth
end

local function short(count)
  for _, unit in ipairs { { 1e9, "B" }, { 1e6, "M" }, { 1e3, "K" } } do
    if count >= unit[1] then return ("%.1f %s"):format(count / unit[1], unit[2]) end
  end
  return tostring(count)
end

-- Whether a name has at most so many parts; -1: any.
local function is_within(name, max_depth)
  local at = 0
  for _ = 1, max_depth == -1 and 0 or max_depth do
    at = name:find(".", at + 1, true)
    if not at then return true end
  end
  return max_depth == -1
end

local function rows_of(modules, counts, max_depth)
  local rows = { { "", "name", "type", "params", "mode" } }
  for i, entry in ipairs(modules) do
    if i > 1 and is_within(entry.name, max_depth) then
      rows[#rows + 1] = { tostring(#rows - 1), entry.name, getmetatable(entry.module).__name,
        short(counts[entry.module]), entry.module.training and "train" or "eval" }
    end
  end
  return rows
end

local function layout(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  local lines = {}
  for i, row in ipairs(rows) do
    local cells = {}
    for j, cell in ipairs(row) do
      cells[j] = j < #row and cell .. (" "):rep(widths[j] - #cell) or cell
    end
    lines[i] = table.concat(cells, " | ")
  end
  return lines
end

--- Returns the text that is printed.
function ModelSummary.text(module, max_depth)
  local modules = walk.modules(module)
  local counts, trainable = parameter_counts(modules)
  local lines = layout(rows_of(modules, counts, max_depth))
  local rule = ("-"):rep(#lines[1])
  table.insert(lines, 2, rule)
  lines[#lines + 1] = rule
  local all = counts[module]
  lines[#lines + 1] = ("%-8s trainable"):format(short(trainable))
  lines[#lines + 1] = ("%-8s frozen"):format(short(all - trainable))
  lines[#lines + 1] = ("%-8s in all, %.1f MB"):format(short(all), all * 4 / 1e6)
  return table.concat(lines, "\n") .. "\n"
end

function ModelSummary:on_fit_start(_, module)
  if self.max_depth ~= 0 then console.write(ModelSummary.text(module, self.max_depth)) end
end

return ModelSummary
