--- stdlib/strategies/rank_device.lua: the device of a rank that a launcher has started.
--
-- Forked ranks see what their parent sees, and rank k of the machine takes the k-th. Of tasks of
-- srun each may see one GPU of its own, which is number 0 to it (--gpus-per-task), or those near it
-- (--gpu-bind): only their addresses on the bus tell which are the same.
local c = require "ltrain.c"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"

-- The addresses of the devices that this rank may take, or their names where the backend has none;
-- of the CPU, and of a script's own accelerator, none.
local function addresses_of(accelerator)
  local list = {}
  local numbers = accelerator.kind and not accelerator.opens_all and accelerator.devices
  for k, number in ipairs(numbers or {}) do
    local name = ("%s:%d"):format(accelerator.kind, number)
    list[k] = c.runtime.bus_address(name) or name
  end
  return list
end

-- Gives each rank of a machine a place in its own list of addresses, the first that is free where
-- that is possible; nil: there are not enough.
local function assign(lists)
  local owner, place = {}, {}
  local function take(rank, tried)
    for pass = 1, 2 do -- what is free, then what its owner can give for another
      for k, address in ipairs(lists[rank]) do
        local taken = owner[address]
        if not taken or pass == 2 and not tried[address] then
          tried[address] = true
          if not taken or take(taken, tried) then
            owner[address], place[rank] = rank, k
            return true
          end
        end
      end
    end
    return false
  end
  for rank in ipairs(lists) do
    if not take(rank, {}) then return nil end
  end
  return place
end

local function refuse(lists, kind, host)
  local seen, n = {}, 0
  for _, list in ipairs(lists) do
    for _, address in ipairs(list) do
      n, seen[address] = n + (seen[address] and 0 or 1), true
    end
  end
  errors.blame("Trainer: %d ranks were started on %s, with %d %s to compute on: start one rank for "
    .. "each", #lists, host, n, n == 1 and "device of " .. kind or "devices of " .. kind)
end

local function check_kinds(all, hosts)
  for rank, other in ipairs(all) do
    if other.kind ~= all[1].kind then
      errors.blame("Trainer: all ranks compute on one kind of device: rank 0 on %s: %s, rank %d on "
        .. "%s: %s", hosts[1], all[1].kind, rank - 1, hosts[rank], other.kind)
    end
  end
end

-- The place in its list that each rank of a machine takes, by ranks from 1.
local function places_on(node, all, hosts)
  local lists, ranks, places = {}, {}, {}
  for rank, other in ipairs(all) do
    if other.node == node and #other.addresses > 0 then
      lists[#lists + 1], ranks[#ranks + 1] = other.addresses, rank
    end
  end
  local place = assign(lists) or refuse(lists, all[1].kind, hosts[ranks[1]])
  for k, rank in ipairs(ranks) do places[rank] = place[k] end
  return places
end

--- Returns the device of this rank. Every rank of the world calls it.
return function(accelerator, local_rank)
  local world = dist.world()
  local device = accelerator:device(local_rank)
  if world.ranks == 1 or world.forked then return device end
  local all = dist.all_gather { kind = device:match "^[^:]+", node = world.node_rank,
    addresses = addresses_of(accelerator) }
  check_kinds(all, world.hosts)
  for node = 0, world.nodes - 1 do -- all look at all: they find the same faults
    local place = places_on(node, all, world.hosts)[world.rank + 1]
    if place then device = ("%s:%d"):format(accelerator.kind, accelerator.devices[place]) end
  end
  return device
end
