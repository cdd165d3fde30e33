-- spec/bench/checkpoints.lua: what a checkpoint costs each rank, in one file and in parts.
--
--   ./dev bench checkpoints [MB] [ROUNDS]      a model with Adam of 96 MB together, 7 rounds
--
-- ZeRO 1 on 1, 2, 4 and 8 ranks, 1 thread each. `held`: how long the fit waits for a checkpoint
-- that was requested, from the end of a batch to the start of the next; `complete`: for
-- save_checkpoint, which returns when it has its name; both of rank 0, the median. Bytes that a
-- rank writes, and that one reads when the run resumes on as many ranks: the most of any.
local c = require "ltrain.c"
local lt = require "ltrain"
local reader = require "ltrain.files.sharded_reader"

local MB <const> = tonumber(arg[1] or 96)
local ROUNDS <const> = math.tointeger(tonumber(arg[2] or 7))
local FOLDER <const> = (os.getenv "TMPDIR" or "/tmp") .. ("/ltrain_checkpoints_%d"):format(
  c.runtime.pid())
local LAYERS <const> = 8

c.runtime.set_threads(1)
local clock <const> = c.runtime.clock

-- A model whose weights and two moments are of so many MB.
local function make()
  local nn, width = lt.nn, math.floor((MB * 1e6 / 12 / LAYERS) ^ 0.5)
  local net = nn.Sequential()
  for i = 1, LAYERS do net[i] = nn.Linear(width, width, { bias = false }) end
  function net:training_step()
    local sum = 0
    for i = 1, LAYERS do sum = sum + self[i].weight:narrow(1, 1, 1):sum() end
    return sum
  end
  function net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
  return net
end

local function most(number) return lt.dist.all_reduce(number, { op = "max" }) end

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1] * 1e3
end

local data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8 * (ROUNDS + 3))))

local function train(net, ranks, kind, steps, o)
  local strategy = { "zero1", state_dict_type = kind }
  lt.Trainer { devices = ranks, strategy = strategy, max_steps = steps, max_epochs = 1,
    logger = false, enable_checkpointing = false, enable_progress_bar = false,
    enable_model_summary = false }:fit(net, data, nil, o)
end

-- Bytes of the file that a rank has written.
local function written(path, kind)
  local rank = lt.dist.rank()
  if kind == "full" and rank > 0 then return 0 end
  local file = kind == "full" and path or path .. "/" .. reader.file_name(rank)
  return select(2, assert(c.io.read_head(file, 0)))
end

local function measure(ranks, kind)
  local held, complete, bytes, ended = {}, {}, nil, nil
  local path = ("%s/%s-%d.ckpt"):format(FOLDER, kind, ranks)
  local net = make()
  function net:on_train_batch_end(_, _, i)
    if i == 0 then return end -- the optimizer has a state now
    lt.dist.barrier()
    local began = clock()
    self.trainer:save_checkpoint(path)
    complete[#complete + 1] = clock() - began
    lt.dist.barrier()
    ended = clock()
    self.trainer:request_checkpoint(path, { agreed = true })
  end
  function net:on_train_batch_start()
    if ended then held[#held + 1] = clock() - ended end
    c.io.wait_for("/nothing", MB / 200) -- the step, in which helper threads write
  end
  function net:on_train_end()
    c.io.wait_for(path .. "/index.safetensors", kind == "full" and 0 or 10)
    bytes = most(written(path, kind))
  end
  train(net, ranks, kind, ROUNDS + 1)
  reader.bytes_read = 0
  local read
  local again = make()
  function again:on_train_start() read = most(reader.bytes_read) end
  train(again, ranks, kind, ROUNDS + 2, { ckpt_path = path })
  print(("%-8s %d ranks  held %7.1f ms  complete %7.1f ms  a rank writes %6.1f MB, reads %6.1f MB")
    :format(kind, ranks, median(held), median(complete), bytes / 1e6,
      (kind == "full" and bytes or read) / 1e6))
end

assert(c.io.make_folder(FOLDER))
for _, ranks in ipairs { 1, 2, 4, 8 } do
  measure(ranks, "full")
  measure(ranks, "sharded")
end
os.execute(("rm -r '%s'"):format(FOLDER))
