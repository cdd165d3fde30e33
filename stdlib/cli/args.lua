--- stdlib/cli/args.lua: lt.args: command-line flags of a script.
--
--   local lt = require "ltrain"
--   local args = lt.args{lr = 1e-3, width = {128, "hidden units"}, act = {"relu", choices =
--     {"relu", "gelu"}}}
--   print(args.lr, args.width, args.act)
--   -- prints: 0.001	128	relu
--
-- Under `ltrain run` they stand beside the options of the Trainer, which the command line has read
-- before; without a subcommand they are the arguments of the script. What the script says is below
-- what `--config FILE` says, that below the flags.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local flag_rows = require "ltrain.cli.flag_rows"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"
local process = require "ltrain.runs.process"
local settings = require "ltrain.cli.settings"
local tree = require "ltrain.core.tree"

local SHOWN <const> = { boolean = "true|false", integer = "N", number = "X", string = "TEXT" }
local refuse <const> = flag_rows.refuse

local function check_name(name)
  if type(name) ~= "string" or not name:find "^[%a][%w_]*$" then
    errors.blame("args: a name must be letters, digits and _: got %s", errors.show(name))
  elseif options[name] then
    errors.blame("args: %s is an option of the Trainer: rename it", name)
  elseif overrides.args.reserved[name] or name == "config" or name == "help" then
    errors.blame("args: --%s is an option of the command line: rename it", name)
  end
end

-- Flags.

-- Tokens as the flags that the command line leaves: a list of {flag =, name =, text =}.
local function flags_of(tokens)
  local flags, i = {}, 1
  while i <= #tokens do
    local flag, text = tokens[i]:match "^(%-%-[^=]+)=(.*)$"
    flag = flag or tokens[i]
    local name = flag:match "^%-%-(.+)$"
    if not name then refuse("args: unexpected %s", errors.show(flag)) end
    if text == nil and tokens[i + 1] and not tokens[i + 1]:find "^%-%-" then
      i, text = i + 1, tokens[i + 1]
    end
    flags[#flags + 1] = { flag = flag, name = name:gsub("-", "_"), text = text }
    i = i + 1
  end
  return flags
end

-- What follows the script in the command of this process, which no subcommand has read.
local function own_tokens()
  local command, tokens = process.command(), nil
  for i = 2, #command do
    if tokens then
      tokens[#tokens + 1] = command[i]
    elseif command[i]:sub(1, 1) ~= "-" and c.io.kind(command[i]) == "file" then
      tokens = {}
    end
  end
  return tokens or {}
end

local function unknown(flag, rows)
  local names = tree.keys(rows)
  names[#names + 1] = "config"
  for name in next, overrides.args.is_command and options or {} do names[#names + 1] = name end
  for name in next, overrides.args.reserved do names[#names + 1] = name end
  local near = errors.nearest(flag.name, names)
  refuse("run: unknown option %s%s", flag.flag,
    near and ("; did you mean --%s?"):format(near) or "")
end

local function take_flags(flags, rows, values)
  for _, flag in ipairs(flags) do
    local row = rows[flag.name]
    if not row and flag.name ~= "config" then unknown(flag, rows) end
    if flag.text == nil and not (row and row.type == "boolean") then
      refuse("run: %s needs a value", flag.flag)
    end
    if row then values[flag.name] = flag_rows.convert(nil, flag.name, row, flag.text or "true") end
  end
end

-- Help.

local function default_text(row)
  if row.required or row.default == nil then return row.required and " (required)" or "" end
  local default = row.list and table.concat(row.default, ",") or tostring(row.default)
  return (" (default %s)"):format(default)
end

-- How the flags are written, and their meanings.
local function help_rows(rows)
  local list = {}
  for name, row in tree.pairs(rows) do
    local shown = row.choices and table.concat(row.choices, "|") or SHOWN[row.type]
    list[#list + 1] = { ("--%s %s"):format(name, row.list and shown .. ",..." or shown),
      (row.doc or "") .. default_text(row) }
  end
  list[#list + 1] = { "--config FILE", "values from a file of YAML or JSON, or of Lua that returns "
    .. "a table; it may have the Trainer's options too" }
  return list
end

-- The same as a text, where no command writes it.
local function help_text(list)
  local lines = { "the options of this script:" }
  for _, row in ipairs(list) do lines[#lines + 1] = ("  %s  %s"):format(row[1], row[2]) end
  return table.concat(lines, "\n")
end

-- All rows together.

-- What the files say that the command line has read, or that stand among the script's arguments.
local function take_files(flags, rows, values)
  local paths = {}
  for _, flag in ipairs(flags) do
    if flag.name == "config" then paths[#paths + 1] = flag.text end
  end
  settings.take_files(paths)
  local names = tree.keys(rows)
  table.move(tree.keys(options), 1, #tree.keys(options), #names + 1, names)
  for name, given in tree.pairs(settings.args) do
    if not rows[name] then
      refuse("run: %s: unknown option '%s'%s", given.where, tostring(name),
        errors.did_you_mean(name, names))
    end
    values[name] = flag_rows.convert(given.where, name, rows[name], given.value)
  end
end

local function read(rows, flags)
  local values = {}
  for name, row in next, rows do
    values[name] = row.list and table.move(row.default, 1, #row.default, 1, {}) or row.default
  end
  take_files(flags, rows, values)
  take_flags(flags, rows, values)
  for name, row in tree.pairs(rows) do
    if row.required and values[name] == nil then refuse("run: --%s is required", name) end
  end
  return values
end

--- lt.args{name = default, ...}: the values of the script's own flags, a table. A row is a default,
--- a list (of one type: 64,128 on the command line), or {default, help text} with choices, min,
--- max, type ("boolean", "integer", "number", "string") and required. To be called once, by the
--- script itself; what it returns is also logged as hyper-parameters.
return function(declared)
  if type(declared) ~= "table" or getmetatable(declared) ~= nil then
    errors.blame("args: a table of defaults is needed: got %s", errors.show(declared))
  elseif overrides.args.values then
    errors.blame "args: already called: a script calls it once"
  end
  local rows = {}
  for name, row in tree.pairs(declared) do
    check_name(name)
    rows[name] = flag_rows.row_of(name, row)
  end
  local state = overrides.args
  local flags = state.flags or flags_of(own_tokens())
  for _, flag in ipairs(flags) do
    if flag.name == "help" then state.wants_help = true end
  end
  if state.wants_help then
    state.help_rows = help_rows(rows)
    error(setmetatable({}, { __tostring = function() return help_text(state.help_rows) end }), 0)
  end
  state.values = read(rows, flags)
  return tree.map(state.values, function(leaf) return leaf end)
end
