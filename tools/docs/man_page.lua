-- tools/docs/man_page.lua: docs/ltrain.1, from the same lists as the page of the command line.
local commands = require "ltrain.cli.commands"
local environment = require "environment"
local help = require "ltrain.cli.help"
local options = require "ltrain.trainer.setup.options"

-- Text as roff prints it; what stands in `...` is bold.
local function roff(text)
  text = text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("`([^`]*)`", "\\fB%1\\fR")
  return (text:gsub("%f[^\n\0][.']", "\\&%0"))
end

local function section(name, ...)
  return table.concat({ ".SH " .. name, ... }, "\n")
end

-- A list of names, bold, each with its meaning below it.
local function items(rows)
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = (".TP\n\\fB%s\\fR\n%s"):format(roff(tostring(row[1])), roff(row[2]))
  end
  return table.concat(lines, "\n")
end

-- Options that every word which runs a script has: listed once.
local function common_options()
  local count, scripts, shared = {}, 0, {}
  for _, word in ipairs(commands.list) do
    if word.script then
      scripts = scripts + 1
      for _, row in ipairs(word.options) do
        if not row.instead then count[row.name] = (count[row.name] or 0) + 1 end
      end
    end
  end
  for name, n in pairs(count) do shared[name] = n == scripts end
  return shared
end

local function command_rows(shared)
  local lines = {}
  for _, word in ipairs(commands.list) do
    local own = {}
    for _, row in ipairs(word.options) do
      if not shared[row.name] and not row.instead then own[#own + 1] = help.option_row(row) end
    end
    lines[#lines + 1] = (".SS \"ltrain %s %s\"\n%s"):format(word.name, roff(word.args),
      roff(word.text))
    if #own > 0 then lines[#lines + 1] = items(own) end
  end
  return table.concat(lines, "\n")
end

local function script_options(shared)
  local rows = {}
  for _, row in ipairs(commands.by_name.run.options) do
    if shared[row.name] then rows[#rows + 1] = help.option_row(row) end
  end
  return items(rows)
end

local function page()
  local shared = common_options()
  return table.concat({
    '.TH LTRAIN 1 "" "ltrain" "User Commands"',
    section("NAME", "ltrain \\- train neural networks from Lua scripts"),
    section("SYNOPSIS", ".B ltrain", "\\fICOMMAND\\fR ...", ".br", ".B ltrain",
      roff "[-e CODE] [-l MODULE] [-i] [-E] [-W] [-v] [SCRIPT [args]]"),
    section("DESCRIPTION", roff("`ltrain` runs Lua 5.4 scripts that define and train neural "
      .. "networks, with the names of PyTorch and\nLightning, with `require \"ltrain\"`.")),
    section("COMMANDS", command_rows(shared)),
    section("OPTIONS OF COMMANDS THAT RUN A SCRIPT", script_options(shared),
      ".PP", roff "Options of the Trainer, which override those in the script:",
      items(help.trainer_rows(options)), ".PP",
      roff "Arguments after `--` are passed to the script, in `arg`."),
    section("WITHOUT A COMMAND", items(commands.plain)),
    section('"EXIT STATUS"', items(commands.statuses)),
    section("ENVIRONMENT", items(environment.variables)),
    section("FILES", items(environment.files)),
    section('"SEE ALSO"', ".BR lua5.4 (1)"),
  }, "\n")
end

return function()
  return { {
    file = "../ltrain.1", source = "stdlib/cli/commands.lua, stdlib/trainer/setup/options.lua and "
      .. "tools/docs/environment.lua",
    text = page(), mark = '.\\" %s', unlisted = true,
  } }
end
