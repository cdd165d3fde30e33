-- spec/nn/transformer_spec.lua: attention, encoders, decoders, positions and the cache.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

local F64 <const> = { dtype = "f64" }

-- What torch_transformer.py makes and shows.
local function sines(shape, place)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return (lt.arange(n, F64) * 0.37 + place):sin():reshape(shape)
end

local function filled(module)
  module:to "f64"
  local _ <close> = lt.no_grad()
  for k, p in ipairs(module:parameters()) do p:copy_(sines(p.shape, k - 1) * 0.4) end
  return module
end

local function weighed(t)
  local n = t:numel()
  return (t:flatten() * (lt.arange(n, F64) % 7 + 1)):sum():item()
end

local WANTED <const> = { -- PyTorch 2.15
  attention = { -45.1963649, 5.27955675 },
  weights = { 27.4564054, 2.32465816 },
  apart = { -24.0326751, -0.957824079 },
  encoder = { 58.7847803, -0.646617209 },
  norm_first = { 31.7105222, 62.0762457 },
  decoder = { -74.3208665, 0.317064731 },
}

local function check(name, f)
  local x = sines({ 2, 4, 6 }, 0.5):requires_grad_(true)
  local y = f(x);
  (y * y):sum():backward()
  assert.near(WANTED[name][1], weighed(y:detach()), 1e-6)
  assert.near(WANTED[name][2], weighed(x.grad), 1e-6)
end

local OFF <const> = { dropout = 0, dim_feedforward = 10 }
local key_mask = lt.tensor { { 1, 1, 1, 0 }, { 1, 0, 1, 1 } }:to "bool"
local seen = lt.ones(4, 4, { dtype = "bool" }):tril()

describe("attention", function()
  it("is PyTorch's, with its weights and with keys of another width", function()
    local attention = filled(nn.MultiheadAttention(6, 2))
    check("attention", function(x) return (attention(x, { key_mask = key_mask })) end)
    for _, o in ipairs { { mask = seen }, { causal = true } } do
      o.need_weights = true
      check("weights", function(x) return select(2, attention(x, x, x, o)) end)
    end
    local apart = filled(nn.MultiheadAttention(6, 2, { kdim = 5, vdim = 3 }))
    check("apart", function(x)
      return (apart(x, sines({ 2, 3, 5 }, 1), sines({ 2, 3, 3 }, 3)))
    end)
  end)

  it("joins floating masks and masks of keys", function()
    local attention = filled(nn.MultiheadAttention(6, 2))
    local x = sines({ 2, 4, 6 }, 0.5)
    local added = lt.zeros(4, 4, F64):masked_fill(seen:logical_not(), -math.huge)
    local a = attention(x, { mask = added, key_mask = key_mask })
    local b = attention(x, { causal = true, mask = nil, key_mask = key_mask })
    assert.is_true((a - b):abs():amax():item() < 1e-12)
  end)

  it("refuses what is not meant", function()
    local attention, x = nn.MultiheadAttention(6, 2), lt.zeros(1, 3, 6)
    assert.matches("5 features do not divide into 2 heads", error_of(nn.MultiheadAttention, 5, 2))
    assert.matches("key_padding_mask is not taken: give key_mask", error_of(function()
      attention(x, { key_padding_mask = key_mask })
    end))
    assert.matches("attn_mask is not taken: give mask, which is true where a key takes part",
      error_of(function() attention(x, { attn_mask = seen }) end))
    local layer <const> = nn.TransformerEncoderLayer(6, 2)
    assert.matches("nn.TransformerEncoderLayer: src_key_padding_mask is not taken: give key_mask",
      error_of(function() layer(x, { src_key_padding_mask = key_mask }) end))
    assert.matches("unknown option 'is_causal'; did you mean 'causal'?",
      error_of(function() layer(x, { is_causal = true }) end))
    assert.matches("memory_key_padding_mask is not taken: give memory_key_mask",
      error_of(function()
        nn.TransformerDecoderLayer(6, 2)(x, x, { memory_key_padding_mask = key_mask })
      end))
    assert.matches("query must be %[N, T, 6%]", error_of(function() attention(lt.zeros(3, 6)) end))
    assert.matches("key_mask must be bool %[N, S%]", error_of(function()
      attention(x, { key_mask = lt.ones(1, 3) })
    end))
  end)
end)

describe("encoders and decoders", function()
  it("are PyTorch's", function()
    local layer = nn.TransformerEncoderLayer(6, 2, OFF)
    local encoder = filled(nn.TransformerEncoder(layer, 2, { norm = nn.LayerNorm(6) }))
    check("encoder", function(x) return (encoder(x, { mask = seen, key_mask = key_mask })) end)
    local first = filled(nn.TransformerEncoderLayer(6, 2, { dropout = 0, dim_feedforward = 10,
      activation = "gelu", norm_first = true }))
    check("norm_first", first)
    local decoder = filled(nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, OFF), 2))
    check("decoder", function(x)
      return (decoder(x, sines({ 2, 3, 6 }, 2), { causal = true }))
    end)
  end)

  it("have copies of the layer that share nothing", function()
    local layer = nn.TransformerEncoderLayer(6, 2, OFF)
    local encoder = nn.TransformerEncoder(layer, 2)
    local names = encoder:parameters().names
    assert.equal(24, #names)
    assert.equal("layers.0.self_attn.in_proj_weight", names[1])
    local a, b = encoder.layers[1].linear1.weight, encoder.layers[2].linear1.weight
    assert.is_true((a - layer.linear1.weight):abs():amax():item() == 0)
    lt.nn.init.zeros_(a)
    assert.is_true(b:abs():amax():item() > 0)
    assert.is_true(layer.linear1.weight:abs():amax():item() > 0)
  end)

  it("give each position what they gave without a cache", function()
    local layer = nn.TransformerEncoderLayer(6, 2, OFF)
    local encoder = filled(nn.TransformerEncoder(layer, 2)):eval()
    local x = sines({ 2, 5, 6 }, 1)
    local whole = encoder(x, { causal = true })
    for _, steps in ipairs { { 1, 1, 1, 1, 1 }, { 2, 3 }, { 3, 1, 1 } } do
      local caches, parts, at = { nn.KVCache(5), nn.KVCache(5) }, {}, 1
      for i, count in ipairs(steps) do
        parts[i] = encoder(x:narrow(2, at, count), { causal = true, caches = caches })
        at = at + count
      end
      assert.is_true((lt.cat(parts, { dim = 2 }) - whole):abs():amax():item() < 1e-12)
      assert.matches("6 positions are too many for max_length = 5", error_of(function()
        encoder(x:narrow(2, 1, 1), { causal = true, caches = caches })
      end))
    end
    assert.matches("caches must be a list of 2", error_of(function()
      encoder(x, { caches = {} })
    end))
  end)
end)

describe("positions", function()
  it("sinusoidal: sines and cosines in turn", function()
    local y = nn.SinusoidalPositions(4, { max_length = 8 })(lt.zeros(1, 3, 4), 2)
    for t = 1, 3 do
      for i, wanted in ipairs { math.sin(t + 1), math.cos(t + 1), math.sin((t + 1) / 100),
        math.cos((t + 1) / 100) } do
        assert.near(wanted, y[1][t][i]:item(), 1e-6)
      end
    end
  end)

  it("rotary: scores depend on distances alone", function()
    for _, interleaved in ipairs { false, true } do
      local turn = nn.RotaryPositions(4, { interleaved = interleaved })
      local q, k = sines({ 1, 1, 1, 4 }, 0):to "f32", sines({ 1, 1, 1, 4 }, 2):to "f32"
      local function score(i, j) return (turn(q, i) * turn(k, j)):sum():item() end
      assert.near(score(5, 2), score(13, 10), 1e-5)
      assert.is_true(math.abs(score(5, 2) - score(5, 3)) > 1e-3)
      assert.near((q * k):sum():item(), score(7, 7), 1e-5)
    end
  end)

  it("learned: a row for each position", function()
    local table = nn.LearnedPositions(6, 4)
    local y = table(lt.zeros(2, 3, 4), 2)
    assert.same(table.weight:narrow(1, 3, 3):tolist(), y[2]:tolist())
    assert.matches("7 positions are too many for max_length = 6", error_of(function()
      table(lt.zeros(2, 3, 4), 4)
    end))
    assert.matches("needs an even number", error_of(nn.RotaryPositions, 5))
  end)
end)

describe("Transformer", function()
  local function made()
    lt.seed(1)
    return lt.nn.Transformer(4, 2, 1, 1, { dim_feedforward = 6, dropout = 0 })
  end

  it("gives the encoder's result to the decoder", function()
    local net, src, tgt = made(), lt.randn(2, 3, 4), lt.randn(2, 5, 4)
    local wanted = net.decoder(tgt, net.encoder(src), { causal = true })
    assert.is_true(lt.equal(wanted, net(src, tgt, { causal = true })))
  end)

  it("leaves out padding of the source", function()
    local net, src, tgt = made(), lt.randn(1, 3, 4), lt.randn(1, 2, 4)
    local keys = lt.tensor { { true, true, false } }
    local got = net(src, tgt, { source_key_mask = keys, memory_key_mask = keys })
    local wanted = net(src:narrow(2, 1, 2), tgt)
    assert.is_true(lt.allclose(wanted, got, { atol = 1e-6 }))
  end)

  it("refuses batches that differ, and PyTorch's masks", function()
    local net = made()
    assert.matches("same batch: got %[2, 3, 4%] and %[1, 3, 4%]",
      select(2, pcall(net, lt.zeros(2, 3, 4), lt.zeros(1, 3, 4))))
    assert.matches(": sequences are %[N, T, E%] here: x:transpose%(1, 2%)",
      select(2, pcall(net, lt.zeros(5, 2, 4), lt.zeros(3, 2, 4))))
    assert.matches("src_mask is not taken: give source_mask", select(2, pcall(net,
      lt.zeros(1, 3, 4), lt.zeros(1, 3, 4), { src_mask = lt.ones(3, 3) })))
  end)
end)
