-- examples/sharded_checkpoint.lua: each rank saves its part; other numbers of ranks resume.
--
--   ltrain run examples/sharded_checkpoint.lua --devices 2
--   ltrain inspect saved/half.ckpt                        what is in the folder
--   ltrain convert saved/half.ckpt half.safetensors       one file of it
--
-- Trains an epoch with the state of the optimizer sharded over the ranks, saves a folder with a
-- file a rank, and resumes from it for a second epoch. Prints the files and the steps.
local lt = require "ltrain"
local nn = lt.nn

lt.seed(1)

local Digits = lt.Module:extend("Digits")

function Digits:init()
  self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
end

function Digits:forward(x) -- [B, 1, 28, 28] -> [B, 10]
  local logits = self.net(x)
  return logits
end

function Digits:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Digits:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 1e-3})
end

-- All ranks call it: each writes what it has.
function Digits:on_train_epoch_end()
  if self.current_epoch == 0 then self.trainer:save_checkpoint "saved/half.ckpt" end
end

local function train(epochs, ckpt_path)
  local trainer = lt.Trainer{
    max_epochs = epochs, enable_checkpointing = false,
    strategy = {"sharded", stage = 2, state_dict_type = "sharded"},
  }
  trainer:fit(Digits(), lt.data.DataLoader(lt.data.digits{split = "train"},
    {global_batch_size = 64, shuffle = true}), nil, {ckpt_path = ckpt_path})
  return trainer
end

local first = train(1)
local second = train(2, "saved/half.ckpt")
first:print(("saved by %d ranks at step %d; resumed to step %d"):format(first.world.ranks,
  first.global_step, second.global_step))
