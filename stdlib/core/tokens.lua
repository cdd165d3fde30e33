--- stdlib/core/tokens.lua: the tokens of a text in Lua that may be unfinished: for `ltrain check`,
--- and for colours, completion and indents of the prompt.
local tokens = {}

--- Lua's keywords.
tokens.keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  tokens.keywords[word] = true
end

local PATTERNS <const> = {
  { "name", "^[%a_][%w_]*()" }, { "number", "^0[xX][%x.]*[pP][+-]?%d+()" },
  { "number", "^0[xX][%x.]+()" }, { "number", "^%.?%d[%d.]*[eE][+-]?%d+()" },
  { "number", "^%.?%d[%w.]*()" }, { "sign", "^%.%.%.()" },
}
local TWO <const> = { [".."] = true, ["=="] = true, ["~="] = true, ["<="] = true, [">="] = true,
                      ["//"] = true, ["::"] = true, ["<<"] = true, [">>"] = true }

-- The end of a long bracket that begins at `from`; nil: none begins there; false: it has no end.
local function long_end(text, from)
  local level = text:match("^%[(=*)%[", from)
  if not level then return nil end
  local _, to = text:find("]" .. level .. "]", from + #level + 2, true)
  return to or false
end

-- The end of a string in quotes; false when there is none on its line, and where that ends.
local function quoted_end(text, from)
  local stop, at = "[\\\n" .. text:sub(from, from) .. "]", from + 1
  while true do
    local found = text:find(stop, at)
    local char = found and text:sub(found, found)
    if char == text:sub(from, from) then return found end
    if char ~= "\\" then return false, (found or #text + 1) - 1 end
    at = text:match("^z%s*()", found + 1) or found + 2
  end
end

-- The kind of the token at `at`, its end, and false for one that lacks its end.
local function token_at(text, at)
  local first = text:sub(at, at)
  if text:find("^%-%-", at) then
    local to = long_end(text, at + 2)
    if to == nil then to = (text:find("\n", at, true) or #text + 1) - 1 end
    return "comment", to or #text, to ~= false
  elseif first == '"' or first == "'" then
    local to, line_end = quoted_end(text, at)
    return "string", to or line_end, to ~= false
  end
  local to = long_end(text, at)
  if to ~= nil then return "string", to or #text, to ~= false end
  for _, row in ipairs(PATTERNS) do
    local after = text:match(row[2], at)
    if after then
      return tokens.keywords[text:sub(at, after - 1)] and "keyword" or row[1], after - 1, true
    end
  end
  return "sign", TWO[text:sub(at, at + 1)] and at + 1 or at, true
end

-- The tokens from a place on.
local function read(text, at)
  local list, line, counted = {}, 1, 1
  at = text:find("%S", at)
  while at do
    local kind, to, whole = token_at(text, at)
    line, counted = line + select(2, text:sub(counted, at - 1):gsub("\n", "")), at
    list[#list + 1] =
      { kind = kind, text = text:sub(at, to), from = at, to = to, line = line, whole = whole }
    at = text:find("%S", to + 1)
  end
  return list
end

--- A list of {kind =, text =, from =, to =, line =, whole = false for what lacks its end}; kinds:
--- name, keyword, number, string, sign, comment.
function tokens.of(text) return read(text, 1) end

--- The same of a file: without a first line that begins with #, and without comments.
function tokens.of_file(text)
  local list = {}
  for _, token in ipairs(read(text, text:match "^#[^\n]*()" or 1)) do
    if token.kind ~= "comment" then list[#list + 1] = token end
  end
  return list
end

local OPENS <const> = { ["("] = 1, ["{"] = 1, ["["] = 1, [")"] = -1, ["}"] = -1, ["]"] = -1,
  ["function"] = 1, ["do"] = 1, ["then"] = 1, ["repeat"] = 1, ["end"] = -1, ["until"] = -1,
  ["elseif"] = -1 }

--- How many brackets and blocks are open at the end of a text.
function tokens.depth(text)
  local depth = 0
  for _, token in ipairs(tokens.of(text)) do
    if token.kind == "sign" or token.kind == "keyword" then
      depth = depth + (OPENS[token.text] or 0)
    end
  end
  return math.max(depth, 0)
end

local CLOSES <const> = { ["end"] = true, ["until"] = true, ["else"] = true, ["elseif"] = true,
  [")"] = true, ["}"] = true, ["]"] = true }

--- How many blanks the last line of a text has in front that are too many: it closes blocks or
--- brackets, and is indented by 2 a level as the lines in them are.
function tokens.too_many_blanks(text)
  local before, blanks, line = text:match "^(.*\n)( *)([^\n]*)$"
  if not before then return 0 end
  local inside, closed = tokens.depth(before), 0
  for _, token in ipairs(read(line, 1)) do
    if not CLOSES[token.text] then break end
    closed = closed + 1
  end
  return #blanks == 2 * inside and 2 * math.min(closed, inside) or 0
end

return tokens
