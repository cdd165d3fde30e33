--- stdlib/compat/plugins.lua: the Trainer's `plugins`: finds the option that each stands for (a
--- CheckpointIO, a Precision, ...) by its class.
local CheckpointIO = require "ltrain.files.CheckpointIO"
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local Precision = require "ltrain.core.Precision"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local plugins = {}

-- Parts, their classes, and methods of which a plain table has one.
local KINDS <const> = {
  { "checkpoint_io", CheckpointIO, { "save", "load", "remove" } },
  { "precision", Precision, { "convert_module", "convert_input", "forward_context", "autocast" } },
  { "cluster_environment", ClusterEnvironment, { "world_size", "global_rank", "detect" } },
}

local function has_any(value, names)
  for _, name in ipairs(names) do
    if value[name] ~= nil then return true end
  end
end

-- The name of the part that a plugin is.
local function part_of(plugin)
  local plain = type(plugin) == "table" and getmetatable(plugin) == nil
  for _, kind in ipairs(KINDS) do
    if class.is_a(plugin, kind[2]) or plain and has_any(plugin, kind[3]) then return kind[1] end
  end
  if type(plugin) == "string" then return "precision" end
  errors.blame("Trainer: plugins: must be a precision, a checkpoint_io or a cluster environment "
    .. "(batch norm over ranks is sync_batchnorm = true): got %s", errors.show(plugin))
end

-- One plugin, or a list of them.
local function as_list(value)
  local plain = type(value) == "table" and getmetatable(value) == nil
  return plain and (#value > 0 or next(value) == nil) and value or { value }
end

--- Parts by name out of the option `plugins`; each is noted.
function plugins.read(trainer, value)
  local parts = {}
  for _, plugin in ipairs(as_list(value)) do
    local name = part_of(plugin)
    if parts[name] ~= nil then errors.blame("Trainer: plugins: two are a %s", name) end
    parts[name] = plugin
    trainer:note(("plugins is of older Lightning: write lt.strategies.DDP{%s = ...}"):format(name))
  end
  return parts
end

return plugins
