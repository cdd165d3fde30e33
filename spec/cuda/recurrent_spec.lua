-- spec/cuda/recurrent_spec.lua: recurrent layers of a GPU, and their gradients, are the CPU's.
local both = require "spec.cuda.both"
local lt = require "ltrain"
local nn = lt.nn

local BOUND <const> = { f32 = 1e-5, f64 = 1e-12, bf16 = 3e-2 }

local function leaf(t, device)
  return t:to(device):detach():requires_grad_(true)
end

-- Results, and gradients of the input, the states and the parameters, of `net` on the device.
local function run(net, device, x, states, lengths)
  net = nn.deepcopy(net):to(device)
  x = leaf(x, device)
  local list = {}
  for k, t in ipairs(states) do list[k] = leaf(t, device) end
  local state = #list == 2 and list or list[1]
  local y, after = net(x, state, { lengths = lengths })
  local results = { y, table.unpack(type(after) == "table" and after or { after }) }
  local total
  for k, r in ipairs(results) do
    local term = (r * r * k):sum()
    total = total and total + term or term
  end
  total:backward()
  for k, r in ipairs(results) do results[k] = r:detach() end
  results[#results + 1] = x.grad
  for _, t in ipairs(list) do results[#results + 1] = t.grad end
  for _, p in ipairs(net:parameters()) do results[#results + 1] = p.grad end
  return results
end

local function check(what, net, n, t, dtype, options)
  net:to(dtype)
  local x = lt.randn(n, t, net.input_size):to(dtype)
  local states, d = {}, net.num_layers * net:directions()
  if options.state then
    states[1] = lt.randn(d, n, net:output_size()):to(dtype)
    if net.__name == "LSTM" then states[2] = lt.randn(d, n, net.hidden_size):to(dtype) end
  end
  local want = run(net, "cpu", x, states, options.lengths)
  local got = run(net, "cuda", x, states, options.lengths)
  for k, v in ipairs(want) do
    both.close(got[k], v, BOUND[dtype] * math.max(1, v:to("f32"):abs():amax():item()),
      ("%s %s: %d"):format(what, dtype, k))
  end
end

describe("a GPU's recurrent layers", function()
  for _, kind in ipairs { "LSTM", "GRU", "RNN" } do
    both.it("are the CPU's: " .. kind, function()
      for _, dtype in ipairs { "f32", "f64", "bf16" } do
        check(kind, nn[kind](3, 5), 2, 3, dtype, {})
        check(kind .. " both ways", nn[kind](4, 33, { bidirectional = true, bias = false }), 9, 2,
          dtype, { state = true, lengths = { 2, 1, 0, 2, 1, 2, 0, 1, 2 } })
      end
    end)
  end

  both.it("are the CPU's with a projection and with relu", function()
    check("projected", nn.LSTM(3, 5, { proj_size = 2, bidirectional = true }), 3, 4, "f32",
      { state = true, lengths = { 4, 0, 2 } })
    check("relu", nn.RNN(3, 5, { nonlinearity = "relu" }), 2, 3, "f32", { state = true })
  end)

  both.it("refuse lengths that are out of range", function()
    local net = nn.GRU(2, 3):to "cuda"
    local x = lt.randn({ 3, 4, 2 }, { device = "cuda" })
    local ok, why = pcall(function()
      return (net(x, nil, { lengths = lt.tensor { 1, -2, 3 } })):sum():item()
    end)
    assert.is_false(ok)
    assert.truthy(tostring(why):find("gru_layer: length -2 is out of 0..4", 1, true))
  end)
end)
