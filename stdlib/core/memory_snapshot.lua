-- stdlib/core/memory_snapshot.lua: lt.cuda.memory_snapshot: the segments that this process has of a
-- device's memory, and the blocks that each is divided into, with the fields of
-- torch.cuda.memory_snapshot; and a page that shows them.
local c = require "ltrain.c"

local memory_snapshot = {}

-- Streams by number, in the order in which they are met.
local function numbers()
  local known, n = {}, 0
  return function(stream)
    if stream == nil then return nil end
    if not known[stream] then known[stream], n = n, n + 1 end
    return known[stream]
  end
end

local STATES <const> = { free = "inactive", pending = "active_pending_free",
  used = "active_allocated" }

local function block_of(row, stream)
  return { address = row.address, size = row.size, state = STATES[row.use], stream = stream,
    requested_size = row.requested, op = row.op, line = row.line, shape = row.shape,
    dtype = row.dtype }
end

local function by_address(a, b) return a.address < b.address end

-- Blocks in order, with those between them that are in use and not recorded.
local function fill_gaps(segment)
  local list, at <const> = segment.blocks, segment.address + segment.total_size
  table.sort(list, by_address)
  local whole, next_address = {}, segment.address
  local function used_until(address)
    if address <= next_address then return end
    whole[#whole + 1] = { address = next_address, size = address - next_address,
      state = "active_allocated" }
  end
  for _, block in ipairs(list) do
    used_until(block.address)
    whole[#whole + 1] = block
    next_address = block.address + block.size
  end
  used_until(at)
  segment.blocks = whole
end

local function add_sizes(segment)
  for _, block in ipairs(segment.blocks) do
    local is_used <const> = block.state == "active_allocated"
    if is_used then segment.allocated_size = segment.allocated_size + block.size end
    if block.state ~= "inactive" then segment.active_size = segment.active_size + block.size end
  end
end

--- The list of segments of the device called `name`, by address.
function memory_snapshot.take(name)
  local segments, of_address, stream_number = {}, {}, numbers()
  for _, row in ipairs(c.runtime.memory_map(name)) do
    local segment = of_address[row.segment]
    if not segment then
      segment = { device = name, address = row.segment, total_size = row.segment_size,
        allocated_size = 0, active_size = 0, segment_type = row.is_arena and "small" or "large",
        blocks = {} }
      of_address[row.segment] = segment
      segments[#segments + 1] = segment
    end
    if row.use ~= "segment" then
      table.insert(segment.blocks, block_of(row, stream_number(row.stream)))
    end
  end
  for _, segment in ipairs(segments) do
    fill_gaps(segment)
    add_sizes(segment)
  end
  table.sort(segments, by_address)
  return segments
end

return memory_snapshot
