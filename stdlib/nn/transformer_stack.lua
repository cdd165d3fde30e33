-- stdlib/nn/transformer_stack.lua: the base class of TransformerEncoder and TransformerDecoder: a
-- stack of copies of a layer.

local Module = require "ltrain.nn.Module"
local ModuleList = require "ltrain.nn.ModuleList"
local config = require "ltrain.core.config"
local deepcopy = require "ltrain.nn.deepcopy"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local Stack = Module:extend("TransformerStack")

Stack.options = {
  norm = { type = "object", doc = "a layer applied to the result, such as nn.LayerNorm(512)" },
}

function Stack:init(layer, num_layers, options)
  local name = "nn." .. self.__name
  if not walk.is_module(layer) then
    errors.blame("%s: needs a layer: got %s", name, errors.show(layer))
  end
  config.argument(num_layers, "integer", name, "num_layers", { min = 1 })
  self.layers = ModuleList()
  for _ = 1, num_layers do self.layers:append(deepcopy(layer)) end
  self.norm = config.check(options, Stack.options, name).norm
end

-- All layers, each with the options of the call; of `caches` each has its own.
function Stack:run(options, call)
  local o = {}
  for key, value in next, options or {} do o[key] = value end
  local caches = o.caches
  o.caches = nil
  if caches ~= nil and (type(caches) ~= "table" or #caches ~= #self.layers) then
    errors.blame("nn.%s: caches must be a list of %d, one a layer", self.__name, #self.layers)
  end
  local x
  for i, layer in ipairs(self.layers) do
    o.cache = caches and caches[i] or nil
    x = call(layer, x, o)
  end
  if self.norm then x = self.norm(x) end
  return x
end

return Stack
