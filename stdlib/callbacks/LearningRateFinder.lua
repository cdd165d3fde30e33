--- stdlib/callbacks/LearningRateFinder.lua: finds a learning rate before training begins (the range
-- test of Smith 2015).
--
-- A copy of the module is trained with a learning rate that grows at each step. The suggestion is
-- the rate at which the smoothed loss falls fastest; it is assigned to the module's field `lr` (or
-- `learning_rate`, or another one), which configure_optimizers then uses. The module itself, and
-- the random numbers of training, are not affected.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local deepcopy = require "ltrain.nn.deepcopy"
local errors = require "ltrain.core.errors"

local LearningRateFinder = Callback:extend("LearningRateFinder")

--- It must run on a single rank.
LearningRateFinder.all_ranks = true

local BETA <const> = 0.98 -- of the smoothed loss

local OPTIONS <const> = {
  min_lr = { type = "number", default = 1e-8, above = 0, doc = "the first learning rate" },
  max_lr = { type = "number", default = 1.0, above = 0, doc = "the last one" },
  num_training_steps = { type = "integer", default = 100, min = 2, doc = "optimizer steps" },
  mode = { type = "string", default = "exponential", choices = { "exponential", "linear" },
    doc = "how the rate grows" },
  early_stop_threshold = { type = "number|boolean", default = 4.0,
    doc = "stop if the smoothed loss exceeds its minimum by this factor; false: never" },
  update_attr = { type = "boolean", default = true, doc = "set the module's field" },
  attr_name = { type = "string",
    doc = "its name; by default lr or learning_rate, of the module or its hparams" },
}

LearningRateFinder.__arguments = "| min_lr max_lr num_training_steps mode early_stop_threshold "
  .. "update_attr attr_name"

--- LearningRateFinder{min_lr = 1e-6, max_lr = 1}
function LearningRateFinder:init(options)
  local o = config.check(options, OPTIONS, "callbacks.LearningRateFinder")
  if o.min_lr >= o.max_lr then
    errors.blame("callbacks.LearningRateFinder: min_lr must be below max_lr: got %g and %g",
      o.min_lr, o.max_lr)
  end
  for name, value in next, o do self[name] = value end
end

-- The table and the name of the field that holds the learning rate.
local function place_of(self, module)
  local names = self.attr_name and { self.attr_name } or { "lr", "learning_rate" }
  for _, name in ipairs(names) do
    if rawget(module, name) ~= nil then return module, name end
    local hparams = rawget(module, "hparams")
    if type(hparams) == "table" and hparams[name] ~= nil then return hparams, name end
  end
  errors.blame("LearningRateFinder: the module and its hparams have no field '%s': name it by "
    .. "attr_name, or give update_attr = false", table.concat(names, "' or '"))
end

-- The learning rate of step number k, from 0.
local function rate_of(self, k)
  local share = k == 0 and 0 or (k + 1) / self.num_training_steps
  if self.mode == "linear" then return self.min_lr + (self.max_lr - self.min_lr) * share end
  return self.min_lr * (self.max_lr / self.min_lr) ^ share
end

local Range = Callback:extend("Range")
Range.all_ranks = true

function Range:init(finder)
  self.finder, self.average, self.best, self.batches = finder, 0.0, math.huge, 0
  finder.results = { lr = {}, loss = {} }
end

function Range:on_before_optimizer_step(trainer, _, optimizer)
  local rate = rate_of(self.finder, trainer.global_step)
  for _, group in ipairs(optimizer.param_groups) do group.lr = rate end
  self.rate = rate
end

function Range:on_train_batch_end(trainer, _, outputs)
  self.batches = self.batches + 1
  -- Where no step is ever made, as in manual optimization, max_steps would not end the test.
  if #self.finder.results.lr == 0
    and self.batches >= self.finder.num_training_steps * trainer.accumulate_grad_batches then
    trainer.should_stop = true
  end
  if not self.rate then return end -- in the midst of a window
  local finder, loss = self.finder, type(outputs) == "table" and outputs.loss or outputs
  local value = c.is_tensor(loss) and loss:item() or loss or 0.0 / 0.0
  local k = #finder.results.lr + 1
  if value == value then self.average = BETA * self.average + (1 - BETA) * value end
  local smooth = value == value and self.average / (1 - BETA ^ k) or value
  finder.results.lr[k], finder.results.loss[k], self.rate = self.rate, smooth, nil
  local threshold = finder.early_stop_threshold
  if threshold and k > 1 and smooth > threshold * self.best then trainer.should_stop = true end
  if smooth < self.best or k == 1 then self.best = smooth end
end

-- The derivative of y by x at point i, of second order where there are two neighbours.
local function slope(x, y, i)
  if i == 1 then return (y[2] - y[1]) / (x[2] - x[1]) end
  if i == #x then return (y[i] - y[i - 1]) / (x[i] - x[i - 1]) end
  local before, after = x[i] - x[i - 1], x[i + 1] - x[i]
  return (before ^ 2 * y[i + 1] + (after ^ 2 - before ^ 2) * y[i] - after ^ 2 * y[i - 1])
    / (before * after * (before + after))
end

--- Returns the learning rate at which the loss falls fastest, without the first and last points;
--- nil if there are too few.
function LearningRateFinder:suggestion(skip_begin, skip_end)
  local x, y, found = {}, {}, self.results or { lr = {}, loss = {} }
  for i = 1 + (skip_begin or 10), #found.lr - (skip_end or 1) do
    local loss = found.loss[i]
    if loss == loss and math.abs(loss) < math.huge then
      x[#x + 1], y[#y + 1] = found.lr[i], loss
    end
  end
  if #x < 2 then return nil end
  local best
  for i = 1, #x do
    if not best or slope(x, y, i) < slope(x, y, best) then best = i end
  end
  return x[best]
end

-- Options of the Trainer of the range test that are those of the run.
local SAME <const> = { "accelerator", "devices", "precision", "accumulate_grad_batches",
  "gradient_clip_val", "gradient_clip_algorithm", "default_root_dir" }

local function range_test(self, trainer, module)
  local options = { logger = false, enable_checkpointing = false, enable_progress_bar = false,
    enable_model_summary = false, num_sanity_val_steps = 0, limit_val_batches = 0,
    max_steps = self.num_training_steps, max_epochs = -1, callbacks = { Range(self) } }
  for _, name in ipairs(SAME) do options[name] = trainer.options[name] end
  local random = c.runtime.rng_state()
  local inner = trainer:_within(options)
  inner:fit(deepcopy(module), { train = trainer.train_dataloader })
  c.runtime.rng_restore(random)
end

function LearningRateFinder:setup(trainer, module, stage)
  if stage ~= "fit" or trainer.fast_dev_run then return end
  if trainer.world_size > 1 then
    errors.blame("LearningRateFinder: it runs on one rank: find the rate with devices = 1 first")
  end
  if trainer.running.fit_args.ckpt_path then return end -- a run that resumes has its rate
  local place, name
  if self.update_attr then place, name = place_of(self, module) end
  local _ = trainer.estimated_stepping_batches -- loads the training data
  range_test(self, trainer, module)
  self.lr = self:suggestion()
  if not self.lr then
    trainer:warn("LearningRateFinder: there were too few steps: the learning rate stays")
  elseif place then
    place[name] = self.lr
    trainer:say(("LearningRateFinder: %s = %g"):format(name, self.lr))
  end
end

return LearningRateFinder
