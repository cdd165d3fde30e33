-- stdlib/ops/triangles.lua: lt.tril_indices and lt.triu_indices: positions within a triangle.

local c = require "ltrain.c"
local config = require "ltrain.core.config"

local triangles = {}

local SIGNATURE <const> = config.signature {
  { "row", type = "integer", required = true, min = 0 },
  { "col", type = "integer", required = true, min = 0 },
  { "offset", type = "integer", default = 0, doc = "above 0: diagonals above the main one" },
  { "dtype", type = "string", default = "i64" }, { "device", type = "string", default = "cpu" },
}

local function triangle(who, keep, ...)
  local o <const> = config.arguments(who, SIGNATURE, ...)
  local all <const> = c.ones({ o.row, o.col }, { dtype = "u8", device = o.device })
  return keep(all, o.offset):nonzero():t():clone { contiguous = true }:to(o.dtype)
end

--- Rows and columns, from 0, of the lower triangle of a matrix [row, col], its rows in order:
--- [2, N].
function triangles.tril_indices(row, col, offset, dtype, device)
  return triangle("tril_indices", c.tril, row, col, offset, dtype, device)
end

--- The same for the upper triangle.
function triangles.triu_indices(row, col, offset, dtype, device)
  return triangle("triu_indices", c.triu, row, col, offset, dtype, device)
end

return triangles
