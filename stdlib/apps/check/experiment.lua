--- stdlib/apps/check/experiment.lua: runs training_step and backward on a batch without an
--- optimizer step, and records what they did.
--
-- The same random numbers and buffers each time: what differs between two experiments comes from
-- their batches.
-- In manual optimization the optimizers' steps do nothing meanwhile.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local interrupt = require "ltrain.core.interrupt"
local module_step = require "ltrain.trainer.steps.module_step"
local walk = require "ltrain.core.walk"

local Experiment = {}

local function tensors_in(list)
  local found = {}
  for i = 1, list.n or #list do
    if c.is_tensor(list[i]) then
      found[#found + 1] = list[i]
    elseif type(list[i]) == "table" and getmetatable(list[i]) == nil then
      for _, inner in ipairs(tensors_in(list[i])) do found[#found + 1] = inner end
    end
  end
  return found
end

local function closing(fn) return setmetatable({}, { __close = fn }) end

-- Notes each call of a module: {module, name, inputs, outputs, depth, first, last}, the numbers of
-- the operations within it.
local function watch_modules(root, found)
  local handles, open = {}, {}
  for _, entry in ipairs(walk.modules(root)) do
    local module = entry.module
    handles[#handles + 1] = module:register_forward_pre_hook(function(_, args)
      local record = { module = module, name = entry.name, inputs = tensors_in(args),
        depth = #open, first = #found.calls + 1, number = #found.started + 1,
        line = errors.where():match "^(.-:%d+)" }
      open[#open + 1] = record
      found.started[record.number] = record
    end)
    handles[#handles + 1] = module:register_forward_hook(function(_, _, output)
      local record = open[#open]
      while record and record.module ~= module do -- one that an error left
        open[#open] = nil
        record = open[#open]
      end
      if not record then return end
      open[#open] = nil
      record.outputs = tensors_in { output, n = 1 }
      record.last = #found.calls
      found.modules[#found.modules + 1] = record
    end)
  end
  return closing(function()
    for _, handle in ipairs(handles) do handle:remove() end
  end)
end

-- Operations in a layer of the library have the line of the outermost call of a module: they get
-- that of the layer's.
local function correct_lines(found)
  for _, record in ipairs(found.started) do
    if record.line and not c.runtime.origin(record.module.forward) then
      for i = record.first, record.last or 0 do found.calls[i].line = record.line end
    end
  end
end

-- Sets the mode of all modules; to be closed.
local function in_mode(root, training)
  local before = {}
  for _, entry in ipairs(walk.modules(root)) do
    before[entry.module] = entry.module.training
    rawset(entry.module, "training", training)
  end
  return closing(function()
    for module, mode in next, before do rawset(module, "training", mode) end
  end)
end

-- Optimizers whose step does nothing but call its closure, and then on_step(); to be closed.
local function without_steps(state, on_step)
  if state.automatic then return nil end
  local before = {}
  for _, optimizer in ipairs(state.optimizers) do
    before[optimizer] = rawget(optimizer, "step") or false
    rawset(optimizer, "step", function(_, closure)
      local loss = closure and closure()
      if on_step then on_step() end
      return loss
    end)
  end
  return closing(function()
    for optimizer, step in next, before do rawset(optimizer, "step", step or nil) end
  end)
end

-- Buffers as they are before an experiment: a queue, running averages. To be closed.
local function same_buffers(root)
  local before = {}
  for _, entry in ipairs(walk.modules(root)) do
    for key, value in next, entry.module do
      if c.is_tensor(value) and not c.is_parameter(value) and not value.requires_grad then
        before[#before + 1] = { module = entry.module, key = key, value = value,
          copy = value:clone() }
      end
    end
  end
  return closing(function()
    local _ <close> = c.no_grad()
    for _, one in ipairs(before) do
      if not one.value:equal(one.copy) then one.value:copy_(one.copy) end
      rawset(one.module, one.key, one.value)
    end
  end)
end

--- The loss in what training_step returned; nil without one.
function Experiment.loss_of(outputs)
  local loss = outputs
  if type(outputs) == "table" then loss = outputs.loss end
  return c.is_tensor(loss) and loss:numel() == 1 and loss or nil
end

--- training_step of a batch with the random numbers of `draws`. Returns the loss (nil without one).
--- on_step (optional): called where an optimizer would step, in manual optimization.
function Experiment.step(state, batch, draws, on_step)
  c.runtime.collect_fully() -- what the experiment before has left may be as large as the module
  c.runtime.rng_set(draws)
  interrupt.allow() -- Ctrl-C ends a step at once: nothing is to be saved
  math.randomseed(1)
  local _ <close> = without_steps(state, on_step)
  local _ <close> = same_buffers(state.module)
  local before = state.loop.batch
  state.loop.batch, state.loop.batch_count = batch, false
  local ok, outputs = pcall(module_step.run, state, "training_step", batch,
    state.loop.batch_idx or 0)
  state.loop.batch, state.loop.batch_count = before, false
  if not ok then error(outputs, 0) end
  return Experiment.loss_of(outputs)
end

--- The same in evaluation mode, watched: {loss =, calls = as of c.runtime.trace, modules = calls of
--- modules as they ended}.
function Experiment.watch(state, batch, draws)
  local found = { calls = {}, modules = {}, started = {} }
  do
    local _ <close> = in_mode(state.module, false)
    local _ <close> = watch_modules(state.module, found)
    local _ <close> = c.runtime.trace(found.calls)
    local made = c.runtime.parameters_made()
    found.loss = Experiment.step(state, batch, draws)
    found.made = c.runtime.parameters_made() - made
  end
  correct_lines(found)
  return found
end

--- As pcall, for experiments: Ctrl-C is not an error of the script.
function Experiment.try(f, ...)
  local ok, result = pcall(f, ...)
  if not ok and interrupt.is(result) then error(result, 0) end
  return ok, result
end

return Experiment
