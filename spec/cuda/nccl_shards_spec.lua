-- spec/cuda/nccl_shards_spec.lua: what Sharded divides among GPUs, whose bytes NCCL moves.
-- tags: sampled, slow, third
local trained = require "spec.dist.trained"
local turns = require "spec.turns"

local scripts <const> = trained.with [[
local nn = lt.nn
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.last = nn.Linear(7, 12), nn.Linear(12, 1)
  self.blocks = nn.ModuleList()
  for i = 1, 3 do
    self.blocks:append(nn.Sequential(nn.Linear(12, 9), nn.Tanh(), nn.Linear(9, 12)))
  end
end
function Net:forward(x)
  x = self.first(x)
  for _, block in ipairs(self.blocks) do x = x + block(x) end
  return self.last(x)
end
function Net:training_step(batch) return (self(batch[1]) - 1):square():mean() end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
lt.seed(5)
local data = lt.data.TensorDataset(lt.randn(72, 7))
local function fit(strategy, options)
  lt.seed(1)
  local net = Net()
  local all = {strategy = strategy, deterministic = true}
  for name, value in pairs(options or {}) do all[name] = value end
  trainer(all):fit(net, lt.data.DataLoader(data, {batch_size = 4}))
  return net
end
-- The largest difference of a weight from that of a fit under DDP.
local function apart(ddp, strategy, options)
  local a, b, most = ddp:state_dict(), fit(strategy, options):state_dict(), 0
  for name, x in pairs(a) do
    most = math.max(most, (x:to "cpu" - b[name]:to "cpu"):abs():amax():item())
  end
  return most
end
]]

describe("stages 1, 2 and 3 on GPUs", function()
  it("train to the bits of DDP", function()
    turns({
      { "{gradient_clip_val = 0.05}", "0" },
      { "{precision = 'bf16-mixed'}", "0" },
      { "{accumulate_grad_batches = 2}", "1e-6" },
    }, 1, function(row)
      local out, err = scripts.output(2, ([[
        local options, most = %s, %s
        local ddp = fit("ddp", options)
        for stage = 1, 3 do
          print(apart(ddp, {"sharded", stage = stage, units = 1}, options) <= most)
        end
      ]]):format(table.unpack(row)))
      assert.matches("over shm and nccl", err)
      assert.equal("true\ntrue\ntrue\n", out)
    end)
  end)

  it("wait for no GPU, and have the next unit on its way while one computes", function()
    assert.equal("0\tgathers 2\n", (scripts.output(2, [[
      local waits, gathers = {}, 0
      local Watched = Net:extend("Watched")
      function Watched:on_train_batch_start()
        waits[#waits + 1] = require "ltrain.c".runtime.watched_waits()
        gathers = 0
      end
      function Watched:forward(x)
        x = self.first(x)
        for _, block in ipairs(self.blocks) do
          x = x + block(x)
          for _, unit in ipairs(self.trainer.strategy.sharding.sharded.units) do
            if unit.gathering then gathers = gathers + 1 end
          end
        end
        return self.last(x)
      end
      local own = Net
      Net = Watched
      fit({"sharded", stage = 3, units = 1}, {deterministic = false, nonfinite = "allow"})
      Net = own
      print(waits[9] - waits[2], "gathers " .. gathers)
    ]])))
  end)
end)
