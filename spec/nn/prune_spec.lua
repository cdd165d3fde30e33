-- spec/nn/prune_spec.lua: nn.utils.prune. Masks are those of torch.nn.utils.prune, of one weight.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn
local prune = nn.utils.prune

local WEIGHT <const> = (lt.arange(12):to "f32" * 0.7):sin():reshape(3, 4)

local function linear(factor)
  local layer = nn.Linear(4, 3)
  layer:load_state_dict { weight = WEIGHT * (factor or 1), bias = lt.zeros(3) }
  return layer
end

-- The mask as digits.
local function mask(layer)
  local list = layer.weight_mask:flatten():tolist()
  for i, value in ipairs(list) do list[i] = ("%d"):format(value) end
  return table.concat(list)
end

describe("nn.utils.prune", function()
  it("prunes what is left by the methods in turn", function()
    local layer = linear()
    assert.equal(layer, prune.l1_unstructured(layer, "weight", 0.3))
    assert.equal("011100111011", mask(layer))
    prune.l1_unstructured(layer, "weight", 3)
    assert.equal("001100110001", mask(layer))
    prune.ln_structured(layer, "weight", 1, 2, 1)
    assert.equal("001100110000", mask(layer))
    prune.ln_structured(layer, "weight", { amount = 0.5, n = 1, dim = 2 })
    assert.equal("001000100000", mask(layer))
    assert.same({ "bias", "weight_orig" }, layer:parameters().names)
    assert.is_not_nil(layer:state_dict().weight_mask)
  end)

  it("takes any norm, and scores of importance", function()
    assert.equal("000000001111", mask(prune.ln_structured(linear(), "weight", 0.5, math.huge, 1)))
    assert.equal("111111111100", mask(prune.l1_unstructured(linear(), "weight", 2,
      lt.arange(12, 0, -1):to("f32"):reshape(3, 4))))
    local conv = nn.Conv2d(2, 3, 2)
    conv:load_state_dict { bias = lt.zeros(3),
      weight = (lt.arange(24):to "f32" * 0.7):sin():reshape(3, 2, 2, 2) }
    assert.equal("111111110000000011111111",
      mask(prune.ln_structured(conv, "weight", 1, "fro", 1)))
  end)

  it("prunes several parameters together", function()
    local a, b = linear(), linear(2)
    local pairs_of = { { a, "weight" }, { b, "weight" } }
    prune.global_unstructured(pairs_of, prune.L1Unstructured, { amount = 0.4 })
    assert.equal("001100110001 011101111011", mask(a) .. " " .. mask(b))
    prune.global_unstructured(pairs_of, prune.L1Unstructured, { amount = 4 })
    assert.equal("001000000001 011100111011", mask(a) .. " " .. mask(b))
  end)

  it("prunes at random", function()
    local layer = prune.random_unstructured(linear(), "weight", 0.25)
    assert.equal(9, layer.weight_mask:sum():item())
    prune.random_structured(linear(), "weight", 2, -1)
    assert.equal(6, prune.random_structured(linear(), "weight", 2, -1).weight_mask:sum():item())
  end)

  it("hands gradients to what is left", function()
    local layer = prune.custom_from_mask(linear(), "weight", lt.eye(3, 4))
    layer(lt.ones(2, 4)):square():sum():backward()
    local got = layer.weight_orig.grad:flatten():tolist()
    for i, want in ipairs { 0, 0, 0, 0, 0, -1.4031329, 0, 0, 0, 0, 2.6279464, 0 } do
      assert.near(want, got[i], 1e-5)
    end
  end)

  it("is removed, with the zeros left and the same parameter", function()
    local layer = linear()
    local weight = layer.weight
    local net = nn.Sequential(prune.l1_unstructured(layer, "weight", 0.3))
    assert.is_true(prune.is_pruned(net))
    assert.equal(layer, prune.remove(layer, "weight"))
    assert.is_false(prune.is_pruned(net))
    assert.equal(weight, layer.weight)
    assert.equal(4, layer.weight:eq(0):sum():item())
    assert.same({ "weight", "bias" }, layer:parameters().names)
    assert.equal("Linear(4, 3)", tostring(layer))
    assert.is_nil(layer:state_dict().weight_mask)
  end)

  it("stays with copies and other parametrizations of a module", function()
    local layer = nn.utils.weight_norm(prune.identity(linear(), "bias"))
    prune.custom_from_mask(layer, "bias", lt.zeros(3))
    local copy = nn.deepcopy(layer):to "f64"
    prune.remove(layer, "bias")
    nn.utils.remove_parametrizations(layer, "weight")
    assert.equal("Linear(4, 3)", tostring(layer))
    assert.is_true(prune.is_pruned(copy))
    copy.bias = lt.ones(3)
    assert.same({ 0.0, 0.0, 0.0 }, copy.bias:tolist())
    assert.same({ 1.0, 1.0, 1.0 }, copy.bias_orig:tolist())
  end)

  it("takes methods of a script", function()
    local First = prune.BasePruningMethod:extend "First"
    function First:init(n) self.n = n end
    function First:compute_mask(_, default_mask)
      local new = default_mask:clone()
      new:narrow(1, 1, self.n):zero_()
      return new
    end
    local layer = prune.custom_from_mask(linear(), "weight", lt.eye(3, 4))
    First:apply(layer, "weight", 2)
    assert.equal("000000000010", mask(layer))
  end)

  it("names what is wrong", function()
    local layer = linear()
    assert.matches("l1_unstructured: Linear has no parameter 'w'",
      error_of(prune.l1_unstructured, layer, "w", 1))
    assert.matches("L1Unstructured: amount must be a number of elements, or a part of them from "
      .. "0.0 to 1.0: got 1.5", error_of(prune.l1_unstructured, layer, "weight", 1.5), 1, true)
    assert.matches("L1Unstructured: amount = 13 is more than the 12 that are left",
      error_of(prune.l1_unstructured, layer, "weight", 13), 1, true)
    assert.matches("LnStructured: dim must be a dim of [3, 4]: got 3",
      error_of(prune.ln_structured, layer, "weight", 1, 2, 3), 1, true)
    assert.matches("option 'amount' is required", error_of(prune.ln_structured, layer, "weight"))
    assert.matches("class Linear has no pruned parameter 'weight'",
      error_of(prune.remove, layer, "weight"))
    assert.matches("parameters must be a list of pairs", error_of(prune.global_unstructured,
      { layer }, prune.L1Unstructured, { amount = 1 }))
    assert.matches("arguments must be a table: got 0.5", error_of(prune.global_unstructured,
      { { layer, "weight" } }, prune.L1Unstructured, 0.5))
    assert.matches("CustomFromMask: the mask must be a tensor [3, 4]: got",
      error_of(prune.custom_from_mask, layer, "weight", lt.ones(3)), 1, true)
    assert.equal("Linear(4, 3)", tostring(layer))
  end)
end)
