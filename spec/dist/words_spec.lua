-- spec/dist/words_spec.lua: the words of reports of ranks: lines of late ones, bytes of scripts.
-- tags: sampled, slow, third
local over = require "spec.dist.over"
local support = require "spec.dist.support"

describe("a report of ranks", function()
  local ways = { "shm", "mpi", "ucx" }
  over(ways, "names the line of a loop that a late rank is stuck in", function(way)
    local _, output = support.over(way, 2, [[dist.launch(2, function(rank)
      dist.barrier()
      if rank == 1 then
        local x = lt.ones(3)
        while true do end
      end
      dist.all_reduce(1)
    end, {timeout = 2.5})]])
    assert.matches("ltrain: rank 1 is late: rank 0 has waited %d s: rank 0: all_reduce [^;]* at "
      .. "script.lua:7; rank 1: running, last known line script.lua:5\n", output)
  end)

  it("names the hook and the line of a rank that is late in a Trainer", function()
    local _, output = support.run [[local Net = lt.Module:extend("Net")
      function Net:init() self.layer = lt.nn.Linear(2, 1) end
      function Net:training_step(batch)
        local loss = self.layer(batch[1]):sum()
        if lt.dist.rank() == 0 then return loss end
        while true do
          local n = 0
          for i = 1, 10000 do n = n + i end
        end
      end
      function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local data = lt.data.TensorDataset(lt.ones(8, 2))
      lt.Trainer{devices = 2, timeout = 4, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false, max_epochs = 1,
      }:fit(Net(), lt.data.DataLoader(data, {batch_size = 2}))]]
    assert.matches("rank 1: in training_step, last known line script.lua:[6-9]\n", output)
  end)

  it("names the line of a coroutine that a late rank is stuck in, and of rank 0", function()
    local _, output = support.run [[dist.launch(2, function(rank)
      dist.barrier()
      if rank == 0 then
        coroutine.wrap(function()
          while true do end
        end)()
      end
      dist.all_reduce(1)
    end, {timeout = 2})]]
    assert.matches("rank 0 is late: .*rank 0: running, last known line script.lua:5[;\n]", output)
  end)

  it("leaves the script's own hook alone", function()
    local status, output = support.run [[dist.launch(2, function(rank)
      dist.barrier()
      if rank == 1 then
        local start, n = require "ltrain.c".runtime.clock(), 0
        local function count() n = n + 1 end
        debug.sethook(count, "", 1000)
        repeat until require "ltrain.c".runtime.clock() - start > 2.5
        assert(n > 0 and debug.gethook() == count)
        debug.sethook()
      end
      dist.all_reduce(1)
    end, {timeout = 4})
    print "ended"]]
    assert.equal(0, status, output)
  end)

  it("has no line that a script made up", function()
    local output = support.fails [[dist.launch(2, function(rank)
      if rank == 1 then error("one\nltrain: rank 0: two\n\n  three\r\27[2Jfour") end
      dist.barrier()
    end)]]
    assert.truthy(output:find(
      "ltrain: rank 1: script.lua:2: one\n  ltrain: rank 0: two\n  \n  three\\13\\27[2Jfour\n", 1,
      true), output)
  end)

  it("waits for no program that a rank left behind and that writes on and on", function()
    local status, output = support.run [[dist.launch(2, function(rank)
      if rank == 1 then os.execute "timeout 25 yes >&2 & sleep 0.1" end
      dist.barrier()
    end)
    print "ended"]]
    assert.equal(0, status)
    assert.truthy(output:find("ended\n", 1, true))
  end)

  it("joins ranks that do the same", function()
    local output = support.fails [[dist.launch(4, function(rank)
      if rank == 2 then dist.barrier() end
      dist.all_reduce(lt.ones{rank == 2 and 3 or 2})
    end)]]
    assert.truthy(output:find("ranks disagree at collective 1: ranks 0, 1, 3: all_reduce sum [2] "
      .. "f32 at script.lua:3; rank 2: barrier at script.lua:2\n", 1, true), output)
  end)
end)
