--- stdlib/parallel/layouts.lua: how a tensor is spread over the ranks of a group: Shard(dim), each
--- rank has an equal part along a dim, or Replicate(), each has all of it (PyTorch's placements).
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Layout = class.extend(nil, "Layout")

function Layout:init(kind, dim) self.kind, self.dim = kind, dim end

function Layout:__tostring()
  return self.kind == "shard" and ("Shard(%d)"):format(self.dim) or "Replicate()"
end

local layouts = {}

--- Each rank has an equal part along a dim, from 1; -1 is the last.
function layouts.Shard(dim)
  config.argument(dim, "integer", "parallel.Shard", "dim")
  if dim == 0 then errors.blame "parallel.Shard: dims count from 1, or from the end, -1: got 0" end
  return Layout("shard", dim)
end

--- Each rank has the whole tensor.
function layouts.Replicate() return Layout("replicate") end

--- Whether a value is a layout.
function layouts.is(value) return class.is_a(value, Layout) end

--- Whether two are the same, of a tensor with so many dims.
function layouts.equal(a, b, ndim)
  if a.kind ~= b.kind then return false end
  local function at(dim) return dim and dim < 0 and dim + ndim + 1 or dim end
  return at(a.dim) == at(b.dim)
end

--- A row of options for a layout.
function layouts.row(default, doc)
  return { type = "object", default = default, doc = doc, check = function(value)
    if not layouts.is(value) then
      return ("must be Shard(dim) or Replicate(): got %s"):format(errors.show(value))
    end
  end }
end

return layouts
