--- stdlib/loggers/logger_names.lua: the short names of loggers: `logger = "csv"`, `--logger none`.
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local logger_names = {}

-- Of "none" there is none.
local CLASSES <const> = { csv = "CSVLogger", jsonlines = "JSONLinesLogger", mlflow = "MLFlowLogger",
  none = false, tensorboard = "TensorBoardLogger", wandb = "WandbLogger" }
local KNOWN <const> = tree.keys(CLASSES)

--- What to say of a value of the Trainer's option that is of no use.
function logger_names.wrong(value)
  return ("must be '%s', true, false, a logger or a list of loggers: got %s%s"):format(
    table.concat(KNOWN, "', '"), errors.show(value),
    CLASSES[value] == nil and errors.did_you_mean(value, KNOWN) or "")
end

--- The same of an unknown word; nil of anything else.
function logger_names.check(value)
  if type(value) == "string" and CLASSES[value] == nil then return logger_names.wrong(value) end
end

--- Whether a value of the option means that nothing is logged.
function logger_names.is_none(value)
  return value == false or value == "none"
end

--- The logger that a word or true stands for; anything else as it is.
function logger_names.logger(value, save_dir)
  if value == true then value = "csv" end
  local name = type(value) == "string" and CLASSES[value]
  return name and require("ltrain.loggers." .. name) { save_dir = save_dir } or value
end

return logger_names
