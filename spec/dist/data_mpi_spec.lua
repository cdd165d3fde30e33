-- spec/dist/data_mpi_spec.lua: data, predictions and going on, in ranks that mpirun started.
local logged = require "spec.dist.logged"
local why <const> = require "ltrain.clusters.mpirun".missing()

local function test(name, fn)
  if why then pending(name .. " (" .. why .. ")") else it(name, fn) end
end

local NET <const> = [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.layer, self.seen = lt.nn.Linear(1, 1):to "f64", {}
end
function Net:training_step(batch)
  for _, i in ipairs(batch[1]:tolist()) do table.insert(self.seen, i) end
  return (self.layer(batch[1]:to("f64"):reshape {-1, 1}) * 0.1 - 1):pow(2):mean()
end
function Net:predict_step(batch, index) return {index, batch[1] * 2} end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.001}) end
local function all_seen(net)
  local all = {}
  for _, seen in ipairs(lt.dist.all_gather(net.seen)) do
    table.move(seen, 1, #seen, #all + 1, all)
  end
  table.sort(all)
  return table.concat(all, " ")
end
local function batches(size)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.arange(11)),
    {global_batch_size = size, shuffle = true, seed = 2})
end
]]

describe("ranks of mpirun", function()
  test("give rank 0 the table of predictions that one process gives", function()
    local script <const> = NET .. [[
      for _, size in ipairs {2, 3, 11} do
        local list = trainer():predict(Net(), lt.data.DataLoader(
          lt.data.TensorDataset(lt.arange(11)), {batch_size = size}))
        for _, p in ipairs(list) do print(p[1], table.concat(p[2]:tolist(), " ")) end
      end
    ]]
    assert.equal(logged.output(1, script), (logged.over_mpi(2, script)))
  end)

  test("go on where other ranks have stopped, each sample once", function()
    local script <const> = NET .. [[
      local net = Net()
      local t = trainer {max_steps = 1}
      t:fit(net, batches(4))
      t:save_checkpoint "first.ckpt"
      lt.dist.barrier()
      local first = all_seen(net)
      net = Net()
      t = trainer()
      t:fit(net, batches(4), {ckpt_path = "first.ckpt"})
      local rest = all_seen(net)
      local lists = {}
      for _, text in ipairs {first, rest} do
        for i in text:gmatch "%d+" do lists[#lists + 1] = math.tointeger(tonumber(i)) end
      end
      table.sort(lists)
      say(table.concat(lists, " "))
      say(("%.10f %d"):format(net.layer.weight:item(), t.global_step))
    ]]
    local out = logged.output(1, script)
    assert.matches("^0 1 2 3 4 5 6 7 8 9 10\n", out)
    assert.equal(out, (logged.over_mpi(2, script)))
  end)

  test("say that their orders differ, and end", function()
    local script <const> = NET .. [[
      local ok, text = pcall(function()
        trainer():fit(Net(), lt.data.DataLoader(lt.data.TensorDataset(lt.arange(4)),
          {sampler = function() return {1 + rank(), 2, 3, 4} end}))
      end)
      say(ok, text:match "the ranks would read different orders: .-: the sampler")
    ]]
    assert.equal("false\tthe ranks would read different orders: rank 0 has 4 samples beginning "
      .. "1, 2, 3; rank 1 has 4 samples beginning 2, 2, 3: the sampler\n",
      (logged.over_mpi(2, script)))
  end)
end)
