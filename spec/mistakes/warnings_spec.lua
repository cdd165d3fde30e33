-- spec/mistakes/warnings_spec.lua: mistakes with which a fit continues, and what it warns of.
local child = require "spec.cli.child"

local HEAD <const> = [[
local lt = require "ltrain"
local nn = lt.nn
lt.seed(0)
local Net = lt.Module:extend("Net")
function Net:init() self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 2) end
function Net:training_step(x)
  local loss = self.head(self.body(x[1])):square():mean()
  return loss
end
function Net:configure_optimizers()
  local optimizer = lt.optim.SGD(self:parameters(), {lr = 0.1})
  return optimizer
end
]]
local TAIL <const> = [[
lt.Trainer{max_epochs = 2, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false}:fit(Net(), {{lt.ones(2, 4)}})
]]

local ROWS <const> = {
  { "a layer that no optimizer has", [[
function Net:configure_optimizers()
  local optimizer = lt.optim.SGD(self.head:parameters(), {lr = 0.1})
  return optimizer
end]], "configure_optimizers: 2 of 4 parameters that require grad are in no optimizer, and do not "
    .. "train: body.weight, body.bias: give them to one, or freeze them" },
  { "a key that the returned table does not have", [[
function Net:configure_optimizers()
  local optimizer = lt.optim.SGD(self:parameters(), {lr = 0.1})
  return {optimizer = optimizer, lr_schedular = lt.optim.StepLR(optimizer, 1)}
end]], "configure_optimizers: left out of the returned table: the unknown key 'lr_schedular'; did "
    .. "you mean 'lr_scheduler'?" },
  { "no step in manual optimization", [[
Net.automatic_optimization = false
function Net:training_step(x)
  local loss = self.head(self.body(x[1])):square():mean()
  self:manual_backward(loss)
end]], "training_step: no optimizer stepped in an epoch, nothing is learnt: in manual optimization "
    .. "the script calls optimizer:zero_grad(), self:manual_backward(loss) and optimizer:step()" },
  { "dropout between layers of which there is one", [[
nn.GRU(4, 4, {dropout = 0.5})
nn.LSTM(4, 4, {dropout = 0.5, num_layers = 2})]],
    "nn.GRU: dropout = 0.5 has no effect: it is applied between layers, and num_layers is 1" },
  { "an error in __gc", [[
setmetatable({}, {__gc = function() error("lost") end})
collectgarbage()]], "error in __gc (s.lua:14: lost)" },
}

describe("a mistake with which a fit continues is warned of once:", function()
  for _, row in ipairs(ROWS) do
    local what, body, expected = table.unpack(row)
    it(what, function()
      local folder <const> = child.folder()
      child.write(folder .. "/s.lua", HEAD .. body .. "\n" .. TAIL)
      local status, _, err = child.run({ "s.lua" }, { dir = folder })
      child.remove(folder)
      assert.equal(0, status, err)
      assert.equal("ltrain: warning: " .. expected .. "\n", err)
    end)
  end

  it("nothing where layers are frozen, or are in one of several optimizers", function()
    local folder <const> = child.folder()
    child.write(folder .. "/s.lua", HEAD .. [[
function Net:init()
  self.body, self.head, self.old = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(2, 2)
  self.old:freeze()
  self.automatic_optimization = false
end
function Net:training_step(x)
  local loss = self.head(self.body(x[1])):square():mean()
  self:manual_backward(loss)
  for _, optimizer in ipairs(self:optimizers()) do optimizer:step() optimizer:zero_grad() end
end
function Net:configure_optimizers()
  local of_body = lt.optim.SGD(self.body:parameters(), {lr = 0.1})
  return {of_body, lt.optim.SGD(self.head:parameters(), {lr = 0.1})}
end
]] .. TAIL)
    local status, _, err = child.run({ "s.lua" }, { dir = folder })
    child.remove(folder)
    assert.equal(0, status, err)
    assert.equal("", err)
  end)
end)
