-- spec/dist/mpi_spec.lua: ranks that mpirun started: the same collectives, the same tables when
-- they disagree. Skipped where this build has no MPI.
-- tags: slow, waits
local support = require "spec.dist.support"

local missing = require "ltrain.clusters.mpirun".missing()

-- Runs a script on n ranks; returns the exit status, what was printed, the folder.
local function mpirun(n, code)
  return support.mpirun(n, "local rank = dist.rank() " .. code, "run")
end

local function passes(n, code)
  local status, output = mpirun(n, code)
  assert.equal(0, status, output)
  return output
end

-- Every rank calls what its own line says; all get `wanted`, a pattern, once on stderr and in
-- a file each.
local function disagrees(n, calls, wanted)
  local status, output, folder = mpirun(n, ([[
local calls = {%s}
pcall(calls[rank + 1])
while true do pcall(dist.barrier) end
]]):format(calls))
  assert.equal(1, status, output)
  assert.matches(wanted, output)
  local _, times = output:gsub("ranks disagree", "")
  assert.equal(1, times, output)
  assert.is_nil(output:find("MPI_", 1, true), output)
  for rank = 0, n - 1 do
    local pipe <close> = assert(io.popen(("cat '%s'/ltrain_failure_*/failure.rank%d.txt")
      :format(folder, rank)))
    assert.matches(wanted, pipe:read "a", nil, nil, output)
  end
end

describe("ranks under mpirun", function()
  local function needs_mpi()
    if missing then pending(missing) end
  end

  it("are one world", function()
    needs_mpi()
    local output = passes(3, [[
      local world = dist.world()
      same({"mpi", rank, 3, rank, 3, false},
        {world.backend, world.rank, world.ranks, world.local_rank, world.local_ranks, world.forked})
      same({0, 1, 2}, dist.all_gather(rank))
      io.write("rank " .. rank .. " is here\n")
    ]])
    for rank = 0, 2 do assert.matches(("rank %d is here\n"):format(rank), output) end
  end)

  it("reduce every dtype by every operation", function()
    needs_mpi()
    passes(3, support.every_reduction .. [[
      local large = lt.full({300001}, rank + 1.0)
      same(6.0, dist.all_reduce(large):min():item())
    ]])
  end)

  it("leave the core to others while they wait for one of them", function()
    needs_mpi()
    passes(2, [[
      dist.barrier()
      local before = os.clock()
      if rank == 1 then os.execute "sleep 1" end
      dist.barrier()
      local took = os.clock() - before -- of the processor
      assert(rank == 1 or took < 0.5, took)
    ]])
  end)

  it("do several things at once, and in groups", function()
    needs_mpi()
    passes(4, [[
      local works = {}
      for k = 1, 20 do
        works[k] = dist.all_reduce(lt.full({k * 100}, rank + k + 0.0), {async = true})
      end
      for k = 20, 1, -1 do same(6 + 4.0 * k, works[k]:wait()[1]:item()) end
      local group = dist.split(rank % 2, {key = -rank})
      same(rank % 2 == 0 and {2, 0} or {3, 1}, group:all_gather(rank))
      local sum = group:all_reduce(lt.tensor{rank + 0.0}, {async = true})
      same(6, dist.all_reduce(rank))
      same(lt.tensor{rank % 2 == 0 and 2.0 or 4.0}, sum:wait())
      local pair = dist.split(rank < 2 and 0 or -1)
      if pair then same(2, pair:all_reduce(1)) else same(true, rank >= 2) end
    ]])
  end)

  local OF = " [^;]*"
  for _, case in ipairs {
    { "of sizes", "function() dist.all_reduce(lt.zeros(8)) end, "
      .. "function() dist.all_reduce(lt.zeros(16)) end",
      "rank 0: all_reduce" .. OF .. "%[8%] f32" .. OF .. "; rank 1: all_reduce" .. OF
      .. "%[16%] f32" },
    { "of calls", "function() dist.all_reduce(lt.zeros(8)) end, "
      .. "function() dist.broadcast(lt.zeros(8)) end",
      "rank 0: all_reduce" .. OF .. "; rank 1: broadcast" },
    { "of dtypes", "function() dist.all_gather(lt.zeros(8)) end, "
      .. "function() dist.all_gather(lt.zeros(8, {dtype = 'f64'})) end",
      "rank 0: all_gather" .. OF .. "f32" .. OF .. "; rank 1: all_gather" .. OF .. "f64" },
    { "when one is skipped",
      "function() for k = 1, 3 do dist.all_reduce(lt.zeros(k)) end end, "
      .. "function() for k = 1, 3, 2 do dist.all_reduce(lt.zeros(k)) end end",
      "collective 2: rank 0: all_reduce" .. OF .. "%[2%] f32" .. OF .. "; rank 1: all_reduce"
      .. OF .. "%[3%] f32" },
  } do
    it("report how they disagree, all of them: " .. case[1], function()
      needs_mpi()
      disagrees(2, case[2], case[3])
    end)
  end

  it("add in the tree where the Trainer is deterministic, few bytes and many", function()
    needs_mpi()
    passes(4, [[
      local Net = lt.Module:extend "Net"
      function Net:init() self.layer = lt.nn.Linear(1, 1) end
      function Net:training_step(batch)
        -- One after the other these make 1, in the tree (1e8 + 1) + (-1e8 + 1) = 0.
        local part = ({1e8, 1.0, -1e8, 1.0})[rank + 1]
        for _, n in ipairs{1, 5, 8192, 8193, 300001} do
          local sum = dist.all_reduce(lt.full({n}, part))
          same({0.0, 0.0}, {sum:min():item(), sum:max():item()})
        end
        dist.barrier()
        return self.layer(batch[1]):mean()
      end
      function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      lt.Trainer{deterministic = true, max_steps = 1, logger = false, enable_progress_bar = false,
        enable_checkpointing = false, enable_model_summary = false}:fit(Net(),
        lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 1)), {batch_size = 2}))
    ]])
  end)

  it("end when one leaves while another waits for it", function()
    needs_mpi()
    local status, output = mpirun(2, "if rank == 0 then dist.all_gather(lt.zeros(2)) end")
    assert.equal(1, status, output)
    assert.matches("rank 0: all_gather" .. OF .. "%[2%] f32" .. OF .. "; rank 1: left", output)
  end)
end)
