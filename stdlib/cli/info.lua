--- stdlib/cli/info.lua: `ltrain info`: what this build contains; what a checkpoint holds.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.trainer.saving.checkpoint_file"
local refuse = require "ltrain.cli.refuse"
local show = require "ltrain.cli.show"
local tree = require "ltrain.core.tree"

local info = {}

local function row(host, name, text)
  host.write(("%-12s %s\n"):format(name, text))
end

local function tell_build(host)
  row(host, "ltrain", host.version)
  row(host, "lua", host.lua_version)
  for _, part in ipairs(c.runtime.parts()) do
    row(host, part.name, (part.present and "yes: " or "no: ") .. part.text)
  end
  row(host, "threads", ("%d an operation (--threads), %d cores online"):format(
    c.runtime.get_threads(), c.runtime.cpu_count()))
end

local function tell_weights(host, weights)
  local count, first = 0, {}
  for name, tensor in tree.pairs(weights) do
    if not first[tensor] then
      count, first[tensor] = count + tensor:numel(), name
    end
  end
  row(host, "weights", ("%d numbers"):format(count))
  for name, tensor in tree.pairs(weights) do
    row(host, "", ("%s [%s] %s%s"):format(name, table.concat(tensor.shape, ", "), tensor.dtype,
      first[tensor] ~= name and ", shared with " .. first[tensor] or ""))
  end
end

local function tell_checkpoint(host, saved)
  row(host, "class", saved.class_name or "?")
  row(host, "position", ("epoch %d, step %d"):format(saved.epoch, saved.global_step))
  row(host, "resumes", saved.loops and "yes" or "no: weights only")
  if saved.random and saved.random.seed then row(host, "seed", tostring(saved.random.seed)) end
  for name, value in tree.pairs(saved.hyper_parameters or {}) do
    row(host, "hparams", ("%s = %s"):format(name, show.value(value)))
  end
  tell_weights(host, saved.state_dict)
end

--- The word's main: returns the exit status.
function info.main(word, parsed, host)
  if not parsed.script then
    tell_build(host)
    return 0
  end
  local saved, message = checkpoint_file.read(parsed.script)
  if not saved then return refuse(host, word, message) end
  tell_checkpoint(host, saved)
  return 0
end

return info
