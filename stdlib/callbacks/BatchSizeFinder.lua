--- stdlib/callbacks/BatchSizeFinder.lua: finds the largest batch size that fits into the device's
--- memory, before training begins.
--
-- Copies of the module are trained for a few steps, each with another batch size, until the device
-- runs out of memory. The result is assigned to the field `batch_size` (or another one) of the
-- module, its hparams or the data module, which train_dataloader reads. The module itself, and the
-- random numbers of training, are not affected.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local deepcopy = require "ltrain.nn.deepcopy"
local errors = require "ltrain.core.errors"

local BatchSizeFinder = Callback:extend("BatchSizeFinder")

--- It must run on a single rank.
BatchSizeFinder.all_ranks = true

local OPTIONS <const> = {
  mode = { type = "string", default = "power", choices = { "power", "binsearch" },
    doc = "double the size until it does not fit; binsearch then also bisects" },
  steps_per_trial = { type = "integer", default = 3, min = 1,
    doc = "optimizer steps for each size" },
  init_val = { type = "integer", default = 2, min = 1, doc = "the first size" },
  max_trials = { type = "integer", default = 25, min = 1, doc = "maximum number of sizes" },
  batch_arg_name = { type = "string", default = "batch_size",
    doc = "name of the field, of the module, its hparams or the data module" },
  margin = { type = "number", default = 0.05, min = 0, below = 1,
    doc = "for binsearch: this fraction of the result is subtracted" },
  max_val = { type = "integer", default = 8192, min = 1, doc = "the largest size" },
}

BatchSizeFinder.__arguments = "| mode steps_per_trial init_val max_trials batch_arg_name margin "
  .. "max_val"

--- BatchSizeFinder{mode = "binsearch"}
function BatchSizeFinder:init(options)
  local o = config.check(options, OPTIONS, "callbacks.BatchSizeFinder")
  for name, value in next, o do self[name] = value end
end

-- The tables that have the field.
local function places_of(self, module, data)
  local places, name = {}, self.batch_arg_name
  for _, object in ipairs { module, data } do
    for _, place in ipairs { object, rawget(object, "hparams") } do
      if type(place) == "table" and rawget(place, name) ~= nil then places[#places + 1] = place end
    end
  end
  if #places == 0 then
    errors.blame("BatchSizeFinder: the module, its hparams and the data module have no field '%s': "
      .. "name it by batch_arg_name", name)
  end
  return places
end

local function set(self, places, size)
  for _, place in ipairs(places) do place[self.batch_arg_name] = size end
end

local function nothing() end

-- The data module for a trial: it has been set up already.
local function without_setup(data)
  return data and setmetatable({ prepare_data = nothing, setup = nothing, teardown = nothing },
    { __index = data })
end

-- Options of the Trainer of a trial that are those of the run.
local SAME <const> = { "accelerator", "devices", "precision", "accumulate_grad_batches",
  "gradient_clip_val", "gradient_clip_algorithm", "default_root_dir" }

-- Trains a copy. Returns whether its batches fit, and whether an epoch is a single one; nil and the
-- error of the runtime when they do not.
local function try(self, trainer, module, data)
  local batches = self.steps_per_trial * trainer.accumulate_grad_batches
  local options = { logger = false, enable_checkpointing = false, enable_progress_bar = false,
    enable_model_summary = false, num_sanity_val_steps = 0,
    limit_val_batches = self.steps_per_trial, limit_train_batches = math.max(2, batches),
    max_steps = self.steps_per_trial, max_epochs = batches, callbacks = {} }
  for _, name in ipairs(SAME) do options[name] = trainer.options[name] end
  collectgarbage()
  local inner = trainer:_within(options)
  local random = c.runtime.rng_state()
  local ok, message = pcall(inner.fit, inner, deepcopy(module), without_setup(data))
  c.runtime.rng_restore(random)
  if ok then return true, inner.num_training_batches == 1 end
  if type(message) == "string" and message:find "out of memory" then return nil, message end
  error(message, 0)
end

-- The next size to try, after `good` fitted and `bad` did not; nil: there is none.
local function next_size(self, good, bad)
  if not bad then return good < self.max_val and math.min(2 * good, self.max_val) or nil end
  if not good then return bad > 1 and bad // 2 or nil end
  return self.mode == "binsearch" and bad - good > 1 and (good + bad) // 2 or nil
end

-- The largest size that fitted.
local function search(self, trainer, module, data, places)
  local good, bad, why
  local size = math.min(self.init_val, self.max_val)
  for _ = 1, self.max_trials do
    set(self, places, size)
    local fits, more = try(self, trainer, module, data)
    if fits then good = size else bad, why = size, more end
    if fits and more == true then break end
    size = next_size(self, good, bad)
    if not size then break end
  end
  if not good then errors.blame("BatchSizeFinder: no size fits, not even %d: %s", bad, why) end
  return self.mode == "binsearch" and math.max(1, math.floor(good * (1 - self.margin))) or good
end

local function check_data(self, trainer)
  local state = trainer.running
  if state.fit_args.train ~= nil then
    errors.blame("BatchSizeFinder: the loaders are made already: define train_dataloader in the "
      .. "module or a data module, which makes them with its field %s", self.batch_arg_name)
  elseif state.data.train then
    errors.blame("BatchSizeFinder: the training data is loaded already: list it before the other "
      .. "callbacks")
  end
end

function BatchSizeFinder:setup(trainer, module, stage)
  if stage ~= "fit" or trainer.fast_dev_run then return end
  if trainer.world_size > 1 then
    errors.blame("BatchSizeFinder: it runs on one rank: find the size with devices = 1 first")
  end
  if trainer.running.fit_args.ckpt_path then return end -- a run that resumes has its size
  check_data(self, trainer)
  local data = trainer.datamodule
  local places = places_of(self, module, data)
  local before = places[1][self.batch_arg_name]
  local ok, found = pcall(search, self, trainer, module, data, places)
  if not ok then
    set(self, places, before)
    error(found, 0)
  end
  set(self, places, found)
  --- The size that was found.
  self.optimal_batch_size = found
  trainer:say(("BatchSizeFinder: %s = %d"):format(self.batch_arg_name, found))
end

return BatchSizeFinder
