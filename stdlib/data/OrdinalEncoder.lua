-- stdlib/data/OrdinalEncoder.lua: encodes categories as ids. N rows.
--
--   local lt = require "ltrain"
--   local encoder = lt.data.OrdinalEncoder{"kind"}:fit{kind = {"oak", "ash", "oak"}}
--   print(encoder{kind = {"ash", "elm", "oak"}}:view(-1)) -- prints: tensor([ 0, -1,  1])
--   print(encoder:sizes()[1])                             -- prints: 2
--
-- The id of missing values, and of categories not in the training data, is -1: `ids + 1` are rows
-- of an embedding with `sizes()[k] + 1` rows. It is a module, so that it can be a field of a model
-- and is saved with it.

local Categories = require "ltrain.data.categories"

local OrdinalEncoder = Categories:extend("OrdinalEncoder")

--- data.OrdinalEncoder({"kind", "city"}, {unknown = "error"})
---@param names table the columns
function OrdinalEncoder:init(names, options) Categories.init(self, names, options) end

---@param t Table|table a Table, or lists by name -> i64 [N, columns]
function OrdinalEncoder:forward(t)
  local ids = self:ids(t)
  return ids
end

return OrdinalEncoder
