-- spec/dist/nonfinite_spec.lua: ranks agree on steps whose gradients are not finite, and name
-- the rank that made the first NaN.
-- tags: slow
local trained = require "spec.dist.trained"

local scripts <const> = trained.with [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.w = lt.parameter(lt.tensor{0.5})
end
function Net:training_step(batch, i)
  local y = batch[1] * self.w
  local loss = (y - 1):square():mean()
  if i == 1 and lt.dist.rank() == 1 then
    loss = loss + (y * 0):sqrt():mean()
  end
  return loss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(16)), {global_batch_size = 4})
local function fit(o)
  local net, t = Net(), trainer(o)
  local ok, message = pcall(t.fit, t, net, data)
  return net.w:item(), t.global_step, message
end
]]

describe("a gradient that is not finite on one of two ranks", function()
  it("stops all, and names the rank, the operation and the parameter", function()
    local status, _, err = scripts.run(2, "error(select(3, fit()), 0)")
    assert.equal(1, status)
    assert.matches("the gradients of w are not finite %(epoch 0, batch 1, step 1%): rank 1: the "
      .. "derivative of sqrt at script.lua:%d+ made the first inf", err)
  end)

  for _, way in ipairs { "", "deterministic = 'world', world_slices = 2, " } do
    it("is found in the batch of a window that made it" .. (way == "" and "" or ", in slices"),
      function()
        local status, _, err = scripts.run(2, [[
          error(select(3, fit{]] .. way .. [[accumulate_grad_batches = 3}), 0)]])
        assert.equal(1, status)
        assert.matches("the gradients of w are not finite %(epoch 0, batch 2, step 0%): rank 1: "
          .. "in batch 1: the derivative of sqrt at script.lua:%d+ made the first inf", err)
      end)
  end

  it("is skipped by both, and reported once", function()
    local out, err = scripts.output(2, [[
      local w, steps = fit{nonfinite = "skip"}
      print(steps, w == w)
    ]])
    assert.equal("3\ttrue\n", out)
    local _, reported = err:gsub("the step is not taken", "")
    assert.equal(1, reported)
    assert.matches("epoch 0: 1 optimizer step not taken", err)
  end)

  it("is skipped by both under a scaler, whose scale shrinks on both", function()
    local out, err = scripts.output(2, [[
      local scaler = lt.GradScaler{init_scale = 64}
      local precision = {name = "16-mixed", autocast = "f16", scaler = scaler}
      local w, steps = fit{strategy = lt.strategies.DDP{precision = precision}}
      print(w == w, steps, scaler:get_scale())
    ]])
    assert.equal("true\t3\t32.0\n", out)
    assert.matches("\nltrain: epoch 0: 1 optimizer step not taken: gradients were not finite; the "
      .. "scale of the loss is 32 now", err) -- both say it
  end)

  it("is skipped in manual optimization too, and the next step shares gradients again", function()
    local out = scripts.output(2, [[
      local step = Net.training_step
      function Net:init()
        self.w = lt.parameter(lt.tensor{0.5})
        self.automatic_optimization = false
      end
      function Net:training_step(batch, i)
        local optimizer = self:optimizers()
        optimizer:zero_grad()
        self:manual_backward(step(self, batch, i))
        optimizer:step()
      end
      local w, steps = fit{nonfinite = "skip", replica_check_every_n_steps = 1}
      print(steps, w == w)
    ]])
    assert.equal("3\ttrue\n", out)
  end)
end)
