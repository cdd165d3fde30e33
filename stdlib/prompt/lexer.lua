--- stdlib/prompt/lexer.lua: the words of a text in Lua that may be unfinished: for colours,
--- completion and indents.
local lexer = {}

--- Lua's keywords.
lexer.keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  lexer.keywords[word] = true
end

-- The end of a long bracket that begins at `from`; nil: none begins there; false: it has no end.
local function long_end(text, from)
  local level = text:match("^%[(=*)%[", from)
  if not level then return nil end
  local _, to = text:find("]" .. level .. "]", from + #level + 2, true)
  return to or false
end

-- The end of a string in quotes; false when there is none on its line.
local function quoted_end(text, from)
  local quote, at = text:sub(from, from), from + 1
  while true do
    local found = text:find("[\\\n" .. quote .. "]", at)
    if not found then return false end
    local char = text:sub(found, found)
    if char == quote then return found end
    if char == "\n" then return false end
    at = found + 2
  end
end

local function comment_at(text, at)
  local to = long_end(text, at + 2)
  if to == nil then to = (text:find("\n", at, true) or #text + 1) - 1 end
  return "comment", to or #text, to ~= false
end

local function string_at(text, at, to)
  if to then return "string", to, true end
  local line_end = text:sub(at, at) ~= "[" and text:find("\n", at, true)
  return "string", line_end and line_end - 1 or #text, false
end

-- The kind of the token at `at`, its end, and whether it is whole.
local function token_at(text, at)
  local char = text:sub(at, at)
  if char:find "[%a_]" then
    local _, to = text:find("^[%w_]+", at)
    return lexer.keywords[text:sub(at, to)] and "keyword" or "name", to, true
  elseif char:find "%d" or text:find("^%.%d", at) then
    local _, to = text:find("^0[xX][%x.]*[pP]?[+-]?%x*", at)
    if not to then _, to = text:find("^[%d.]+[eE]?", at) end
    if not text:find("^0[xX]", at) and text:find("^[eE]", to) then
      local _, more = text:find("^[+-]?%d+", to + 1)
      to = more or to
    end
    return "number", to, true
  elseif text:find("^%-%-", at) then
    return comment_at(text, at)
  elseif char == '"' or char == "'" then
    return string_at(text, at, quoted_end(text, at))
  end
  local long = char == "[" and long_end(text, at)
  if long ~= nil and char == "[" then return string_at(text, at, long) end
  local _, to = text:find("^[.=~<>:/]+", at)
  if to then
    for _, sign in ipairs { "...", "..", "==", "~=", "<=", ">=", "<<", ">>", "//", "::" } do
      if text:find(sign, at, true) == at then return "sign", at + #sign - 1, true end
    end
  end
  return "sign", at, true
end

--- A list of { kind =, from =, to =, text =, whole = false for what lacks its end }; kinds: name,
--- keyword, string, number, comment, sign.
function lexer.tokens(text)
  local list, at = {}, text:find "%S"
  while at do
    local kind, to, whole = token_at(text, at)
    list[#list + 1] =
      { kind = kind, from = at, to = to, text = text:sub(at, to), whole = whole }
    at = text:find("%S", to + 1)
  end
  return list
end

local OPENS <const> = { ["("] = 1, ["{"] = 1, ["["] = 1, [")"] = -1, ["}"] = -1, ["]"] = -1,
  ["function"] = 1, ["do"] = 1, ["then"] = 1, ["repeat"] = 1, ["end"] = -1, ["until"] = -1,
  ["elseif"] = -1 }

--- How many brackets and blocks are open at the end of a text.
function lexer.depth(text)
  local depth = 0
  for _, token in ipairs(lexer.tokens(text)) do
    if token.kind == "sign" or token.kind == "keyword" then
      depth = depth + (OPENS[token.text] or 0)
    end
  end
  return math.max(depth, 0)
end

return lexer
