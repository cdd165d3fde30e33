-- stdlib/transforms/RandomChoice.lua: applies one of several transforms.

local Transform = require "ltrain.transforms.Transform"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local RandomChoice = Transform:extend("RandomChoice")

RandomChoice.__arguments = "transforms | p"

local WHERE <const> = "transforms.RandomChoice"
local OPTIONS <const> = {
  p = { type = "table", doc = "weights; by default all are equal" },
}

--- transforms.RandomChoice({t1, t2}, {p = {1, 3}}): a list of transforms or functions
---@param transforms table
function RandomChoice:init(transforms, options)
  self.transforms = values.parts(transforms, WHERE)
  if #self.transforms == 0 then errors.blame("%s: there is none to choose", WHERE) end
  local p <const> = config.check(options, OPTIONS, WHERE).p
  self.p = p and values.list(p, #self.transforms, WHERE, "p", { min = 0 })
  local total = 0
  for _, weight in ipairs(self.p or { 1 }) do total = total + weight end
  if total == 0 then errors.blame("%s: all weights are 0", WHERE) end
end

function RandomChoice:_steps()
  local lists <const> = values.steps_of(self.transforms)
  if not lists then return nil end
  local groups = {}
  for k, list in ipairs(lists) do
    groups[k] = { "group", self.p and self.p[k] or 1, steps = list }
  end
  return { { "choice", steps = groups } }
end

function RandomChoice:_by_parts(sample)
  local total, chosen = 0, nil
  for k in ipairs(self.transforms) do total = total + (self.p and self.p[k] or 1) end
  local at = c.rand(1):item() * total
  for k, part in ipairs(self.transforms) do
    local weight <const> = self.p and self.p[k] or 1
    if weight > 0 and at >= 0 then chosen = part end
    at = at - weight
  end
  local out <const> = chosen(sample)
  return out
end

return RandomChoice
