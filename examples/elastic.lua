-- examples/elastic.lua: training that goes on when a rank has crashed.
--
--   ltrain launch --nproc_per_node 2 examples/elastic.lua --crash 40
--
-- Learns drawn digits. Rank 1 is killed before step 40; the launcher starts both ranks again, and
-- the fit resumes. Prints what began each start, and the accuracy at the end. Without --crash, or
-- with another launcher, it trains like any script. On several hosts, on each of them:
--
--   ltrain launch --nnodes 1:4 --nproc_per_node 2 --rdzv tcp://host1:29400 examples/elastic.lua
local lt = require "ltrain"
local nn = lt.nn

local args = lt.args{crash = {-1, "the step before which rank 1 is killed, once"}}
local world = lt.dist.world()

lt.seed(1)

local Digits = lt.Module:extend("Digits")

function Digits:init()
  self.hidden = nn.Linear(28 * 28, 64)
  self.head = nn.Linear(64, 10)
  self.accuracy = lt.metrics.Accuracy()
end

function Digits:forward(x) -- [B, 1, 28, 28] -> [B, 10]
  local hidden = self.hidden(x:flatten(2)):relu()
  return (self.head(hidden))
end

function Digits:training_step(batch)
  local again = world.incarnation > 0
  if self.trainer.global_step == args.crash and lt.dist.rank() == 1 and not again then
    os.execute "kill -KILL $PPID"
  end
  return lt.cross_entropy(self(batch[1]), batch[2])
end

function Digits:validation_step(batch)
  self.accuracy:update(self(batch[1]), batch[2])
  self:log("val_acc", self.accuracy)
end

function Digits:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 2e-3})
end

function Digits:on_train_start()
  self.trainer:print(("start %d%s: from step %d"):format(world.incarnation,
    world.reason ~= "" and (" (%s)"):format(world.reason) or "", self.trainer.global_step))
end

-- The global batch stays the same on any number of ranks.
local DataLoader, digits = lt.data.DataLoader, lt.data.digits
local trainer = lt.Trainer{max_epochs = 2, enable_progress_bar = false,
  callbacks = {lt.callbacks.ModelCheckpoint{every_n_train_steps = 20, save_top_k = -1}}}
trainer:fit(Digits(), {
  train = DataLoader(digits{split = "train"}, {global_batch_size = 64, shuffle = true}),
  val = DataLoader(digits{split = "test"}, {global_batch_size = 250}),
})
trainer:print(("val_acc %.4f"):format(trainer.callback_metrics.val_acc))
