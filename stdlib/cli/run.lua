--- stdlib/cli/run.lua: `ltrain run|fit|validate|test|predict SCRIPT`.
--
-- Options of the Trainer are left where every Trainer that the script makes finds them. What the
-- script returns is then passed to the word's loop.
local apps = require "ltrain.cli.apps"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local commands = require "ltrain.cli.commands"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local debug_rank = require "ltrain.dist.debug_rank"
local environments = require "ltrain.clusters.environments"
local error_file = require "ltrain.cli.error_file"
local errors = require "ltrain.core.errors"
local interrupt = require "ltrain.core.interrupt"
local overrides = require "ltrain.trainer.setup.overrides"
local process_group = require "ltrain.cli.process_group"
local protected_call = require "ltrain.cli.protected_call"
local records = require "ltrain.runs.record"
local settings = require "ltrain.cli.settings"
local tree = require "ltrain.core.tree"

local run = {}

local DONE <const>, USAGE <const> = 0, 2

local BUNDLE <const> = {
  model = { required = true, type = "object|table" },
  data = { type = "object|table" },
  trainer = { type = "object|table" },
}

local function is_module(value)
  if type(value) ~= "table" then return false end
  if class.of(value) then return class.is_a(value, require "ltrain.nn.Module") end
  if getmetatable(value) ~= nil then return false end
  return value.training_step ~= nil or value.validation_step ~= nil or value.test_step ~= nil
    or value.predict_step ~= nil or value.forward ~= nil
end

-- What keeps a value from being the model, nil when it is one.
local function wrong_model(value)
  if is_module(value) then return nil end
  if class.is_class(value, require "ltrain.nn.Module") then
    return ("%s: give an object: %s()"):format(tostring(value), value.__name)
  end
  return errors.show(value)
end

-- Whether a table has one of these names, or nearly: the others are reported by config.check.
local function is_bundle(value)
  if type(value) ~= "table" or getmetatable(value) ~= nil then return false end
  local names = tree.keys(BUNDLE)
  for key in tree.pairs(value) do
    if BUNDLE[key] or errors.nearest(key, names) then return true end
  end
  return false
end

--- What the script returned as {model =, data =, trainer =}; nil and a reason when it is neither.
function run.as_bundle(word, values)
  local value = values[1]
  local wrong = wrong_model(value)
  if value == nil then
    return nil, "it returned nothing"
  elseif values.n > 1 then
    return nil, ("it returned %d values: return {model = ..., data = ...}"):format(values.n)
  elseif not wrong then
    return { model = value }
  elseif not is_bundle(value) then
    local kind = wrong == errors.show(value) and type(value) == "table"
    return nil, ("it returned %s%s"):format(wrong, kind
      and ", neither a module nor {model =, data =, trainer =}" or "")
  end
  local bundle = config.check(value, BUNDLE, word.name)
  wrong = wrong_model(bundle.model)
  return not wrong and bundle or nil, wrong and "model is not a module: " .. wrong
end

--- The Trainer of such a table, made of its options if it has those.
function run.trainer_of(bundle)
  local Trainer = require "ltrain.trainer.Trainer"
  local trainer = bundle.trainer
  if class.is_a(trainer, Trainer) then return trainer end
  if trainer and getmetatable(trainer) ~= nil then
    errors.blame("trainer must be a Trainer or a table of its options: got %s",
      errors.show(trainer))
  end
  return Trainer(trainer)
end

-- What batches gave by name, joined: {predictions = ...} of tensors, the fields of tables of
-- tensors; nil of anything else, and whether these were tensors alone.
local function joined(outputs)
  local lt, parts = require "ltrain", {}
  local plain = lt.is_tensor(outputs[1])
  for i, output in ipairs(outputs) do
    local fields = plain and { predictions = output } or output
    if type(fields) ~= "table" or class.of(fields) then return nil end
    for name, value in tree.pairs(fields) do
      local list = parts[name] or {}
      if not lt.is_tensor(value) or value.ndim == 0 or #list ~= i - 1 then return nil end
      parts[name], list[i] = list, value
    end
  end
  for name, list in pairs(parts) do
    if #list ~= #outputs or type(name) ~= "string" then return nil end
    parts[name] = lt.cat(list, 1)
  end
  return next(parts) and parts, plain
end

local function show_predictions(parsed, host, outputs)
  local lt = require "ltrain"
  local file, fields, plain = parsed.options.output, joined(outputs)
  if not fields then
    if file then
      errors.blame("predict: --output: predict_step must return tensors, or a table of them by "
        .. "name: got %s", errors.show(outputs[1]))
    end
    for i, output in ipairs(outputs) do
      host.write(("%d: %s\n"):format(i, type(output) == "string" and output or errors.show(output)))
    end
    return
  end
  local sizes = {}
  for name, tensor in tree.pairs(fields) do
    sizes[#sizes + 1] = ("%s [%s]"):format(name, table.concat(tensor.shape, ", "))
    if not file then
      host.write(("%s%s\n"):format(plain and "" or name .. ": ", tostring(tensor)))
    end
  end
  if not file then return end
  local ok, message = lt.save(file, fields)
  if not ok then errors.blame("predict: %s", message) end
  host.write(("wrote %s: %s\n"):format(file, table.concat(sizes, ", ")))
end

local function run_loop(word, parsed, host, bundle)
  local trainer = run.trainer_of(bundle)
  if word.loop ~= "fit" and not parsed.options.ckpt_path then
    trainer:warn(word.name .. ": no --ckpt_path: these are the weights that the script made")
  end
  parsed.made = { model = bundle.model, data = bundle.data, trainer = trainer }
  local outputs = trainer[word.loop](trainer, bundle.model, bundle.data)
  if word.loop == "predict" then show_predictions(parsed, host, outputs) end
end

-- Options of the command line are for a Trainer: a script that made none, and returned nothing,
-- did not get them; but one that calls lt.args, or runs on several ranks, may read them itself.
local function check_used(parsed)
  local name = tree.keys(parsed.overrides)[1]
  if name and not overrides.applied and not overrides.args.values and c.dist.size() == 1 then
    errors.blame("run: --%s is for a Trainer: the script made none and returned nothing", name)
  end
end

-- The script, then the loop over what it returned.
local function run_script(word, parsed, host, chunk)
  local returned = table.pack(host.run(chunk, table.unpack(parsed.args)))
  parsed.returned = returned[1]
  overrides.first_loop()
  local bundle, why = nil, "it returned nothing"
  if overrides.ran == 0 and returned[1] ~= nil then
    bundle, why = run.as_bundle(word, returned)
  end
  -- A class in place of a module has saved no hyper-parameters: that it is a class comes first.
  if bundle or returned[1] == nil or overrides.ran > 0 then overrides.check_flags() end
  if overrides.ran > 0 then
    if word.name == "run" then return end
    errors.blame("%s: %s ran a loop itself; use `ltrain run`, or let it return its module",
      word.name, parsed.script)
  end
  if word.name == "run" and returned[1] == nil then return check_used(parsed) end
  if not bundle then errors.blame("%s: nothing to %s: %s", word.name, word.loop, why) end
  run_loop(word, parsed, host, bundle)
end

-- The command line's seed holds from the start; lt.seed of the script gives it again.
local function fix_seed(seed)
  local lt = require "ltrain"
  local set = lt.seed
  local function seed_again(said)
    if said ~= nil and said ~= seed then
      console.say(("seed = %d (command line; the script sets %s)"):format(seed, tostring(said)))
    end
    return set(seed)
  end
  lt.seed, lt.seed_everything = seed_again, seed_again
  set(seed)
end

-- The first loop prints the configuration in place of its run.
local function print_config(parsed, host)
  function overrides.take(trainer, _, module, arguments)
    parsed.printed = true
    if c.dist.rank() == 0 then
      local resolved_config <const> = require "ltrain.trainer.setup.resolved_config"
      host.write(resolved_config(trainer, module, arguments.data_module))
    end
    error("the configuration was printed", 0)
  end
end

--- What files of configuration and flags set for the script; raises where it is wrong.
function run.take_settings(parsed, host)
  settings.take_files(parsed.configs)
  settings.take_flags(parsed.settings)
  settings.begin()
  overrides.ckpt_path = parsed.options.ckpt_path or settings.own.ckpt_path
  local seed = parsed.options.seed or settings.own.seed
  if seed then fix_seed(seed) end
  if parsed.options.print_config then print_config(parsed, host) end
end

-- Runs protected.
local function session(word, parsed, host, chunk)
  run.take_settings(parsed, host)
  run_script(word, parsed, host, chunk)
  if parsed.options.print_config then
    errors.blame("%s: --print_config: %s runs no loop", word.name, parsed.script)
  end
  debug_rank.check(c.dist.size()) -- of a script that has launched nothing
end

--- What to say of a script that was not started by a word and returned this table; nil: nothing.
function run.hint(returned, script)
  if overrides.ran > 0 then return nil end
  local bundled = not class.of(returned) and rawget(returned, "model")
  if not is_module(bundled or returned) then return nil end
  return ("%s returned a module: `ltrain run %s` trains it"):format(script, script)
end

--- `print` of a script whose command has standard output for itself.
function run.print_to_stderr(host)
  return function(...) host.complain(console.line(...)) end
end

-- What the script prints is in console.log too; with `verbose` every rank
-- speaks, and what the others say begins with their numbers.
local function prepare_print(host, verbose, to_stderr)
  local plain = to_stderr and run.print_to_stderr(host) or host.globals.print
  if verbose then console.speak_all(true) end
  function host.globals.print(...)
    local rank = c.dist.rank()
    if verbose and rank > 0 then
      plain(("[rank %d]"):format(rank), ...)
    else
      plain(...)
      if rank == 0 then console.copy(console.line(...)) end
    end
  end
end

local function prepare_args(word, parsed)
  local args = overrides.args
  args.flags, args.is_command, args.unknown = parsed.flags, true, parsed.wrong
  for _, row in ipairs(word.options) do args.reserved[row.name] = true end
end

--- The rows of the options that the script declares by lt.args, for help: it runs as far as there.
--- nil where it does not come so far.
function run.declared(word, parsed, host)
  local chunk = host.load(parsed.script)
  if not chunk then return nil end
  prepare_args(word, parsed)
  overrides.args.wants_help = true
  pcall(host.run, chunk)
  return overrides.args.help_rows
end

--- What the command line says is there for the script.
function run.prepare(word, parsed, host)
  for name, override in pairs(parsed.overrides) do overrides.set(name, override.value) end
  overrides.ckpt_path, overrides.run_dir = parsed.options.ckpt_path, parsed.options.run_dir
  overrides.only = word.name ~= "run" and word.loop or nil
  local threads = parsed.options.threads
  if threads then
    local used = host.set_threads(threads)
    if used < threads then
      console.say(("note: --threads %d: %d are used"):format(threads, used))
    end
  end
  records.script, records.package = parsed.script, host.globals.package
  records.keeps_code = not parsed.options.no_save_code
  prepare_args(word, parsed)
  debug_rank.wanted = parsed.options.debug_rank
  apps.prepare(word, parsed, host)
  prepare_print(host, parsed.options.verbose, parsed.options.print_config)
  local arg = { [-2] = "ltrain", [-1] = word.name, [0] = parsed.script }
  host.globals.arg = table.move(parsed.args, 1, #parsed.args, 1, arg)
end

-- With -i a prompt follows, whatever became of the script. It knows what was run as `model`, `data`
-- and `trainer`, where the script has no globals of these names.
local function open_prompt(parsed, host, failure)
  host.globals.lt = host.globals.lt or require "ltrain"
  for name, value in next, parsed.made or {} do
    if host.globals[name] == nil then host.globals[name] = value end
  end
  if failure then protected_call.report(host, failure) end
  c.runtime.clear_interrupt()
  return apps.open_prompt(host, { script = parsed.script,
    returned = parsed.returned, stack = failure and failure.stack })
end

--- The word's main: returns the exit status.
function run.main(word, parsed, host)
  local chunk, message, absent = host.load(parsed.script)
  if not chunk then
    if absent and commands.by_name[parsed.script] then
      message = ("%s: the script to %s is missing"):format(message, word.name)
    end
    message = require "ltrain.core.traceback".show(message, message)
    host.complain(("ltrain: %s\n"):format(message))
    error_file.write { text = message, rank = environments.current():global_rank(), status = 1 }
    return absent and USAGE or 1
  end
  local status = process_group.enter(word, parsed, host)
  if status then return status end
  run.prepare(word, parsed, host)
  if parsed.interactive then c.runtime.note_allocations(true) end -- for `:mem`
  local ok, failure = protected_call.call(host, session, word, parsed, host, chunk)
  if parsed.printed then return process_group.leave(DONE) end
  if parsed.interactive and c.dist.rank() == 0 then
    return process_group.leave(open_prompt(parsed, host, not ok and failure))
  end
  status = ok and (interrupt.pending() and host.signal() or DONE)
    or protected_call.report(host, failure)
  apps.finish(not ok)
  return process_group.leave(status)
end

return run
