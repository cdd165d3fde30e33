-- examples/pipeline.lua: a network whose layers are divided among processes (pipeline parallelism).
--
--   ltrain run examples/pipeline.lua --devices 2              two stages on this machine
--   ltrain run examples/pipeline.lua --devices 4 -- 2         two pipelines of two stages
--   mpirun -n 4 --bind-to none ltrain run examples/pipeline.lua
--
-- A residual network learns drawn digits. Each process has some of the blocks, and the parameters,
-- gradients and moments of these alone; microbatches of a batch go through the stages one after
-- the other. Prints the number of ranks and the accuracy, which is above 0.9 on any number.
local lt = require "ltrain"
local nn = lt.nn

lt.seed(1)

-- What is between two blocks is in them: x + f(x).
local Block = lt.Module:extend("Block")

function Block:init(width)
  self.norm = nn.LayerNorm(width)
  self.a, self.b = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
end

function Block:forward(x) -- [B, C] -> [B, C]
  local h = self.a(self.norm(x)):gelu()
  h = self.b(h)
  return x + h
end

local Digits = lt.Module:extend("Digits")

function Digits:init()
  self.embed = nn.Linear(28 * 28, 64) -- on all stages, as the head; used on the first
  self.blocks = nn.ModuleList()       -- divided
  for _ = 1, 6 do self.blocks:append(Block(64)) end
  self.head = nn.Linear(64, 10)       -- used on the last, where the loss is
  self.accuracy = lt.metrics.Accuracy()
end

function Digits:forward(x) -- [B, 1, 28, 28] -> [B, 10]
  x = self.embed(x:flatten(2))
  for _, block in ipairs(self.blocks) do x = block(x) end
  local logits = self.head(x)
  return logits
end

function Digits:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

-- Runs to its end on the last stage; what it logs is known on all.
function Digits:validation_step(batch)
  self.accuracy:update(self(batch[1]), batch[2])
  self:log("val_acc", self.accuracy, {prog_bar = true})
end

function Digits:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 2e-3})
end

local stages = math.tointeger(tonumber(arg and arg[1])) or "auto"
local DataLoader, digits = lt.data.DataLoader, lt.data.digits
local trainer = lt.Trainer{max_epochs = 2,
  strategy = {"pipeline", stages = stages, microbatches = 8}}
trainer:fit(Digits(), {
  train = DataLoader(digits{split = "train"}, {global_batch_size = 64, shuffle = true}),
  val = DataLoader(digits{split = "test"}, {global_batch_size = 250}),
})

trainer:print(("ranks %d, val_acc %.4f"):format(trainer.world.ranks,
  trainer.callback_metrics.val_acc))
