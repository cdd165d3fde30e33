-- spec/loggers/logger_names_spec.lua: loggers by name, in scripts and on the command line.
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local WANTED <const> = "logger must be 'csv', 'jsonlines', 'mlflow', 'none', 'tensorboard', "
  .. "'wandb', true, false, a logger or a list of loggers: got "

describe("logger = a word", function()
  it("is the logger of that name, in the folder of the run", function()
    for word, class in pairs { csv = lt.loggers.CSVLogger, jsonlines = lt.loggers.JSONLinesLogger,
      tensorboard = lt.loggers.TensorBoardLogger } do
      local trainer = lt.Trainer { logger = word, default_root_dir = "there" }
      -- metrics.csv is part of the folder of every run
      assert.equal(word == "csv" and 1 or 2, #trainer.loggers)
      assert.equal(class, getmetatable(trainer.logger))
      assert.equal("there", trainer.logger.save_dir)
    end
    assert.equal(2, #lt.Trainer({ logger = { "csv", lt.loggers.CSVLogger "x" } }).loggers)
    assert.is_nil(lt.Trainer({ logger = "none" }).logger)
    assert.is_nil(lt.Trainer({ logger = "none", barebones = true }).logger)
  end)

  it("that is none of them lists those that there are", function()
    for value, rest in pairs { neptune = "'neptune'", [lt.loggers.CSVLogger] =
      "class CSVLogger", cvs = "'cvs'; did you mean 'csv'?", [3] = "3" } do
      local given = value == 3 and { value } or value
      assert.equal("Trainer: " .. WANTED .. rest,
        (tiny.error_of(lt.Trainer, { logger = given }):gsub("^.-:%d+: ", "")))
    end
  end)

  it("is a word of the command line too", function()
    local folder = child.folder()
    child.write(folder .. "/s.lua", [[
local lt = require "ltrain"
local trainer = lt.Trainer()
print(trainer.logger and getmetatable(trainer.logger).__name)
]])
    local function run(word)
      return child.run({ "run", "s.lua", "--logger", word }, { dir = folder })
    end
    for word, name in pairs { csv = "CSVLogger", jsonlines = "JSONLinesLogger", none = "nil",
      tensorboard = "TensorBoardLogger", ["false"] = "nil", ["true"] = "CSVLogger" } do
      assert.equal(name .. "\n", select(2, run(word)))
    end
    local status, _, err = run "neptune"
    assert.equal(2, status)
    assert.equal("ltrain: run: --" .. WANTED .. "'neptune'\n", err:match "^[^\n]*\n")
    child.remove(folder)
  end)
end)
