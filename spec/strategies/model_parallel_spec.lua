-- spec/strategies/model_parallel_spec.lua: ModelParallelStrategy: the mesh of a run.
-- tags: slow
local lt = require "ltrain"
local scripts = require("spec.dist.trained").with [[
  local Net = lt.Module:extend("Net")
  function Net:init()
    self.a, self.b = lt.nn.Linear(4, 8), lt.nn.Linear(8, 1)
    self:to "f64"
  end
  function Net:training_step(batch)
    return (self.b(self.a(batch[1]):tanh()) - 1):square():mean()
  end
  function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
  local function fit(strategy, batch_size, class)
    lt.seed(3)
    local x = lt.randn(16, 4):to "f64"
    local net, t = (class or Net)(), trainer {max_epochs = 2, strategy = strategy,
      gradient_clip_val = 0.1}
    t:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x), {batch_size = batch_size}))
    return net
  end
  local MP = lt.strategies.ModelParallelStrategy
]]
local error_of = require("spec.trainer.tiny").error_of

local function sizes(o, ranks, machines)
  local found = lt.strategies.ModelParallelStrategy(o):mesh_sizes(ranks, machines or 1)
  return ("%d %d %d"):format(found.data_parallel, found.context_parallel, found.tensor_parallel)
end

describe("sizes of ModelParallelStrategy", function()
  it("are the ranks of a machine for tensors, and machines for samples, by default", function()
    assert.equal("1 1 4", sizes({}, 4))
    assert.equal("2 1 4", sizes({}, 8, 2))
    assert.equal("2 2 2", sizes({ context_parallel_size = 2 }, 8, 2))
  end)

  it("are what the other leaves", function()
    assert.equal("2 1 2", sizes({ data_parallel_size = 2 }, 4))
    assert.equal("4 1 2", sizes({ tensor_parallel_size = 2 }, 8))
    assert.equal("1 2 2", sizes({ tensor_parallel_size = 2, context_parallel_size = 2 }, 4))
  end)

  it("are 1 on one rank", function()
    assert.equal("1 1 1", sizes({ tensor_parallel_size = 2 }, 1))
  end)

  it("must multiply to the number of ranks", function()
    assert.matches("data_parallel_size = 3, context_parallel_size = 1, tensor_parallel_size = 2: "
      .. "these are 6 ranks: there are 4",
      error_of(sizes, { data_parallel_size = 3, tensor_parallel_size = 2 }, 4))
    assert.matches("tensor_parallel_size = 'auto' is not a whole number of ranks: there are 4",
      error_of(sizes, { data_parallel_size = 3 }, 4))
    assert.matches("strategies.ModelParallelStrategy: data_parallel_size must be a number of ranks "
      .. "or 'auto': got 'all'",
      error_of(lt.strategies.ModelParallelStrategy, { data_parallel_size = "all" }))
  end)
end)

describe("ModelParallelStrategy", function()
  it("trains a module that no plan divides as ddp does", function()
    assert.equal("0.0 0.0\n", (scripts.output(4, [[
      local one = fit(MP {data_parallel_size = 2}, 4)
      n = 2
      local wanted = fit("ddp", 4)
      print((one.a.weight - wanted.a.weight):abs():max():item() .. " "
        .. (one.b.bias - wanted.b.bias):abs():max():item())
    ]])))
  end)

  it("gives the module its mesh in configure_model", function()
    assert.equal("mesh(data_parallel = 2, context_parallel = 1, tensor_parallel = 1)\tnil\n",
      (scripts.output(2, [[
      local Mine, seen = Net:extend("Mine"), nil
      function Mine:configure_model() seen = tostring(self.device_mesh) end
      local net = fit({"model_parallel", tensor_parallel_size = 1}, 4, Mine)
      print(seen, net.device_mesh)
    ]])))
  end)
end)
