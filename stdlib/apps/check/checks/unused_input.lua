--- stdlib/apps/check/checks/unused_input.lua: checks for a loss that does not depend on the data.
local Experiment = require "ltrain.apps.check.experiment"
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"
local visit = require "ltrain.apps.check.source.visit"

-- A batch in which a leaf has other samples, or other values; nil where it cannot be changed.
local function other(context, leaf)
  local n = context.whole and batch_samples.size(context.whole)
  if n and n >= 4 and not context.uncut then
    local of_whole = batch_samples.leaves(context.whole)
    for _, one in ipairs(of_whole) do
      if one.path == leaf.path then
        local rows = batch_samples.rows(one.value, { 3, 4 }, n)
        if not rows:equal(leaf.value) then
          return batch_samples.with(context.batch, leaf.keys, rows)
        end
      end
    end
  end
  local tensor, changed = batch_samples.changed(leaf.value)
  return changed and batch_samples.with(context.batch, leaf.keys, tensor) or nil
end

-- Weights that are all 0 let nothing through at the start: they get values meanwhile. To be closed.
local function without_zeros(module)
  local zeros = {}
  do
    local _ <close> = c.no_grad()
    local _ <close> = c.allow_update()
    for _, parameter in module:named_parameters() do
      if parameter:numel() > 0 and is_float(parameter.dtype) and not parameter:any():item() then
        parameter:normal_(0, 0.1)
        zeros[#zeros + 1] = parameter
      end
    end
  end
  return setmetatable({}, { __close = function()
    local _ <close> = c.no_grad()
    local _ <close> = c.allow_update()
    for _, parameter in ipairs(zeros) do parameter:zero_() end
  end }), #zeros > 0
end

-- Whether the loss is another one with this leaf changed; nil: unknown.
local function depends(context, state, leaf, loss)
  local given = other(context, leaf)
  if not given then return nil end
  local ok, found = Experiment.try(Experiment.watch, state, given, context.draws)
  if not ok or not found.loss then return nil end
  return found.loss:item() ~= loss
end

-- Whether training_step takes no batch at all: then it is meant so.
local function takes_none(context)
  local line = math.tointeger(tonumber((context.step_line or ""):match ":(%d+)$"))
  local none = false
  visit(context.source and context.source.tree or {}, function(node)
    if node.kind == "function" and node.line == line and #node.params < 2 then none = true end
  end)
  return none
end

return {
  before = function(context, state)
    local first = context.first
    if not first or not first.loss or context.broken or context.dead or context.varies
      or takes_none(context) then
      return
    end
    local loss, leaves = first.loss:item(), batch_samples.leaves(context.batch)
    local used, unknown = {}, false
    local draws = c.runtime.rng_get()
    local _ <close>, has_zeros = without_zeros(state.module)
    if has_zeros then
      local ok, found = Experiment.try(Experiment.watch, state, context.batch, context.draws)
      if not ok or not found.loss then return end
      loss = found.loss:item()
    end
    for i, leaf in ipairs(leaves) do
      local answer = depends(context, state, leaf, loss)
      unknown = unknown or answer == nil
      used[#used + 1] = answer and i or nil
    end
    c.runtime.rng_set(draws)
    if unknown or #leaves == 0 then return end
    if #used == 0 then
      context.report:error("input", context.step_line, ("the loss is %.6g whatever the batch "
        .. "contains")
        :format(loss), "compute it from the batch passed to training_step")
    elseif #leaves == 2 and used[1] == 2 then
      context.report:error("input", context.step_line, ("the loss is the same whatever %s %s "
        .. "contains")
        :format(leaves[1].path, "[" .. table.concat(leaves[1].value.shape, ", ") .. "]"),
        "pass the inputs of the batch to the module, and its output to the loss")
    end
  end,
}
