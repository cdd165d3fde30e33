--- stdlib/dist/hooks/registry.lua: names of communication hooks, built in and registered by
--- scripts.
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local registry = {}

-- The class of hooks, loaded when there is one to look at.
local function base() return require "ltrain.dist.hooks.Hook" end

-- Built in: the file of each name; of a file with several, by name.
local FILES <const> = {
  bf16 = "Cast", fp16 = "Cast", int8 = "Quantized", powerSGD = "PowerSGD", random_k = "RandomK",
  sign = "Quantized", topk = "TopK",
}

local registered = {} -- name -> class

--- The sorted list of names.
function registry.names()
  local names = {}
  for name in next, FILES do names[#names + 1] = name end
  for name in next, registered do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- The class of a name; nil when there is none.
function registry.find(name)
  if registered[name] then return registered[name] end
  if not FILES[name] then return nil end
  local value = require("ltrain.dist.hooks." .. FILES[name])
  return class.of(value) == nil and rawget(value, name) or value
end

--- register_comm_hook("mine", Mine): makes `ddp_comm_hook = "mine"` equal to `Mine()`, of a class
--- below lt.dist.hooks.Hook.
function registry.register(name, own)
  config.argument(name, "string", "dist.register_comm_hook", "name")
  if not class.is_class(own, base()) then
    errors.blame("dist.register_comm_hook: %s: must be a class below lt.dist.hooks.Hook: got %s",
      name, errors.show(own))
  elseif registry.find(name) then
    errors.blame("dist.register_comm_hook: '%s' exists already: choose another name", name)
  end
  own.name = name
  registered[name] = own
  return own
end

--- For config.check: what is wrong with a value of an option that takes a function, a name or an
--- object; nil if nothing is.
function registry.check(value)
  if type(value) == "string" and not registry.find(value) then
    local names = registry.names()
    return ("must be a function, an object of lt.dist.hooks, or a name, '%s': got '%s'%s"):format(
      table.concat(names, "', '"), value, errors.did_you_mean(value, names))
  elseif type(value) == "table" and not class.is_a(value, base()) then
    return ("must be an object of a class below lt.dist.hooks.Hook: got %s"):format(
      errors.show(value))
  end
end

--- What a checked value stands for: a function, an object, or nil.
function registry.make(value)
  if type(value) ~= "string" then return value end
  return registry.find(value)()
end

--- Whether a hook is an object of lt.dist.hooks, not a function.
function registry.is_object(hook)
  return type(hook) == "table" and class.is_a(hook, base())
end

return registry
