-- spec/strategies/interface_spec.lua: what the loop asks a strategy, and when.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"
local trained = require "spec.dist.trained"

local error_of = tiny.error_of

-- A strategy of one process that notes each call in the list `calls`.
local function watched(calls)
  local Watched = lt.Strategy:extend("Watched")
  for _, name in ipairs { "setup_module", "setup_optimizers", "forward_scope", "backward_scope",
    "backward", "reduce_gradients", "grad_norm", "optimizer_step", "evaluation_scope",
    "end_training", "module_state", "optimizer_state", "load_module_state",
    "load_optimizer_state" } do
    Watched[name] = function(self, ...)
      calls[#calls + 1] = name
      return lt.Strategy[name](self, ...)
    end
  end
  return Watched()
end

local function scope(calls, name)
  return function()
    calls[#calls + 1] = name
    return setmetatable({}, { __close = function() calls[#calls + 1] = "end of " .. name end })
  end
end

describe("a strategy", function()
  it("is asked in the order of a run", function()
    local calls, net = {}, tiny.Line()
    net.validation_step = net.training_step
    tiny.trainer({ strategy = watched(calls), gradient_clip_val = 1.0, num_sanity_val_steps = 0 })
      :fit(net, tiny.same(1), tiny.same(1))
    assert.same({ "setup_module", "setup_optimizers", "forward_scope", "backward_scope", "backward",
      "reduce_gradients", "grad_norm", "optimizer_step", "evaluation_scope", "forward_scope",
      "end_training" }, calls)
  end)

  it("gives what a checkpoint holds, and takes it back", function()
    local calls, path = {}, tiny.folder()
    local trainer = tiny.trainer { strategy = watched(calls), max_epochs = 1 }
    trainer:fit(tiny.Line(), tiny.same(1))
    for i = #calls, 1, -1 do calls[i] = nil end
    trainer:save_checkpoint(path)
    trainer:save_checkpoint(path .. ".weights", { weights_only = true })
    assert.same({ "module_state", "optimizer_state", "module_state" }, calls)
    for i = #calls, 1, -1 do calls[i] = nil end
    tiny.trainer({ strategy = watched(calls), max_epochs = 2 })
      :fit(tiny.Line(), tiny.same(1), nil, { ckpt_path = path })
    assert.same({ "load_module_state", "setup_module", "setup_optimizers", "load_optimizer_state" },
      table.move(calls, 1, 4, 1, {}))
    os.remove(path)
    os.remove(path .. ".weights")
  end)

  it("opens scopes around steps and backward, and closes them", function()
    local calls, Scoped = {}, lt.Strategy:extend("Scoped")
    Scoped.forward_scope = scope(calls, "forward")
    Scoped.backward_scope = scope(calls, "backward")
    local net = tiny.Line()
    function net:training_step(x)
      calls[#calls + 1] = "step"
      return self:loss(x)
    end
    tiny.trainer({ strategy = Scoped() }):fit(net, tiny.same(1))
    assert.same({ "forward", "step", "end of forward", "backward", "end of backward" }, calls)
  end)

  it("may scale what backward gets and what is stepped", function()
    -- w' = w - lr * gradient: twice the gradient, then none.
    local Twice, Never = lt.Strategy:extend("Twice"), lt.Strategy:extend("Never")
    function Twice:backward(loss, weight, ...)
      Twice.super.backward(self, loss * 2, weight, ...)
    end
    function Never:optimizer_step() end
    local function moved(strategy)
      local net = tiny.Line()
      local before = net.w:item()
      tiny.trainer({ strategy = strategy }):fit(net, tiny.same(1))
      return net.w:item() - before
    end
    local usual = moved(lt.Strategy())
    assert.near(2 * usual, moved(Twice()), 1e-6)
    assert.equal(0.0, moved(Never()))
  end)

  it("may put another module and other optimizers in the place of those given", function()
    local Other, other, steps = lt.Strategy:extend("Other"), tiny.Line(), 0
    function Other:setup_module() return other end
    function Other:setup_optimizers(list)
      local Mine = lt.optim.SGD:extend("Mine")
      function Mine.update() steps = steps + 1 end
      return { Mine(list[1].param_groups[1].params, { lr = 0.1 }) }
    end
    local trainer = tiny.trainer { strategy = Other() }
    trainer:fit(tiny.Line(), tiny.same(3))
    assert.equal(other, trainer.module)
    assert.equal(3, steps)
  end)

  it("must return a module and as many optimizers", function()
    local Forgets, Loses = lt.Strategy:extend("Forgets"), lt.Strategy:extend("Loses")
    function Forgets:setup_module() end
    function Loses:setup_optimizers() return {} end
    local function message(strategy)
      return error_of(function() tiny.trainer({ strategy = strategy }):fit(tiny.Line(),
        tiny.same(1)) end)
    end
    assert.matches("Forgets: setup_module must return the module: got nil", message(Forgets()))
    assert.matches("Loses: setup_optimizers must return the list of 1 optimizers", message(Loses()))
  end)

  it("is around the step of an optimizer that has its own", function()
    local calls, Own = {}, lt.optim.SGD:extend("Own")
    function Own:step(closure)
      calls[#calls + 1] = "own"
      return closure()
    end
    local Around = lt.Strategy:extend("Around")
    function Around:optimizer_step(_, update)
      calls[#calls + 1] = "before"
      update()
      calls[#calls + 1] = "after"
    end
    local net = tiny.Line()
    function net:configure_optimizers() return Own(self:parameters()) end
    tiny.trainer({ strategy = Around() }):fit(net, tiny.same(1))
    assert.same({ "before", "own", "after" }, calls)
  end)

  it("is asked about optimizers that a script puts into the Trainer", function()
    local calls, net = {}, tiny.Line()
    function net:on_train_batch_start(_, i)
      if i == 1 then self.trainer.optimizers = { lt.optim.SGD(self:parameters(), { lr = 0.1 }) } end
    end
    tiny.trainer({ strategy = watched(calls) }):fit(net, tiny.same(3))
    local count = 0
    for _, name in ipairs(calls) do count = count + (name == "setup_optimizers" and 1 or 0) end
    assert.equal(2, count)
  end)
end)

describe("a strategy of several ranks", function()
  local scripts = trained.with ""

  it("is one class with reduce_gradients", function()
    local out = scripts.output(3, [[
      local Vote = lt.strategies.ParallelStrategy:extend("Vote")
      function Vote:reduce_gradients(optimizer)
        for _, parameter in ipairs(optimizer.param_groups[1].params) do
          local grad = parameter.grad or lt.zeros_like(parameter)
          parameter.grad = lt.dist.all_reduce(grad:sign()):sign()
        end
      end
      local net = lt.nn.Linear(1, 1)
      function net:training_step(x)
        return self(x):sum() * (lt.dist.rank() == 2 and -9 or 1) -- outvoted
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.5}) end
      local before = net.bias:item()
      trainer({strategy = Vote()}):fit(net, {lt.ones(2, 1)})
      print(net.bias:item() - before)
    ]])
    assert.equal("-0.5\n", out)
  end)

  it("says when it is not defined", function()
    local status, _, err = scripts.run(2, [[
      local Empty = lt.strategies.ParallelStrategy:extend("Empty")
      local net = lt.nn.Linear(1, 1)
      function net:training_step(x) return self(x):sum() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters()) end
      trainer({strategy = Empty()}):fit(net, {lt.ones(2, 1)})
    ]])
    assert.equal(1, status)
    assert.matches("strategies.Empty: reduce_gradients is not defined", err)
  end)
end)

describe("Trainer{strategy = {name, options}}", function()
  it("makes the strategy of that name with them", function()
    local trainer = lt.Trainer { strategy = { "DDP", bucket_cap_mb = 3 } }
    assert.equal(lt.strategies.DDP, getmetatable(trainer.strategy))
    assert.equal(3, trainer.strategy.bucket_cap_mb)
    assert.equal(7, lt.Trainer({ strategy = { "local_sgd", period = 7 } }).strategy.period)
  end)

  it("says what is wrong with the name or an option", function()
    local function wrong(strategy) return error_of(lt.Trainer, { strategy = strategy }) end
    assert.matches("strategy: a table is a name and options, like {'local_sgd', period = 8}: got "
      .. "nil in the name's place", wrong { period = 8 })
    assert.matches("strategy = 'local_sdg': must be .*; did you mean 'local_sgd'%?",
      wrong { "local_sdg" })
    assert.matches("strategies.LocalSGD: unknown option 'periods'; did you mean 'period'%?",
      wrong { "local_sgd", periods = 8 })
  end)
end)
