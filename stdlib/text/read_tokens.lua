-- stdlib/text/read_tokens.lua: a file of token ids as a tensor.

local c = require "ltrain.c"
local config = require "ltrain.core.config"

local OPTIONS <const> = {
  dtype = { type = "string", default = "u16", choices = { "u16", "i32" },
    doc = "what the file was written with" },
}

--- The ids of a file that `write_tokens` (or nanoGPT) has written, a tensor [n] in the mapped file:
--- what is read of it comes from the disk, and goes again when memory is short. Returns nil and the
--- reason where the file cannot be read.
---@param path string
return function(path, options)
  local o <const> = config.check(options, OPTIONS, "text.read_tokens")
  config.argument(path, "string", "text.read_tokens", "path")
  return c.text.read_tokens(path, o.dtype)
end
