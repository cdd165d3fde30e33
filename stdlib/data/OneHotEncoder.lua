-- stdlib/data/OneHotEncoder.lua: encodes categories as one-hot columns. N rows.
--
--   local lt = require "ltrain"
--   local encoder = lt.data.OneHotEncoder{"kind"}:fit{kind = {"oak", "ash", "oak"}}
--   print(encoder{kind = {"ash", "elm"}})
--   -- prints: tensor([[1., 0.],
--   -- prints:         [0., 0.]])
--
-- Missing values, and categories not in the training data, are 0 in all columns. It is a module, so
-- that it can be a field of a model and is saved with it.

local Categories = require "ltrain.data.categories"
local c = require "ltrain.c"

local OneHotEncoder = Categories:extend("OneHotEncoder")

--- data.OneHotEncoder({"kind", "city"}, {unknown = "error"})
---@param names table the columns
function OneHotEncoder:init(names, options) Categories.init(self, names, options) end

---@param t Table|table a Table, or lists by name -> f32 [N, all categories]
function OneHotEncoder:forward(t)
  local ids, parts = self:ids(t), {}
  for k, n in ipairs(self:sizes()) do
    parts[k] = ids:narrow(2, k, 1):eq(c.arange(n)):float()
  end
  return c.cat(parts, 2)
end

return OneHotEncoder
