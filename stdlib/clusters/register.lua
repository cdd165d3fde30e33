--- stdlib/clusters/register.lua: lt.clusters.register, which adds a cluster environment.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local environments = require "ltrain.clusters.environments"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

-- Names of the protocol.
local function names()
  local list = { "comm", "starts", "auto_requeue" }
  for name in next, ClusterEnvironment do
    if not name:find "^_" and name ~= "super" and name ~= "extend" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

-- A class with the methods of a table.
local function class_of(name, methods)
  local own, allowed = ClusterEnvironment:extend(name), names()
  for key, value in tree.pairs(methods) do
    local unknown = errors.unknown(key, allowed)
    if unknown then
      errors.blame("clusters.register: %s: an environment has no %s", name, unknown)
    end
    own[key] = value
  end
  return own
end

--- register("mine", {detect = function(self) ... end, comm = "mine", ...}), or with a subclass of
--- lt.ClusterEnvironment. It is tried before the built-in ones; registering a name again replaces
--- the earlier one.
return function(name, methods)
  config.argument(name, "string", "clusters.register", "the name")
  local own = methods
  if type(methods) == "table" and getmetatable(methods) == nil then
    own = class_of(name, methods)
  elseif not class.is_class(methods, ClusterEnvironment) then
    errors.blame("clusters.register: %s: must be a table of methods or a class below "
      .. "lt.ClusterEnvironment: got %s", name, errors.show(methods))
  end
  environments.put(name, own)
  return own
end
