-- spec/dist/step_times_spec.lua: a rank that is slower than the others is reported, with its
-- machine.
-- tags: slow
local child = require "spec.cli.child"
local console = require "ltrain.core.console"
local c = require "ltrain.c"
local StepTimes = require "ltrain.trainer.ranks.StepTimes"
local step_times = require "ltrain.runs.step_times"
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
  local limits = require "ltrain.trainer.ranks.StepTimes".limits
  limits.period, limits.slow_for = 0.05, 0.15
  local Net = lt.Module:extend("Net")
  function Net:init() self.line = lt.nn.Linear(1, 1) end
  function Net:training_step(batch)
    if lt.dist.rank() == 2 then os.execute "sleep 0.03" end
    return self.line(batch[1]):square():mean()
  end
  function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
  local data = lt.data.TensorDataset(lt.randn(60, 1))
]]

describe("step_times.ratio", function()
  it("compares a rank with the median of the others", function()
    assert.equal(3.0, step_times.ratio({ 1, 3 }, 2))
    assert.near(1 / 3, step_times.ratio({ 1, 3 }, 1), 1e-12)
    assert.equal(2.0, step_times.ratio({ 1, 2, 5, 4 }, 4))
    assert.equal(2.5, step_times.ratio({ 1, 2, 5, 3 }, 3))
    assert.is_nil(step_times.ratio({ 1 }, 1))
    assert.is_nil(step_times.ratio({ 0, 1 }, 2))
  end)
end)

describe("a rank that is slow", function()
  local say, said = console.say, nil
  before_each(function()
    said = {}
    console.say = function(text) said[#said + 1] = text end
  end)
  after_each(function() console.say = say end)

  it("is reported once, when it has been for a minute", function()
    local times = StepTimes.new { trainer = { world = { hosts = { "a", "a", "b" } } } }
    for now = 0, 50, 10 do times:judge(now, { 0.1, 0.11, 0.25 }) end
    assert.equal(0, #said)
    times:judge(60, { 0.1, 0.11, 0.25 })
    times:judge(70, { 0.1, 0.11, 0.25 })
    assert.same({ "warning: rank 2 on b is slow: for 60 s its batches have taken 0.25 s without "
      .. "waiting, 2.4 times the median of the other ranks" }, said)
  end)

  it("is not when it was as fast as the others meanwhile, and is again later", function()
    local times = StepTimes.new { trainer = { world = { hosts = { "a", "b" } } } }
    for now = 0, 40, 10 do times:judge(now, { 0.3, 0.1 }) end
    times:judge(50, { 0.12, 0.1 })
    for now = 60, 110, 10 do times:judge(now, { 0.3, 0.1 }) end
    assert.equal(0, #said)
    times:judge(120, { 0.3, 0.1 })
    assert.equal(1, #said)
    times:judge(130, { 0.1, 0.1 })
    for now = 140, 200, 10 do times:judge(now, { 0.3, 0.1 }) end
    assert.equal(2, #said)
  end)
end)

describe("a fit of which one rank sleeps", function()
  it("names it, records its times, and `ltrain diagnose` shows them", function()
    local folder = child.folder()
    local _, err = scripts.output(3, ([[
      trainer {logger = "csv", default_root_dir = %q}:fit(Net(),
        lt.data.DataLoader(data, {batch_size = 1}))
    ]]):format(folder))
    assert.matches("warning: rank 2 on %S+ is slow: for %d+ s its batches have taken %S+ s "
      .. "without waiting, [%d.]+ times the median of the other ranks", err)
    assert.not_matches("rank [01] on %S+ is slow", err)
    local run = folder .. "/ltrain_logs/version_0"
    local times = step_times.read(run)
    assert.equal(3, #times)
    assert.truthy(times[3].seconds > 0.03 and times[3].host)
    local status, out = child.run { "diagnose", run }
    assert.equal(0, status)
    assert.matches("time of a step without waiting for other ranks, in the last minute: "
      .. "rank 0 %S+ s, rank 1 %S+ s, rank 2 %S+ s\nrank 2 on %S+ is slow: ", out)
    child.remove(folder)
  end)
end)

describe("ltrain diagnose", function()
  it("shows times of a run that has not failed, of the last minute", function()
    local folder = child.folder()
    for rank = 0, 1 do
      local rows = { "epoch,step,time,step_time", "0,0,1000,9", "0,1,1100,nan",
        ("0,9,1120,%g"):format(0.1 + rank) }
      assert(c.io.write_file(("%s/system%s.csv"):format(folder, rank == 0 and "" or ".rank1"),
        table.concat(rows, "\n") .. "\n"))
    end
    local status, out = child.run { "diagnose", folder }
    assert.equal(0, status)
    assert.equal("time of a step without waiting for other ranks, in the last minute: "
      .. "rank 0 0.1 s, rank 1 1.1 s\nrank 1 is slow: 11.0 times the median of the others\n", out)
    child.remove(folder)
  end)
end)
