--- stdlib/cli/diagnose.lua: `ltrain diagnose DIR`: where the ranks of a failed job diverged, and
--- which of them are slow.
--
-- Each rank left its last collectives there (ring.rank<N>.jsonl) and the text of the
-- failure (failure.rank<N>.txt). The collectives of a group are numbered on each rank; the first
-- number at which what the ranks said differs is where they diverged.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local refuse = require "ltrain.cli.refuse"
local step_times = require "ltrain.runs.step_times"
local tree = require "ltrain.core.tree"

local diagnose = {}

local USAGE <const> = 2

-- Reading.

local function read_lines(path)
  local text, message = c.io.read_file(path)
  if not text then return nil, message end
  local entries, number = {}, 0
  for line in text:gmatch("[^\n]+") do
    number = number + 1
    local entry = c.io.json_decode(line)
    -- A rank that was killed while it wrote leaves half a line at the end.
    if type(entry) == "table" then entries[#entries + 1] = entry end
  end
  return entries
end

-- What the folder holds, by rank: rings[rank] = entries, outcomes = {[text] = {ranks}}.
local function read_folder(folder)
  local names, message = c.io.list_folder(folder)
  if not names then return nil, message end
  local found = { rings = {}, ranks = {}, outcomes = {}, texts = {} }
  table.sort(names)
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name
    local rank = math.tointeger(name:match("^ring%.rank(%d+)%.jsonl$"))
    if rank then
      local entries, why = read_lines(path)
      if not entries then return nil, why end
      found.rings[rank] = entries
      found.ranks[#found.ranks + 1] = rank
    end
    rank = math.tointeger(name:match("^failure%.rank(%d+)%.txt$"))
    local text = rank and c.io.read_file(path)
    if text then
      text = text:gsub("%s+$", "")
      if not found.outcomes[text] then
        found.outcomes[text], found.texts[#found.texts + 1] = {}, text
      end
      table.insert(found.outcomes[text], rank)
    end
  end
  table.sort(found.ranks)
  return found
end

-- Comparing.

-- Messages are counted for each pair of ranks, all else for a whole group.
local function channel_of(entry)
  if entry.op ~= "send" and entry.op ~= "recv" then return ("%d"):format(entry.group) end
  local low, high = math.min(entry.rank, entry.root), math.max(entry.rank, entry.root)
  return ("%d:%d-%d"):format(entry.group, low, high)
end

-- channels[key][rank] = {first =, last =, by_seq = {[seq] = entry}}
local function by_channel(found)
  local channels = {}
  for _, rank in ipairs(found.ranks) do
    for _, entry in ipairs(found.rings[rank]) do
      local key = channel_of(entry)
      channels[key] = channels[key] or {}
      local one = channels[key][rank]
      if not one then
        one = { first = entry.seq, last = entry.seq, by_seq = {} }
        channels[key][rank] = one
      end
      one.by_seq[entry.seq], one.last = entry, entry.seq
    end
  end
  return channels
end

-- The range of numbers that every rank's ring still holds, as far as any rank came.
local function range_of(channel)
  local low, high = 1, 0
  for _, one in pairs(channel) do
    low, high = math.max(low, one.first), math.max(high, one.last)
  end
  return low, high
end

-- The first number at which ranks differ, or nil; and how many they agree on.
local function first_difference(channel)
  local low, high = range_of(channel)
  for seq = low, high do
    local hash
    for _, one in pairs(channel) do
      local entry = one.by_seq[seq]
      if not entry or hash and entry.hash ~= hash then return seq, seq - low end
      hash = entry.hash
    end
  end
  return nil, math.max(0, high - low + 1)
end

-- Printing.

local function thousands(n)
  local text = tostring(n)
  repeat
    local count
    text, count = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  until count == 0
  return text
end

local function call_text(entry)
  local parts = { entry.op }
  if entry.reduce ~= "" then parts[#parts + 1] = entry.reduce end
  if entry.op ~= "barrier" and entry.op ~= "split" then
    parts[#parts + 1] = "[" .. table.concat(entry.shape, ", ") .. "]"
    parts[#parts + 1] = entry.dtype ~= "" and entry.dtype or nil
  end
  if entry.root >= 0 then parts[#parts + 1] = "with rank " .. entry.root end
  if entry.file ~= "" then
    parts[#parts + 1] = "at " .. entry.file .. (entry.line > 0 and ":" .. entry.line or "")
  end
  if entry.hook ~= "" then parts[#parts + 1] = "(" .. entry.hook .. ")" end
  return table.concat(parts, " ")
end

local function state_text(entry)
  if entry.done_ns > 0 then return "done" end
  return entry.arrived_ns > 0 and "all arrived, not done" or "waited for the others"
end

local function channel_text(key)
  local group, pair = key:match("^(%d+):?(.*)$")
  local of = group == "0" and "" or (" of group %08x"):format(math.tointeger(group))
  return pair ~= "" and ("message%s between ranks %s:"):format(of, pair), of
end

local function write(host, format, ...) host.write(format:format(...) .. "\n") end

local function print_difference(host, key, channel, seq, agreed)
  local pair, of = channel_text(key)
  write(host, "%s %s%s: the first that differs (%s before it agree)",
    pair and pair:gsub(":$", "") or "collective", thousands(seq), pair and "" or of,
    thousands(agreed))
  local list = {}
  for rank, one in tree.pairs(channel) do
    local entry, last = one.by_seq[seq], one.by_seq[one.last]
    local text = entry and ("%s: %s"):format(call_text(entry), state_text(entry))
      or ("never arrived: its last was %s, %s"):format(thousands(one.last), call_text(last))
    list[#list + 1] = { rank, text }
  end
  for _, group in ipairs(errors.group_ranks(list)) do
    write(host, "  %s: %s", group[2], group[1])
  end
end

local function last_entries(found)
  local list = {}
  for _, rank in ipairs(found.ranks) do
    local ring = found.rings[rank]
    list[#list + 1] = { rank = rank, entry = ring[#ring] }
  end
  return list
end

local function print_agreement(host, found)
  write(host, "no collective differs in what the rings hold; the last of each rank:")
  for _, last in ipairs(last_entries(found)) do
    write(host, "  rank %d: %s", last.rank, last.entry
      and ("%s, %s: %s"):format(thousands(last.entry.seq), call_text(last.entry),
        state_text(last.entry)) or "none")
  end
end

local function ranks_text(ranks)
  table.sort(ranks)
  return (#ranks == 1 and "rank " or "ranks ") .. table.concat(ranks, ", ")
end

local function print_found(host, found)
  for _, text in ipairs(found.texts) do
    write(host, "%s: %s", ranks_text(found.outcomes[text]), text)
  end
  if #found.ranks == 0 then
    write(host, "no rank has recorded collectives here")
    return
  end
  local differs = false
  for key, channel in tree.pairs(by_channel(found)) do
    local seq, agreed = first_difference(channel)
    if seq then
      differs = true
      print_difference(host, key, channel, seq, agreed)
    end
  end
  if not differs then print_agreement(host, found) end
end

-- The times of the ranks' steps, those that are slow with their machines.
local function print_step_times(host, times)
  if #times < 2 then return end
  local values, parts, slow = {}, {}, {}
  for i, one in ipairs(times) do values[i] = one.seconds end
  for i, one in ipairs(times) do
    parts[i] = ("rank %d %.3g s"):format(one.rank, one.seconds)
    local ratio = step_times.ratio(values, i)
    if ratio and ratio >= step_times.SLOW then
      slow[#slow + 1] = ("rank %d%s is slow: %.1f times the median of the others"):format(one.rank,
        one.host and " on " .. one.host or "", ratio)
    end
  end
  write(host, "time of a step without waiting for other ranks, in the last minute: %s",
    table.concat(parts, ", "))
  for _, text in ipairs(slow) do write(host, "%s", text) end
end

--- The word's main: returns the exit status.
function diagnose.main(word, parsed, host)
  local folder = parsed.script
  if not folder then
    return refuse(host, word, "which folder? (the one that has failure.rank0.txt)", USAGE)
  end
  local found, message = read_folder(folder)
  local times = found and step_times.read(folder) or {}
  local has_failed = found and (#found.ranks > 0 or #found.texts > 0)
  if found and not has_failed and #times < 2 then
    message = ("%s: no failure.rank<N>.txt and no ring.rank<N>.jsonl in it"):format(
      errors.show(folder))
  end
  if message then return refuse(host, word, message) end
  if has_failed then print_found(host, found) end
  print_step_times(host, times)
  return 0
end

return diagnose
