-- stdlib/text/tokenizer_files.lua: builds the text of a tokenizer.json from its parts, or from
-- older files (vocab.json, vocab.txt).

local c = require "ltrain.c"

local tokenizer_files = {}

local PLAIN <const> = { plain = true }
local function json(value) return c.io.json_encode(value, PLAIN) end

local BYTE_LEVEL <const> = {
  pre_tokenizer = '{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,'
    .. '"use_regex":true}',
  decoder = '{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}',
}

--- A tokenizer.json. `parts`: the JSON of its fields; `special`: a list of {id, content} of tokens
--- that are found before all else.
function tokenizer_files.compose(parts, special)
  local added = {}
  for k, token in ipairs(special or {}) do
    added[k] = ('{"id":%d,"content":%s,"single_word":false,"lstrip":false,"rstrip":false,'
      .. '"normalized":false,"special":true}'):format(token[1], json(token[2]))
  end
  local text = { ('{"version":"1.0","truncation":null,"padding":null,"added_tokens":[%s]')
    :format(table.concat(added, ",")) }
  for _, field in ipairs { "normalizer", "pre_tokenizer", "post_processor", "decoder", "model" } do
    text[#text + 1] = (',"%s":%s'):format(field, parts[field] or "null")
  end
  return table.concat(text) .. "}\n"
end

--- Of byte-level BPE: the members of `vocab` and of `merges` as JSON. `pattern`: not GPT-2's.
function tokenizer_files.byte_level(vocab, merges, special, pattern)
  local parts = { decoder = BYTE_LEVEL.decoder, pre_tokenizer = BYTE_LEVEL.pre_tokenizer }
  parts.model = ('{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,'
    .. '"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":%s,'
    .. '"vocab":{%s},"merges":[%s]}'):format(pattern and "true" or "false", vocab, merges)
  if pattern then
    parts.pre_tokenizer = ('{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":'
      .. '{"Regex":%s},"behavior":"Isolated","invert":false},{"type":"ByteLevel",'
      .. '"add_prefix_space":false,"trim_offsets":true,"use_regex":false}]}'):format(json(pattern))
  end
  return tokenizer_files.compose(parts, special)
end

-- What is wrong with a file that is not UTF-8; nil: it is.
local function not_utf8(text, name)
  local _, at = utf8.len(text)
  return at and ("%s must be UTF-8: byte %d is 0x%02x"):format(name, at, text:byte(at))
end

--- GPT-2's two files: the text of vocab.json and that of merges.txt; nil and what is wrong.
function tokenizer_files.of_merges(vocab, merges)
  local list, special, wrong = {}, {}, not_utf8(merges, "merges.txt")
  if wrong then return nil, wrong end
  for line in merges:gmatch "[^\r\n]+" do
    if not line:find "^#version" then list[#list + 1] = json(line) end
  end
  local end_of_text = c.io.json_decode(vocab, PLAIN)
  end_of_text = type(end_of_text) == "table" and end_of_text["<|endoftext|>"]
  if math.type(end_of_text) then special[1] = { end_of_text, "<|endoftext|>" } end
  local members = vocab:match "^%s*{(.*)}%s*$"
  if not members then return nil, "vocab.json must be an object" end
  return tokenizer_files.byte_level(members, table.concat(list, ","), special)
end

local BERT_SPECIAL <const> = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" }

local function template(cls, sep)
  local function special(name) return ('{"SpecialToken":{"id":"%s","type_id":0}}'):format(name) end
  local function known(name, id)
    return ('"%s":{"id":"%s","ids":[%d],"tokens":["%s"]}'):format(name, name, id, name)
  end
  local function part(name, type_id)
    return ('{"Sequence":{"id":"%s","type_id":%d}}'):format(name, type_id)
  end
  local first = special "[CLS]" .. "," .. part("A", 0) .. "," .. special "[SEP]"
  local second = part("B", 1) .. ',{"SpecialToken":{"id":"[SEP]","type_id":1}}'
  return ('{"type":"TemplateProcessing","single":[%s],"pair":[%s,%s],"special_tokens":{%s,%s}}')
    :format(first, first, second, known("[CLS]", cls), known("[SEP]", sep))
end

--- BERT's vocab.txt: a token a line; nil and what is wrong.
function tokenizer_files.of_vocab(text, lowercase)
  local vocab, special, id = {}, {}, 0
  local wrong = not_utf8(text, "vocab.txt")
  if wrong then return nil, wrong end
  for line in text:gmatch "([^\n]*)\n?" do
    line = line:gsub("\r$", "")
    if line ~= "" then vocab[line] = id end
    id = id + 1
  end
  for _, token in ipairs(BERT_SPECIAL) do
    if vocab[token] then special[#special + 1] = { vocab[token], token } end
  end
  return tokenizer_files.compose({
    normalizer = ('{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,'
      .. '"strip_accents":null,"lowercase":%s}'):format(tostring(lowercase)),
    pre_tokenizer = '{"type":"BertPreTokenizer"}',
    post_processor = vocab["[CLS]"] and vocab["[SEP]"]
      and template(vocab["[CLS]"], vocab["[SEP]"]) or nil,
    decoder = '{"type":"WordPiece","prefix":"##","cleanup":true}',
    model = ('{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",'
      .. '"max_input_chars_per_word":100,"vocab":%s}'):format(json(vocab)),
  }, special)
end

return tokenizer_files
