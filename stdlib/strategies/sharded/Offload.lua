--- stdlib/strategies/sharded/Offload.lua: where the ranks keep what is divided among them: on the
--- device that computes, on the host (ZeRO-Offload: Ren et al. 2021) or in files (ZeRO-Infinity:
--- Rajbhandari et al. 2021).
--
-- On the host are the shards that optimizers step, their gradients and the state: so the update is
-- computed there. A whole parameter is on the device while it is computed with. In files means that
-- the host's tensors are mapped files (runtime/io/file_memory.h), of which as much is in memory as
-- there is memory for.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local Offload = class.extend(nil, "Offload")

--- Offload(where, who): "cpu"; { path = a folder }: in files there; nil: on the device that
--- computes. `who`: the strategy, in errors.
function Offload:init(where, who)
  self.who = who
  self.device = where and "cpu" or nil
  self.path = type(where) == "table" and where.path or nil
  if not self.path then return end
  local made, why = c.io.make_folder(self.path)
  if not made then errors.blame("%s: offload: %s", who, why) end
end

--- What is made on the host is in files until the result is closed, if that is where shards are.
function Offload:scope()
  if not self.path then return nil end
  local scope, why = c.io.file_memory(self.path)
  return scope or errors.blame("%s: %s", self.who, why)
end

--- Whether shards of a tensor are on another device than itself.
function Offload:moves(tensor)
  return self.device ~= nil and tensor.device ~= self.device and not tensor.is_meta
end

--- A copy of a tensor, where shards are, in a dtype.
function Offload:copy(tensor, dtype)
  local _ <close> = self:scope()
  local there = self:moves(tensor) and tensor:to(self.device) or tensor
  if there.dtype ~= dtype then return there:to(dtype) end
  return rawequal(there, tensor) and tensor:clone() or there
end

--- A tensor that nothing else uses, where shards are, in a dtype.
function Offload:take(tensor, dtype)
  local is_there = not self:moves(tensor)
  if is_there and tensor.dtype == dtype then return tensor end
  local own <close> = tensor -- luacheck: ignore
  local _ <close> = self:scope()
  return (is_there and own or own:to(self.device)):to(dtype)
end

return Offload
