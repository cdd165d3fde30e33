-- spec/nn/clip_grad_spec.lua: nn.clip_grad_norm_ and nn.clip_grad_value_.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

-- Two parameters whose gradients are { 3, -4 } and { 12 }.
local function parameters(first)
  local w, v = lt.parameter(lt.zeros(2)), lt.parameter(lt.zeros(1))
  w.grad, v.grad = lt.tensor { first or 3.0, -4.0 }, lt.tensor { 12.0 }
  return { w, v }
end

describe("clip_grad_norm_", function()
  it("limits the norm of norm_type, and gives the norm before", function()
    for _, case in ipairs { { nil, 13 }, { 2, 13 }, { 1, 19 }, { math.huge, 12 }, { "inf", 12 },
      { 3, (27 + 64 + 1728) ^ (1 / 3) } } do
      local list = parameters()
      local norm = nn.clip_grad_norm_(list, 1.0, case[1] and { norm_type = case[1] })
      assert.near(case[2], norm:item(), 1e-5)
      assert.near(12 / case[2], list[2].grad:item(), 1e-5)
      assert.near(-4 / case[2], list[1].grad[2]:item(), 1e-5)
    end
  end)

  it("takes one parameter, and none", function()
    assert.equal(12, nn.clip_grad_norm_(parameters()[2], 100.0):item())
    assert.equal(0, nn.clip_grad_norm_({}, 1.0):item())
  end)

  it("raises for a norm that is not finite when asked to", function()
    local list = parameters(0 / 0)
    assert.equal(0, list[2].grad:isnan():sum():item())
    assert.matches("the total norm of 2 gradients is %-?nan",
      error_of(nn.clip_grad_norm_, list, 1.0, { error_if_nonfinite = true }))
  end)

  it("checks what it is given", function()
    assert.matches("clip_grad_norm_: unknown option 'norm_typ'; did you mean 'norm_type'%?",
      error_of(nn.clip_grad_norm_, {}, 1, { norm_typ = 1 }))
    assert.matches("norm_type must be a number or 'inf'",
      error_of(nn.clip_grad_norm_, {}, 1, { norm_type = "max" }))
    assert.matches("clip_grad_norm_: max_norm must be a number: got nil",
      error_of(nn.clip_grad_norm_, {}))
    assert.matches("element 1 of the list must be a tensor: got 3",
      error_of(nn.clip_grad_norm_, { 3 }, 1))
  end)
end)

describe("clip_grad_value_", function()
  it("cuts each number", function()
    local list = parameters()
    nn.clip_grad_value_(list, 3.5)
    assert.same({ 3, -3.5 }, list[1].grad:tolist())
    assert.same({ 3.5 }, list[2].grad:tolist())
    assert.matches("one argument too many", error_of(nn.clip_grad_value_, list, 1, {}))
  end)
end)
