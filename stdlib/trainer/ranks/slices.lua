--- stdlib/trainer/ranks/slices.lua: deterministic = "world": bitwise equal results on any number of
--- ranks up to that of slices.
--
-- Each batch of all ranks is cut into a fixed number of slices, whatever the number of ranks, and
-- training_step runs once a slice. A slice draws its own random numbers; batch norm takes the
-- statistics of the slice, and its averages take them in the order of slices. Gradients are added
-- first over the batches of a window, within a slice, then over slices in a binary tree, of which
-- each rank has a whole branch and the ranks' own sum the rest: the additions are the same ones.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local loop = require "ltrain.trainer.loop"
local parameters_of = require "ltrain.core.parameters_of"
local reductions = require "ltrain.core.reductions"

local slices = {}

local tree_reduce <const> = reductions.tree_reduce

-- The first slice of each rank, from 0. A rank has a whole branch of the tree of slices, and the
-- branches are put together in the tree of the ranks (core/reductions.lua): of ranks lo .. hi - 1
-- the first ones, the largest power of two below their number, have the first half of the slices.
local function firsts_of(ranks, all)
  local firsts = {}
  local function share(lo, hi, first, last)
    if hi - lo == 1 then
      firsts[lo + 1] = first
      return
    end
    local half, middle = 1, (first + last) // 2
    while 2 * half < hi - lo do half = 2 * half end
    share(lo, lo + half, first, middle)
    share(lo + half, hi, middle, last)
  end
  share(0, ranks, 0, all)
  return firsts
end

-- The loader of this rank's slices: each "batch" is the list of theirs, false for an empty one.

local Slices = class.extend(nil, "Slices")

function Slices:init(loader, first, count, all)
  self.parts, self.first, self.firsts = {}, first, firsts_of(data_ranks.size(), all)
  for i = 1, count do
    local part = setmetatable({}, getmetatable(loader))
    for key, value in next, loader do part[key] = value end
    part:shard(first + i - 1, all, "train")
    self.parts[i] = part
  end
  self.batch_size, self.global_batch_size = self.parts[1].batch_size, loader.global_batch_size
end

--- What all loaders that ranks share have: there is nothing to make whole, its parts are copies.
function Slices:shard() return true end

function Slices:length() return self.parts[1]:length() end

function Slices:set_epoch(epoch)
  for _, part in ipairs(self.parts) do part:set_epoch(epoch) end
end

--- How many ranks, the first ones, have a sample of batch number `index`; nil: all.
function Slices:active_ranks(index)
  local active, ranks = self.parts[1]:active_ranks(index), 0 -- slices
  if not active then return nil end
  for _, first in ipairs(self.firsts) do
    if first < active then ranks = ranks + 1 end
  end
  return ranks < #self.firsts and ranks or nil
end

function Slices:state_dict() return self.parts[1]:state_dict() end

function Slices:state_before(index) return self.parts[1]:state_before(index) end

function Slices:load_state_dict(state)
  for _, part in ipairs(self.parts) do part:load_state_dict(state) end
end

function Slices:batches_before(state) return self.parts[1]:batches_before(state) end

function Slices:global_batch() return self.parts[1]:global_batch() end

function Slices:fingerprint() return self.parts[1]:fingerprint() end

function Slices:rewinds() return false end

function Slices:batches(position)
  local steps, closing = {}, {}
  for i, part in ipairs(self.parts) do
    local step, state_of_step, _, close = part:batches(position)
    steps[i], closing[i] = function() return (step(state_of_step, nil)) end, close or false
  end
  local function next_batch()
    local batch = {}
    for i, step in ipairs(steps) do
      loop.read_part(self.first + i - 1)
      batch[i] = step()
      if batch[i] == nil then return nil end
    end
    return batch
  end
  return next_batch, nil, nil, setmetatable({}, { __close = function()
    for _, one in ipairs(closing) do
      local _ <close> = one or nil
    end
  end })
end

-- What belongs to a fit.

local function check(state, all)
  local ranks = data_ranks.size()
  if all & (all - 1) ~= 0 then
    errors.blame("Trainer: world_slices must be a power of two: got %d", all)
  elseif all < ranks then
    errors.blame("Trainer: deterministic = 'world': %d ranks cannot share %d slices: give "
      .. "world_slices = a power of two, at least %d", ranks, all, ranks)
  end
  slices.check_mode(state)
end

--- Raises in manual optimization.
function slices.check_mode(state)
  if not state.automatic then
    errors.blame("fit: deterministic = 'world' runs training_step once a slice and steps after the "
      .. "last: manual optimization steps within")
  end
end

--- Begins a fit in this mode; nothing in another.
function slices.prepare(state)
  local o = state.trainer.options
  if o.deterministic ~= "world" then return end
  check(state, o.world_slices)
  local firsts, rank = firsts_of(data_ranks.size(), o.world_slices), data_ranks.rank()
  local first = firsts[rank + 1]
  state.ranks.slices = {
    all = o.world_slices, count = (firsts[rank + 2] or o.world_slices) - first, first = first,
    grads = {}, weights = {}, threads = c.runtime.get_threads(), norms = {}, statistics = {},
  }
  for _, module in ipairs(state.module:modules()) do
    if module.track_statistics then table.insert(state.ranks.slices.norms, module) end
  end
  c.runtime.set_threads(o.world_threads or 1)
end

--- The loader of the rank's slices in place of `loader`.
function slices.loader(state, loader)
  local own = state.ranks.slices
  if not class.has_method(loader, "shard") or not class.has_method(loader, "length")
    or not loader:length() then
    errors.blame("fit: deterministic = 'world' cuts batches of a data set whose length is known: "
      .. "give a DataLoader over one, got %s", errors.show(loader))
  end
  return Slices(loader, own.first, own.count, own.all)
end

-- Whether layers of batch norm leave their statistics to `track`, or take them at once.
local function track_later(own, on)
  for k, module in ipairs(own.norms) do
    rawset(module, "_later", on and function(mean, variance, count)
      table.insert(own.statistics, { k, mean:detach(), variance:detach(), count })
    end or nil)
  end
end

--- The end of the fit.
function slices.release(state)
  local own = state.ranks.slices
  if not own then return end
  state.ranks.slices = false
  c.runtime.set_threads(own.threads)
  track_later(own, false)
end

local function set_gradients(state, list)
  for i, parameter in ipairs(parameters_of(state.optimizers[1])) do
    parameter.grad = list and list[i] or nil
  end
end

local function take_gradients(state)
  local list = {}
  for i, parameter in ipairs(parameters_of(state.optimizers[1])) do
    list[i] = parameter.grad or false
  end
  return list
end

--- Begins slice number i of this rank: its gradients of the window are continued.
function slices.enter(state, i)
  local own = state.ranks.slices
  if state.optimizers[1] then set_gradients(state, own.grads[i]) end
  track_later(own, true)
end

--- Ends it; `weight`: what it weighs, nil when its step returned nothing.
function slices.leave(state, i, weight)
  local own = state.ranks.slices
  track_later(own, false)
  if not state.optimizers[1] then return end
  own.grads[i] = take_gradients(state)
  if weight then own.weights[i] = (own.weights[i] or 0.0) + weight end
end

--- The gradients of the window that the rank's slices have so far, as a list.
function slices.gradients(state)
  local list = {}
  for _, grads in pairs(state.ranks.slices.grads) do
    for _, grad in ipairs(grads) do
      if grad then list[#list + 1] = grad end
    end
  end
  return list
end

--- What the rank's slices have of a window that is not complete: a list of {weight, grads by name}.
function slices.state_dict(state)
  local own, names, list = state.ranks.slices, {}, {}
  for name, parameter in state.module:named_parameters() do names[parameter] = name end
  for i = 1, own.count do
    local grads = {}
    for k, parameter in ipairs(parameters_of(state.optimizers[1])) do
      grads[names[parameter]] = own.grads[i] and own.grads[i][k] or nil
    end
    list[i] = { weight = own.weights[i], grads = grads }
  end
  return list
end

--- Takes its part of that back, from the list of all slices.
function slices.load_state_dict(state, list)
  local own, by_name = state.ranks.slices, {}
  if #list ~= own.all then
    errors.blame("fit: the checkpoint has an incomplete window, saved in %d slices: world_slices "
      .. "is %d now", #list, own.all)
  end
  for name, parameter in state.module:named_parameters() do by_name[name] = parameter end
  for i = 1, own.count do
    local saved = list[own.first + i]
    local of = {}
    for name, grad in next, saved.grads do
      of[by_name[name]] = grad:to(by_name[name].device)
    end
    own.weights[i], own.grads[i] = saved.weight, {}
    for k, parameter in ipairs(parameters_of(state.optimizers[1])) do
      own.grads[i][k] = of[parameter] or false
    end
  end
end

--- A batch is over on all ranks: averages of batch norm take the statistics, in the order of
--- slices.
function slices.track(state)
  local own = state.ranks.slices
  if #own.norms == 0 then return end
  local strategy, mine = state.strategy, own.statistics
  own.statistics = {}
  for _, of_rank in ipairs(exchange("batch norm", strategy.all_gather, strategy, mine)) do
    for _, one in ipairs(of_rank) do
      local norm = own.norms[one[1]]
      local device = norm.running_mean.device -- what ranks send each other arrives on the CPU
      norm:track_statistics(one[2]:to(device), one[3]:to(device), one[4])
    end
  end
end

--- The window is over: the gradients become the sums over the rank's slices; returns the sum of
--- what they weigh. Where some slice has a gradient, one without counts as zeros.
function slices.combine(state)
  local own = state.ranks.slices
  local _ <close> = c.no_grad()
  local function weight_of(i) return own.weights[i] or 0.0 end
  local total = tree_reduce(1, own.count + 1, weight_of, reductions.sum)
  for k, parameter in ipairs(parameters_of(state.optimizers[1])) do
    local some = false
    for i = 1, own.count do some = some or own.grads[i] and own.grads[i][k] end
    parameter.grad = some and tree_reduce(1, own.count + 1, function(i)
      return own.grads[i] and own.grads[i][k] or c.zeros_like(parameter)
    end, reductions.sum) or nil
  end
  own.grads, own.weights = {}, {}
  return total
end

return slices
