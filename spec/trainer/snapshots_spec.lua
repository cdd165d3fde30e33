-- spec/trainer/snapshots_spec.lua: fits whose ranks are killed resume from snapshots in memory that
-- outlives them, and end as those that nothing has interrupted, bit for bit.
-- tags: slow, third, waits
local job = require "spec.dist.job"
local rounds = require "spec.trainer.rounds"

local _, no_ucx = job.can "ucx"

-- Ends with its weights in end.st, and the rows that it logged in its folder. KILL: the step at
-- which rank VICTIM is killed, in fit FIT and, where that is set, round IN; ASK: the one at which
-- it asks all to stop.
local SCRIPT <const> = [[
local lt = require "ltrain"
lt.seed(3)
local pid = io.open("/proc/self/stat"):read "n"
local function number(name) return tonumber(os.getenv(name) or "") end
local fits = 0
local Net = lt.Module:extend "Net"
function Net:init()
  self.first, self.last = lt.nn.Linear(4, 8), lt.nn.Linear(8, 1)
  self.norm, self.drop = lt.nn.BatchNorm1d(8), lt.nn.Dropout(0.3)
end
function Net:forward(x)
  local y = self.last(self.drop(self.norm(self.first(x))))
  return y
end
function Net:training_step(batch)
  local step = self.trainer.global_step
  local is_victim = self.trainer.global_rank == (number "VICTIM" or 0)
    and fits == (number "FIT" or 1)
    and (number "IN" or number "LTRAIN_INCARNATION") == number "LTRAIN_INCARNATION"
  if is_victim and step == number "KILL" then
    os.execute(("sleep %g; kill -KILL %d"):format(number "REST" or 0, pid))
  end
  if is_victim and step == number "ASK" then os.execute("kill -USR1 " .. pid) end
  local loss = lt.mse_loss(self(batch[1]), batch[2])
  self:log("loss", loss, {on_step = true, on_epoch = true})
  return loss
end
function Net:configure_optimizers()
  local adam = lt.optim.Adam(self:parameters(), {lr = 0.02})
  local scheduler = lt.optim.StepLR(adam, {step_size = 5, gamma = 0.9})
  return {optimizer = adam, lr_scheduler = {scheduler = scheduler, interval = "step"}}
end
local x = lt.randn(48, 4)
local data = lt.data.TensorDataset(x, x:sum(2, {keepdim = true}))
local loader = lt.data.DataLoader(data, {batch_size = number "BATCH" or 4, shuffle = true})
local function fit()
  fits = fits + 1
  local net = Net()
  local trainer = lt.Trainer{max_epochs = 4, snapshot_every = number "EVERY" or 0,
    log_every_n_steps = 1, strategy = os.getenv "STRATEGY" or "auto", enable_progress_bar = false,
    enable_checkpointing = false, enable_model_summary = false}
  trainer:fit(net, loader)
  if trainer.is_global_zero then lt.save("end.st", net:state_dict()) end
end
for _ = 1, number "FIT" or 1 do fit() end
]]

-- What a job has come to: its weights, and the rows that it logged.
local function outcome(self)
  return { weights = self:read "end.st", rows = self:read "ltrain_logs/version_0/metrics.csv" }
end

local known <const> = {} -- by the options

-- That of a job that nothing interrupts.
local function undisturbed(options)
  local key = ("%s %s"):format(options.ranks, options.env)
  if known[key] then return known[key] end
  local self <close> = rounds.new(SCRIPT)
  for _, one in ipairs(self:run(options)) do assert.equal(0, one.status, one.text) end
  known[key] = outcome(self)
  assert.is_string(known[key].weights)
  return known[key]
end

-- Options with another environment beside their own.
local function with(options, env)
  local all = { env = ((options.env or "") .. " " .. env) }
  for name, value in next, options do all[name] = all[name] or value end
  return all
end

local function ends(results)
  for _, one in ipairs(results) do assert.equal(0, one.status, one.text) end
end

-- Rank `victim` is killed, the others fail.
local function dies(results, victim)
  for _, one in ipairs(results) do assert.not_equal(0, one.status, one.text) end
  assert.equal(137, results[(victim or 0) + 1].status, results[(victim or 0) + 1].text)
end

local function resumed_step(results)
  return math.tointeger(tonumber(results[1].text:match "resumes from the snapshot of step (%d+)"))
end

describe("a fit of one rank with snapshots", function()
  it("resumes where it was killed", function()
    local whole = undisturbed {}
    local self <close> = rounds.new(SCRIPT)
    local last = 0
    for _, step in ipairs { 7, 23, 31, 40 } do
      dies(self:run { env = "KILL=" .. step })
      if self.round > 0 then
        local from = resumed_step { { text = self:read "0.out" } }
        assert.is_true(from == last or from == last - 1, ("%s of %d"):format(from, last))
      end
      last = step
    end
    ends(self:run())
    assert.same(whole, outcome(self))
  end)

  it("does not take a slot that is damaged", function()
    local whole = undisturbed {}
    local self <close> = rounds.new(SCRIPT)
    dies(self:run { env = "KILL=30 REST=0.5" }) -- no slot is being written then
    local newest, older = nil, nil
    for k = 1, 2 do -- the header: magic, fit, round, serial, ...
      local bytes = self:read(("slot.0.%d"):format(k))
      local serial = bytes:sub(25, 32)
      if not newest or ("<i8"):unpack(serial) > newest.serial then
        older, newest = newest, { k = k, serial = ("<i8"):unpack(serial) }
      else
        older = { k = k, serial = ("<i8"):unpack(serial) }
      end
    end
    assert.equal(newest.serial - 1, older.serial)
    local file <close> = io.open(self:slot(0, newest.k), "r+b")
    file:seek("set", 4096 + 2000)
    file:write "another"
    file:flush()
    local results = self:run()
    ends(results)
    assert.is_true(resumed_step(results) < 30)
    assert.same(whole, outcome(self))
  end)

  it("starts again where no slot is whole", function()
    local whole = undisturbed {}
    local self <close> = rounds.new(SCRIPT)
    dies(self:run { env = "KILL=9" })
    self:lose(0)
    local results = self:run()
    ends(results)
    assert.is_nil(resumed_step(results))
    assert.equal(whole.weights, outcome(self).weights)
  end)

  it("makes none with snapshot_every = false", function()
    local self <close> = rounds.new((SCRIPT:gsub('snapshot_every = number "EVERY" or 0',
      "snapshot_every = false")))
    dies(self:run { env = "KILL=9" })
    assert.equal("", self:read "slot.0.1")
  end)

  it("keeps those of a later fit of the script", function()
    local self <close> = rounds.new(SCRIPT)
    dies(self:run { env = "FIT=2 KILL=25" })
    local results = self:run { env = "FIT=2" }
    ends(results)
    assert.is_true(resumed_step(results) > 0)
    assert.equal(undisturbed({ env = "FIT=2" }).weights, outcome(self).weights)
  end)
end)

describe("a fit of two ranks with snapshots", function()
  local function needs_ucx()
    if no_ucx then pending(no_ucx) end
  end

  for _, case in ipairs {
    { name = "of one host", options = { ranks = 2, env = "STRATEGY=ddp" } },
    { name = "of one host that share optimizer state",
      options = { ranks = 2, env = "STRATEGY=zero1" } },
    { name = "of one host that share parameters",
      options = { ranks = 2, env = "STRATEGY=fsdp" } },
  } do
    it(case.name .. " resumes where a rank was killed", function()
      needs_ucx()
      local options = case.options
      options.env = options.env .. " BATCH=2"
      local whole = undisturbed(options)
      local self <close> = rounds.new(SCRIPT)
      for round, step in ipairs { 13, 29 } do
        dies(self:run(with(options, ("KILL=%d VICTIM=%d"):format(step, round % 2))), round % 2)
      end
      local results = self:run(options)
      ends(results)
      assert.is_true(resumed_step(results) >= 28)
      assert.same(whole, outcome(self))
    end)
  end

  for host = 0, 1 do
    for _, strategy in ipairs { "ddp", "fsdp" } do
      it(("resumes with %s where host %d is lost"):format(strategy, host), function()
        needs_ucx()
        local options = { ranks = 2, hosts = 2, env = "STRATEGY=" .. strategy .. " BATCH=2" }
        local whole = undisturbed(options)
        local self <close> = rounds.new(SCRIPT)
        dies(self:run(with(options, "KILL=30 VICTIM=" .. host)), host)
        self:lose(host)
        local results = self:run(options)
        ends(results)
        assert.is_true(resumed_step(results) > 0)
        assert.same(whole, outcome(self))
      end)
    end
  end

  it("of two hosts with two ranks each makes one after the other, and resumes", function()
    needs_ucx()
    local options = { ranks = 4, hosts = 2, env = "STRATEGY=ddp BATCH=2" }
    local whole = undisturbed(options)
    local self <close> = rounds.new(SCRIPT)
    dies(self:run(with(options, "KILL=17 VICTIM=3")), 3)
    self:lose(0)
    local results = self:run(options)
    ends(results)
    assert.is_true(resumed_step(results) >= 15)
    assert.same(whole, outcome(self))
  end)

  it("that is asked to stop resumes from where all of them stopped", function()
    needs_ucx()
    local options = { ranks = 2, env = "STRATEGY=ddp BATCH=2" }
    local whole = undisturbed(options)
    local self <close> = rounds.new(SCRIPT)
    for _, one in ipairs(self:run(with(options, "EVERY=1000 ASK=17 VICTIM=1"))) do
      assert.not_equal(0, one.status, one.text)
    end
    local results = self:run(options)
    ends(results)
    local step = resumed_step(results)
    assert.is_true(step > 17 and step <= 20, results[1].text)
    assert.same(whole, outcome(self))
  end)

  it("resumes under `ltrain launch`", function()
    needs_ucx()
    local options = { ranks = 2, env = "STRATEGY=ddp BATCH=2" }
    local whole = undisturbed(options)
    local self <close> = rounds.new(SCRIPT)
    local text, status = self:launch(2, options.env .. " KILL=22 VICTIM=1 IN=0")
    assert.equal(0, status, text)
    assert.matches("resumes from the snapshot of step 2[12] %(round 1%)", text)
    assert.same(whole, outcome(self))
  end)

  it("whose state is divided resumes on one rank", function()
    needs_ucx()
    local self <close> = rounds.new(SCRIPT)
    dies(self:run { ranks = 2, env = "BATCH=2 STRATEGY=fsdp KILL=20" })
    local results = self:run { env = "BATCH=4" }
    ends(results)
    assert.is_true(resumed_step(results) > 0)
    assert.is_string(self:read "end.st")
  end)
end)
