-- examples/tensor_parallel.lua: a GPT whose matrices are divided among ranks.
--
--   ltrain run examples/tensor_parallel.lua --devices 2
--   mpirun -n 4 ltrain run examples/tensor_parallel.lua
--
-- Learns to continue sequences that count; prints the loss, the parameters of a rank and of the
-- whole model. The loss is that of one rank.
local lt = require "ltrain"

lt.seed(1)

local VOCABULARY <const>, LENGTH <const> = 32, 16

local Counter = lt.Module:extend("Counter")

function Counter:init()
  self.gpt = lt.models.gpt2{vocab_size = VOCABULARY, n_positions = LENGTH, n_embd = 64,
    n_layer = 2, n_head = 4, dropout = 0.1}
end

-- The logits stay divided by classes, and the loss is computed of parts.
function Counter:configure_model()
  self.cross_entropy = lt.cross_entropy
  if not self.device_mesh then return end -- under another strategy
  local plan = self.gpt:tensor_parallel_plan{sequence_parallel = true, loss_parallel = true}
  lt.parallelize(self.gpt, self.device_mesh, plan)
  self.cross_entropy = lt.parallel.loss_parallel(self.device_mesh)
end

local function count(module)
  local n = 0
  for _, parameter in ipairs(module:parameters()) do n = n + parameter:numel() end
  return n
end

function Counter:on_train_start() self.own = count(self) end

function Counter:training_step(batch) -- ids [B, LENGTH + 1]
  local ids = batch[1]
  local logits = self.gpt(ids:narrow(2, 1, LENGTH))
  local loss = self.cross_entropy(logits:flatten(1, 2), ids:narrow(2, 2, LENGTH):flatten())
  self:log("train_loss", loss, {prog_bar = true, on_epoch = true})
  return loss
end

function Counter:configure_optimizers()
  return lt.optim.AdamW(self:parameters(), {lr = 3e-3})
end

-- Sequences that begin anywhere and count up by 1 to 3.
local first, step = lt.randint(0, VOCABULARY, {256, 1}), lt.randint(1, 4, {256, 1})
local sequences = (first + step * lt.arange(LENGTH + 1)) % VOCABULARY

local net = Counter()
local trainer = lt.Trainer{max_epochs = 5, enable_checkpointing = false,
  strategy = "model_parallel"}
trainer:fit(net, lt.data.DataLoader(lt.data.TensorDataset(sequences),
  {global_batch_size = 32, shuffle = true}))
trainer:print(("loss %.3f; %d parameters of %d on a rank"):format(
  trainer.callback_metrics.train_loss, net.own, count(net)))
