-- stdlib/nn/state_hooks.lua: hooks that run when the state of a module is saved or loaded
-- (register_state_dict_pre_hook, ...).
--
-- They are kept in the module's field `_state_hooks`, so that a copy of the module has them too.

local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local module_hooks = require "ltrain.nn.module_hooks"

local state_hooks = {}

-- Whether a module may have hooks: one was registered.
state_hooks.used = false

local methods = {}
state_hooks.methods = methods

local function register(module, kind, hook, who)
  config.argument(hook, "function", who, "hook")
  local hooks = rawget(module, "_state_hooks")
  if not hooks then
    hooks = { before_save = {}, after_save = {}, before_load = {}, after_load = {} }
    rawset(module, "_state_hooks", hooks)
  end
  state_hooks.used = true
  return module_hooks.add(hooks[kind], module, hook)
end

--- Calls hook(module, prefix, keep_vars) before state_dict of the module, or of a module that
--- contains it, collects its tensors; `prefix` is the prefix of their names. Returns a handle:
--- `handle:remove()` removes the hook.
function methods.register_state_dict_pre_hook(self, hook)
  return register(self, "before_save", hook, "register_state_dict_pre_hook")
end

--- Calls hook(module, state, prefix, metadata) when state_dict has added the tensors of the module
--- and its submodules to the table `state`, which the hook may change; `metadata` is an empty
--- table. Returns a handle.
function methods.register_state_dict_post_hook(self, hook)
  return register(self, "after_save", hook, "register_state_dict_post_hook")
end

--- Calls hook(module, state, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs)
--- before load_state_dict of the module, or of a module that contains it, checks the names: `state`
--- is a copy of the table, which the hook may change; it may also add to the three lists. Returns a
--- handle.
function methods.register_load_state_dict_pre_hook(self, hook)
  return register(self, "before_load", hook, "register_load_state_dict_pre_hook")
end

--- Calls hook(module, keys) when load_state_dict has written the tensors: `keys.missing` and
--- `keys.unexpected` are lists of names, which the hook may change: if loading is strict, the
--- remaining names are an error. Returns a handle.
function methods.register_load_state_dict_post_hook(self, hook)
  return register(self, "after_load", hook, "register_load_state_dict_post_hook")
end

-- Entries of walk.modules, those in a module before it.
local function inner_first(entries)
  local list = table.move(entries, 1, #entries, 1, {})
  table.sort(list, function(a, b)
    if a.last ~= b.last then return a.last < b.last end
    return a.first > b.first
  end)
  return list
end

-- Whether a module of these entries has hooks of the kind.
function state_hooks.any(entries, kind)
  if not state_hooks.used then return false end
  for _, entry in ipairs(entries) do
    local hooks = rawget(entry.module, "_state_hooks")
    if hooks and #hooks[kind] > 0 then return true end
  end
  return false
end

-- Calls the hooks of a kind of all modules: hook(module, ...), where `arguments(prefix)` gives the
-- rest. Those before something run from the outermost module inwards, those after it outwards.
function state_hooks.run(entries, kind, arguments)
  if not state_hooks.any(entries, kind) then return end
  for _, entry in ipairs(kind:find "^after" and inner_first(entries) or entries) do
    local hooks = rawget(entry.module, "_state_hooks")
    local list = hooks and hooks[kind] or {}
    for _, handle in ipairs(table.move(list, 1, #list, 1, {})) do
      local prefix = entry.name == "" and "" or entry.name .. "."
      local got = handle.fn(entry.module, arguments(prefix))
      if got ~= nil then
        errors.blame("state_dict hook: it must change its tables, and return nothing: got %s",
          errors.show(got))
      end
    end
  end
end

return state_hooks
