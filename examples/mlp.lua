-- examples/mlp.lua: the smallest training script: a module, a data set, `ltrain run`.
--
--   ltrain run examples/mlp.lua
--
-- Learns drawn digits with two linear layers; prints an epoch a line, val_acc passes 0.9.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.layers = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
end

function Net:training_step(batch)
  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Net:validation_step(batch)
  local hits = self.layers(batch[1]):argmax(-1):eq(batch[2]):to("f32")
  self:log("val_acc", hits:mean(), {prog_bar = true})
end

function Net:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 1e-3})
end

local function loader(split, shuffle)
  return lt.data.DataLoader(lt.data.digits{split = split}, {batch_size = 64, shuffle = shuffle})
end
return {
  model = Net(), data = {train = loader("train", true), val = loader("test", false)},
  trainer = {max_epochs = 3},
}
