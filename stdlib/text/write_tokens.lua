-- stdlib/text/write_tokens.lua: tokenizes text files into one file of token ids.

local Tokenizer = require "ltrain.text.Tokenizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  dtype = { type = "string", choices = { "u16", "i32" },
    doc = "two or four bytes per token; by default u16 if all ids fit" },
  separator = { type = "string", doc = "a token to write after each file" },
}
local U16 <const> = 65536

local function separator_id(tokenizer, token, where)
  if not token then return -1 end
  local id = tokenizer:token_to_id(token)
  if not id then errors.blame("%s: separator: there is no token '%s'", where, token) end
  return id
end

--- Writes the ids of text files (a path or a list of paths), without the special tokens of
--- `encode`, as raw numbers: u16, like nanoGPT's .bin files, or i32 (little-endian). Files are read
--- in chunks if the tokenizer's words end at line ends. Returns the number of ids, or nil and the
--- reason if a file cannot be read or written; an existing file is then kept.
---@param path string
---@param tokenizer Tokenizer
---@param files string|table
return function(path, tokenizer, files, options)
  local where <const> = "text.write_tokens"
  local o <const> = config.check(options, OPTIONS, where)
  config.argument(path, "string", where, "path")
  if not class.is_a(tokenizer, Tokenizer) then
    errors.blame("%s: tokenizer must be a tokenizer: got %s", where, errors.show(tokenizer))
  end
  if type(files) == "string" then files = { files } end
  if type(files) ~= "table" then
    errors.blame("%s: files must be a path or a list of them: got %s", where, errors.show(files))
  end
  for k, file in elements.each(files) do
    config.argument(file, "string", where, ("files[%d]"):format(k))
  end
  local dtype = o.dtype or tokenizer.vocab_size <= U16 and "u16" or "i32"
  return c.text.write_tokens(path, tokenizer._core, files, dtype,
    separator_id(tokenizer, o.separator, where))
end
