--- stdlib/core/cuts.lua: which parameters are parts of larger ones, cut along a dim among the ranks
--- of a group (tensor parallel).
--
-- A cut is { name =, shape = of the whole, dim =, blocks =, rank =, ranks =, group = }. Dim `dim`
-- of the whole is `blocks` blocks of one size, such as queries, keys and values in one matrix; each
-- is divided into `ranks` parts, and the parameter has part number `rank`, from 0, of each block.
-- Parts have the same size, but the last one, which has what is left. With `is_summed` the ranks of
-- the group have different samples, and the gradient of a part is a sum over them all already
-- (experts). The table is kept beside the parameters: they are tensors as any other.
local c = require "ltrain.c"
local has_shape = require "ltrain.core.has_shape"
local parts = require "ltrain.core.parts"

local cuts = {}

local CHUNK <const> = 1 << 20 -- elements of a file that are read at a time

local cut_of = setmetatable({}, { __mode = "k" })

--- The cut of a parameter; nil: it is whole.
function cuts.of(parameter) return cut_of[parameter] end

--- Notes that a parameter is a part (nil: that it is whole).
function cuts.note(parameter, cut) cut_of[parameter] = cut end

--- Of a list of parameters those for which counts(cut) is true (nil: the parameter is whole).
function cuts.counted(parameters, counts)
  local counted = {}
  for _, parameter in ipairs(parameters) do
    if counts(cut_of[parameter]) then counted[#counted + 1] = parameter end
  end
  return counted
end

--- The shape of the whole of a parameter, also of one that is not cut.
function cuts.shape(parameter)
  local cut = cut_of[parameter]
  return cut and cut.shape or parameter.shape
end

--- Whether a tensor, or one of a file, has the shape of the whole.
function cuts.is_whole(cut, tensor)
  return has_shape(tensor, { shape = cut.shape, ndim = #cut.shape })
end

--- Where part `rank` of `ranks`, from 0, of so many elements begins, from 0, and its size; and that
--- of the first ones, which is rounded up (torch.chunk's).
function cuts.place(size, ranks, rank)
  local each = (size + ranks - 1) // ranks
  local from = math.min(rank * each, size)
  return from, math.min(each, size - from), each
end

--- The same of a part in each block of a cut.
function cuts.place_of(cut, rank)
  return cuts.place(cut.shape[cut.dim] // cut.blocks, cut.ranks, rank)
end

-- The views of part `rank` in a tensor of the whole's shape, one for each block.
local function views(cut, whole, rank)
  local from, n = cuts.place_of(cut, rank)
  local size, list = cut.shape[cut.dim] // cut.blocks, {}
  for block = 0, cut.blocks - 1 do
    list[block + 1] = whole:narrow(cut.dim, block * size + from + 1, n)
  end
  return list
end

--- This rank's part of a tensor of the whole's shape: a new tensor. On the meta device these calls
--- are recorded, and made when the part gets its values.
function cuts.take(cut, whole)
  local _, each = cuts.place_of(cut, cut.rank)
  local shape = table.move(cut.shape, 1, #cut.shape, 1, {})
  shape[cut.dim] = each * cut.blocks
  local _ <close> = c.no_grad()
  local part = c.empty(shape, { dtype = whole.dtype, device = whole.device })
  for block, view in ipairs(views(cut, whole, cut.rank)) do
    part:narrow(cut.dim, (block - 1) * each + 1, each):copy_(view)
  end
  return part
end

--- Copies part `rank` to its place in a whole tensor.
function cuts.put(cut, whole, rank, part)
  local _, each = cuts.place_of(cut, rank)
  for block, view in ipairs(views(cut, whole, rank)) do
    view:copy_(part:narrow(cut.dim, (block - 1) * each + 1, each))
  end
end

--- The part as a range of the whole's elements in row-major order: from, n, counted from 0; nil
--- where it is not one.
function cuts.range(cut)
  if cut.blocks > 1 or parts.numel(cut.shape) == 0 then return nil end
  for dim = 1, cut.dim - 1 do
    if cut.shape[dim] ~= 1 then return nil end
  end
  local from, n = cuts.place_of(cut, cut.rank)
  local each = parts.numel(cut.shape) // cut.shape[cut.dim]
  return from * each, n * each
end

-- Rows of dim 1 of the whole, a few at a time: only this rank's columns are kept.
local function read_rows(cut, leaf)
  local rows, list = cut.shape[1], {}
  local width = parts.numel(cut.shape) // rows
  local some = math.max(CHUNK // width, 1)
  for first = 0, rows - 1, some do
    local n = math.min(some, rows - first)
    local read <close> = parts.read(leaf, first * width, n * width)
    local shape = table.move(cut.shape, 1, #cut.shape, 1, {})
    shape[1] = n
    list[#list + 1] = cuts.take(setmetatable({ shape = shape }, { __index = cut }),
      read:reshape(shape))
  end
  return #list == 1 and list[1] or c.cat(list, 1)
end

--- This rank's part of a tensor of the whole's shape, or of one of a file (core/parts.lua), of
--- which no more than the part is kept in memory.
function cuts.read(cut, leaf)
  if c.is_tensor(leaf) then return cuts.take(cut, leaf:detach()) end
  local from, n = cuts.range(cut)
  if not from and cut.dim > 1 then return read_rows(cut, leaf) end
  if not from then return cuts.take(cut, parts.whole(leaf)) end
  local shape = table.move(cut.shape, 1, #cut.shape, 1, {})
  shape[cut.dim] = select(2, cuts.place_of(cut, cut.rank))
  return parts.read(leaf, from, n):reshape(shape)
end

--- Copies a tensor of the whole's shape, or one of a file, into a parameter: of one that is cut,
--- its part. A tensor of the part's own shape is copied as it is.
function cuts.copy(parameter, source)
  local cut = cut_of[parameter]
  if cut and not has_shape(source, parameter) then source = cuts.read(cut, source)
  elseif not c.is_tensor(source) then return parts.copy(parameter, source, 0) end
  parameter:copy_(source)
end

return cuts
