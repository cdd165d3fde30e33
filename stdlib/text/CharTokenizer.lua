-- stdlib/text/CharTokenizer.lua: one token per character.

local Tokenizer = require "ltrain.text.Tokenizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local count_words = require "ltrain.text.count_words"
local tokenizer_files = require "ltrain.text.tokenizer_files"

local CharTokenizer = class.extend(Tokenizer, "CharTokenizer")

local OPTIONS <const> = {
  unk_token = { type = "string",
    doc = "the token, id 0, of characters that the texts lacked; without it they are left out" },
}

--- Trains a tokenizer on the characters of texts (a string, a list of strings, or a function that
--- returns the next one at each call), with ids in the order of Unicode. Option: `unk_token`, the
--- token (id 0) of unknown characters; without it they are omitted.
---@param texts string|table|function
function CharTokenizer.train(texts, options)
  local o <const> = config.check(options, OPTIONS, "text.CharTokenizer.train")
  local characters = count_words(texts, "(?s).", false, "text.CharTokenizer.train"):words()
  table.sort(characters)
  if o.unk_token then table.insert(characters, 1, o.unk_token) end
  local vocab = {}
  for k, character in ipairs(characters) do vocab[character] = k - 1 end
  local unk = o.unk_token and c.io.json_encode(o.unk_token, { plain = true }) or "null"
  return CharTokenizer(tokenizer_files.compose({
    decoder = '{"type":"Fuse"}',
    model = ('{"type":"BPE","unk_token":%s,"fuse_unk":false,"vocab":%s,"merges":[]}')
      :format(unk, c.io.json_encode(vocab, { plain = true })),
  }))
end

return CharTokenizer
