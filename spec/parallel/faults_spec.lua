-- spec/parallel/faults_spec.lua: ranks that differ where they must be alike, and meshes that do not
-- fit, end the job with one sentence.
-- tags: slow
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
  local nn, P, dist = lt.nn, lt.parallel, lt.dist
  local Net = lt.Module:extend "Net"
  function Net:init()
    self.blocks = nn.Sequential()
    for _ = 1, 4 do self.blocks:append(nn.Sequential(nn.Linear(6, 6), nn.Tanh())) end
  end
  function Net:training_step(x) return (self.blocks(x) - 1):square():mean() end
  function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
  local function fit(strategy, ranks)
    trainer {strategy = strategy, devices = ranks, max_epochs = 1}:fit(Net(),
      {lt.ones(4, 6), lt.ones(4, 6)})
  end
  -- Ranks that run the script each, as those of a launcher do: `make(rank)` is their strategy.
  local function apart(ranks, make)
    dist.launch(ranks, function(rank) fit(make(rank), ranks) end)
  end
]]

local function fails(words, script)
  local status, _, err = scripts.run(nil, script)
  assert.equal(1, status, err)
  assert.truthy(err:find(words, 1, true), err)
  assert.equal(1, select(2, err:gsub("ltrain: [^\n]*rank", "")), err) -- one sentence
end

-- { who, options of rank 0, of rank 1, what the message says of the first that differs }
local OPTIONS <const> = {
  { "Pipeline", "'pipeline', stages = 4", "'pipeline', stages = 2",
    "rank 0 has stages = 4, rank 1 has stages = 2" },
  { "Pipeline", "'pipeline', stages = 2", "'pipeline', stages = 2, schedule = 'gpipe'",
    "rank 0 has schedule = '1f1b', rank 1 has schedule = 'gpipe'" },
  { "Pipeline", "'pipeline', stages = 2, split = {1}", "'pipeline', stages = 2, split = {2}",
    "rank 0 has split = {1}, rank 1 has split = {2}" },
  { "ModelParallelStrategy", "'model_parallel', tensor_parallel_size = 2",
    "'model_parallel', tensor_parallel_size = 1",
    "rank 0 has tensor_parallel_size = 2, rank 1 has tensor_parallel_size = 1" },
  { "ModelParallelStrategy", "'model_parallel', stage = 1, replicas = 2",
    "'model_parallel', stage = 1", "rank 0 has replicas = 2, rank 1 has replicas = 1" },
  { "FSDPStrategy", "'fsdp', stage = 2", "'fsdp', stage = 3",
    "rank 0 has stage = 2, rank 1 has stage = 3" },
}

describe("ranks with other options of the strategy", function()
  for _, row in ipairs(OPTIONS) do
    local who <const>, first <const>, second <const>, words <const> = table.unpack(row)
    it("are named: " .. words, function()
      fails(("strategies.%s: ranks have different options: %s"):format(who, words),
        ("apart(4, function(rank) return rank == 1 and {%s} or {%s} end)"):format(second, first))
    end)
  end

  it("are named where the strategy is another one", function()
    fails("Trainer: ranks have different strategies: rank 0 has DDP, rank 2 has Pipeline",
      "apart(4, function(rank) return rank == 2 and {'pipeline', stages = 2} or 'ddp' end)")
  end)

  it("may have their own timeouts", function()
    assert.equal("done\n", (scripts.output(nil, [[
      apart(2, function(rank) return {"ddp", timeout = 60 + rank} end)
      print "done"
    ]])))
  end)
end)

describe("meshes that do not fit", function()
  it("are refused where ranks make others", function()
    fails("dist.mesh: ranks have different meshes: rank 0 has mesh(a = 2, b = 2), rank 3 has "
      .. "mesh(a = 4, b = 1)",
      "dist.launch(4, function(rank) dist.mesh(rank == 3 and {4, 1} or {2, 2}, {'a', 'b'}) end)")
    fails("dist.mesh: ranks have different meshes: rank 0 has mesh(a = 1, b = 2), rank 1 has "
      .. "mesh(b = 1, a = 2)",
      "dist.launch(2, function(rank) "
      .. "dist.mesh({1, 2}, rank == 1 and {'b', 'a'} or {'a', 'b'}) end)")
  end)

  it("are refused of another number of ranks", function()
    fails("dist.mesh: 2 x 3 = 6 ranks: there are 4",
      "dist.launch(4, function() dist.mesh({2, 3}, {'a', 'b'}) end)")
  end)
end)

describe("plans that differ among groups of a mesh", function()
  it("are reported by the first part that ranks do not both have", function()
    fails("ranks built different modules: rank 0 has blocks.0.0.bias [6] f32 in 2 parts, rank",
      [[
        function Net:configure_model()
          local first = self.device_mesh:rank "data_parallel" == 0
          lt.parallelize(self.blocks, self.device_mesh, first
            and {["0.0"] = P.ColwiseParallel {output_layouts = P.Replicate()}}
            or {["1.0"] = P.ColwiseParallel {output_layouts = P.Replicate()}})
        end
        fit({"model_parallel", data_parallel_size = 2, tensor_parallel_size = 2}, 4)
      ]])
  end)

  it("are reported where one rank alone divides its module", function()
    fails("deadlock: rank 0 waits for rank 1, rank 1 for rank 0", [[
      function Net:configure_model()
        if dist.rank() == 0 then return end
        lt.parallelize(self.blocks, self.device_mesh, {["0.0"] = P.ColwiseParallel()})
      end
      fit({"model_parallel", tensor_parallel_size = 2}, 2)
    ]])
  end)
end)
