-- spec/dist/joined_spec.lua: lt.dist in ranks that mpirun started.
-- tags: half, slow
local support = require "spec.dist.support"

local mpirun = support.mpirun
local why <const> = require "ltrain.clusters.mpirun".missing()

local function test(name, fn)
  if why then pending(name .. " (" .. why .. ")") else it(name, fn) end
end

describe("ranks of mpirun", function()
  test("run what is launched, and all have rank 0's results", function()
    local status, output = mpirun(2, [[
      local a, b, c = lt.dist.launch(2, function(rank)
        local w = lt.tensor({1.0 + rank}, {requires_grad = true})
        lt.dist.all_gather(w * 2, {cat = true}):pow(2):sum():backward()
        return rank, lt.dist.all_reduce(rank + 1), lt.dist.all_gather(w.grad:item())
      end)
      print(("%d %d %g %g"):format(a, b, c[1], c[2]))
    ]])
    assert.equal(0, status, output)
    assert.equal("0 3 16 32\n0 3 16 32\n", output)
  end)

  test("say when a launch asks for another number", function()
    local status, output = mpirun(2, [[ lt.dist.launch(3, print) ]], "run")
    assert.equal(1, status, output)
    assert.matches("rank %d: script.lua:1: dist.launch: requested 3 ranks in a world of 2", output)
  end)

  test("may end by os.exit(0) when all do, and by nothing else", function()
    local clean, silence = mpirun(2, "lt.dist.barrier() os.exit(0)")
    assert.equal(0, clean)
    assert.equal("", silence)
    for _, case in ipairs {
      {0, 0, "ranks disagree at collective %d+: rank 0: left the script at script.lua:1; rank 1: "
        .. "barrier at script.lua:2\n"},
      {1, 0, "rank 1: left the script at script.lua:1\n"},
      {0, 3, "ltrain: rank 0: script.lua:1: os.exit%(3%) was called in a rank\n"},
      {1, 3, "ltrain: rank 1: script.lua:1: os.exit%(3%) was called in a rank\n"},
    } do
      local status, output = mpirun(2, ([[if lt.dist.rank() == %d then os.exit(%d) end
        lt.dist.barrier()]]):format(case[1], case[2]))
      assert.equal(1, status, output)
      assert.matches(case[3], output)
      assert.equal(1, select(2, output:gsub("ltrain: ", "")))
    end
  end)

  test("wait as long as a launch says, and then as before", function()
    local status, output = mpirun(2, [[
      local before = lt.dist.world().timeout
      lt.dist.launch(2, function() assert(lt.dist.world().timeout == 3) end, {timeout = 3})
      assert(lt.dist.world().timeout == before)
      lt.dist.launch(2, function(rank)
        if rank == 1 then os.execute "sleep 30" end
        lt.dist.barrier()
      end, {timeout = 3})
    ]])
    assert.equal(1, status, output)
    assert.matches("rank 1 is late: rank 0 has waited 3 s", output, 1, true)
  end)

  test("report an error once, and end", function()
    for _, word in ipairs{ "", "run" } do
      local status, output = mpirun(2, [[
        if lt.dist.rank() == 1 then error "boom" end
        lt.dist.barrier()
      ]], word)
      assert.equal(1, status, output)
      assert.equal("ltrain: rank 1: script.lua:1: boom\n", output)
    end
  end)

  test("report what is in a table that was raised", function()
    for rank = 0, 1 do
      for _, word in ipairs{ "", "run" } do
        local status, output = mpirun(2, ([[
          if lt.dist.rank() == %d then error {code = 3} end
          lt.dist.barrier()
        ]]):format(rank), word)
        assert.equal(1, status, output)
        assert.equal(("ltrain: rank %d: script.lua:1: "):format(rank)
          .. "(error object is a table value: {code = 3})\n", output)
      end
    end
  end)

  test("of one machine are heard by rank 0 on its loopback alone", function()
    local status, output = mpirun(2, [[
      local sockets, heard = {}, {}
      local all <close> = io.popen(("ls -l /proc/%d/fd"):format(require "ltrain.c".runtime.pid()))
      for line in all:lines() do sockets[line:match "socket:%[(%d+)%]" or 0] = true end
      for _, name in ipairs {"tcp", "tcp6"} do
        for line in io.lines("/proc/self/net/" .. name) do
          local address, inode =
            line:match "^%s*%d+: (%x+):%x+ %S+ 0A %S+ %S+ %S+%s+%d+%s+%d+ (%d+)"
          if sockets[inode] then heard[#heard + 1] = address end
        end
      end
      table.sort(heard)
      local lists = lt.dist.gather(table.concat(heard, " "))
      if lists then print(table.concat(lists, "\n")) end
    ]], "run")
    assert.equal(0, status, output)
    local first, second = output:match "^([^\n]*)\n([^\n]*)\n$"
    -- Beside Open MPI's own, which all have.
    assert.equal(tostring(second) .. " 0100007F", first, output)
  end)

  test("draw the same numbers when nobody gives a seed, and others in the next job", function()
    local seen = {}
    for job = 1, 2 do
      local status, output = mpirun(2, [[
        local own = ("%.17g %.17g"):format(lt.rand(1):item(), math.random())
        local all = lt.dist.all_gather(own)
        assert(all[1] == all[2], all[1] .. " and " .. all[2])
        if lt.dist.rank() == 0 then print(own) end
      ]], job == 1 and "run" or "")
      assert.equal(0, status, output)
      seen[job] = output
    end
    assert.not_equal(seen[1], seen[2])
  end)

  test("keep the seed that each was given", function()
    local status, output = mpirun(2, [[
      assert(require "ltrain.c".runtime.rng_get().seed == 7)
    ]], "run --seed 7")
    assert.equal(0, status, output)
  end)

  test("write into one folder: the one that rank 0 chose", function()
    local status, output, folder = mpirun(2, [[
      local Net = lt.Module:extend "Net"
      function Net:init() self.layer = lt.nn.Linear(3, 1) end
      function Net:training_step(batch) return self.layer(batch[1]):mean() end
      function Net:validation_step(batch)
        if lt.dist.rank() == 1 and self.fails then error "boom" end
      end
      function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 3)), {batch_size = 2})
      local trainer = lt.Trainer {max_epochs = 1, enable_progress_bar = false,
        enable_model_summary = false}
      -- Rank 1 looks when rank 0's folder is there.
      if lt.dist.rank() == 0 then os.execute("mkdir -p " .. trainer.log_dir) end
      lt.dist.barrier()
      if lt.dist.rank() == 1 then assert(trainer.log_dir:find "version_1") end
      local net = Net()
      trainer:fit(net, data, data)
      local seen = lt.dist.all_gather(trainer.log_dir .. " " .. trainer:checkpoint_folder())
      assert(seen[1] == seen[2], seen[2])
      net.fails = true
      trainer:validate(net, data)
    ]])
    assert.equal(1, status, output)
    assert.matches("boom", output, 1, true)
    local pipe <close> = assert(io.popen(("cd '%s' && ls -d ltrain_logs/version_* ltrain_fail* "
      .. "2>/dev/null; ls ltrain_logs/version_0/failure*"):format(folder)))
    assert.equal("ltrain_logs/version_0\nltrain_logs/version_0/failure.rank0.txt\n"
      .. "ltrain_logs/version_0/failure.rank1.txt\n", pipe:read "a", output)
  end)
end)
