-- spec/text/tokens_spec.lua: text files as files of token ids, and their blocks as samples.
local c = require "ltrain.c"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local FOLDER <const> = "spec/text/recorded/"
local PIECE <const> = 1 << 20 -- what is read at a time

describe("lt.text.write_tokens", function()
  local names
  before_each(function() names = {} end)
  after_each(function()
    for _, name in ipairs(names) do os.remove(name) end
  end)

  local function path_of(text)
    local name = os.tmpname()
    names[#names + 1] = name
    if text then assert(c.io.write_file(name, text)) end
    return name
  end

  local gpt2 = assert(lt.text.tokenizer(FOLDER .. "gpt2.json"))

  it("writes u16, little-endian, and nothing else", function()
    local path = path_of()
    local text = "Hello, world! 12 été\n"
    local n = assert(lt.text.write_tokens(path, gpt2, path_of(text)))
    local want = gpt2:encode(text):tolist()
    assert.equal(#want, n)
    local bytes = assert(c.io.read_file(path))
    assert.equal(2 * n, #bytes)
    for k, id in ipairs(want) do assert.equal(id, (string.unpack("<I2", bytes, 2 * k - 1))) end
    local ids = assert(lt.text.read_tokens(path))
    assert.equal("u16", ids.dtype)
    assert.same(want, ids:tolist())
  end)

  it("writes a token after each file, and i32", function()
    local path = path_of()
    local n = assert(lt.text.write_tokens(path, gpt2, { path_of "a", path_of "", path_of "b c" },
      { separator = "<|endoftext|>", dtype = "i32" }))
    local stop = gpt2:token_to_id "<|endoftext|>"
    local want = gpt2:encode("a<|endoftext|><|endoftext|>b c<|endoftext|>"):tolist()
    assert.equal(stop, want[2])
    assert.equal(#want, n)
    assert.same(want, lt.text.read_tokens(path, { dtype = "i32" }):tolist())
  end)

  it("cuts a long file where that changes no token", function()
    for _, name in ipairs { "gpt2", "llama3" } do
      local tokenizer = assert(lt.text.tokenizer(FOLDER .. name .. ".json"))
      local lines = { "x,\n\n  the 12\n", "\n", "it's\n'LL ...\nend.\r\nx\n \n" }
      local part = table.concat(lines):rep(200) .. ("the of "):rep(300)
      local text = part:rep((PIECE + 50000) // #part + 1)
      local path = path_of()
      assert(lt.text.write_tokens(path, tokenizer, path_of(text)))
      local want = tokenizer:encode(text, { add_special_tokens = false })
      assert.is_true(lt.text.read_tokens(path):to("i64"):equal(want), name)
    end
  end)

  it("leaves the former file where one cannot be read", function()
    local path = path_of "former"
    local none, message = lt.text.write_tokens(path, gpt2, { path_of "a", "absent.txt" })
    assert.is_nil(none)
    assert.matches("text.write_tokens: cannot open absent.txt", message)
    assert.equal("former", c.io.read_file(path))
  end)

  it("refuses what it cannot write", function()
    assert.matches("tokenizer must be a tokenizer: got nil",
      error_of(function() lt.text.write_tokens("a.bin", nil, "b") end))
    assert.matches("separator: there is no token 'x y'",
      error_of(function() lt.text.write_tokens("a.bin", gpt2, "b", { separator = "x y" }) end))
    local none, message = lt.text.read_tokens(path_of "abc")
    assert.is_nil(none)
    assert.matches("3 bytes are not a file of u16", message)
    none, message = lt.text.read_tokens(path_of "")
    assert.is_nil(none)
    assert.matches("0 bytes are not a file of u16", message)
    assert.matches("No such file", select(2, lt.text.read_tokens "absent.bin"))
  end)

  it("fails where an id does not fit", function()
    local tokenizer = lt.text.Tokenizer('{"model":{"type":"BPE","vocab":{"a":65535},'
      .. '"merges":[]},"added_tokens":[{"id":65536,"content":"<x>"}]}')
    local path = path_of()
    assert(lt.text.write_tokens(path, tokenizer, path_of "a<x>"))
    assert.same({ 65535, 65536 }, lt.text.read_tokens(path, { dtype = "i32" }):tolist())
    assert.matches("token 65536 does not fit into u16: dtype = 'i32'", error_of(function()
      lt.text.write_tokens(path, tokenizer, path_of "a<x>", { dtype = "u16" })
    end))
  end)
end)

describe("lt.text.token_blocks", function()
  it("gives ids and the next ones", function()
    local blocks = lt.text.token_blocks(lt.arange(12), 4)
    assert.equal(2, #blocks)
    assert.same({ 4, 5, 6, 7 }, blocks:get(2)[1]:tolist())
    assert.same({ 5, 6, 7, 8 }, blocks:get(2)[2]:tolist())
  end)

  it("gathers batches from a mapped file", function()
    local path, from = os.tmpname(), os.tmpname()
    assert(c.io.write_file(from, ("abcdefgh"):rep(50)))
    local tokenizer = lt.text.CharTokenizer.train "abcdefgh"
    assert.equal(400, assert(lt.text.write_tokens(path, tokenizer, from)))
    local blocks = lt.text.token_blocks(assert(lt.text.read_tokens(path)), 5)
    os.remove(from)
    os.remove(path) -- it stays mapped
    assert.equal(79, #blocks)
    local seen = 0
    for batch in lt.data.DataLoader(blocks, { batch_size = 16, shuffle = true }):batches() do
      local ids, nexts = batch[1]:to "i64", batch[2]:to "i64"
      assert.is_true(ids:add(1):remainder(8):equal(nexts))
      seen = seen + ids.shape[1]
    end
    assert.equal(79, seen)
  end)

  it("refuses fewer ids than a block and one", function()
    assert.matches("4 ids are fewer than a block of 4 and its next token",
      error_of(function() lt.text.token_blocks(lt.arange(4), 4) end))
  end)
end)
