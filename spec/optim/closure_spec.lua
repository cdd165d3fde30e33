-- spec/optim/closure_spec.lua: LBFGS in a Trainer, Muon, and what rules of updates.def keep.

local error_of = require "spec.error_of"
local lt = require "ltrain"

describe("LBFGS", function()
  local function regression(options)
    lt.seed(3)
    local x = lt.randn(32, 3, { dtype = "f64" })
    local y = x:matmul(lt.tensor({ 1, -2, 0.5 }, { dtype = "f64" })) + 0.25
    local module = lt.Module:extend("Regression")
    function module:init() self.layer = lt.nn.Linear(3, 1):to "f64" end
    function module:training_step(batch)
      self.calls = (self.calls or 0) + 1
      local difference = self.layer(batch[1]):squeeze(-1) - batch[2]
      return difference:square():mean()
    end
    function module:configure_optimizers() return lt.optim.LBFGS(self:parameters(), options) end
    local net = module()
    local data = lt.data.DataLoader(lt.data.TensorDataset(x, y), { batch_size = 32 })
    local trainer = lt.Trainer { max_epochs = 4, logger = false, enable_checkpointing = false,
      enable_progress_bar = false, enable_model_summary = false }
    trainer:fit(net, data)
    return net, trainer
  end

  it("steps in the Trainer, which computes its closure again", function()
    local net, trainer = regression { line_search_fn = "strong_wolfe" }
    assert.equal(4, trainer.global_step)
    assert.is_true(net.calls > 8)
    local weight = net.layer.weight:flatten():tolist()
    for i, want in ipairs { 1, -2, 0.5 } do assert.near(want, weight[i], 1e-5) end
    assert.near(0.25, net.layer.bias:item(), 1e-5)
  end)

  it("wants a closure, and one group", function()
    local w = lt.parameter(lt.ones(2))
    local optimizer = lt.optim.LBFGS { w }
    assert.matches("optim: step: the closure must be a function: got a tensor [2]",
      error_of(function() lt.optim.SGD({ w }, { lr = 1 }):step(lt.ones(2)) end), 1, true)
    assert.matches("returns the loss: got a tensor [2]",
      error_of(function() optimizer:step(lt.ones(2)) end), 1, true)
    assert.matches("closure_spec%.lua:%d+: optim%.LBFGS: step needs a closure",
      error_of(function() optimizer:step() end))
    assert.matches("optim%.LBFGS: all parameters are one vector: give one group: got 2",
      error_of(lt.optim.LBFGS, { { params = { w } }, { params = { lt.parameter(lt.ones(1)) } } }))
  end)

  it("leaves parameters where the gradient is zero, and takes those without one", function()
    local w, idle = lt.parameter(lt.ones(2)), lt.parameter(lt.ones(3))
    local optimizer = lt.optim.LBFGS { w, idle }
    local function closure()
      optimizer:zero_grad()
      local loss = (w - 2):square():sum()
      loss:backward()
      return loss
    end
    for _ = 1, 3 do optimizer:step(closure) end
    assert.near(2, w[1]:item(), 1e-5)
    assert.same({ 1, 1, 1 }, idle:tolist())
    local evaluations = optimizer.state[w].func_evals
    optimizer:step(closure)
    assert.is_true(optimizer.state[w].func_evals <= evaluations + 1)
  end)
end)

describe("Muon", function()
  it("makes the update of an f32 matrix nearly orthogonal", function()
    lt.seed(1)
    local w = lt.parameter(lt.zeros(6, 4))
    local optimizer = lt.optim.Muon({ w }, { lr = 1, weight_decay = 0 })
    w.grad = lt.randn(6, 4)
    optimizer:step()
    local update = w:detach()
    local gram = update:t():matmul(update) * (4 / 6) -- lr times sqrt(6 / 4)
    for i = 1, 4 do assert.is_true(math.abs(gram[i][i]:item() - 1) < 0.6) end
    assert.is_true(update:mul(w.grad):sum():item() < 0)
  end)

  it("takes matrices only", function()
    assert.matches("closure_spec%.lua:%d+: optim%.Muon: parameters must be matrices: '0' is %[3%]",
      error_of(function() lt.optim.Muon { lt.parameter(lt.ones(3)) } end))
  end)
end)

describe("Rprop", function()
  it("takes factors below and above 1", function()
    assert.matches("closure_spec%.lua:%d+: optim%.Rprop: etas must be two numbers, 0 < the first"
      .. " < 1 < the second: got {1.2, 0.5}",
      error_of(function()
        lt.optim.Rprop({ lt.parameter(lt.ones(3)) }, { etas = { 1.2, 0.5 } })
      end))
  end)
end)

describe("Optimizers by rules", function()
  local NAMES <const> = { "ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Lion", "NAdam", "RAdam",
                          "RMSprop", "Rprop" }

  it("leave out what has no gradient", function()
    for _, name in ipairs(NAMES) do
      local w, idle = lt.parameter(lt.ones(2)), lt.parameter(lt.ones(2))
      local optimizer = lt.optim[name]({ w, idle }, { lr = 0.1 })
      w.grad = lt.tensor { 1.0, -1.0 }
      optimizer:step()
      assert.same({ 1, 1 }, idle:tolist())
      assert.is_nil(optimizer.state[idle])
      assert.is_true(w[1]:item() < 1 and w[2]:item() > 1, name)
    end
  end)

  it("take back what they counted of a step that is left out", function()
    for _, name in ipairs(NAMES) do
      local w = lt.parameter(lt.ones(2))
      local optimizer = lt.optim[name]({ w }, { lr = 0.1 })
      for step = 1, 3 do
        w.grad = lt.tensor { 1.0, -1.0 }
        if step == 2 then
          local before = lt.hash { optimizer:state_dict(), w }
          optimizer:check_later(lt.tensor(true))
          optimizer:step()
          assert.is_true(optimizer:settle())
          assert.equal(before, lt.hash { optimizer:state_dict(), w }, name)
        else
          optimizer:step()
        end
      end
      assert.equal(2, optimizer.state[w].step)
    end
  end)

  it("step parameters of one group that are at different steps", function()
    for _, name in ipairs(NAMES) do
      local a, b = lt.parameter(lt.ones(1)), lt.parameter(lt.ones(1))
      local both = lt.optim[name]({ a, b }, { lr = 0.1 })
      a.grad = lt.ones(1)
      both:step()
      a.grad, b.grad = lt.ones(1), lt.ones(1)
      both:step()
      local other = lt.parameter(lt.ones(1))
      local alone = lt.optim[name]({ other }, { lr = 0.1 })
      other.grad = lt.ones(1)
      alone:step()
      assert.equal(other:item(), b:item(), name)
      other.grad = lt.ones(1)
      alone:step()
      assert.equal(other:item(), a:item(), name)
    end
  end)
end)
