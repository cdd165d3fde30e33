-- spec/dist/stays_spec.lua: ranks on a device that does not survive a fork stay after the loop that
-- they were forked for, and continue with the script until it ends.
-- tags: slow
local child = require "spec.cli.child"
local job = require "spec.dist.job"
local trained = require "spec.dist.trained"

local ENV <const> = { LT_FAKE_FORKS = "0" }

local BEGINNING <const> = trained.prelude .. ([[
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(4, 1) end
function Net:training_step(batch) return self.layer(batch[1]):mean() end
Net.validation_step = Net.training_step
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local function loader()
  return lt.data.DataLoader(lt.data.TensorDataset(lt.ones(16, 4)), {batch_size = 4})
end
local function on(ranks, o)
  o = o or {}
  o.devices = ranks
  o.accelerator = {device = function(_, rank) return "fake:" .. rank end}
  return trainer(o)
end
]]):gsub("%s*\n%s*", " ")

local function run(script, words)
  local folder = child.folder()
  child.write(folder .. "/script.lua", BEGINNING .. script)
  local status, out, err = child.run(words or { "run", "script.lua" },
    { dir = folder, env = ENV })
  local file <close> = io.open(folder .. "/notes")
  local notes = file and file:read "a"
  child.remove(folder)
  return status, out, err, notes
end

-- Adds a line to a file that all ranks write.
local NOTE <const> = [[
  local function note(text)
    local f <close> = io.open("notes", "a")
    f:write(text, "\n")
  end
]]

local function sorted(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  table.sort(lines)
  return table.concat(lines, " ")
end

describe("ranks on a device that does not survive a fork", function()
  it("continue with the script after fit, which runs once; those above 0 print nothing", function()
    local status, out, err, notes = run(NOTE .. [[
      note "begins"
      local net, t, upvalue = Net(), on(2), {value = 41}
      t:fit(net, loader())
      print(lt.dist.rank(), lt.dist.world_size(), t.global_step)
      io.write("written\n")
      note(("%d %d"):format(lt.dist.rank(), lt.dist.all_reduce(upvalue.value)))
    ]])
    assert.equal(0, status, err)
    assert.equal("0\t2\t2\nwritten\n", out)
    assert.equal("0 82 1 82 begins", sorted(notes))
  end)

  it("join later loops on as many ranks", function()
    local status, out, err = run [[
      local net, steps = Net(), 0
      local t = on(2)
      t:fit(net, loader())
      function net.on_train_batch_end() steps = steps + lt.dist.all_reduce(1) end
      local again = on(2)
      again:fit(net, loader())
      local before = lt.dist.world().pids[2]
      again:validate(net, loader(), {verbose = false})
      on():validate(net, loader(), {verbose = false})
      print(steps, lt.dist.world().pids[2] == before, lt.dist.launch(2, function(rank)
        return rank, lt.dist.all_reduce(1)
      end))
    ]]
    assert.equal(0, status, err)
    assert.equal("4\ttrue\t0\t2\n", out)
  end)

  it("refuse loops on other numbers", function()
    local status, out, err = run [[
      local net, one = Net(), on(1)
      on(2):fit(net, loader())
      print(pcall(on, 3))
      print(pcall(one.validate, one, net, loader()))
      print(pcall(lt.dist.launch, 3, print))
    ]]
    assert.equal(0, status, err)
    assert.matches("devices = 3 x num_nodes = 1 is 3 ranks, but the 2 of the first loop stay until "
      .. "the script ends", out)
    assert.matches("validate: this Trainer is for 1 rank, but the 2 of the first loop stay", out)
    assert.matches("requested 3 ranks in a world of 2, which stays until the script ends", out)
  end)

  it("end with the first error, wherever it is, with its line", function()
    for rank = 0, 1 do
      local status, out, err = run(([[
        on(2):fit(Net(), loader())
        print "trained"
        if lt.dist.rank() == %d then error "boom" end
        lt.dist.barrier()
      ]]):format(rank))
      assert.equal(1, status, err)
      assert.matches("^trained\n", out)
      assert.matches(("rank %d: script.lua:3: boom"):format(rank), err)
      assert.equal(1, select(2, err:gsub("boom", "")))
    end
  end)

  it("end with os.exit of all of them, or of one with its line", function()
    local status, out, err = run [[
      on(2):fit(Net(), loader())
      print "trained"
      os.exit(0)
    ]]
    assert.equal(0, status, err)
    assert.equal("trained\n", out)
    local _
    for rank = 0, 1 do
      status, _, err = run(([[
        on(2):fit(Net(), loader())
        if lt.dist.rank() == %d then os.exit(3) end
        lt.dist.barrier()
      ]]):format(rank))
      assert.equal(rank == 0 and 3 or 1, status, err)
      assert.matches("script.lua:2: os.exit%(3%) was called in a rank", err)
    end
  end)

  it("are named when one leaves a collective out", function()
    local status, _, err = run [[
      on(2):fit(Net(), loader())
      if lt.dist.rank() == 0 then lt.dist.barrier() end
    ]]
    assert.equal(1, status)
    assert.matches("rank 0: barrier at script.lua:2", err)
    assert.matches("rank 1: left the script", err)
  end)

  it("end when the first loop fails, and are not forked again", function()
    local status, out, err = run [[
      local net = Net()
      function net.on_train_batch_end()
        if lt.dist.rank() == 1 then error "boom" end
        lt.dist.barrier()
      end
      print(pcall(function() on(2):fit(net, loader()) end))
      print(lt.dist.world_size(), pcall(function() on(2):fit(Net(), loader()) end))
    ]]
    assert.equal(0, status, err)
    assert.matches("^false\trank 1: [^\n]*script.lua:%d+: boom\n1\tfalse\t[^\n]*fit: 2 ranks on "
      .. "fake: this process has used fake already", out)
  end)

  it("cannot be where the device was used before", function()
    local status, _, err = run [[
      local x = lt.ones(2):to("fake")
      on(2):fit(Net(), loader())
    ]]
    assert.equal(1, status)
    assert.matches("fit: 2 ranks on fake: this process has used fake already, and its children "
      .. "cannot: leave tensors and modules on the cpu before the first loop, the Trainer moves "
      .. "them; or run the script with mpirun %-n 2", err)
  end)

  it("are refused the device where lt.dist.launch forks a process that has used it", function()
    local status, _, err = run [[
      local x = lt.ones(2):to("fake")
      lt.dist.launch(2, function(rank)
        x = rank == 1 and lt.ones(2):to("fake")
        lt.dist.barrier()
      end)
    ]]
    assert.equal(1, status)
    assert.matches("rank 1: script.lua:3: transfer: fake cannot be used here: the process that "
      .. "this one was forked from had used it", err)
  end)

  it("leave one rank alone as it is", function()
    local status, out, err = run [[
      local x = lt.ones(2):to("fake")
      local net = Net()
      on(1):fit(net, loader())
      on(1):fit(net, loader())
      print(net.device, lt.dist.world_size())
    ]]
    assert.equal(0, status, err)
    assert.equal("fake:0\t1\n", out)
  end)

  it("cannot be in a prompt", function()
    local status, out, err = run("return on(2):fit(Net(), loader())",
      { "-i", "-e", "xpcall(dofile, print, 'script.lua')" })
    assert.equal(0, status, err)
    assert.matches("fit: 2 ranks on fake continue the script after it, and this one does not end",
      out)
  end)

  it("continue with a text of -e, and with `ltrain FILE`", function()
    local status, out, err = run("on(2):fit(Net(), loader()) print 'after'",
      { "-e", "dofile 'script.lua'" })
    assert.equal(0, status, err)
    assert.equal("after\n", out)
    status, out, err = run("on(2):fit(Net(), loader()) print 'after'", { "script.lua" })
    assert.equal(0, status, err)
    assert.equal("after\n", out)
  end)

  for _, victim in ipairs { 0, 1 } do
    it(("leave nobody behind when rank %d is killed after fit"):format(victim), function()
      local one <close> = job.start(BEGINNING .. [[
        on(2):fit(Net(), loader())
        pid(lt.dist.rank())
        busy(30)
      ]], { env = "LT_FAKE_FORKS=0" })
      assert.truthy(one:wait_for "pid.0")
      assert.truthy(one:wait_for "pid.1")
      job.signal("KILL", one:pid(victim))
      assert.truthy(one:wait_gone(5))
    end)
  end
end)
