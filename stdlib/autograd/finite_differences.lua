-- stdlib/autograd/finite_differences.lua: compares derivatives with central finite differences.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local finite_differences = {}

finite_differences.OPTIONS = {
  eps = { type = "number", default = 1e-6, above = 0, doc = "the step of the differences" },
  atol = { type = "number", default = 1e-5, min = 0, doc = "absolute tolerance" },
  rtol = { type = "number", default = 1e-3, min = 0, doc = "relative tolerance" },
  raise_exception = { type = "boolean", default = true,
    doc = "raise an error that names the first wrong element, or return false and the text" },
}

--- The list of inputs, checked; `who` begins the text of errors.
function finite_differences.list_of(inputs, who)
  if c.is_tensor(inputs) then inputs = { inputs } end
  if type(inputs) ~= "table" or #inputs == 0 then
    errors.blame("%s: inputs must be a tensor or a list: got %s", who, errors.show(inputs))
  end
  local checked = 0
  for i, x in ipairs(inputs) do
    if c.is_tensor(x) and x.requires_grad then
      checked = checked + 1
      if x.dtype ~= "f64" then
        errors.blame("%s: input %d must be f64 for finite differences: it is %s", who, i, x.dtype)
      end
    end
  end
  if checked == 0 then errors.blame("%s: no input requires grad", who) end
  return inputs
end

--- The results of floating dtype, with their places among all.
function finite_differences.results_of(f, inputs, who)
  local results, places = {}, {}
  for i, y in ipairs(table.pack(f(table.unpack(inputs)))) do
    if c.is_tensor(y) and is_float(y.dtype) then
      results[#results + 1], places[#places + 1] = y, i
    end
  end
  if #results == 0 then errors.blame("%s: the function returned no tensor of floats", who) end
  return results, places
end

-- The inputs with an element of one of them moved.
local function moved(inputs, i, element, by)
  local copy = table.move(inputs, 1, #inputs, 1, {})
  local flat = inputs[i]:detach():clone():contiguous():view(-1)
  flat[element] = flat[element] + by
  copy[i] = flat:view(inputs[i].shape):requires_grad_()
  return copy
end

local function numbers(x) return x:detach():to("f64"):flatten():tolist() end

-- quotients[k][j]: the derivative of element j of result k by an element of input i.
local function quotients(f, inputs, i, element, who, eps)
  local up = finite_differences.results_of(f, moved(inputs, i, element, eps), who)
  local down = finite_differences.results_of(f, moved(inputs, i, element, -eps), who)
  local columns = {}
  for k, y in ipairs(up) do
    local a, b, column = numbers(y), numbers(down[k]), {}
    for j = 1, #a do column[j] = (a[j] - b[j]) / (2 * eps) end
    columns[k] = column
  end
  return columns
end

-- rows[k][j][i]: the gradient of element j of result k by input i, as numbers; nil: it is zero.
local function gradients(results, leaves)
  local rows = {}
  for k, y in ipairs(results) do
    rows[k] = {}
    for j = 1, y:numel() do
      local seed = c.zeros(y:numel(), { dtype = y.dtype, device = y.device })
      seed[j] = 1
      local got = y.requires_grad and c.grad(y, leaves, { grad_outputs = seed:view(y.shape),
        retain_graph = true, allow_unused = true }) or {}
      rows[k][j] = {}
      for i in next, leaves do rows[k][j][i] = got[i] and numbers(got[i]) end
    end
  end
  return rows
end

local function check(f, inputs, o, who)
  local results, places = finite_differences.results_of(f, inputs, who)
  local leaves = {}
  for i, x in ipairs(inputs) do
    if c.is_tensor(x) and x.requires_grad then leaves[i] = x end
  end
  local rows = gradients(results, leaves)
  for i, x in ipairs(inputs) do
    for element = 1, leaves[i] and x:numel() or 0 do
      local columns = quotients(f, inputs, i, element, who, o.eps)
      for k, column in ipairs(columns) do
        for j, want in ipairs(column) do
          local row = rows[k][j][i]
          local got = row and row[element] or 0
          local near = math.abs(got - want) <= o.atol + o.rtol * math.abs(want)
          if not near then -- a NaN neither
            return ("%s: the gradient of result %d by input %d is wrong: of element %d by element "
              .. "%d it is %.6g, differences give %.6g"):format(who, places[k], i, j, element, got,
              want)
          end
        end
      end
    end
  end
end

--- Checks f(table.unpack(inputs)): true, or false and what is wrong, which is an error where the
--- options say so.
function finite_differences.check(f, inputs, o, who)
  local message = check(f, inputs, o, who)
  if message == nil then return true end
  if o.raise_exception then errors.blame("%s", message) end
  return false, message
end

return finite_differences
