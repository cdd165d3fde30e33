-- stdlib/text/read_tokens.lua: maps a file of token ids as a tensor.

local c = require "ltrain.c"
local config = require "ltrain.core.config"

local OPTIONS <const> = {
  dtype = { type = "string", default = "u16", choices = { "u16", "i32" },
    doc = "dtype of the file" },
}

--- Returns the ids of a file written by `write_tokens` (or nanoGPT), a memory-mapped tensor [n].
--- Returns nil and the reason if the file cannot be read.
---@param path string
return function(path, options)
  local o <const> = config.check(options, OPTIONS, "text.read_tokens")
  config.argument(path, "string", "text.read_tokens", "path")
  return c.text.read_tokens(path, o.dtype)
end
