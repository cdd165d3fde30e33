--- stdlib/apps/check/checks/layer_shapes.lua: runs the first experiment and reports the shapes of
--- each layer.
local Experiment = require "ltrain.apps.check.experiment"
local c = require "ltrain.c"
local compare = require "ltrain.apps.check.compare"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local MOST <const> = 30 -- rows: deeper modules are left out of a longer table

local function shapes(list)
  local texts = {}
  for i, tensor in ipairs(list) do texts[i] = errors.show_shape(tensor) end
  return table.concat(texts, " ")
end

local function own_parameters(module)
  local count = 0
  for _, parameter in module:named_parameters() do count = count + parameter:numel() end
  return count
end

local function row_of(record, root)
  local count = own_parameters(record.module)
  return { record.module == root and "(the module)" or record.name,
    walk.class_name(record.module), shapes(record.inputs) .. " -> " .. shapes(record.outputs),
    count > 0 and ("%d parameters"):format(count) or "" }
end

-- Calls of modules in the order in which they began, as deep as fits.
local function rows_of(records, root)
  local depth = 0
  repeat
    depth = depth + 1
    local n = 0
    for _, record in ipairs(records) do n = n + (record.depth < depth and 1 or 0) end
    local all = n == #records
  until all or n > MOST
  local deepest, rows = depth, {}
  local function collect(below)
    rows = {}
    for _, record in ipairs(records) do
      if record.outputs and record.depth < below then rows[#rows + 1] = row_of(record, root) end
    end
  end
  collect(deepest)
  if #rows > MOST and deepest > 1 then collect(deepest - 1) end
  return rows
end

-- Whether modules give the same for the same batch again: not where a step changes weights, or
-- something that it keeps.
local function varies(context, state)
  local ok, again = Experiment.try(Experiment.watch, state, context.batch, context.draws)
  if not ok then return true end
  context.again = again
  local records, others = context.first.modules, again.modules
  if #records ~= #others then return true end
  local _ <close> = c.no_grad()
  for i, record in ipairs(records) do
    for k, output in ipairs(record.outputs) do
      local other = others[i].outputs[k]
      if not other or not compare.same(output, other) then return true end
    end
  end
  return false
end

-- How often the parameters have been written to: a step may move them, and put them back.
local function writes_to(module)
  local count = 0
  for _, parameter in module:named_parameters() do count = count + c.runtime.version(parameter) end
  return count
end

return {
  before = function(context, state)
    if not context.draws then context.draws = c.runtime.rng_get() end
    local before = writes_to(state.module)
    local ok, found = Experiment.try(Experiment.watch, state, context.batch, context.draws)
    if not ok then
      context.report:skip("shapes and experiments: training_step raised an error")
      return
    end
    context.first = found
    context.varies = varies(context, state) or writes_to(state.module) ~= before
    local rows = rows_of(found.started, state.module)
    rows.title = ("%s, a batch of two samples:"):format(walk.class_name(state.module))
    if context.uncut or context.batch ~= nil and not context.whole then
      rows.title = ("%s, the first batch:"):format(walk.class_name(state.module))
    end
    for i, row in ipairs(rows) do context.report.layers[i] = row end
    context.report.layers.title = rows.title
  end,
}
