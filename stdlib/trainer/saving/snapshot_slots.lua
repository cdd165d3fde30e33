--- stdlib/trainer/saving/snapshot_slots.lua: the slots for snapshots that a launcher has made for
--- the ranks of this host (elastic/snapshot_memory.lua), and which snapshot in them is the newest.
--
-- A slot is a memory file (c.io.read_slot): its header says which fit of the script it is of, the
-- round of the launcher, the number of the snapshot within the fit, and which part of how many.
-- Snapshots are ordered by (round, serial). One is whole when all of its parts are somewhere: the
-- first rank of each host looks at the slots of its host, and all ranks find the same.
local c = require "ltrain.c"
local dist = require "ltrain.dist"

local snapshot_slots = {}

local EACH <const> = 4 -- slots of a rank: two of its own, two for copies of another rank's
local START <const> = 4096 -- where the bytes begin (io/snapshot_slot.h)

local Slots <const> = {}
Slots.__index = Slots

--- Those of this process; nil where no launcher has made any.
function snapshot_slots.open()
  local fds = {}
  for fd in (c.runtime.getenv "LTRAIN_SNAPSHOT" or ""):gmatch "%d+" do
    fds[#fds + 1] = math.tointeger(tonumber(fd))
  end
  if #fds == 0 or #fds % EACH ~= 0 then return nil end
  return setmetatable({ fds = fds, ranks = #fds // EACH }, Slots)
end

--- Whether snapshot a is older than b; false: there is none.
function snapshot_slots.is_older(a, b)
  if not a or not b then return not a and b ~= nil end
  for _, key in ipairs { "fit", "round", "serial" } do
    if a[key] ~= b[key] then return a[key] < b[key] end
  end
  return false
end

local function variable(name) return math.tointeger(tonumber(c.runtime.getenv(name))) end

--- The number of this rank among those whose slots these are, and how many they are. The
--- launcher's: two launchers may run on one machine. Ranks that were forked here are not known to
--- it.
function snapshot_slots.local_rank()
  local own, world = variable "LOCAL_RANK", dist.world()
  if world.forked or not own then return world.local_rank, world.local_ranks end
  return own, variable "LOCAL_WORLD_SIZE" or 1
end

--- The slot that the next snapshot of this rank is written to: the one of its two that is not whole
--- or has the older one. `copies`: of another rank's snapshots.
function Slots:next(copies)
  local at = snapshot_slots.local_rank() * EACH + (copies and 2 or 0)
  local first, second = self.fds[at + 1], self.fds[at + 2]
  local older = snapshot_slots.is_older(c.io.read_slot(second) or false,
    c.io.read_slot(first) or false)
  return older and second or first
end

--- The slot of this host that has part `part` of a snapshot, and its header; nil: none has.
function Slots:find(snapshot, part)
  for _, fd in ipairs(self.fds) do
    local header = c.io.read_slot(fd)
    if header and header.part == part and header.parts == snapshot.parts
      and header.fit == snapshot.fit and header.round == snapshot.round
      and header.serial == snapshot.serial then
      return fd, header
    end
  end
end

--- The path by which this process reads a slot as a file, and where its bytes begin.
function snapshot_slots.path(fd) return ("/proc/self/fd/%d"):format(fd), START end

-- Which is the newest.

-- The headers of the slots of this host, newest first, without those in `damaged` (by descriptor),
-- and whether there are some of a later fit. Of complete ones the older are of no use.
local function inventory(self, fit, damaged)
  local headers, later, list = {}, false, {}
  for _, fd in ipairs(self.fds) do
    local header = c.io.read_slot(fd)
    later = later or header ~= nil and header.fit > fit
    if header and header.fit == fit and not damaged[fd] then
      header.fd = fd
      headers[#headers + 1] = header
    end
  end
  table.sort(headers, function(a, b) return snapshot_slots.is_older(b, a) end)
  for _, header in ipairs(headers) do
    list[#list + 1] = header
    if header.parts == 1 then break end
  end
  return list, later
end

-- What this rank knows of the slots of its host. Their bytes are many: each rank of the host hashes
-- a share of them, and `found` is what it adds to their hash.
local function look(self, fit, damaged)
  local rank, count = snapshot_slots.local_rank()
  local headers, later = inventory(self, fit, damaged)
  for _, header in ipairs(headers) do
    header.found = c.io.hash_slot(header.fd, header, rank, count)
  end
  return { headers = headers, later = later, is_first = rank == 0 }
end

-- By host, of what all ranks know: its first rank, and the headers whose bytes are right; then
-- whether there were others, of which those on this rank's host go into `damaged`.
local function check(all, damaged)
  local hosts, own, are_right = {}, nil, true
  for r, of_rank in ipairs(all) do
    local host = hosts[#hosts]
    if of_rank.is_first then
      host = { rank = r - 1, read = of_rank.headers, headers = {} }
      hosts[#hosts + 1] = host
    else
      for i, header in ipairs(host.read) do
        local summand = of_rank.headers[i].found
        header.found = header.found and summand and header.found + summand
      end
    end
    if r - 1 == dist.rank() then own = host end
  end
  for _, host in ipairs(hosts) do
    for _, header in ipairs(host.read) do
      if header.found == header.hash then
        host.headers[#host.headers + 1] = header
      else
        are_right = false
        if host == own then damaged[header.fd] = true end
      end
    end
  end
  return hosts, are_right
end

-- By snapshot: { fit =, round =, serial =, step =, parts =, holders = }; holders[part + 1]: the
-- first ranks of the hosts that have that part, in order.
local function group(hosts)
  local found, list = {}, {}
  for _, host in ipairs(hosts) do
    for _, header in ipairs(host.headers) do
      local key = ("%d %d %d"):format(header.round, header.serial, header.parts)
      local one = found[key]
      if not one then
        one = { fit = header.fit, round = header.round, serial = header.serial,
          step = header.step, parts = header.parts, holders = {} }
        found[key], list[#list + 1] = one, one
      end
      local holders = one.holders[header.part + 1] or {}
      one.holders[header.part + 1] = holders
      holders[#holders + 1] = host.rank
    end
  end
  return list
end

local function is_whole(one)
  for part = 1, one.parts do
    if not one.holders[part] then return false end
  end
  return true
end

--- The newest snapshot of this fit that is whole: { fit =, round =, serial =, step =, parts =,
--- holders = }, or nil; `leaders`: the first rank of each host; whether there is a snapshot of a
--- later fit. All ranks call it, and get the same.
function Slots:newest(fit)
  local damaged = {}
  local all = dist.all_gather(look(self, fit, damaged))
  local hosts, are_right = check(all, damaged)
  while not are_right do
    all = dist.all_gather(look(self, fit, damaged))
    hosts, are_right = check(all, damaged)
  end
  local newest, leaders, later = nil, {}, false
  for _, one in ipairs(group(hosts)) do
    if is_whole(one) and (not newest or snapshot_slots.is_older(newest, one)) then newest = one end
  end
  for i, host in ipairs(hosts) do leaders[i] = host.rank end
  for _, of_rank in ipairs(all) do later = later or of_rank.later end
  return newest, leaders, later
end

-- Between hosts.

--- A group of the ranks for which is_in is true, with its ranks; nil on the others. All ranks call
--- it.
function snapshot_slots.group_of(is_in)
  return dist.split(is_in and 0 or -1)
end

--- Gives the bytes of a snapshot of one part to the hosts that lack it. All ranks call it.
function Slots:share(snapshot, leaders)
  local source, lacks, has = snapshot.holders[1][1], {}, {}
  for _, rank in ipairs(snapshot.holders[1]) do has[rank] = true end
  for _, rank in ipairs(leaders) do lacks[rank] = not has[rank] or nil end
  if next(lacks) == nil then return end
  local rank = dist.rank()
  local members = snapshot_slots.group_of(rank == source or lacks[rank])
  if members then
    local from = 0
    for i, member in ipairs(members:ranks()) do
      if member == source then from = i - 1 end
    end
    local fd, header = self:find(snapshot, 0)
    header = members:broadcast(header or false, { from = from })
    local bytes = rank == source and c.io.slot_bytes(fd, header)
      or c.empty({ header.bytes }, { dtype = "u8" })
    bytes = members:broadcast(bytes, { from = from })
    if lacks[rank] then c.io.put_slot(self:next(), header, bytes) end
  end
  dist.barrier()
end

return snapshot_slots
