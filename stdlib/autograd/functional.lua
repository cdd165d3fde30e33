--- stdlib/autograd/functional.lua: lt.autograd.functional, Jacobians and Hessians of functions.
--
--   local lt = require "ltrain"
--   local F = lt.autograd.functional
--   local x = lt.tensor{1.0, 2.0}
--   print(F.jacobian(function(v) return v ^ 2 end, x))
--   -- prints: tensor([[2., 0.],
--   --         [0., 4.]])
--   print(F.hvp(function(v) return (v ^ 3):sum() end, x, lt.ones(2)))
--   -- prints: tensor(9.)	tensor([ 6., 12.])
--
-- As torch.autograd.functional: a function gets `inputs`, a tensor or a list of tensors, and
-- returns one or several tensors, or a list. Results are lists where inputs or outputs are. All
-- take the options `create_graph` (false: results have no history) and `strict` (false: derivatives
-- are zero if a result does not depend on an input; true: this is an error). lt.func has the same
-- derivatives as function transforms.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local derivatives = require "ltrain.autograd.derivatives"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local strict_arity = require "ltrain.core.strict_arity"

local functional = {}

local FLAGS <const> = {
  { "create_graph", type = "boolean", default = false },
  { "strict", type = "boolean", default = false },
}
local PLAIN <const> = config.signature { FLAGS[1], FLAGS[2],
  { "vectorize", instead = "nothing: rows are computed one by one" },
  { "strategy", instead = "nothing: derivatives are by backward" } }
local WITH_V <const> = config.signature { { "v", type = "tensor|table" }, FLAGS[1], FLAGS[2] }

-- A tensor or a list of them as a list, and whether it was one.
local function as_list(value, what, who)
  if c.is_tensor(value) then return { value }, false end
  local is_list = type(value) == "table" and getmetatable(value) == nil and #value > 0
  for k = 1, is_list and #value or 0 do is_list = is_list and c.is_tensor(value[k]) end
  if not is_list then
    errors.blame("%s: %s must be a tensor or a list of tensors: got %s", who, what,
      errors.show(value))
  end
  return table.move(value, 1, #value, 1, {}), true
end

local function refuse(call, text, k)
  errors.blame("%s: %s: it may not be with strict", call.who, text:format(k))
end

-- The function's results at its inputs: call.ys and call.xs, `several` and `many` whether they are
-- lists.
local function begin(who, func, inputs, o)
  local call = { who = who, strict = o.strict, create_graph = o.create_graph, xs = {} }
  local xs
  xs, call.many = as_list(inputs, "inputs", who)
  for k, x in ipairs(xs) do call.xs[k] = derivatives.input(x, o.create_graph, who) end
  local results = table.pack(func(table.unpack(call.xs)))
  local value = results[1]
  if results.n > 1 then value = results end
  call.ys, call.several = as_list(value, "what the function returns", who)
  for k, y in ipairs(o.strict and call.ys or {}) do
    if not y.requires_grad then refuse(call, "result %d does not depend on the inputs", k) end
  end
  return call
end

-- Refuses a function whose result is not one number.
local function check_number(call)
  if call.several or call.ys[1]:numel() ~= 1 then
    errors.blame("%s: the function must return a tensor of one element: got %s", call.who,
      call.several and "several results" or errors.show(call.ys[1]))
  end
end

-- The vectors `v` beside tensors that it must be like; nil where it may be left out.
local function vectors(call, v, likes, many, create_graph)
  if v == nil then
    if #likes == 1 and likes[1]:numel() == 1 then return { c.ones_like(likes[1]) } end
    errors.blame("%s: v is needed where there is more than one number", call.who)
  end
  local list = as_list(v, "v", call.who)
  for k, like in ipairs(likes) do
    if #list ~= #likes or not has_shape(list[k], like) then
      errors.blame("%s: v must be %s: got %s", call.who, many
        and ("a list of %d tensors, the one at %d %s"):format(#likes, k, errors.show_shape(like))
        or "a tensor " .. errors.show_shape(like), #list == #likes and errors.show(list[k])
        or ("%d tensors"):format(#list))
    end
    if not create_graph then list[k] = list[k]:detach() end
  end
  return list
end

-- Zeros for what is nil; with strict an error that says of which.
local function filled(call, list, likes, text)
  local made = {}
  for k, like in ipairs(likes) do
    local got = list[k]
    if call.strict and not got then refuse(call, text, k) end
    if call.strict and call.create_graph and not got.requires_grad then
      refuse(call, "derivative %d does not depend on the inputs", k)
    end
    made[k] = got or c.zeros_like(like)
  end
  return made
end

-- Tensors as they are given back: one or a list, without history unless that is wanted.
local function finished(call, list, many)
  for k, x in ipairs(list) do
    if not call.create_graph then list[k] = x:detach() end
  end
  return many and list or list[1]
end

local USED <const> = "the function does not depend on input %d"

local function jacobian(who, func, inputs, o)
  local call = begin(who, func, inputs, o)
  local function zero(k)
    if call.strict then refuse(call, USED, k) end
  end
  local function check(k, row)
    if call.strict and call.create_graph and not row.requires_grad then
      refuse(call, "the Jacobian by input %d does not depend on the inputs", k)
    end
  end
  local made = {}
  for i, y in ipairs(call.ys) do
    made[i] = finished(call, derivatives.jacobian(y, call.xs, call.create_graph, zero, check),
      call.many)
  end
  return call.several and made or made[1]
end

--- functional.jacobian(func, inputs, create_graph, strict): the derivatives of every element of the
--- results with respect to every element of the inputs: a tensor [y.shape..., x.shape...], a list
--- over inputs or results, or a list over results of lists over inputs. It runs one backward pass
--- for each element of the results.
function functional.jacobian(func, inputs, ...)
  local o = config.arguments("jacobian", PLAIN, ...)
  local _ <close> = c.enable_grad()
  return (jacobian("jacobian", func, inputs, o))
end

--- functional.hessian(func, inputs, create_graph, strict): the second derivatives of a function
--- that returns a scalar: a tensor [x.shape..., x.shape...], or a list of lists.
function functional.hessian(func, inputs, ...)
  local who <const> = "hessian"
  local o = config.arguments(who, PLAIN, ...)
  local _ <close> = c.enable_grad()
  local function slope(...)
    local call = begin(who, func, { ... }, { create_graph = true, strict = o.strict })
    check_number(call)
    local got = derivatives.gradients(call.ys, call.xs, nil, true)
    return filled(call, got, call.xs, USED)
  end
  local _, many = as_list(inputs, "inputs", who)
  local made = jacobian(who, slope, inputs, o)
  return many and made or made[1]
end

--- functional.vjp(func, inputs, v, create_graph, strict): the results, and v times the Jacobian,
--- for each input. v has the shape of the results; it may be omitted if the result is a scalar.
function functional.vjp(func, inputs, ...)
  local o = config.arguments("vjp", WITH_V, ...)
  local _ <close> = c.enable_grad()
  local call = begin("vjp", func, inputs, o)
  local v = vectors(call, o.v, call.ys, call.several, o.create_graph)
  local got = derivatives.gradients(call.ys, call.xs, v, o.create_graph)
  local made = filled(call, got, call.xs, USED)
  return finished(call, call.ys, call.several), finished(call, made, call.many)
end

--- functional.jvp(func, inputs, v, create_graph, strict): the results, and the Jacobian times v,
--- for each result. v has the shape of the inputs. Takes two backward passes.
function functional.jvp(func, inputs, ...)
  local o = config.arguments("jvp", WITH_V, ...)
  local _ <close> = c.enable_grad()
  local call = begin("jvp", func, inputs, o)
  local v = vectors(call, o.v, call.xs, call.many, o.create_graph)
  local got = derivatives.along(call.ys, call.xs, v, o.create_graph, function(slopes)
    for k = 1, call.strict and #call.xs or 0 do
      if not slopes[k] then refuse(call, USED, k) end
    end
  end)
  local made = filled(call, got, call.ys, "result %d is not differentiable twice")
  return finished(call, call.ys, call.several), finished(call, made, call.several)
end

local function vhp(who, func, inputs, ...)
  local o = config.arguments(who, WITH_V, ...)
  local _ <close> = c.enable_grad()
  local call = begin(who, func, inputs, o)
  check_number(call)
  local v = vectors(call, o.v, call.xs, call.many, o.create_graph)
  local slopes = derivatives.gradients(call.ys, call.xs, nil, true)
  local of, given = {}, {}
  for k in ipairs(call.xs) do
    if slopes[k] then of[#of + 1], given[#given + 1] = slopes[k], v[k]
    elseif call.strict then refuse(call, USED, k) end
  end
  local got = derivatives.gradients(of, call.xs, given, o.create_graph)
  local made = filled(call, got, call.xs, "the gradient does not depend on input %d")
  return finished(call, call.ys, false), finished(call, made, call.many)
end

--- functional.vhp(func, inputs, v, create_graph, strict): the result, a scalar, and v times the
--- Hessian, for each input. v has the shape of the inputs.
function functional.vhp(func, inputs, ...) return vhp("vhp", func, inputs, ...) end

--- functional.hvp(func, inputs, v, create_graph, strict): the same, as the Hessian is symmetric.
function functional.hvp(func, inputs, ...) return vhp("hvp", func, inputs, ...) end

return strict_arity.all(functional, "autograd.functional")
