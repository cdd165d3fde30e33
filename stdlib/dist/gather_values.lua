--- stdlib/dist/gather_values.lua: gathers a Lua value from each rank; tensors in it stay on their
--- device.
--
-- The values go in one message, over the host; of a tensor on a device there is a note in it. The
-- tensors follow, packed, one collective a dtype: over the link of their device where there is one,
-- else through pinned memory. Where some rank has none, or has them on several devices, they go in
-- a message like the rest.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local NOTE <const> = "\0tensor" -- the key of a note; its value: which of the rank's tensors

local function is_on_device(value)
  return type(value) == "userdata" and c.is_tensor(value) and value.device ~= "cpu"
end

local function shallow_copy(field)
  local copy = {}
  for key, value in next, field do copy[key] = value end
  return copy
end

-- The value with notes in place of tensors on devices, which are added to the list; the value
-- itself where there are none.
local function take_out(value, list)
  if is_on_device(value) then
    list[#list + 1] = value:detach()
    return { [NOTE] = #list }
  elseif type(value) ~= "table" or getmetatable(value) ~= nil then
    return value
  end
  local copy
  for key, field in next, value do
    local new = take_out(field, list)
    if not rawequal(new, field) then
      copy = copy or shallow_copy(value)
      copy[key] = new
    end
  end
  return copy or value
end

-- The value with tensors in place of their notes.
local function put_back(value, tensors)
  if type(value) ~= "table" then return value end
  local which = value[NOTE]
  if which then return tensors[which] end
  for key, field in next, value do value[key] = put_back(field, tensors) end
  return value
end

-- What the others need to know of the tensors; `kind`: of the device that has all of them.
local function describe(list)
  if #list == 0 then return nil end
  local described = { kind = list[1].device:match "^%w+" }
  for i, tensor in ipairs(list) do
    if tensor.device ~= list[1].device then described.kind = nil end
    described[i] = { dtype = tensor.dtype, shape = tensor.shape, n = tensor:numel() }
  end
  return described
end

-- The kind of device on which all ranks have tensors, each on one; nil: there is none.
local function common_kind(ranks)
  local kind = ranks[1].tensors and ranks[1].tensors.kind
  for _, described in ipairs(ranks) do
    if not described.tensors or described.tensors.kind ~= kind then return nil end
  end
  return kind
end

-- Those of one dtype, from all ranks: `all[r][i]` is number i of rank r - 1.
local function gather_dtype(dtype, list, ranks, all)
  local rows = {}
  for i, tensor in ipairs(list) do
    if tensor.dtype == dtype then rows[#rows + 1] = list[i]:reshape { -1 } end
  end
  local row = #rows > 0 and c.cat(rows, 1)
    or c.empty({ 0 }, { dtype = dtype, device = list[1].device })
  local joined, at = collectives.all_gather(row, { cat = true, sync_grads = false }), 1
  for r, described in ipairs(ranks) do
    for i, one in ipairs(described.tensors) do
      if one.dtype == dtype then
        all[r][i] = joined:narrow(1, at, one.n):reshape(one.shape)
        at = at + one.n
      end
    end
  end
end

local function gather_tensors(list, ranks)
  local dtypes, all = {}, {}
  for r, described in ipairs(ranks) do
    all[r] = {}
    for _, one in ipairs(described.tensors or {}) do dtypes[one.dtype] = true end
  end
  if next(dtypes) == nil then return all end
  if not common_kind(ranks) then return collectives.all_gather(list) end
  local _ <close> = c.no_grad()
  for dtype in tree.pairs(dtypes) do gather_dtype(dtype, list, ranks, all) end
  return all
end

-- A rank may have come to another exchange of values, which looks the same to collectives.
local function check(ranks)
  for r, described in ipairs(ranks) do
    if type(described) ~= "table" or described.gathers ~= true then
      errors.blame("ranks disagree: rank %d gathers other values: functions that gather values of "
        .. "all ranks (save_checkpoint of a strategy that shards, metrics, all_gather) must be "
        .. "called by all of them, in the same order", r - 1)
    end
  end
end

--- Returns the list of all ranks' values, in the order of ranks. Tensors on a device are on this
--- rank's device, or on the CPU where not every rank has some. All ranks call it.
return function(value)
  local list = {}
  value = take_out(value, list)
  local ranks = collectives.all_gather { value = value, tensors = describe(list), gathers = true }
  check(ranks)
  local all = gather_tensors(list, ranks)
  local values = {}
  for r, one in ipairs(ranks) do values[r] = put_back(one.value, all[r]) end
  return values
end
