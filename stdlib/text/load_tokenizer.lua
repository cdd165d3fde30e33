-- stdlib/text/load_tokenizer.lua: lt.text.tokenizer: loads a tokenizer from a tokenizer.json, or
-- from vocab.json and merges.txt, or vocab.txt.

local Tokenizer = require "ltrain.text.Tokenizer"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local tokenizer_files = require "ltrain.text.tokenizer_files"

local OPTIONS <const> = {
  lowercase = { type = "boolean",
    doc = "for a vocab.txt: convert to lower case and strip accents; by default do_lower_case of "
      .. "tokenizer_config.json beside it, or true" },
}

local function beside(path, name)
  return (path:match "^(.*/)[^/]*$" or "") .. name
end

-- The file that a folder has of these.
local function in_folder(path)
  for _, name in ipairs { "tokenizer.json", "vocab.json", "vocab.txt" } do
    if c.io.kind(path .. "/" .. name) == "file" then return path .. "/" .. name end
  end
  return nil, ("text.tokenizer: %s has no tokenizer.json, vocab.json or vocab.txt"):format(path)
end

local function is_lowercase(path, o)
  if o.lowercase ~= nil then return o.lowercase end
  local settings = beside(path, "tokenizer_config.json")
  local text = c.io.kind(settings) == "file" and c.io.read_file(settings)
  local value = text and c.io.json_decode(text, { plain = true })
  return not (type(value) == "table" and value.do_lower_case == false)
end

--- Loads a tokenizer from a file, or from a folder that contains one: Hugging Face's tokenizer.json
--- (models BPE, WordPiece and WordLevel), GPT-2's vocab.json with merges.txt beside it, or BERT's
--- vocab.txt. Ids are equal to those of Hugging Face's library. Returns nil and the reason, with
--- the name of the field, if the file cannot be read or has unsupported features. Padding and
--- truncation settings of the file are ignored: see `encode_batch`.
---@param path string
return function(path, options)
  local o <const> = config.check(options, OPTIONS, "text.tokenizer")
  config.argument(path, "string", "text.tokenizer", "path")
  local message
  if c.io.kind(path) == "folder" then
    path, message = in_folder(path)
    if not path then return nil, message end
  end
  local text
  text, message = c.io.read_file(path)
  if not text then return nil, "text.tokenizer: " .. message:gsub("^read: ", "") end
  if path:find "%.txt$" then
    text, message = tokenizer_files.of_vocab(text, is_lowercase(path, o))
  elseif path:find "vocab%.json$" then
    local merges
    merges, message = c.io.read_file(beside(path, "merges.txt"))
    if not merges then return nil, "text.tokenizer: " .. message:gsub("^read: ", "") end
    text, message = tokenizer_files.of_merges(text, merges)
  end
  if not text then return nil, ("text.tokenizer: %s: %s"):format(path, message) end
  return Tokenizer._of(text, "text.tokenizer: " .. path)
end
