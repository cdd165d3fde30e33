-- stdlib/nn/module_hooks.lua: forward and backward hooks of modules (register_forward_hook, ...).
--
-- They run where the module is called, `layer(x)`, not where its forward is.

local Function = require "ltrain.autograd.Function"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local hook_lists = require "ltrain.nn.hook_lists"

local module_hooks = {}

local KINDS <const> = { "before", "after", "backward", "backward_before" }

local function count(hooks)
  local n = 0
  for _, kind in ipairs(KINDS) do n = n + #hooks[kind] end
  return n
end

-- What registering returns.
local Handle = class.extend(nil, "HookHandle")

--- Removes the hook; further calls have no effect.
function Handle:remove()
  local list = self._list
  for i = #list, 1, -1 do
    if list[i] == self then table.remove(list, i) end
  end
  local hooks = hook_lists[self._module]
  if hooks and count(hooks) == 0 then hook_lists[self._module] = nil end
end
Handle.__close = function(self) self:remove() end

-- Adds a hook to a list; returns its handle.
function module_hooks.add(list, module, fn, prepend)
  local handle = Handle()
  handle.fn, handle._module, handle._list = fn, module, list
  table.insert(list, prepend and 1 or #list + 1, handle)
  return handle
end

local OPTIONS <const> = {
  prepend = { type = "boolean", default = false, doc = "whether it runs before the others" },
}
local AFTER <const> = {
  prepend = OPTIONS.prepend,
  always_call = { type = "boolean", default = false,
    doc = "whether it is called, with nil as output, when the module raises an error too" },
}

local function register(module, kind, fn, options, who)
  local o = config.check(options, kind == "after" and AFTER or OPTIONS, who)
  config.argument(fn, "function", who, "hook")
  local hooks = hook_lists[module]
  if not hooks then
    hooks = {}
    for _, name in ipairs(KINDS) do hooks[name] = {} end
    hook_lists[module] = hooks
  end
  local handle = module_hooks.add(hooks[kind], module, fn, o.prepend)
  handle._always = o.always_call
  return handle
end

local methods = {}
module_hooks.methods = methods

--- Calls hook(module, args) before each call of the module; `args` is the list of arguments. Its
--- result, a list of arguments or one value, replaces them; nil keeps them. Returns a handle:
--- `handle:remove()` removes the hook. Options: prepend (false).
function methods.register_forward_pre_hook(self, hook, options)
  return register(self, "before", hook, options, "register_forward_pre_hook")
end

--- Calls hook(module, args, output) after each call of the module; `output` is the result of
--- forward, a list if there were several values. The hook's result replaces it, in the same form.
--- Returns a handle. Options: prepend (false), always_call (false; true: also call it, with nil as
--- output, if the module raises an error).
function methods.register_forward_hook(self, hook, options)
  return register(self, "after", hook, options, "register_forward_hook")
end

--- Calls hook(module, grad_input, grad_output) when the gradients with respect to the arguments of
--- a call have been computed: lists with nil for values that are not tensors or have no gradient. A
--- list that it returns replaces grad_input. Arguments and results must then not be modified in
--- place. Returns a handle. Options: prepend (false).
function methods.register_full_backward_hook(self, hook, options)
  return register(self, "backward", hook, options, "register_full_backward_hook")
end

--- Calls hook(module, grad_output) before the backward pass of a call of the module. A list that it
--- returns replaces grad_output. Returns a handle. Options: prepend (false).
function methods.register_full_backward_pre_hook(self, hook, options)
  return register(self, "backward_before", hook, options, "register_full_backward_pre_hook")
end

local function is_list(value) return type(value) == "table" and getmetatable(value) == nil end

-- A list of values as hooks leave it, each called as hook(module, list, ...): the arguments of a
-- call, or gradients.
local function changed(self, hooks, list, ...)
  for _, handle in ipairs(table.move(hooks, 1, #hooks, 1, {})) do
    local got = handle.fn(self, list, ...)
    if is_list(got) then
      list = got
      list.n = got.n or #got
    elseif got ~= nil then
      list = { got, n = 1 }
    end
  end
  return list
end

local function after(self, list, args, results)
  for _, handle in ipairs(table.move(list, 1, #list, 1, {})) do
    local several = results.n ~= 1
    local got = handle.fn(self, args, several and results or results[1])
    if got ~= nil and several then
      if not is_list(got) then
        errors.blame("forward hook: forward returned %d values: the hook must return a list: got "
          .. "%s", results.n, errors.show(got))
      end
      results = got
      results.n = got.n or #got
    elseif got ~= nil then
      results = { got, n = 1 }
    end
  end
  return results
end

-- Passes values on, and gradients back through `fn`; the identity where nothing wants any.
local function gate(values, fn)
  local identity = Function { name = "register_full_backward_hook",
    forward = function(_, ...) return ... end,
    backward = function(_, ...)
      local list = fn(table.pack(...))
      return table.unpack(list, 1, list.n)
    end }
  return table.pack(identity(table.unpack(values, 1, values.n)))
end

local function any_requires_grad(values)
  for i = 1, values.n do
    if c.is_tensor(values[i]) and values[i].requires_grad then return true end
  end
  return false
end

-- Only tensors that had a gradient to get: others are nil in a hook.
local function only_wanted(list, values)
  local kept = { n = list.n }
  for i = 1, list.n do
    local x = values[i]
    if c.is_tensor(x) and x.requires_grad then kept[i] = list[i] end
  end
  return kept
end

-- forward between two gates: what arrives at the second waits for what leaves the first.
local function between(self, hooks, args)
  local arrived, entered = nil, any_requires_grad(args)
  local given = args
  if entered then
    args = gate(given, function(gradients)
      return changed(self, hooks.backward, only_wanted(gradients, given), arrived)
    end)
  end
  local results = table.pack(self:forward(table.unpack(args, 1, args.n)))
  return gate(results, function(gradients)
    arrived = changed(self, hooks.backward_before, gradients)
    if not entered then changed(self, hooks.backward, { n = given.n }, arrived) end
    return arrived
  end)
end

-- Until it is closed by an error: calls the hooks that are to be called then, once.
local function on_error(self, list, args)
  return setmetatable({}, { __close = function(_, err)
    if err == nil then return end
    for _, handle in ipairs(table.move(list, 1, #list, 1, {})) do
      if handle._always then handle.fn(self, args) end
    end
  end })
end

-- What the module gives for these arguments, with its hooks.
function module_hooks.call(self, hooks, ...)
  local args = changed(self, hooks.before, table.pack(...))
  local results
  do
    local _ <close> = on_error(self, hooks.after, args)
    if #hooks.backward + #hooks.backward_before > 0 and c.is_grad_enabled() then
      results = between(self, hooks, args)
    else
      results = table.pack(self:forward(table.unpack(args, 1, args.n)))
    end
  end
  results = after(self, hooks.after, args, results)
  return table.unpack(results, 1, results.n)
end

return module_hooks
