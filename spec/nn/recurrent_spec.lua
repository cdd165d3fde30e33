-- spec/nn/recurrent_spec.lua: LSTM, GRU, RNN and their cells.
-- tags: slow
local error_of = require "spec.error_of"
local has = require "spec.has"
local internal = require "ltrain.c"
local lt = require "ltrain"
local nn = lt.nn

local F64 <const> = { dtype = "f64" }
local N <const>, T <const>, I <const>, H <const> = 3, 4, 2, 3

-- What torch_recurrent.py makes and shows.
local function sines(shape, place)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return (lt.arange(n, F64) * 0.37 + place):sin():reshape(shape)
end

local function names_of(module)
  local names = {}
  for name in module:named_parameters() do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function filled(module)
  module:to "f64"
  local _ <close> = lt.no_grad()
  for k, name in ipairs(names_of(module)) do
    local p = module:get_parameter(name)
    p:copy_(sines(p.shape, k - 1) * 0.9)
  end
  return module
end

local function weighed(t)
  return (t:flatten() * (lt.arange(t:numel(), F64) % 7 + 1)):sum():item()
end

local WANTED <const> = { -- PyTorch 2.15
  LSTM = {
    -4.05214627, -0.949617836, -0.0828028635, -50.435868, 15.2505826, 15.2505826, 15.2065811,
    73.3875583
  },
  LSTM_deep = {
    20.2865808, 3.52071677, 1.7381208, 11.308285, -0.825651241, -3.37323295, -22.9519263,
    -11.8052837, 5.89212647, 19.532366, 16.029681, -33.0934292, -5.17438509, -15.534454
  },
  LSTM_lengths = {
    -14.3699367, 1.29021395, 13.8451495, 12.9190173, -25.0723724, -19.3051722, 10.9166397,
    6.85329938, 25.2019025, 3.27942239, 10.9166397, 6.85329938, 25.2019025, 3.27942239,
    13.3641976, 29.70218, 8.705596, 20.8399034, 6.67122104, -9.03663174, 2.4123259, -3.17604575
  },
  GRU = {
    17.7899184, 3.71882132, 24.4700134, -17.1463191, -15.4265114, 2.16743747, -5.73261452
  },
  GRU_deep = {
    -17.2137213, 15.8007338, 41.4215193, 39.9398552, 116.680071, -4.00866724, 2.79567863,
    39.6621568, -113.284663, -84.0481769, -11.5063917, -20.3042581
  },
  GRU_lengths = {
    -23.426902, 35.2177601, -9.95006669, 103.827122, 6.91153678, -1.68776631, 8.87211087,
    -19.0247666, 9.12546151, -0.682842885, 10.4707353, -24.9399054, 19.700088, 10.0257814,
    6.53170157, 31.3194957, 10.8970914, 2.88335047, 15.0261565, -68.1910346
  },
  RNN = {
    72.7744137, 13.8462045, -42.4737263, 29.0625638, 29.0625638, 2.485697, 30.8964174
  },
  RNN_deep = {
    -28.1763727, -12.9807651, 28.4741732, -1.0438436, -19.9942872, -19.2982945, 9.0467751,
    5.77882633, -48.6191084, -78.9587565, 64.6024436, -63.9443118
  },
  RNN_lengths = {
    52.8470141, 7.62302963, 19.316952, -27.6836674, -16.4581286, 5.39555229, 3.61302063,
    10.2805716, -16.4581286, 5.39555229, 3.61302063, 10.2805716, 25.5148454, -23.8100723,
    -4.43879892, 25.121218, 44.6617816, 8.79331662, -23.8302355, -10.95734
  },
  RNN_relu = {
    159.757288, 51.5387645, -598.989038, 449.23843, 449.23843, 1720.62474, -72.7993547
  },
  LSTM_projected = {
    -2.79796352, 0.970684886, -19.327535, 3.97435749, 3.02166446, 0.305880995, 26.6740906,
    83.7439839, 33.6115996, 10.805617, 26.6740906, 83.7439839, 33.6115996, 10.805617,
    22.1669533, -38.3987611, -6.0096111, 2.36358867, 31.8920479, 48.1260678, -2.95790391,
    -31.1359039, -25.4407822, -45.807128, 2.06602426, 13.6158775
  },
  LSTMCell = {
    0.272198663, 0.677014918, -1.55886823, 3.99638224, 3.99638224, 10.8617774, 5.51883971
  },
  GRUCell = {
    15.1990971, 3.4445048, 0.837156239, 1.05916637, 1.54617915, 0.534432112
  },
  RNNCell = {
    -2.97764798, -5.03136611, 0.00863510881, 0.00863510881, -23.8665486, -0.191150057
  },
}

local function leaf(t) return t:detach():clone():requires_grad_(true) end

-- {h, c} of an LSTM, h of others; and the same as a list.
local function state_of(module)
  local d = module:directions() * module.num_layers
  local h = leaf(sines({ d, N, module:output_size() }, 1))
  if module.__name ~= "LSTM" then return h, { h } end
  local c = leaf(sines({ d, N, H }, 2))
  return { h, c }, { h, c }
end

local function squares(results)
  local total
  for _, r in ipairs(results) do total = total and total + (r * r):sum() or (r * r):sum() end
  return total
end

-- Results and gradients, as a list of numbers.
local function answer(results, leaves, module)
  squares(results):backward()
  local list = {}
  for _, r in ipairs(results) do list[#list + 1] = weighed(r:detach()) end
  for _, x in ipairs(leaves) do list[#list + 1] = weighed(x.grad) end
  for _, name in ipairs(names_of(module)) do
    list[#list + 1] = weighed(module:get_parameter(name).grad)
  end
  return list
end

local function compare(name, got)
  assert.equal(#WANTED[name], #got, name)
  for k, want in ipairs(WANTED[name]) do
    assert.near(want, got[k], 1e-6 * math.max(1, math.abs(want)), ("%s: number %d"):format(name, k))
  end
end

local function check(name, module, lengths, stateful)
  filled(module)
  local x, state, leaves = leaf(sines({ N, T, I }, 0.5)), nil, {}
  if stateful then state, leaves = state_of(module) end
  table.insert(leaves, 1, x)
  local y, after = module(x, state, { lengths = lengths })
  local results = { y, after }
  if type(after) == "table" then results = { y, after[1], after[2] } end
  compare(name, answer(results, leaves, module))
end

local function close(a, b, bound)
  assert.same(b.shape, a.shape)
  assert.is_true((a - b):abs():amax():item() <= (bound or 1e-12))
end

for _, kind in ipairs { "LSTM", "GRU", "RNN" } do
  describe("nn." .. kind, function()
    it("is PyTorch's, with layers, directions and states", function()
      check(kind, nn[kind](I, H))
      check(kind .. "_deep", nn[kind](I, H, { num_layers = 2, bidirectional = true, bias = false }),
        nil, true)
    end)

    it("is PyTorch's of packed sequences, by lengths", function()
      local deep = { num_layers = 2, bidirectional = true }
      check(kind .. "_lengths", nn[kind](I, H, deep), { 2, 4, 1 }, true)
      check(kind .. "_lengths", nn[kind](I, H, deep), lt.tensor { 2, 4, 1 }, true)
    end)

    it("gives each sequence what it gives it alone", function()
      local net = nn[kind](I, H, { num_layers = 2, bidirectional = true }):to "f64"
      local x = sines({ N, T, I }, 0.2)
      local y, state = net(x, nil, { lengths = { 2, 4, 0 } })
      local h = kind == "LSTM" and state[1] or state
      for n, length in ipairs { 2, 4 } do
        local own, after = net(x[n]:narrow(1, 1, length))
        close(y[n]:narrow(1, 1, length), own)
        close(h:select(2, n), kind == "LSTM" and after[1] or after)
        assert.equal(0, length < T and y[n]:narrow(1, length + 1, T - length):abs():amax():item()
          or 0)
      end
      assert.equal(0, y[3]:abs():amax():item()) -- no steps: zeros, and the state that came in
      assert.equal(0, h:select(2, 3):abs():amax():item())
    end)

    it("resumes from a state as if there had been no cut", function()
      local net = nn[kind](I, H, { num_layers = 2 }):to "f64"
      local x = sines({ N, T, I }, 0.2)
      local whole, last = net(x)
      local first, state = net(x:narrow(2, 1, 1))
      local rest, after = net(x:narrow(2, 2, T - 1), state)
      close(lt.cat({ first, rest }, 2), whole)
      close(kind == "LSTM" and after[2] or after, kind == "LSTM" and last[2] or last)
    end)

    it("has the derivatives that finite differences have, first and second", function()
      for _, lengths in ipairs { false, { 2, 3, 0 } } do
        local net = filled(nn[kind](I, 2, { bidirectional = true }))
        local names, inputs = names_of(net), { leaf(sines({ N, 3, I }, 0.5)) }
        for k, name in ipairs(names) do inputs[k + 1] = leaf(net:get_parameter(name)) end
        local h0 = leaf(sines({ 2, N, 2 }, 1))
        inputs[#inputs + 1] = h0
        local function run(x, ...)
          for k, name in ipairs(names) do net[name] = (select(k, ...)) end
          local h = (select(#names + 1, ...))
          local y, state = net(x, kind == "LSTM" and { h, h * 0.5 } or h,
            { lengths = lengths or nil })
          local last = kind == "LSTM" and state[1]:sin() + state[2]:cos() or state:sin()
          return (y * y):sum() + last:sum()
        end
        assert.is_true(lt.gradcheck(run, inputs))
        assert.is_true(lt.gradcheck(function(...)
          local list = { ... }
          local g = lt.grad(run(...), list, { create_graph = true })
          local total
          for _, part in ipairs(g) do
            local term = (part * part):sum()
            total = total and total + term or term
          end
          return total
        end, { leaf(inputs[1]), table.unpack(inputs, 2) }))
      end
    end)

    it("saves nothing where no derivative can come, and gives the same", function()
      local net = nn[kind](I, H)
      local x = lt.randn(N, T, I)
      local y = net(x)
      local _ <close> = lt.no_grad()
      assert.is_true(lt.equal((net(x)), y:detach()))
      local op = kind:lower() .. "_layer"
      local list = { internal[op](x, net.weight_ih_l0, net.weight_hh_l0) }
      assert.same({ 0 }, list[4].shape)
    end)

    it("has PyTorch's names, a copy and a state to load", function()
      local net = nn[kind](I, H, { num_layers = 2, bidirectional = true })
      local rows = { LSTM = 4, GRU = 3, RNN = 1 }
      assert.same({ "bias_hh_l0", "bias_hh_l0_reverse", "bias_hh_l1", "bias_hh_l1_reverse",
        "bias_ih_l0", "bias_ih_l0_reverse", "bias_ih_l1", "bias_ih_l1_reverse", "weight_hh_l0",
        "weight_hh_l0_reverse", "weight_hh_l1", "weight_hh_l1_reverse", "weight_ih_l0",
        "weight_ih_l0_reverse", "weight_ih_l1", "weight_ih_l1_reverse" }, names_of(net))
      assert.same({ rows[kind] * H, 2 * H }, net.weight_ih_l1_reverse.shape)
      local other, copy = nn[kind](I, H, { num_layers = 2, bidirectional = true }), nn.deepcopy(net)
      other:load_state_dict(net:state_dict())
      local x = lt.randn(N, T, I)
      assert.is_true(lt.equal((other(x)), (net(x))))
      assert.is_true(lt.equal((copy(x)), (net(x))))
      assert.is_false(rawequal(copy.weight_ih_l0, net.weight_ih_l0))
    end)

    it("starts uniform within 1 / sqrt(hidden_size)", function()
      local net = nn[kind](8, 64)
      for _, p in ipairs(net:parameters()) do
        local most = p:abs():amax():item()
        assert.is_true(most <= 0.125 and most > 0.11)
      end
    end)

    it("takes halves, and runs lower under autocast", function()
      local net = nn[kind](8, 16, { num_layers = 2 })
      local x = lt.randn(2, 5, 8)
      local want = net(x):detach()
      for _, dtype in ipairs { "bf16", "f16" } do
        local y, state
        do
          local _ <close> = lt.autocast(dtype)
          y, state = net(x)
        end
        assert.equal(dtype, y.dtype)
        assert.equal(dtype, (kind == "LSTM" and state[2] or state).dtype)
        close(y:detach():to "f32", want, 0.03)
        y:to("f32"):sum():backward()
        assert.equal("f32", net.weight_hh_l1.grad.dtype)
        net:zero_grad()
      end
      local y = nn.deepcopy(net):to("bf16")(x:to "bf16")
      close(y:detach():to "f32", want, 0.05)
    end)

    it("drops outputs between layers in training alone", function()
      local net = nn[kind](I, H, { num_layers = 2, dropout = 0.5 })
      local x = lt.randn(N, T, I)
      assert.is_false(lt.equal((net(x)), (net(x))))
      net:eval()
      assert.is_true(lt.equal((net(x)), (net(x))))
    end)

    it("takes one sequence alone, and a batch of none", function()
      local net = nn[kind](I, H):to "f64"
      local x = sines({ T, I }, 0.3)
      local y, state = net(x)
      local whole = net(x:unsqueeze(1))
      close(y, whole:squeeze(1))
      local h = kind == "LSTM" and state[1] or state
      assert.same({ 1, H }, h.shape)
      close((net(x, state)), net(x:unsqueeze(1),
        kind == "LSTM" and { h:unsqueeze(2), state[2]:unsqueeze(2) } or h:unsqueeze(2)):squeeze(1))
      assert.same({ 0, T, H }, net(lt.zeros(0, T, I, F64)).shape)
    end)

    it("names what does not fit", function()
      local net, x = nn[kind](I, H), lt.randn(N, T, I)
      local name = "nn." .. kind
      local text = error_of(function() return (net(lt.randn(N, T, 5))) end)
      has(text, "recurrent_spec.lua:")
      has(text, name .. ": x must be [N, T, 2]: got")
      has(text, "[3, 4, 5]")
      has(error_of(net, lt.randn(N, 0, I)), name .. ": x has no steps")
      has(error_of(net, x, nil, { lengths = { 1, 5, 2 } }),
        name .. ": length 5 of sequence 1 is out of 0..4")
      has(error_of(net, x, nil, { lengths = { 1, 2 } }),
        name .. ": lengths must be 3 integers, one a sequence: got")
      has(error_of(net, x, nil, { lengths = lt.rand(3) }), "lengths must be 3 integers")
      has(error_of(net, x, nil, { length = { 1, 2, 3 } }), "lengths")
      local h = lt.zeros(1, N, H + 1)
      text = error_of(net, x, kind == "LSTM" and { h, h } or h)
      has(text, "state must be [1, 3, 3]: got")
      has(text, "[1, 3, 4]")
      h = lt.zeros(1, T, H)
      has(error_of(net, x, kind == "LSTM" and { h, h } or h), "sequences are [N, T, I] here")
      if kind == "LSTM" then
        has(error_of(net, x, lt.zeros(1, N, H)), "nn.LSTM: the state must be {h, c}: got")
      end
      text = error_of(nn[kind], I, H, { batch_first = false })
      has(text, "batch_first must be true")
      has(text, "x:transpose(1, 2)")
    end)

    it("names a length of a tensor that is out of range", function()
      local net, x = nn[kind](I, H), lt.randn(N, T, I)
      local text = error_of(function()
        return (net(x, nil, { lengths = lt.tensor { 1, 5, 2 } })):sum():item()
      end)
      has(text, kind:lower() .. "_layer: length 5")
      has(text, "is out of 0..4")
    end)

    it("repeats the same bits", function()
      local net, x = nn[kind](24, 40), lt.randn(9, 7, 24)
      local function run()
        net:zero_grad()
        local y = net(x);
        (y * y):sum():backward()
        return { y:detach(), net.weight_hh_l0.grad:clone(), net.weight_ih_l0.grad:clone() }
      end
      local one, two = run(), run()
      for k, t in ipairs(one) do assert.is_true(lt.equal(t, two[k])) end
    end)
  end)
end

describe("nn.LSTM with a projection", function()
  it("is PyTorch's", function()
    local options = { num_layers = 2, bidirectional = true, proj_size = 2 }
    check("LSTM_projected", nn.LSTM(I, H, options), { 2, 4, 1 }, true)
    has(error_of(nn.LSTM, I, H, { proj_size = 3 }),
      "nn.LSTM: proj_size must be below hidden_size 3: got 3")
  end)

  it("has second derivatives", function()
    local net = filled(nn.LSTM(I, H, { proj_size = 2 }))
    assert.is_true(lt.gradcheck(function(x)
      local g = lt.grad((net(x)):square():sum(), x, { create_graph = true })
      return g:square():sum()
    end, { leaf(sines({ N, T, I }, 0.5)) }))
  end)
end)

describe("nn.RNN", function()
  it("is PyTorch's with relu", function()
    check("RNN_relu", nn.RNN(I, H, { nonlinearity = "relu" }))
    has(error_of(nn.RNN, I, H, { nonlinearity = "gelu" }), "nonlinearity")
  end)
end)

describe("cells", function()
  local h, c = sines({ N, H }, 1), sines({ N, H }, 2)
  local function check_cell(name, state)
    local cell = filled(nn[name](I, H))
    local x = leaf(sines({ N, I }, 0.5))
    local results = { cell(x, state) }
    compare(name, answer(results, { x }, cell))
  end

  it("are PyTorch's", function()
    check_cell("LSTMCell", { h, c })
    check_cell("GRUCell", h)
    check_cell("RNNCell", h)
  end)

  it("take steps that the layers take at once", function()
    for _, kind in ipairs { "LSTM", "GRU", "RNN" } do
      local net, cell = nn[kind](I, H):to "f64", nn[kind .. "Cell"](I, H):to "f64"
      for _, part in ipairs { "weight_ih", "weight_hh", "bias_ih", "bias_hh" } do
        cell[part] = net[part .. "_l0"]
      end
      local x, ys, state = sines({ N, T, I }, 0.1), {}, nil
      for t = 1, T do
        local next_h, next_c = cell(x:select(2, t), state)
        ys[t], state = next_h, next_c and { next_h, next_c } or next_h
      end
      close(lt.stack(ys, 2), (net(x)))
    end
  end)

  it("take one sequence alone, and name what does not fit", function()
    local cell = nn.LSTMCell(I, H)
    local next_h, next_c = cell(lt.randn(I), { lt.zeros(H), lt.zeros(H) })
    assert.same({ H }, next_h.shape)
    assert.same({ H }, next_c.shape)
    has(error_of(cell, lt.randn(N, 5)), "nn.LSTMCell: x must be [N, 2]: got")
    has(error_of(cell, lt.randn(N, I), lt.zeros(N, H)), "nn.LSTMCell: the state must be {h, c}")
    has(error_of(nn.GRUCell(I, H), lt.randn(N, I), lt.zeros(2, H)),
      "nn.GRUCell: the state must be [3, 3]: got")
  end)
end)

describe("recurrent operations", function()
  it("name inputs that do not fit", function()
    local x, w, v = lt.randn(4, 3, 2), lt.randn(12, 2), lt.randn(12, 3)
    has(error_of(internal.lstm_layer, lt.randn(3, 2), w, v),
      "lstm_layer: needs x [T, N, I] of at least one step, got [3, 2]")
    has(error_of(internal.lstm_layer, x, lt.randn(12, 5), v),
      "lstm_layer: x [4, 3, 2] has 2 features, weight_ih [12, 5] takes 5")
    has(error_of(internal.gru_layer, x, w, v),
      "gru_layer: weight_hh [12, 3] of 4 units needs a weight_hr")
    has(error_of(internal.lstm_layer, x, w, v, { h0 = lt.zeros(2, 3) }),
      "lstm_layer: h0 must be [3, 3] for x [4, 3, 2] and weight_hh [12, 3]: got [2, 3]")
    has(error_of(internal.rnn_layer, x, lt.randn(3, 2), lt.randn(3, 3), { c0 = lt.zeros(3, 3) }),
      "rnn_layer: takes no c0")
    has(error_of(internal.lstm_layer, x, w, v, { lengths = lt.rand(3) }),
      "lstm_layer: lengths must be i64: got f32")
  end)
end)
