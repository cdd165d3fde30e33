-- spec/cli/scripts/line.lua: learns a line; what goes wrong or is interrupted is said by WHAT.
local lt, c = require "ltrain", require "ltrain.c"

local what = os.getenv("WHAT") or ""

local function signal(name) -- WAIT: what comes then is another one
  io.popen(name == "WAIT" and "sleep .25" or ("kill -%s %d"):format(name, c.runtime.pid())):close()
end

local Line = lt.Module:extend("Line")

function Line:init()
  self.layer = lt.nn.Linear(1, 1)
end

function Line:training_step(batch, batch_idx)
  if what == "error" then error("no step today") end
  if what == "shape" then return (self.layer(batch[1]) + lt.zeros(5, 7)):sum() end
  if batch_idx == 2 and what:find("^kill") then
    for name in what:gmatch(" (%u+)") do signal(name) end
  end
  local loss = lt.mse_loss(self.layer(batch[1]), batch[2])
  self:log("train_loss", loss)
  return loss
end

function Line:validation_step(batch)
  self:log("val_loss", lt.mse_loss(self.layer(batch[1]), batch[2]))
end

function Line:test_step(batch)
  self:log("test_loss", lt.mse_loss(self.layer(batch[1]), batch[2]))
end

function Line:predict_step(batch, batch_idx)
  if what == "predict words" then return ({"word", 1.5, {}, true})[batch_idx + 1] end
  return self.layer(batch[1])
end

function Line:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.1})
end

local x = lt.arange(0, 16):to("f32"):view(16, 1) / 16
local loader = lt.data.DataLoader(lt.data.TensorDataset(x, 2 * x + 1), {batch_size = 4})
local result = {
  model = Line(),
  data = {train = loader, val = loader, test = loader, predict = loader},
  trainer = {max_epochs = 2, enable_progress_bar = false, enable_model_summary = false},
}
if what == "bare" then return result.model end
if what == "class" then return Line end
if what == "table" then return {layers = 3} end
if what == "nothing" then return nil end
if what == "typo" then result.modle, result.trainer = result.trainer, nil end
local function fit()
  lt.Trainer(result.trainer):fit(result.model, result.data)
end
if what == "own" then fit() end
if what:find("coroutine") then coroutine.wrap(fit)() end
return result
