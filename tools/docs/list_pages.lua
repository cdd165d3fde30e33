-- tools/docs/list_pages.lua: pages from the lists that the library reads: Trainer, hooks, words.
local environment = require "environment"
local help = require "ltrain.cli.help"
local hooks = require "ltrain.core.hooks"
local markdown = require "markdown"
local old_options = require "ltrain.compat.options"
local options = require "ltrain.trainer.setup.options"
local options_table = require "options_table"
local methods = require "methods"
local source = require "source"
local tree = require "ltrain.core.tree"
local commands = require "ltrain.cli.commands"

local function old_table()
  local rows = {}
  for name, instead in tree.pairs(old_options.instead) do
    rows[#rows + 1] = { markdown.code(name), instead, old_options.taken[name] }
  end
  return markdown.table({ "option", "write instead", "accepted, with a note" }, rows)
end

local function trainer_page(root)
  local file = source.read(root .. "stdlib/trainer/Trainer.lua")
  local list = source.read(root .. "stdlib/trainer/setup/options.lua")
  return {
    file = "trainer.md", title = "Trainer", about = "its options and methods",
    source = "stdlib/trainer/setup/options.lua, stdlib/trainer/Trainer.lua and "
      .. "stdlib/compat/options.lua",
    text = markdown.join {
      "# Trainer", file.more, "How to use it: [training](../guide/training.md).",
      "## Options",
      "`lt.Trainer{max_epochs = 3, ...}`; options that are numbers, strings or booleans are "
        .. "also flags of the command line (`--max_epochs 3`), which override the script.",
      options_table(options, list.text),
      "## Methods", methods(file, "trainer", "lt.Trainer"),
      "## Fields", "Scripts and callbacks read, among others: `current_epoch`, `global_step`, "
        .. "`log_dir` (of the first logger that writes files, else nil), "
        .. "`ckpt_path` (the file that was loaded last, else nil), `checkpoint_callback` and "
        .. "`early_stopping_callback` (the first of each, else nil), `checkpoint_callbacks` and "
        .. "`early_stopping_callbacks` (lists), `profiler` (profile, start and stop of "
        .. "named parts), `device_ids` and `num_devices` (of the ranks of "
        .. "this machine), `evaluating` (whether it validates or tests), `received_sigterm`, "
        .. "`enable_validation` (whether the fit that runs validates), "
        .. "`callback_metrics`, `logged_metrics`, `progress_bar_metrics`, `should_stop` (set it to "
        .. "end the fit), `is_last_batch`, `interrupted`, `callbacks`, `loggers`, `logger`, "
        .. "`optimizers`, `module` (`model` and `lightning_module` are the same), `datamodule`, "
        .. "`max_epochs`, `max_steps`, `num_training_batches`, `num_val_batches` and "
        .. "`num_sanity_val_batches` (a number a loader), `estimated_stepping_batches` (optimizer "
        .. "steps of the whole fit; math.huge if that is unknown). "
        .. "Each option can be read under its name; "
        .. "one that is assigned has its effect from then on, or the assignment is an error "
        .. "(`precision`, `strategy`, `devices`, ...).",
      "Once they are loaded, `train_dataloader`, `val_dataloaders`, `test_dataloaders` and "
        .. "`predict_dataloaders` are the loaders as given: a loader, a list, or a table.",
      "## Options of older Lightning", old_table(),
    },
  }
end

local WHO <const> = { { "m", "module" }, { "c", "callback" }, { "d", "data module" } }
local LOG <const> = {
  step = "`on_step` by default", epoch = "`on_epoch` only", eval = "`on_epoch` by default",
}

local function hook_rows()
  local rows = {}
  for i, row in ipairs(hooks.rows) do
    local who = {}
    for _, pair in ipairs(WHO) do
      if row.who:find(pair[1], 1, true) then who[#who + 1] = pair[2] end
    end
    local name = ("`%s(%s)`"):format(row.name, row.args)
    rows[i] = { name, table.concat(who, ", "), LOG[row.log] or "no", row.doc }
  end
  return rows
end

local HOOKS_INTRO <const> = [[
Methods that the loops call, if they are defined, in about this order. Those of a callback get
`trainer, module` before the arguments shown. A hook that is not defined costs nothing; a misspelt
one is an error that suggests the nearest name. `batch_idx` counts from 0, `dataloader_idx` from 1.
Callbacks are called before the module; `on_train_epoch_end` of those that monitor a metric, or save
checkpoints, is called after that of the module.]]

local function hooks_page()
  return {
    file = "hooks.md", title = "Hooks", about = "what a module, a callback and a data module may "
      .. "define, and where `self:log` works",
    source = "stdlib/core/hooks.lua",
    text = markdown.join {
      "# Hooks",
      HOOKS_INTRO,
      markdown.table({ "hook", "of", "`self:log`", "meaning" }, hook_rows()),
    },
  }
end

local function cut(text)
  return (text:gsub("%s*Options of the Trainer, which override .*$", ""):gsub("%s+$", ""))
end

local CLI_LUA <const> = [[
Scripts run in Lua 5.4 as `lua` runs them, with one difference: `math.random` uses the seed of
`lt.seed`, so that resumed runs get the same numbers, and `math.randomseed(n)` starts a sequence
that is determined by `n`, but differs from that of Lua's own generator.]]

local function cli_page()
  local parts = {
    "# Command line", "```\n" .. help.all():gsub("%s+$", "") .. "\n```",
    "Commands that run a script also accept every option of the [Trainer](trainer.md#options) "
      .. "that is a number, a string or a boolean: `--max_epochs 5`, `--limit_train_batches 0.1`. "
      .. "They override the options in the script, which is reported. Arguments after `--` are "
      .. "passed to the script, in `arg`; flags of the script are given like the others: "
      .. "`lt.args(declared)`, see [training](../guide/training.md#script-arguments).",
    CLI_LUA,
  }
  for _, word in ipairs(commands.list) do
    parts[#parts + 1] = "## ltrain " .. word.name
    parts[#parts + 1] = "```\n" .. cut(help.word(word, options)) .. "\n```"
  end
  parts[#parts + 1] = "## Environment"
  parts[#parts + 1] = markdown.table({ "variable", "meaning" }, environment.variables)
  parts[#parts + 1] = "## Files"
  parts[#parts + 1] = markdown.table({ "path", "contents" }, environment.files)
  return {
    file = "cli.md", title = "Command line", about = "commands, options, exit statuses",
    source = "stdlib/cli/commands.lua and tools/docs/environment.lua", text = markdown.join(parts),
  }
end

return function(root)
  return { trainer_page(root), hooks_page(), cli_page() }
end
