--- stdlib/cli/arguments.lua: parses the arguments of a subcommand.
--
-- `--name value`, `--name=value`, and `--name` alone where the option takes true or false; - and _
-- are the same within names. --trainer.NAME is the Trainer's option NAME; --model.NAME and
-- --data.NAME are hyper-parameters of the script's module and data module. What follows `--`
-- belongs to the script. Values are read as the option's row says: true, false, nil and numbers
-- where it takes them, else the text itself.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local old_options = require "ltrain.compat.options"

local arguments = {}

-- Types that a word of the command line can be.
local TYPES <const> = { any = true, boolean = true, integer = true, number = true, string = true,
  pair = true }
local LITERALS <const> = { ["true"] = true, ["false"] = false }

local function types_of(row)
  local types = {}
  for word in (row.type or "any"):gmatch("[^|]+") do types[word] = true end
  return types
end

--- Whether an option of this row can be set on the command line at all.
function arguments.is_plain(row)
  for word in pairs(types_of(row)) do
    if TYPES[word] then return true end
  end
  return false
end

-- The value that a text stands for: the literal where the row takes one of its type.
local function read_value(text, types)
  if LITERALS[text] ~= nil and (types.boolean or types.any) then return LITERALS[text] end
  local number = tonumber(text)
  if number and (types.number or types.integer or types.pair or types.any) then return number end
  return text
end

-- Whether `text` may be left for what follows, because a flag that takes true or false precedes it.
local function stands_alone(text, types, row)
  if not types.boolean then return false end
  if text == nil or text:find("^%-%-") then return true end
  if row.choices then
    for _, choice in ipairs(row.choices) do
      if tostring(choice) == text then return false end
    end
    return true
  end
  return not types.string and type(read_value(text, types)) == "string" and text ~= "nil"
end

local function row_for(name, word, trainer_rows)
  for _, row in ipairs(word.options) do
    if row.name == name then return row, true end
  end
  if word.script then return trainer_rows[name], false end
end

local function all_names(word, trainer_rows)
  local names = {}
  for _, row in ipairs(word.options) do
    if not row.instead then names[#names + 1] = row.name end
  end
  if word.script then
    for name in pairs(trainer_rows) do names[#names + 1] = name end
  end
  return names
end

local function unknown(word, flag, name, trainer_rows)
  local gone = word.script and old_options.instead[name]
  if gone then return ("%s: %s is not an option: %s"):format(word.name, flag, gone) end
  local names <const> = all_names(word, trainer_rows)
  local near = errors.nearest(name, names)
  if name == "" and not near then near = errors.nearest(flag:match "^%-(.*)$" or "", names) end
  return ("%s: unknown option %s%s"):format(word.name, flag,
    near and ("; did you mean --%s?"):format(near) or "")
end

-- What a row whose value is not text takes, for the message.
local function taken_kinds(row)
  local kinds = {}
  for word in row.type:gmatch("[^|]+") do
    kinds[#kinds + 1] = (word:find("^[aeiou]") and "an " or "a ") .. word
  end
  return table.concat(kinds, " or ")
end

-- The text of the flag's value and the index after it; text nil for a flag that stands alone.
local function value_text(text, tokens, i, types, row)
  if text ~= nil or stands_alone(tokens[i + 1], types, row) then return text, i + 1 end
  text = tokens[i + 1]
  if text == nil or text == "--" then return nil, nil end
  return text, i + 2
end

-- Keeps the value; nil when all is well, else what is wrong.
local function store(parsed, word, row, own, name, text, types)
  if text == "nil" and not own then
    parsed.overrides[name] = {}
    return nil
  end
  local value = true
  if text ~= nil then value = read_value(text, types) end
  local ok, taken = pcall(config.value, value, row, word.name, "--" .. name)
  if not ok then return taken end
  if row.repeated then
    table.insert(parsed[row.repeated], taken)
  elseif own then
    parsed.options[name] = taken
  else
    parsed.overrides[name] = { value = taken }
  end
end

-- A flag that may be one of the script's own (lt.args), with what follows it unless that is one.
local function keep_for_script(parsed, tokens, i, flag, name, text)
  local after = tokens[i + 1]
  if text == nil and after and not after:find "^%-%-" then i, text = i + 1, after end
  parsed.flags[#parsed.flags + 1] = { flag = flag, name = name, text = text }
  return i + 1
end

-- --model.NAME or --data.NAME. Returns the index after it, or nil and what is wrong.
local function read_setting(parsed, word, tokens, i, flag, group, name, text)
  if text == nil then i, text = i + 1, tokens[i + 1] end
  if text == nil or text == "--" then
    return nil, ("%s: %s needs a value"):format(word.name, flag)
  end
  parsed.settings[#parsed.settings + 1] = { group = group, name = name, text = text }
  return i + 1
end

-- One flag at tokens[i]. Returns the index after it, or nil and what is wrong.
local function read_flag(parsed, word, tokens, i, trainer_rows)
  local flag, text = tokens[i]:match("^(%-%-[^=]+)=(.*)$")
  flag = flag or tokens[i]
  local name = (flag:match("^%-%-(.+)$") or ""):gsub("-", "_")
  local group, setting = flag:match "^%-%-(%a+)%.(.+)$"
  if word.script and (group == "model" or group == "data") then
    return read_setting(parsed, word, tokens, i, flag, group, setting, text)
  elseif word.script and group == "trainer" then
    name = setting:gsub("-", "_")
  end
  local row, own = row_for(name, word, trainer_rows)
  local may_keep = (word.script or word.loose) and not old_options.instead[name]
  if not row and may_keep and flag:find "^%-%-" then
    parsed.wrong = parsed.wrong or unknown(word, flag, name, trainer_rows)
    return keep_for_script(parsed, tokens, i, flag, name, text)
  end
  if not row then return nil, unknown(word, flag, name, trainer_rows) end
  if own and row.instead then
    return nil, ("%s: %s is not an option: %s"):format(word.name, flag, row.instead)
  end
  if not arguments.is_plain(row) then
    return nil, ("%s: --%s cannot be given on the command line: it takes %s"):format(word.name,
      name, taken_kinds(row))
  end
  local types = types_of(row)
  local after
  text, after = value_text(text, tokens, i, types, row)
  if not after then return nil, ("%s: --%s needs a value"):format(word.name, name) end
  local wrong = store(parsed, word, row, own, name, text, types)
  if wrong then return nil, wrong end
  parsed.spans[#parsed.spans + 1] = { name = name, first = i, last = after - 1 }
  return after
end

-- What a second argument may have been meant for: an option without its dashes.
local function after_script(word, token, trainer_rows)
  local name = token:match "^([%a_][%w_-]*)=" or ""
  if row_for(name:gsub("-", "_"), word, trainer_rows) then return ": write --" .. token end
  return ": the script's own arguments come after --"
end

--- Reads the tokens after a word; one that is `loose` keeps all flags that it does not know.
--- Returns {script =, options =, overrides =, args =, help =, interactive =, flags =, wrong =,
--- configs =, settings =};
--- configs are the files of --config, settings a list of {group = "model" or "data", name =,
--- text =}; args are the script's own, or the files after the first; overrides are
--- {name = {value = v}}, v nil for "the default"; flags are those that nobody knows, for lt.args,
--- and wrong what to say of them if the script has none; spans says which tokens the options are:
--- a list of {name =, first =, last =}. nil and a message if wrong.
---@param trainer_rows table options of the Trainer, by name, as config.check takes them
function arguments.parse(word, tokens, trainer_rows)
  local parsed = { options = {}, overrides = {}, args = {}, flags = {}, configs = {},
    settings = {}, spans = {} }
  local i = 1
  while i <= #tokens do
    local token = tokens[i]
    if token == "-h" or token == "--help" then
      parsed.help = true
      return parsed
    elseif token == "-i" and word.script and not word.load then
      parsed.interactive = true
      i = i + 1
    elseif token == "--" then
      if not word.script then return nil, word.name .. ": takes no arguments after --" end
      table.move(tokens, i + 1, #tokens, 1, parsed.args)
      break
    elseif token:find("^%-.") then
      local next_i, wrong = read_flag(parsed, word, tokens, i, trainer_rows)
      if not next_i then return nil, wrong end
      i = next_i
    elseif parsed.script and word.files then
      parsed.args[#parsed.args + 1] = token
      i = i + 1
    elseif parsed.script or word.args == "" then
      return nil, ("%s: unexpected '%s'%s"):format(word.name, token,
        word.script and after_script(word, token, trainer_rows) or "")
    else
      parsed.script = token
      i = i + 1
    end
  end
  if word.script and not parsed.script then -- a flag that nobody knows may have taken it
    return nil, parsed.wrong or word.name .. ": which script?"
  end
  return parsed
end

return arguments
