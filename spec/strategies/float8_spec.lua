-- spec/strategies/float8_spec.lua: scales of float8 on two ranks.
-- tags: slow
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
lt.seed(1)
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(16, 16) end
function Net:training_step(batch)
  local factor = lt.dist.rank() == 0 and 1 or 7
  return self.layer(batch[1] * factor):square():mean()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(16, 16)), {batch_size = 4})
]]

for _, strategy in ipairs { "ddp", "fsdp" } do
  describe("float8 with " .. strategy, function()
    it("has the largest of all ranks as amax, and so equal scales and weights", function()
      local out <const> = scripts.output(2, ([[
        local net = Net()
        function net:on_train_end()
          local scale = self.trainer.strategy.precision:state_dict().scale:tolist()
          local all = lt.dist.all_gather(table.concat(scale, " "))
          print(scale[1], all[1] == all[2])
        end
        trainer{precision = "fp8-mixed", strategy = %q}:fit(net, data)
      ]]):format(strategy))
      assert.equal("64.0\ttrue\n64.0\ttrue\n", out)
    end)
  end)
end
