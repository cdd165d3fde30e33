--- stdlib/cli/init.lua: the entry point of `ltrain`: dispatches subcommands. The binary calls
--- `main` and exits with what it returns.
--
-- What touches the process (files of the script, the terminal, signals) comes in as `host`, a table
-- of functions that the binary makes:
--   write(text), complain(text)      standard output, standard error
--   load(path)                       a chunk; nil and a message; nil, message, true if not there
--   run(chunk, ...)                  calls it
--   globals                          the script's _G
--   version, lua_version             texts
--   traceback(message, level, thread)   as debug.traceback; the thread may be left out
--   signal()                         nil, or the exit status that a signal asked for (130, 143)
--   note_signal(name) -> its number, noted(name)   "USR1", "USR2", "HUP", "TERM" only leave a note
--   stop_by(name)                    it ends the script as SIGTERM does
--   interrupt(name)                  loops of a Trainer end as by Ctrl-C, for this signal
--   stopped()                        whether such a signal has just raised an error in the script
--   set_threads(n)                   threads of the operations
--   tty               whether standard input and output are a terminal
--   read_line(prompt), remember(line), edits   the prompt's, with stdlib/apps
local arguments = require "ltrain.cli.arguments"
local c = require "ltrain.c"
local commands = require "ltrain.cli.commands"
local errors = require "ltrain.core.errors"
local help = require "ltrain.cli.help"

local cli = {}

local DONE <const>, USAGE <const> = 0, 2

-- What each word runs: loaded when wanted, because start-up counts.
local function runner(word)
  if word.load then return word.load() end
  if word.script then return (require "ltrain.cli.run") end
  return require("ltrain.cli." .. word.name)
end

-- The Trainer's options as config rows; only words that run scripts have them.
local function trainer_rows(word)
  return word.script and require "ltrain.trainer.setup.options" or {}
end

--- Whether `name` is a command word.
function cli.is_word(name)
  return commands.by_name[name] ~= nil
end

--- The page of `ltrain --help`.
cli.help = help.all

--- What is said of a first argument that is neither word nor file: "; did you mean ...?" or "".
function cli.suggest(name)
  local names = {}
  for i, word in ipairs(commands.list) do names[i] = word.name end
  return errors.did_you_mean(name, names)
end

-- Whether a script has flags of its own: it calls lt.args.
local function own_options(parsed)
  local path = parsed.script
  local text = path and c.io.kind(path) == "file" and c.io.read_file(path)
  return text and text:find "%f[%w_]args%s*[{(]" ~= nil or false
end

--- Runs the word argv[1] with what follows it; returns the exit status.
function cli.main(argv, host)
  local word = commands.by_name[argv[1]]
  local rows = trainer_rows(word)
  local tokens = table.move(argv, 2, #argv, 1, {})
  local parsed, wrong = arguments.parse(word, tokens, rows)
  if not parsed then
    host.complain(("ltrain: %s\n%s\n"):format(wrong, help.usage(word)))
    return USAGE
  end
  local own = word.script and own_options(parsed) -- files of other words are data, maybe large
  if parsed.wrong and not own and not word.loose then
    host.complain(("ltrain: %s\n%s\n"):format(parsed.wrong, help.usage(word)))
    return USAGE
  end
  if parsed.help then
    if own then help.script(runner(word).declared(word, parsed, host), host) end
    host.write(help.word(word, rows))
    return DONE
  end
  parsed.tokens = tokens
  return runner(word).main(word, parsed, host)
end

return cli
