-- spec/models/beam_search_spec.lua: lt.generate with beams, beside all sequences that there are.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require "spec.models.recorded"

local V <const> = 4

local function small(name)
  if name == "gpt2" then
    return lt.models.gpt2 { vocab_size = V, n_positions = 16, n_embd = 8, n_layer = 1, n_head = 2 }
  elseif name == "llama" then
    return lt.models.llama { vocab_size = V, hidden_size = 8, intermediate_size = 8,
      num_hidden_layers = 2, num_attention_heads = 2, max_position_embeddings = 16 }
  end
  return lt.models.lstm_lm { vocab_size = V, width = 6, hidden = 6, dropout = 0 }
end

-- Larger weights: sequences of different probability.
local function wide(model)
  local _ <close> = lt.no_grad()
  for _, p in ipairs(model:parameters()) do p:add_(lt.randn(p.shape)) end
  return model:eval()
end

-- All continuations of a prompt with their scores, the best first: those that end with `stop`, and
-- those of `count` tokens.
local function all_sequences(model, prompt, count, stop, penalty)
  local found = {}
  local function extend(ids, sum)
    local logits <const> = model(lt.tensor({ ids }, { dtype = "i64" }))
    local logp <const> = logits:select(2, -1):log_softmax(-1):view(-1):tolist()
    for id = 0, V - 1 do
      local longer <const> = table.move(ids, 1, #ids, 1, {})
      longer[#longer + 1] = id
      local n <const>, total = #longer - #prompt, sum + logp[id + 1]
      if id == stop or n == count then
        found[#found + 1] = { ids = longer, score = total / n ^ penalty }
      else
        extend(longer, total)
      end
    end
  end
  extend(prompt, 0)
  table.sort(found, function(a, b) return a.score > b.score end)
  return found
end

-- A model of three tokens, whose probabilities depend on the token before.
local function chain(ids)
  local t <const> = lt.tensor { { 0.55, 0.45, 0 }, { 0.05, 0, 0.95 }, { 1 / 3, 1 / 3, 1 / 3 } }
  return t:log():index_select(1, ids:flatten()):view(ids.shape[1], ids.shape[2], 3)
end

describe("lt.generate with num_beams", function()
  before_each(function() lt.seed(4) end)

  for _, name in ipairs { "gpt2", "llama", "lstm_lm" } do
    for _, penalty in ipairs { 1, 0, -0.5, 2 } do
      it(("finds the best sequences of %s with length_penalty = %g"):format(name, penalty),
        function()
          local _ <close> = lt.no_grad()
          local model <const>, prompts = wide(small(name)), { { 1, 2 }, { 3, 1 } }
          local ids <const>, scores = lt.generate(model, lt.tensor(prompts), { max_new_tokens = 3,
            num_beams = 50, num_return_sequences = 4, length_penalty = penalty, stop = 0 })
          for j, prompt in ipairs(prompts) do
            local want <const> = all_sequences(model, prompt, 3, 0, penalty)
            for r = 1, 4 do
              local row <const>, best = (j - 1) * 4 + r, want[r]
              while #best.ids < ids.shape[2] do best.ids[#best.ids + 1] = 0 end
              assert.same(best.ids, ids[row]:tolist())
              assert.near(best.score, scores[row]:item(), 1e-4)
            end
          end
        end)
    end
  end

  it("follows what is likely together, not what is at first", function()
    local options <const> = { max_new_tokens = 2, temperature = 0 }
    assert.same({ 0, 0, 0 }, lt.generate(chain, { 0 }, options):tolist()) -- 0.55 ^ 2
    options.num_beams = 2
    local ids <const>, scores = lt.generate(chain, { 0 }, options)
    assert.same({ 0, 1, 2 }, ids:tolist())
    assert.near(math.log(0.45 * 0.95) / 2, scores:item(), 1e-6)
  end)

  it("finds and ends as Hugging Face's generate does", function() -- recorded by torch_models.py
    local record <const> = recorded.of "gpt2"
    local model <const>, n = lt.models.gpt2(record.options), 0
    model:load_state_dict(record.state)
    for text in io.lines "spec/models/beams.jsonl" do
      local want <const> = lt.json.decode(text)
      local ids <const>, scores = lt.generate(model, want.prompt, want.options)
      for r, row in ipairs(want.ids) do
        while #row < ids.shape[2] do row[#row + 1] = want.options.stop[1] end
        assert.same(row, ids[r]:tolist())
        assert.near(want.scores[r], scores[r]:item(), 1e-4)
      end
      n = n + 1
    end
    assert.equal(36, n)
  end)

  it("gives each sequence of a batch what it gives it alone, with a cache reordered", function()
    local model <const> = wide(small "gpt2")
    local prompts <const> = { { 1, 2, 3 }, { 3, 3, 1 }, { 2, 1, 1 } }
    local options <const> = { max_new_tokens = 8, num_beams = 3, num_return_sequences = 2,
                              stop = 0 }
    local together <const>, scores = lt.generate(model, lt.tensor(prompts), options)
    local uncached <const> = setmetatable({}, { __call = function(_, ids)
      return (model(ids))
    end })
    for j, prompt in ipairs(prompts) do
      local alone <const>, own = lt.generate(uncached, prompt, options)
      for r = 1, 2 do
        local ids <const> = together[(j - 1) * 2 + r]:tolist()
        for t, id in ipairs(alone[r]:tolist()) do assert.equal(id, ids[t]) end
        assert.near(own[r]:item(), scores[(j - 1) * 2 + r]:item(), 1e-4)
      end
    end
  end)

  it("draws several sequences of each, of one beam", function()
    local ids <const> = lt.generate(chain, lt.tensor { { 2 }, { 1 } }, { max_new_tokens = 3,
      num_return_sequences = 3 })
    assert.same({ 6, 4 }, ids.shape)
    assert.same({ 2, 2, 2, 1, 1, 1 }, ids:select(2, 1):tolist())
  end)

  it("refuses what searching and drawing have not in common", function()
    local function check(message, options)
      options.max_new_tokens = 2
      assert.matches(message, error_of(lt.generate, chain, { 0 }, options))
    end
    check("generate: top_k: beams are not drawn", { num_beams = 2, top_k = 1 })
    check("generate: temperature: beams are not drawn", { num_beams = 2, temperature = 0.5 })
    check("num_return_sequences must be at most num_beams = 2: got 3",
      { num_beams = 2, num_return_sequences = 3 })
    check("num_return_sequences = 2: the likeliest tokens are one sequence",
      { temperature = 0, num_return_sequences = 2 })
    check("early_stopping.* must be true, false or 'never': got 'now'",
      { num_beams = 2, early_stopping = "now" })
    assert.matches("num_beams: a model with a cache needs reorder_cache", error_of(lt.generate,
      function(ids) return chain(ids), { 1 } end, { 0 }, { max_new_tokens = 2, num_beams = 2 }))
  end)
end)
