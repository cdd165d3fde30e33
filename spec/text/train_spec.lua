-- spec/text/train_spec.lua: training of tokenizers; BPE against Hugging Face's trainer.
-- tags: threads
local error_of = require "spec.error_of"
local lt = require "ltrain"

describe("lt.text.BPETokenizer.train", function()
  local recorded = lt.json.read "spec/text/recorded/training.json"

  it("finds the merges of Hugging Face's trainer", function()
    for _, pattern in ipairs { "gpt2", "llama3" } do
      local t = lt.text.BPETokenizer.train(recorded.lines, { vocab_size = 420, min_frequency = 1,
        pattern = pattern, special_tokens = pattern == "gpt2" and { "<|endoftext|>" } or {} })
      local vocab = recorded.vocab[pattern]
      assert.equal(420, t.vocab_size)
      assert.same(vocab, t:get_vocab())
      local path = os.tmpname()
      assert(t:save(path))
      assert.same(recorded.merges[pattern], lt.json.read(path).model.merges)
      os.remove(path)
    end
  end)

  it("takes a string, a list and a function, and gives every text back", function()
    local one = lt.text.BPETokenizer.train("low lower lowest low low", { vocab_size = 270 })
    local parts = { "low lower lowest", " low low" }
    local list = lt.text.BPETokenizer.train(parts, { vocab_size = 270 })
    assert.same(one:get_vocab(), list:get_vocab())
    local texts, k = { "low lower lowest", " low low" }, 0
    local made = lt.text.BPETokenizer.train(function()
      k = k + 1
      return texts[k]
    end, { vocab_size = 270 })
    assert.same(list:get_vocab(), made:get_vocab())
    local text = "lowest \xff\0 höher<|endoftext|>"
    assert.equal(text, one:decode(one:encode(text), { skip_special_tokens = false }))
    assert.equal(0, one:token_to_id "<|endoftext|>")
    assert.equal(1, #one:encode("<|endoftext|>"))
  end)

  it("leaves pairs that are too rare alone", function()
    local t = lt.text.BPETokenizer.train("ab ab cd", { min_frequency = 2, special_tokens = {} })
    assert.is_truthy(t:token_to_id "ab")
    assert.is_nil(t:token_to_id "cd")
    assert.is_true(t.vocab_size < 262, t.vocab_size)
  end)

  it("refuses what is not text", function()
    assert.matches("train: texts%[2%] must be a string: got nil",
      error_of(function() lt.text.CharTokenizer.train { "a", nil, "b" } end))
    assert.matches("train: texts must be strings: got 7",
      error_of(function() lt.text.BPETokenizer.train { 7 } end))
    assert.matches("vocab_size must be at least 256: got 10",
      error_of(function() lt.text.BPETokenizer.train("a", { vocab_size = 10 }) end))
    assert.matches("pattern must be 'gpt2' or 'llama3'",
      error_of(function() lt.text.BPETokenizer.train("a", { pattern = "bert" }) end))
  end)
end)

describe("lt.text.CharTokenizer.train", function()
  it("gives a character an id, in the order of Unicode", function()
    local t = lt.text.CharTokenizer.train { "hello\n", "wörld 日" }
    assert.equal(11, t.vocab_size)
    assert.same({ 0, 1, 2 }, { t:token_to_id "\n", t:token_to_id " ", t:token_to_id "d" })
    local ids = t:encode "hold 日"
    assert.same({ 6 }, ids.shape)
    assert.equal("hold 日", t:decode(ids))
    assert.equal("hld", t:decode(t:encode "hxlyd"))
  end)

  it("may have a token for other characters", function()
    local t = lt.text.CharTokenizer.train("ab", { unk_token = "?" })
    assert.same({ 1, 0, 0, 2 }, t:encode("axyb"):tolist())
    assert.equal("a??b", t:decode { 1, 0, 0, 2 })
  end)
end)

describe("lt.text.WordTokenizer.train", function()
  it("keeps the most frequent words", function()
    local t = lt.text.WordTokenizer.train("The cat. the dog, the CAT; a dog", { vocab_size = 5 })
    assert.equal(5, t.vocab_size)
    assert.same({ 2, 3, 4, 1 }, t:encode("THE cat dog mouse"):tolist())
    assert.equal("the cat dog", t:decode { 2, 3, 4 })
    local ids, mask = t:encode_batch { "the cat", "dog" }
    assert.same({ { 2, 3 }, { 4, 0 } }, ids:tolist())
    assert.same({ { true, true }, { true, false } }, mask:tolist())
  end)

  it("may keep capital letters and leave rare words out", function()
    local t = lt.text.WordTokenizer.train("Ab ab Ab c", { lowercase = false, min_frequency = 2,
      special_tokens = { "?" }, unk_token = "?" })
    assert.same({ Ab = 1, ["?"] = 0 }, t:get_vocab())
    assert.matches("unk_token '%[UNK%]' is not one of special_tokens",
      error_of(function() lt.text.WordTokenizer.train("a", { special_tokens = {} }) end))
  end)
end)
