-- spec/bench/pipeline.lua: the bubble of pipelines, measured and by its formula.
--
--   ./dev bench pipeline [RANKS ...]             2 and 4 ranks
--
-- Stages of 4 equal blocks (two times 2 where they are interleaved), 1 thread each. `bubble`: the
-- fraction of a step in which a rank waits for another one, the mean of all ranks; the steps are
-- the median half of 30. `formula`: (p - 1) / (m + p - 1), and schedules.bubble's. What is measured
-- has in it what messages take, and the time by which the stages differ. With more ranks than cores
-- a rank waits for its core too: then the numbers are of no use.
local c = require "ltrain.c"
local lt = require "ltrain"
local schedules = require "ltrain.strategies.pipeline.schedules"

local RANKS <const> = { table.unpack(arg) }
if #RANKS == 0 then RANKS[1], RANKS[2] = 2, 4 end
local WIDTH <const>, ROWS <const>, STEPS <const> = 384, 96, 30

c.runtime.set_threads(1)

local Block = lt.Module:extend("Block")

function Block:init()
  self.a, self.b = lt.nn.Linear(WIDTH, 4 * WIDTH), lt.nn.Linear(4 * WIDTH, WIDTH)
end

function Block:forward(x)
  local h = self.b(self.a(x):relu())
  return h
end

local Net = lt.Module:extend("Net")

function Net:init(blocks)
  self.blocks = lt.nn.Sequential()
  for i = 1, blocks do self.blocks[i] = Block() end
end

function Net:training_step(x) return self.blocks(x):square():mean() end

function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 1e-3 }) end

-- Notes of each batch how long it took, and how long the rank waited in it.
local Timed = lt.strategies.Pipeline:extend("Timed")

function Timed:run_microbatches(work)
  lt.dist.barrier()
  local began, waited = c.runtime.clock(), c.dist.waited()
  local results = table.pack(Timed.super.run_microbatches(self, work))
  self.notes_of = self.notes_of or {}
  table.insert(self.notes_of, { c.runtime.clock() - began, c.dist.waited() - waited })
  return table.unpack(results, 1, results.n)
end

local function middle(list)
  table.sort(list)
  local sum, n = 0.0, 0
  for i = #list // 4 + 1, #list - #list // 4 do sum, n = sum + list[i], n + 1 end
  return sum / n
end

-- The bubble, and the seconds of a step.
local function measure(ranks, schedule, microbatches, chunks)
  local split, stages = {}, ranks * chunks
  for g = 1, stages - 1 do split[g] = g * 4 // chunks end
  local strategy = Timed { stages = ranks, microbatches = microbatches, schedule = schedule,
    split = split, chunks = chunks > 1 and chunks or nil }
  local bubble, seconds = {}, {}
  local net = Net(4 * ranks)
  function net:on_train_end()
    local own = {}
    for i, note in ipairs(strategy.notes_of) do
      if i > 5 then own[#own + 1] = { note[2] / note[1], note[1] } end
    end
    local all = lt.dist.all_gather(own)
    for i = 1, #own do
      local sum = 0.0
      for _, of_rank in ipairs(all) do sum = sum + of_rank[i][1] end
      bubble[i], seconds[i] = sum / #all, all[1][i][2]
    end
  end
  local x = lt.randn(microbatches * ROWS, WIDTH)
  local batches = {}
  for i = 1, STEPS do batches[i] = x end
  lt.Trainer { devices = ranks, strategy = strategy, max_epochs = 1, logger = false,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
    }:fit(net, batches)
  return middle(bubble), middle(seconds)
end

print "schedule     stages  microbatches  formula  bubble  step, ms"
for _, word in ipairs(RANKS) do
  local ranks = math.tointeger(tonumber(word))
  for _, schedule in ipairs(schedules.names) do
    local chunks = schedule == "interleaved" and 2 or 1
    for _, microbatches in ipairs { ranks, 4 * ranks } do
      local bubble, seconds = measure(ranks, schedule, microbatches, chunks)
      print(("%-12s %6d %13d %8.3f %7.3f %9.1f"):format(schedule, ranks, microbatches,
        schedules.bubble(schedule, ranks, microbatches, chunks), bubble, seconds * 1e3))
    end
  end
end
