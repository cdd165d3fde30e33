-- tools/docs/header_page.lua: ltrain.h: its comments as words, its declarations as code.
local markdown = require "markdown"

local PATH <const> = "lua/host/ltrain.h"

-- The text of a comment without its signs; lines that are set in are code.
local function words(comment)
  local body = comment:gsub("^/%*%s*", ""):gsub("%s*%*/%s*$", "")
  local parts = {}
  for part in (body .. "\n\n"):gmatch("(.-)\n\n+") do
    if part:find("^%s%s%s%s%s") then
      parts[#parts + 1] = "```c\n" .. part:gsub("^%s%s%s%s%s", ""):gsub("\n%s%s%s%s%s", "\n")
        .. "\n```"
    else
      parts[#parts + 1] = (part:gsub("\n%s+", "\n"):gsub("^%s+", ""))
    end
  end
  return parts
end

local function is_noise(block)
  return block:find("^#") or block:find("^extern") or block:find("^}") or block == ""
end

return function(root)
  local file <close> = assert(io.open(root .. PATH, "rb"))
  local text = file:read("a")
  local head, rest = text:match("^(/%*.-%*/)\n(.*)$")
  local parts = { "# ltrain.h" }
  for i, part in ipairs(words(head)) do
    parts[#parts + 1] = i == 1 and part:gsub("^ltrain%.h: ", "") or part
  end
  parts[#parts + 1] = "How to build against it: [embedding](../guide/embedding.md)."
  for block in (rest .. "\n"):gmatch("(.-)\n\n") do
    block = block:gsub("/%* clang%-format %a+ %*/\n?", "")
    block = block:gsub("^%s+", ""):gsub("%s+$", "")
    local comment, code = block:match("^(/%*.-%*/)\n(.*)$")
    code = code or block
    if not (is_noise(code) and not code:find("^#define LTRAIN_CONFIG")) then
      for _, part in ipairs(comment and words(comment) or {}) do parts[#parts + 1] = part end
      code = code:gsub("LT_API ", ""):gsub("\n       (%s+)", "\n%1")
      parts[#parts + 1] = "```c\n" .. code .. "\n```"
    end
  end
  return { {
    file = "ltrain_h.md", title = "ltrain.h", about = "ltrain inside another program",
    source = PATH, text = markdown.join(parts),
  } }
end
