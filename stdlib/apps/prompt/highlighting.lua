--- stdlib/apps/prompt/highlighting.lua: syntax highlighting of an entry, a style letter per byte
--- (lua/apps/editor_display.c), and hints.
local complete = require "ltrain.apps.prompt.complete"
local help = require "ltrain.apps.prompt.help"
local members = require "ltrain.apps.prompt.members"
local tokens = require "ltrain.core.tokens"

local highlighting = {}

local LETTERS <const> = { keyword = "k", string = "s", number = "n", comment = "c" }

--- The letters of a text's bytes.
function highlighting.styles(session, text)
  if text:find "^%s*:%a" then return ("k"):rep(#text) end
  local parts, at, before = {}, 1, nil
  for _, token in ipairs(tokens.of(text)) do
    local letter = LETTERS[token.kind] or " "
    if token.kind == "name" and before ~= "." and before ~= ":" then
      local known = token.text == "_" or members.resolve(session.env, { token.text }) ~= nil
      letter = known and "g" or " "
    end
    parts[#parts + 1] = (" "):rep(token.from - at) .. letter:rep(token.to - token.from + 1)
    at, before = token.to + 1, token.text
  end
  return table.concat(parts) .. (" "):rep(#text - at + 1)
end

-- The rest of the only word that fits.
local function rest_of_word(session, text)
  local list, prefix, after = complete.candidates(session, text)
  if #list ~= 1 or prefix == "" then return nil end
  local rest = list[1]:sub(#prefix + 1)
  return rest ~= "" and rest .. (after == " = " and after or "") or nil
end

-- What an option is, once its name stands there.
local function of_option(session, text)
  local name = text:match "([%a_][%w_]*)%s*=%s*$"
  if not name then return nil end
  local keys, in_table = complete.call(tokens.of(text))
  if not keys or not in_table then return nil end
  local value <const> = members.resolve(session.env, keys)
  local rows = members.options(value, keys[#keys], session.host.upvalue)
  return rows and rows[name] and help.option_line(rows[name])
end

--- What is shown behind a text; with a space in front it is a note, else it can be taken.
function highlighting.hint(session, text)
  if text == "" then return nil end
  local rest = rest_of_word(session, text)
  if rest then return rest end
  local note = of_option(session, text)
  if not note and text:find "%($" then
    local keys = complete.call(tokens.of(text))
    local call = keys and help.signature(session, keys)
    note = call and call:match "%((.*)$"
  end
  return note and "  " .. note
end

return highlighting
