-- spec/cuda/nccl_fit_failures_spec.lua: a fit on two GPUs of which one rank fails, wherever that
-- is: it ends in seconds, says what and where once, and leaves no process.
-- tags: slow, third
local count = require "spec.count"
local job = require "spec.dist.job"

local SCRIPT <const> = [[
local rank, failing = lt.dist.rank, FAILING
local Net = lt.Module:extend "Net"
function Net:init()
  self.a, self.norm, self.b = lt.nn.Linear(3, 8), lt.nn.BatchNorm2d(8), lt.nn.Linear(8, 1)
end
function Net:forward(x)
  return self.b(self.norm(self.a(x):reshape {-1, 8, 1, 1}):reshape {-1, 8})
end
function Net:fails(where, batch) if rank() == 1 and where == failing then error("broken", 0) end end
function Net:training_step(batch)
  local step, loss = self.trainer.global_step, self(batch[1]):mean()
  if step == 1 then pid(rank()) end
  if step == 3 and rank() == 0 then mark "ready" end
  if rank() ~= 1 or step < 3 then return loss end
  if failing == "backward" then loss:register_hook(function() self:fails "backward" end) end
  if failing == "memory" then self.big = lt.zeros({1e6, 1e6}, {device = self.device}) end
  if failing == "gather" then self:all_gather(batch[1]) end
  return loss
end
function Net:validation_step(batch)
  if not self.trainer.sanity_checking then self:fails "validation_step" end
  self:log("value", self(batch[1]):mean(), {sync_dist = true})
end
function Net:on_validation_epoch_end()
  if not self.trainer.sanity_checking then self:fails "on_validation_epoch_end" end
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.001}) end
local Data = lt.data.Dataset:extend "Data"
function Data:__len() return 40 end
function Data:get(i)
  if i == 31 and failing == "worker" then error("broken", 0) end
  return {lt.ones(3) * i}
end
lt.Trainer {accelerator = "gpu", devices = 2, max_epochs = failing and 3 or -1, timeout = 3,
  logger = false, enable_checkpointing = false, enable_progress_bar = false,
  enable_model_summary = false,
}:fit(Net(), lt.data.DataLoader(Data(), {batch_size = 2, num_workers = 1}),
  lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 3)), {batch_size = 2}))
]]

-- Where, and what is said on standard error, once.
local CASES <const> = {
  { "backward", "ltrain: rank 1: broken\n" },
  { "validation_step", "ltrain: rank 1: broken\n" },
  { "on_validation_epoch_end", "ltrain: rank 1: broken\n" },
  { "worker", "ltrain: rank 1: broken (in sample 31)\n" },
  { "memory", "ltrain: rank 1: script.lua:16: zeros: out of memory on cuda:1: 4000000000000" },
  { "gather", "rank 1: all_gather [2, 3] f32 between devices at script.lua:17 (training_step)" },
}

local SIGNALS <const> = {
  { "KILL", 1, "rank 1 (pid %d+ on [%w._-]+) was ended by SIGKILL" },
  { "STOP", 1, "rank 1 (pid %d+ on [%w._-]+) is lost: no heartbeat for" },
  { "STOP", 0, "ltrain: rank 0 is lost: no heartbeat for" },
}

local function start(failing)
  return job.start((SCRIPT:gsub("FAILING", failing and ("%q"):format(failing) or "nil")), {})
end

describe("a fit on two GPUs ends, and says why once:", function()
  for _, case in ipairs(CASES) do
    it("rank 1 fails: " .. case[1], function()
      local one <close> = start(case[1])
      assert.truthy(one:wait_for("status", 50), "it does not end")
      assert.truthy(one:wait_gone(5), "processes are left")
      assert.equal(1, one:status())
      assert.equal(1, count(one:read "err", case[2]), one:read "err")
    end)
  end

  for _, case in ipairs(SIGNALS) do
    it(("rank %d gets SIG%s"):format(case[2], case[1]), function()
      local one <close> = start()
      assert.truthy(one:wait_for("ready", 40), one:read "err")
      job.signal(case[1], one:pid(case[2]))
      assert.truthy(one:wait_gone(20), "processes are left")
      assert.matches((case[3]:gsub(" %(", " %%("):gsub("%]%+%)", "]+%%)")), one:read "err")
    end)
  end
end)
