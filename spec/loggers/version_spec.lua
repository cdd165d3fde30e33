-- spec/loggers/version_spec.lua: one run owns one folder version_N, also when runs start together.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local ltrain <const> = os.getenv("LTRAIN") or "ltrain"

local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init()
  self.layer, self.who = lt.nn.Linear(1, 1), lt.parameter(lt.tensor{tonumber(arg[1]) + 0.0})
end
function Net:training_step(x)
  self:log("who", tonumber(arg[1]))
  return self.layer(x[1]):mean()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)), {batch_size = 1})
local net = Net()
io.open("ready." .. arg[1], "w"):close()
repeat local go = io.open "go" until go
lt.Trainer{max_epochs = 2, log_every_n_steps = 1}:fit(net, data)
]]

describe("version_N", function()
  local root
  before_each(function() root = child.folder() end)
  after_each(function() child.remove(root) end)

  it("belongs to one run each of several that start together", function()
    local runs <const> = 6
    child.write(root .. "/model.lua", SCRIPT)
    local started = {}
    for i = 1, runs do
      started[i] = ("timeout 60 '%s' model.lua %d 2>err.%d &"):format(ltrain, i, i)
    end
    assert(os.execute(("cd '%s' && { %s n=0; while [ $(ls | grep -c ready) -lt %d ] && "
      .. "[ $n -lt 1500 ]; do n=$((n+1)); sleep 0.02; done; touch go; wait; }"):format(root,
        table.concat(started, " "), runs)))
    local seen = {}
    for number = 0, runs - 1 do
      local folder = ("%s/ltrain_logs/version_%d"):format(root, number)
      local text = assert(c.io.read_file(folder .. "/metrics.csv"))
      local who = text:match "\n%d+,%d+,(%d+)\n"
      assert.is_nil(seen[who])
      seen[who] = true
      local _, rows = text:gsub("\n%d+,%d+," .. who, "")
      assert.equal(8, rows, text)
      local saved = assert(lt.load(folder .. "/checkpoints/epoch=1-step=8.ckpt"))
      assert.equal(tonumber(who), saved["model.who"]:item())
    end
  end)

  it("is shared by the loggers of one run", function()
    local trainer = tiny.trainer { logger = { lt.loggers.CSVLogger(root),
      lt.loggers.JSONLinesLogger(root), lt.loggers.CSVLogger(root, { name = "other" }) } }
    local net = tiny.Line()
    function net:on_train_epoch_end() self:log("x", 1) end
    trainer:fit(net, tiny.same(1))
    local numbers = {}
    for i, logger in ipairs(trainer.loggers) do numbers[i] = logger.log_dir end
    assert.same({ root .. "/ltrain_logs/version_0", root .. "/ltrain_logs/version_0",
      root .. "/other/version_0" }, numbers)
  end)

  it("goes again when nothing was written into it", function()
    local trainer = tiny.trainer { logger = lt.loggers.CSVLogger(root) }
    local net = tiny.Line()
    function net:predict_step(x) return x end
    trainer:predict(net, tiny.same(1))
    assert.same({}, c.io.list_folder(root .. "/ltrain_logs"))
    function net:on_train_epoch_end() self:log("x", 1) end
    trainer:fit(net, tiny.same(1))
    assert.equal(0, trainer.logger.version)
  end)
end)
