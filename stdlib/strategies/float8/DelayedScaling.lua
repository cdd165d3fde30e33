-- stdlib/strategies/float8/DelayedScaling.lua: scales of float8 tensors from the largest absolute
-- values (amax) of the steps before.
--
-- P. Micikevicius and others, FP8 Formats for Deep Learning, 2022. The recipe and its defaults are
-- those of NVIDIA's Transformer Engine (DelayedScaling: margin 0, amax_history_len 1024,
-- amax_compute_algo "max"): a tensor is multiplied by the largest number of its format over the
-- largest amax of the history. The scale is known before the tensor is, so that a value is read
-- once. The amax of a step is the largest of all ranks, and so scales are equal on all.
--
-- A slot is a tensor of a layer: what the layer gets (1), its weight (2), the gradient of what it
-- returns (3).
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local DelayedScaling = class.extend(nil, "DelayedScaling")

local INF <const> = math.huge
local LARGEST_F32 <const> = 0x1.fffffep127

--- The format of each slot, and the largest number of each format.
DelayedScaling.formats = { "e4m3", "e4m3", "e5m2" }
local LARGEST <const> = { e4m3 = 448.0, e5m2 = 57344.0 }
local SLOTS <const> = #DelayedScaling.formats

local HISTORY <const> = 1024

-- The scales [S], and each as a number [] with its reciprocal.
local function set_scale(self, scale)
  self.scale = scale
  self._scales, self._inverses = scale:unbind(), scale:reciprocal():unbind()
end

--- Of the layers that are called `names`.
function DelayedScaling:init(names)
  local slots, largest <const> = #names * SLOTS, {}
  for i = 1, slots do
    largest[i] = LARGEST[DelayedScaling.formats[(i - 1) % SLOTS + 1]]
  end
  self.names = names
  self.history = c.zeros(HISTORY, slots) -- a ring
  self.next = 1 -- the row of the history that is written next
  self.largest = c.tensor(largest)
  self._amax = {} -- slot -> amax since the last update
  set_scale(self, c.ones(slots))
end

local function place(self, device)
  if self.scale.device == device then return end
  self.history, self.largest = self.history:to(device), self.largest:to(device)
  set_scale(self, self.scale:to(device))
end

--- Returns the bits of `x`, and the number [] that their values are multiplied by. `records`:
--- whether its amax counts for the scales of later steps.
function DelayedScaling:quantize(layer, slot, x, records)
  place(self, x.device)
  local at <const> = (layer - 1) * SLOTS + slot
  if records then
    local amax <const> = c.grads_norm({ x }, INF)
    local before <const> = self._amax[at]
    self._amax[at] = before and before:maximum(amax) or amax
  end
  local format <const> = DelayedScaling.formats[slot]
  return c.quantize_float8(x, self._scales[at], { format = format }), self._inverses[at]
end

-- The amax of each slot since the last update, of all ranks; 0: of a layer that was not used.
local function take_amax(self)
  local list, none = {}, c.zeros({}, { device = self.scale.device })
  for i = 1, #self._scales do list[i] = self._amax[i] or none end
  self._amax = {}
  local amax = c.stack(list)
  if dist.world_size() > 1 then amax = dist.all_reduce(amax, { op = "max" }) end
  return amax
end

--- After an optimizer step: all ranks call it. A scale stays where the history has no finite amax
--- above 0.
function DelayedScaling:update()
  local _ <close> = c.no_grad()
  self.history[self.next] = take_amax(self)
  self.next = self.next % HISTORY + 1
  local amax = self.history:amax(1)
  local scale = (self.largest / amax):clamp { max = LARGEST_F32 }
  set_scale(self, c.where(amax:gt(0):logical_and(amax:isfinite()), scale, self.scale))
end

--- Its state for a checkpoint.
function DelayedScaling:state_dict()
  return { names = self.names, history = self.history:clone(), scale = self.scale,
    next = self.next }
end

local STATE <const> = { names = { list = "string" }, history = "tensor", scale = "tensor",
  next = "count" }

function DelayedScaling:load_state_dict(state)
  schema.check(state, STATE, "DelayedScaling")
  if table.concat(state.names, " ") ~= table.concat(self.names, " ") then
    errors.blame("DelayedScaling: load_state_dict: the layers in float8 are others: saved %s; here "
      .. "%s", table.concat(state.names, ", "), table.concat(self.names, ", "))
  end
  self.history, self.next = state.history:clone(), state.next
  self.largest = self.largest:to(self.history.device)
  set_scale(self, state.scale:to(self.history.device))
end

return DelayedScaling
