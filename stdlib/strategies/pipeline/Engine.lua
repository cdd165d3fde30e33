--- stdlib/strategies/pipeline/Engine.lua: runs the microbatches of a batch through the stages of a
--- pipeline, on one of its ranks.
--
-- A stage runs the step of the module with its blocks alone (BlockChain.lua). The step begins on
-- every stage, with what comes before the blocks, and ends on the last one. What a stage sends on
-- is a leaf of the graph of the next one; its gradient comes back, where backward continues.
local Mail = require "ltrain.strategies.pipeline.Mail"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local schedules = require "ltrain.strategies.pipeline.schedules"
local values = require "ltrain.strategies.pipeline.values"

local Engine = class.extend(nil, "Engine")

local UNDER_WAY <const> = 4 -- batches of evaluation that a stage is ahead of the next one

--- Engine(chain, {schedule =, stages =, chunks =, ends =, group =, device =}): `ends`: after which
--- blocks the virtual stages end, but the last; `group`: the ranks of the pipeline, nil: this one.
function Engine:init(chain, o)
  self.chain, self.schedule, self.stages, self.chunks = chain, o.schedule, o.stages, o.chunks
  self.mail = Mail(o.group, o.device)
  self.rank, self.virtual = self.mail.rank, o.stages * o.chunks
  self.first, self.last = { 1 }, {} -- blocks of each virtual stage
  for g, after in ipairs(o.ends) do self.last[g], self.first[g + 1] = after, after + 1 end
  self.last[self.virtual] = math.huge
  self.plans = {} -- by number of microbatches
  self.current = nil -- the forward of a microbatch that runs now
  self.divided = nil -- the microbatch whose backward leaves gradients of weights for later
  self.times = nil -- BlockTimes, of a batch that is measured
  self.is_final = false -- whether the virtual stage that runs, or has run last, is the last one
end

local function rank_of(self, g) return (g - 1) % self.stages end

local function key_of(kind, g, k) return ("%s %d %d"):format(kind, g, k) end

--- Whether this rank has the end of the step.
function Engine:is_last() return self.rank == self.stages - 1 end

-- Plans.

-- The messages that an action of a rank sends: to which rank, and its key.
local function message_of(self, rank, action)
  local g = schedules.stage_of(rank, action.chunk, self.stages)
  if action.kind == "F" and g < self.virtual then
    return rank_of(self, g + 1), key_of("F", g + 1, action.microbatch)
  elseif (action.kind == "B" or action.kind == "I") and g > 1 then
    return rank_of(self, g - 1), key_of("B", g - 1, action.microbatch)
  end
end

-- The actions of this rank, and the keys of what the others will send it.
local function plan_of(self, count)
  if self.plans[count] then return self.plans[count] end
  local ranks = schedules.of(self.schedule, self.stages, count, self.chunks)
  local orders = {}
  for from = 0, self.stages - 1 do
    for _, action in ipairs(from ~= self.rank and ranks[from + 1] or {}) do
      local to, key = message_of(self, from, action)
      if to == self.rank then
        orders[from] = orders[from] or {}
        table.insert(orders[from], key)
      end
    end
  end
  self.plans[count] = { actions = ranks[self.rank + 1], orders = orders }
  return self.plans[count]
end

-- Steps.

-- Runs the step fn(...) as virtual stage g with what it has received; returns whether the step has
-- ended, and its results.
local function run_stage(self, g, received, fn, ...)
  local times, watch = self.current and self.times, nil
  if times then
    times:begin()
    watch = function(...) return times:watch(...) end
  end
  self.is_final = g == self.virtual
  return self.chain:step(self.first[g], self.last[g], received or nil, watch, fn, ...)
end

local function send_on(self, g, key, message)
  if g < self.virtual then self.mail:send(rank_of(self, g + 1), key, message) end
end

local function kept(current, has_ended, ...)
  current.has_ended = has_ended
  if has_ended then return ... end
  current.left = ...
end

--- Runs fn(...), a step of the module: of the microbatch that runs, else of a whole batch without
--- gradients (evaluation). The results are those of the step on the last stage; else none.
function Engine:step(fn, ...)
  local current = self.current
  if current then
    return kept(current, run_stage(self, current.stage, current.received, fn, ...))
  end
  local results
  for chunk = 1, self.chunks do
    local g, received = schedules.stage_of(self.rank, chunk, self.stages), nil
    local key = key_of("F", g + 1, 0)
    if g > 1 and rank_of(self, g - 1) ~= self.rank then
      received = self.mail:receive(rank_of(self, g - 1))
    elseif g > 1 then
      received = self.mail:take(self.rank, key_of("F", g, 0))
    end
    received = received and values.unpack(received)
    results = table.pack(run_stage(self, g, received, fn, ...))
    send_on(self, g, key, not results[1] and (values.pack(results[2])) or false)
  end
  self.mail:settle(UNDER_WAY)
  if not self:is_last() then return end
  return table.unpack(results, 2, results.n)
end

-- Until the result is closed collectives are those of a microbatch: its backward visits them alone.
local function enter_part(self, chunk, k)
  c.dist.use_part((k - 1) * self.chunks + chunk)
  return setmetatable({}, { __close = function() c.dist.use_part(0) end })
end

-- Forward of a microbatch.
local function forward(self, work, chunk, k)
  local g = schedules.stage_of(self.rank, chunk, self.stages)
  local slot = { stage = g, k = k, leaves = {}, roots = {} }
  local message = g > 1 and self.mail:take(rank_of(self, g - 1), key_of("F", g, k)) or nil
  if message then slot.received, slot.leaves = values.unpack(message) end
  self.current = slot
  local _ <close> = enter_part(self, chunk, k)
  local found = table.pack(work.forward(k))
  self.current = nil
  if not slot.has_ended then
    message, slot.roots = values.pack(slot.left)
    send_on(self, g, key_of("F", g + 1, k), message)
  elseif g == self.virtual then
    slot.loss, slot.weight = work.loss(table.unpack(found, 1, found.n))
  else
    send_on(self, g, key_of("F", g + 1, k), false)
  end
  slot.left = nil
  return slot
end

-- The mean of the losses of a batch; nil without one.
local function mean_loss(losses)
  local _ <close> = c.no_grad()
  local sum, total = nil, 0.0
  for _, one in ipairs(losses) do
    local part = one.loss * one.weight
    sum, total = sum and sum + part or part, total + one.weight
  end
  return sum and sum / total
end

-- The gradients that come for what a stage has sent.
local function take_gradients(self, batch, slot)
  local message = self.mail:take(rank_of(self, slot.stage + 1), key_of("B", slot.stage, slot.k))
  if type(message) == "table" and message.is_last then
    batch.loss, message = message.loss or nil, message.gradients
  end
  return message
end

-- A backward from tensors with their gradients; with `slot` that of a part that keeps the gradients
-- of weights for later in it.
local function walk_back(roots, gradients, slot)
  local root, gradient = roots[1], gradients[1]
  if #roots > 1 then
    root, gradient = nil, nil
    for k, y in ipairs(roots) do
      local part = (y * gradients[k]):sum()
      root = root and root + part or part
    end
  end
  if slot then
    slot.deferred = c.runtime.backward_of_inputs(root, gradient)
  else
    root:backward { gradient = gradient }
  end
end

--- The backward of the loss of a microbatch, which is to leave gradients of weights for later.
function Engine:backward_of_inputs(loss) walk_back({ loss }, {}, self.divided) end

-- Backward of a microbatch on this stage; `is_divided`: without the gradients of its weights.
local function backward(self, work, batch, chunk, slot, is_divided)
  local g, is_last = slot.stage, slot.k == batch.count
  local _ <close> = enter_part(self, chunk, slot.k)
  if g == self.virtual then
    if slot.loss then
      table.insert(batch.losses, { loss = slot.loss:detach(), weight = slot.weight })
      if self.times then self.times:begin_backward() end
      self.divided = is_divided and slot
      work.backward(slot.loss, slot.weight)
      self.divided = nil
      if self.times then self.times:end_backward() end
    end
    if is_last then batch.loss = mean_loss(batch.losses) end
  else
    local gradients = take_gradients(self, batch, slot)
    local roots, given = values.with_gradients(slot.roots, gradients)
    if #roots > 0 then
      work.backward_from(function() walk_back(roots, given, is_divided and slot or nil) end,
        is_divided and "inputs" or nil)
    end
  end
  work.visit_rest()
  slot.loss, slot.roots = nil, nil
  if g == 1 then return end
  local message = values.gradients(slot.leaves)
  if is_last then
    message = { is_last = true, gradients = message, loss = batch.loss or false }
  end
  slot.leaves = nil
  self.mail:send(rank_of(self, g - 1), key_of("B", g - 1, slot.k), message)
end

-- The gradients of weights that a backward has left.
local function add_weights(self, work, chunk, slot)
  if not slot.deferred then return end
  local _ <close> = enter_part(self, chunk, slot.k)
  work.weights(function() slot.deferred:run() end)
end

--- Runs a batch of `work.count` microbatches:
---   work.forward(k)                 runs the step on microbatch k (which calls Engine.step)
---   work.loss(...)                  the loss and its weight of what that has returned; nil: none
---   work.backward(loss, weight)     backward of a loss
---   work.backward_from(walk, what)  calls walk(), a backward of what this stage has sent; `what`:
---                                   "inputs" where it leaves the gradients of weights
---   work.weights(walk)              calls walk(), which adds those
---   work.visit_rest()               backward of collectives that none has visited
--- Returns the mean loss, which all ranks know; nil without one. Then, on the last rank, how many
--- losses there were and what they weigh.
function Engine:train(work)
  local plan, slots = plan_of(self, work.count), {}
  local batch = { count = work.count, losses = {} }
  self.mail:expect(plan.orders)
  for _, action in ipairs(plan.actions) do
    local kind, key = action.kind, key_of("slot", action.chunk, action.microbatch)
    if kind == "F" then
      slots[key] = forward(self, work, action.chunk, action.microbatch)
    else
      self.chain.received = slots[key].received -- for what backward computes again
      if kind == "W" then
        add_weights(self, work, action.chunk, slots[key])
      else
        backward(self, work, batch, action.chunk, slots[key], kind == "I")
      end
      self.chain.received = nil
    end
    if kind == "B" or kind == "W" then slots[key] = nil end
  end
  self.mail:settle(0)
  if not self:is_last() then return batch.loss end
  local weight = 0.0
  for _, one in ipairs(batch.losses) do weight = weight + one.weight end
  return batch.loss, #batch.losses, weight
end

return Engine
