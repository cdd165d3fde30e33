-- spec/bench/elastic_fit.lua: the fit of ./dev bench elastic: a model that appends to a file of its
-- rank, at each step, the time, the processor time and the number of the last snapshot.
--
--   MARKS=PREFIX LAYERS=N WIDTH=N SECONDS=N EVERY="10 s" ltrain run elastic_fit.lua
local c = require "ltrain.c"
local lt = require "ltrain"

lt.seed(1)
local function number(name) return math.tointeger(tonumber(os.getenv(name))) end
local layers <const>, width <const> = number "LAYERS", number "WIDTH"
local every = tonumber(os.getenv "EVERY") or os.getenv "EVERY"

local Net = lt.Module:extend "Net"

function Net:init()
  local list = {}
  for k = 1, layers do list[k] = lt.nn.Linear(width, width) end
  self.body = lt.nn.Sequential(table.unpack(list))
end

function Net:forward(x) return self.body(x) end

function Net:training_step(batch)
  self.marks = self.marks or assert(io.open(("%s.%d"):format(os.getenv "MARKS",
    self.trainer.global_rank), "a"))
  local snapshots = self.trainer.running.snapshots
  self.marks:write(("%d %d %.6f %.6f %d\n"):format(c.runtime.pid(), self.trainer.global_step,
    c.runtime.time(), os.clock(), snapshots and snapshots._serial or 0))
  self.marks:flush()
  return lt.mse_loss(self(batch[1]), batch[1])
end

function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-4 }) end

local data = lt.data.TensorDataset(lt.randn(4096, width))
lt.Trainer { max_epochs = -1, max_time = number "SECONDS", snapshot_every = every, logger = false,
  enable_progress_bar = false, enable_model_summary = false, enable_checkpointing = false }
  :fit(Net(), lt.data.DataLoader(data, { batch_size = 8, shuffle = true, drop_last = true }))
