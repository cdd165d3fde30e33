--- stdlib/apps/prompt/complete.lua: what TAB adds to an unfinished entry.
local c = require "ltrain.c"
local members = require "ltrain.apps.prompt.members"
local hooks = require "ltrain.core.hooks"
local lua_tokens = require "ltrain.core.tokens"

local complete = {}

-- Where the cursor is. ----------------------------------------------------------------------------

-- The keys of the expression that ends with token `i`, as a.b[1].c, and the index of its first
-- token; nil when it is none.
local function chain(tokens, i)
  local keys = {}
  while true do
    local token = tokens[i]
    local open = token and token.text == "]" and tokens[i - 2]
    if token and token.kind == "name" then
      table.insert(keys, 1, token.text)
      local before = tokens[i - 1]
      if not before or before.text ~= "." and before.text ~= ":" then return keys, i end
      i = i - 2
    elseif open and open.text == "[" and tokens[i - 3] then
      local key = tokens[i - 1]
      local text = key.kind == "string" and key.whole and key.text:match "^[\"'](.*)[\"']$"
      if key.kind ~= "number" and not text then return nil end
      table.insert(keys, 1, text or math.tointeger(tonumber(key.text)) or 0)
      i = i - 3
    else
      return nil
    end
  end
end

local CLOSE <const> = { [")"] = true, ["}"] = true, ["]"] = true }
local OPEN <const> = { ["("] = true, ["{"] = true, ["["] = true }

-- The index of the bracket that is open around token `i`; nil without one.
local function bracket(tokens, i)
  local depth = 0
  for k = i, 1, -1 do
    local text = tokens[k].kind == "sign" and tokens[k].text
    if CLOSE[text] then
      depth = depth + 1
    elseif OPEN[text] then
      if depth == 0 then return k end
      depth = depth - 1
    end
  end
end

--- The call around the end of the tokens: the keys of what is called, whether it is in a table of
--- its options, and the place of that table's bracket; nil without one.
function complete.call(tokens)
  local at = bracket(tokens, #tokens)
  if not at then return nil end
  local in_table = tokens[at].text == "{"
  local keys = at > 1 and chain(tokens, at - 1)
  if not keys and in_table then
    local outer = bracket(tokens, at - 1)
    if outer and tokens[outer].text == "(" and outer > 1 then keys = chain(tokens, outer - 1) end
  end
  return keys, in_table, at
end

-- Candidates. -------------------------------------------------------------------------------------

-- The sorted strings of a set that begin with `prefix`; those with _ in front only when asked for.
local function matching(set, prefix)
  local list = {}
  for name in next, set do
    if type(name) == "string" and name:sub(1, #prefix) == prefix and name:find "^[%a_][%w_]*$"
      and (name:sub(1, 1) ~= "_" or prefix:sub(1, 1) == "_") then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  return list
end

local function files(prefix)
  local folder, start = prefix:match "^(.*/)([^/]*)$"
  folder, start = folder or "", start or prefix
  local ok, found = pcall(c.io.list_folder, folder == "" and "." or folder)
  local list = {}
  for _, name in ipairs(ok and found or {}) do
    if name:sub(1, #start) == start and (name:sub(1, 1) ~= "." or start:sub(1, 1) == ".") then
      local is_folder = c.io.kind(folder .. name) == "folder"
      list[#list + 1] = name .. (is_folder and "/" or "")
    end
  end
  return list, start
end

-- Names of options that the table does not have yet.
local function options(session, tokens, prefix)
  local before = tokens[#tokens]
  if not before or not (before.text == "{" or before.text == "," or before.text == ";") then
    return {}
  end
  local keys, in_table, at = complete.call(tokens)
  if not keys or not in_table then return {} end
  local value <const> = members.resolve(session.env, keys)
  local rows = members.options(value, keys[#keys], session.host.upvalue)
  local set = {}
  for name in next, rows or {} do set[name] = true end
  for i = at, #tokens - 1 do
    if tokens[i].kind == "name" and tokens[i + 1].text == "=" then set[tokens[i].text] = nil end
  end
  return matching(set, prefix)
end

-- The index of the bracket that the one at `i` closes.
local function opening(tokens, i)
  local depth = 0
  for k = i, 1, -1 do
    local text = tokens[k].kind == "sign" and tokens[k].text
    depth = depth + (CLOSE[text] and 1 or OPEN[text] and -1 or 0)
    if depth == 0 then return k end
  end
end

local TENSORS <const> = c.zeros { 1 } -- for what tensors have

-- What the fields of the value of a call will be, which is not made: an object of the class that is
-- called, a tensor of an operation; of `("text")` those of the text.
local function called(session, tokens, i)
  local open = CLOSE[tokens[i].text] and opening(tokens, i)
  if not open or open == 1 then return open and tokens[i - 1].kind == "string" and "" or nil end
  local keys, name = chain(tokens, open - 1), tokens[open - 1].text
  local fn = keys and members.resolve(session.env, keys)
  local link = open > 3 and tokens[open - 2].text
  if not keys and (link == ":" or link == ".") then -- of what another call gives
    local object = called(session, tokens, open - 3)
    fn = object ~= nil and members.resolve({ object }, { 1, name })
  elseif not keys then
    return open == i - 2 and tokens[i - 1].kind == "string" and "" or nil
  end
  if type(fn) == "table" then return rawget(fn, "__name") and fn or nil end
  return type(fn) == "function" and members.makes_tensor(fn, name) and TENSORS or nil
end

local function value_before(session, tokens, i)
  if tokens[i] and CLOSE[tokens[i].text] and tokens[i].text ~= "]" then
    return called(session, tokens, i)
  end
  local keys = chain(tokens, i)
  if not keys then return nil end
  local env = keys[1] == "_" and { _ = session.last } or session.env
  return members.resolve(env, keys)
end

-- Fields behind a dot, methods behind a colon; hooks too where a class's function is written.
local function member_names(session, tokens, prefix)
  local sign = tokens[#tokens].text
  local value = value_before(session, tokens, #tokens - 1)
  if value == nil then return {} end
  local set = members.fields(value)
  local list = matching(set, prefix)
  if sign == "." then return list end
  local methods = {}
  for _, name in ipairs(list) do
    if type(members.resolve({ value }, { 1, name })) == "function" then methods[name] = true end
  end
  local before = tokens[#tokens - 2]
  if before and before.text == "function" and type(value) == "table" then
    for _, row in ipairs(hooks.rows) do methods[row.name] = true end
  end
  return matching(methods, prefix)
end

-- Modules that `require` finds below the folders of package.path.
local function modules(session, prefix)
  local package, set = session.env.package, {}
  local folder, start = prefix:match "^(.*%.)([^.]*)$"
  folder, start = folder or "", start or prefix
  for template in (type(package) == "table" and package.path or ""):gmatch "[^;]+" do
    local root, ending = template:match "^([^?]*)%?([^?]*)$"
    local place = root and root .. folder:gsub("%.", "/")
    local ok, found = pcall(c.io.list_folder, place == "" and "." or place or "?")
    for _, name in ipairs(root and ok and found or {}) do
      local is_folder = c.io.kind((place == "" and "." or place) .. "/" .. name) == "folder"
      local base = is_folder and name or name:sub(-#ending) == ending and name:sub(1, -#ending - 1)
      if base and base ~= "" and not base:find "[.]" then set[base] = true end
    end
  end
  if folder == "" then set.ltrain = true end
  return matching(set, start), start
end

-- Words that an option takes: `precision = "`.
local function choices(session, tokens, prefix)
  local equals, option = tokens[#tokens - 1], tokens[#tokens - 2]
  if not equals or equals.text ~= "=" or not option or option.kind ~= "name" then return {} end
  local before = table.move(tokens, 1, #tokens - 3, 1, {})
  local keys, in_table = complete.call(before)
  if not keys or not in_table then return {} end
  local value <const> = members.resolve(session.env, keys)
  local rows = members.options(value, keys[#keys], session.host.upvalue)
  local row, list = rows and rows[option.text], {}
  local words = row and (row.choices or members.words(row.doc)) or {}
  for _, word in ipairs(words) do
    if type(word) == "string" and word:sub(1, #prefix) == prefix then list[#list + 1] = word end
  end
  return list
end

-- In a string: modules behind require, the words of an option, else files.
local function in_string(session, tokens)
  local last = tokens[#tokens]
  local quote, text = last.text:sub(1, 1), last.text:sub(2)
  local before = tokens[#tokens - 1]
  if before and before.text == "(" then before = tokens[#tokens - 2] end
  if before and before.text == "require" then
    local list, start = modules(session, text)
    return list, start, quote
  end
  local list = choices(session, tokens, text)
  if #list > 0 then return list, text, quote end
  local found, start = files(text)
  return found, start, quote
end

local function words(session, prefix)
  local set = members.globals(session.env)
  for word in next, lua_tokens.keywords do set[word] = true end
  return matching(set, prefix)
end

local function commands(session, prefix)
  local set = {}
  for name in next, session.commands do set[name] = true end
  return matching(set, prefix)
end

--- What may stand in place of the word before the cursor: a list, that word, and what follows a
--- word that is chosen.
function complete.candidates(session, text)
  local command = text:match "^%s*:([%a_]*)$"
  if command then return commands(session, command), command, "" end
  if text:find "^%s*:load%s" then
    local list, start = files(text:match "^%s*:load%s+(.*)$")
    return list, start, ""
  end
  if text:find "^%s*:help%s" then
    text = text:gsub("^%s*:help%s+", "lt.", 1):gsub("^lt%.lt%f[^%w_]", "lt")
  end
  local tokens = lua_tokens.of((text:gsub("^%s*:%a+%s", "")))
  local last = tokens[#tokens]
  if last and not last.whole then
    if last.kind ~= "string" or last.text:sub(1, 1) == "[" then return {}, "", "" end
    return in_string(session, tokens)
  end
  local prefix = ""
  if last and (last.kind == "name" or last.kind == "keyword") and text:find "[%w_]$" then
    prefix, tokens[#tokens] = last.text, nil
    last = tokens[#tokens]
  end
  if last and (last.text == "." or last.text == ":") then
    return member_names(session, tokens, prefix), prefix, ""
  end
  local list = options(session, tokens, prefix)
  if #list > 0 then return list, prefix, " = " end
  return prefix == "" and {} or words(session, prefix), prefix, ""
end

-- What TAB does. ----------------------------------------------------------------------------------

local function common(list)
  local first = list[1]
  for i = 2, #list do
    while list[i]:sub(1, #first) ~= first do first = first:sub(1, -2) end
  end
  while first ~= "" and not utf8.len(first) do first = first:sub(1, -2) end
  return first
end

local MOST <const> = 200

--- Words in columns.
function complete.columns(list, width)
  local widest, shown = 0, math.min(#list, MOST)
  for i = 1, shown do widest = math.max(widest, utf8.len(list[i]) or #list[i]) end
  local across = math.max(1, (width + 2) // (widest + 2))
  local down = (shown + across - 1) // across
  local lines = {}
  for row = 1, down do
    local cells = {}
    for i = row, shown, down do
      local padding = widest - (utf8.len(list[i]) or #list[i])
      cells[#cells + 1] = list[i] .. (i + down <= shown and (" "):rep(padding) or "")
    end
    lines[row] = table.concat(cells, "  ")
  end
  if #list > shown then lines[#lines + 1] = ("... %d more"):format(#list - shown) end
  return table.concat(lines, "\n")
end

--- What is inserted at the end of `text`, and what is listed below it; nil: there is nothing.
function complete.press(session, text)
  if not text:find "%S[^\n]*$" then return "  " end
  local list, prefix, after = complete.candidates(session, text)
  if #list == 0 then return nil end
  local shared = common(list):sub(#prefix + 1)
  if #list == 1 then return shared .. (list[1]:sub(-1) == "/" and "" or after) end
  if shared ~= "" then return shared end
  return "", complete.columns(list, c.runtime.terminal_width "stdout" or 80)
end

return complete
