--- stdlib/trainer/setup/overrides.lua: options of the command line that override those of the
--- script's Trainers.
--
-- The CLI sets options; each Trainer that is built takes them over the script's own and prints each
-- in one line. `ran` counts the loops that were called: what a script that called one returns is
-- not fitted again. A host that embeds a state adds its callbacks here.
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local overrides = {
  values = {}, -- option -> value
  unset = {}, -- option -> true: its default, whatever the script says
  ckpt_path = nil, -- for the first loop of the word's kind
  run_dir = nil, -- the folder of the first Trainer's run
  -- { loop = n, path =, step = its global_step, folders = of the loggers of the run that wrote it
  -- (nil: not known), note = }: the n-th loop of the script resumes from the file
  resume = nil,
  -- function(path, step, loggers): a checkpoint from which the loop can be resumed was written
  saved = nil,
  stop_loops = nil, -- what is raised where a loop would begin: of a script that runs for its code
  only = nil, -- the loop of the command word, nil for `run`
  control = false, -- whether a dashboard may stop fits, and have them save
  take = nil, -- function(trainer, fn, module, arguments): gets each loop in place of its run
  before_loops = nil, -- a function, called once, before the first loop or at the script's end
  check_settings = nil, -- a function that raises where settings of files and flags are unknown
  from = {}, -- by an option's name: the file of configuration that sets it
  callbacks = {}, -- of every Trainer, after its own
  stops_at_infinities = false, -- detect_anomaly takes an infinity of a derivative for one
  failed_step = nil, -- global_step of the fit that failed last: for the report to a launcher
  ran = 0,
  applied = false, -- whether a Trainer was made

  -- What lt.args and the command line share.
  args = {
    flags = nil, -- a list of {flag =, name =, text =}: those that the command line does not know
    reserved = {}, -- set of the names of the command's own options
    is_command = false, -- whether there is a command: the Trainer's options stand beside
    values = nil, -- what the script has got
    unknown = nil, -- what to say of the flags if the script does not call lt.args
    wrong = nil, -- the error of usage that was raised
    wants_help = false, -- whether the script runs to see what it declares
    help_rows = nil, -- that
  },
}

--- Sets an option of every Trainer to come; nil is the option's default.
function overrides.set(name, value, from)
  overrides.values[name], overrides.from[name] = value, from
  overrides.unset[name] = value == nil or nil
end

--- Does what is to be done before the first loop.
function overrides.first_loop()
  local act = overrides.before_loops
  overrides.before_loops = nil
  if act then act() end
end

--- While what it returns is open (`local _ <close> = ...`) a script runs again, or another one:
--- lt.args gives it its values.
function overrides.again()
  local args <const>, values <const> = overrides.args, overrides.args.values
  args.values = nil
  return setmetatable({}, { __close = function() args.values = values end })
end

--- While what it returns is open (`local _ <close> = ...`) a Trainer is what its own options say:
--- one that a callback makes within a fit.
function overrides.aside()
  local kept <const> = {}
  for _, name in ipairs { "values", "unset", "callbacks" } do
    kept[name], overrides[name] = overrides[name], {}
  end
  return setmetatable({}, { __close = function()
    for name, value in next, kept do overrides[name] = value end
  end })
end

--- The script's options with those of the command line over them, each printed.
function overrides.apply(script)
  overrides.applied = true
  local merged = {}
  for name, value in next, script or {} do merged[name] = value end
  local function override(name, value)
    local before = merged[name]
    merged[name] = value
    local also = before ~= nil and ("; the script sets %s"):format(tostring(before)) or ""
    console.say(("%s = %s (%s%s)"):format(name, tostring(value),
      overrides.from[name] or "command line", also))
  end
  for name, value in tree.pairs(overrides.values) do override(name, value) end
  for name in tree.pairs(overrides.unset) do override(name, nil) end
  return merged
end

--- Raises where the command line has flags that the script has not taken.
function overrides.check_flags()
  local args = overrides.args
  if overrides.check_settings then overrides.check_settings() end
  if not args.unknown or args.values then return end
  args.wrong = args.unknown
  errors.blame("%s", args.wrong)
end

--- A loop begins: counted, refused when the command line asks for another one.
function overrides.begin(fn)
  if overrides.stop_loops then error(overrides.stop_loops, 0) end
  overrides.check_flags()
  local only = overrides.only
  if only and fn ~= only then
    errors.blame("%s: `ltrain %s` runs no other loop: let the script return its module", fn, only)
  end
  overrides.ran = overrides.ran + 1
end

--- Whether this loop is one that a job was stopped in, which was restarted.
function overrides.resumes()
  local resume = overrides.resume
  return resume ~= nil and resume.loop == overrides.ran
end

--- Whether the file that this loop resumes from is of a later step than `step`.
function overrides.is_after(step)
  return overrides.resumes() and (overrides.resume.step or -1) > step
end

--- The checkpoint that the command line names for this loop, once; or nil. That of a job that was
--- stopped in this loop and restarted comes first.
function overrides.take_ckpt_path(fn)
  if overrides.resumes() then return overrides.resume.path end
  local path = overrides.ckpt_path
  if not path or fn ~= (overrides.only or "fit") then return nil end
  overrides.ckpt_path = nil
  return path
end

return overrides
