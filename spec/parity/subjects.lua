-- spec/parity/subjects.lua: all that is compared with PyTorch: operations (cases.lua), layers and
-- losses (layers.lua), lt.linalg and lt.fft (rooms.lua), optimizers and schedulers (training.lua);
-- how a case is drawn, and run.
local by_name = require "spec.ops.by_name"
local c = require "ltrain.c"
local cases = require "spec.parity.cases"
local layers = require "spec.parity.layers"
local lt = require "ltrain"
local models = require "spec.parity.models"
local rooms = require "spec.parity.rooms"
local training = require "spec.parity.training"
local written = require "spec.parity.written"

local M = {}

local PARTS <const> = {cases, layers, rooms, models, training}

--- The names of all that has a row, and of what has none and no reason in its part's `except`.
function M.names()
  local have, lack, part_of = {}, {}, {}
  for _, part in ipairs(PARTS) do
    local own, missing = part.names()
    for _, name in ipairs(own) do have[#have + 1], part_of[name] = name, part end
    for _, name in ipairs(missing) do lack[#lack + 1] = name end
  end
  M.part_of = part_of
  return have, lack
end

--- What is left out, with the reasons: "dropout: draws".
function M.left_out()
  local list = {}
  for _, part in ipairs(PARTS) do
    for name, reason in pairs(part.except) do list[#list + 1] = name .. ": " .. reason end
  end
  table.sort(list)
  return list
end

local WIDE <const> = {f32 = true, f64 = true}

-- Second gradients are compared where all is in f64.
local function in_doubles(case)
  for _, x in ipairs(case.inputs) do
    if x.dtype:find "f" and (x.dtype ~= "f64" or x.special) then return false end
  end
  return not case.in_place
end

function M.draw(name)
  local case = M.part_of[name].draw(name)
  case.op = name
  case.second = in_doubles(case) and math.random() < 0.4 or nil
  return case
end

local tools = {}

--- The tensor that a description means, in the layout that it names.
function tools.build(x)
  local t = lt.tensor(x.values, {dtype = "f64"}):reshape(x.shape):to(x.dtype)
  if #x.shape == 0 then t = lt.tensor(x.values[1], {dtype = "f64"}):to(x.dtype) end
  if x.layout == 2 and #x.shape > 1 then
    t = t:transpose(1, #x.shape):contiguous():transpose(1, #x.shape)
  elseif x.layout == 3 then
    t = lt.stack({t, t}, #x.shape + 1):select(-1, 1)
  end
  return t:detach()
end

function tools.described(t)
  return {dtype = t.dtype, shape = t.shape, values = t:detach():to("f64"):flatten():tolist()}
end

--- Whether a gradient by an input is compared. Not where values are special: products of infinities
--- and zeros are taken in another order.
function tools.differentiable(case, x)
  return WIDE[x.dtype] and not x.special and not x.fixed and not case.in_place
end

local function weights_of(y)
  local weights = (lt.arange(1, y:numel() + 1):to("f64") * 0.37):sin():reshape(y.shape)
  return weights:to(y.dtype)
end

-- The gradients by the leaves of the sum of the squares of their gradients, weighed.
local function second_of(y, leaves)
  local wanted, total = {}, nil
  for k, x in ipairs(leaves) do wanted[k] = x.requires_grad and x or nil end
  local grads = lt.grad((y * weights_of(y)):sum(), wanted, {create_graph = true,
    allow_unused = true})
  for k in pairs(wanted) do
    if grads[k] then
      local part = (grads[k] * grads[k] * weights_of(grads[k])):sum()
      total = total and total + part or part
    end
  end
  local again = total and total.requires_grad
    and lt.grad(total, wanted, {allow_unused = true, retain_graph = true}) or {}
  local list = {}
  for k, x in ipairs(leaves) do
    list[k] = wanted[k] and tools.described(again[k] or lt.zeros_like(x)) or false
  end
  return list
end

--- Results, and gradients by the leaves where the first result has one.
function tools.answer(case, results, leaves)
  local answer = {results = {}, grads = {}}
  for k, y in ipairs(results) do answer.results[k] = tools.described(y) end
  local y = results[1]
  if WIDE[y.dtype] and y.requires_grad and y:numel() > 0 then
    if case.second then answer.second = second_of(results[1], leaves) end
    ;(y * weights_of(y)):sum():backward()
    for k, x in ipairs(leaves) do
      local grad = lt.is_tensor(x) and x.grad -- a number has none
      answer.grads[k] = grad and tools.described(grad) or false
    end
  end
  return answer
end

-- The arguments of a call: the inputs, those of `named` by their names, then the others.
local function arguments_of(case, inputs)
  local first, options = #inputs - #(case.named or {}), {}
  for name, value in pairs(case.options) do options[name] = value end
  for k, name in ipairs(case.named or {}) do options[name] = inputs[first + k] end
  local list = {table.unpack(inputs, 1, first)}
  if not case.args then return by_name(case.op, list, options) end
  for _, value in ipairs(case.args) do list[#list + 1] = value end
  if next(options) then list[#list + 1] = options end
  return list
end

-- Arguments that a function of written.lua takes by place are among the options of a sample.
local function by_place(case)
  local row = written[case.op]
  for k, name in ipairs(row and row.places or {}) do
    if case.options[name] ~= nil then
      case.args = case.args or {}
      case.args[k], case.options[name] = case.options[name], nil
    end
  end
  if row and row.dim_first then
    case.dim_first, case.options.dim = case.options.dim, nil
  end
end

-- A method, or a function of a room: "linalg.lu".
local function called(case, inputs)
  local given <const> = arguments_of(case, inputs)
  if case.dim_first then table.insert(given, 2, case.dim_first) end
  if not case.op:find(".", 1, true) then return inputs[1][case.op](table.unpack(given)) end
  local value = lt
  for part in case.op:gmatch "[^.]+" do value = value[part] end
  return value(table.unpack(given))
end

-- Of a call in place the results are those of the call, and what its inputs have become.
local function run_op(case)
  local inputs = {}
  by_place(case)
  for k, x in ipairs(case.inputs) do
    inputs[k] = type(x) == "table" and tools.build(x) or x -- a number is one
    if type(x) == "table" and tools.differentiable(case, x) then inputs[k]:requires_grad_() end
  end
  local results
  if case.list then
    local call = c.runtime.internal[case.op] and c or lt
    results = {call[case.op](inputs, next(case.options) and case.options or nil)}
  else
    results = {called(case, inputs)}
  end
  for k = #results, 1, -1 do -- lists of results
    local list = results[k]
    if type(list) == "table" then
      table.remove(results, k)
      for j = #list, 1, -1 do table.insert(results, k, list[j]) end
    end
  end
  if case.in_place then table.move(inputs, 1, #inputs, #results + 1, results) end
  return tools.answer(case, results, inputs)
end

--- What ltrain makes of a case.
function M.run(case)
  if case.layer then return layers.run(case, tools) end
  if case.room then return rooms.run(case, tools) end
  if case.optimizer or case.scheduler then return training.run(case, tools) end
  return run_op(case)
end

return M
