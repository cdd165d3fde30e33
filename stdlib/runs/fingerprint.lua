--- stdlib/runs/fingerprint.lua: a hash of a data set: whether two runs had the same data.
--
-- Of what a data set holds (tensors, lists, texts, numbers, data sets within it) shapes, dtypes and
-- bytes are hashed; of tensors over 4 MiB 64 pieces spread evenly, which together have as many
-- bytes, and of long lists 1,000 items. Nothing is read through it: samples may be made by chance,
-- and reading them would take time.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dtypes = require "ltrain.core.dtypes"
local tree = require "ltrain.core.tree"

local MOST <const> = 1 << 22 -- bytes of a tensor
local ALL <const> = 1 << 26 -- of a data set
local PIECES <const> = 64
local ITEMS <const>, MOST_ITEMS <const> = 1000, 20000 -- of a list, of all
local DEPTH <const> = 12

local add

local function add_tensor(to, tensor)
  local shape, n = tensor.shape, tensor:numel()
  local size = n * dtypes[tensor.dtype].size
  table.insert(to.parts, ("tensor %s %s"):format(tensor.dtype, table.concat(shape, " ")))
  to.bytes = to.bytes + math.min(size, MOST)
  if to.bytes > ALL or tensor.device ~= "cpu" then return end
  if size <= MOST or #shape == 0 then
    table.insert(to.parts, tensor:contiguous())
    return
  end
  local rows, take = shape[1], math.max(shape[1] * MOST // size // PIECES, 1)
  for k = 0, math.min(PIECES, rows) - 1 do
    local first = 1 + k * (rows - take) // math.max(PIECES - 1, 1)
    if first >= 1 then table.insert(to.parts, tensor:narrow(1, first, take):contiguous()) end
  end
end

-- Evenly chosen items of a list, the first and the last among them.
local function add_list(to, list, depth)
  local n = rawlen(list)
  local count = math.min(n, ITEMS)
  table.insert(to.parts, ("list %d"):format(n))
  for k = 1, count do
    add(to, rawget(list, count == n and k or 1 + (k - 1) * (n - 1) // (count - 1)), depth + 1)
  end
end

local function add_table(to, value, depth)
  if to.seen[value] or depth > DEPTH then return end
  to.seen[value] = true
  local of = class.of(value)
  table.insert(to.parts, of and of.__name or "table")
  if rawlen(value) > 0 then return add_list(to, value, depth) end
  for _, key in ipairs(tree.keys(value)) do
    local is_own = type(key) == "string" and key:sub(1, 1) == "_" and key ~= "_order"
    if not is_own and to.items < MOST_ITEMS then
      table.insert(to.parts, "." .. tostring(key))
      add(to, rawget(value, key), depth + 1)
    end
  end
end

-- Positions of a Subset, and the like: a value with a length and at(i).
local function add_order(to, order)
  local n = #order
  table.insert(to.parts, ("order %d"):format(n))
  for k = 1, math.min(n, 1000) do
    table.insert(to.parts, tostring(order:at(n <= 1000 and k or 1 + (k - 1) * (n - 1) // 999)))
  end
end

function add(to, value, depth)
  local kind = type(value)
  to.items = to.items + 1
  if to.items > MOST_ITEMS then return end
  if c.is_tensor(value) then
    add_tensor(to, value)
  elseif kind == "table" then
    add_table(to, value, depth)
  elseif kind == "userdata" then
    pcall(add_order, to, value)
  elseif kind == "string" or kind == "number" or kind == "boolean" then
    table.insert(to.parts, ("%s %s"):format(kind, tostring(value)))
  end
  table.insert(to.parts, "\n")
end

--- The hash of what a loader reads: 64 hexadecimal digits. Nil where there is nothing to hash: a
--- function, a data set that has no tensors, texts or numbers of its own.
return function(loader)
  local value = type(loader) == "table" and (rawget(loader, "dataset") or loader) or nil
  if not value then return nil end
  local to = { parts = {}, seen = {}, bytes = 0, items = 0 }
  local ok = pcall(add, to, value, 1)
  return ok and to.items > 1 and c.runtime.sha256(to.parts) or nil
end
