-- spec/bench/soak.lua: whether long fits stay flat: bytes held after many steps and epochs.
--   ./dev bench soak [STEPS [EPOCHS]]     1000000 and 5000
-- "held" is what a full collection leaves of Lua's heap, structs and tensors; "most" the highest
-- that these were between collections, in each tenth of the run; "RSS" the process.
local c = require "ltrain.c"
local lt = require "ltrain"

local STEPS <const>, EPOCHS <const> = tonumber(arg[1]) or 1000000, tonumber(arg[2]) or 5000
local FIRST <const> = 1000 -- steps, or epochs, that the end is compared with
local LIMIT <const> = 1.05

local function in_use()
  local m = c.runtime.memory()
  return m.lua_bytes + m.struct_bytes + m.live_bytes
end

local function after_full()
  c.runtime.collect_fully()
  c.runtime.collect_fully() -- what finalizers of the first let go
  return in_use()
end

local function rss()
  for line in io.lines "/proc/self/status" do
    local kilobytes = line:match "^VmRSS:%s*(%d+)"
    if kilobytes then return tonumber(kilobytes) * 1024 end
  end
end

-- Follows a run of `total` steps or epochs.
local function watch(total)
  local seen = { total = total, most = {}, start = c.runtime.clock() }
  return seen, function(count)
    local tenth = math.min(count * 10 // total, 9) + 1
    seen.most[tenth] = math.max(seen.most[tenth] or 0, in_use())
    if count == FIRST then seen.first = after_full() end
    if count == total then seen.last = after_full() end
  end
end

local function report(what, seen)
  local last, most = seen.last, {}
  for i, bytes in ipairs(seen.most) do most[i] = ("%.2f"):format(bytes / 1e6) end
  print(("%d %s in %.0f s: held %.3f MB after %d, %.3f MB at the end (%.4f)"):format(seen.total,
    what, c.runtime.clock() - seen.start, seen.first / 1e6, FIRST, last / 1e6, last / seen.first))
  print(("  most, MB, by tenths: %s; RSS %.1f MB"):format(table.concat(most, " "), rss() / 1e6))
  return last <= LIMIT * seen.first
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.layers = lt.nn.Sequential(lt.nn.Linear(4, 8), lt.nn.ReLU(), lt.nn.Linear(8, 2))
end

function Net:loss(batch)
  local logits = self.layers(batch[1])
  return lt.cross_entropy(logits, batch[2])
end

function Net:training_step(batch)
  local loss = self:loss(batch)
  self:log("train_loss", loss, { on_step = true, on_epoch = true })
  return loss
end

function Net:configure_optimizers()
  return lt.optim.Adam(self:parameters(), { lr = 1e-3 })
end

local function data_of(n)
  return lt.data.TensorDataset(lt.randn(n, 4), lt.zeros(n):to("i64"))
end

-- Epochs of 1,000 steps, nothing but the loss logged.
local function steps()
  local seen, look = watch(STEPS)
  local net = Net()
  function net:on_train_batch_end()
    local count = self.trainer.global_step
    if count % 100 == 0 then look(count) end
  end
  lt.Trainer { max_steps = STEPS, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false }
    :fit(net, lt.data.DataLoader(data_of(8000), { batch_size = 8 }))
  return report("steps", seen)
end

-- Short epochs with shuffle, validation, logging and checkpoints.
local function epochs()
  local seen, look = watch(EPOCHS)
  local net, folder = Net(), os.tmpname()
  os.remove(folder)
  function net:validation_step(batch) self:log("val_loss", self:loss(batch)) end
  function net:on_train_epoch_end() look(self.trainer.current_epoch + 1) end
  lt.Trainer { max_epochs = EPOCHS, default_root_dir = folder, enable_progress_bar = false,
    enable_model_summary = false, log_every_n_steps = 5,
    callbacks = { lt.callbacks.ModelCheckpoint { monitor = "val_loss", save_last = true } } }
    :fit(net, lt.data.DataLoader(data_of(640), { batch_size = 64, shuffle = true }),
      lt.data.DataLoader(data_of(128), { batch_size = 64 }))
  os.execute("rm -r " .. folder)
  return report("epochs", seen)
end

lt.seed(1)
local flat = steps()
flat = epochs() and flat
if not flat then
  error(("not flat: more than %.2f of what was held after %d"):format(LIMIT, FIRST))
end
