--- stdlib/cli/help.lua: the text of --help, from the tables of subcommands and options.
local arguments = require "ltrain.cli.arguments"
local commands = require "ltrain.cli.commands"
local errors = require "ltrain.core.errors"
local refuse = require "ltrain.cli.refuse"
local tree = require "ltrain.core.tree"
local wrap_text = require "ltrain.core.wrap_text"

local help = {}

local USAGE <const> = 2

-- Rows of two columns; the second is wrapped.
local function columns(rows)
  local lines, width = {}, 0
  for _, row in ipairs(rows) do width = math.max(width, math.min(#row[1], 30)) end
  for _, row in ipairs(rows) do
    local indent, first = (" "):rep(width + 4), ("  %-" .. width .. "s  "):format(row[1])
    if #row[1] > width then
      lines[#lines + 1] = "  " .. row[1]
      first = indent
    end
    lines[#lines + 1] = (wrap_text(row[2], indent, first):gsub("%s+$", ""))
  end
  return table.concat(lines, "\n")
end

local SHOWN <const> = { boolean = "true|false", integer = "N", number = "X", string = "TEXT",
  pair = "N", any = "VALUE" }

-- How the value of an option of the Trainer is written: "N|X|TEXT".
local function value_of(row)
  local seen, shown = {}, {}
  for word in (row.type or "any"):gmatch("[^|]+") do
    local text = SHOWN[word]
    if text and not seen[text] then
      seen[text] = true
      shown[#shown + 1] = text
    end
  end
  return table.concat(shown, "|")
end

local function default_of(row)
  if row.default == nil then return "" end
  return (" (default %s)"):format(tostring(row.default))
end

--- How an option of a word is written, and its meaning.
function help.option_row(row)
  return { ("--%s %s"):format(row.name, row.value), row.doc }
end

local function own_rows(word)
  local rows = {}
  for _, row in ipairs(word.options) do
    if not row.instead then rows[#rows + 1] = help.option_row(row) end
  end
  rows[#rows + 1] = { "-h, --help", "print this help" }
  return rows
end

--- The same of all options of the Trainer that the command line takes.
function help.trainer_rows(trainer_rows)
  local rows = {}
  for name, row in tree.pairs(trainer_rows) do
    if arguments.is_plain(row) then
      rows[#rows + 1] = { ("--%s %s"):format(name, value_of(row)),
        (row.doc or "") .. default_of(row) }
    end
  end
  return rows
end

--- One line on how a word is used.
function help.usage(word)
  return wrap_text(word.args, "         ", ("usage: ltrain %s "):format(word.name))
end

-- Text whose lines are filled; those that are indented stay as they are.
local function paragraphs(text)
  local parts, open = {}, {}
  for line in (text .. "\n\n"):gmatch "(.-)\n" do
    if line ~= "" and not line:find "^%s" then
      open[#open + 1] = line
    else
      if #open > 0 then parts[#parts + 1] = wrap_text(table.concat(open, " "), "") end
      open, parts[#parts + 1] = {}, line
    end
  end
  return (table.concat(parts, "\n"):gsub("\n+$", ""))
end

--- The page of one word.
function help.word(word, trainer_rows)
  local parts = { help.usage(word), "", paragraphs(word.text), "", "Options:",
    columns(own_rows(word)) }
  if word.script then
    parts[#parts + 1] = "\nHyper-parameters that init passes to self:save_hyperparameters(o):"
    parts[#parts + 1] = columns { { "--model.NAME VALUE", "of the module" },
      { "--data.NAME VALUE", "of the data module" } }
    parts[#parts + 1] = "\nOptions of the Trainer, which override those in the script "
      .. "(or --trainer.NAME):"
    parts[#parts + 1] = columns(help.trainer_rows(trainer_rows))
  end
  return table.concat(parts, "\n") .. "\n"
end

--- `ltrain help [COMMAND]`: returns the exit status.
function help.main(word, parsed, host)
  local asked <const> = parsed.script
  local found <const> = asked and commands.by_name[asked]
  if asked and not found then
    local names <const> = {}
    for i, row in ipairs(commands.list) do names[i] = row.name end
    return refuse(host, word, ("there is no command '%s'%s"):format(asked,
      errors.did_you_mean(asked, names)), USAGE)
  end
  local rows <const> = found and found.script and require "ltrain.trainer.setup.options" or {}
  host.write(found and help.word(found, rows) or help.all())
  return 0
end

--- The options that a script declares by lt.args.
function help.script(rows, host)
  if rows then host.write("Options of the script:\n" .. columns(rows) .. "\n\n") end
end

--- The page of `ltrain --help`.
function help.all()
  local word_rows, status_rows = {}, {}
  for i, word in ipairs(commands.list) do word_rows[i] = { "ltrain " .. word.name, word.doc } end
  for i, row in ipairs(commands.statuses) do status_rows[i] = { tostring(row[1]), row[2] } end
  return table.concat({
    "usage: ltrain COMMAND ...",
    "       ltrain [-e CODE] [-l MODULE] [-i] [-E] [-W] [-v] [SCRIPT [args]]",
    "",
    "Trains neural networks from Lua scripts.",
    "",
    columns(word_rows),
    "",
    "Without a command:",
    columns(commands.plain),
    "",
    "Exit status:",
    columns(status_rows),
    "",
    "`ltrain COMMAND --help` prints the options of a command.",
  }, "\n") .. "\n"
end

return help
