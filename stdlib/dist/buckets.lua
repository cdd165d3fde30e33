--- stdlib/dist/buckets.lua: gradient buckets, as in PyTorch's DDP: which gradients are packed into
--- one buffer and reduced together.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local dtypes = require "ltrain.core.dtypes"

local buckets = {}

local MEGABYTE <const> = 1 << 20

--- Bytes of so many MiB.
function buckets.bytes(megabytes) return math.max(math.floor(megabytes * MEGABYTE), 1) end

--- On how many ranks of a group (nil: of all) each of a list of flags, 0 or 1, is set. All of them
--- call it.
function buckets.counts(own, group)
  return collectives.all_reduce(c.tensor(own, { dtype = "i64" }), { group = group }):tolist()
end

local function flags(parameters)
  local own = {}
  for i, parameter in ipairs(parameters) do own[i] = parameter.grad and 1 or 0 end
  return own
end

--- Which parameters have a gradient on this rank: a text of 0 and 1, or "all".
function buckets.own_used(parameters)
  if c.dist.missing(parameters) == 0 then return "all" end
  return table.concat(flags(parameters))
end

--- The same of those that some rank has a gradient of. `missing`: how many gradients are not there,
--- of all ranks of the group together, who all call it.
function buckets.used(parameters, missing, group)
  if missing == 0 then return "all" end
  local own = flags(parameters)
  for i, count in ipairs(buckets.counts(own, group)) do own[i] = count > 0 and 1 or 0 end
  return table.concat(own)
end

--- The buckets of the parameters that are used, the last ones first: each { dtype =, parameters =,
--- count = elements }, of one dtype and device and at most `cap` bytes, unless one parameter has
--- more.
function buckets.split(parameters, used, cap)
  local list, open = {}, {}
  for i = #parameters, 1, -1 do
    local parameter = parameters[i]
    if used == "all" or used:byte(i) == ("1"):byte() then
      local dtype, n = parameter.dtype, parameter:numel()
      local kind = dtype .. " " .. parameter.device
      local bucket = open[kind]
      if not bucket or (bucket.count + n) * dtypes[dtype].size > cap then
        bucket = { dtype = dtype, parameters = {}, count = 0 }
        open[kind], list[#list + 1] = bucket, bucket
      end
      table.insert(bucket.parameters, parameter)
      bucket.count = bucket.count + n
    end
  end
  return list
end

return buckets
