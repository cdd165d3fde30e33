--- stdlib/apps/check/checks/retained_graphs.lua: checks for autograd graphs that a script retains
--- from step to step (a memory leak).
--
-- Lists that grow by tensors with their graphs, and sums: an operation of the second experiment on
-- what the first has computed. A sum that the loss depends on is of checks/learnability.lua:
-- backward raises an error there.
local c = require "ltrain.c"
local walk = require "ltrain.core.walk"

local identity <const> = c.runtime.identity
local GROWTH <const> = 4 -- tensors more than at the first step

local function has_graph(tensor)
  return tensor and tensor.requires_grad and not c.is_parameter(tensor)
end

-- How many tensors with a graph each list of a module or a local variable has, by its path.
local function count(context, root)
  local counts = {}
  local function add(value_of, path, depth)
    if c.is_tensor(value_of) then
      if has_graph(value_of) then counts[path] = (counts[path] or 0) + 1 end
    elseif type(value_of) == "table" and getmetatable(value_of) == nil and depth < 4 then
      for _, value in next, value_of do add(value, path, depth + 1) end
    end
  end
  for _, entry in ipairs(walk.modules(root)) do
    for key, value in next, entry.module do
      if type(key) == "string" and type(value) == "table" and getmetatable(value) == nil then
        add(value, (entry.name == "" and "self" or entry.name) .. "." .. key, 0)
      end
    end
  end
  for k = 1, math.huge do -- local variables of the script that its step uses
    local name, value = context.host.upvalue(root.training_step, k)
    if not name then break end
    if type(value) == "table" and getmetatable(value) == nil then add(value, name, 0) end
  end
  return counts
end

-- The tensors with a graph that an experiment has computed.
local function computed(found)
  local set = {}
  for _, call in ipairs(found.calls) do
    for _, output in ipairs(call.outputs) do
      if has_graph(output) then set[output] = true end
    end
  end
  return set
end

-- The first operation of the second experiment on what the first has computed, and the storages of
-- all that is computed from it; nil without one, or where the loss is among them.
local function sum_of(context)
  local older, storages, first = computed(context.first), {}, nil
  for _, call in ipairs(context.again.calls) do
    local output, from = call.outputs[1], false
    for _, input in ipairs(call.inputs) do from = from or older[input] ~= nil end
    if from and has_graph(output) then
      first = first or call
      older[output], storages[identity(output)] = true, true
    end
  end
  local loss = context.again.loss
  return not (loss and storages[identity(loss)]) and first or nil, storages
end

-- The field of a module with one of the storages.
local function field_of(root, storages)
  for _, entry in ipairs(walk.modules(root)) do
    for key, value in next, entry.module do
      if c.is_tensor(value) and storages[identity(value)] and type(key) == "string" then
        return (entry.name == "" and "self" or entry.name) .. "." .. key
      end
    end
  end
end

-- In manual optimization a loss may be summed over batches until its backward.
local function check_sums(context, state)
  local has_backward = state.automatic or next(context.gradients) ~= nil
  if not context.again or not has_backward then return end
  local call, storages = sum_of(context)
  if not call then return end
  context.report:warn("kept", call.line, ("%s keeps the graphs of all earlier steps, and memory "
    .. "grows with each step: %s of a result of an earlier step"):format(
    field_of(state.module, storages) or "a variable", call.op),
    "add loss:detach(), or the number loss:item()")
end

return {
  before = function(context, state)
    context.kept = context.kept or count(context, state.module)
    check_sums(context, state)
  end,
  after = function(context, state)
    if not context.kept then return end
    for path, now in next, count(context, state.module) do
      local first = context.kept[path] or 0
      if now - first >= GROWTH then
        context.report:warn("kept", context.step_line, ("%s grows with each step, and with it "
          .. "the memory: from %d to %d tensors with their graphs"):format(path, first, now),
          "keep loss:detach(), or loss:item()")
      end
    end
  end,
}
