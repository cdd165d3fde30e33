-- spec/nn/flops_spec.lua: nn.utils.measure_flops: the numbers of PyTorch's FlopCounterMode.

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"

local nn <const> = lt.nn

local function r(...) return lt.parameter(lt.ones(...)) end

-- What each computes, and by torch.utils.flop_counter.FlopCounterMode of torch 2 on the CPU: the
-- operations of the forward, and of it with sum().backward(), where all inputs require gradients.
-- Of LSTM with torch.backends.mkldnn off: oneDNN's layer is one operation that counts nothing.
local CASES <const> = {
  linear = { 384, 1152, function() return nn.Linear(4, 8)(r(2, 3, 4)) end },
  matmul = { 240, 720, function() return r(2, 3, 4):matmul(r(4, 5)) end },
  bmm = { 240, 720, function() return r(2, 3, 4):matmul(r(2, 4, 5)) end },
  addmm = { 120, 360, function() return lt.addmm(r(3, 5), r(3, 4), r(4, 5)) end },
  einsum = { 240, 720, function() return lt.einsum("bij,bjk->bik", r(2, 3, 4), r(2, 4, 5)) end },
  conv1d = { 2688, 8064, function() return nn.Conv1d(4, 8, 3)(r(2, 4, 9)) end },
  conv2d = { 18432, 55296, function()
    return nn.Conv2d(4, 8, 3, { stride = 2 })(r(2, 4, 9, 9))
  end },
  -- PyTorch counts the gradient of the weight of grouped convolutions `groups` times: 36864.
  grouped = { 9216, 3 * 9216, function()
    return nn.Conv2d(4, 8, 3, { stride = 2, groups = 2 })(r(2, 4, 9, 9))
  end },
  conv_transpose2d = { 93312, 279936, function()
    return nn.ConvTranspose2d(4, 8, 3, { stride = 2 })(r(2, 4, 9, 9))
  end },
  attention = { 4480, 15680, function()
    return nn.functional.scaled_dot_product_attention(r(2, 2, 5, 8), r(2, 2, 7, 8), r(2, 2, 7, 8))
  end },
  causal = { 3200, 11200, function()
    return nn.functional.scaled_dot_product_attention(r(2, 2, 5, 8), r(2, 2, 5, 8),
      r(2, 2, 5, 8), { causal = true })
  end },
  multihead = { 6720, 20960, function()
    return nn.MultiheadAttention(8, 2)(r(2, 5, 8), r(2, 5, 8), r(2, 5, 8))
  end },
  lstm = { 7680, 22016, function() return nn.LSTM(4, 8)(r(2, 5, 4)) end },
  deep_lstm = { 46080, 134144, function()
    return nn.LSTM(4, 8, { num_layers = 2, bidirectional = true })(r(2, 5, 4))
  end },
  gru = { 5760, 16512, function() return nn.GRU(4, 8)(r(2, 5, 4)) end },
  rnn = { 1920, 5504, function() return nn.RNN(4, 8)(r(2, 5, 4)) end },
}

describe("nn.utils.measure_flops", function()
  local any <const> = nn.Identity()

  for name, case in pairs(CASES) do
    local forward, both, fn = table.unpack(case)

    it("counts as PyTorch: " .. name, function()
      assert.equal(forward, nn.utils.measure_flops(any, fn))
      assert.equal(both, nn.utils.measure_flops(any, fn, function(y) return y:sum() end))
    end)
  end

  it("counts nothing else", function()
    local net = nn.Sequential(nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5))
    assert.equal(0, nn.utils.measure_flops(net, function() return net(r(2, 4)) end))
  end)

  it("refuses what is not a module, and no function", function()
    has(error_of(nn.utils.measure_flops, 3, print), "measure_flops: model must be a module: got 3")
    has(error_of(nn.utils.measure_flops, any, 3), "measure_flops: forward_fn must be a function")
  end)
end)
