-- spec/optim/grad_scaler_spec.lua: lt.GradScaler: PyTorch's rules, and steps that count nothing.
local c = require "ltrain.c"
local lt = require "ltrain"

local INF <const> = math.huge

-- A parameter of one element with a gradient; the optimizers that the specs use.
local function parameter(value) return lt.parameter(lt.tensor { value or 1.0 }) end

local function give(p, gradient) p.grad = lt.tensor { gradient } end

local Own = lt.optim.SGD:extend "Own"
function Own:update(group)
  for _, p in ipairs(group.params) do p:sub_(p.grad * group.lr) end
end

local OPTIMIZERS <const> = {
  SGD = function(p) return lt.optim.SGD(p, { lr = 0.1 }) end,
  momentum = function(p) return lt.optim.SGD(p, { lr = 0.1, momentum = 0.9, dampening = 0.5 }) end,
  Adam = function(p) return lt.optim.Adam(p, { lr = 0.1 }) end,
  AdamW = function(p) return lt.optim.AdamW(p, { lr = 0.1 }) end,
  ["an update of its own"] = function(p) return Own(p, { lr = 0.1 }) end,
}

local function error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return message
end

-- What a list of gradients does to a weight and the optimizer's state.
local function train(optimizer_of, gradients)
  local p = parameter()
  local optimizer = optimizer_of { p }
  for _, gradient in ipairs(gradients) do
    give(p, gradient)
    optimizer:step()
  end
  return p:item(), optimizer:state_dict().state
end

local function as_numbers(state)
  local numbers = {}
  for name, slots in pairs(state) do
    for slot, value in pairs(slots) do
      numbers[name .. slot] = type(value) == "userdata" and value:item() or value
    end
  end
  return numbers
end

describe("GradScaler", function()
  it("scales a loss, and tables of them", function()
    local scaler = lt.GradScaler { init_scale = 8 }
    local loss = scaler:scale(lt.tensor(3.0))
    local both = scaler:scale { a = lt.tensor(1.0), b = { lt.tensor(2.0) } }
    assert.same({ 24.0, 8.0, 16.0 }, { loss:item(), both.a:item(), both.b[1]:item() })
    assert.matches("GradScaler: scale: outputs must be tensors: got 3", error_of(scaler.scale,
      scaler, { 3 }), 1, true)
  end)

  for name, optimizer_of in pairs(OPTIMIZERS) do
    it("makes the steps of unscaled gradients, and counts none that overflow: " .. name, function()
      local p = parameter()
      local optimizer, scaler = optimizer_of { p }, lt.GradScaler { init_scale = 4 }
      scaler:scale(lt.tensor(1.0))
      local scale = 4.0
      for _, gradient in ipairs { INF, 1.0, -2.0, 0 / 0, -INF, 3.0, INF } do
        give(p, gradient * scale)
        scaler:step(optimizer)
        scaler:update()
        if gradient - gradient ~= 0 then scale = scale / 2 end
        assert.equal(scale, scaler:get_scale())
      end
      local weight, state = train(optimizer_of, { 1.0, -2.0, 3.0 })
      assert.equal(weight, p:item())
      assert.same(as_numbers(state), as_numbers(optimizer:state_dict().state))
      give(p, 0.5)
      optimizer:step() -- without the scaler
      assert.equal((train(optimizer_of, { 1.0, -2.0, 3.0, 0.5 })), p:item())
    end)
  end

  it("grows after growth_interval steps without an overflow, and stays finite", function()
    local p = parameter()
    local optimizer = lt.optim.SGD { p }
    local scaler = lt.GradScaler { init_scale = 2 ^ 10, growth_interval = 2 }
    scaler:scale(lt.tensor(1.0))
    local scales = {}
    for i, gradient in ipairs { 1.0, INF, 1.0, 1.0, 1.0, 1.0, 1.0, INF } do
      give(p, gradient)
      scaler:step(optimizer)
      scaler:update()
      scales[i] = math.tointeger(scaler:get_scale())
    end
    assert.same({ 1024, 512, 512, 1024, 1024, 2048, 2048, 1024 }, scales)
    scaler:update(3e38)
    for _ = 1, 2 do
      give(p, 1.0)
      scaler:step(optimizer)
      scaler:update()
    end
    assert.near(1, scaler:get_scale() / 3e38, 1e-6)
    assert.equal(0, scaler:state_dict()._growth_tracker)
  end)

  it("unscales once, so that gradients can be clipped before the step", function()
    local p = parameter()
    local optimizer, scaler = lt.optim.SGD({ p }, { lr = 1.0 }), lt.GradScaler { init_scale = 16 }
    local loss = scaler:scale(p:sum() * 3)
    loss:backward()
    assert.equal(48.0, p.grad:item())
    scaler:unscale_(optimizer)
    assert.equal(3.0, p.grad:item())
    local norm = lt.nn.clip_grad_norm_({ p }, 1.5)
    assert.equal(3.0, norm:item())
    scaler:step(optimizer)
    assert.near(1 - 1.5, p:item(), 1e-5)
  end)

  it("takes the finding of every optimizer of an iteration", function()
    local a, b = parameter(), parameter()
    local first, second = lt.optim.SGD({ a }, { lr = 1.0 }), lt.optim.SGD({ b }, { lr = 1.0 })
    local scaler = lt.GradScaler { init_scale = 4 }
    scaler:scale(lt.tensor(1.0))
    give(a, 4.0)
    give(b, INF)
    scaler:step(first)
    scaler:step(second)
    scaler:update()
    assert.same({ 0.0, 1.0, 2.0 }, { a:item(), b:item(), scaler:get_scale() })
  end)

  it("says what is out of order", function()
    local p = parameter()
    local optimizer, scaler = lt.optim.SGD { p }, lt.GradScaler()
    assert.matches("GradScaler: update: no gradients were unscaled since the last update",
      error_of(scaler.update, scaler))
    give(p, 1.0)
    scaler:unscale_(optimizer)
    assert.matches("unscale_ was called on this optimizer already since the last update",
      error_of(scaler.unscale_, scaler, optimizer))
    scaler:step(optimizer)
    assert.matches("unscale_ is called after step: call update first",
      error_of(scaler.unscale_, scaler, optimizer))
    assert.matches("step was called on this optimizer already since the last update",
      error_of(scaler.step, scaler, optimizer))
    scaler:update()
    assert.matches("step: a closure is not supported", error_of(scaler.step, scaler, optimizer,
      function() end))
    assert.matches("GradScaler: an optimizer is needed: got 3", error_of(scaler.step, scaler, 3))
    local half = lt.parameter(lt.ones({ 1 }, { dtype = "f16" }))
    half.grad = lt.ones({ 1 }, { dtype = "f16" })
    assert.matches("GradScaler: the gradient of '0' is f16", error_of(scaler.unscale_, scaler,
      lt.optim.SGD { half }))
    assert.matches("GradScaler: unknown option 'init_scal'; did you mean 'init_scale'?",
      error_of(lt.GradScaler, { init_scal = 2 }), 1, true)
  end)

  it("on an asynchronous device waits for nothing", function()
    local p = lt.parameter(lt.ones({ 4 }, { device = "fake:0" }))
    local optimizer, scaler = lt.optim.Adam { p }, lt.GradScaler()
    local function iterate()
      optimizer:zero_grad()
      local loss = scaler:scale(p:square():sum())
      loss:backward()
      scaler:step(optimizer)
      scaler:update()
    end
    iterate()
    local before = c.runtime.fake_counts().waits
    for _ = 1, 3 do iterate() end -- later it is far ahead: the fake device is in no hurry
    assert.equal(before, c.runtime.fake_counts().waits)
    assert.equal(4, optimizer:state_dict().state["0"].step)
  end)

  it("keeps its state", function()
    local p = parameter()
    local optimizer = lt.optim.SGD { p }
    local scaler = lt.GradScaler { init_scale = 64, growth_interval = 3 }
    scaler:scale(lt.tensor(1.0))
    for _, gradient in ipairs { INF, 1.0, 1.0 } do
      give(p, gradient)
      scaler:step(optimizer)
      scaler:update()
    end
    local state = scaler:state_dict()
    assert.same({ scale = 32.0, growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 3,
      _growth_tracker = 2 }, state)
    local other = lt.GradScaler()
    other:load_state_dict(state)
    assert.same(state, other:state_dict())
    give(p, 1.0)
    other:step(optimizer)
    other:update()
    assert.equal(64.0, other:get_scale())
    assert.matches("GradScaler: load_state_dict: there is no state",
      error_of(other.load_state_dict, other, {}))
  end)

  it("does nothing when it is not enabled", function()
    local p = parameter()
    local optimizer, scaler = lt.optim.SGD({ p }, { lr = 1.0 }), lt.GradScaler { enabled = false }
    local loss = lt.tensor(2.0)
    assert.equal(loss, scaler:scale(loss))
    give(p, 0.25)
    scaler:unscale_(optimizer)
    scaler:step(optimizer)
    scaler:update()
    assert.same({ 0.75, 1.0 }, { p:item(), scaler:get_scale() })
    assert.same({}, scaler:state_dict())
    assert.is_false(scaler:is_enabled())
    assert.is_true(lt.GradScaler():is_enabled())
  end)
end)
