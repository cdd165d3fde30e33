--- stdlib/strategies/pipeline/Division.lua: which rank of a pipeline has which parameters and
--- buffers of a module.
--
-- A parameter of a block is the rank's that has the block: the other ranks give its memory back. A
-- parameter that blocks of several ranks use, or that is outside of the blocks, is common: all have
-- it, and its gradient is the sum of theirs. Buffers of blocks are their rank's; those outside are
-- the last rank's, which runs the whole step but for the blocks of others.
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local walk = require "ltrain.core.walk"

local d = c.dist

local Division = class.extend(nil, "Division")

local COMMON <const> = -1

-- The number of the rank that has each entry of the walk; COMMON outside of blocks.
local function owners_of(entries, places, rank_of)
  local owners = {}
  for i, entry in ipairs(entries) do
    owners[i] = owners[i] or COMMON
    local place = places[entry.module]
    for k = entry.first, place and entry.last or 0 do owners[k] = rank_of(place) end
  end
  return owners
end

-- Notes that `owner` uses a tensor.
local function note(self, item, owner)
  local before = self.owner[item.value]
  self.owner[item.value] = (before == nil or before == owner) and owner or COMMON
  self.names[item.value] = self.names[item.value] or item.name
end

--- Division(module, places, rank_of, group): `places`: block -> its place; `rank_of(place)`: the
--- rank of the group that has it.
function Division:init(module, places, rank_of, group)
  self.module, self.group = module, group
  self.rank, self.last = group:rank(), group:world_size() - 1
  self.owner, self.names, self.is_released = {}, {}, {}
  local entries, again = walk.modules(module)
  local owners, number = owners_of(entries, places, rank_of), {}
  for i, entry in ipairs(entries) do
    number[entry] = i
    for _, item in ipairs(entry.tensors) do note(self, item, owners[i]) end
  end
  for _, child in ipairs(again) do -- modules that are in a second place
    for k = child.again.first, child.again.last do
      for _, item in ipairs(entries[k].tensors) do note(self, item, owners[number[child.entry]]) end
    end
  end
  self.items = walk.tensors(module)
  self.foreign_modules = {} -- names of modules that others have the state of
  for i, entry in ipairs(entries) do
    local owner = owners[i] == COMMON and self.last or owners[i]
    if owner ~= self.rank then self.foreign_modules[entry.name] = true end
  end
end

--- Whether this rank has a parameter: its own, or a common one.
function Division:has(parameter)
  local owner = self.owner[parameter]
  return owner == nil or owner == COMMON or owner == self.rank
end

--- Whether all ranks have it.
function Division:is_common(parameter) return self.owner[parameter] == COMMON end

--- Whether this rank speaks for a parameter or buffer: of each tensor one rank does.
function Division:speaks_for(tensor)
  local owner = self.owner[tensor]
  return (owner == COMMON and self.last or owner) == self.rank
end

-- Takes the memory of the parameters away that other ranks have.
local function empty_foreign(self)
  for _, item in ipairs(self.items) do
    local parameter = item.value
    if not item.buffer and not self:has(parameter) and d.is_alone(parameter) then
      self.is_released[parameter] = true
      d.empty(parameter, ("parameter '%s' is on stage %d of the pipeline, and this is stage %d: "
        .. "use it in the forward of its block, or within strategy:gather_parameters()"):format(
        item.name, self.owner[parameter] + 1, self.rank + 1))
    end
  end
end

--- From here on each rank has what is its own. Gradients that all ranks have computed are left
--- where one of them counts.
function Division:release()
  for _, item in ipairs(self.items) do
    if not item.buffer and not self:speaks_for(item.value) then item.value.grad = nil end
  end
  empty_foreign(self)
end

--- Gives all ranks all parameters and buffers. All ranks call it.
function Division:join()
  local _ <close> = c.allow_update()
  for _, item in ipairs(self.items) do
    local tensor, owner = item.value, self.owner[item.value]
    if self.is_released[tensor] then d.fill(tensor) end
    if item.buffer or owner ~= COMMON then
      local whole = tensor:detach()
      collectives.broadcast(whole, { out = whole, group = self.group,
        from = owner == COMMON and self.last or owner })
    end
  end
  self.is_released = {}
end

--- The same until the result is closed. All ranks call it, and change parameters alike.
function Division:gather()
  self:join()
  return setmetatable({}, { __close = function() empty_foreign(self) end })
end

--- The run has failed: what other ranks have is gone.
function Division:lose()
  for parameter in next, self.is_released do
    d.fill(parameter)
    d.empty(parameter, ("parameter '%s' is incomplete: a run under strategies.Pipeline failed, and "
      .. "the other ranks ended with their stages: make the module anew, and resume from a "
      .. "checkpoint"):format(self.names[parameter]))
  end
end

--- What this rank has of a state of the module, by name, without what others have.
function Division:own_state(state)
  local own = {}
  for name, value in next, state do own[name] = value end
  for _, item in ipairs(self.items) do
    if not self:speaks_for(item.value) then own[item.name] = nil end
  end
  for name in next, self.foreign_modules do
    own[(name == "" and "" or name .. ".") .. "_extra_state"] = nil
  end
  return own
end

--- Gives the ranks of `group`, which have the same stage, the buffers of its first.
function Division:sync_buffers(group)
  local list = {}
  for _, item in ipairs(self.items) do
    local owner = self.owner[item.value]
    if item.buffer and (owner == COMMON or owner == self.rank) then list[#list + 1] = item.value end
  end
  broadcast_parameters.tensors(list, group)
end

return Division
