-- spec/nn/layers_spec.lua: layers against sums written out in Lua.

local lt = require "ltrain"
local error_of = require "spec.error_of"

local nn <const> = lt.nn

-- Compares nested tables of numbers.
local function near(expected, actual, tolerance)
  if type(actual) == "userdata" then actual = actual:tolist() end
  if type(expected) == "number" then
    assert.near(expected, actual, tolerance or 1e-5)
    return
  end
  assert.equal(#expected, #actual)
  for i, value in ipairs(expected) do near(value, actual[i], tolerance) end
end

local function set(tensor, values)
  local _ <close> = lt.no_grad()
  tensor:copy_(lt.tensor(values))
end

local function shape_of(tensor)
  return table.concat(tensor.shape, "x")
end

-- Mean and variance of a list of numbers.
local function moments(list)
  local sum, squares = 0, 0
  for _, x in ipairs(list) do sum = sum + x end
  local mean = sum / #list
  for _, x in ipairs(list) do squares = squares + (x - mean) ^ 2 end
  return mean, squares / #list
end

before_each(function() lt.seed(1) end)

describe("lt.nn", function()
  it("names the nearest layer", function()
    local _, message = pcall(function() return nn.Liner end)
    assert.matches("layers_spec%.lua:%d+: nn: there is no 'Liner'; did you mean 'Linear'%?$",
      message)
  end)

  it("lists its names", function()
    local found = false
    for _, name in pairs(nn) do found = found or name == "Conv2d" end
    assert.is_true(found)
  end)
end)

describe("nn.Linear", function()
  it("multiplies by the transposed weight and adds the bias", function()
    local layer = nn.Linear(2, 3)
    set(layer.weight, { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    set(layer.bias, { 0.5, -0.5, 1 })
    near({ { 1 + 20 + 0.5, 3 + 40 - 0.5, 5 + 60 + 1 } }, layer(lt.tensor { { 1.0, 10.0 } }))
  end)

  it("takes any leading dims", function()
    assert.equal("4x5x3", shape_of(nn.Linear(2, 3)(lt.zeros(4, 5, 2))))
  end)

  it("has no bias with bias = false", function()
    local layer = nn.Linear(2, 3, { bias = false })
    assert.same({ "weight" }, layer:parameters().names)
    near({ { 0, 0, 0 } }, layer(lt.zeros(1, 2)))
  end)

  it("begins uniform in +-1/sqrt(inputs), as PyTorch does", function()
    local layer = nn.Linear(100, 100)
    local mean, variance = moments(layer.weight:flatten():tolist())
    assert.near(0, mean, 2e-3)
    assert.near(0.1 ^ 2 / 3, variance, 1e-4) -- bound^2 / 3
    assert.is_true(layer.weight:abs():max():item() <= 0.1)
    assert.is_true(layer.bias:abs():max():item() <= 0.1)
  end)

  it("is the same for the same seed", function()
    local first = nn.Linear(3, 3).weight:tolist()
    lt.seed(1)
    assert.same(first, nn.Linear(3, 3).weight:tolist())
    assert.not_same(first, nn.Linear(3, 3).weight:tolist())
  end)

  it("prints its sizes", function()
    assert.equal("Linear(2, 3)", tostring(nn.Linear(2, 3)))
    assert.equal("Linear(2, 3, {bias = false})", tostring(nn.Linear(2, 3, { bias = false })))
  end)

  it("checks its arguments", function()
    assert.matches("layers_spec%.lua:%d+: nn%.Linear: out_features must be an integer: got nil",
      error_of(function() nn.Linear(3) end))
    assert.matches("nn%.Linear: unknown option 'bia'; did you mean 'bias'%?",
      error_of(nn.Linear, 2, 3, { bia = true }))
  end)

  it("names itself when the shapes do not fit", function()
    local Net = lt.Module:extend("Net")
    function Net:init() self.head = nn.Linear(3, 2) end
    function Net:forward(x)
      local y = self.head(x)
      return y
    end
    local message = error_of(function() Net()(lt.zeros(4, 5)) end)
    assert.matches("layers_spec%.lua:%d+: linear: .*%[4, 5%].*%[2, 3%].* %(in Net%.head%)$",
      message)
  end)
end)

describe("nn.Conv2d", function()
  -- Cross-correlation by its definition, for stride, padding and dilation that are one number.
  local function by_hand(x, w, b, o)
    local stride, padding, dilation = o.stride or 1, o.padding or 0, o.dilation or 1
    local out = {}
    local height = (#x[1] + 2 * padding - dilation * (#w[1][1] - 1) - 1) // stride + 1
    local width = (#x[1][1] + 2 * padding - dilation * (#w[1][1][1] - 1) - 1) // stride + 1
    for k = 1, #w do
      out[k] = {}
      for i = 1, height do
        out[k][i] = {}
        for j = 1, width do
          local sum = b[k]
          for c = 1, #x do
            for p = 1, #w[1][1] do
              for q = 1, #w[1][1][1] do
                local row = x[c][(i - 1) * stride - padding + (p - 1) * dilation + 1]
                local value = row and row[(j - 1) * stride - padding + (q - 1) * dilation + 1]
                sum = sum + (value or 0) * w[k][c][p][q]
              end
            end
          end
          out[k][i][j] = sum
        end
      end
    end
    return out
  end

  for _, o in ipairs { {}, { padding = 1 }, { stride = 2, padding = 1 }, { dilation = 2 } } do
    it(("sums over windows: stride %s, padding %s, dilation %s"):format(o.stride, o.padding,
      o.dilation), function()
      local layer, x = nn.Conv2d(2, 3, 3, o), lt.randn(1, 2, 6, 7)
      near({ by_hand(x[1]:tolist(), layer.weight:tolist(), layer.bias:tolist(), o) }, layer(x),
        1e-4)
    end)
  end

  it("takes height and width apart", function()
    local layer = nn.Conv2d(1, 4, { 3, 1 }, { padding = { 1, 0 }, stride = { 1, 2 } })
    assert.equal("2x4x5x3", shape_of(layer(lt.zeros(2, 1, 5, 6))))
  end)

  it("keeps groups of channels apart", function()
    local layer = nn.Conv2d(4, 4, 1, { groups = 4, bias = false })
    assert.equal("4x1x1x1", shape_of(layer.weight))
    set(layer.weight, { { { { 1 } } }, { { { 2 } } }, { { { 3 } } }, { { { 4 } } } })
    near({ 1, 2, 3, 4 }, layer(lt.ones(1, 4, 1, 1)):flatten())
    assert.matches("nn%.Conv2d: groups must divide both channel counts: got 3 of 4 and 6",
      error_of(nn.Conv2d, 4, 6, 1, { groups = 3 }))
  end)

  it("begins uniform in +-1/sqrt(inputs of a window)", function()
    local layer = nn.Conv2d(4, 64, 5)
    local bound = 1 / math.sqrt(4 * 25)
    local mean, variance = moments(layer.weight:flatten():tolist())
    assert.near(0, mean, 3e-3)
    assert.near(bound ^ 2 / 3, variance, 3e-4)
    assert.is_true(layer.bias:abs():max():item() <= bound)
  end)

  it("prints what differs from the defaults", function()
    assert.equal("Conv2d(1, 32, 3, {padding = 1})", tostring(nn.Conv2d(1, 32, 3, { padding = 1 })))
    assert.equal("Conv2d(1, 2, {3, 1}, {bias = false})",
      tostring(nn.Conv2d(1, 2, { 3, 1 }, { bias = false })))
  end)
end)

describe("nn.MaxPool2d", function()
  local image = lt.tensor { { { { 1.0, 2, 3, 4 }, { 5, 6, 7, 8 }, { 4, 3, 2, 1 } } } }

  it("takes the largest of each window, which do not overlap", function()
    near({ { { { 6, 8 } } } }, nn.MaxPool2d(2)(image))
  end)

  it("takes stride and padding", function()
    near({ { { { 6, 7, 8 }, { 6, 7, 8 } } } }, nn.MaxPool2d(2, { stride = 1 })(image))
    near({ { { { 1, 3, 4 }, { 5, 7, 8 } } } }, nn.MaxPool2d(2, { padding = 1 })(image))
  end)
end)

describe("nn.BatchNorm2d", function()
  local function batch(values) -- four numbers: 2 images of 1 channel, 1 x 2
    return lt.tensor { { { { values[1], values[2] } } }, { { { values[3], values[4] } } } }
  end

  it("scales each channel by the batch, in training", function()
    local layer = nn.BatchNorm2d(1)
    local values = { 1.0, 2.0, 4.0, 9.0 }
    local mean, variance = moments(values)
    local expected = {}
    for i, x in ipairs(values) do expected[i] = (x - mean) / math.sqrt(variance + 1e-5) end
    near(expected, layer(batch(values)):flatten())
    set(layer.weight, { 3 })
    set(layer.bias, { 0.5 })
    for i, x in ipairs(expected) do expected[i] = 3 * x + 0.5 end
    near(expected, layer(batch(values)):flatten(), 1e-4)
  end)

  it("keeps averages with the unbiased variance, and uses them in evaluation", function()
    local layer = nn.BatchNorm2d(1)
    local mean, variance = 0, 1
    for _, values in ipairs { { 1.0, 2.0, 4.0, 9.0 }, { -1.0, 0.0, 1.0, 5.0 } } do
      layer(batch(values))
      local m, v = moments(values)
      mean, variance = 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v * 4 / 3
    end
    near({ mean }, layer.running_mean)
    near({ variance }, layer.running_var)
    assert.equal(2, layer.num_batches_tracked:item())
    layer:eval()
    near({ (7 - mean) / math.sqrt(variance + 1e-5) }, layer(lt.full({ 1, 1, 1, 1 }, 7.0)):flatten())
    assert.equal(2, layer.num_batches_tracked:item())
  end)

  it("counts all batches the same with momentum = false", function()
    local layer = nn.BatchNorm2d(1, { momentum = false })
    layer(batch { 1.0, 1.0, 1.0, 1.0 })
    layer(batch { 3.0, 3.0, 3.0, 3.0 })
    near({ 2 }, layer.running_mean)
  end)

  it("has PyTorch's names", function()
    local layer = nn.BatchNorm2d(3)
    assert.same({ "weight", "bias" }, layer:parameters().names)
    assert.same({ "running_mean", "running_var", "num_batches_tracked" }, layer:buffers().names)
    assert.same({}, nn.BatchNorm2d(3, { affine = false }):parameters().names)
    assert.same({}, nn.BatchNorm2d(3, { track_running_stats = false }):buffers().names)
  end)

  it("refuses what is not a batch of images", function()
    assert.matches("nn.BatchNorm2d: x must be %[B, C, H, W%]: got a tensor %[4, 3%]",
      error_of(nn.BatchNorm2d(3), lt.ones(4, 3)))
  end)

  it("uses the batch in evaluation when no averages are kept", function()
    local layer = nn.BatchNorm2d(1, { track_running_stats = false }):eval()
    near({ -1, -1, 1, 1 }, layer(batch { 1.0, 1.0, 5.0, 5.0 }):flatten(), 1e-4)
  end)

  it("passes gradients to input, weight and bias", function()
    local layer, x = nn.BatchNorm2d(2), lt.randn(2, 2, 3, 3)
    x.requires_grad = true
    layer(x):square():sum():backward()
    assert.is_not_nil(x.grad)
    assert.is_not_nil(layer.weight.grad)
    assert.is_not_nil(layer.bias.grad)
    assert.is_false(layer.running_mean.requires_grad)
  end)
end)

describe("nn.LayerNorm", function()
  it("scales the last dim", function()
    local layer = nn.LayerNorm(4)
    set(layer.weight, { 1, 2, 3, 4 })
    set(layer.bias, { 1, 1, 1, 1 })
    local values = { 1.0, 2.0, 4.0, 9.0 }
    local mean, variance = moments(values)
    local expected = {}
    for i, x in ipairs(values) do expected[i] = i * (x - mean) / math.sqrt(variance + 1e-5) + 1 end
    near({ expected }, layer(lt.tensor { values }))
  end)

  it("scales several dims together", function()
    local layer = nn.LayerNorm({ 2, 2 })
    near({ { { -1, -1 }, { 1, 1 } } }, layer(lt.tensor { { { 0.0, 0 }, { 2, 2 } } }), 1e-4)
    assert.equal("2x2", shape_of(layer.weight))
  end)

  it("leaves weight and bias out with options", function()
    assert.same({}, nn.LayerNorm(4, { elementwise_affine = false }):parameters().names)
    assert.same({ "weight" }, nn.LayerNorm(4, { bias = false }):parameters().names)
    near({ { -1, 1 } }, nn.LayerNorm(2, { elementwise_affine = false })(lt.tensor { { 3.0, 5 } }),
      1e-4)
  end)
end)

describe("nn.Embedding", function()
  it("gives the rows of the ids, which count from 0", function()
    local layer = nn.Embedding(3, 2)
    set(layer.weight, { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    near({ { { 5, 6 }, { 1, 2 } } }, layer(lt.tensor { { 2, 0 } }))
  end)

  it("begins normal", function()
    local mean, variance = moments(nn.Embedding(100, 100).weight:flatten():tolist())
    assert.near(0, mean, 0.05)
    assert.near(1, variance, 0.05)
  end)

  it("keeps the vector of padding_idx at zero", function()
    local layer = nn.Embedding(3, 2, { padding_idx = 1 })
    near({ 0, 0 }, layer.weight[2])
    layer(lt.tensor { 1, 2 }):sum():backward()
    near({ { 0, 0 }, { 0, 0 }, { 1, 1 } }, layer.weight.grad)
    assert.matches("nn%.Embedding: padding_idx must be an id in 0%.%.2: got 3",
      error_of(nn.Embedding, 3, 2, { padding_idx = 3 }))
  end)
end)

describe("nn.Dropout", function()
  it("makes zeros of a share p and scales the rest, in training", function()
    local zeros, wrong = 0, 0
    for _, y in ipairs(nn.Dropout(0.25)(lt.ones(10000)):tolist()) do
      if y == 0 then zeros = zeros + 1 elseif math.abs(y - 4 / 3) > 1e-6 then wrong = wrong + 1 end
    end
    assert.equal(0, wrong)
    assert.near(2500, zeros, 200) -- more than four standard deviations
  end)

  it("does nothing in evaluation", function()
    local x = lt.ones(5)
    assert.is_true(rawequal(x, nn.Dropout(0.5):eval()(x)))
  end)

  it("drops other places each time", function()
    local layer, x = nn.Dropout(0.5), lt.ones(50)
    assert.not_same(layer(x):tolist(), layer(x):tolist())
  end)

  it("checks p", function()
    assert.equal(0.5, nn.Dropout().p)
    assert.matches("nn%.Dropout: p must be at most 1: got 2", error_of(nn.Dropout, 2))
  end)
end)

describe("activations", function()
  local x = lt.tensor { -1.0, 0.0, 1.0 }
  local cases = {
    ReLU = { 0, 0, 1 },
    SiLU = { -1 / (1 + math.exp(1)), 0, 1 / (1 + math.exp(-1)) },
    Tanh = { -0.76159415595576, 0, 0.76159415595576 },
    Sigmoid = { 1 / (1 + math.exp(1)), 0.5, 1 / (1 + math.exp(-1)) },
    GELU = { -0.15865525393146, 0, 0.84134474606854 },
  }
  for name, expected in pairs(cases) do
    it(name .. " computes its function", function() near(expected, nn[name]()(x)) end)
  end

  it("GELU has the tanh approximation", function()
    local inner = math.sqrt(2 / math.pi) * (1 + 0.044715)
    local tanh = (math.exp(2 * inner) - 1) / (math.exp(2 * inner) + 1)
    near(0.5 * (1 + tanh), nn.GELU { approximate = "tanh" }(x)[3])
    assert.equal('GELU({approximate = "tanh"})', tostring(nn.GELU { approximate = "tanh" }))
  end)

  it("Softmax normalises along its dim", function()
    local e = math.exp(1)
    near({ { 1 / (1 + e), e / (1 + e) } }, nn.Softmax(2)(lt.tensor { { 0.0, 1.0 } }))
  end)

  it("Identity gives back what it gets", function()
    assert.is_true(rawequal(x, nn.Identity()(x)))
  end)
end)

describe("nn.Flatten", function()
  it("keeps the batch", function()
    assert.equal("2x12", shape_of(nn.Flatten()(lt.zeros(2, 3, 4))))
  end)

  it("takes a range of dims", function()
    assert.equal("6x4", shape_of(nn.Flatten { start_dim = 1, end_dim = 2 }(lt.zeros(2, 3, 4))))
  end)
end)

describe("nn.Sequential", function()
  it("runs its modules in order and names them as PyTorch does", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    local x = lt.randn(4, 2)
    near(net[3](net[2](net[1](x))):tolist(), net(x))
    assert.same({ "0.weight", "0.bias", "2.weight", "2.bias" }, net:parameters().names)
    assert.equal(3, #net)
  end)

  it("takes a list", function()
    assert.equal(2, #nn.Sequential { nn.ReLU(), nn.ReLU() })
  end)

  it("prints the tree", function()
    assert.equal("Sequential(\n  [1]: Linear(2, 3)\n  [2]: ReLU()\n)",
      tostring(nn.Sequential(nn.Linear(2, 3), nn.ReLU())))
  end)

  it("names an element that is not a module", function()
    assert.matches("nn%.Sequential: element 2 must be a module: got 5",
      error_of(nn.Sequential, nn.ReLU(), 5))
  end)
end)

describe("nn.ModuleList", function()
  it("is an array of modules", function()
    local list = nn.ModuleList { nn.Linear(1, 1) }
    list:append(nn.ReLU())
    assert.equal(2, #list)
    local count = 0
    for i, module in ipairs(list) do
      count = count + i
      assert.is_true(module:is_a(lt.Module))
    end
    assert.equal(3, count)
    assert.same({ "0.weight", "0.bias" }, list:parameters().names)
  end)
end)

describe("nn.CrossEntropyLoss", function()
  local logits, target = { { 1.0, 2.0, 0.5 }, { 0.0, -1.0, 3.0 } }, { 1, 0 }
  local losses, uniform = {}, {}
  for i, row in ipairs(logits) do
    local sum = 0
    for _, x in ipairs(row) do sum = sum + math.exp(x) end
    losses[i] = math.log(sum) - row[target[i] + 1]
    uniform[i] = math.log(sum) - (row[1] + row[2] + row[3]) / 3
  end
  local x, ids = lt.tensor(logits), lt.tensor(target)

  it("is the mean of -log softmax at the targets", function()
    near((losses[1] + losses[2]) / 2, nn.CrossEntropyLoss()(x, ids))
  end)

  it("sums or keeps the rows", function()
    near(losses[1] + losses[2], nn.CrossEntropyLoss { reduction = "sum" }(x, ids))
    near(losses, nn.CrossEntropyLoss { reduction = "none" }(x, ids))
  end)

  it("leaves out ignore_index", function()
    near(losses[1], nn.CrossEntropyLoss { ignore_index = 0 }(x, ids))
  end)

  it("smooths labels", function()
    local mean = 0
    for i = 1, 2 do mean = mean + (0.9 * losses[i] + 0.1 * uniform[i]) / 2 end
    near(mean, nn.CrossEntropyLoss { label_smoothing = 0.1 }(x, ids))
  end)

  it("weighs classes", function()
    local loss = nn.CrossEntropyLoss { weight = lt.tensor { 2.0, 1.0, 1.0 } }
    near((losses[1] + 2 * losses[2]) / 3, loss(x, ids))
    assert.same({}, loss:parameters().names)
  end)

  it("names the ids that are allowed", function()
    assert.matches("targets are ids 0%.%.2", error_of(function()
      nn.CrossEntropyLoss()(x, lt.tensor { 3, 0 })
    end))
  end)
end)

describe("nn.MSELoss", function()
  local a, b = lt.tensor { 1.0, 2.0, 4.0 }, lt.tensor { 1.0, 0.0, 1.0 }

  it("is the mean of the squared differences", function()
    near(13 / 3, nn.MSELoss()(a, b))
    near(13, nn.MSELoss { reduction = "sum" }(a, b))
    near({ 0, 4, 9 }, nn.MSELoss { reduction = "none" }(a, b))
  end)
end)
