-- spec/dist/fit_spec.lua: a Trainer with devices = N forks its ranks where fit begins.
-- tags: slow
local trained = require "spec.dist.trained"

-- A net on four features, a loader of 16 batches; what a script of this spec begins with.
local scripts <const> = trained.with [[
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(4, 1) end
function Net:training_step(batch, i)
  if self.at then self.at(i) end
  return self.layer(batch[1]):mean()
end
Net.validation_step = Net.training_step
Net.test_step = Net.training_step
function Net:predict_step(batch) return self.layer(batch[1]) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local function loader(n)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.ones(n or 64, 4)), {batch_size = 4})
end
]]

local function run(script) return scripts.run(nil, script) end

describe("Trainer{devices = 2}", function()
  it("runs the loop in two processes, and continues in the script's own", function()
    local status, out, err = run [[
      lt.seed(1)
      local net, seen = Net(), 0
      local pid = lt.dist.world().pid
      function net.at() seen = seen + lt.dist.all_reduce(1) end
      local t = trainer {devices = 2}
      t:fit(net, loader())
      print(seen, t.global_step, t.world_size, lt.dist.world_size())
      print(pid == lt.dist.world().pid, t.world.ranks, t.world.backend, t.world.global_batch)
    ]]
    assert.equal(0, status, err)
    assert.equal("16\t8\t2\t1\ntrue\t2\tshm\t8\n", out)
    assert.matches("2 ranks on 1 host over shm, %d+ threads? each, sums in .*, "
      .. "global batch 8 = 2 x 4", err)
    assert.matches("waiting for other ranks: rank 0 [%d.]+ s, rank 1 [%d.]+ s", err)
  end)

  it("does the same in validate, test and predict", function()
    local status, out, err = run [[
      lt.seed(1)
      local net, sizes = Net(), {}
      function net.at() sizes[lt.dist.world_size()] = true end
      local t = trainer {devices = 2}
      t:validate(net, loader(8), {verbose = false})
      t:test(net, loader(8), {verbose = false})
      local outputs = t:predict(net, loader(8))
      print(sizes[2], sizes[1], #outputs, outputs[1].shape[1])
    ]]
    assert.equal(0, status, err)
    assert.equal("true\tnil\t2\t4\n", out)
  end)

  it("takes closures, upvalues and what the script built into the ranks", function()
    local status, out, err = run [[
      local function outer()
        local secret = {value = 41}
        local function inner()
          local net = Net()
          local sum
          function net.at() sum = lt.dist.all_reduce(secret.value + lt.dist.rank()) end
          trainer({devices = 2, max_steps = 2}):fit(net, loader())
          return sum
        end
        return inner()
      end
      print(outer())
    ]]
    assert.equal(0, status, err)
    assert.equal("83\n", out)
  end)

  it("raises the error of a rank once, and can fit again", function()
    local status, out, err = run [[
      lt.seed(1)
      local net = Net()
      function net.at(i)
        if lt.dist.rank() == 1 and i == 3 then error "boom" end
        lt.dist.barrier()
      end
      local ok, message = pcall(function() trainer({devices = 2}):fit(net, loader()) end)
      print(ok, message)
      net.at = nil
      local again = trainer {devices = 2}
      again:fit(net, loader())
      print(again.global_step)
    ]]
    assert.equal(0, status, err)
    assert.matches("^false\trank 1: [^\n]*script.lua:%d+: boom\n8\n$", out)
    assert.not_matches("boom", err)
  end)

  it("reports what is in a table that a rank raised", function()
    local script <const> = [[
      local net = Net()
      function net.at(i)
        if lt.dist.rank() == %d and i == 3 then error {code = 3, why = "no luck"} end
        lt.dist.barrier()
      end
      local ok, value = pcall(function() trainer({devices = 2}):fit(net, loader()) end)
      print(type(value), type(value) == "table" and value.code)
      error(value, 0)
    ]]
    local text <const> = "(error object is a table value: {code = 3, why = 'no luck'})"
    local status, out, err = run(script:format(1))
    assert.equal(1, status)
    assert.equal("string\tfalse\n", out)
    assert.matches("ltrain: rank 1: [^\n]*script.lua:%d+: ", err)
    assert.matches(text, err, 1, true)
    status, out, err = run(script:format(0))
    assert.equal(1, status)
    assert.equal("table\t3\n", out)
    assert.matches("ltrain: script.lua:%d+: " .. text:gsub("%p", "%%%0"), err)
  end)

  it("is in no hook any more when it has failed", function()
    local status, out, err = run [[
      local net = Net()
      function net:on_train_start() error "boom" end
      pcall(function() trainer({devices = 2}):fit(net, loader()) end)
      print(select(2, pcall(lt.dist.launch, 2, function(rank)
        if rank == 0 then lt.dist.barrier() end
      end)))
    ]]
    assert.equal(0, status, err)
    assert.matches("rank 0: barrier at script.lua:%d+; rank 1: left lt.dist.launch", out)
  end)

  it("lets on_exception run in the rank that raised and in the others", function()
    local status, out, err = run [[
      local net = Net()
      function net.at(i)
        if lt.dist.rank() == 1 and i == 3 then error "boom" end
        lt.dist.barrier()
      end
      local watch = lt.Callback:extend("Watch")
      watch.all_ranks = true
      function watch:on_exception(_, _, err)
        for _ = 1, 100 do io.write("") end
        io.write(("rank %d: %s\n"):format(lt.dist.rank(), tostring(err):match("boom")))
      end
      pcall(function() trainer({devices = 2, callbacks = {watch()}}):fit(net, loader()) end)
    ]]
    assert.equal(0, status, err)
    assert.matches("rank 0: boom", out)
    assert.matches("rank 1: boom", out)
  end)

  it("names the hook and line of a rank that left out a collective", function()
    local status, _, err = run [[
      local net = Net()
      function net.at() if lt.dist.rank() == 0 then lt.dist.all_gather(lt.ones(8, 10)) end end
      trainer({devices = 2, max_steps = 1}):fit(net, loader())
    ]]
    assert.equal(1, status)
    assert.matches("ranks disagree at collective %d+: rank 0: all_gather %[8, 10%] f32 at "
      .. "[^;]*script.lua:%d+ %(training_step%); rank 1: all_reduce .* %(gradients%)", err)
  end)

  it("names every hook whole, the longest one too", function()
    local longest = ""
    for _, row in ipairs(require "ltrain.core.hooks".rows) do
      if #row.name > #longest then longest = row.name end
    end
    local status, _, err = run(([[
      local net = Net()
      function net:on_train_start()
        require "ltrain.c".dist.set_hook "%s"
        if lt.dist.rank() == 0 then lt.dist.barrier() end
      end
      trainer({devices = 2, max_steps = 1}):fit(net, loader())
    ]]):format(longest))
    assert.equal(1, status)
    assert.matches("rank 0: barrier at [^;]*script.lua:%d+ %(" .. longest .. "%)", err)
  end)

  it("writes files and messages from rank 0 alone", function()
    local status, out, err = run [[
      lt.seed(1)
      local net = Net()
      local t = trainer {devices = 2, logger = true, log_every_n_steps = 1}
      function net.training_step(self, batch)
        local loss = self.layer(batch[1]):mean()
        self:log("loss", loss)
        return loss
      end
      t:fit(net, loader())
      t:say "said once"
      t:save_checkpoint "a.ckpt"
    ]]
    assert.equal(0, status, err)
    assert.equal("", out)
    local _, count = err:gsub("2 ranks on 1 host", "")
    assert.equal(1, count)
  end)

  it("prepares data once, before the ranks", function()
    local status, out, err = run [[
      local net = Net()
      function net:prepare_data() print("prepared in a world of", lt.dist.world_size()) end
      trainer({devices = 2, max_steps = 1}):fit(net, loader())
    ]]
    assert.equal(0, status, err)
    assert.equal("prepared in a world of\t1\n", out)
  end)
end)

describe("a Trainer in a world that is there", function()
  it("joins it", function()
    local status, out, err = run [[
      local seen = lt.dist.launch(2, function()
        local net, seen = Net(), 0
        function net.at() seen = seen + lt.dist.all_reduce(1) end
        trainer({max_steps = 4}):fit(net, loader())
        return seen
      end)
      print(seen)
    ]]
    assert.equal(0, status, err)
    assert.equal("8\n", out)
  end)

  it("refuses devices that contradict it, with both numbers", function()
    local status, _, err = run [[
      lt.dist.launch(2, function() trainer {devices = 3} end)
    ]]
    assert.equal(1, status)
    assert.matches("devices = 3 x num_nodes = 1 is 3 ranks, but .* started 2", err)
  end)
end)
