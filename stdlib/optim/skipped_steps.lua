--- stdlib/optim/skipped_steps.lua: optimizer steps that the device skips by itself (inf or NaN
--- gradients), as the host learns a few steps later.
--
-- Whether a step is taken (GradScaler, nonfinite = "skip") is a bool on the device, which leaves
-- the update out by itself; the host waits for no answer, but counts the step as taken and takes
-- that back up to AHEAD steps later. What an update is computed with depends on how many steps were
-- taken before it: the corrections of Adam, the rate of a scheduler of steps. So while some answers
-- are on their way, the update is issued once for each number of steps that may have been left out,
-- with what the host would have counted then, and the device carries out the one that is right.
local c = require "ltrain.c"

local skipped_steps = {}

local AHEAD <const> = 4
-- On a device that records, each number of updates in a step is another program. Its host is ahead
-- no further than it must be to work while the device does, and takes no answer earlier.
local AHEAD_RECORDING <const> = 2

--- What an optimizer knows of such steps.
--   waiting   the last steps, the first first: { flag =, left_out = (nil: not known), hear = }
--   counted   for each of these what the host has counted: a list of changes { of =, slot =,
--             before =, after = }. How many steps were taken decides what counts are, not which:
--             a step that was left out takes back the last of them.
--   missed    how many steps were left out, a number on the device, of which `heard` are taken back
function skipped_steps.new()
  return { waiting = {}, counted = {}, spare = {}, heard = 0, ahead = AHEAD }
end

--- Whether an optimizer can leave out steps where `found`, a tensor, says so: its operation takes
--- that, on a device whose host does not wait.
function skipped_steps.suits(optimizer, found)
  return found.device ~= "cpu" and optimizer.update ~= nil
    and optimizer.update == optimizer.checked_update
end

local function put(changes, moment)
  for i = 1, #changes do
    local change = changes[i]
    change.of[change.slot] = change[moment]
  end
end

-- The first step of the list becomes known.
local function hear_first(deferred)
  local first = table.remove(deferred.waiting, 1)
  if first.left_out == nil then first.left_out = first.flag:read() end
  table.insert(deferred.spare, first.flag)
  if not first.left_out then return table.remove(deferred.counted, 1) end
  local last = table.remove(deferred.counted)
  put(last, "before")
  if last.undo then last.undo() end
  deferred.heard = deferred.heard + 1
  if first.hear then first.hear() end
end

--- Waits for all answers; whether a step was left out.
function skipped_steps.settle(deferred)
  local waiting, heard = deferred.waiting, deferred.heard
  if #waiting == 0 then return false end
  local last = waiting[#waiting]
  last.left_out = last.flag:read() -- the others have arrived by then
  while #waiting > 0 do hear_first(deferred) end
  local any = deferred.heard > heard
  deferred.missed, deferred.heard = nil, 0
  return any
end

--- Takes back what was counted of the steps that AHEAD others have followed: always then, so that
--- what a script sees does not depend on time.
function skipped_steps.poll(deferred)
  while #deferred.waiting >= deferred.ahead do hear_first(deferred) end
end

-- Whether somebody else has changed what was counted since the last step.
local function is_changed(deferred)
  for _, change in ipairs(deferred.counted[#deferred.counted] or {}) do
    if change.of[change.slot] ~= change.after then return true end
  end
  return false
end

--- Begins a step: it changes nothing where `found`, a bool on the parameters' device, is true.
--- `hear()` (optional) is called when it was left out.
function skipped_steps.begin(deferred, found, hear)
  if is_changed(deferred) then skipped_steps.settle(deferred) end
  if c.runtime.records(found.device) then deferred.ahead = AHEAD_RECORDING end
  skipped_steps.poll(deferred)
  local step = { flag = table.remove(deferred.spare) or c.runtime.readback(), hear = hear }
  step.flag:set(found)
  deferred.step, deferred.found = step, found
end

-- How many of the steps that the host waits for were left out: at least, and at most.
local function bounds(deferred)
  local least, most = 0, 0
  for _, step in ipairs(deferred.waiting) do
    local polls = step.left_out == nil and deferred.ahead == AHEAD
    if polls then step.left_out = step.flag:poll() end
    if step.left_out then least = least + 1 end
    if step.left_out ~= false then most = most + 1 end
  end
  return least, most
end

-- Whether counts differ by how many steps were taken.
local function matters(deferred)
  for _, changes in ipairs(deferred.counted) do
    if #changes > 0 then return true end
  end
  return false
end

-- refuses[n + 1]: whether the step is not the one after n that were left out; bools on the device.
local function found_infs(deferred)
  if not deferred.numbers then
    deferred.numbers = c.arange(0, deferred.ahead,
      { dtype = "f32", device = deferred.found.device })
  end
  return (deferred.missed - deferred.heard):ne(deferred.numbers):logical_or(deferred.found)
end

local function count_on_device(deferred)
  local _ <close> = c.no_grad()
  local one = deferred.found:to "f32"
  if #deferred.waiting == 0 then deferred.missed, deferred.heard = c.zeros_like(one), 0 end
  deferred.missed = deferred.missed + one
end

-- The counts as they were before the last n steps and this one.
local function rewind(deferred, n)
  put(deferred.changes, "before")
  for k = 1, n do put(deferred.counted[#deferred.counted - k + 1], "before") end
end

-- Issues the update with what would have been counted if 1, 2, ... steps had been left out.
local function issue_others(deferred, update, optimizer, refuses, least, most)
  for n = math.max(least, 1), most do
    rewind(deferred, n)
    deferred.found_inf = refuses[n + 1]
    update(optimizer)
  end
  rewind(deferred, most)
  for n = #deferred.counted - most + 1, #deferred.counted do put(deferred.counted[n], "after") end
  put(deferred.changes, "after")
end

-- The update of a step that was begun; it takes deferred.found_inf.
local function issue(deferred, update, optimizer)
  local least, most = bounds(deferred)
  local refuses
  if most > 0 and matters(deferred) then
    local _ <close> = c.no_grad()
    refuses = found_infs(deferred)
  end
  deferred.found_inf, deferred.changes = refuses and refuses[1] or deferred.found, {}
  deferred.recording = true
  update(optimizer)
  deferred.recording = false
  for _, change in ipairs(deferred.changes) do change.after = change.of[change.slot] end
  if refuses then issue_others(deferred, update, optimizer, refuses, least, most) end
end

--- Makes the step that was begun, by `update(optimizer)`.
function skipped_steps.run(deferred, update, optimizer)
  issue(deferred, update, optimizer)
  count_on_device(deferred)
  table.insert(deferred.waiting, deferred.step)
  table.insert(deferred.counted, deferred.changes)
  deferred.step, deferred.found, deferred.found_inf, deferred.changes = nil, nil, nil, nil
end

--- Something is about to set of[slot], which the operation does not write.
function skipped_steps.remember(deferred, of, slot)
  if not deferred.recording then return end
  local changes = deferred.changes
  changes[#changes + 1] = { of = of, slot = slot, before = of[slot] }
end

local function numbers_of(groups)
  local all = {}
  for g, group in ipairs(groups) do
    all[g] = {}
    for name, value in next, group do
      if name ~= "params" and name ~= "names" then all[g][name] = value end
    end
  end
  return all
end

--- Calls `fn`, which changes options of groups after a step that the device may leave out; `undo()`
--- takes back what it changes besides.
function skipped_steps.count(deferred, groups, undo, fn, ...)
  local changes = deferred.counted[#deferred.counted]
  if not changes then return fn(...) end
  local before = numbers_of(groups)
  fn(...)
  changes.undo = undo
  for g, group in ipairs(groups) do
    for name, value in next, numbers_of(groups)[g] do
      if before[g][name] ~= value then
        changes[#changes + 1] = { of = group, slot = name, before = before[g][name],
                                  after = value }
      end
    end
  end
end

return skipped_steps
