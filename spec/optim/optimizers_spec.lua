-- spec/optim/optimizers_spec.lua: SGD, Adam, AdamW against the formulas in doubles, groups, state.

local c = require "ltrain.c"
local lt = require "ltrain"
local error_of = require "spec.error_of"

local optim <const> = lt.optim

-- Gradients of two elements over five steps, the same for all cases.
local GRADS <const> = { { 0.5, -1.0 }, { 0.25, 2.0 }, { -0.125, 0.5 }, { 1.0, 0.0 }, { 0.3, -0.7 } }
local START <const> = { 1.0, -2.0 }

local function parameter(values, dtype)
  return lt.parameter(lt.tensor(values, { dtype = dtype or "f64" }))
end

-- The parameter after each step of an optimizer.
local function run(make)
  local p = parameter(START)
  local optimizer, path = make({ p }), {}
  for i, grad in ipairs(GRADS) do
    p.grad = lt.tensor(grad, { dtype = "f64" })
    optimizer:step()
    path[i] = p:tolist()
  end
  return path, optimizer, p
end

-- The same by `rule(p, g, memory, t)`, one number at a time.
local function expected(rule)
  local path, p, memory = {}, { START[1], START[2] }, { {}, {} }
  for t, grad in ipairs(GRADS) do
    for k = 1, 2 do p[k] = rule(p[k], grad[k], memory[k], t) end
    path[t] = { p[1], p[2] }
  end
  return path
end

local function same_path(want, got)
  for t = 1, #GRADS do
    for k = 1, 2 do assert.near(want[t][k], got[t][k], 1e-12) end
  end
end

describe("SGD", function()
  local function check(options, rule)
    same_path(expected(rule), (run(function(params) return optim.SGD(params, options) end)))
  end

  it("steps against the gradient", function()
    check({ lr = 0.1 }, function(p, g) return p - 0.1 * g end)
  end)

  it("adds weight decay to the gradient", function()
    check({ lr = 0.1, weight_decay = 0.2 }, function(p, g) return p - 0.1 * (g + 0.2 * p) end)
  end)

  it("keeps momentum, which begins with the first gradient, undamped", function()
    check({ lr = 0.1, momentum = 0.9, dampening = 0.5 }, function(p, g, memory, t)
      memory.v = t == 1 and g or 0.9 * memory.v + 0.5 * g
      return p - 0.1 * memory.v
    end)
  end)

  it("looks ahead with nesterov", function()
    check({ lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.01 },
      function(p, g, memory, t)
        g = g + 0.01 * p
        memory.v = t == 1 and g or 0.9 * memory.v + g
        return p - 0.1 * (g + 0.9 * memory.v)
      end)
  end)

  it("refuses nesterov without momentum, or with dampening", function()
    assert.matches("optimizers_spec%.lua:%d+: optim%.SGD: nesterov needs momentum above 0 and "
      .. "dampening 0", error_of(function()
      optim.SGD({ parameter(START) }, { nesterov = true })
    end))
  end)

  it("keeps no state without momentum", function()
    local _, optimizer = run(function(params) return optim.SGD(params, { lr = 0.1 }) end)
    assert.is_nil(next(optimizer:state_dict().state))
  end)
end)

local function adam_rule(o)
  return function(p, g, memory, t)
    if o.decoupled then p = p * (1 - o.lr * o.decay) else g = g + o.decay * p end
    memory.m = o.b1 * (memory.m or 0) + (1 - o.b1) * g
    memory.v = o.b2 * (memory.v or 0) + (1 - o.b2) * g * g
    local m, v = memory.m / (1 - o.b1 ^ t), memory.v / (1 - o.b2 ^ t)
    return p - o.lr * m / (math.sqrt(v) + o.eps)
  end
end

describe("Adam", function()
  it("follows the published formula, with PyTorch's defaults", function()
    same_path(expected(adam_rule { lr = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0 }),
      (run(function(params) return optim.Adam(params) end)))
  end)

  it("takes betas, eps and weight decay into the gradient", function()
    same_path(expected(adam_rule { lr = 0.1, b1 = 0.8, b2 = 0.9, eps = 1e-3, decay = 0.1 }),
      (run(function(params)
        return optim.Adam(params, { lr = 0.1, betas = { 0.8, 0.9 }, eps = 1e-3,
                                    weight_decay = 0.1 })
      end)))
  end)

  it("counts steps for each parameter by itself", function()
    local a, b = parameter({ 1 }), parameter({ 1 })
    local optimizer = optim.Adam({ a, b }, { lr = 0.1 })
    a.grad = lt.ones(1, { dtype = "f64" })
    optimizer:step()
    b.grad = lt.ones(1, { dtype = "f64" })
    optimizer:step()
    assert.near(0.9, b:item(), 1e-8) -- the first step of b is of size lr
    assert.near(0.8, a:item(), 1e-8)
  end)

  it("refuses betas outside 0..1", function()
    assert.matches("optim%.Adam: betas must be two numbers in 0..1, 1 excluded",
      error_of(optim.Adam, { parameter(START) }, { betas = { 0.9, 1.0 } }))
  end)

  it("updates f32 parameters", function()
    local p = parameter(START, "f32")
    local optimizer = optim.Adam({ p }, { lr = 0.5 })
    p.grad = lt.tensor({ 1.0, -1.0 })
    optimizer:step()
    assert.near(0.5, p[1]:item(), 1e-6)
    assert.near(-1.5, p[2]:item(), 1e-6)
  end)
end)

describe("AdamW", function()
  it("decays the weights apart from the gradient", function()
    same_path(expected(adam_rule { lr = 0.1, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0.2,
                                   decoupled = true }),
      (run(function(params) return optim.AdamW(params, { lr = 0.1, weight_decay = 0.2 }) end)))
  end)

  it("has weight decay 0.01", function()
    assert.equal(0.01, optim.AdamW({ parameter(START) }).param_groups[1].weight_decay)
  end)
end)

-- The rule on values that are rounded to `dtype` after each step.
local function rounded(rule, dtype)
  return function(p, g, memory, t)
    local grad = lt.tensor({ g }, { dtype = dtype }):item()
    return lt.tensor({ rule(p, grad, memory, t) }, { dtype = dtype }):item()
  end
end

describe("parameters of f16 and bf16", function()
  local adam <const> = { lr = 0.1, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0 }
  local cases <const> = {
    SGD = { options = { lr = 0.1, momentum = 0.9 }, slots = { "momentum_buffer" },
            rule = function(p, g, memory, t)
              memory.v = t == 1 and g or 0.9 * memory.v + g
              return p - 0.1 * memory.v
            end },
    Adam = { options = { lr = 0.1 }, slots = { "exp_avg", "exp_avg_sq" }, rule = adam_rule(adam) },
    AdamW = { options = { lr = 0.1, weight_decay = 0 }, slots = { "exp_avg", "exp_avg_sq" },
              rule = adam_rule(adam) },
  }

  local function low(dtype) return lt.parameter(lt.tensor(START, { dtype = dtype })) end

  -- One step; GRADS[t] in the parameter's dtype.
  local function step(p, optimizer, t)
    p.grad = lt.tensor(GRADS[t], { dtype = p.dtype })
    optimizer:step()
  end

  for name, case in pairs(cases) do
    for _, dtype in ipairs { "bf16", "f16" } do
      it(("%s keeps the state of %s in f32 and rounds the weight alone"):format(name, dtype),
        function()
          local p, want = low(dtype), expected(rounded(case.rule, dtype))
          local optimizer = optim[name]({ p }, case.options)
          for t = 1, #GRADS do
            step(p, optimizer, t)
            for k = 1, 2 do assert.near(want[t][k], p[k]:item(), 1e-2) end
          end
          for _, slot in ipairs(case.slots) do
            assert.equal("f32", optimizer.state[p][slot].dtype)
          end
        end)
    end
  end

  it("resume exactly from a file", function()
    local path = os.tmpname()
    for name, case in pairs(cases) do
      local p = low("bf16")
      local optimizer = optim[name]({ p }, case.options)
      for t = 1, 2 do step(p, optimizer, t) end
      assert(lt.save(path, { p = p:detach(), state = optimizer:state_dict() }))
      local saved = assert(lt.load(path))
      local q = lt.parameter(saved.p:to(p.device))
      local second = optim[name]({ q }, case.options)
      second:load_state_dict(saved.state)
      for _, slot in ipairs(case.slots) do assert.equal("f32", second.state[q][slot].dtype) end
      for t = 3, #GRADS do
        step(p, optimizer, t)
        step(q, second, t)
        assert.same(p:tolist(), q:tolist())
      end
    end
    os.remove(path)
  end)

  it("collect steps that are too small for their own dtype in the momentum", function()
    local p = lt.parameter(lt.tensor({ 0.0 }, { dtype = "bf16" }))
    local optimizer = optim.SGD({ p }, { lr = 1, momentum = 1 })
    p.grad = lt.tensor({ 1.0 }, { dtype = "bf16" })
    optimizer:step()
    p.grad = lt.tensor({ 2 ^ -9 }, { dtype = "bf16" }) -- 1 + 2^-9 is 1 in bf16
    for _ = 1, 4 do optimizer:step() end
    assert.equal(1 + 4 * 2 ^ -9, optimizer.state[p].momentum_buffer:item())
  end)
end)

describe("Optimizer", function()
  local Net = lt.Module:extend("Net")
  function Net:init()
    self.weight = parameter({ 1, 2 })
    self.bias = parameter({ 3 })
  end

  it("leaves alone what has no gradient", function()
    local p = parameter(START)
    local optimizer = optim.Adam({ p }, { lr = 1, weight_decay = 1 })
    optimizer:step()
    assert.same(START, p:tolist())
  end)

  it("raises the version of what it changes", function()
    local p = parameter(START)
    local before = c.runtime.version(p)
    p.grad = lt.ones(2, { dtype = "f64" })
    optim.SGD({ p }):step()
    assert.is_true(c.runtime.version(p) > before)
  end)

  it("runs a closure first and returns its result", function()
    local p = parameter(START)
    local optimizer = optim.SGD({ p }, { lr = 1 })
    local result = optimizer:step(function()
      p.grad = lt.ones(2, { dtype = "f64" })
      return "loss"
    end)
    assert.equal("loss", result)
    assert.same({ 0, -3 }, p:tolist())
  end)

  it("makes gradients zero with zero_grad(false)", function()
    local p = lt.parameter(lt.ones(1))
    for _, option in ipairs { false, { set_to_none = false } } do
      p.grad = lt.ones(1)
      optim.SGD({ p }):zero_grad(option)
      assert.equal(0, p.grad:item())
    end
  end)

  it("makes gradients nil with zero_grad", function()
    local p = parameter(START)
    p.grad = lt.ones(2, { dtype = "f64" })
    optim.SGD({ p }):zero_grad()
    assert.is_nil(p.grad)
  end)

  it("takes groups with options of their own", function()
    local a, b = parameter({ 1 }), parameter({ 1 })
    local optimizer = optim.SGD({ { params = { a } }, { params = { b }, lr = 0.5 } }, { lr = 0.1 })
    a.grad, b.grad = lt.ones(1, { dtype = "f64" }), lt.ones(1, { dtype = "f64" })
    optimizer:step()
    assert.near(0.9, a:item(), 1e-12)
    assert.near(0.5, b:item(), 1e-12)
  end)

  it("uses a rate that is set later", function()
    local p = parameter({ 1 })
    local optimizer = optim.SGD({ p }, { lr = 0.1 })
    optimizer.param_groups[1].lr = 0.25
    p.grad = lt.ones(1, { dtype = "f64" })
    optimizer:step()
    assert.near(0.75, p:item(), 1e-12)
  end)

  it("takes one more group", function()
    local a, b = parameter({ 1 }), parameter({ 1 })
    local optimizer = optim.SGD({ a }, { lr = 0.1 })
    optimizer:add_param_group { params = { b }, lr = 0.2 }
    assert.equal(0.2, optimizer.param_groups[2].lr)
    assert.matches("optim%.SGD: parameter 1 %('2'%) is in it twice",
      error_of(optimizer.add_param_group, optimizer, { params = { a } }))
  end)

  it("names what is not a parameter", function()
    assert.matches("optimizers_spec%.lua:%d+: optim%.SGD: the first argument must be "
      .. "net:parameters%(%), a list of tensors or a list of groups: got an object of class Net",
      error_of(function() optim.SGD(Net()) end))
    assert.matches("optim%.SGD: there are no parameters to optimize", error_of(optim.SGD, {}))
    assert.matches("parameter 2 %('1'%) must be a tensor: got 5",
      error_of(optim.SGD, { parameter(START), 5 }))
    assert.matches("parameter 1 %('0'%) is the result of an operation",
      error_of(optim.SGD, { parameter(START) * 2 }))
    assert.matches("optim%.SGD: unknown option 'momentun'; did you mean 'momentum'%?",
      error_of(optim.SGD, { parameter(START) }, { momentun = 1 }))
  end)

  it("keys its state by the parameter's path", function()
    local net = Net()
    local optimizer = optim.SGD(net:parameters(), { momentum = 0.9 })
    net.bias.grad = lt.ones(1, { dtype = "f64" })
    optimizer:step()
    local state = optimizer:state_dict()
    assert.is_nil(state.state.weight)
    assert.same({ 1 }, state.state.bias.momentum_buffer:tolist())
    assert.same({ "weight", "bias" }, state.param_groups[1].params)
  end)

  it("gives its state without copies to who copies it", function()
    local net = Net()
    local optimizer = optim.SGD(net:parameters(), { momentum = 0.9 })
    net.bias.grad = lt.ones(1, { dtype = "f64" })
    optimizer:step()
    local own, kept = optimizer:state_dict(true), optimizer:state_dict()
    optimizer:step()
    assert.same({ 1.9 }, own.state.bias.momentum_buffer:tolist())
    assert.same({ 1 }, kept.state.bias.momentum_buffer:tolist())
    own.state.bias.momentum_buffer = nil -- the table is the caller's
    assert.same({ 1.9 }, optimizer:state_dict().state.bias.momentum_buffer:tolist())
  end)

  it("takes the paths in the module that holds it", function()
    local net = lt.Module.adopt { a = Net(), b = Net() }
    local optimizer = optim.SGD {
      { params = net.a:parameters() }, { params = net.b:parameters() },
    }
    assert.same({ "1.weight", "1.bias" }, optimizer.param_groups[2].names)
    optimizer:use_names_of(net)
    assert.same({ "b.weight", "b.bias" }, optimizer.param_groups[2].names)
  end)

  it("resumes exactly from its state", function()
    local function make(params) return optim.Adam(params, { lr = 0.1 }) end
    local whole = run(make)
    local p = parameter(START)
    local first = make({ p })
    for t = 1, 2 do
      p.grad = lt.tensor(GRADS[t], { dtype = "f64" })
      first:step()
    end
    local q = parameter(p:tolist())
    local second = optim.Adam({ q }, { lr = 7 })
    second:load_state_dict(first:state_dict())
    p.grad = lt.tensor(GRADS[1], { dtype = "f64" })
    first:step() -- the state was a copy
    for t = 3, #GRADS do
      q.grad = lt.tensor(GRADS[t], { dtype = "f64" })
      second:step()
      assert.same(whole[t], q:tolist())
    end
  end)

  it("reads what is still in a file into its own state", function()
    local Leaf = { shape = { 2 }, ndim = 1, dtype = "f64" }
    Leaf.__index = Leaf
    function Leaf.read() error "the tensor itself is filled" end
    function Leaf.read_into(leaf, tensor, from)
      assert.equal(0, from)
      leaf.filled = tensor
      tensor:fill_(3)
    end
    local p = parameter(START)
    local from, to = optim.SGD({ p }, { momentum = 0.9 }), optim.SGD({ p }, { momentum = 0.9 })
    p.grad = lt.ones(2, { dtype = "f64" })
    from:step()
    local state, leaf = from:state_dict(), setmetatable({}, Leaf)
    state.state["0"].momentum_buffer = leaf
    to:load_state_dict(state)
    local buffer = to.state[p].momentum_buffer
    assert.same({ 3.0, 3.0 }, buffer:tolist())
    leaf.filled:fill_(4)
    if buffer.device == "cpu" then assert.same({ 4.0, 4.0 }, buffer:tolist()) end -- not a copy
    Leaf.shape = { 3 }
    assert.matches("momentum_buffer of '0' is %[3%], the parameter is %[2%]",
      error_of(to.load_state_dict, to, state))
  end)

  it("refuses the state of other parameters", function()
    local net = Net()
    local state = optim.SGD(net:parameters(), { momentum = 0.9 }):state_dict()
    local other = optim.SGD({ parameter(START) })
    assert.matches("optim%.SGD: load_state_dict: group 1 has other parameters\n"
      .. "  state: bias, weight\n  optimizer: 0", error_of(other.load_state_dict, other, state))
  end)

  it("refuses a state of another shape", function()
    local p, q = parameter(START), parameter({ 1, 2, 3 })
    local from, to = optim.SGD({ p }, { momentum = 0.9 }), optim.SGD({ q }, { momentum = 0.9 })
    p.grad = lt.ones(2, { dtype = "f64" })
    from:step()
    assert.matches("momentum_buffer of '0' is %[2%], the parameter is %[3%]",
      error_of(to.load_state_dict, to, from:state_dict()))
  end)

  it("clips the norm of all gradients together", function()
    local a, b = parameter({ 1 }), parameter({ 1 })
    local optimizer = optim.SGD({ a, b })
    a.grad, b.grad = lt.tensor({ 3 }, { dtype = "f64" }), lt.tensor({ 4 }, { dtype = "f64" })
    local norm = optimizer:clip_gradients(1.0, "norm")
    assert.near(5, norm:item(), 1e-12)
    assert.near(0.6, a.grad:item(), 1e-5)
    assert.near(0.8, b.grad:item(), 1e-5)
  end)

  it("leaves gradients alone whose norm is small enough", function()
    local a = parameter({ 1 })
    a.grad = lt.tensor({ 3 }, { dtype = "f64" })
    optim.SGD({ a }):clip_gradients(5)
    assert.equal(3, a.grad:item())
  end)

  it("clips each number", function()
    local a = parameter({ 1, 1 })
    a.grad = lt.tensor({ -3, 0.5 }, { dtype = "f64" })
    optim.SGD({ a }):clip_gradients(1, "value")
    assert.same({ -1, 0.5 }, a.grad:tolist())
  end)

  it("ends the batch in a manual loop: the next draws differ", function()
    lt.seed(3)
    local p = parameter(START)
    local optimizer = optim.SGD({ p })
    local first = lt.rand(4):tolist()
    optimizer:step()
    assert.not_same(first, lt.rand(4):tolist())
    lt.seed(3)
    assert.same(first, lt.rand(4):tolist())
  end)

  it("may be extended without options", function()
    local Sign = optim.Optimizer:extend("Sign")
    function Sign:update(group)
      for _, p in ipairs(group.params) do p:sub_(p.grad:sign()) end
    end
    local p = parameter({ 1, -2 })
    local optimizer = Sign({ p })
    p.grad = lt.tensor({ 0.5, -3 }, { dtype = "f64" })
    optimizer:step()
    assert.same({ 0, -1 }, p:tolist())
    assert.equal("optim.Sign: unknown option 'lr'",
      error_of(Sign, { p }, { lr = 1 }):match "optim.*")
  end)
end)
