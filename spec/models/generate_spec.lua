-- spec/models/generate_spec.lua: tokens from language models, with a cache and without.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local MODELS <const> = {
  gpt2 = function()
    return lt.models.gpt2 { vocab_size = 31, n_positions = 24, n_embd = 16, n_layer = 2,
      n_head = 2 }
  end,
  llama = function()
    return lt.models.llama { vocab_size = 31, hidden_size = 16, intermediate_size = 24,
      num_hidden_layers = 2, num_attention_heads = 4, num_key_value_heads = 2,
      max_position_embeddings = 24 }
  end,
  lstm_lm = function() return lt.models.lstm_lm { vocab_size = 31, width = 8, hidden = 8 } end,
}

-- A model of 5 tokens whose next one is the last plus one; `calls` holds how many ids it was given.
local function counting(calls)
  return function(ids)
    calls[#calls + 1] = ids.shape[2]
    return lt.one_hot(ids:add(1):remainder(5), 5):float() * 100
  end
end

local function wide(model) -- larger weights: logits that differ
  local _ <close> = lt.no_grad()
  for _, p in ipairs(model:parameters()) do p:mul_(3) end
  return model
end

describe("lt.generate", function()
  before_each(function() lt.seed(3) end)

  for _, name in ipairs { "gpt2", "llama", "lstm_lm" } do
    it("has the logits of " .. name .. " without its cache, at each token", function()
      local model = wide(MODELS[name]()):eval()
      local seen = {}
      local function watched(ids, cache)
        local logits, next_cache = model(ids, cache)
        seen[#seen + 1] = logits:select(2, -1)
        return logits, next_cache
      end
      local cached = setmetatable({ device = model.device, new_cache = model.new_cache
        and function(_, length) return model:new_cache(length) end },
        { __call = function(_, ...) return watched(...) end })
      local prompt = lt.tensor { { 3, 1, 4, 1, 5 }, { 9, 2, 6, 5, 3 } }
      local all = lt.generate(cached, prompt, { max_new_tokens = 15 })
      assert.same({ 2, 20 }, all.shape)
      local _ <close> = lt.no_grad()
      for k, logits in ipairs(seen) do
        local whole = model(all:narrow(2, 1, 4 + k)):select(2, -1)
        local worst = (whole - logits):abs():max():item()
        assert(worst < 1e-5 and whole:abs():max():item() > 0.01, worst)
      end
      assert.equal(15, #seen)
    end)
  end

  it("allocates the cache once, of the length that is needed", function()
    local model = MODELS.gpt2()
    local made, lengths, first = 0, {}, {}
    local new_cache, forward = model.new_cache, model.forward
    rawset(model, "new_cache", function(self, length)
      made, lengths[1] = made + 1, length
      return new_cache(self, length)
    end)
    rawset(model, "forward", function(self, ids, cache)
      local logits, same = forward(self, ids, cache)
      first[#first + 1] = cache[1].k
      return logits, same
    end)
    lt.generate(model, { 1, 2, 3 }, { max_new_tokens = 6 })
    assert.equal(1, made)
    assert.equal(9, lengths[1])
    assert.same({ 1, 2, 9, 8 }, first[1].shape)
    for _, k in ipairs(first) do assert.is_true(rawequal(first[1], k)) end
  end)

  it("gives a model without a cache all ids, or the last of them", function()
    local calls = {}
    local ids = lt.generate(counting(calls), { 2 }, { max_new_tokens = 6, temperature = 0 })
    assert.same({ 2, 3, 4, 0, 1, 2, 3 }, ids:tolist())
    assert.same({ 1, 2, 3, 4, 5, 6 }, calls)
    calls = {}
    lt.generate(counting(calls), { 2 }, { max_new_tokens = 6, context = 3 })
    assert.same({ 1, 2, 3, 3, 3, 3 }, calls)
  end)

  for _, case in ipairs { { "gpt2" }, { "llama" }, { "gpt2", 6 }, { "lstm_lm", 6 } } do
    local name <const>, context = case[1], case[2]
    it(("sees the last ids of %s beyond %s"):format(name, context or "its positions"), function()
      local model = wide(MODELS[name]()):eval()
      local all = lt.generate(model, { 3, 1, 4 }, { max_new_tokens = 30, temperature = 0,
        context = context })
      local _ <close> = lt.no_grad()
      for t = 4, 33 do
        local first = math.max(1, t - (context or 24))
        local logits = model(all:narrow(1, first, t - first):unsqueeze(1))
        assert.equal(logits:select(2, -1):argmax():item(), all[t]:item())
      end
    end)
  end

  it("is given as many ids as the context at once", function()
    local lengths, model = {}, MODELS.gpt2()
    local forward = model.forward
    rawset(model, "forward", function(self, ids, cache)
      lengths[#lengths + 1] = ids.shape[2]
      return forward(self, ids, cache)
    end)
    lt.generate(model, { 1, 2, 3 }, { max_new_tokens = 5, context = 5 })
    assert.same({ 3, 1, 1, 5, 5 }, lengths)
    lengths = {}
    lt.generate(model, lt.zeros(30):long(), { max_new_tokens = 1 })
    assert.same({ 24 }, lengths)
  end)

  it("stops at an id, each sequence by itself", function()
    local ids = lt.generate(counting {}, { 2 }, { max_new_tokens = 9, stop = 0 })
    assert.same({ 2, 3, 4, 0 }, ids:tolist())
    ids = lt.generate(counting {}, lt.tensor { { 0, 1 }, { 0, 4 } },
      { max_new_tokens = 9, stop = { 3, 1 } })
    assert.same({ { 0, 1, 2, 3 }, { 0, 4, 0, 1 } }, ids:tolist())
    ids = lt.generate(counting {}, lt.tensor { { 2 }, { 0 } }, { max_new_tokens = 9, stop = 3 })
    assert.same({ { 2, 3, 3, 3 }, { 0, 1, 2, 3 } }, ids:tolist())
  end)

  it("tells of each token, and ends when asked to", function()
    local told = {}
    local ids = lt.generate(counting {}, { 2 }, { max_new_tokens = 9, on_token = function(id)
      told[#told + 1] = id
      return #told < 3
    end })
    assert.same({ 3, 4, 0 }, told)
    assert.same({ 2, 3, 4, 0 }, ids:tolist())
    lt.generate(counting {}, lt.tensor { { 2 }, { 0 } }, { max_new_tokens = 1,
      on_token = function(new) told = new:tolist() end })
    assert.same({ 3, 1 }, told)
  end)

  it("draws with temperature, top_k and top_p", function()
    local weights = lt.tensor { 0.5, 0.25, 0.125, 0.0625, 0.0625 }
    local function fixed(ids) return weights:log():expand(ids.shape[1], ids.shape[2], 5) end
    local function shares(options)
      options.max_new_tokens = 1
      local drawn, counts = lt.generate(fixed, lt.zeros(4000, 1):long(), options), {}
      for id = 0, 4 do counts[id + 1] = drawn:select(2, 2):eq(id):sum():item() / 4000 end
      return counts
    end
    local function near(want, got)
      for k = 1, 5 do assert(math.abs(want[k] - got[k]) < 0.04, k .. ": " .. got[k]) end
    end
    near({ 0.5, 0.25, 0.125, 0.0625, 0.0625 }, shares {})
    near({ 1, 0, 0, 0, 0 }, shares { temperature = 0 })
    near({ 16 / 21.5, 4 / 21.5, 1 / 21.5, 0.25 / 21.5, 0.25 / 21.5 }, shares { temperature = 0.5 })
    near({ 2 / 3, 1 / 3, 0, 0, 0 }, shares { top_k = 2 })
    near({ 4 / 7, 2 / 7, 1 / 7, 0, 0 }, shares { top_p = 0.8 })
    near({ 1, 0, 0, 0, 0 }, shares { top_p = 0.3 })
    assert.equal(0, shares({ top_k = 2 })[3])
    assert.equal(0, shares({ top_p = 0.8 })[4])
  end)

  it("leaves the model in the mode that it had", function()
    local model = MODELS.gpt2()
    model.transformer.drop:eval()
    local first = lt.generate(model, { 1 }, { max_new_tokens = 5, temperature = 0 })
    assert.is_true(model.training)
    assert.is_false(model.transformer.drop.training)
    local second = lt.generate(model, { 1 }, { max_new_tokens = 5, temperature = 0 })
    assert.same(first:tolist(), second:tolist()) -- no dropout
    assert.is_nil(model.lm_head.weight.grad)
  end)

  it("draws the same with the same seed", function()
    local model = MODELS.llama()
    lt.seed(5)
    local first = lt.generate(model, { 1 }, { max_new_tokens = 12 }):tolist()
    lt.seed(5)
    assert.same(first, lt.generate(model, { 1 }, { max_new_tokens = 12 }):tolist())
  end)

  it("refuses what cannot be generated from", function()
    local model = MODELS.gpt2()
    assert.matches("generate: option 'max_new_tokens' is required",
      error_of(function() lt.generate(model, { 1 }) end))
    assert.matches("generate: ids must be a tensor %[T%] or %[N, T%]",
      error_of(function() lt.generate(model, lt.zeros(1, 0):long(), { max_new_tokens = 1 }) end))
    assert.matches("generate: context must be at most 24, the model's max_length: got 25",
      error_of(function() lt.generate(model, { 1 }, { max_new_tokens = 1, context = 25 }) end))
  end)
end)

describe("nn.KVCache", function()
  it("has the rows that reorder lists, as many as it lists", function()
    local cache, x = lt.nn.KVCache(4), lt.arange(2):view(2, 1, 1, 1):expand(2, 1, 2, 3):float()
    cache:append(x, x + 10)
    cache:reorder(lt.tensor({ 1, 1, 0 }, { dtype = "i64" }))
    assert.equal(2, cache.length)
    local one <const> = lt.ones(3, 1, 1, 3) * 5
    local k, v = cache:append(one, one)
    assert.same({ 3, 1, 3, 3 }, k.shape)
    assert.same({ { 1, 1, 5 }, { 1, 1, 5 }, { 0, 0, 5 } }, k:select(4, 1):select(2, 1):tolist())
    assert.same({ { 11, 11, 5 }, { 11, 11, 5 }, { 10, 10, 5 } },
      v:select(4, 1):select(2, 1):tolist())
  end)

  it("keeps its memory when it is emptied, and may have another batch then", function()
    local cache, x = lt.nn.KVCache(4), lt.ones(2, 1, 3, 2)
    cache:append(x, x)
    local memory = cache.k
    cache:reset()
    assert.equal(0, cache.length)
    cache:append(x, x)
    assert.is_true(rawequal(memory, cache.k))
    cache:reset()
    local k = cache:append(lt.ones(1, 1, 1, 2), lt.ones(1, 1, 1, 2))
    assert.same({ 1, 1, 1, 2 }, k.shape)
  end)
end)
