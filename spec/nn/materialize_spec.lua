-- spec/nn/materialize_spec.lua: layers and models on the meta device: shapes as on the CPU, and
-- weights that are made later, bit for bit those of the CPU.
local c = require "ltrain.c"
local lt = require "ltrain"

local nn <const> = lt.nn

-- Layers, all with parameters or buffers among them: their arguments, and shapes of inputs ("ids":
-- [2, 5] of i64).
local LAYERS <const> = {
  BatchNorm1d = { { 4 }, { 3, 4 } }, BatchNorm2d = { { 4 }, { 3, 4, 2, 2 } },
  BatchNorm3d = { { 4 }, { 3, 4, 2, 2, 2 } }, SyncBatchNorm = { { 4 }, { 3, 4 } },
  Bilinear = { { 3, 4, 5 }, { 2, 3 }, { 2, 4 } },
  Conv1d = { { 2, 5, 3 }, { 1, 2, 7 } }, Conv2d = { { 2, 5, 3 }, { 1, 2, 7, 7 } },
  Conv3d = { { 2, 5, 3 }, { 1, 2, 5, 5, 5 } }, ConvTranspose1d = { { 2, 5, 3 }, { 1, 2, 7 } },
  ConvTranspose2d = { { 2, 5, 3 }, { 1, 2, 4, 4 } },
  ConvTranspose3d = { { 2, 5, 3 }, { 1, 2, 3, 3, 3 } },
  Embedding = { { 10, 3, { padding_idx = 2 } }, "ids" },
  EmbeddingBag = { { 10, 3 }, "ids" },
  GRU = { { 4, 3, { num_layers = 2 } }, { 2, 5, 4 } }, GRUCell = { { 4, 3 }, { 2, 4 } },
  GroupNorm = { { 2, 4 }, { 3, 4, 2 } },
  InstanceNorm1d = { { 4, { affine = true, track_running_stats = true } }, { 3, 4, 5 } },
  InstanceNorm2d = { { 4, { affine = true } }, { 3, 4, 5, 5 } },
  InstanceNorm3d = { { 4, { affine = true } }, { 3, 4, 2, 2, 2 } },
  LSTM = { { 4, 3, { bidirectional = true } }, { 2, 5, 4 } }, LSTMCell = { { 4, 3 }, { 2, 4 } },
  LayerNorm = { { 4 }, { 3, 4 } }, LearnedPositions = { { 6, 4 }, { 2, 5, 4 } },
  Linear = { { 4, 3 }, { 2, 4 } },
  MoE = { { 4, 6, 3 } }, -- its forward reads which experts tokens go to
  MultiheadAttention = { { 8, 2 }, { 2, 5, 8 }, { 2, 5, 8 }, { 2, 5, 8 } },
  PReLU = { { 4 }, { 3, 4 } }, RMSNorm = { { 4 }, { 3, 4 } }, RNN = { { 4, 3 }, { 2, 5, 4 } },
  RNNCell = { { 4, 3 }, { 2, 4 } }, RotaryPositions = { { 8, { max_length = 6 } }, { 2, 2, 5, 8 } },
  SinusoidalPositions = { { 4 }, { 2, 5, 4 } },
  Transformer = { { { d_model = 8, nhead = 2, num_encoder_layers = 1, num_decoder_layers = 1,
    dim_feedforward = 12 } }, { 2, 5, 8 }, { 2, 3, 8 } },
  TransformerDecoder = { function() return nn.TransformerDecoderLayer(8, 2), 2 end, { 2, 5, 8 },
    { 2, 3, 8 } },
  TransformerEncoder = { function() return nn.TransformerEncoderLayer(8, 2), 2 end, { 2, 5, 8 } },
  TransformerDecoderLayer = { { 8, 2 }, { 2, 5, 8 }, { 2, 3, 8 } },
  TransformerEncoderLayer = { { 8, 2 }, { 2, 5, 8 } },
  Unflatten = { { 2, { 2, 2 } }, { 3, 4 } },
}

-- Arguments that layers without a row may take; those that take none of these need a row.
local SMALL <const> = { {}, { 1 }, { 4 }, { 4, 3 }, { 2, 5, 3 } }

-- A row of a layer that has none: it is made, not called.
local function row_of(class)
  for _, arguments in ipairs(SMALL) do
    if pcall(class, table.unpack(arguments)) then return { arguments } end
  end
end

local function is_layer(class) return type(class) == "table" and rawget(class, "__module") end

for _, name in pairs(nn) do
  if is_layer(nn[name]) and not LAYERS[name] then LAYERS[name] = row_of(nn[name]) end
end

local IMAGE <const> = { 2, 3, 32, 32 }
local MODELS <const> = {
  bert = { { vocab_size = 11, hidden_size = 8, num_hidden_layers = 2, num_attention_heads = 2,
    intermediate_size = 12, max_position_embeddings = 8 }, "ids" },
  convnext_tiny = { { widths = { 4, 8, 8, 8 }, blocks = { 1, 1, 2, 1 } }, IMAGE },
  dcgan = { { latent = 5, width = 4 } },
  gpt2 = { { vocab_size = 11, n_positions = 8, n_embd = 8, n_layer = 2, n_head = 2 }, "ids" },
  llama = { { vocab_size = 11, hidden_size = 8, intermediate_size = 12, num_hidden_layers = 2,
    num_attention_heads = 2, max_position_embeddings = 8 }, "ids" },
  lstm_lm = { { vocab_size = 11, width = 6, hidden = 6, tie_weights = true }, "ids" },
  mlp = { { in_features = 4, num_classes = 3, hidden = { 5 }, norm = true }, { 2, 4 } },
  resnet18 = { { width = 4 }, IMAGE }, resnet34 = { { width = 4 }, IMAGE },
  resnet50 = { { width = 4 }, IMAGE }, unet = { { width = 4 }, IMAGE },
  vae = { { in_features = 6, hidden = 5, latent = 2 }, { 2, 6 } },
  vit = { { image_size = 32, num_layers = 1, num_heads = 2, hidden_dim = 8, mlp_dim = 8 }, IMAGE },
}
for _, name in ipairs { "vgg11", "vgg13", "vgg16", "vgg19" } do
  MODELS[name] = { { width = 4, hidden = 8 }, IMAGE }
  MODELS[name .. "_bn"] = MODELS[name]
end

local here <const> = lt.zeros(1).device

-- The same on both sides: `make` is called with the same random numbers.
local function both(make)
  lt.seed(3)
  local expected = make()
  local after = lt.rand(1):item()
  lt.seed(3)
  local made = lt.device("meta", make)
  assert.equal(after, lt.rand(1):item())
  return expected, made
end

local function assert_same_weights(expected, made)
  local count, others = 0, made:state_dict()
  for name, tensor in pairs(expected:state_dict()) do
    count = count + 1
    assert.is_true(tensor:equal(others[name]), name)
  end
  return count
end

local function inputs_of(row)
  local list = {}
  for k = 2, #row do
    list[k - 1] = row[k] == "ids" and lt.zeros(2, 5, { dtype = "i64" }) or lt.ones(row[k])
  end
  return list
end

-- "f32 [2, 3]" of each result.
local function seen(...)
  local texts = {}
  for k, y in ipairs(table.pack(...)) do
    texts[k] = c.is_tensor(y) and ("%s [%s]"):format(y.dtype, table.concat(y.shape, ", "))
      or type(y)
  end
  return texts
end

-- Forward and backward on meta against the CPU's shapes, then the weights.
local function check(make, row)
  local expected, made = both(make)
  local inputs, metas = inputs_of(row), {}
  for k, x in ipairs(inputs) do metas[k] = x:to "meta" end
  if #inputs > 0 then
    local y = table.pack(made(table.unpack(metas)))
    assert.same(seen(expected(table.unpack(inputs))), seen(table.unpack(y)))
    if y[1].requires_grad then y[1]:sum():backward() end
    for name, p in made:named_parameters() do
      if p.grad then assert.same({ p.shape, "meta" }, { p.grad.shape, p.grad.device }, name) end
    end
  end
  expected, made = both(make) -- buffers of before the forward pass
  assert_same_weights(expected, made:materialize(here))
end

describe("on meta", function()
  it("every layer and model is tried", function()
    for _, name in pairs(nn) do
      local has_row = LAYERS[name] or not is_layer(nn[name])
      assert.is_truthy(has_row, name .. " needs a row in LAYERS")
    end
    for _, name in pairs(lt.models) do assert.is_truthy(MODELS[name] or name == "keys", name) end
  end)

  for name, row in pairs(LAYERS) do
    it("nn." .. name .. " has its shapes, and later the weights of the CPU", function()
      check(function()
        if type(row[1]) == "function" then return nn[name](row[1]()) end
        return nn[name](table.unpack(row[1]))
      end, row)
    end)
  end

  for name, row in pairs(MODELS) do
    it("models." .. name .. " has its shapes, and later the weights of the CPU", function()
      check(function() return lt.models[name](row[1]) end, row)
    end)
  end

  it("a GPT of 109 billion parameters runs forward and backward", function()
    local _ <close> = lt.device "meta"
    local net = lt.models.gpt2 { n_positions = 2048, n_embd = 12288, n_layer = 60, n_head = 96 }
    local count = 0
    for _, p in net:named_parameters() do count = count + p:numel() end
    assert.equal(109368692736, count)
    local y = net(lt.zeros(4, 2048, { dtype = "i64" }))
    assert.same({ 4, 2048, 50257 }, y.shape)
    y:sum():backward()
    for _, p in net:named_parameters() do assert.same(p.shape, p.grad.shape) end
  end)
end)

describe("the option device of layers", function()
  it("says where parameters are made", function()
    assert.is_true(nn.Linear(4, 3, { device = "meta", bias = false }).weight.is_meta)
    assert.is_true(nn.Linear { in_features = 4, out_features = 3, device = "meta" }.bias.is_meta)
    assert.equal(here, nn.Linear(4, 3, { device = here }).weight.device)
    assert.equal(here, lt.zeros(1).device)
  end)

  it("names the devices", function()
    assert.error_matches(function() nn.Linear(4, 3, { device = "mta" }) end,
      "device: unknown device 'mta'")
  end)
end)

describe("materialize", function()
  local INITS <const> = {
    { "uniform_", { -1, 2 } }, { "normal_", { 1, 3 } }, { "constant_", { 4 } }, { "zeros_", {} },
    { "ones_", {} }, { "kaiming_uniform_", {} }, { "kaiming_normal_", {} },
    { "xavier_uniform_", {} }, { "xavier_normal_", {} }, { "trunc_normal_", {} },
    { "orthogonal_", {} }, { "eye_", {} },
  }

  for _, row in ipairs(INITS) do
    for _, dtype in ipairs { "f32", "f64", "bf16" } do
      it("gives what " .. row[1] .. " gives, whole and by rows, in " .. dtype, function()
        local expected, made = both(function()
          return nn.init[row[1]](lt.zeros(37, 21, { dtype = dtype }), table.unpack(row[2]))
        end)
        assert.is_true(c.runtime.materialize(made, here):equal(expected))
        for _, part in ipairs { { 1, 1 }, { 4, 9 }, { 30, 37 }, { 1, 37 } } do
          local some = c.runtime.materialize(made, here, table.unpack(part))
          assert.is_true(some:equal(expected:narrow(1, part[1], part[2] - part[1] + 1)))
        end
      end)
    end
  end

  it("computes a part of a large parameter alone", function() -- the whole: 4 TB
    local w = nn.Linear(1000000, 1000000, { device = "meta", bias = false }).weight
    local rows = c.runtime.materialize(w, "cpu", 500001, 500002)
    assert.same({ 2, 1000000 }, rows.shape)
    assert.near(0, rows:mean():item(), 1e-5)
    assert.near(1e-3 / math.sqrt(3), rows:std():item(), 1e-6) -- uniform in +-1 / sqrt(fan_in)
  end)

  it("keeps what was written in place since, also outside of the scope", function()
    local expected, made = both(function()
      local net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
      return net
    end)
    for _, net in ipairs { expected, made } do
      lt.seed(5)
      nn.init.normal_(net[1].weight)
      lt.no_grad(function()
        net[1].bias:fill_(0.5)
        net[2].weight:mul_(2)
        net[2].weight[1]:zero_()
      end)
    end
    assert_same_weights(expected, made:materialize(here))
  end)

  it("makes tied and copied weights as often as they are there", function()
    local expected, made = both(function()
      local net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
      net[2].weight = net[1].weight
      return nn.Sequential(net, nn.deepcopy(net))
    end)
    assert.equal(6, assert_same_weights(expected, made:materialize(here)))
    assert.equal(made[1][1].weight, made[1][2].weight)
    assert.not_equal(made[1][1].weight, made[2][1].weight)
  end)

  it("leaves what has data as it is", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, { device = "meta" }))
    local before = net[1].weight
    net:materialize(here)
    assert.equal(before, net[1].weight)
    assert.same({ here, true }, { net[2].weight.device, net[2].weight.requires_grad })
  end)

  it("names the parameter whose values are not recorded, and what made them", function()
    local net = nn.Sequential(nn.Linear(2, 2, { device = "meta" }))
    local optimizer = lt.optim.SGD(net:parameters(), { lr = 0.1 })
    net(lt.ones(1, 2, { device = "meta" })):sum():backward()
    optimizer:step()
    assert.error_matches(function() net:materialize() end,
      "materialize: Sequential%[1%]%.weight: the values of f32 %[2, 2%] are not recorded: sgd_step")
    assert.error_matches(function() nn.Linear(2, 2):to("meta"):materialize() end,
      "materialize: Linear%.weight: the values of f32 %[2, 2%] are not recorded")
  end)
end)

describe("to_empty", function()
  it("gives memory, for weights that come from elsewhere", function()
    local net, from = nn.Linear(3, 2, { device = "meta" }), nn.Linear(3, 2)
    net:to_empty(here):load_state_dict(from:state_dict())
    assert_same_weights(from, net)
    assert.is_true(net.weight.requires_grad)
  end)

  it("takes the module alone with recurse = false", function()
    local net = nn.Sequential(nn.Linear(3, 2, { device = "meta" }))
    assert.is_true(net:to_empty(here, { recurse = false })[1].weight.is_meta)
  end)

  it("is what a module needs that is moved from meta", function()
    assert.error_matches(function() nn.Linear(3, 2, { device = "meta" }):to "cpu" end,
      "to: a meta tensor has no data: f32 %[2, 3%]")
  end)
end)
