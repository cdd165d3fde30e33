-- stdlib/text/Tokenizer.lua: converts texts to ids and back, as described by a tokenizer.json.
--
-- `lt.text.tokenizer` loads one, and `train` of the other classes creates one. Ids count from 0. It
-- is implemented in C (runtime/text).

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local Tokenizer = class.extend(nil, "Tokenizer")

-- The token that fills up a batch, where a tokenizer has one of these.
local PADDING <const> = { "[PAD]", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>" }

local ENCODE <const> = {
  add_special_tokens = { type = "boolean", default = true,
    doc = "what the tokenizer puts before and after a text ([CLS], [SEP])" },
}
local BATCH <const> = {
  add_special_tokens = ENCODE.add_special_tokens,
  length = { type = "integer", min = 1, doc = "ids of each text; by default those of the longest" },
  pad_id = { type = "integer", min = 0, doc = "by default the tokenizer's [PAD], <pad>, or 0" },
}
local DECODE <const> = {
  skip_special_tokens = { type = "boolean", default = true,
    doc = "leave [CLS], <|endoftext|> and the like out" },
}

-- What C made of the text of a file; the text is what `save` writes.
local function fill(self, core, json)
  self._core, self._json, self.vocab_size, self.pad_id = core, json, core:count(), 0
  for k = #PADDING, 1, -1 do self.pad_id = core:id(PADDING[k]) or self.pad_id end
end

--- lt.text.Tokenizer(json): from the contents of a tokenizer.json. Fields: `vocab_size`, `pad_id`.
function Tokenizer:init(json)
  config.argument(json, "string", "text.Tokenizer", "json")
  local core, message = c.text.read("text.Tokenizer", json)
  if not core then errors.blame("%s", message) end
  fill(self, core, json)
end

-- The same, or nil and the reason, which begins with `what`.
function Tokenizer._of(json, what)
  local core, message = c.text.read(what, json)
  if not core then return nil, message end
  local self = setmetatable({}, Tokenizer)
  fill(self, core, json)
  return self
end

--- Returns the ids of a text, an i64 tensor [T]. Option: `add_special_tokens` (true: add tokens
--- such as [CLS] and [SEP]).
---@param text string
function Tokenizer:encode(text, options)
  local o <const> = config.check(options, ENCODE, "encode")
  config.argument(text, "string", "encode", "text")
  local ids = self._core:encode(text, o.add_special_tokens)
  return ids
end

--- Returns the ids of several texts, i64 [N, T], padded or truncated to one length, and a mask,
--- bool [N, T], true for tokens and false for padding. Options: `length` (that of the longest),
--- `pad_id` (the tokenizer's), `add_special_tokens` (true).
---@param texts table
function Tokenizer:encode_batch(texts, options)
  local o <const> = config.check(options, BATCH, "encode_batch")
  config.argument(texts, "table", "encode_batch", "texts")
  for k, text in elements.each(texts) do
    if type(text) ~= "string" then
      errors.blame("encode_batch: texts[%d] must be a string: got %s", k, errors.show(text))
    end
  end
  local ids, mask = self._core:encode_batch(texts, o.add_special_tokens, o.length or 0,
    o.pad_id or self.pad_id)
  return ids, mask
end

--- Returns the text of ids: a tensor [T], a list of numbers, or one number. Option:
--- `skip_special_tokens` (true: omit [CLS], <|endoftext|> and the like).
---@param ids Tensor
function Tokenizer:decode(ids, options)
  local o <const> = config.check(options, DECODE, "decode")
  if type(ids) == "number" then ids = { ids } end
  if type(ids) == "table" then
    if #ids == 0 then return "" end
    ids = c.tensor(ids, { dtype = "i64" })
  end
  if not c.is_tensor(ids) or ids.ndim ~= 1 then
    errors.blame("decode: ids must be a tensor [T], a list of numbers or a number: got %s",
      errors.show(ids))
  end
  local text = self._core:decode(ids, o.skip_special_tokens)
  return text
end

--- Returns the list of texts of the rows of ids [N, T].
---@param ids Tensor
function Tokenizer:decode_batch(ids, options)
  if not c.is_tensor(ids) or ids.ndim ~= 2 then
    errors.blame("decode_batch: ids must be a tensor [N, T]: got %s", errors.show(ids))
  end
  local texts = {}
  for k = 1, ids.shape[1] do texts[k] = self:decode(ids[k], options) end
  return texts
end

--- Returns the id of a token of the vocabulary, or nil.
---@param token string
function Tokenizer:token_to_id(token)
  config.argument(token, "string", "token_to_id", "token")
  local id = self._core:id(token)
  return id
end

--- Returns the token of an id in the vocabulary, or nil.
---@param id integer
function Tokenizer:id_to_token(id)
  config.argument(id, "integer", "id_to_token", "id")
  local token = self._core:name(id)
  return token
end

--- Returns the vocabulary: a table {[token] = id}.
function Tokenizer:get_vocab()
  local vocab = {}
  for id = 0, self.vocab_size - 1 do
    local token = self._core:name(id)
    if token then vocab[token] = id end
  end
  return vocab
end

--- Writes a tokenizer.json, which Hugging Face's library can read. Returns nil and the reason if
--- that fails.
---@param path string
function Tokenizer:save(path)
  config.argument(path, "string", "save", "path")
  return c.io.write_file(path, self._json)
end

return Tokenizer
