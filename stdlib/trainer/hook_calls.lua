--- stdlib/trainer/hook_calls.lua: calls a hook on all callbacks and on the module, as Lightning's
--- _call_callback_hooks and _call_lightning_module_hook.
--
-- Who defines what is looked up once, at the start of a loop and at each epoch, and again when the
-- module or the list of callbacks changes; a hook that is not defined costs one table access.
-- Order: callbacks as listed (those that save checkpoints last), then the module.
local Callback = require "ltrain.core.Callback"
local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local hooks = require "ltrain.core.hooks"
local interrupt = require "ltrain.core.interrupt"
local loop = require "ltrain.trainer.loop"
local profiler_ranges = require "ltrain.core.profiler_ranges"
local collective_hooks = require "ltrain.core.collective_hooks"

local hook_calls = {
  entered = nil, -- called with the name of each hook that is about to run, for a debugger
}

local set_dist_hook <const> = c.dist.set_hook

-- Whose line errors name when no frame of the script is left: see lua/bind/core/current_line.c.
local places <const> = c.runtime.places

-- Hooks that all ranks run at the same time.
local TOGETHER <const> = {}
for _, row in ipairs(hooks.rows) do TOGETHER[row.name] = row.together end

-- Before the first batch nothing is lost: there a hook ends where Ctrl-C finds it.
local until_called <const> = setmetatable({}, { __close = function(_, err)
  interrupt.forbid(err)
end })

local function allow_interrupt(state)
  if state.loop.stage ~= nil then return nil end
  interrupt.allow()
  return until_called
end

-- Callbacks that watch a metric see the end of an epoch after the module, which may log it there.
local function watches(callback)
  return callback.monitor ~= nil or callback.saves_checkpoints or callback.comes_late
end

-- Methods of a callback besides its hooks, which must be methods if they are there.
local OF_CALLBACKS <const> = { "state_key", "state_dict", "load_state_dict" }

--- Raises unless what `object` has under the name of a hook or method can be called.
function hook_calls.check_callable(state, object, name, fn)
  if type(fn) == "function" or class.is_callable(fn) then return end
  local meta = getmetatable(object)
  errors.blame("%s: %s.%s must be a function: got %s", state.fn,
    meta and meta.__name or "data module", name, errors.show(fn))
end
local check_callable <const> = hook_calls.check_callable

--- Whether a callback or module defines a hook of its own; `base`: the class that all of its kind
--- are below.
function hook_calls.overrides(object, name, base)
  local fn = object[name]
  return fn and fn ~= base[name] or false
end

-- The same where it is to be called.
local function defines(state, object, name, base)
  if not hook_calls.overrides(object, name, base) then return false end
  check_callable(state, object, name, object[name])
  return true
end

-- Lists of who defines a hook: at its time, and (end of the epoch only) after everybody else.
local function targets_of(state, row)
  local before, after = {}, {}
  local last_callbacks = row.name == "on_train_epoch_end"
  if row.who:find("c", 1, true) then
    for _, callback in ipairs(state.trainer.callbacks) do
      if defines(state, callback, row.name, Callback) then
        local list = last_callbacks and watches(callback) and after or before
        list[#list + 1] = callback
      end
    end
  end
  if row.who:find("m", 1, true) and defines(state, state.module, row.name, Module) then
    before[#before + 1] = state.module
  end
  return #before > 0 and before or false, #after > 0 and after or false
end

--- Finds out again who defines which hook.
function hook_calls.resolve(state)
  local lists = {}
  local callbacks = state.trainer.callbacks
  if type(callbacks) ~= "table" then
    errors.blame("%s: trainer.callbacks must be a list: got %s", state.fn, errors.show(callbacks))
  end
  state.callbacks = {}
  for i, callback in ipairs(callbacks) do
    state.callbacks[i] = Callback.adopt(callback)
    for _, name in ipairs(OF_CALLBACKS) do check_callable(state, callback, name, callback[name]) end
  end
  local last_callbacks
  for _, row in ipairs(hooks.rows) do
    local after
    lists[row.name], after = targets_of(state, row)
    last_callbacks = last_callbacks or after
  end
  state.hooks, state.last_callbacks = lists, last_callbacks
  state.hooks_version = state.module:hooks_version()
end

--- Whether a hook was assigned, or the list of callbacks changed, since then.
function hook_calls.is_stale(state)
  if state.module:hooks_version() ~= state.hooks_version then return true end
  local now, before = state.trainer.callbacks, state.callbacks
  if type(now) ~= "table" or #now ~= #before then return true end
  for i = 1, #now do
    if not rawequal(now[i], before[i]) then return true end
  end
  return false
end

--- Whether anybody defines the hook.
function hook_calls.defined(state, name)
  return state.hooks[name]
end

-- The hook that runs from now on, false: none. Other ranks can see it, for when this one is late.
local function set_hook(state, name)
  state.hook = name
  if state.ranks.many then
    set_dist_hook(name or nil)
    collective_hooks.set(name and TOGETHER[name])
  end
end

-- Counts a target of the hook that a file may be saved in. False when it was called before that.
local function is_next(called)
  called.count = called.count + 1
  return called.count > called.before
end

local function call_all(state, targets, name, ...)
  loop.pause(state, name)
  if hook_calls.entered then hook_calls.entered(name) end
  local module, trainer, outer = state.module, state.trainer, state.hook
  local outer_fn, called = places.hook, state.progress.called
  local result
  if called and called.hook ~= name then called = nil end
  set_hook(state, name)
  local _ <close> = allow_interrupt(state)
  local range <close> = profiler_ranges.open and profiler_ranges.open(name) -- luacheck: ignore
  for i = 1, #targets do
    local target = targets[i]
    local fn = (not called or is_next(called)) and target[name]
    local answer
    if fn then check_callable(state, target, name, fn) end
    if state.ranks.many then
      collective_hooks.set(TOGETHER[name] and (target == module or target.all_ranks))
    end
    places.hook = fn
    if target == module then -- without one: it has removed itself
      answer = fn and fn(target, ...)
    else
      answer = fn and fn(target, trainer, module, ...)
    end
    if answer == -1 then result = -1 end
  end
  places.hook = outer_fn
  set_hook(state, outer)
  return result
end

--- Calls a hook. The result is -1 when any of them returned -1.
function hook_calls.hook(state, name, ...)
  local targets = state.hooks[name]
  if targets then return call_all(state, targets, name, ...) end
end

--- Begins a hook in which a file may be saved: a fit that resumes from it, and has
--- state.progress.called already, calls the rest.
function hook_calls.begin_saving(state, name)
  local progress = state.progress
  progress.called = progress.called or { hook = name, count = 0, before = 0 }
end

function hook_calls.end_saving(state) state.progress.called = nil end

--- Calls such a hook.
function hook_calls.saving_hook(state, name)
  hook_calls.begin_saving(state, name)
  hook_calls.hook(state, name)
  hook_calls.end_saving(state)
end

--- Calls on_train_epoch_end on the callbacks that watch a metric, after all others.
function hook_calls.late_epoch_end(state)
  if state.last_callbacks then call_all(state, state.last_callbacks, "on_train_epoch_end") end
end

local function leave_place(outer_fn, ...)
  places.hook = outer_fn
  return ...
end

local function leave(state, outer, outer_fn, ...)
  places.hook = outer_fn
  set_hook(state, outer)
  return ...
end

--- Runs fn(...), which calls a method of the module, as that method.
function hook_calls.through(state, name, fn, ...)
  local outer, module = state.hook, state.module
  local own = module[name]
  check_callable(state, module, name, own)
  local outer_fn = places.hook
  if hook_calls.entered then hook_calls.entered(name) end
  set_hook(state, name)
  places.hook = own
  local _ <close> = allow_interrupt(state)
  local range <close> = profiler_ranges.open and profiler_ranges.open(name) -- luacheck: ignore
  return leave(state, outer, outer_fn, fn(...))
end

--- Calls a method of the module that is a hook in the list (a step, an override).
function hook_calls.method(state, name, ...)
  local module = state.module
  return hook_calls.through(state, name, module[name], module, ...)
end

--- Calls a hook of the data module, if there is one that defines it.
function hook_calls.data(state, name, ...)
  local data = state.data_module
  local fn = data and data[name]
  if fn then
    check_callable(state, data, name, fn)
    local outer_fn = places.hook
    places.hook = fn
    local _ <close> = allow_interrupt(state)
    return leave_place(outer_fn, fn(data, ...))
  end
end

return hook_calls
