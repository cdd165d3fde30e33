--- stdlib/check/source/tokens.lua: the tokens of a Lua source, with where they are.

local KEYWORDS <const> = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  KEYWORDS[word] = true
end
local PATTERNS <const> = {
  { "space", "^%s+" }, { "name", "^[%a_][%w_]*" },
  { "number", "^0[xX][%x.]*[pP][+-]?%d+" }, { "number", "^0[xX][%x.]+" },
  { "number", "^%.?%d[%d.]*[eE][+-]?%d+" }, { "number", "^%.?%d[%w.]*" }, { "sign", "^%.%.%." },
}
local TWO <const> = { [".."] = true, ["=="] = true, ["~="] = true, ["<="] = true, [">="] = true,
                      ["//"] = true, ["::"] = true, ["<<"] = true, [">>"] = true }

-- "[==[...]==]" at a place; nil where none begins.
local function long_bracket(text, at)
  local level = text:match("^%[(=*)%[", at)
  if not level then return nil end
  local _, last = text:find("]" .. level .. "]", at + #level + 2, true)
  return text:sub(at, last or #text)
end

-- A string in quotes, whose escapes may hold the quote or a line's end.
local function quoted(text, at)
  local quote = text:sub(at, at)
  local last = at + 1
  while last <= #text do
    local char = text:sub(last, last)
    if char == quote or char == "\n" then break end
    last = last + (char == "\\" and 2 or 1)
  end
  return text:sub(at, last)
end

local function token_at(text, at)
  local first = text:sub(at, at)
  if text:find("^%-%-", at) then
    return "comment", "--" .. (long_bracket(text, at + 2) or text:match("^[^\n]*", at + 2))
  elseif first == '"' or first == "'" then
    return "string", quoted(text, at)
  elseif first == "[" and long_bracket(text, at) then
    return "string", long_bracket(text, at)
  end
  for _, row in ipairs(PATTERNS) do
    local found = text:match(row[2], at)
    if found then return KEYWORDS[found] and "keyword" or row[1], found end
  end
  local two = text:sub(at, at + 1)
  return "sign", TWO[two] and two or first
end

--- Returns a list of {kind =, text =, from =, to =, line =} without spaces and comments; kinds are
--- name, keyword, number, string and sign.
return function(text)
  local tokens, at, line = {}, 1, 1
  if text:find "^#" then at = #text:match "^[^\n]*" + 1 end
  while at <= #text do
    local kind, found = token_at(text, at)
    if kind ~= "space" and kind ~= "comment" then
      tokens[#tokens + 1] = { kind = kind, text = found, from = at, to = at + #found - 1,
                              line = line }
    end
    line = line + select(2, found:gsub("\n", ""))
    at = at + #found
  end
  return tokens
end
