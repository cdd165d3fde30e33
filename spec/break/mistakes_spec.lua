-- spec/break/mistakes_spec.lua: common mistakes are reported in words that
-- say what to write, with the line.
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local HERE <const> = "^spec/break/mistakes_spec%.lua:%d+: "

local function says(text, fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.matches(HERE .. text:gsub("[%p]", "%%%0"), message)
end

local function net_with(hooks)
  local net = tiny.Line()
  for name, hook in pairs(hooks) do net[name] = hook end
  return net
end

describe("a dot in place of a colon", function()
  it("is reported by the Trainer's loops", function()
    local trainer, net = tiny.trainer(), tiny.Line()
    for _, word in ipairs { "fit", "validate", "test", "predict" } do
      says(("%s: call it with a colon, trainer:%s(...): got an object of class "):format(word,
        word), function() trainer[word](net, tiny.same(1)) end)
    end
  end)

  it("is reported by trainer.print and trainer.say", function()
    local trainer <const> = tiny.trainer()
    for _, word in ipairs { "print", "say" } do
      says(("%s: call it with a colon, trainer:%s(...): got 'x' instead of the Trainer"):format(
        word, word), function() trainer[word]("x") end)
    end
  end)

  it("is reported by self.log", function()
    local net = net_with { training_step = function(self) self.log("x", 1) end }
    says("log: call it with a colon, self:log(...): got 'x' instead of the module",
      function() tiny.trainer():fit(net, tiny.same(1)) end)
  end)

  it("is reported by every method of a class of the library", function()
    local net, loader = tiny.Line(), lt.data.DataLoader(lt.data.TensorDataset(lt.ones(2, 1)))
    local optimizer = lt.optim.SGD(net:parameters(), { lr = 0.1 })
    local wanted <const> = "%s: call it with a colon, %s:%s(...): got nil instead of the %s"
    local function refuses(object, owner, word)
      says(wanted:format(word, owner:lower(), word, owner), function() object[word]() end)
    end
    for _, word in ipairs { "parameters", "eval", "train", "state_dict", "zero_grad" } do
      refuses(net, "Module", word)
    end
    for _, word in ipairs { "step", "zero_grad" } do refuses(optimizer, "Optimizer", word) end
    for _, word in ipairs { "batches", "state_dict" } do refuses(loader, "DataLoader", word) end
  end)

  it("is reported where self is a tensor", function()
    local Net = lt.Module:extend "Net"
    function Net:forward(x) return self.head(x) end
    says("tensor: no field or method 'head': self is a tensor here: was the method called with '.' "
      .. "for ':'?", function() local y = Net.forward(lt.ones(1)) return y end)
  end)
end)

describe("a module that calls itself", function()
  it("is reported with the line of the call", function()
    local Net = lt.Module:extend "Net"
    function Net:forward(x) local y = self(x) return y end
    says("stack overflow: forward calls itself: does it call self(x)?",
      function() local y = Net()(lt.ones(1)) return y end)
  end)
end)

describe("a loader", function()
  it("says how to loop over it", function()
    local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(2, 1)))
    local wanted <const> = "DataLoader: loop with `for batch, i in loader:batches() do`"
    says(wanted, function() for b in loader do assert(b) end end)
    says(wanted, function() for i in ipairs(loader) do assert(i) end end)
    says(wanted, function() for k in pairs(loader) do assert(k) end end)
  end)

  it("under a misspelt name has a hint", function()
    says("fit: unknown option 'trian'; did you mean 'train'?",
      function() tiny.trainer():fit(tiny.Line(), { trian = tiny.same(1) }) end)
  end)
end)

describe("a data set", function()
  local Own, Endless = lt.data.Dataset:extend "Own", lt.data.IterableDataset:extend "Endless"
  local set = lt.data.TensorDataset(lt.arange(3))

  it("is read by position, and by ipairs", function()
    local sub, seen = lt.data.Subset(set, { 3, 1 }), {}
    for i, sample in ipairs(sub) do seen[i] = sample[1]:item() end
    assert.same({ 2, 0 }, seen)
    assert.equal(1, set[2][1]:item())
    assert.is_nil(set[4])
    says("TensorDataset: there is no sample 0: positions are 1..3", function() return (set[0]) end)
  end)

  it("says how to loop over it", function()
    says("Own: loop with `for i = 1, #ds do local sample = ds:get(i) ... end`",
      function() for sample in Own() do assert(sample) end end)
    says("Endless: loop with `for sample in ds:iterate() do`",
      function() for sample in Endless() do assert(sample) end end)
  end)

  it("in place of a loader is reported as one", function()
    local wanted <const> = "train_dataloader: a loader is needed, and this is a data set: "
      .. "lt.data.DataLoader(dataset, {batch_size = ...}): got an object of class "
    for name, data in pairs { TensorDataset = set, Endless = Endless() } do
      says(wanted .. name, function() tiny.trainer():fit(tiny.Line(), data) end)
    end
  end)
end)

describe("a slip in an argument", function()
  it("is reported by metrics without labels", function()
    says("metrics.Accuracy: update needs scores and labels: got a tensor [4, 3] and nil",
      function() lt.metrics.Accuracy():update(lt.ones(4, 3)) end)
  end)

  it("is reported by nn.init, given a layer", function()
    says("init: a tensor is needed, a layer's weight: got an object of class Linear",
      function() lt.nn.init.xavier_uniform_(lt.nn.Linear(1, 1)) end)
  end)

  it("is reported by self:log, given the value first", function()
    local net = net_with { training_step = function(self) self:log(lt.ones(1), "x") end }
    says("log: the name must be a string: got a tensor [1]",
      function() tiny.trainer():fit(net, tiny.same(1)) end)
  end)

  it("is reported by a DataLoader that gets its options with the data set", function()
    local set = lt.data.TensorDataset(lt.ones(2))
    says("DataLoader: batch_size is among the samples: options are a separate table: "
      .. "DataLoader(dataset, {batch_size = ...})",
      function() lt.data.DataLoader { set, batch_size = 4 } end)
  end)

  it("is reported by lt.save, given a module", function()
    says("save: the value cannot be saved: it is an object of class Linear",
      function() lt.save("never", lt.nn.Linear(1, 1)) end)
  end)

  it("in capitals is reported with the right ones", function()
    says("nn: there is no 'Relu'; did you mean 'ReLU'?", function() return lt.nn.Relu() end)
  end)
end)

describe("Subset", function()
  it("refuses a tensor of positions, which could count from 0 or 1", function()
    says("Subset: positions must be a list that counts from 1: got a tensor [2], whose contents "
      .. "count from 0: give (t + 1):tolist()",
      function() lt.data.Subset(lt.data.TensorDataset(lt.ones(4, 1)), lt.tensor { 1, 2 }) end)
  end)

  it("names itself where a list counts from 0", function()
    says("Subset: entry 1 must be a position in 1..4, got 0",
      function() lt.data.Subset(lt.data.TensorDataset(lt.ones(4, 1)), { 0, 1 }) end)
  end)
end)

describe("a script", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function run(code, ...)
    child.write(folder .. "/s.lua", code)
    local status, out, err = child.run({ ... }, { dir = folder })
    return status, out .. err
  end

  it("that raises a table is reported with its line", function()
    for _, words in ipairs { { "s.lua" }, { "run", "s.lua" } } do
      local status, text = run("\nerror({code = 42})", table.unpack(words))
      assert.equal(1, status)
      assert.equal("ltrain: s.lua:2: (error object is a table value: {code = 42})\n", text)
    end
  end)

  it("that yields in a step is reported with its line", function()
    local status, text = run([[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(1, 1) end
function Net:training_step(x)
  coroutine.yield()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
return {model = Net(), data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)))}
]], "run", "s.lua", "--max_epochs", "1", "--logger", "false")
    assert.equal(1, status)
    assert.matches("ltrain: s.lua:5: attempt to yield from outside a coroutine", text, 1, true)
  end)

  it("that returns something to run which is not a model is an error", function()
    local status, text = run("return 5", "run", "s.lua")
    assert.equal(1, status)
    assert.equal("ltrain: s.lua:1: run: nothing to fit: it returned 5\n", text)
  end)

  it("that returns a model to `ltrain FILE` gets what to type", function()
    local status, text = run("local lt = require 'ltrain' return lt.nn.Linear(1, 1)", "s.lua")
    assert.equal(0, status)
    assert.equal("ltrain: s.lua returned a module: `ltrain run s.lua` trains it\n", text)
  end)
end)
