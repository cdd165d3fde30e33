--- stdlib/autograd/Function.lua: lt.Function, a function with a custom derivative.
--
--   local lt = require "ltrain"
--   local exp = lt.Function{
--     forward = function(ctx, x)
--       local y = x:exp()
--       ctx:save_for_backward(y)
--       return y
--     end,
--     backward = function(ctx, grad)
--       local y = ctx:saved_tensors()
--       return grad * y
--     end,
--   }
--   local x = lt.tensor({0.0, 1.0}, {requires_grad = true})
--   exp(x):sum():backward()
--   print(x.grad)
--   -- prints: tensor([1.0000, 2.7183])
--
-- `forward` runs without gradients. `backward` gets a gradient for each result of `forward` (zeros
-- where none arrived) and returns one for each argument, nil for those that are not tensors; with
-- `create_graph` the operations in it are differentiated in turn.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local is_float = require "ltrain.core.is_float"

local record = c.runtime.record_function

-- What forward and backward share.
local Context = class.extend(nil, "FunctionContext")

--- Saves tensors for backward; call it in `forward`, at most once: arguments, results, and
--- intermediate tensors. Writing to one of them in place before backward is an error. Other values
--- may be set as fields of `ctx`; writes to tensors in such fields are not detected.
function Context:save_for_backward(...)
  local list = table.pack(...)
  for i = 1, list.n do
    if list[i] ~= nil and not c.is_tensor(list[i]) then
      errors.blame("save_for_backward: needs tensors: argument %d is %s", i, errors.show(list[i]))
    end
  end
  self._saved = list
end

--- Alias of save_for_backward.
Context.save = Context.save_for_backward

--- Returns the saved tensors in the same order; call it in `backward`.
function Context:saved_tensors()
  local list = rawget(self, "_given")
  if not list then errors.blame("saved_tensors: it is for backward: nothing is saved yet") end
  return table.unpack(list, 1, list.n)
end

--- Marks results of `forward` that have no gradient.
function Context:mark_non_differentiable(...)
  local marked = rawget(self, "_constant") or {}
  for _, y in ipairs { ... } do marked[y] = true end
  self._constant = marked
end

local Function = class.extend(nil, "Function")

local OPTIONS <const> = {
  forward = { type = "function", required = true, doc = "forward(ctx, ...) computes the results" },
  backward = { type = "function", required = true,
    doc = "backward(ctx, gradients of the results ...) returns those of the arguments" },
  name = { type = "string", default = "Function", doc = "its name in error messages" },
  once_differentiable = { type = "boolean", default = false,
    doc = "backward is not differentiable: differentiating it is an error" },
}

--- lt.Function{forward = f, backward = g}: returns a callable. `ctx` has save_for_backward,
--- saved_tensors, mark_non_differentiable, and the list `needs_input_grad`: whether the gradient of
--- each argument is needed.
function Function:init(options)
  local o = config.check(options, OPTIONS, "lt.Function")
  for name, value in next, o do self[name] = value end
end

-- The list without its holes, and which place each value came from.
local function dense(list)
  local values, places = {}, {}
  for i = 1, list.n do
    if list[i] ~= nil then
      values[#values + 1], places[#places + 1] = list[i], i
    end
  end
  return values, places
end

-- Gradients that cannot be differentiated once more: by what was saved, what arrived, or (the leaf)
-- in a backward of everything.
local function refuse_more(self, line, gradients, given, saved)
  local values, places = dense(gradients)
  local from = dense(given)
  table.move(saved, 1, #saved, #from + 1, from)
  from[#from + 1] = c.zeros({}, { requires_grad = true })
  local made = { record(self.name, from, values, {}, function()
    errors.blame("%s: its backward is once_differentiable: it has no second derivative (called at "
      .. "%s)", self.name, line)
  end) }
  for k, place in ipairs(places) do gradients[place] = made[k] end
  return gradients
end

local function run_backward(self, ctx, line, given, saved)
  if not self.once_differentiable then
    return table.pack(self.backward(ctx, table.unpack(given, 1, given.n)))
  end
  local list = table.pack(c.no_grad(self.backward, ctx, table.unpack(given, 1, given.n)))
  return c.is_grad_enabled() and refuse_more(self, line, list, given, saved)
    or list
end

-- What one call of it knows when the gradients arrive.
local function derivative(self, ctx, call)
  local line = errors.where():gsub(": $", "")
  local saved_places = call.saved_places
  return function(saved, arrived)
    ctx._given = { n = call.saved_n }
    for k, place in ipairs(saved_places) do ctx._given[place] = saved[k] end
    local given = { n = call.results }
    for k, place in ipairs(call.out_places) do given[place] = arrived[k] end
    local gradients = run_backward(self, ctx, line, given, saved)
    ctx._given = nil
    local list = {}
    for k, place in ipairs(call.in_places) do
      local g = gradients[place]
      if g ~= nil and not (c.is_tensor(g) and has_shape(g, call.shapes[k])) then
        errors.blame("%s: backward returned %s as gradient of argument %d, a tensor [%s] (called "
          .. "at %s)", self.name, errors.show(g), place, table.concat(call.shapes[k].shape, ", "),
          line)
      end
      list[k] = g
    end
    for place = call.arguments + 1, gradients.n do
      if gradients[place] ~= nil then
        errors.blame("%s: backward returned %d gradients, forward had %d arguments (called at %s)",
          self.name, gradients.n, call.arguments, line)
      end
    end
    return list
  end
end

-- Puts the call on the tape: the results, with a history.
local function recorded(self, ctx, args, results)
  local call = { arguments = args.n, results = results.n, in_places = {}, out_places = {},
    shapes = {} }
  local inputs, outputs = {}, {}
  for i = 1, args.n do
    if c.is_tensor(args[i]) then
      inputs[#inputs + 1], call.in_places[#inputs + 1] = args[i], i
      call.shapes[#inputs] = { shape = args[i].shape, ndim = args[i].ndim }
    end
  end
  local constant = rawget(ctx, "_constant") or {}
  for i = 1, results.n do
    local y = results[i]
    if c.is_tensor(y) and is_float(y.dtype) and not constant[y] then
      outputs[#outputs + 1], call.out_places[#outputs + 1] = y, i
    end
  end
  if #outputs == 0 then return results end
  local kept = rawget(ctx, "_saved") or { n = 0 }
  local saved
  saved, call.saved_places = dense(kept)
  call.saved_n = kept.n
  ctx._saved, ctx._constant = nil, nil
  local made = { record(self.name, inputs, outputs, saved, derivative(self, ctx, call)) }
  for k, place in ipairs(call.out_places) do results[place] = made[k] end
  return results
end

-- Whether each argument wants a gradient; and whether any does.
local function wanted(args)
  local list, any = {}, false
  for i = 1, args.n do
    list[i] = c.is_tensor(args[i]) and args[i].requires_grad
    any = any or list[i]
  end
  return list, any
end

function Function:__call(...)
  local args = table.pack(...)
  local ctx, wants, any = Context(), wanted(args)
  ctx.needs_input_grad = wants
  local results = table.pack(c.no_grad(self.forward, ctx, ...))
  if any and c.is_grad_enabled() then recorded(self, ctx, args, results) end
  return table.unpack(results, 1, results.n)
end

return Function
