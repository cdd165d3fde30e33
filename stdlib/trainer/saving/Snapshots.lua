--- stdlib/trainer/saving/Snapshots.lua: snapshots of a fit in memory that outlives its ranks.
--
-- Under `ltrain launch` a rank that dies ends the others too, and all start again. What a
-- checkpoint holds is copied between two batches into a slot of the launcher's
-- (snapshot_slots.lua), whose header a helper thread writes when the bytes are hashed; the fit that
-- starts again resumes from the newest snapshot that is whole, exactly. Of a state that all ranks
-- have, the first rank of each host writes one; else each rank writes its part
-- (snapshot_parts.lua), and sends a copy to another host (SnapshotCopies.lua). Nothing of this is
-- loaded without a launcher.
local c = require "ltrain.c"
local checkpoint = require "ltrain.trainer.saving.checkpoint"
local checkpoint_parts = require "ltrain.trainer.saving.checkpoint_parts"
local consensus = require "ltrain.trainer.ranks.consensus"
local contents = require "ltrain.files.checkpoint_contents"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local object = require "ltrain.trainer.object"
local overrides = require "ltrain.trainer.setup.overrides"
local packing = require "ltrain.files.packing"
local pending_writes = require "ltrain.trainer.saving.pending_writes"
local SnapshotCopies = require "ltrain.trainer.saving.SnapshotCopies"
local snapshot_parts = require "ltrain.trainer.saving.snapshot_parts"
local snapshot_slots = require "ltrain.trainer.saving.snapshot_slots"
local version = require "ltrain.loggers.version"
local walk = require "ltrain.core.walk"

local Snapshots = {}

local SHARE <const> = 0.01 -- of the time, at most

--- Those of the fit `state`; nil where the launcher has made no slots.
function Snapshots.new(state)
  local slots = snapshot_slots.open()
  if not slots or state.trainer.fast_dev_run then return nil end
  return object(Snapshots, {
    _state = state,
    _slots = slots,
    _fit = overrides.ran, -- which fit of the script
    _round = math.tointeger(tonumber(c.runtime.getenv "LTRAIN_INCARNATION")) or 0,
    _every = state.trainer.options.snapshot_every, -- seconds; 0: after each batch; false: none
    _found = false, -- the snapshot that the fit resumes from
    _loaded = nil, _weights = nil, -- what was read of it
    _leaders = { 0 }, -- the first rank of each host
    _group = nil, -- of these, where several; made with the first snapshot; false: not in it
    _serial = 0, -- of the last snapshot
    _due = nil, -- when the next one is made; nil: not known yet
    _writing = false, -- what writes the last one
    _copies = nil, -- on other hosts, of parts
    _to_copy = false, -- the header of a part that is sent after the next batch; nil: not whole
    _folder = false, -- a snapshot that was written out to be read
    _has_warned = false,
  })
end

-- The start of a fit.

-- The folders of the loggers of the run, on the rank that has what rank 0 wrote.
local function folders_of(self)
  local fd, header = self._slots:find(self._found, 0)
  local path, start = snapshot_slots.path(fd)
  local file, folders = c.io.open_safetensors(path, start, header.bytes), {}
  local text = file and c.io.json_decode(file:metadata()[packing.KEY]) or {}
  for i, logger in ipairs(text.loggers or {}) do folders[i] = logger.log_dir end
  if file then file:close() end
  return folders
end

--- Finds the newest snapshot of this fit. All ranks call it, before the loggers choose folders.
function Snapshots:find()
  local newest, leaders, later = self._slots:newest(self._fit)
  self._leaders, self._found = leaders, newest or false
  if later then self._every = false end -- it would take the place of a fit that comes after this
  if not newest then return end
  self._serial = newest.serial
  if newest.parts == 1 then self._slots:share(newest, leaders) end
  local source = newest.holders[1][1]
  version.continue(self._state.trainer.loggers,
    dist.broadcast(dist.rank() == source and folders_of(self) or nil, { from = source }))
end

--- The global_step of the one that was found.
function Snapshots:step() return self._found.step end

--- Whether the fit resumes from one.
function Snapshots:resumes() return self._found ~= false end

local function read(self, found)
  if found.parts == 1 or #self._leaders == 1 then
    return snapshot_parts.read(self._slots, found)
  end
  local trainer = self._state.trainer
  local path = dist.broadcast(("%s/snapshot-round=%d-step=%d.ckpt"):format(
    trainer:checkpoint_folder(), self._round, found.step))
  local ok, message = snapshot_parts.write(self._slots, found, path)
  if not ok then return nil, message end
  self._folder = path
  return trainer.strategy.checkpoint_io:load(path)
end

--- The snapshot to resume from, as a checkpoint, and its name. All ranks call it.
function Snapshots:load()
  local found = self._found
  local name = ("the snapshot of step %d"):format(found.step)
  local saved, message = read(self, found)
  if not saved then errors.blame("fit: cannot load %s: %s", name, message) end
  self._state.trainer:say(("resumes from %s (round %d)"):format(name, self._round))
  self._loaded, self._weights = saved, saved.state_dict
  return saved, name
end

--- The parameters and buffers that all ranks have from the snapshot, by tensor: none needs those of
--- another. Nil: there are none, or a hook has seen their values before.
function Snapshots:restored(module)
  local loaded, weights = self._loaded, self._weights
  self._loaded, self._weights = nil, nil
  if not loaded or loaded.state_dict ~= weights then return nil end
  local restored = {}
  for _, item in ipairs((walk.tensors(module))) do
    if weights[item.name] ~= nil then restored[item.value] = true end
  end
  return restored
end

-- Snapshots.

local function warn(self, message)
  if self._has_warned then return end
  self._has_warned = true
  self._state.trainer:warn(("snapshots: %s"):format(message))
end

-- Waits for the last one; whether it is whole.
local function settle(self)
  local writing = self._writing
  self._writing = false
  if not writing then return true end
  local _ <close> = c.dist.span()
  local ok, message = writing:wait()
  if not ok then warn(self, (message:gsub("^snapshot: ", ""))) end
  return ok ~= nil
end

local function header_of(self, part, count)
  return { fit = self._fit, round = self._round, serial = self._serial, part = part, parts = count,
    step = self._state.trainer.global_step }
end

-- Tensors and a text on their way to a slot of this rank.
local function begin(self, tensors, text, header)
  local names = {}
  for alias, name in next, text.snapshot.aliases do
    if tensors[name] then tensors[alias], names[alias] = tensors[name], true end
  end
  local saving, message = c.io.save_slot(self._slots:next(), tensors,
    packing.sealed(text), names, header)
  if not saving then warn(self, (message:gsub("^snapshot: ", ""))) end
  self._writing = saving or false
  return saving ~= nil
end

-- The names of tensors that all ranks have: parameters, and the state of optimizers.
local function names_of_all(state, tensors)
  local names = {}
  for name in next, tensors do names[name] = name:find "^optim%." and true or nil end
  for name in state.module:named_parameters() do names["model." .. name] = true end
  return names
end

-- The first ranks of other hosts lack what rank 0 alone has of `whole`, { tensors =, text = }: nil
-- where there is nothing to write.
local function share(self, whole)
  local state = self._state
  if self._group == nil then
    self._group = snapshot_slots.group_of(snapshot_slots.local_rank() == 0) or false
  end
  if not self._group then return nil end
  local rest = whole and { text = whole.text, tensors = {}, of_all = {} }
  local of_all = whole and names_of_all(state, whole.tensors)
  for name, tensor in next, whole and whole.tensors or {} do
    rest[of_all[name] and "of_all" or "tensors"][name] = of_all[name] or tensor
  end
  rest = self._group:broadcast(rest or false)
  if whole or not rest then return whole end
  local optimizers = {}
  for i, optimizer in ipairs(state.optimizers) do
    optimizers[i] = state.strategy:optimizer_parts(optimizer, true)
  end
  local own = contents.pack { state_dict = state.strategy:module_parts(state.module),
    optimizer_states = optimizers }
  for name in next, rest.of_all do rest.tensors[name] = own[name] end
  return rest
end

-- Of a state that all ranks have.
local function make_whole(self)
  local state = self._state
  local saved, refusal = checkpoint.collect(state)
  local whole
  if saved then
    local tensors, text = snapshot_parts.pack(saved)
    whole = { tensors = tensors, text = text }
  elseif refusal then
    warn(self, refusal)
  end
  if #self._leaders > 1 then whole = share(self, whole) end
  if not whole then return refusal == nil end
  return begin(self, whole.tensors, whole.text, header_of(self, 0, 1))
end

-- Of a state that the ranks share.
local function make_parts(self)
  local state = self._state
  if dist.world().forked then
    warn(self, "the ranks of a state that is divided must be the launcher's: --nproc_per_node")
    return false
  end
  local saved, refusal = checkpoint.collect(state, true)
  if not saved then
    warn(self, refusal)
    return false
  end
  local tensors, text = snapshot_parts.pack(checkpoint_parts.of_rank(saved, dist.rank()))
  local header = header_of(self, dist.rank(), dist.world_size())
  self._to_copy = #self._leaders > 1 and header
  return begin(self, tensors, text, header)
end

-- What is sent of the last snapshot begins, or is complete. All ranks call it after the same batch.
local function copy(self)
  local ok, message = true, nil
  if self._to_copy then
    if not self._copies then
      self._copies = SnapshotCopies(self._slots, self._leaders)
      if self._copies.refusal then warn(self, self._copies.refusal) end
    end
    self._copies:begin(settle(self) and self._to_copy)
    self._to_copy = false
  elseif self._copies then
    ok, message = self._copies:poll()
  end
  if not ok then warn(self, message) end
end

-- Waits for that.
local function settle_copies(self)
  if self._to_copy then copy(self) end
  local ok, message = true, nil
  if self._copies then ok, message = self._copies:settle() end
  if not ok then warn(self, message) end
end

-- Makes one, which a helper thread completes. All ranks call it. Returns whether this rank has
-- begun what it has to write.
local function make(self)
  local state = self._state
  pending_writes.settle(state)
  settle(self)
  settle_copies(self)
  self._serial = self._serial + 1
  if self._folder then
    if state.trainer.is_global_zero then c.io.discard_folder(self._folder) end
    self._folder = false
  end
  return (checkpoint_parts.are_here(state) and make_whole or make_parts)(self)
end

-- Seconds that making one has cost the rank to which it cost most, without waiting for others.
local function measured(self)
  local began, waited = c.runtime.clock(), c.dist.waited()
  make(self)
  local cost = c.runtime.clock() - began - (c.dist.waited() - waited)
  if not self._state.ranks.many then return cost end
  return exchange("snapshot", dist.all_reduce, cost, { op = "max" })
end

--- Between two batches: makes a snapshot when it is time. All ranks come here after the same batch.
function Snapshots:reached()
  local state = self._state
  if not self._every then return end
  copy(self)
  local now = consensus.now(state)
  self._due = self._due or now + self._every
  if now < self._due or not state.window:is_empty() then return end
  local cost = measured(self)
  self._due = self._every > 0 and now + math.max(self._every, cost / SHARE) or now
end

--- The ranks end, to be started again: makes one now, and waits for it. All ranks call it; whether
--- it is whole.
function Snapshots:stop()
  local ok = self._every and make(self)
  ok = settle(self) and ok
  settle_copies(self)
  if not self._state.ranks.many then return ok end
  return self._state.strategy:reduce_boolean(ok)
end

--- The fit ends.
function Snapshots:close() settle(self) end

return Snapshots
