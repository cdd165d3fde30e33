-- spec/break/trainer_spec.lua: data sets, loaders and hooks that go wrong say what and where.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local function message_of(fn)
  local ok, message = pcall(fn)
  assert.is_false(ok, "nothing was raised")
  return message
end

local List = lt.data.Dataset:extend("List")

function List:init(get) self.read = get end

function List:__len() return 4 end

function List:get(i) return self.read(i) end

local function walk(get, options)
  for _ in lt.data.DataLoader(List(get), options or { batch_size = 2 }):batches() do end
end

describe("a loader", function()
  it("names the sample in whose get(i) an error arose", function()
    local message = message_of(function()
      walk(function(i)
        if i == 3 then error("no such image") end
        return lt.ones(2)
      end)
    end)
    assert.matches("trainer_spec.lua:%d+: no such image %(in sample 3%)$", message)
  end)

  it("leaves error values that are not text alone", function()
    local value = {}
    assert.equal(value, message_of(function() walk(function() error(value) end) end))
  end)

  it("says that collate returned nothing", function()
    local message = message_of(function()
      walk(function() return 1 end, { batch_size = 2, collate = function() end })
    end)
    assert.matches("DataLoader: collate returned nothing for samples 1 to 2$", message)
  end)

  it("names the field that one sample has and another lacks", function()
    local message = message_of(function()
      walk(function(i) return i == 2 and { x = 1, y = 2 } or { x = 1 } end)
    end)
    assert.matches("collate: samples differ in fields: sample 2 has 'y', sample 1 has not$",
      message)
  end)
end)

describe("fit", function()
  it("refuses hooks that older Lightning called", function()
    local Old = tiny.Line:extend("Old")
    function Old.training_epoch_end() end
    assert.matches("Old: nothing calls 'training_epoch_end'; write on_train_epoch_end$",
      message_of(function() tiny.trainer():fit(Old(), tiny.same(2)) end))
  end)

  it("says so when there is nothing left to do", function()
    local trainer, model = tiny.trainer { max_epochs = 1 }, tiny.Line()
    trainer:fit(model, tiny.same(2))
    local said
    function trainer:say(text) said = text end
    trainer:fit(model, tiny.same(2))
    assert.equal("fit: nothing to do: epoch 1 and step 2 have been reached (max_epochs = 1, "
      .. "max_steps = -1)", said)
  end)
end)

describe("an option that is NaN", function()
  it("is shown without the sign that it has not", function()
    assert.matches("lr must be at least 0: got nan$", message_of(function()
      local optimizer = lt.optim.SGD(tiny.Line():parameters(), { lr = 0 / 0 })
      return optimizer
    end))
  end)
end)
