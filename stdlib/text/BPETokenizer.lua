-- stdlib/text/BPETokenizer.lua: byte-level byte pair encoding: every string can be encoded and
-- decoded.
--
-- Radford et al.: Language models are unsupervised multitask learners, 2019.

local Tokenizer = require "ltrain.text.Tokenizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local count_words = require "ltrain.text.count_words"
local errors = require "ltrain.core.errors"
local tokenizer_files = require "ltrain.text.tokenizer_files"

local BPETokenizer = class.extend(Tokenizer, "BPETokenizer")

local BYTES <const> = 256
local PATTERNS <const> = { gpt2 = c.text.gpt2_pattern, llama3 = c.text.llama3_pattern }

local OPTIONS <const> = {
  vocab_size = { type = "integer", default = 30000, min = BYTES,
    doc = "tokens, at most: special ones, the 256 bytes, and merges" },
  min_frequency = { type = "integer", default = 2, min = 1, doc = "order of the difference a "
    .. "pair must occur" },
  special_tokens = { type = "table", default = { "<|endoftext|>" },
    doc = "their ids are the first, from 0" },
  pattern = { type = "string", default = "gpt2", choices = { "gpt2", "llama3" },
    doc = "whose words are never merged: GPT-2's or Llama 3's" },
}

--- Trains a tokenizer on texts: a string, a list of strings, or a function that returns the next
--- one at each call. Hugging Face's trainer finds the same merges. Options: `vocab_size` (30000:
--- special tokens, the 256 bytes and merges), `min_frequency` (2: minimum count of a pair),
--- `special_tokens` ({"<|endoftext|>"}; with the first ids), `pattern` ("gpt2" or "llama3": how
--- texts are split into words, which are not merged).
---@param texts string|table|function
function BPETokenizer.train(texts, options)
  local where <const> = "text.BPETokenizer.train"
  local o <const> = config.check(options, OPTIONS, where)
  local trainer = count_words(texts, PATTERNS[o.pattern], false, where)
  local specials, members, n = {}, {}, #o.special_tokens
  for k, token in ipairs(o.special_tokens) do
    if type(token) ~= "string" or token == "" then
      errors.blame("%s: special_tokens[%d] must be a string: got %s", where, k, errors.show(token))
    end
    specials[k] = { k - 1, token }
    members[k] = ("%s:%d"):format(c.io.json_encode(token, { plain = true }), k - 1)
  end
  local vocab, merges = trainer:merge(math.max(o.vocab_size - n, BYTES), o.min_frequency, n)
  members[n + 1] = vocab
  return BPETokenizer(tokenizer_files.byte_level(table.concat(members, ","), merges, specials,
    o.pattern ~= "gpt2" and PATTERNS[o.pattern] or nil))
end

return BPETokenizer
