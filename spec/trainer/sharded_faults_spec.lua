-- spec/trainer/sharded_faults_spec.lua: what fails under Sharded, in steps and while a sharded
-- checkpoint is saved: the former one stays whole, and the job ends in seconds.
-- tags: slow, third, waits
local child = require "spec.cli.child"
local job = require "spec.dist.job"

-- A fit of two ranks in `stage` (1) that saves last.ckpt every step; `at(rank, step)` is called
-- before each save but the first.
local FIT <const> = [[
local c = require "ltrain.c"
local rank = lt.dist.rank
local stage = stage or 1
local Net = lt.Module:extend("Net")
function Net:init() self.w = lt.parameter(lt.zeros(1 << 16)) end
function Net:training_step(x) return (self.w * x):sum() end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.1}) end
function Net:on_train_start() pid(rank()) end
function Net:on_train_batch_end(_, _, i)
  if i > 0 then at(rank(), i) end
  self.trainer:%s
end
local batches = {}
for k = 1, 8 do batches[k] = lt.ones(1) end
local function train(steps, o)
  lt.Trainer {max_epochs = 1, max_steps = steps, devices = 2, logger = false,
    strategy = {"sharded", stage = stage, state_dict_type = "sharded"},
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}
    :fit(Net(), batches, nil, o)
end
]]
local NOW <const> = FIT:format 'save_checkpoint "last.ckpt"'
local LATER <const> = FIT:format 'request_checkpoint("last.ckpt", {agreed = true})'

-- What a folder has: the sum of the weights that were saved, and whether all of it can be read; and
-- what is left beside it.
local CHECK <const> = [[
local lt, c = require "ltrain", require "ltrain.c"
local tensors, why = lt.load("last.ckpt")
print(tensors and tensors["model.w"]:mean():item() or why)
c.io.remove_stale "."
local left = {}
for _, name in ipairs(c.io.list_folder ".") do
  if name:find "saving" then left[#left + 1] = name end
end
print(#left == 0 and "nothing is left" or table.concat(left, " "))
]]

-- The step that last.ckpt was saved at, by its weights: Adam moves each by 0.1 a step.
local function saved_step(one)
  child.write(one.folder .. "/check.lua", CHECK)
  local _, out = child.run({ "check.lua" }, { dir = one.folder })
  local mean, left = out:match "^([^\n]*)\n([^\n]*)"
  assert.equal("nothing is left", left)
  assert.truthy(tonumber(mean), mean)
  return math.floor(-tonumber(mean) / 0.1 + 0.5)
end

local function kills(name, script, victim, wanted)
  it(name, function()
    local one <close> = job.start(script .. "train()", { ranks = 2 })
    assert.truthy(one:wait_for("here", 30), one:read "err")
    assert.truthy(job.signal("KILL", one:pid(victim)))
    assert.truthy(one:wait_gone(15), "processes are left")
    assert.equal(137, one:status())
    assert.matches(victim == 0 and "rank 0 ended without an error message"
      or "rank 1 %(pid %d+[^)]*%) was ended by SIGKILL", one:read "err")
    assert.equal(wanted, saved_step(one))
  end)
end

describe("a rank that is killed in a step of stage 3", function()
  for name, what in pairs { gather_shards = "in a gather", reduce_shards = "in a reduction" } do
    kills(what .. " leaves the former checkpoint, and the others end", ([[
      local c = require "ltrain.c"
      local real, is_due = c.dist.NAME, false
      stage = 3
      function at(rank, i) is_due = rank == 1 and i == 2 end
      function c.dist.NAME(...)
        if is_due then mark "here" busy(30) end
        return real(...)
      end
    ]]):gsub("NAME", name) .. NOW, 1, 3)
  end
end)

describe("a rank that has no memory for a gather", function()
  it("ends the job, and is named with the sizes", function()
    if (os.getenv "LT_SANITIZE" or "") ~= "" then
      return pending "sanitizers need the whole address space"
    end
    local one <close> = job.start([[
      local net = lt.nn.Sequential()
      for _ = 1, 4 do net:append(lt.nn.Linear(2048, 2048)) end
      function net:training_step(x) return self(x):square():mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      function net:on_train_batch_start(_, i)
        if i == 0 or lt.dist.rank() == 0 then return end
        require "ltrain.c".runtime.empty_cache()
        local file <close> = io.open "/proc/self/statm"
        assert(os.execute(("prlimit --pid %d --as=%d"):format(lt.dist.world().pid,
          file:read "n" * 4096 + 1000000)))
      end
      lt.Trainer {max_epochs = 1, devices = 2, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false,
        strategy = {"fsdp", reshard_after_forward = false}}:fit(net,
        {lt.ones(2, 2048), lt.ones(2, 2048)})
    ]], { ranks = 2 })
    assert.truthy(one:wait_for("status", 30), "it does not end")
    assert.truthy(one:wait_gone(15), "processes are left")
    assert.equal(1, one:status())
    assert.matches("rank 1: script.lua:%d+: out of memory on cpu: 16777216 bytes requested, %d+ "
      .. "bytes in use", one:read "err")
  end)
end)

describe("a rank that is killed in a sharded save", function()
  kills("while the others wait for its part", [[
    function at(rank, i) if rank == 1 and i == 2 then mark "here" busy(30) end end
  ]] .. NOW, 1, 2)

  kills("before its file is written leaves the former one, and the others end", [[
    local c = require "ltrain.c"
    local real, count = c.io.save_later, 0
    function at() end
    function c.io.save_later(...)
      count = count + 1
      if count == 3 and lt.dist.rank() == 1 then mark "here" busy(30) end
      return real(...)
    end
  ]] .. LATER, 1, 2)

  kills("at the commit leaves the former one", [[
    local c = require "ltrain.c"
    local real, count = c.io.commit_folder, 0
    function at() end
    function c.io.commit_folder(...)
      count = count + 1
      if count == 3 then mark "here" busy(30) end
      return real(...)
    end
  ]] .. NOW, 0, 2)

  it("at any moment leaves a whole one, from which the run resumes", function()
    for k = 1, 8 do
      local one <close> = job.start(("stage = %d "):format(k > 4 and 3 or 1) .. [[
        function at() mark "here" end
      ]] .. (k % 2 == 0 and NOW or LATER) .. [[
        for k = 9, 4000 do batches[k] = lt.ones(1) end
        train()
      ]], { ranks = 2 })
      assert.truthy(one:wait_for("last.ckpt", 30), one:read "err")
      job.sleep(0.037 * k)
      assert.truthy(job.signal("KILL", one:pid(k % 2)))
      assert.truthy(one:wait_gone(15), "processes are left")
      local step = saved_step(one)
      assert.truthy(step >= 1)
    end
  end)
end)

describe("a rank that cannot write in a sharded save", function()
  -- Rank 1's file fails as on a full disk.
  local FULL <const> = [[
    local c = require "ltrain.c"
    local real, count = c.io.save_later, 0
    function at() end
    function c.io.save_later(path, ...)
      count = count + 1
      if count < 3 or lt.dist.rank() == 0 then return real(path, ...) end
      return {done = function() return true end, wait = function()
        return nil, "save: cannot write " .. path .. ": No space left on device"
      end}
    end
  ]]

  for name, script in pairs { ["at once"] = NOW, ["while the fit continues"] = LATER } do
    it(name .. " ends the job with its file's name; the former one stays", function()
      local one <close> = job.start(FULL .. script .. "train()", { ranks = 2 })
      assert.truthy(one:wait_for("status", 30), one:read "err")
      assert.truthy(one:wait_gone(15), "processes are left")
      assert.equal(1, one:status())
      assert.matches("save_checkpoint: .*cannot write .*/rank%-1%.safetensors: No space left on "
        .. "device", one:read "err")
      assert.equal(2, saved_step(one))
    end)
  end

  it("on a disk that is full: a real one", function()
    local folder = child.folder()
    local unshare
    os.execute(("mkdir '%s/disk'"):format(folder))
    for _, words in ipairs { "unshare -m", "unshare -rm" } do
      if os.execute(("%s mount -t tmpfs ltrain '%s/disk' 2>/dev/null"):format(words, folder)) then
        unshare = words
        break
      end
    end
    if not unshare then
      child.remove(folder)
      return pending("this user may not mount a small disk")
    end
    child.write(folder .. "/fit.lua", "lt = require 'ltrain' function pid() end function at() end "
      .. FIT:format 'save_checkpoint("disk/" .. self.global_step .. ".ckpt")' .. "train()")
    child.write(folder .. "/check.lua", [[
      local lt, c = require "ltrain", require "ltrain.c"
      for _, name in ipairs(c.io.list_folder "disk") do
        local tensors, why = lt.load("disk/" .. name)
        print(name, tensors and ("%.1f"):format(tensors["model.w"]:mean():item()) or why)
      end
    ]])
    child.write(folder .. "/lines.sh", ([[
      mount -t tmpfs -o size=3m ltrain disk || exit 1
      timeout -k 1 60 '%s' fit.lua 2>&1; echo "status $?"
      timeout -k 1 30 '%s' check.lua 2>&1
    ]]):gsub("%%s", os.getenv("LTRAIN") or arg[-1]))
    local pipe <close> = assert(io.popen(("cd '%s' && timeout -k 1 90 %s sh lines.sh 2>&1"):format(
      folder, unshare)))
    local out = pipe:read "a"
    child.remove(folder)
    assert.matches("save_checkpoint: rank %d: cannot write disk/.*rank%-%d.safetensors: No space "
      .. "left on device", out)
    assert.matches("status 1\n", out, 1, true)
    -- 786 KiB each: 3 of them in 3 MiB
    assert.matches("1%.ckpt\t%-0%.1\n2%.ckpt\t%-0%.2\n3%.ckpt\t%-0%.3\n$", out)
  end)
end)
