-- spec/apps/plan/blocks.lua: a script that specs of `ltrain plan` plan and run.
local blocks = {}

local SCRIPT <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local data = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(128, 256), lt.randn(128, 256)),
  {batch_size = BATCH})
local options = {}
local Blocks = lt.Module:extend "Blocks"
function Blocks:init()
  self.blocks = nn.Sequential()
  for i = 1, COUNT do
    self.blocks:append(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)))
  end
end
function Blocks:training_step(batch)
  local loss = lt.mse_loss(self.blocks(batch[1]), batch[2])
  self:log("loss", loss)
  return loss
end
function Blocks:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local make = Blocks
]]

--- Perceptrons of `count` blocks, and batches of so many samples: defines the class Blocks, make(),
--- data, and options of a Trainer.
function blocks.script(count, batch) return (SCRIPT:gsub("COUNT", count):gsub("BATCH", batch)) end

--- What ends a script to plan.
blocks.planned = [[
options.logger, options.max_epochs = false, 1
return {model = make(), data = data, trainer = options}
]]

return blocks
