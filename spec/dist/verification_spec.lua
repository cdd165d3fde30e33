-- spec/dist/verification_spec.lua: verify_every: ranks compute batches of each other again, and one
-- that computes wrong is named.
-- tags: sampled, slow
local over = require "spec.dist.over"
local trained = require "spec.dist.trained"

-- A net with random numbers, buffers and metrics; wrong(hidden, step) is what faulty hardware does.
local scripts <const> = trained.with [[
lt.seed(3)
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.second = lt.nn.Linear(2, 6), lt.nn.Linear(6, 1)
  self.norm, self.drop = lt.nn.BatchNorm1d(6), lt.nn.Dropout(0.3)
  self.mean = lt.metrics.Mean()
end
function Net:training_step(batch)
  local hidden = self.drop(self.norm(self.first(batch[1])))
  if self.wrong then hidden = self.wrong(hidden, self.global_step) end
  local loss = (self.second(hidden) - batch[1]:sum(2, true) - math.random()):square():mean()
  self.mean:update(loss)
  self:log("loss", loss, {on_epoch = true})
  self:log("mean", self.mean, {on_epoch = true, on_step = false})
  return loss
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
local data = lt.data.TensorDataset(lt.randn(48, 2))
local function fit(o, wrong)
  lt.seed(3)
  local net = Net()
  net.wrong = wrong
  local t = trainer(o)
  t:fit(net, lt.data.DataLoader(data, {batch_size = 2, shuffle = true}))
  return t, net
end
]]

describe("verify_every", function()
  over({ "shm", "mpi" }, "changes nothing where ranks compute right, and says what it costs",
    function(way)
      local out, err = scripts.over(way, 3, [[
        local function line(o)
          local t, net = fit(o)
          local m = t.callback_metrics
          print(lt.hash(net:state_dict()), m.loss_epoch, m.mean, t.global_step)
        end
        line {}
        line {verify_every = 3}
        line {accumulate_grad_batches = 2}
        line {accumulate_grad_batches = 2, verify_every = 1}
        line {strategy = "zero1"}
        line {strategy = "zero1", verify_every = 1}
      ]])
      local lines = {}
      for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
      assert.equal(6, #lines)
      for i = 1, 5, 2 do assert.equal(lines[i], lines[i + 1]) end
      assert.matches("verify_every = 3: 3 checks in %d+%.%d+ s, %d+%.%d %% of the time", err)
      assert.matches("verify_every = 1: 4 checks in", err)
    end)

  for _, case in ipairs {
    { "loss and gradients", "return hidden * (1 + 1e-3)", "loss, " },
    { "gradients alone", "return hidden + (hidden - hidden:detach()) * 1e-3", "first" },
  } do
    it("names the rank of three that computes wrong: " .. case[1], function()
      local status, out, err = scripts.run(3, ([[
        local _, net = pcall(fit, {verify_every = 2}, function(hidden, step)
          if lt.dist.rank() ~= 1 or step < 3 then return hidden end
          %s
        end)
        error(net, 0)
      ]]):format(case[2]))
      assert.equal(1, status, out)
      assert.matches("verify_every: rank 1 on %S+ %(" .. case[3] .. "[^)]*%) computes other bits "
        .. "than the others for the same batch %(epoch 0, batch 4, step 4%): its hardware is "
        .. "faulty, or training_step depends on the rank", err)
      assert.not_matches("rank [02] on", err)
    end)
  end

  it("names the rank of two whose results change", function()
    local status, _, err = scripts.run(2, [[
      local count = 0
      fit({verify_every = 2}, function(hidden)
        count = count + 1
        if lt.dist.rank() == 0 then return hidden end
        return hidden * (1 + 1e-3 * (count % 7))
      end)
    ]])
    assert.equal(1, status)
    assert.matches("verify_every: rank 1 on %S+ %(loss", err)
  end)

  it("warns where two ranks differ, each always in the same way", function()
    local out, err = scripts.output(2, [[
      local t = fit({verify_every = 5}, function(hidden)
        return lt.dist.rank() == 0 and hidden or hidden * (1 + 1e-3)
      end)
      print(t.global_step)
    ]])
    assert.equal("12\n", out)
      assert.equal(1, select(2, err:gsub("it is not known", "")))
    assert.matches("warning: verify_every: rank %d on %S+ and rank %d on %S+ %(loss, [^)]*%) "
      .. "compute different bits for the same batch .* it is not known which is wrong", err)
  end)

  it("says where it has no effect, and why", function()
    for _, case in ipairs {
      { 1, "", "it needs several ranks" },
      { 2, "strategy = 'fsdp', ", "under .* ranks do not have all parameters and gradients: write "
        .. "strategy = 'ddp'" },
      { 2, "deterministic = 'world', ", "deterministic = 'world' computes in slices" },
    } do
      local _, err = scripts.output(case[1], ("fit {%sverify_every = 2}"):format(case[2]))
      assert.matches("warning: verify_every has no effect: .*" .. case[3], err)
    end
  end)
end)
