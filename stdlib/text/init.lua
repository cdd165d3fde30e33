-- stdlib/text/init.lua: lt.text, tokenizers and what is made with them: each is the file of its
-- name.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.text", "text", {
  "read_tokens", "token_blocks", "write_tokens", tokenizer = "ltrain.text.load_tokenizer",
})
