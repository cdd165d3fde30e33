-- spec/cuda/nccl_fit_spec.lua: training on several GPUs, whose bytes NCCL moves.
-- tags: slow, third
local child = require "spec.cli.child"
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
local sha256 = require "ltrain.c".runtime.sha256
lt.seed(3)
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.norm, self.second = lt.nn.Linear(4, 8), lt.nn.BatchNorm2d(8), lt.nn.Linear(8, 2)
end
function Net:forward(x)
  local hidden = self.norm(self.first(x):reshape{-1, 8, 1, 1}):relu()
  return self.second(hidden:reshape{-1, 8})
end
function Net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local x = lt.randn(32, 4)
local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to("i64"))
local function loader()
  return lt.data.DataLoader(data, {global_batch_size = 8, shuffle = true})
end
local function show(net)
  local sums = {}
  for name, p in pairs(net:state_dict()) do sums[#sums + 1] = name .. " " .. sha256 {p:to "cpu"} end
  table.sort(sums)
  print(table.concat(sums, "\n"))
end
]]

describe("ltrain doctor", function()
  local title <const> = "measures two GPUs, and names what moves their memory"
  if (os.getenv "LT_SANITIZE" or ""):find "thread" then
    return pending(title .. " (ThreadSanitizer looks at each of some billion additions)")
  end
  it(title, function()
    local status, out, err = child.shell(
      'program=$(command -v ltrain); PATH=/nowhere CUDA_VISIBLE_DEVICES=0,1 exec "$program" doctor')
    assert.equal(0, status, err)
    assert.matches("\ncomm nccl    yes: 2 GPUs, 64 MB in [%d.]+ ms %([%d.]+ GB/s%)\n", out)
  end)
end)

describe("a fit on GPUs", function()
  it("can require NCCL", function()
    local script <const> = [[
      trainer{max_steps = 1, strategy = lt.strategies.DDP{process_group_backend = "nccl"}}
        :fit(Net(), loader())
      print "done"
    ]]
    assert.equal("done\n", (scripts.output(2, script)))
    local without <const> = os.getenv("LTRAIN_BACKENDS"):gsub("/backends$", "/without_nccl")
    local status, _, err = scripts.run(2, script, { LTRAIN_BACKENDS = without })
    assert.equal(1, status)
    assert.matches("strategies.DDP: process_group_backend = 'nccl', but [^\n]+", err)
  end)

  it("resumes on another number of them with the same bits", function()
    local folder = child.folder()
    local wanted = scripts.output(1, [[
      local net = Net()
      trainer{max_steps = 6, max_epochs = 2, deterministic = "world"}:fit(net, loader())
      show(net)
    ]])
    scripts.output(2, ([[
      local t = trainer{max_steps = 3, deterministic = "world"}
      t:fit(Net(), loader())
      t:save_checkpoint("%s/part.ckpt")
    ]]):format(folder))
    local resumed = scripts.output(4, ([[
      local net = Net()
      local t = trainer{max_steps = 6, max_epochs = 2, deterministic = "world"}
      t:fit(net, loader(), {ckpt_path = "%s/part.ckpt"})
      show(net)
    ]]):format(folder))
    child.remove(folder)
    assert.equal(wanted, resumed)
  end)

  it("normalizes over the batches of all, as over the host", function()
    local script <const> = [[
      local net = Net()
      trainer{max_steps = 3, deterministic = true, sync_batchnorm = true}:fit(net, loader())
      show(net)
    ]]
    local backends = os.getenv "LTRAIN_BACKENDS" .. "/../without_nccl"
    local wanted, said = scripts.output(2, script, { LTRAIN_BACKENDS = backends })
    assert.matches("no comm backend transfers memory of cuda .-: nccl: no ltrain_nccl.so in", said)
    local out, err = scripts.output(2, script)
    assert.equal(wanted, out)
    assert.matches("2 ranks on 1 host over shm and nccl, .-, sums in the order binary tree", err)
  end)

  it("of ranks that mpirun started takes the GPU of the local rank", function()
    local script <const> = [[
      local net = Net()
      trainer{max_steps = 3, deterministic = true, accelerator = "gpu"}:fit(net, loader())
      local devices = lt.dist.all_gather(net.device)
      if lt.dist.rank() > 0 then return end
      show(net)
      print(table.concat(devices, " "))
    ]]
    if not require "spec.dist.job".can "mpi" then return pending "no mpirun here" end
    local out, err = scripts.over("mpi", 2, script)
    assert.matches("cuda:0 cuda:1\n$", out)
    assert.matches("over mpi and nccl", err)
    assert.equal((scripts.output(2, script)), out)
  end)

  it("waits in no step for a GPU, and where gradients are checked only when it is far ahead",
    function()
      local script <const> = [[
        local waits, net = {}, Net()
        function net:on_train_batch_start()
          waits[#waits + 1] = require "ltrain.c".runtime.watched_waits()
        end
        trainer{max_steps = 9, max_epochs = 3, OPTIONS}:fit(net, loader())
        print(waits[9] - waits[2])
        local before = require "ltrain.c".runtime.watched_waits()
        for _ = 1, 20 do net.first.weight:add(1):sum():item() end
        print(require "ltrain.c".runtime.watched_waits() > before)
      ]]
      local plain = scripts.output(2, (script:gsub("OPTIONS", "nonfinite = 'allow'")))
      assert.equal("0\ntrue\n", plain)
      for _, options in ipairs { "deterministic = true", "precision = '16-mixed'" } do
        local out = scripts.output(2, (script:gsub("OPTIONS", options)))
        assert.is_true(tonumber(out:match "^%d+") <= 7, out) -- once a step, for one four before
      end
    end)

  it("is told in whose order sums are added", function()
    local _, err = scripts.output(2, [[
      trainer{max_steps = 1}:fit(Net(), loader())
    ]])
    assert.matches("over shm and nccl, .-, sums in the order of nccl", err)
  end)
end)
