--- stdlib/dist/hooks/init.lua: lt.dist.hooks: communication hooks: how gradients travel between the
--- ranks, by name.
--
--   local lt = require "ltrain"
--   local hook = lt.dist.hooks.powerSGD{rank = 2, start = 100}
--   print(hook.name, hook.rank)                      -- prints: powerSGD	2
--   local strategy = lt.strategies.DDP{ddp_comm_hook = hook}
--   local by_name = lt.strategies.DDP{ddp_comm_hook = "fp16"}
--
-- Hooks are objects with state: each strategy, or lt.dist.ddp, needs one of its own.
local Hook = require "ltrain.dist.hooks.Hook"
local errors = require "ltrain.core.errors"
local registry = require "ltrain.dist.hooks.registry"
local strict_arity = require "ltrain.core.strict_arity"

local hooks = { Hook = Hook }

local function wrap(hook, dtype)
  if type(hook) == "string" and registry.find(hook) then hook = registry.make(hook) end
  if registry.is_object(hook) then
    hook.wire = dtype
    return hook
  elseif type(hook) ~= "function" then
    errors.blame("dist.hooks: a wrapper needs a hook: a function, an object or a name: got %s",
      errors.show(hook))
  end
  return function(buffer) return hook(buffer:to(dtype)):to(buffer.dtype) end
end

--- Returns a hook that sends its floats in f16. `hook`: a name, an object, a function.
hooks.fp16_compress_wrapper = strict_arity.fn(function(hook) return wrap(hook, "f16") end,
  "fp16_compress_wrapper")

--- The same in bf16.
hooks.bf16_compress_wrapper = strict_arity.fn(function(hook) return wrap(hook, "bf16") end,
  "bf16_compress_wrapper")

local function find(self, name)
  local found = type(name) == "string" and registry.find(name)
  if found then return found end
  local names = registry.names()
  for known in next, self do names[#names + 1] = known end
  table.sort(names)
  errors.blame("dist.hooks: there is no %s%s", errors.show(name), errors.did_you_mean(name, names))
end

return setmetatable(hooks, { __index = find })
