-- spec/parallel/context_parallel_spec.lua: models in a scope of lt.parallel.context_parallel
-- compute what they compute on one rank with the whole sequence.
local support = require "spec.dist.support"

local SETUP <const> = [[
  local nn, P = lt.nn, lt.parallel
  local n = dist.world_size()
  local function close(wanted, got, what)
    same(wanted.shape, got.shape)
    local worst = (wanted - got):abs():max():item()
    if not (worst <= 1e-10) then error(what .. " differ by " .. worst, 2) end
  end
  -- Gradients and outputs of make() on x in one rank and on parts: call(net, x) gives the features.
  local function compare(make, x, call, o)
    lt.seed(4)
    local net = make():to "f64"
    local wanted = call(net, x)
    local weights = lt.sin(lt.arange(wanted:numel(), {dtype = "f64"})):reshape(wanted.shape);
    (wanted * weights):sum():backward()
    local gradients = {}
    for i, p in ipairs(net:parameters()) do gradients[i], p.grad = p.grad, nil end
    o.buffers = {x, weights}
    local scope <close>, part, cut = P.context_parallel(o.group, o)
    local got = call(net, part)
    local same_cut = {balance = o.balance}
    close(wanted, P.unsplit_sequence(got:detach(), 2, same_cut), "outputs");
    (got * cut):sum():backward()
    for i, p in ipairs(net:parameters()) do
      if gradients[i] then close(gradients[i], dist.all_reduce(p.grad), "gradients") end
    end
  end
]]

local function ranks(n, body) return support.ranks(n, SETUP .. body) end

describe("context_parallel", function()
  it("splits GPT-2, Llama and BERT as they are #slow", function()
    ranks(2, [[
      local ids = (lt.arange(2 * 8) * 5 % 11):reshape(2, 8)
      for _, o in ipairs {{}, {balance = false}, {attention = "ulysses"}} do
        compare(function() return lt.models.gpt2 {vocab_size = 11, n_positions = 8, n_embd = 8,
          n_layer = 2, n_head = 2, dropout = 0} end, ids, function(net, x) return (net(x)) end, o)
        compare(function() return lt.models.llama {vocab_size = 11, hidden_size = 16,
          intermediate_size = 8, num_hidden_layers = 2, num_attention_heads = 4,
          num_key_value_heads = 2, max_position_embeddings = 8} end, ids,
          function(net, x) return (net(x)) end, o)
        compare(function() return lt.models.bert {vocab_size = 11, hidden_size = 8,
          num_hidden_layers = 1, num_attention_heads = 2, intermediate_size = 8,
          max_position_embeddings = 8, dropout = 0} end, ids,
          function(net, x) return (net(x)) end, o)
      end
    ]])
  end)

  it("splits layers of attention and of positions", function()
    ranks(3, [[
      local x = lt.cos(lt.arange(2 * 12 * 4, {dtype = "f64"}) * 0.3):reshape(2, 12, 4)
      local Net = lt.Module:extend "Net"
      function Net:init()
        self.attention, self.learned = nn.MultiheadAttention(4, 2), nn.LearnedPositions(12, 4)
        self.sines = nn.SinusoidalPositions(4, {max_length = 12})
      end
      compare(Net, x, function(net, x)
        x = net.sines(net.learned(x))
        return net.attention(x, {causal = true}) + x
      end, {})
    ]])
  end)

  it("replaces the function, the method and lt.nn.functional's, by place and by name", function()
    ranks(2, [[
      local F, q = nn.functional, lt.sin(lt.arange(32, {dtype = "f64"})):reshape(1, 8, 4)
      local wanted = lt.scaled_dot_product_attention(q, q, q, {causal = true})
      do
        local scope <close>, x = P.context_parallel(nil, {buffers = {q}})
        for _, y in ipairs {lt.scaled_dot_product_attention(x, x, x, {causal = true}),
          x:scaled_dot_product_attention(x, x, {causal = true}),
          F.scaled_dot_product_attention(x, x, x, nil, 0, true)} do
          close(wanted, P.unsplit_sequence(y), "outputs")
        end
        local message = error_of(F.scaled_dot_product_attention, x, x, x, {casual = true})
        assert(message:find("product_attention: unknown option 'casual'", 1, true), message)
      end
      close(wanted, lt.scaled_dot_product_attention(q, q, q, {causal = true}), "outputs")
    ]])
  end)

  it("has positions of the whole sequence, in a scope within another too", function()
    ranks(2, [[
      same(lt.arange(4), P.positions(4))
      local outer <close> = P.context_parallel()
      same(rank == 0 and lt.tensor {0, 1, 6, 7} or lt.tensor {2, 3, 4, 5}, P.positions(4))
      do
        local inner <close> = P.context_parallel(nil, {balance = false})
        same(lt.arange(4) + 4 * rank, P.positions(4))
      end
      same(rank == 0 and lt.tensor {0, 1, 6, 7} or lt.tensor {2, 3, 4, 5}, P.positions(4))
    ]])
  end)

  it("refuses a cache of keys", function()
    ranks(2, [[
      local scope <close> = P.context_parallel()
      local x = lt.zeros(1, 1, 2, 4)
      local cache = nn.KVCache(4)
      local message = error_of(cache.append, cache, x, x)
      assert(message:find("nn.KVCache: a cache needs whole sequences", 1, true), message)
    ]])
  end)

  it("leaves one rank as it is", function()
    support.ranks(1, SETUP .. [[
      local q = lt.sin(lt.arange(20, {dtype = "f64"})):reshape(1, 5, 4)
      local wanted = lt.scaled_dot_product_attention(q, q, q)
      local scope <close> = P.context_parallel(nil, {balance = false})
      close(wanted, lt.scaled_dot_product_attention(q, q, q), "outputs")
      same(lt.arange(5), P.positions(5))
    ]])
  end)
end)
