-- stdlib/strategies/float8/Float8Precision.lua: precision = "fp8-mixed", "transformer-engine": the
-- nn.Linear of a module compute in float8 while a Trainer runs it (Float8Linear).
local DelayedScaling = require "ltrain.strategies.float8.DelayedScaling"
local Float8Linear = require "ltrain.strategies.float8.Float8Linear"
local Precision = require "ltrain.core.Precision"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local Float8Precision = Precision:extend("Float8Precision")

--- `autocast`: the dtype of all that is not float8; `whole`: a precision of weights in that dtype;
--- nil: they stay as they are.
function Float8Precision:init(name, autocast, whole)
  self.name, self.autocast = name, autocast
  self._whole, self._layers = whole, {}
end

local function layers_of(module)
  local layers, names = {}, {}
  for _, entry in ipairs((walk.modules(module))) do
    if Float8Linear.suits(entry.module) then
      layers[#layers + 1], names[#names + 1] = entry.module, entry.name
    end
  end
  return layers, names
end

--- The scales continue from the run before of the same layers.
function Float8Precision:convert_module(module)
  local layers, names = layers_of(module)
  if #layers == 0 then
    errors.blame("precision = '%s': the module has no nn.Linear whose in_features and out_features "
      .. "are multiples of 16: write '%s-mixed'", self.name, self.autocast == "f16" and "16"
      or self.autocast)
  end
  local before <const> = self._scaling
  if not (before and table.concat(before.names, " ") == table.concat(names, " ")) then
    self._scaling = DelayedScaling(names)
  end
  for i, layer in ipairs(layers) do Float8Linear.convert(layer, self._scaling, i) end
  self._layers = layers
  if self._whole then self._whole:convert_module(module) end
end

function Float8Precision:convert_input(batch)
  return self._whole and self._whole:convert_input(batch) or batch
end

function Float8Precision:after_step() self._scaling:update() end

function Float8Precision:teardown()
  for _, layer in ipairs(self._layers) do Float8Linear.revert(layer) end
  self._layers = {}
end

function Float8Precision:state_dict() return self._scaling:state_dict() end
function Float8Precision:load_state_dict(state) self._scaling:load_state_dict(state) end

return Float8Precision
