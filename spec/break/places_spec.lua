-- spec/break/places_spec.lua: errors have a line of the script also when no frame of it is on the
-- stack: after a tail call, after a hook has returned, after the script has.
-- tags: slow
local child = require "spec.cli.child"

local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(1, 1) end
function Net:training_step(x)
  local loss = self.layer(x[1]):mean()
  return loss
end
function Net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.1})
end
local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)))
local net, trainer = Net(), {max_epochs = 1, logger = false, enable_checkpointing = false}
%s
return {
  model = net, data = loader, trainer = trainer,
}
]]

describe("an error without a frame of the script", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function expect(wanted, line, ...)
    child.write(folder .. "/s.lua", SCRIPT:format(line))
    local words = { ... }
    if #words == 0 then words = { "run", "s.lua" } end
    local status, _, err = child.run(words, { dir = folder })
    assert.equal(1, status)
    assert.equal("ltrain: s.lua:" .. wanted .. "\n", err:match "[^\n]*\n$")
    assert.not_matches("traceback", err)
  end

  it("names the hook that ended in a tail call", function()
    expect("13: optim.SGD: lr must be a number: got 'x'",
      "function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 'x'}) end")
    expect("13: log: call it with a colon, self:log(...): got 'x' instead of the module",
      "function net:on_train_start() return self.log('x', 1) end")
  end)

  it("names the line of its return, also where the script calls fit", function()
    local function fits(hook, wanted)
      local script = SCRIPT:gsub("return {.*", "lt.Trainer(trainer):fit(net, loader)\n")
      child.write(folder .. "/s.lua", script:format(hook))
      local status, _, err = child.run({ "s.lua" }, { dir = folder })
      assert.equal(1, status)
      assert.equal("ltrain: s.lua:" .. wanted, err:match "[^\n]*s%.lua:%d+: [^\n]*")
    end
    fits("function net:configure_optimizers()\n  local lr = (function() return 'x' end)()\n"
      .. "  if lr then\n    return lt.optim.SGD(self:parameters(), {lr = lr})\n  end\n"
      .. "  return nil\nend", "16: optim.SGD: lr must be a number: got 'x'")
    fits("function net:training_step(x)\n  local y = 3\n  return y\nend", "15: training_step: "
      .. "return the loss (a tensor), a table with loss, or nil: got 3: leave out :item()")
    fits("function net:training_step(x, i)\n  if i > 8 then return x end\n  return 3\nend",
      "13: training_step: return the loss (a tensor), a table with loss, or nil: got 3: leave out "
      .. ":item()")
    fits("function net:on_before_zero_grad() self:log('x', 'y')\nend",
      "13: log: 'x' needs a number, a tensor of one element or a metric: got 'y'")
  end)

  it("names the hook whose result is of no use", function()
    expect("13: training_step: the loss must have one element: got a tensor [2, 1]: "
      .. "reduce it with :mean() or :sum()",
      "function net:training_step(x) local y = lt.cat{x[1], x[1]} return y end")
    expect("13: training_step: backward was called on the loss that is returned, and the Trainer "
      .. "calls it: return the loss alone, or set self.automatic_optimization = false",
      "function net:training_step(x) "
      .. "local y = self.layer(x[1]):square():mean() y:backward() return y end")
    expect("13: configure_optimizers: an optimizer is needed: got an object of class StepLR",
      "function net:configure_optimizers() "
      .. "local o = lt.optim.SGD(self:parameters()) return {o, lt.optim.StepLR(o, 1)} end")
    expect("13: train_dataloader: a loader must be a DataLoader, a table of batches, a function or "
      .. "an object with batches(): got 3", "function net:train_dataloader() return 3 end "
      .. "loader = nil")
  end)

  it("names the end of a script whose run it is", function()
    expect("16: EarlyStopping: nothing called 'a' was logged; there is: nothing",
      "trainer.callbacks = {lt.callbacks.EarlyStopping{monitor = 'a'}}")
    expect("16: Trainer: unknown option 'max_epoch'; did you mean 'max_epochs'?",
      "trainer = {max_epoch = 1}")
    child.write(folder .. "/s.lua", "local lt = require 'ltrain'\nreturn lt.save(3,\n3)\n")
    local _, _, err = child.run({ "s.lua" }, { dir = folder })
    assert.equal("ltrain: s.lua:3: save: the path must be a string: got 3\n", err)
  end)

  it("says what is wrong with what the script returned", function()
    local function returns(values, wanted)
      child.write(folder .. "/s.lua", "local lt = require 'ltrain'\n"
        .. "local Net = lt.Module:extend 'N'\nlocal net = Net()\nreturn " .. values)
      local _, _, err = child.run({ "run", "s.lua" }, { dir = folder })
      assert.equal(("ltrain: s.lua:4: %s\n"):format(wanted), err)
    end
    returns("{modle = net, data = {}}", "run: unknown option 'modle'; did you mean 'model'?")
    returns("{model = Net, data = {}}",
      "run: nothing to fit: model is not a module: class N: give an object: N()")
    returns("net, {}",
      "run: nothing to fit: it returned 2 values: return {model = ..., data = ...}")
    returns("{model = net, data = {}, trainer = lt.Trainer}",
      "trainer must be a Trainer or a table of its options: got class Trainer")
  end)

  it("does not name a hook that has nothing to do with it", function()
    expect("16: at the start of an epoch: parameter Net.w is new since configure_optimizers (made "
      .. "at s.lua:13)", "function net:on_train_start() self.w = lt.parameter(lt.ones(2)) end")
  end)
end)
