--- stdlib/strategies/sharded/Unit.lua: parameters that are gathered, and whose gradients are
--- reduced, together.
local Shards = require "ltrain.strategies.sharded.Shards"
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local d = c.dist

local Unit = class.extend(nil, "Unit")

--- Unit(name, shards, stays): `stays`: once it is gathered, its parameters stay until all ranks
--- have ended what they do with them.
function Unit:init(name, shards, stays)
  self.name, self.shards, self.stays = name, shards, stays
  self.label, self.parameters = "unit " .. name, {}
  for i, shard in ipairs(shards) do self.parameters[i] = shard.parameter end
  self.depth = 0 -- calls of its module that run now
  self.is_wanted = false -- backward computes with it
  self.calls = {} -- { part = of the step }: calls whose arguments' gradients are to come, a set
  self.is_here = true -- the parameters have their memory and values
  self.pending = 0 -- parameters whose gradients this backward has not completed
  self.by_flags = {} -- groups of the parameters that require grad
end

--- Takes the memory of its parameters away, but of those that `keeps(shard)` names, that no other
--- rank shares, and of views into memory that others share.
function Unit:part(keeps)
  local parted = {}
  for _, shard in ipairs(self.shards) do
    local parts = shard.is_kept and shard.replicas.ranks > 1 and d.is_alone(shard.parameter)
      and not keeps(shard)
    if parts then Shards.part(shard) end
    if not shard.is_kept then parted[#parted + 1] = shard end
  end
  self.parted = parted
  self.groups = Shards.group(parted)
  self.is_here = #parted == 0
end

--- Whether there is anything to gather.
function Unit:is_parted() return self.groups ~= nil and #self.groups > 0 end

--- Begins to gather the whole parameters, if that has not begun. All ranks call it.
function Unit:begin_gather()
  if self.gathering then return end
  local works = {}
  for i, group in ipairs(self.groups) do
    local own = {}
    for k, shard in ipairs(group.shards) do
      d.fill(shard.parameter)
      own[k] = shard.tensor
    end
    works[i] = d.gather_shards(group.replicas.inner, group.parameters, group.cuts, own, self.label)
  end
  self.gathering = works
end

--- Gathers the whole parameters. All ranks call it.
function Unit:gather()
  self:begin_gather()
  for _, work in ipairs(self.gathering) do d.wait(work) end
  self.gathering, self.is_here = nil, true
end

--- Lets the whole parameters go; tensors and what backward has saved stay valid for the next
--- gather.
function Unit:release()
  if not self.is_here or not self:is_parted() then return end
  for _, shard in ipairs(self.parted) do Shards.empty(shard) end
  self.is_here = false
end

--- Takes what is in the gathered parameters for that of their shards.
function Unit:write_shards()
  local _ <close> = c.no_grad()
  for _, shard in ipairs(self.parted or {}) do
    Shards.read(shard)
  end
end

--- Makes the gathered parameters whole for good.
function Unit:join()
  for _, shard in ipairs(self.parted) do Shards.join(shard) end
  self.parted, self.groups = nil, nil
end

-- The groups of those that require grad now; scripts freeze and unfreeze them.
local function trained(self)
  local flags, list = {}, {}
  for i, shard in ipairs(self.shards) do
    flags[i] = shard.parameter.requires_grad and "1" or "0"
    if shard.parameter.requires_grad then list[#list + 1] = shard end
  end
  local key = table.concat(flags)
  self.by_flags[key] = self.by_flags[key] or { list = list, groups = Shards.group(list) }
  return self.by_flags[key]
end

--- Begins a backward: counts the gradients to come; of one without those of weights there are none.
function Unit:expect(has_weights) self.pending = has_weights and #trained(self).list or 0 end

--- Whether this rank computes with it now.
function Unit:is_in_use() return self.depth > 0 or self.is_wanted end

--- Whether backward has passed it: all gradients of its parameters and arguments are there. Calls
--- of other parts of the step have a backward of their own.
function Unit:is_done()
  if self.pending > 0 then return false end
  for call in next, self.calls do
    if call.part == c.dist.part() then return false end
  end
  self.is_wanted = false
  return true
end

--- Begins to reduce the gradients that are there. All ranks call it.
function Unit:begin_reduce()
  self.reducing = {}
  for i, group in ipairs(trained(self).groups) do
    self.reducing[i] = Shards.begin_reduce(group, self.label, 1)
  end
end

--- The shards get what was reduced. All ranks call it.
function Unit:end_reduce()
  for _, finish in ipairs(self.reducing) do finish() end
  self.reducing = nil
end

--- Whether there are gradients that no reduction has taken.
function Unit:has_gradients()
  return d.missing(self.parameters) < #self.parameters
end

return Unit
