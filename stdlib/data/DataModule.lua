-- stdlib/data/DataModule.lua: the data of a task: its preparation and its loaders.
--
-- Subclasses define, as needed: prepare_data() (download; runs once, before anything else),
-- setup(stage), train_dataloader(), val_dataloader(), test_dataloader(), predict_dataloader(),
-- teardown(stage), state_dict(), load_state_dict(state), and the transfer hooks of a Module.

local DataLoader = require "ltrain.data.DataLoader"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local DataModule = class.extend(nil, "DataModule")

DataModule.extend = class.extend

local DATASETS <const> = {
  train = { doc = "data set to train on: shuffled unless it is iterable" },
  val = { doc = "data set to validate on" },
  test = { doc = "data set to test on" },
  predict = { doc = "data set to predict on" },
  batch_size = { type = "integer", default = 1, min = 1, doc = "samples per batch of one rank" },
  global_batch_size = { type = "integer", min = 1,
    doc = "samples per batch over all ranks, instead of batch_size" },
}

--- To be overridden: downloads or creates the files that setup needs.
function DataModule:prepare_data() end

--- To be overridden: creates the data sets; stage is "fit", "validate", "test" or "predict".
function DataModule:setup(stage) end

--- To be overridden: undoes setup.
function DataModule:teardown(stage) end

--- `self:save_hyperparameters(o, {ignore =, logger =})` in init stores the options `o` in
--- `self.hparams`, like a Module's: they are logged, saved in checkpoints, and passed to init by
--- load_from_checkpoint.
function DataModule:save_hyperparameters(...)
  require "ltrain.core.hyperparameters".save(self, ...)
end

--- `Data:load_from_checkpoint(file, overrides)` returns a new data module with the hyper-parameters
--- in the file (updated with `overrides`) and the saved state; nil and a message if the file cannot
--- be read.
function DataModule:load_from_checkpoint(file, overrides)
  local hyperparameters = require "ltrain.core.hyperparameters"
  hyperparameters.check_load(self, class.is_class(self, DataModule), "Data", file, overrides)
  local checkpoint, message = require "ltrain.files.checkpoint_file".read(file)
  if not checkpoint then return nil, message end
  local _ <close> = errors.reading(file)
  local hparams = hyperparameters.merged(checkpoint.data_module_hyper_parameters, overrides)
  local data = self(hyperparameters.arguments(self, hparams))
  if data.load_state_dict and checkpoint.data_module then
    data:load_state_dict(checkpoint.data_module)
  end
  return data
end

local function loader_of(dataset, options, shuffle)
  shuffle = shuffle and type(dataset) == "table" and not dataset.iterate
  return DataLoader(dataset, {
    batch_size = not options.global_batch_size and options.batch_size or nil,
    global_batch_size = options.global_batch_size, shuffle = shuffle,
  })
end

--- Returns a data module of existing data sets: from_datasets{train = ..., val = ..., batch_size =
--- 64}
function DataModule.from_datasets(options)
  options = config.check(options, DATASETS, "DataModule.from_datasets")
  local module = DataModule()
  for name, dataset in tree.pairs(options) do
    if not name:find "batch_size$" then
      module[name .. "_dataloader"] = function()
        return loader_of(dataset, options, name == "train")
      end
    end
  end
  return module
end

return DataModule
