--- stdlib/nn/functional.lua: lt.nn.functional, the operations under PyTorch's name.
--
--   local lt = require "ltrain"
--   local F = lt.nn.functional
--   print(F.relu(lt.tensor{-1.0, 2.0}), F.relu == lt.relu)
--   -- prints: tensor([0., 2.])	true
--
-- It contains all [operations](ops.md). `F.dropout(x, 0.5, self.training)` drops elements in
-- training only, as the layer `nn.Dropout` does by itself; without that argument it always does.
-- `F.unfold` and `F.fold` are im2col and col2im.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local exports = require "ltrain.core.exports"
local load_export = require "ltrain.core.load_export"
local tree = require "ltrain.core.tree"

local functional = {}

-- lt.all is the mark of an index; the operation of that name is the method alone.
for _, op in ipairs(c.ops()) do
  local fn = c[op.name]
  if not op.hidden and type(fn) == "function" then functional[op.name] = fn end
end

for name, place in next, exports do
  if place:find "^ltrain%.ops%." then functional[name] = load_export(name) end
end

-- x:unfold is Tensor.unfold: windows of one dim.
functional.unfold, functional.fold = c.im2col, c.col2im

return setmetatable(functional, {
  __index = function(_, name)
    if type(name) ~= "string" then return nil end
    errors.blame("nn.functional: there is no '%s'%s", name,
      errors.in_place_of(name, "nn.functional", tree.keys(functional)))
  end,
})
