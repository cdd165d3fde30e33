-- stdlib/text/WordTokenizer.lua: one token per word: letters and digits, or punctuation.

local Tokenizer = require "ltrain.text.Tokenizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local count_words = require "ltrain.text.count_words"
local errors = require "ltrain.core.errors"
local tokenizer_files = require "ltrain.text.tokenizer_files"

local WordTokenizer = class.extend(Tokenizer, "WordTokenizer")

local OPTIONS <const> = {
  vocab_size = { type = "integer", default = 30000, min = 1,
    doc = "tokens, at most: special ones and the most frequent words" },
  min_frequency = { type = "integer", default = 1, min = 1, doc = "order of the difference a "
    .. "word must occur" },
  lowercase = { type = "boolean", default = true, doc = "words have small letters" },
  special_tokens = { type = "table", default = { "[PAD]", "[UNK]" },
    doc = "their ids are the first, from 0" },
  unk_token = { type = "string", default = "[UNK]",
    doc = "what other words become: one of the special tokens" },
}
local WORDS <const> = "\\w+|[^\\w\\s]+"

-- Words by order of the difference they occur, then by their bytes.
local function most_frequent(words, counts, least)
  local count, list = {}, {}
  for k, word in ipairs(words) do
    if counts[k] >= least then list[#list + 1] = word end
    count[word] = counts[k]
  end
  table.sort(list, function(a, b)
    if count[a] ~= count[b] then return count[a] > count[b] end
    return a < b
  end)
  return list
end

--- Trains a tokenizer on the most frequent words of texts (a string, a list of strings, or a
--- function that returns the next one at each call). Decoding joins words with spaces. Options:
--- `vocab_size` (30000: special tokens and words), `min_frequency` (1), `lowercase` (true),
--- `special_tokens` ({"[PAD]", "[UNK]"}; with the first ids), `unk_token` ("[UNK]": for unknown
--- words).
---@param texts string|table|function
function WordTokenizer.train(texts, options)
  local where <const> = "text.WordTokenizer.train"
  local o <const> = config.check(options, OPTIONS, where)
  local trainer = count_words(texts, WORDS, o.lowercase, where)
  local vocab, special, next_id = {}, {}, 0
  for k, token in ipairs(o.special_tokens) do
    vocab[token], special[k], next_id = k - 1, { k - 1, token }, k
  end
  if not vocab[o.unk_token] then
    errors.blame("%s: unk_token '%s' is not one of special_tokens", where, o.unk_token)
  end
  local words, counts = trainer:words()
  for _, word in ipairs(most_frequent(words, counts, o.min_frequency)) do
    if next_id >= o.vocab_size then break end
    if not vocab[word] then vocab[word], next_id = next_id, next_id + 1 end
  end
  return WordTokenizer(tokenizer_files.compose({
    normalizer = o.lowercase and '{"type":"Lowercase"}' or nil,
    pre_tokenizer = '{"type":"Whitespace"}',
    model = ('{"type":"WordLevel","vocab":%s,"unk_token":%s}'):format(
      c.io.json_encode(vocab, { plain = true }),
      c.io.json_encode(o.unk_token, { plain = true })),
  }, special))
end

return WordTokenizer
