--- stdlib/dist/PartReducer.lua: a Reducer of a module with experts that are divided among its
--- ranks.
--
-- Tokens of all ranks of a group have gone through an expert: the gradient that its rank has is
-- their sum already. It is summed over the ranks that have the same experts, and divided by the sum
-- of all weights, as all others are.
local Reducer = require "ltrain.dist.Reducer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"

local PartReducer = class.extend(Reducer, "PartReducer")

--- PartReducer{group =, part_group =, ...}: the options of a Reducer.
function PartReducer:init(options)
  local own = {}
  for name, value in next, options or {} do own[name] = value end
  Reducer.init(self, own)
  self.whole = Reducer(own)
  self.part_group, own.group = own.part_group, own.part_group
  self.parts = self.part_group and Reducer(own)
end

local function size_of(group) return group and group:world_size() or 1 end

--- Refuses experts that other ranks have too, and this would not add up.
function PartReducer:check(parameters)
  local ranks = self.group and self.group:world_size() or c.dist.size()
  for _, parameter in ipairs(parameters) do
    local cut = PartReducer.is_part(parameter) and cuts.of(parameter)
    if cut and cut.ranks * size_of(self.part_group) ~= ranks then
      errors.blame("dist.ddp: %s is divided among %d of %d ranks: give part_group, those that have "
        .. "the same experts: got %d", cut.name, cut.ranks, ranks, size_of(self.part_group))
    end
  end
end

--- Whether a parameter is an expert's that is divided.
function PartReducer.is_part(parameter)
  local cut = cuts.of(parameter)
  return cut ~= nil and cut.is_summed
end

--- Whether a list has such parameters.
function PartReducer.is_needed(parameters)
  for _, parameter in ipairs(parameters) do
    if PartReducer.is_part(parameter) then return true end
  end
  return false
end

--- No: there are two groups.
function PartReducer:can_overlap() return false end

-- What is whole, and the parts.
local function divided(parameters)
  local whole, parts = {}, {}
  for _, parameter in ipairs(parameters) do
    table.insert(PartReducer.is_part(parameter) and parts or whole, parameter)
  end
  return whole, parts
end

local function scale(parameters, factor)
  local _ <close> = c.no_grad()
  for _, parameter in ipairs(parameters) do
    if parameter.grad then parameter.grad:mul_(factor) end
  end
end

--- See Reducer.reduce.
function PartReducer:reduce(parameters, total, missing, key)
  local whole, parts = divided(parameters)
  self.whole:reduce(whole, total, missing, key or parameters)
  if self.parts then self.parts:reduce(parts, total, missing, key or parameters)
  else scale(parts, 1.0 / total) end
end

return PartReducer
