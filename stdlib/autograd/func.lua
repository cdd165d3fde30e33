--- stdlib/autograd/func.lua: lt.func, function transforms: gradients, Jacobians, vmap.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(2, 1)
--   local function loss(params, x, y)
--     local out = lt.func.functional_call(net, params, x)
--     return (out - y):square():sum()
--   end
--   local each = lt.func.vmap(lt.func.grad(loss), {false, 1, 1}) -- a gradient for each sample
--   local grads = each(net:state_dict(), lt.ones(5, 2), lt.ones(5, 1))
--   print(table.concat(grads.weight.shape, " "), table.concat(grads.bias.shape, " "))
--   -- prints: 5 1 2	5 1
--
-- As torch.func. Arguments may be tensors or nested tables of tensors; derivatives with respect to
-- a table are a table of the same structure. Positions of arguments (`argnums`) and dims count from
-- 1; a list of positions gives a list of derivatives. For functions that return several values,
-- derivatives are lists. The transforms may be nested. lt.autograd.functional has the same
-- derivatives as values instead of functions.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local derivatives = require "ltrain.autograd.derivatives"
local errors = require "ltrain.core.errors"
local functional_call = require "ltrain.autograd.functional_call"
local nested_tensors = require "ltrain.autograd.nested_tensors"
local strict_arity = require "ltrain.core.strict_arity"
local vmap = require "ltrain.autograd.vmap"

local func = {}

local ARGNUMS <const> = { "argnums", type = "integer|table", default = 1 }
local HAS_AUX <const> = { "has_aux", type = "boolean", default = false }
local PLACES <const> = config.signature { ARGNUMS, HAS_AUX,
  { "chunk_size", instead = "nothing: rows are computed one by one" },
  { "randomness", instead = "nothing: the function is called once" } }
local HESSIAN <const> = config.signature { ARGNUMS }

-- The places of arguments out of `argnums`, of n arguments.
local function places_of(argnums, n, who)
  local places = {}
  for i, k in ipairs(type(argnums) == "table" and argnums or { argnums }) do
    local place = math.type(k) == "integer" and k < 0 and n + k + 1 or k
    if math.type(place) ~= "integer" or place < 1 or place > n then
      errors.blame("%s: argnums must be places of the %d arguments, from 1: got %s", who, n,
        errors.show(k))
    end
    places[i] = place
  end
  return places
end

-- Calls `fn` at `args` (with n), those at `places` replaced by what the derivatives are by. Of the
-- result: `value`, its tensors `ys`, the inputs `trees` by place and `xs`, `aux`, and whether the
-- derivatives have a history: some other tensor that wants a gradient took part.
local function call_of(who, fn, args, places, has_aux)
  local keep = c.is_grad_enabled()
  local call = { who = who, trees = {}, aux = nil }
  local given = table.move(args, 1, args.n, 1, {})
  local _ <close> = c.enable_grad()
  for i, place in ipairs(places) do
    given[place] = nested_tensors.map(args[place], function(x)
      return derivatives.input(x, keep, who)
    end)
    call.trees[i] = given[place]
  end
  call.xs = nested_tensors.leaves(call.trees)
  local results = table.pack(fn(table.unpack(given, 1, args.n)))
  local count = has_aux and results.n - 1 or results.n
  if has_aux then call.aux = results[results.n] end
  call.value = nested_tensors.result(results, count)
  call.ys = nested_tensors.leaves(call.value)
  for _, y in ipairs(call.ys) do
    if not c.is_tensor(y) then
      errors.blame("%s: the function must return tensors: got %s", who, errors.show(y))
    end
  end
  call.recorded = keep and c.runtime.has_other_leaves(call.ys, call.xs)
  return call
end

-- A tree of tensors without the history of this call, unless there is another.
local function given_back(call, value)
  if call.recorded then return value end
  return nested_tensors.map(value, function(x) return c.is_tensor(x) and x:detach() or x end)
end

-- What the list `made`, one for each of call.xs, is for the arguments: a tree, or a list of trees.
local function by_argument(call, made, argnums)
  local k = 0
  local trees = nested_tensors.map(call.trees, function(x)
    k = k + 1
    return made[k] or c.zeros_like(x)
  end)
  return type(argnums) == "table" and trees or trees[1]
end

local function gradient(who, fn, o, ...)
  local args = table.pack(...)
  local call = call_of(who, fn, args, places_of(o.argnums, args.n, who), o.has_aux)
  local y = call.value
  if not c.is_tensor(y) or y.ndim ~= 0 then
    errors.blame("%s: the function must return a tensor without dims, as sum() does: got %s", who,
      errors.show(y))
  end
  local _ <close> = c.enable_grad()
  local made = derivatives.gradients({ y }, call.xs, nil, call.recorded)
  for k in ipairs(call.xs) do
    if made[k] and not call.recorded then made[k] = made[k]:detach() end
  end
  return by_argument(call, made, o.argnums), given_back(call, y), given_back(call, call.aux)
end

local function check_function(fn, who) config.argument(fn, "function", who, "func") end

--- func.grad(func, argnums, has_aux): a function that returns the gradient of `func`, which returns
--- a scalar tensor, with respect to its arguments `argnums` (1). With `has_aux`, func returns an
--- additional value, which is returned after the gradient.
function func.grad(fn, ...)
  local o = config.arguments("grad", PLACES, ...)
  check_function(fn, "grad")
  return function(...)
    local made, _, aux = gradient("grad", fn, o, ...)
    if o.has_aux then return made, aux end
    return made
  end
end

--- func.grad_and_value(func, argnums, has_aux): a function that returns the gradient, the value of
--- `func`, and with `has_aux` its additional value.
function func.grad_and_value(fn, ...)
  local o = config.arguments("grad_and_value", PLACES, ...)
  check_function(fn, "grad_and_value")
  return function(...)
    local made, value, aux = gradient("grad_and_value", fn, o, ...)
    if o.has_aux then return made, value, aux end
    return made, value
  end
end

local function jacobian(who, fn, o)
  check_function(fn, who)
  return function(...)
    local args = table.pack(...)
    local call = call_of(who, fn, args, places_of(o.argnums, args.n, who), o.has_aux)
    local _ <close> = c.enable_grad()
    local made = nested_tensors.map(call.value, function(y)
      local list = derivatives.jacobian(y, call.xs, call.recorded, function() end)
      return given_back(call, by_argument(call, list, o.argnums))
    end)
    if o.has_aux then return made, given_back(call, call.aux) end
    return made
  end
end

--- func.jacrev(func, argnums, has_aux): a function that returns the derivatives of every element of
--- the results with respect to every element of the arguments: tensors [y.shape..., x.shape...], in
--- tables structured like the results and, within them, like the arguments. It runs one backward
--- pass for each element of the results.
function func.jacrev(fn, ...)
  return (jacobian("jacrev", fn, config.arguments("jacrev", PLACES, ...)))
end

--- func.jacfwd(func, argnums, has_aux): the same as jacrev: there is no forward-mode
--- differentiation.
function func.jacfwd(fn, ...)
  return (jacobian("jacfwd", fn, config.arguments("jacfwd", PLACES, ...)))
end

--- func.hessian(func, argnums): jacrev of jacrev.
function func.hessian(fn, ...)
  local o = config.arguments("hessian", HESSIAN, ...)
  local slope = jacobian("hessian", fn, { argnums = o.argnums })
  return (jacobian("hessian", slope, { argnums = o.argnums }))
end

-- Options that come after any number of values: {has_aux = true}.
local function take_options(args)
  local last = args[args.n]
  if type(last) ~= "table" or getmetatable(last) ~= nil or last.has_aux == nil then return {} end
  args.n = args.n - 1
  return config.check(last, { has_aux = HAS_AUX }, "vjp")
end

-- Tensors beside `likes`: tangents or cotangents.
local function check_like(list, likes, who, what)
  for k = 1, math.max(#list, #likes) do
    local got, like = list[k], likes[k]
    if not c.is_tensor(got) or not like or table.concat(got.shape, ",")
      ~= table.concat(like.shape, ",") then
      errors.blame("%s: %s must be tensors as %s are: tensor %d must be %s: got %s", who, what,
        what == "tangents" and "the arguments" or "the results", k,
        like and errors.show_shape(like) or "absent", errors.show(got))
    end
  end
  return list
end

local function any_requires_grad(list)
  for _, x in ipairs(list) do
    if x.requires_grad then return true end
  end
  return false
end

--- func.vjp(func, ...): the results of func(...), and a function that returns the product of a
--- tensor or table like the results with the Jacobian, one value for each argument. With {has_aux =
--- true} as the last argument, func returns an additional value, which comes third.
function func.vjp(fn, ...)
  check_function(fn, "vjp")
  local args = table.pack(...)
  local o, places = take_options(args), {}
  for k = 1, args.n do places[k] = k end
  local call = call_of("vjp", fn, args, places, o.has_aux)
  local function product(...)
    local given = table.pack(...)
    local seeds = nested_tensors.leaves(nested_tensors.result(given, given.n))
    check_like(seeds, call.ys, "vjp", "the vectors")
    local recorded = c.is_grad_enabled() and (call.recorded or any_requires_grad(seeds))
    local _ <close> = c.enable_grad()
    local made = derivatives.gradients(call.ys, call.xs, seeds, recorded)
    local trees = by_argument(call, made, places)
    if not recorded then
      trees = nested_tensors.map(trees, function(x) return x:detach() end)
    end
    return table.unpack(trees, 1, args.n)
  end
  if o.has_aux then return given_back(call, call.value), product, given_back(call, call.aux) end
  return given_back(call, call.value), product
end

local JVP <const> = config.signature { { "has_aux", type = "boolean", default = false } }

--- func.jvp(func, primals, tangents, {has_aux = false}): the results of func at the list of
--- arguments `primals`, the product of the Jacobian and `tangents`, which have the same structure,
--- and with `has_aux` the additional value of func. Takes two backward passes.
function func.jvp(fn, primals, tangents, ...)
  local who <const> = "jvp"
  local o = config.arguments(who, JVP, ...)
  check_function(fn, who)
  local args, places = c.is_tensor(primals) and { primals } or primals, {}
  config.argument(args, "table", who, "primals")
  args.n = #args
  for k = 1, #args do places[k] = k end
  local call = call_of(who, fn, args, places, o.has_aux)
  local directions = check_like(nested_tensors.leaves(tangents), call.xs, who, "tangents")
  local recorded = c.is_grad_enabled() and (call.recorded or any_requires_grad(directions))
  local _ <close> = c.enable_grad()
  local got, k = derivatives.along(call.ys, call.xs, directions, recorded), 0
  local made = nested_tensors.map(call.value, function(y)
    k = k + 1
    return got[k] and (recorded and got[k] or got[k]:detach()) or c.zeros_like(y)
  end)
  if o.has_aux then return given_back(call, call.value), made, given_back(call, call.aux) end
  return given_back(call, call.value), made
end

--- func.vmap(func, in_dims, out_dims, randomness): see lt.vmap.
func.vmap = vmap

--- func.functional_call(module, tensors, args, options): calls the module with the arguments
--- `args`, one or a list, with its parameters and buffers replaced by a table of tensors (or a list
--- of tables) with the names of state_dict. The module is not changed; gradients flow to the given
--- tensors. An unknown name is an error. Options: `strict` (false; true: a missing name is an
--- error), `tie_weights` (true: a tensor that occurs in several places of the module is replaced in
--- all of them).
func.functional_call = functional_call.call

--- func.stack_module_state(modules): the parameters of modules of the same architecture, stacked
--- along a new first dim, and their buffers, as two tables by name: for vmap over functional_call.
func.stack_module_state = functional_call.stack

return strict_arity.all(func, "func")
