-- examples/context_parallel.lua: a GPT whose sequences are divided among processes.
--
--   ltrain run examples/context_parallel.lua                    two processes on this machine
--   ltrain run examples/context_parallel.lua -- 4               four
--   mpirun -n 2 --bind-to none ltrain run examples/context_parallel.lua
--
-- Learns to repeat: the second half of each sequence is the first, so that attention reaches half
-- of it back, to positions that another process has. Prints the positions of a process and the
-- loss, which are those of one process.
local lt = require "ltrain"

lt.seed(1)

local VOCABULARY <const>, HALF <const> = 16, 32
local LENGTH <const> = 2 * HALF

local Repeater = lt.Module:extend("Repeater")

function Repeater:init()
  self.gpt = lt.models.gpt2{vocab_size = VOCABULARY, n_positions = LENGTH, n_embd = 32,
    n_layer = 2, n_head = 4, dropout = 0}
end

function Repeater:training_step(batch) -- two of ids, [B, LENGTH / processes]
  local logits = self.gpt(batch[1])
  local loss = lt.cross_entropy(logits:flatten(1, 2), batch[2]:flatten())
  self.here = batch[1].shape[2]
  self:log("train_loss", loss, {prog_bar = true, on_epoch = true, sync_dist = true})
  return loss
end

function Repeater:configure_optimizers()
  return lt.optim.AdamW(self:parameters(), {lr = 3e-3})
end

-- Inputs and targets are shifted here, where the sequences are whole.
local half = lt.randint(0, VOCABULARY, {512, HALF})
local ids = lt.cat({half, half, half:narrow(2, 1, 1)}, {dim = 2})
local data = lt.data.TensorDataset(ids:narrow(2, 1, LENGTH), ids:narrow(2, 2, LENGTH))

local ranks = math.tointeger(tonumber(arg and arg[1])) or 2
local net = Repeater()
local trainer = lt.Trainer{max_epochs = 10, devices = ranks, enable_checkpointing = false,
  strategy = {"model_parallel", context_parallel_size = ranks, tensor_parallel_size = 1}}
trainer:fit(net, lt.data.DataLoader(data, {global_batch_size = 32, shuffle = true}))
trainer:print(("positions %d of %d, loss %.3f"):format(net.here, LENGTH,
  trainer.callback_metrics.train_loss))
