--- stdlib/dist/Mesh.lua: the ranks as a grid of named dims (PyTorch's DeviceMesh).
--
-- Ranks are numbered as elements of a tensor in row-major order: those that differ in the last dim
-- alone are next to each other, so that the dim with most traffic comes last. A sub-mesh has some
-- of the dims: `mesh:sub("replicate", "shard")` is PyTorch's `mesh["replicate", "shard"]`.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local d = c.dist

local Mesh = class.extend(nil, "Mesh")

local function check_sizes(sizes, names)
  local count = 1
  for i, size in ipairs(sizes) do
    count = count * config.argument(size, "integer", "dist.mesh", ("sizes[%d]"):format(i),
      { min = 1 })
  end
  if #sizes == 0 or #names ~= #sizes then
    errors.blame("dist.mesh: needs a name for each size: got %d sizes and %d names", #sizes, #names)
  end
  if count ~= d.size() then
    errors.blame("dist.mesh: %s = %d ranks: there are %d", table.concat(sizes, " x "), count,
      d.size())
  end
end

local function index_names(names)
  local index = {}
  for i, name in ipairs(names) do
    config.argument(name, "string", "dist.mesh", ("names[%d]"):format(i))
    if index[name] then errors.blame("dist.mesh: two dims have the name '%s'", name) end
    index[name] = i
  end
  return index
end

-- Ranks of different meshes would be in groups that cross each other.
local function check_same(self)
  local all = collectives.all_gather(tostring(self))
  for rank = 1, #all - 1 do
    if all[rank + 1] ~= all[1] then
      errors.blame("dist.mesh: ranks have different meshes: rank 0 has %s, rank %d has %s", all[1],
        rank, all[rank + 1])
    end
  end
end

-- The place of a rank in each dim, from 0.
local function place_of(sizes, rank)
  local place, rest = {}, rank
  for i = #sizes, 1, -1 do
    place[i], rest = rest % sizes[i], rest // sizes[i]
  end
  return place
end

--- Mesh(sizes, names): see lt.dist.mesh. All ranks call it.
function Mesh:init(sizes, names)
  check_sizes(sizes, names)
  self._index, self.names, self.sizes = index_names(names), names, sizes
  self._place, self._groups = place_of(sizes, d.rank()), {}
  check_same(self)
  for _, name in ipairs(names) do self:group(name) end
end

local function dim_of(self, who, name)
  local i = self._index[name]
  if i then return i end
  errors.blame("Mesh.%s: there is no dim '%s'%s: this mesh has %s", who, tostring(name),
    errors.did_you_mean(name, self.names), table.concat(self.names, ", "))
end

-- Which dims are named; without names, all.
local function named(self, who, ...)
  local is_named, count = {}, select("#", ...)
  for k = 1, count do is_named[dim_of(self, who, (select(k, ...)))] = true end
  for i in ipairs(count == 0 and self.names or {}) do is_named[i] = true end
  return is_named
end

-- The place in the dims of a set, as a number in row-major order, and how many places there are.
local function number_of(self, place, chosen)
  local number, count = 0, 1
  for i, size in ipairs(self.sizes) do
    if chosen[i] then number, count = number * size + place[i], count * size end
  end
  return number, count
end

--- Returns the number of ranks along a dim; without a name, of the mesh.
function Mesh:size(name)
  if name ~= nil then return self.sizes[dim_of(self, "size", name)] end
  local _, count = number_of(self, self._place, named(self, "size"))
  return count
end

--- Returns this rank's place along a dim, from 0; without a name, its number in the mesh.
function Mesh:rank(name)
  if name ~= nil then return self._place[dim_of(self, "rank", name)] end
  return (number_of(self, self._place, named(self, "rank")))
end

--- Returns the place of a rank of the mesh in each dim, from 0: a list. By default of this rank.
function Mesh:place(rank)
  return place_of(self.sizes, config.argument(rank or self:rank(), "integer", "Mesh.place", "rank",
    { min = 0, max = self:size() - 1 }))
end

--- Returns the place of a rank in the dims of a list of names, as a number in row-major order from
--- 0, and how many places there are; by default of this rank.
function Mesh:number(names, rank)
  local chosen = {}
  for _, name in ipairs(names) do chosen[dim_of(self, "number", name)] = true end
  return number_of(self, rank and self:place(rank) or self._place, chosen)
end

--- Returns the group of the ranks that differ from this one in the named dims alone, in the order
--- of the mesh; without names, in all its dims. Those of one dim are made with the mesh; of
--- several, `mesh:group("a", "b")`, by the first call, which all ranks make.
function Mesh:group(...)
  local is_named, key = named(self, "group", ...), {}
  for i, name in ipairs(self.names) do
    if is_named[i] then key[#key + 1] = name end
  end
  local whole = self._whole
  if whole then return whole:group(table.unpack(key)) end
  key = table.concat(key, "\0")
  if not self._groups[key] then
    local others = {} -- the same number for ranks that differ in the named dims alone
    for i in ipairs(self.names) do others[i] = not is_named[i] end
    self._groups[key] = collectives.split((number_of(self, self._place, others)))
  end
  return self._groups[key]
end

--- Returns the mesh of the named dims, in their order here: of the ranks that differ from this one
--- in these alone. Its groups are those of this mesh.
function Mesh:sub(...)
  local is_named = named(self, "sub", ...)
  local part = setmetatable({ _whole = self._whole or self, _place = {}, names = {}, sizes = {} },
    Mesh)
  for i, name in ipairs(self.names) do
    if is_named[i] then
      local k = #part.names + 1
      part.names[k], part.sizes[k], part._place[k] = name, self.sizes[i], self._place[i]
    end
  end
  part._index = index_names(part.names)
  return part
end

function Mesh:__tostring()
  local dims = {}
  for i, name in ipairs(self.names) do dims[i] = ("%s = %d"):format(name, self.sizes[i]) end
  return ("mesh(%s)"):format(table.concat(dims, ", "))
end

return Mesh
