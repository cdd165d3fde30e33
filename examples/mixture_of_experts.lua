-- examples/mixture_of_experts.lua: a network with experts, which are divided among processes.
--
--   ltrain run examples/mixture_of_experts.lua                  two processes on this machine
--   ltrain run examples/mixture_of_experts.lua -- 4             four
--   mpirun -n 2 --bind-to none ltrain run examples/mixture_of_experts.lua
--
-- Learns drawn digits. A router sends each digit to two of eight experts, wherever they are. Prints
-- the experts of a process, the accuracy, and the load of the busiest expert.
local lt = require "ltrain"
local nn = lt.nn

lt.seed(1)

local Digits = lt.Module:extend("Digits")

function Digits:init()
  self.embed, self.head = nn.Linear(28 * 28, 64), nn.Linear(64, 10)
  self.norm, self.moe = nn.LayerNorm(64), nn.MoE(64, 128, 8, {top_k = 2, capacity_factor = 1.5})
  self.accuracy = lt.metrics.Accuracy()
end

function Digits:configure_model()
  lt.parallelize(self, self.device_mesh:sub "expert_parallel",
    {moe = lt.parallel.ExpertParallel()})
  self.experts = self.moe.w1.shape[1]
end

function Digits:forward(x) -- [B, 1, 28, 28] -> [B, 10]
  local h = self.embed(x:flatten(2)):relu()
  h = h + self.moe(self.norm(h))
  local logits = self.head(h)
  return logits
end

-- The auxiliary loss keeps the load of the experts even.
function Digits:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss + 0.01 * self.moe.aux_loss
end

function Digits:validation_step(batch)
  self.accuracy:update(self(batch[1]), batch[2])
  self:log("val_acc", self.accuracy, {prog_bar = true})
  self:log("load", self.moe.expert_load:max())
end

function Digits:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 2e-3})
end

local DataLoader, digits = lt.data.DataLoader, lt.data.digits
local ranks = math.tointeger(tonumber(arg and arg[1])) or 2
local net = Digits()
local trainer = lt.Trainer{max_epochs = 2, devices = ranks, enable_checkpointing = false,
  strategy = {"model_parallel", expert_parallel_size = ranks}}
trainer:fit(net, {
  train = DataLoader(digits{split = "train"}, {global_batch_size = 64, shuffle = true}),
  val = DataLoader(digits{split = "test"}, {global_batch_size = 250}),
})
trainer:print(("%d of 8 experts, val_acc %.4f, highest load %.2f"):format(net.experts,
  trainer.callback_metrics.val_acc, trainer.callback_metrics.load))
