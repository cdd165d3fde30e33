-- spec/mistakes/prelude.lua: what scripts about training have: Net, loader() and quiet{}.
local lt = require "ltrain"

--- New ones each time.
return function()
  lt.seed(0)
  local nn = lt.nn
  local function loader()
    local data = lt.data.TensorDataset(lt.randn(8, 4), lt.randint(0, 2, {8}))
    return lt.data.DataLoader(data, {batch_size = 4})
  end
  local function quiet(options)
    local o = {max_epochs = 1, logger = false, enable_checkpointing = false,
               enable_progress_bar = false, enable_model_summary = false}
    for name, value in pairs(options or {}) do o[name] = value end
    return o
  end
  local Net = lt.Module:extend("Net")
  function Net:init() self.fc = nn.Linear(4, 2) end
  function Net:forward(x)
    local y = self.fc(x)
    return y
  end
  function Net:training_step(batch)
    local loss = lt.cross_entropy(self(batch[1]), batch[2])
    self:log("train_loss", loss)
    return loss
  end
  function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
  return {loader = loader, quiet = quiet, Net = Net}
end
