-- spec/cli/requeue_spec.lua: SIGUSR1: save, `scontrol requeue`, resume after the restart. The
-- scontrol here only writes down what it was asked; spec/dist/slurm_spec.lua has a real one.
-- tags: sampled, slow
local child = require "spec.cli.child"
local job = require "spec.dist.job"
local over = require "spec.dist.over"

local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(3, 1) end
function Net:training_step(batch)
  if self.trainer.global_step == 5 and require "ltrain.c".runtime.getenv "WHAT" == "signal" then
    io.popen("kill -USR1 " .. require "ltrain.c".runtime.pid()):close()
  end
  return self.layer(batch[1]):mean()
end
function Net:on_train_start() print("from step " .. self.trainer.global_step) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = lt.data.TensorDataset(lt.ones(12, 3))
local function trainer()
  return lt.Trainer {max_epochs = 4, enable_progress_bar = false, enable_model_summary = false,
    num_sanity_val_steps = 0, log_every_n_steps = 0}
end
if require "ltrain.c".runtime.getenv "TWICE" then
  trainer():validate({forward = print, validation_step = function() end},
    lt.data.DataLoader(data, {batch_size = 4}))
end
local t = trainer()
t:fit(Net(), lt.data.DataLoader(data, {batch_size = 4}))
print("to step " .. t.global_step)
]]

describe("SIGUSR1 in a job of SLURM", function()
  local folder

  before_each(function()
    folder = child.folder()
    child.write(folder .. "/model.lua", SCRIPT)
    child.write(folder .. "/scontrol", "#!/bin/sh\necho \"$@\" >asked\n"
      .. "[ -z \"$FAILS\" ] || { echo cannot; exit 1; }\n")
    os.execute("chmod +x " .. folder .. "/scontrol")
  end)
  after_each(function() child.remove(folder) end)

  local function run(env, ...)
    env.PATH = folder .. ":" .. os.getenv("PATH")
    return child.run({ ... }, { dir = folder, env = env })
  end

  local function asked()
    local file = io.open(folder .. "/asked")
    if not file then return nil end
    local text = file:read("l")
    file:close()
    return text
  end

  for _, words in ipairs { { "run", "model.lua" }, { "model.lua" } } do
    it("requeues, and the restarted job resumes: ltrain " .. words[1], function()
      local status, out, err = run({ WHAT = "signal", SLURM_JOB_ID = "7" }, table.unpack(words))
      assert.equal(138, status, err)
      assert.equal("from step 0\n", out)
      assert.matches("SLURM: job 7 is queued again, to resume from ltrain_logs/version_0/"
        .. "checkpoints/interrupted.ckpt\n$", err)
      assert.equal("requeue 7", asked())

      status, out, err = run({ SLURM_JOB_ID = "7", SLURM_RESTART_COUNT = "1" },
        table.unpack(words))
      assert.equal(0, status, err)
      assert.matches("SLURM: job 7 was restarted (SLURM_RESTART_COUNT=1): resumes from", err, 1,
        true)
      assert.equal("from step 6\nto step 12\n", out)

      -- It went to its end: another restart begins anew.
      _, out = run({ SLURM_JOB_ID = "7", SLURM_RESTART_COUNT = "2" }, table.unpack(words))
      assert.equal("from step 0\nto step 12\n", out)
    end)
  end

  it("requeues its own task of an array", function()
    local array = { SLURM_JOB_ID = "9", SLURM_ARRAY_JOB_ID = "7", SLURM_ARRAY_TASK_ID = "3",
      WHAT = "signal" }
    local status, _, err = run(array, "run", "model.lua")
    assert.equal(138, status, err)
    assert.equal("requeue 7_3", asked())
    array.WHAT, array.SLURM_RESTART_COUNT = nil, "1"
    local _, out = run(array, "run", "model.lua")
    assert.equal("from step 6\nto step 12\n", out)
  end)

  over({ "mpi" }, "requeues when one rank alone gets it, not the first,", function(way)
    local script = SCRIPT:gsub('require "ltrain.c".runtime.getenv "WHAT" == "signal"',
      "lt.dist.rank() == 1")
    local one <close> = job.start(script, { over = way, env = ("PATH=%s:$PATH SLURM_JOB_ID=7 "
      .. "OMPI_MCA_ras=^slurm OMPI_MCA_plm=rsh"):format(folder) })
    assert.is_true(one:wait_for("status", 60))
    assert.equal(138, one:status(), one:read "err")
    assert.equal("requeue 7\n", one:read "asked")
  end)

  it("resumes with the loop that was stopped", function()
    run({ WHAT = "signal", SLURM_JOB_ID = "7", TWICE = "1" }, "model.lua")
    local status, out, err = run({ SLURM_JOB_ID = "7", SLURM_RESTART_COUNT = "1", TWICE = "1" },
      "model.lua")
    assert.equal(0, status, err)
    assert.matches("from step 6\nto step 12\n$", out)
  end)

  it("saves, and says why it could not requeue", function()
    local status, _, err = run({ WHAT = "signal", SLURM_JOB_ID = "7", FAILS = "1" }, "model.lua")
    assert.equal(138, status)
    assert.matches("interrupted: saved", err, 1, true)
    assert.matches("SLURM: job 7 is not queued again: scontrol requeue 7: cannot\n$", err)
  end)

  it("saves and ends the job where the script wants no more", function()
    child.write(folder .. "/model.lua",
      "require 'ltrain'.clusters.current().auto_requeue = false\n" .. SCRIPT)
    local status, _, err = run({ WHAT = "signal", SLURM_JOB_ID = "7" }, "model.lua")
    assert.equal(138, status)
    assert.matches("interrupted: saved", err, 1, true)
    assert.is_nil(asked())
  end)

  it("is what it is everywhere outside of a launch: the end", function()
    local status, _, err = run({ WHAT = "signal" }, "model.lua")
    assert.equal(138, status)
    assert.not_matches("saved", err, 1, true)
    assert.is_nil(asked())
  end)
end)
