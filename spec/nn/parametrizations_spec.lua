-- spec/nn/parametrizations_spec.lua: nn.utils.weight_norm, spectral_norm, parameters as a vector.
-- Numbers are PyTorch 2.15's, of the same weights.
-- tags: slow
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn
local utils = nn.utils

local function near(want, got)
  got = got:detach():flatten():tolist()
  assert.equal(#want, #got)
  for i, value in ipairs(want) do assert.near(value, got[i], 2e-6) end
end

local WEIGHT <const> = (lt.arange(6):to "f32" * 0.7):sin():reshape(2, 3)
local X <const> = (lt.arange(6):to "f32" * 0.3):cos():reshape(2, 3)

-- A layer with that weight, and how that of PyTorch is made.
local function linear()
  local layer = nn.Linear(3, 2)
  layer:load_state_dict{weight = WEIGHT, bias = lt.zeros(2)}
  return layer
end

local function names(layer)
  local list = {}
  for name in pairs(layer:state_dict()) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function backward(layer)
  local y = layer(X)
  y:square():sum():backward()
  return y
end

describe("nn.utils.weight_norm", function()
  it("changes nothing but the parameters", function()
    local layer = linear()
    assert.equal(layer, utils.weight_norm(layer))
    near(WEIGHT:flatten():tolist(), layer.weight)
    assert.same({"bias", "parametrizations.weight.original0", "parametrizations.weight.original1"},
      layer:parameters().names)
    assert.is_true(utils.is_parametrized(layer) and utils.is_parametrized(layer, "weight"))
    assert.is_false(utils.is_parametrized(layer, "bias") or utils.is_parametrized(linear()))
    assert.is_true(layer:is_a(nn.Linear))
    assert.equal("ParametrizedLinear(3, 2\n  (parametrizations): Parametrizations(\n"
      .. "    (weight): WeightNorm()\n  )\n)", tostring(layer))
  end)

  it("trains length and direction as PyTorch does", function()
    local layer = utils.weight_norm(linear())
    local state = layer:state_dict()
    state["parametrizations.weight.original0"] = lt.tensor{{2.0}, {0.5}}
    layer:load_state_dict(state)
    near({2.4271195, 0.45130649, 0.51496667, 0.31972522}, backward(layer))
    near({0, 1.0943621, 1.6740286, 0.43589842, 0.16916038, -0.17713645}, layer.weight)
    local p = layer.parametrizations.weight
    near({6.1560993, 1.2236072}, p.original0.grad)
    near({9.333684, 2.7895699, -1.8236251, 0.11784326, 0.34340119, 0.61792797}, p.original1.grad)
  end)

  it("has lengths along any dim, or one for all", function()
    local one = utils.weight_norm(linear(), {dim = false})
    near({1.5384}, ((one.parametrizations.weight.original0 * 1e4):round() / 1e4))
    assert.same({1, 3}, utils.weight_norm(linear(),
      {dim = 2}).parametrizations.weight.original0.shape)
    local bias = utils.weight_norm(linear(), {name = "bias"})
    assert.same({2}, bias.parametrizations.bias.original0.shape)
    local conv = nn.Conv2d(2, 3, 2)
    local before = conv.weight:detach():clone()
    near(before:flatten():tolist(), utils.weight_norm(conv).weight)
    assert.same({3, 1, 1, 1}, conv.parametrizations.weight.original0.shape)
  end)

  it("loads what PyTorch's first weight_norm saved, as weight_g and weight_v", function()
    local net = nn.Sequential(utils.weight_norm(linear()))
    local state = {["0.bias"] = lt.zeros(2), ["0.weight_g"] = lt.tensor{{2.0}, {0.5}},
      ["0.weight_v"] = WEIGHT}
    net:load_state_dict(state)
    near({0, 1.0943621, 1.6740286, 0.43589842, 0.16916038, -0.17713645}, net[1].weight)
    state["0.weight_g"] = nil
    assert.matches("missing: 0.parametrizations.weight.original0",
      error_of(net.load_state_dict, net, state))
    assert.matches("unexpected: 0.weight_g", error_of(function()
      nn.Sequential(linear()):load_state_dict{["0.weight"] = WEIGHT, ["0.bias"] = lt.zeros(2),
        ["0.weight_g"] = lt.zeros(2, 1)}
    end))
  end)

  it("takes a new value, copies and moves with its module", function()
    local layer = utils.weight_norm(linear())
    layer.weight = WEIGHT * 3
    near((WEIGHT * 3):flatten():tolist(), layer.weight)
    local twin = nn.deepcopy(layer):to "f64"
    layer.weight = WEIGHT
    assert.equal("f64", twin.weight.dtype)
    near((WEIGHT * 3):flatten():tolist(), twin.weight)
  end)

  it("trains with an optimizer, of two parameters as well", function()
    lt.seed(3)
    local layer = linear()
    layer:load_state_dict{weight = WEIGHT, bias = lt.tensor{3.0, -4}}
    utils.weight_norm(utils.weight_norm(layer), {name = "bias"})
    local sgd = lt.optim.SGD(layer:parameters(), {lr = 0.05})
    local first, last
    for _ = 1, 20 do
      local loss = (layer(X) - 1):square():mean()
      sgd:zero_grad()
      loss:backward()
      sgd:step()
      first, last = first or loss:item(), loss:item()
    end
    assert.is_true(last < first * 0.7)
  end)

  it("names what is wrong", function()
    local layer = utils.weight_norm(linear())
    assert.matches("weight_norm: 'weight' of ParametrizedLinear is parametrized already",
      error_of(utils.weight_norm, layer))
    assert.matches("weight_norm: Linear has no parameter 'wieght'",
      error_of(utils.weight_norm, linear(), {name = "wieght"}))
    assert.matches("weight_norm: needs a module: got 3", error_of(utils.weight_norm, 3))
    assert.matches("weight_norm: dim must be a dim of .*%[2, 3%], or false: got 3",
      error_of(utils.weight_norm, linear(), {dim = 3}))
    assert.matches("weight_norm: unknown option 'dimension'", error_of(utils.weight_norm, linear(),
      {dimension = 1}))
  end)
end)

describe("nn.utils.spectral_norm", function()
  it("divides by the largest singular value, as PyTorch does", function()
    local layer = utils.spectral_norm(linear())
    assert.same({"bias", "parametrizations.weight.0._u", "parametrizations.weight.0._v",
      "parametrizations.weight.original"}, names(layer))
    local state = layer:state_dict()
    state["parametrizations.weight.0._u"] = lt.tensor{0.6, 0.8}
    state["parametrizations.weight.0._v"] = lt.tensor{0, 0.6, 0.8}
    layer:load_state_dict(state)
    near({1.206758, 0.75484872, 0.25604019, 0.53476775}, backward(layer))
    near({2.5049019, 0.0055043697, -1.6948199, 1.8232453, 1.6877381, 1.347276},
      layer.parametrizations.weight.original.grad)
    state = layer:state_dict()
    near({0.99771082, -0.067624502}, state["parametrizations.weight.0._u"])
    near({-0.049303487, 0.52373523, 0.85045314}, state["parametrizations.weight.0._v"])
    near({0, 0.54411423, 0.83232307, 0.7290774, 0.2829352, -0.29627588}, layer:eval().weight)
  end)

  it("keeps its vectors in evaluation mode", function()
    local layer = utils.spectral_norm(linear()):eval()
    local u = layer:state_dict()["parametrizations.weight.0._u"]:clone()
    local first = layer(X)
    assert.same(first:tolist(), layer(X):tolist())
    assert.same(u:tolist(), layer:state_dict()["parametrizations.weight.0._u"]:tolist())
  end)

  it("gives the largest singular value 1, of convolutions as well", function()
    lt.seed(1)
    local conv = nn.Conv2d(2, 3, 2)
    local weight = conv.weight:detach():flatten(2)
    utils.spectral_norm(conv, {n_power_iterations = 50})
    local v = lt.ones(8) / math.sqrt(8) -- the largest singular value, by power iteration
    for _ = 1, 200 do
      v = weight:t():matmul(weight:matmul(v))
      v = v / v:norm()
    end
    local sigma = weight:matmul(v):norm()
    near((weight / sigma):flatten():tolist(), conv.weight)
    local turned = utils.spectral_norm(nn.Conv2d(2, 3, 2), {dim = 2})
    assert.same({2}, turned:state_dict()["parametrizations.weight.0._u"].shape)
    near({0.6, 0.8}, (function()
      local layer = linear()
      layer:load_state_dict{weight = WEIGHT, bias = lt.tensor{3.0, 4.0}}
      return utils.spectral_norm(layer, {name = "bias"}).bias
    end)())
  end)

  it("names what is wrong", function()
    assert.matches("spectral_norm: dim must be a dim of .*%[2, 3%]: got 3",
      error_of(utils.spectral_norm, linear(), {dim = 3}))
    assert.matches("spectral_norm: n_power_iterations must be at least 1",
      error_of(utils.spectral_norm, linear(), {n_power_iterations = 0}))
  end)
end)

describe("nn.utils.remove_parametrizations", function()
  it("leaves the value, or that from which it was computed", function()
    local layer = utils.weight_norm(linear())
    layer.weight = WEIGHT * 2
    assert.equal(layer, utils.remove_parametrizations(layer, "weight"))
    assert.same({"weight", "bias"}, layer:parameters().names)
    assert.equal("Linear(3, 2)", tostring(layer))
    near((WEIGHT * 2):flatten():tolist(), layer.weight)
    assert.is_true(layer.weight.requires_grad and layer.weight.is_leaf)
    local spectral = utils.spectral_norm(linear())
    utils.remove_parametrizations(spectral, "weight", {leave_parametrized = false})
    near(WEIGHT:flatten():tolist(), spectral.weight)
  end)

  it("leaves others", function()
    local layer = linear()
    layer:load_state_dict{weight = WEIGHT, bias = lt.tensor{3.0, -4}}
    utils.weight_norm(utils.weight_norm(layer), {name = "bias"})
    utils.remove_parametrizations(layer, "weight")
    assert.is_true(utils.is_parametrized(layer, "bias"))
    near({3, -4}, layer.bias)
    utils.remove_parametrizations(layer, "bias")
    assert.is_false(utils.is_parametrized(layer))
  end)

  it("names what is wrong", function()
    local layer = utils.weight_norm(linear())
    assert.matches("remove_parametrizations: .* has no parametrized 'bias'",
      error_of(utils.remove_parametrizations, layer, "bias"))
    assert.matches("remove_parametrizations: 'weight' is computed from several parameters: only "
      .. "its value can be left", error_of(utils.remove_parametrizations, layer, "weight",
      {leave_parametrized = false}))
  end)
end)

describe("parameters as a vector", function()
  it("goes there and back", function()
    local layer = linear()
    local vector = utils.parameters_to_vector(layer:parameters())
    near({WEIGHT[1][1]:item(), WEIGHT[1][2]:item()}, vector:narrow(1, 1, 2))
    assert.same({8}, vector.shape)
    vector:square():sum():backward()
    near((WEIGHT * 2):flatten():tolist(), layer.weight.grad)
    utils.vector_to_parameters(lt.arange(8):to "f32", layer:parameters())
    assert.same({{0, 1, 2}, {3, 4, 5}}, layer.weight:tolist())
    assert.same({6, 7}, layer.bias:tolist())
    assert.is_true(layer.weight.is_leaf and layer.weight.requires_grad)
  end)

  it("names what is wrong", function()
    local layer = linear()
    assert.matches("vector_to_parameters: needs a vector of the 8 elements of the parameters: "
      .. "got .*%[7%]", error_of(utils.vector_to_parameters, lt.zeros(7), layer:parameters()))
    assert.matches("parameters_to_vector: needs a list of tensors, like net:parameters%(%): got",
      error_of(utils.parameters_to_vector, layer))
    assert.matches("parameters_to_vector: element 2 of the list must be a tensor: got 3",
      error_of(utils.parameters_to_vector, {lt.zeros(1), 3}))
  end)
end)

describe("nn.utils.parametrizations.orthogonal", function()
  local orthogonal <const> = utils.parametrizations.orthogonal

  -- How far the columns, or rows, of a matrix are from orthonormal ones.
  local function distance(w)
    if w.shape[1] < w.shape[2] then w = w:t() end
    return (w:t():matmul(w) - lt.eye(w.shape[2], { dtype = "f64" })):abs():max():item()
  end

  it("keeps the parameter orthogonal, whatever is trained", function()
    for _, map in ipairs { "matrix_exp", "cayley", "householder" } do
      for _, shape in ipairs { { 4, 4 }, { 3, 5 }, { 5, 3 } } do
        local layer = orthogonal(nn.Linear(shape[1], shape[2], false):to "f64", "weight", map)
        assert.near(0, distance(layer.weight), 1e-13)
        local before = layer.weight:detach()
        local sgd = lt.optim.SGD(layer:parameters(), { lr = 0.1 })
        for _ = 1, 3 do
          sgd:zero_grad();
          (layer.weight * lt.arange(layer.weight:numel()):reshape(layer.weight.shape)):sum()
            :backward()
          sgd:step()
        end
        assert(not lt.equal(before, layer.weight), map)
        assert.near(0, distance(layer.weight), 1e-13)
        layer.weight = before
        assert.near(0, (layer.weight - before):abs():max():item(), 1e-13)
      end
    end
    assert.same({ "parametrizations.weight.0.base", "parametrizations.weight.original" },
      names(orthogonal(nn.Linear(3, 3, false))))
    local values = orthogonal(nn.Linear(3, 2, false):to "f64", { use_trivialization = false })
    local q = lt.linalg.qr(lt.randn({ 3, 2 }, { dtype = "f64" })):t()
    values.weight = q
    assert.near(0, (values.weight - q):abs():max():item(), 1e-13)
  end)

  it("has PyTorch's values and gradients of the same original", function()
    local cases = {
      { "matrix_exp", 3, 3, { 0.5752554972244757, -0.6538146103806521, -0.49153592764498666,
        -0.34558421967940495, 0.35039076046096346, -0.8705158597591229, 0.7413856351600007,
        0.6706360937471116, -0.024383800811558443 }, { 0, 0, 0, -0.31033854840845976, 0, 0,
        -8.904071235556104, -12.879531505646655, 0 } },
      { "cayley", 3, 3, { 0.679245283018868, -0.5283018867924528, -0.5094339622641509,
        -0.22641509433962265, 0.509433962264151, -0.8301886792452831, 0.6981132075471698,
        0.6792452830188679, 0.22641509433962265 }, { 0, 0, 0, 0.4442862228551092, 0, 0,
        -4.562477750088998, -7.438946244215023, 0 } },
      { "matrix_exp", 3, 2, { 0.883237616656339, -0.1751435750154915, -0.1751435750154915,
        0.7372846374767629, 0.4349897017792753, 0.6524845526689129 }, { 0, 0, 1.220266553589533, 0,
        1.2294569530209456, -0.10297678419655565 } },
      { "householder", 3, 2, { -0.6, -0.768, 0, 0.28, -0.8, 0.576 }, { 0, 0, -10.112, 0, -12.736,
        -4.1984 } },
      { "householder", 2, 3, { -0.8823529411764706, 0.47058823529411764, 0, 0.13176470588235295,
        0.24705882352941178, 0.96 }, { 0, -4.827681660899653, -9.825882352941175, 0, 0,
        -5.583811764705882 } },
    }
    for _, case in ipairs(cases) do
      local map, n, k, weight, gradient = table.unpack(case)
      local layer = orthogonal(nn.Linear(k, n, false):to "f64", "weight", map, map ~= "householder")
      local x = (lt.arange(n * k):to "f64":reshape(n, k) - 2) / 4
      if map == "householder" then
        x = x * (1 - lt.eye(n, k, { dtype = "f64" }))
        x[{ 1, 1 }], x[{ 2, 2 }] = 1, -1
      end
      local state = { ["parametrizations.weight.original"] = x }
      if map ~= "householder" then
        state["parametrizations.weight.0.base"] = lt.eye(3, { dtype = "f64" })
      end
      layer:load_state_dict(state)
      near(weight, layer.weight)
      local w = lt.arange(n * k):to "f64":reshape(n, k) + 1;
      (layer.weight * w):sum():backward()
      near(gradient, layer.parametrizations.weight.original.grad)
      local below, signs = lt.ones_like(x):tril(-1), x * lt.eye(n, k, { dtype = "f64" })
      if n < k then below = lt.ones_like(x):triu(1) end
      assert(lt.gradcheck(function(original) -- signs do not change by a little
        return layer.parametrizations.weight[1]:forward(original * below + signs)
      end, { x:detach():requires_grad_() }))
    end
  end)

  it("takes matrices in a batch", function()
    for _, map in ipairs { "matrix_exp", "cayley", "householder" } do
      for _, shape in ipairs { { 2, 3, 3 }, { 2, 3, 2 }, { 2, 2, 2, 4 } } do
        local layer = nn.Module()
        layer.weight = lt.parameter(lt.randn(shape, { dtype = "f64" }))
        local start = layer.weight:detach():clone()
        orthogonal(layer, "weight", map)
        assert.same(shape, layer.weight.shape)
        for k = 1, shape[1] do -- each as it would be alone
          local one = nn.Module()
          one.weight = lt.parameter(start[k]:clone())
          orthogonal(one, "weight", map)
          local w, n = layer.weight[k], #shape - 1
          if w.shape[n - 1] < w.shape[n] then w = w:transpose(-2, -1) end
          local unit = w:transpose(-2, -1):matmul(w) - lt.eye(w.shape[n], { dtype = "f64" })
          assert.near(0, unit:abs():max():item(), 1e-13)
          if shape[#shape - 1] == shape[#shape] then
            assert.near(0, (one.weight - layer.weight[k]):abs():max():item(), 1e-13)
          end
        end
      end
    end
  end)

  it("reads the state of PyTorch's", function() -- torch.manual_seed(0), Linear(3, 3).double()
    local function f64(list) return lt.tensor(list, { dtype = "f64" }) end
    local layer = orthogonal(nn.Linear(3, 3):to "f64")
    layer:load_state_dict {
      bias = f64 { 0.1527741253376007, -0.1744827926158905, -0.11348707973957062 },
      ["parametrizations.weight.original"] = f64 { { -1.0, 0.10000000149011612,
        0.20000000298023224 }, { 0.30000001192092896, -0.5999999940395355, 0.5 },
        { 0.6000000238418579, 0.699999988079071, -0.19999998807907104 } },
      ["parametrizations.weight.0.base"] = f64 { { -0.010168942095943878, 0.5581021099571383,
        -0.8297099658784631 }, { -0.9995861051712921, -0.02800431922655222,
        -0.006586080256454463 }, { -0.026911168037386413, 0.829299579745491,
        0.5581558886805869 } },
    }
    local wanted = f64 { { -0.4778761346232305, -0.011874749725946987, -0.8783469646310087 },
      { -0.7974652745852843, 0.42515809334199645, 0.4281235002851579 },
      { 0.36835246135756683, 0.9050412067882567, -0.21264260680088964 } }
    assert.near(0, (layer.weight - wanted):abs():max():item(), 1e-12)
  end)

  it("refuses what it cannot do", function()
    assert.matches("orthogonal: needs a matrix", error_of(orthogonal, nn.Linear(2, 2), "bias"))
    local layer = orthogonal(nn.Linear(2, 2), "weight", "cayley", false)
    assert.matches("a value cannot be assigned", error_of(function() layer.weight = lt.eye(2) end))
    assert.matches("must be 'matrix_exp'", error_of(orthogonal, nn.Linear(2, 2), "weight",
      "qr"))
  end)
end)
