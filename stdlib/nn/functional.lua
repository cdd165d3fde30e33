--- stdlib/nn/functional.lua: lt.nn.functional, the operations under the name that PyTorch has for
--- them.
--
--   local lt = require "ltrain"
--   local F = lt.nn.functional
--   print(F.relu(lt.tensor{-1.0, 2.0}), F.relu == lt.relu)
--   -- prints: tensor([0., 2.])	true
--
-- It has all [operations](ops.md). There is no argument `training`: `F.dropout` always drops
-- elements, the layer `nn.Dropout` follows the mode of its module.
local c = require "ltrain.c"

local functional = {}

for _, op in ipairs(c.ops()) do
  if not op.hidden then functional[op.name] = c[op.name] end
end

return functional
