-- spec/text/tokenizer_spec.lua: tokenizers from files, against what Hugging Face's library makes of
-- the same (recorded by spec/text/record.py; spec/text/check.py compares 10 MB).
local c = require "ltrain.c"
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local FOLDER <const> = "spec/text/recorded/"
local NAMES <const> = { "gpt2", "llama3", "bert_uncased", "bert_cased", "odd", "characters" }

local function load(name) return assert(lt.text.tokenizer(FOLDER .. name .. ".json")) end

describe("lt.text.tokenizer", function()
  for _, name in ipairs(NAMES) do
    it("gives the ids and texts of Hugging Face's library: " .. name, function()
      local tokenizer, seen = load(name), 0
      for _, case in ipairs(assert(lt.json.read(FOLDER .. name .. "_cases.json"))) do
        for _ = 1, 2 do -- the second time words are remembered
          assert.same(case.ids, tokenizer:encode(case.text):tolist(), case.text)
        end
        assert.same(case.plain,
          tokenizer:encode(case.text, { add_special_tokens = false }):tolist(), case.text)
        assert.equal(case.decoded, tokenizer:decode(case.ids))
        assert.equal(case.whole, tokenizer:decode(case.ids, { skip_special_tokens = false }))
        seen = seen + #case.ids
      end
      assert(seen > 500, seen)
    end)
  end

  it("gives every string of bytes back: byte-level BPE", function()
    local all = {}
    for byte = 0, 255 do all[#all + 1] = string.char(byte) end
    all = table.concat(all)
    local texts = { all, all:reverse(), "a\xc3", "\xc3\x28", "\xed\xa0\x80", "\xf0\x9f\x98",
      "é\xff\xfeé", "\xc0\x80", ("\x80"):rep(500), ("ab\xff"):rep(100) .. " x", ("a"):rep(5000) }
    for _, name in ipairs { "gpt2", "llama3" } do
      local tokenizer = load(name)
      for _, text in ipairs(texts) do
        assert.equal(text, tokenizer:decode(tokenizer:encode(text)))
      end
    end
  end)

  it("merges long words as short ones", function()
    local tokenizer = load "gpt2" -- 48 symbols and more are merged by a heap
    local word = ("thesewouldhavebeenfromaboutwordsthatother"):rep(3)
    local whole = tokenizer:encode(word):tolist()
    local vocab, ranks = tokenizer:get_vocab(), {}
    for rank, merge in ipairs(lt.json.read(FOLDER .. "gpt2.json").model.merges) do
      ranks[merge[1] .. " " .. merge[2]] = rank
    end
    local symbols = {}
    for letter in word:gmatch "." do symbols[#symbols + 1] = letter end
    while true do
      local best, at
      for k = 1, #symbols - 1 do
        local rank = ranks[symbols[k] .. " " .. symbols[k + 1]]
        if rank and (not best or rank < best) then best, at = rank, k end
      end
      if not at then break end
      symbols[at] = symbols[at] .. table.remove(symbols, at + 1)
    end
    for k, symbol in ipairs(symbols) do symbols[k] = vocab[symbol] end
    assert.same(symbols, whole)
  end)

  it("has a vocabulary", function()
    local t = load "bert_uncased"
    assert.equal(420, t.vocab_size)
    assert.equal(0, t.pad_id)
    assert.equal(2, t:token_to_id "[CLS]")
    assert.equal("[SEP]", t:id_to_token(3))
    assert.is_nil(t:token_to_id "no such token")
    assert.is_nil(t:id_to_token(100000))
    assert.equal(4, t:get_vocab()["[MASK]"])
  end)

  it("makes batches with a mask", function()
    local t = load "bert_uncased"
    local ids, mask = t:encode_batch { "the the", "the" }
    local the = t:token_to_id "the"
    assert.same({ { 2, the, the, 3 }, { 2, the, 3, 0 } }, ids:tolist())
    assert.same({ { true, true, true, true }, { true, true, true, false } }, mask:tolist())
    ids, mask = t:encode_batch({ "the the the the", "" }, { length = 4, pad_id = 7 })
    assert.same({ { 2, the, the, 3 }, { 2, 3, 7, 7 } }, ids:tolist())
    assert.same({ { true, true, true, true }, { true, true, false, false } }, mask:tolist())
    ids = t:encode_batch({ "the the the" }, { length = 2, add_special_tokens = false })
    assert.same({ { the, the } }, ids:tolist())
    assert.same({ 0, 0 }, t:encode_batch({}).shape)
    ids = t:encode_batch { "the the", "" }
    assert.same({ "the the", "" }, t:decode_batch(ids))
  end)

  it("saves what it has read", function()
    local path = os.tmpname()
    local t = load "llama3"
    assert(t:save(path))
    local again = assert(lt.text.tokenizer(path))
    os.remove(path)
    assert.same(t:encode("it's <|x|> 12345"):tolist(), again:encode("it's <|x|> 12345"):tolist())
  end)

  it("refuses what is not text and no id", function()
    local t = load "gpt2"
    assert.matches("encode: text must be a string: got 3",
      error_of(function() t:encode(3) end))
    assert.matches("texts%[2%] must be a string",
      error_of(function() t:encode_batch { "a", 1 } end))
    assert.matches("tokenizer_spec.lua:%d+: encode_batch: texts%[2%] must be a string: got nil",
      error_of(function() t:encode_batch { "a", nil, "b" } end))
    assert.matches("text.write_tokens: files%[2%] must be a string: got nil",
      error_of(function() lt.text.write_tokens("absent", t, { "a", nil, "b" }) end))
    assert.matches("there is no token with id 999 %(the vocabulary has 420%)",
      error_of(function() t:decode { 1, 999 } end))
    assert.matches("must be a tensor %[T%]", error_of(function() t:decode(lt.zeros(2, 2)) end))
    assert.matches("did you mean 'add_special_tokens'",
      error_of(function() t:encode("a", { add_special_token = true }) end))
  end)
end)

describe("lt.text.tokenizer of older files", function()
  local folder
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(c.io.make_folder(folder))
  end)
  after_each(function()
    for _, name in ipairs(c.io.list_folder(folder)) do os.remove(folder .. "/" .. name) end
    os.remove(folder)
  end)

  local function write(name, text) assert(c.io.write_file(folder .. "/" .. name, text)) end

  it("reads GPT-2's vocab.json and merges.txt", function()
    local model = lt.json.read(FOLDER .. "gpt2.json").model
    local merges = { "#version: 0.2" }
    for _, merge in ipairs(model.merges) do merges[#merges + 1] = table.concat(merge, " ") end
    write("vocab.json", lt.json.encode(model.vocab))
    write("merges.txt", table.concat(merges, "\n") .. "\n")
    local want, t = load "gpt2", assert(lt.text.tokenizer(folder))
    for _, case in ipairs(lt.json.read(FOLDER .. "gpt2_cases.json")) do
      assert.same(case.ids, t:encode(case.text):tolist())
    end
    assert.equal(want.vocab_size, t.vocab_size)
    os.remove(folder .. "/merges.txt")
    local none, message = lt.text.tokenizer(folder .. "/vocab.json")
    assert.is_nil(none)
    assert.matches("merges.txt: No such file", message)
  end)

  it("reads BERT's vocab.txt, cased and uncased", function()
    for _, name in ipairs { "bert_uncased", "bert_cased" } do
      local want = load(name)
      local lines = {}
      for id = 0, want.vocab_size - 1 do lines[id + 1] = want:id_to_token(id) end
      write("vocab.txt", table.concat(lines, "\n") .. "\n")
      write("tokenizer_config.json",
        lt.json.encode { do_lower_case = name == "bert_uncased" })
      local t = assert(lt.text.tokenizer(folder))
      for _, case in ipairs(lt.json.read(FOLDER .. name .. "_cases.json")) do
        assert.same(case.ids, t:encode(case.text):tolist())
        assert.equal(case.decoded, t:decode(case.ids))
      end
      local other = assert(lt.text.tokenizer(folder .. "/vocab.txt",
        { lowercase = name == "bert_uncased" }))
      assert.same(t:encode("The THE"):tolist(), other:encode("The THE"):tolist())
    end
  end)

  it("says what a folder lacks", function()
    local none, message = lt.text.tokenizer(folder)
    assert.is_nil(none)
    assert.matches("has no tokenizer.json, vocab.json or vocab.txt", message)
  end)

  it("says where a file is not UTF-8", function()
    write("vocab.txt", "[UNK]\na\xe1b\n")
    local none, message = lt.text.tokenizer(folder)
    assert.is_nil(none)
    assert.matches("tokenizer: /.*vocab.txt: vocab.txt must be UTF%-8: byte 8 is 0xe1", message)
    write("vocab.json", '{"a":0}')
    write("merges.txt", "a \xff\n")
    none, message = lt.text.tokenizer(folder)
    assert.is_nil(none)
    assert.matches("vocab.json: merges.txt must be UTF%-8: byte 3 is 0xff", message)
  end)
end)

describe("a bad tokenizer.json", function()
  local MODEL <const> = '"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}'

  local function refused(json, text)
    local path = os.tmpname()
    assert(c.io.write_file(path, json))
    local none, message = lt.text.tokenizer(path)
    os.remove(path)
    assert.is_nil(none)
    assert.equal("text.tokenizer: " .. path .. ": " .. text, message)
  end

  it("is refused with the field that is wrong", function()
    refused("{}", "model must be an object")
    refused('{"model":{}}', "model.vocab must be an object")
    refused('{"model":{"type":"Unigram","vocab":{}}}',
      "model.type is Unigram: BPE, WordPiece and WordLevel are supported")
    refused('{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}',
      "model.vocab must have a number of 0 or more for 'a'")
    refused('{"model":{"type":"BPE","vocab":{"a":2000000000},"merges":[]}}',
      "model.vocab must have a number of 0 or more for 'a', near those of the others")
    refused('{"model":{"type":"BPE","vocab":{"a":0}}}', "model.merges must be a list")
    refused('{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}',
      "model.merges[0] has 'aa', which model.vocab lacks")
    refused('{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}',
      'model.merges[0] must be two tokens: "left right" or ["left", "right"]')
    refused('{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"byte_fallback":true}}',
      "model.byte_fallback is not supported")
    refused('{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"b"}}',
      "model.unk_token is 'b', which model.vocab lacks")
    refused('{"model":{"type":"WordPiece","vocab":{"a":0}}}', "model.unk_token must be a token")
  end)

  it("is refused with the step that is not supported", function()
    refused("{" .. MODEL .. ',"normalizer":{"type":"Precompiled"}}',
      "normalizer is a Precompiled, which is not supported")
    refused("{" .. MODEL .. ',"pre_tokenizer":{"type":"Sequence","pretokenizers":'
      .. '[{"type":"ByteLevel"},{"type":"Digits"}]}}',
      "pre_tokenizer.pretokenizers[1] comes after ByteLevel, which must be the last")
    refused("{" .. MODEL .. ',"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},'
      .. '"behavior":"Isolated"}}', "pre_tokenizer: not a pattern: missing closing parenthesis")
    refused("{" .. MODEL .. ',"decoder":{"type":"Metaspace"}}',
      "decoder is a Metaspace, which is not supported")
    refused("{" .. MODEL .. ',"post_processor":{"type":"TemplateProcessing","single":[]}}',
      "post_processor must have one sequence in `single`")
    refused("{" .. MODEL .. ',"added_tokens":[{"id":1}]}',
      "added_tokens[0] must have a content, a text")
    refused("{" .. MODEL .. ',"added_tokens":7}', "added_tokens must be a list")
  end)

  it("may name a token twice", function()
    local t = lt.text.Tokenizer("{" .. MODEL .. ',"added_tokens":[{"id":500,"content":"x"},'
      .. '{"id":3,"content":"x"}]}')
    assert.same({ 500, 2 }, t:encode("xab"):tolist())
  end)

  it("may name tokens that must stand alone", function()
    local t = lt.text.Tokenizer("{" .. MODEL .. ',"added_tokens":[{"id":9,"content":"aa",'
      .. '"single_word":true,"normalized":false}]}')
    for _, text in ipairs { "aa", ".aa!", "aa\xff", "\u{3000}aa" } do
      assert.same({ 9 }, t:encode(text):tolist(), text)
    end
    for _, text in ipairs { "xaa", "aa1", "éaa", "aa\u{3027}", "aa\u{24b6}", "aa\u{301}" } do
      assert.same({ 0, 0 }, t:encode(text):tolist(), text)
    end
  end)

  it("is an error of the script as a text", function()
    assert.matches("tokenizer_spec.lua:%d+: text.Tokenizer: model must be an object",
      error_of(function() lt.text.Tokenizer "{}" end))
  end)

  it("with a pattern that explodes ends in an error", function()
    local t = lt.text.Tokenizer("{" .. MODEL .. ',"pre_tokenizer":{"type":"Split","pattern":'
      .. '{"Regex":"(a|aa)+$"},"behavior":"Isolated"}}')
    assert.matches("a pattern of the tokenizer takes too long",
      error_of(function() t:encode(("a"):rep(60) .. "b") end))
  end)
end)

describe("damaged tokenizers and texts", function()
  it("are read, or refused by a sentence, whatever the damage", function()
    local status, out, err = child.run { "spec/fuzz/text.lua", "400", "3" }
    assert.equal(0, status, err)
    assert.matches("400 runs from seed 3: read %d+ tokenizer.json", out)
  end)
end)
