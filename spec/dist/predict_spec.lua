-- spec/dist/predict_spec.lua: predictions on several ranks are those of one process, in its order.
-- tags: sampled, slow
local over = require "spec.dist.over"
local trained = require "spec.dist.trained"

-- A net whose predictions draw random numbers, and numbers 1..D as data.
local scripts <const> = trained.with [[
lt.seed(5)
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(1, 3) end
function Net:predict_step(batch, index, loader_idx)
  local y = self.layer(batch[1]:reshape {-1, 1}) + lt.rand(3, {device = self.device})
  return {y = y, index = index, loader = loader_idx, ids = batch[1]}
end
local function numbers(count) return lt.data.TensorDataset(lt.arange(count):to("f32") + 1) end
local function loader(count, batch_size)
  return lt.data.DataLoader(numbers(count), {batch_size = batch_size or 1})
end
-- Indices and sizes of a list, and a number of all its bits.
local function show(list)
  local lines, hash = {}, 0
  for i, p in ipairs(list) do
    local bits = {}
    for k, value in ipairs(p.y:reshape {-1}:tolist()) do bits[k] = ("%a"):format(value) end
    for _, byte in ipairs {table.concat(bits, " "):byte(1, -1)} do hash = hash * 31 + byte end
    lines[i] = ("%d:%d:%s"):format(p.index, p.loader, p.y.shape[1])
  end
  return table.concat(lines, " ") .. (" %x"):format(hash)
end
]]

local start <const>, same_on_all <const> = scripts.run, scripts.same

describe("predict on 1, 2 and 4 ranks", function()
  local TABLES <const> = [[
    local t, net = trainer {}, Net()
    for _, count in ipairs {1, 2, 3, 4, 5, 13, 70} do
      for _, batch_size in ipairs {1, 3} do
        print(count, batch_size, show(t:predict(net, loader(count, batch_size))))
      end
    end
  ]]

  it("gives the same table for any number of samples, bit for bit", function()
    same_on_all(TABLES)
  end)

  over({ "mpi", "two hosts" }, "gives the same table", function(way)
    assert.equal(scripts.output(1, TABLES), (scripts.over(way, 4, TABLES)))
  end)

  it("gives a list a loader, of batches up to the limit", function()
    same_on_all [[
      local t = trainer {limit_predict_batches = 3}
      local lists = t:predict(Net(), {loader(13, 2), loader(3, 2), {{lt.ones(2)}, {lt.ones(1)}}})
      for _, list in ipairs(lists) do print(show(list)) end
    ]]
  end)

  it("deals what every rank reads: tables, functions, samples one after the other", function()
    same_on_all [[
      local t, net = trainer {}, Net()
      print(show(t:predict(net, {{lt.ones(2)}, {lt.ones(1)}, {lt.zeros(3)}})))
      print(show(t:predict(net, function()
        local i = 0
        return function()
          i = i + 1
          if i < 8 then return {lt.ones(i)} end
        end
      end)))
      local stream = lt.data.DataLoader(function() return ipairs {1.0, 2.0, 3.0} end)
      function net:predict_step(x, index) return {y = x[2], index = index, loader = 0} end
      print(show(t:predict(net, stream)))
    ]]
  end)

  it("has the same draws in what is read: samples, batches, functions", function()
    same_on_all [[
      local t, net = trainer {}, Net()
      local Noisy = lt.data.Dataset:extend("Noisy")
      function Noisy:__len() return 7 end
      function Noisy:get() return {lt.rand(1)} end
      print(show(t:predict(net, lt.data.DataLoader(Noisy(), {batch_size = 2}))))
      print(show(t:predict(net, lt.data.DataLoader(numbers(7), {batch_size = 2,
        collate = function(list) return {lt.rand(#list)} end}))))
      print(show(t:predict(net, function()
        local i = 0
        return function()
          i = i + 1
          if i < 8 then return {lt.rand(i)} end
        end
      end)))
    ]]
  end)

  it("takes the samples of a data set that shards itself in turns", function()
    same_on_all [[
      local Count = lt.data.IterableDataset:extend("Count")
      function Count:shard(rank, world) self.rank, self.world = rank, world end
      function Count:iterate()
        local i = (self.rank or 0) - (self.world or 1)
        return function()
          i = i + (self.world or 1)
          if i < 70 then return {i + 0.5} end
        end
      end
      print(show(trainer {}:predict(Net(), lt.data.DataLoader(Count()))))
    ]]
  end)

  it("leaves out batches for which predict_step returns nothing", function()
    same_on_all [[
      local net, step = Net(), Net.predict_step
      function net:predict_step(batch, index, loader_idx)
        if index % 3 ~= 1 then return step(self, batch, index, loader_idx) end
      end
      print(show(trainer {}:predict(net, loader(10))))
    ]]
  end)
end)

describe("predictions of ranks", function()
  it("are on rank 0, each batch predicted once", function()
    local status, out, err = start(2, [[
      local dist = lt.dist
      dist.launch(2, function(rank)
        local net, seen = Net(), {}
        function net:on_predict_batch_end(outputs) seen[#seen + 1] = outputs.index end
        local list = trainer {}:predict(net, loader(5))
        local all = dist.all_gather {#list, table.concat(seen, " ")}
        if rank == 0 then print(all[1][1], all[1][2], all[2][1], all[2][2]) end
      end)
    ]])
    assert.equal(0, status, err)
    assert.equal("5\t0 2 4\t0\t1 3\n", out)
  end)

  it("do not travel with return_predictions = false", function()
    local status, out, err = start(2, [[
      local net = Net()
      function net:predict_step() return print end
      print(trainer {}:predict(net, loader(5), {return_predictions = false}))
    ]])
    assert.equal(0, status, err)
    assert.equal("nil\n", out)
  end)

  it("may have positions and names in one table", function()
    same_on_all [[
      local net = Net()
      function net:predict_step(batch) return {batch[1]:sum(), {2, n = batch[1]}, name = "x"} end
      for _, p in ipairs(trainer {}:predict(net, loader(5, 2))) do
        print(p[1]:item(), p[1].device, p[2][1], p[2].n:sum():item(), p.name)
      end
    ]]
  end)

  it("must be data", function()
    local status, _, err = start(2, [[
      local net = Net()
      function net:predict_step() return print end
      trainer {}:predict(net, loader(5))
    ]])
    assert.equal(1, status)
    assert.matches("script.lua:%d+: predict: predict_step's result %(batch 1%) is a function", err)
    status, _, err = start(2, [[
      local net = Net()
      function net:predict_step() return {scores = lt.ones(2), boxes = {{1, size = print}}} end
      trainer {}:predict(net, loader(5))
    ]])
    assert.equal(1, status)
    assert.matches("predict: predict_step's result (batch 1).boxes[1].size is a function: only "
      .. "nil, booleans, numbers, strings, tensors and plain tables", err, 1, true)
  end)
end)
