-- spec/dist/agree_spec.lua: what one rank has met, all act on at the same step.
-- tags: sampled, slow, waits
local child = require "spec.cli.child"
local job = require "spec.dist.job"
local over = require "spec.dist.over"
local support = require "spec.dist.support"
local trained = require "spec.dist.trained"

-- A small fit.
local PRELUDE <const> = trained.prelude .. [[
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(4, 2) end
function Net:training_step(b) return lt.cross_entropy(self.layer(b[1]), b[2]) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local x = lt.randn(64, 4)
local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to("i64"))
local function loader() return lt.data.DataLoader(data, {batch_size = 4}) end
-- What each rank says at the end of training.
local function steps_of(net)
  local said
  function net:on_train_end() said = lt.dist.all_gather(self.trainer.global_step) end
  return function() return table.concat(said, " ") end
end
]]

local function passes(code) return support.passes(PRELUDE .. code) end

describe("ranks agree", function()
  it("on max_time, by rank 0's clock", function()
    passes [[
      local net = Net()
      local said = steps_of(net)
      trainer({devices = 3, max_time = 0.2, max_epochs = -1}):fit(net, loader())
      local a, b, c = said():match "^(%d+) (%d+) (%d+)$"
      assert(tonumber(a) > 0 and a == b and b == c, said())
    ]]
  end)

  it("on an epoch that a hook of one rank ends before its batch", function()
    passes [[
      local net = Net()
      local said = steps_of(net)
      function net:on_train_batch_start(_, i)
        if lt.dist.rank() == 1 and i == 2 then return -1 end
      end
      trainer({devices = 2, max_epochs = 2}):fit(net, loader())
      same("4 4", said())
    ]]
  end)

  it("on an epoch that a callback of rank 0 ends, whatever the window", function()
    passes [[
      for _, window in ipairs {1, 3} do
        local net = Net()
        local said = steps_of(net)
        local leave = {all_ranks = false}
        function leave:on_train_batch_start(_, _, _, i)
          if i == 4 then return -1 end
        end
        trainer({devices = 2, max_epochs = 1, callbacks = {leave},
          accumulate_grad_batches = window}):fit(net, loader())
        same(window == 1 and "4 4" or "1 1", said())
      end
    ]]
  end)

  it("on a stop that validation of one rank asks for", function()
    passes [[
      local net = Net()
      local said = steps_of(net)
      function net:validation_step() end
      function net:on_validation_epoch_end()
        if lt.dist.rank() == 1 then self.trainer.should_stop = true end
      end
      trainer({devices = 2, max_epochs = 5, val_check_interval = 3, num_sanity_val_steps = 0})
        :fit(net, loader(), loader())
      same("3 3", said())
    ]]
  end)

  it("without an optimizer too", function()
    passes [[
      local net = Net()
      function net:configure_optimizers() end
      function net:training_step(_, i)
        if lt.dist.rank() == 1 and i == 2 then self.trainer.should_stop = true end
        return self.layer.weight:sum()
      end
      local said
      function net:on_train_end() said = lt.dist.all_gather(self.trainer.progress.train_batches) end
      trainer({devices = 2, max_epochs = 5}):fit(net, loader())
      same("3 3", table.concat(said, " "))
    ]]
  end)

  it("on steps that all skip, and count who skipped", function()
    local out = passes [[
      local net = Net()
      local said = steps_of(net)
      function net:training_step(b, i)
        if i == 3 or i > 4 and lt.dist.rank() == 1 then return nil end
        return lt.cross_entropy(self.layer(b[1]), b[2])
      end
      trainer({devices = 2, max_epochs = 1}):fit(net, loader())
      same("7 7", said())
    ]]
    assert.matches("epoch 0: rank 0 skipped 1 of 8 steps, rank 1 skipped 4 of 8 steps: "
      .. "training_step returned nil", out)
  end)

  it("on checkpoints of a time interval, which rank 0 writes", function()
    local folder = child.folder()
    passes(([[
      local net = Net()
      local folder = %q
      local keep = lt.callbacks.ModelCheckpoint{dirpath = folder, train_time_interval = 0.05,
        save_top_k = -1}
      function net:on_train_batch_end()
        if #require "ltrain.c".io.list_folder(folder) >= 2 then self.trainer.should_stop = true end
      end
      trainer({devices = 2, max_epochs = -1, enable_checkpointing = true, callbacks = {keep}})
        :fit(net, loader())
    ]]):format(folder))
    child.remove(folder)
  end)
end)

-- Steps of a millisecond; a rank says which process it is, then where training stopped.
local ENDLESS <const> = PRELUDE .. [[
  local net = Net()
  function net:on_train_start() pid(lt.dist.rank()) end
  function net:on_train_batch_end(_, _, i)
    if self.trainer.global_step == 20 then mark("running." .. lt.dist.rank()) end
  end
  local t = trainer {devices = RANKS, max_epochs = -1, enable_checkpointing = true,
    default_root_dir = "."}
  function net:on_exception() end
  t.callbacks[#t.callbacks + 1] = lt.Callback.adopt { all_ranks = true,
    on_exception = function(_, trainer)
      local f = assert(io.open("stopped." .. lt.dist.rank(), "w"))
      f:write(trainer.global_step)
      f:close()
    end }
  t:fit(net, loader())
]]

describe("a signal to one rank of a fit", function()
  local all <const> = { "shm", "mpi", "two hosts" }
  for _, case in ipairs { { "TERM", 1, 143, all }, { "INT", 0, 130, all },
    { "USR1", 1, 138, { "mpi" } } } do -- a cluster's signal
    local name, rank, status, ways = table.unpack(case)
    over(ways, ("SIG%s to rank %d ends all at the same step, with one "
      .. "checkpoint,"):format(name, rank), function(way)
      local n = way == "two hosts" and 2 or 3 -- rank 1 is on the other host
      local run <close> = job.start(ENDLESS:gsub("RANKS", n), { ranks = n, over = way })
      for r = 0, n - 1 do assert.is_true(run:wait_for("running." .. r, 20)) end
      job.signal(name, run:pid(rank))
      assert.is_truthy(run:wait_gone(20))
      assert.equal(status, run:status())
      local steps = run:read "stopped.0"
      assert.is_truthy(steps)
      for r = 1, n - 1 do assert.equal(steps, run:read("stopped." .. r)) end
      assert.equal(1, run:count "interrupted: saved")
      assert.equal(1, #run:files "interrupted.ckpt")
      assert.equal(0, #run:files "failure", "files of a failure")
      assert.equal(0, #run:files "ring%.rank", "files of a failure")
    end)
  end
end)
