--- stdlib/core/dtypes.lua: the rows of lt.dtypes() by each name that a dtype has.
local c = require "ltrain.c"

local dtypes = {}
for _, row in ipairs(c.dtypes()) do
  dtypes[row.name], dtypes[row.torch_name], dtypes[row.method] = row, row, row
end

return dtypes
