-- spec/core/elements_spec.lua: a hole in a list, as a misspelt name leaves it, is an error; it does
-- not end the list without a word.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local data, nn, optim, T = lt.data, lt.nn, lt.optim, lt.transforms
local callbacks <const>, loggers <const> = lt.callbacks, lt.loggers

local function parameter() return lt.parameter(lt.ones(2)) end
local function set() return data.TensorDataset(lt.ones(2)) end
local one <const> = optim.SGD({ parameter() }, { lr = 1 })
local function scheduler() return optim.ConstantLR(one) end

local ROWS <const> = {
  { "linalg.multi_dot: element 2", function()
    lt.linalg.multi_dot { lt.ones(2, 2), nil, lt.ones(2, 2) }
  end },
  { "a callback must be", function()
    lt.Trainer { callbacks = { callbacks.ModelSummary(), nil, callbacks.LearningRateMonitor() } }
  end },
  { "logger must be", function()
    lt.Trainer { logger = { loggers.CSVLogger(), nil, loggers.CSVLogger() } }
  end },
  { "MetricCollection: element 2", function()
    lt.metrics.MetricCollection { lt.metrics.Accuracy(), nil, lt.metrics.F1() }
  end },
  { "Compose: entry 2", function() T.Compose { T.ToTensor(), nil, T.ToTensor() } end },
  { "ConcatDataset: data set 2", function() data.ConcatDataset(set(), nil, set()) end },
  { "ConcatDataset: data set 2", function() data.ConcatDataset { set(), nil, set() } end },
  { "StackDataset: 2 must have", function() data.StackDataset(set(), nil, set()) end },
  { "TensorDataset: tensor 2", function() data.TensorDataset(lt.ones(2), nil, lt.ones(2)) end },
  { "csv.table: column 2", function()
    lt.csv.table { { "a", lt.ones(2) }, nil, { "b", lt.ones(2) } }
  end },
  { "csv.table: a%[2%]", function() lt.csv.table { { "a", { "x", nil, "y" } } } end },
  { "ModuleList: element 2", function() nn.ModuleList { nn.ReLU(), nil, nn.ReLU() } end },
  { "Sequential: element 2", function() nn.Sequential(nn.ReLU(), nil, nn.ReLU()) end },
  { "ParameterList: element 2", function() nn.ParameterList { parameter(), nil, parameter() } end },
  { "SGD: parameter 2", function() optim.SGD({ parameter(), nil, parameter() }, { lr = 1 }) end },
  { "SGD: parameter 1", function() optim.SGD({ nil, parameter() }, { lr = 1 }) end },
  { "SGD: a group needs params", function()
    optim.SGD({ { params = parameter() }, nil, { params = parameter() } }, { lr = 1 })
  end },
  { "ChainedScheduler: scheduler 2", function()
    optim.ChainedScheduler { scheduler(), nil, scheduler() }
  end },
  { "SequentialLR: scheduler 2", function()
    optim.SequentialLR(one, { scheduler(), nil, scheduler() }, { 1, 2 })
  end },
}

describe("a hole in a list", function()
  for _, row in ipairs(ROWS) do
    it("is refused: " .. row[1], function()
      local message = error_of(row[2])
      assert.matches(row[1], message)
      assert.matches("nil", message)
    end)
  end
end)

describe("data.ConcatDataset", function()
  it("takes data sets, or one list of them", function()
    assert.equal(4, #data.ConcatDataset(set(), set()))
    assert.equal(4, #data.ConcatDataset { set(), set() })
    assert.equal(3, #data.ConcatDataset { "a", "b", "c" })
  end)
end)
