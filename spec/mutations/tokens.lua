-- spec/mutations/tokens.lua: the words of a Lua source, with where they are.

local PATTERNS <const> = {
  { "space", "^%s+" }, { "comment", "^%-%-%[%[.-%]%]" }, { "comment", "^%-%-[^\n]*" },
  { "name", "^[%a_][%w_]*" }, { "number", "^%d[%w.]*[eE][+-]?%d+" }, { "number", "^%d[%w.]*" },
  { "string", "^%[%[.-%]%]" }, { "string", '^"[^"\n]*"' }, { "string", "^'[^'\n]*'" },
  { "sign", "^%.%.%." },
}
local KEYWORDS <const> = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  KEYWORDS[word] = true
end
local TWO <const> = { [".."] = true, ["=="] = true, ["~="] = true, ["<="] = true, [">="] = true,
                      ["//"] = true, ["::"] = true, ["<<"] = true, [">>"] = true }

local function word_at(text, at)
  local two = text:sub(at, at + 1)
  if TWO[two] and text:sub(at, at + 2) ~= "..." then return "sign", two end
  for _, row in ipairs(PATTERNS) do
    local found = text:match(row[2], at)
    if found then return KEYWORDS[found] and "keyword" or row[1], found end
  end
  return "sign", text:sub(at, at)
end

--- Returns a list of {kind =, text =, from =, to =, line =} without spaces and comments; kinds are
--- name, keyword, number, string and sign.
return function(text)
  local tokens, at, line = {}, 1, 1
  while at <= #text do
    local kind, word = word_at(text, at)
    if kind ~= "space" and kind ~= "comment" then
      tokens[#tokens + 1] = { kind = kind, text = word, from = at, to = at + #word - 1,
                              line = line }
    end
    line = line + select(2, word:gsub("\n", ""))
    at = at + #word
  end
  return tokens
end
