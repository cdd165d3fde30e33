-- spec/bench/offload.lua: training steps of a GPT that is larger than the memory of its ranks:
-- stage 3 with offload to files.
--
--   ./dev bench offload [layers [width [steps [folder]]]]
--
-- Two ranks of one thread; GPT-2 of 24 layers of width 2048, 1.3 billion parameters, by
-- default; a sequence of 128 tokens for each rank, precision = "bf16-mixed", AdamW: 16 bytes a
-- parameter in files of the folder, a temporary one, and for a moment in a step a few more. Prints
-- for each step and rank its seconds; then of each rank, in MiB, the most memory that was no file's
-- when a block had run forward or an update had been made, tensors' share of it, and what the
-- files had.
local c = require "ltrain.c"
local lt = require "ltrain"

local layers, width = tonumber(arg[1]) or 24, tonumber(arg[2]) or 2048
local steps, folder = tonumber(arg[3]) or 3, arg[4]
local own_folder <const> = not folder and os.tmpname() or nil
if own_folder then
  assert(os.remove(own_folder))
  folder = own_folder
end
local TOKENS <const> = 128
local MIB <const> = 2 ^ 20
local clock <const> = c.runtime.clock

lt.seed(1)
c.runtime.set_threads(1)

-- KiB of this process's memory by its kind: RssAnon, RssFile, RssShmem.
local function resident(kind)
  for line in io.lines "/proc/self/status" do
    local size = line:match("^" .. kind .. ":%s*(%d+) kB")
    if size then return tonumber(size) end
  end
  return 0
end

local Net = lt.Module:extend "Net"
local most, files, began, times = 0, 0, nil, {}

local function look() most = math.max(most, resident "RssAnon") end

function Net:configure_model()
  if self.gpt then return end
  local _ <close> = lt.device "meta"
  self.gpt = lt.models.gpt2 { n_layer = layers, n_embd = width, n_head = width // 128,
    n_positions = TOKENS, dropout = 0 }
end

function Net:training_step(batch)
  local logits = self.gpt(batch[1])
  look()
  local loss = lt.cross_entropy(logits:flatten(1, 2), batch[2]:flatten(1, 2))
  return loss
end

function Net:configure_optimizers() return lt.optim.AdamW(self:parameters(), { lr = 1e-4 }) end

function Net:on_train_start()
  c.runtime.reset_peak_memory()
  began = clock()
  for _, block in ipairs(self.gpt.transformer.h) do block:register_forward_hook(look) end
end

function Net:on_before_optimizer_step() look() end

function Net:on_before_zero_grad()
  if #times > 0 then files = math.max(files, resident "RssFile", resident "RssShmem") end
  look()
end

function Net:on_train_batch_end(outputs)
  local now = clock()
  look()
  times[#times + 1] = now - began
  began = now
  if self.trainer.is_global_zero then
    print(("step %d: %.1f s, loss %.4f"):format(#times, times[#times], outputs:item()))
  end
end

-- Ends the fit by an error: after its end model and state would be whole, more than there is memory
-- for.
local DONE <const> = "measured"
function Net:on_train_epoch_end()
  local peak = c.runtime.memory().peak_bytes / MIB
  local rows = lt.dist.all_gather { most / 1024, peak, files / 1024 }
  for rank, row in ipairs(self.trainer.is_global_zero and rows or {}) do
    print(("rank %d: memory %.0f MiB, of it tensors %.0f MiB; files in memory %.0f MiB"):format(
      rank - 1, row[1], row[2], row[3]))
  end
  lt.dist.barrier()
  error(DONE, 0)
end

local count = 12 * layers * width * width + 50257 * width
print(("%.2f billion parameters: %.1f GB of files for parameters, gradients and state"):format(
  count / 1e9, count * 16 / 1e9))

local ids = lt.randint(1, 50257, { 2 * steps, TOKENS + 1 })
local loader = lt.data.DataLoader(lt.data.TensorDataset(ids:narrow(2, 1, TOKENS):contiguous(),
  ids:narrow(2, 2, TOKENS):contiguous()), { batch_size = 1 })
local trainer = lt.Trainer { devices = 2, max_epochs = 1, logger = false,
  enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
  precision = "bf16-mixed", strategy = { "fsdp", offload = { path = folder }, timeout = 3600 } }
local ok, why = pcall(trainer.fit, trainer, Net(), loader)
if own_folder then os.execute(("rm -rf '%s'"):format(own_folder)) end
if not ok and not tostring(why):find(DONE, 1, true) then error(why, 0) end
