--- stdlib/callbacks/ModelSummary.lua: prints the layers and their sizes before training.
--
-- If the module has the field example_input_array (a tensor, or a list of the arguments of
-- forward), forward runs once in evaluation mode, and the table shows the input and output sizes of
-- each layer and its floating-point operations (see nn.utils.measure_flops), like Lightning's.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local parameter_counts = require "ltrain.core.parameter_counts"
local walk = require "ltrain.core.walk"

local ModelSummary = Callback:extend("ModelSummary")

--- false: it runs on rank 0 only.
ModelSummary.all_ranks = false

local OPTIONS <const> = {
  max_depth = { type = "integer", default = 1, min = -1,
    doc = "maximum depth of the layers shown; -1: all, 0: none" },
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

-- "[2, 3]"; of several tensors "[[2, 3], [4]]"; "?": unknown.
local function size_text(sizes)
  if sizes == nil then return "?" end
  local parts = {}
  for i, one in ipairs(sizes) do
    parts[i] = type(one) == "table" and size_text(one) or ("%d"):format(one)
  end
  return "[" .. table.concat(parts, ", ") .. "]"
end

local UNCALLED <const> = { flops = 0 }

-- `measured`: what flops.measure found by module; nil: forward was not run.
local function rows_of(modules, counts, max_depth, measured)
  local rows = { { "", "name", "type", "params", "mode" } }
  if measured then table.move({ "FLOPs", "in sizes", "out sizes" }, 1, 3, 6, rows[1]) end
  for i, entry in ipairs(modules) do
    if i > 1 and is_within(entry.name, max_depth) then
      local row = { tostring(#rows - 1), entry.name, getmetatable(entry.module).__name,
        short(counts[entry.module]), entry.module.training and "train" or "eval" }
      if measured then
        local one = measured[entry.module] or UNCALLED
        row[6], row[7], row[8] = short(one.flops), size_text(one.input), size_text(one.output)
      end
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- The modes of all modules, which they have again when what this returns is closed.
local function keep_modes(modules)
  local before = {}
  for _, entry in ipairs(modules) do before[entry.module] = entry.module.training end
  return setmetatable({}, { __close = function()
    for module, training in next, before do rawset(module, "training", training) end
  end })
end

-- To be closed: sets the position of random numbers back.
local function keep_draws()
  local draws <const> = c.runtime.rng_get()
  return setmetatable({}, { __close = function() c.runtime.rng_set(draws) end })
end

-- Forward of the module's example_input_array in evaluation mode: what flops.measure returns; nil
-- without one. Draws that follow are what they would have been.
local function run_example(module, modules, to_input)
  local example = module.example_input_array
  if example == nil then return nil end
  local is_list = type(example) == "table" and getmetatable(example) == nil and #example > 0
  local list = is_list and example or { example }
  local arguments = {}
  for i, one in ipairs(list) do arguments[i] = to_input and to_input(one) or one end
  local _ <close> = keep_modes(modules)
  local _ <close> = c.no_grad()
  local _ <close> = keep_draws()
  module:eval()
  local flops = require "ltrain.nn.flops" -- by those who ask for it alone
  local total, measured = flops.measure(function() module(table.unpack(arguments)) end, module)
  return measured, total
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

--- Returns the text that is printed. `to_input(x)` (optional): converts an element of
--- example_input_array to an argument of forward.
function ModelSummary.text(module, max_depth, to_input)
  local modules = walk.modules(module)
  local counts, trainable = parameter_counts(modules)
  local measured, total = run_example(module, modules, to_input)
  local lines = layout(rows_of(modules, counts, max_depth, measured))
  local rule = ("-"):rep(#lines[1])
  table.insert(lines, 2, rule)
  lines[#lines + 1] = rule
  local all = counts[module]
  lines[#lines + 1] = ("%-8s trainable"):format(short(trainable))
  lines[#lines + 1] = ("%-8s frozen"):format(short(all - trainable))
  lines[#lines + 1] = ("%-8s in all, %.1f MB"):format(short(all), all * 4 / 1e6)
  if total then lines[#lines + 1] = ("%-8s FLOPs of the example input"):format(short(total)) end
  return table.concat(lines, "\n") .. "\n"
end

function ModelSummary:on_fit_start(trainer, module)
  if self.max_depth == 0 then return end
  local strategy = trainer.strategy
  local _ <close> = strategy.precision:forward_context()
  console.write(ModelSummary.text(module, self.max_depth, function(x)
    return strategy:batch_to_device(strategy.precision:convert_input(x))
  end))
end

return ModelSummary
