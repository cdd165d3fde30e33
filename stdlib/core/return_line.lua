-- stdlib/core/return_line.lua: the line at which a script's function returned or made a tail call,
-- after its frame has been popped.
local c = require "ltrain.c"

local places <const> = c.runtime.places
places.lines = setmetatable({}, { __mode = "k" })

local OPENS <const> = { ["function"] = true, ["do"] = true, ["then"] = true, ["repeat"] = true }
local CLOSES <const> = { ["end"] = true, ["until"] = true, ["elseif"] = true }
local NOTHING <const> = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true,
                          [";"] = true, ["nil"] = true, ["-"] = true }

-- The lines of a function's own `return`s of a value, of the tokens from that of the word on.
local function returns_of(list, from)
  local lines, depth, inner = {}, 0, nil -- inner: the depth at which a function in it began
  for k = from, #list do
    local token = list[k]
    local word = token.kind == "keyword" and token.text
    if word == "function" and depth > 0 and not inner then inner = depth end
    if OPENS[word] then depth = depth + 1 end
    if CLOSES[word] then depth = depth - 1 end
    if inner == depth then inner = nil end
    if depth == 0 then break end
    local after = list[k + 1]
    if word == "return" and not inner and after and not NOTHING[after.text] then
      lines[#lines + 1] = token.line
    end
  end
  return lines
end

local function find(name, first)
  local text = require "ltrain.core.script_source".text(name) or ""
  local list, from = require "ltrain.core.tokens".of_file(text), nil
  if first == 0 then return list[#list].line end
  for k, token in ipairs(list) do
    if token.line == first and token.kind == "keyword" and token.text == "function" then
      if from then return first end
      from = k
    end
  end
  local lines = returns_of(list, from)
  return #lines == 1 and lines[1] or first
end

--- The line of the only `return` of a value in a function that begins at line `first` of a chunk,
--- the last of a chunk itself (0); with several, or where the text cannot be read, `first`.
return function(fn, name, first)
  if not places.lines[fn] then
    local ok, line = pcall(find, name, first)
    places.lines[fn] = ok and line or first
  end
  return places.lines[fn]
end
