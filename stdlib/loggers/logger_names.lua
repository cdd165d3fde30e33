--- stdlib/loggers/words.lua: words that stand for loggers: `logger = "csv"`, `--logger none`.
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local words = {}

-- Of "none" there is none.
local CLASSES <const> = { csv = "CSVLogger", jsonlines = "JSONLinesLogger", mlflow = "MLFlowLogger",
  none = false, tensorboard = "TensorBoardLogger", wandb = "WandbLogger" }
local KNOWN <const> = tree.keys(CLASSES)

--- What to say of a value of the Trainer's option that is of no use.
function words.wrong(value)
  return ("must be '%s', true, false, a logger or a list of loggers: got %s%s"):format(
    table.concat(KNOWN, "', '"), errors.show(value),
    CLASSES[value] == nil and errors.did_you_mean(value, KNOWN) or "")
end

--- The same of an unknown word; nil of anything else.
function words.check(value)
  if type(value) == "string" and CLASSES[value] == nil then return words.wrong(value) end
end

--- Whether a value of the option means that nothing is logged.
function words.is_none(value)
  return value == false or value == "none"
end

--- The logger that a word or true stands for; anything else as it is.
function words.logger(value, save_dir)
  if value == true then value = "csv" end
  local name = type(value) == "string" and CLASSES[value]
  return name and require("ltrain.loggers." .. name) { save_dir = save_dir } or value
end

return words
