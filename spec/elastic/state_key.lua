-- spec/elastic/state_key.lua: when two states of the model of the rendezvous are the same.
--
-- What differs in them without meaning is taken out: versions, rounds and leases are numbered by
-- their order, texts for readers are left out, and the text that is left is hashed.
local c = require "ltrain.c"

local STATE <const>, LEADER <const> = "ltrain/j/round/state", "ltrain/j/round/leader"

-- Fields of texts that no decision depends on.
local IDLE <const> = { reason = true, text = true, message = true, address = true, name = true,
  port = true, slots = true, settings = true, first_rank = true,
  world_size = true, index = true, kind = true }
-- Numbers are marked by the field, to be replaced by their ranks: of rounds and of the versions of
-- hosts' keys only the order matters, of leases and of the document's versions which are equal.
local MARKS <const> = { version = "v", lease = "l", number = "r", after = "r", done = "r",
  done_round = "r", round = "r" }

local fragments <const> = {} -- by the text of a value in the store

-- Writes a value into `parts`.
local function write(parts, value, mark)
  if type(value) == "table" then
    local keys <const> = {}
    for key in next, value do
      if not IDLE[key] then keys[#keys + 1] = key end
    end
    table.sort(keys, function(x, y) return tostring(x) < tostring(y) end)
    parts[#parts + 1] = "{"
    for _, key in ipairs(keys) do
      parts[#parts + 1] = tostring(key) .. "="
      local inner = MARKS[key] or mark
      if key == STATE then inner = "s" elseif key == LEADER then inner = "" end
      if inner == "v" and (mark == "s" or mark == "") then inner = mark end
      write(parts, value[key], inner)
    end
    parts[#parts + 1] = "}"
  elseif mark == "" and math.type(value) == "integer" then
    parts[#parts + 1] = "#"
  elseif mark and math.type(value) == "integer" then
    parts[#parts + 1] = ("\1%s%d\2"):format(mark, value)
  elseif type(value) == "string" and value:sub(1, 1) == "{" then
    if not fragments[value] then
      local inner <const> = {}
      write(inner, c.io.json_decode(value, { plain = true }))
      fragments[value] = table.concat(inner)
    end
    parts[#parts + 1] = fragments[value]
  else
    parts[#parts + 1] = tostring(value) .. ";"
  end
end

local function text_of_host(host)
  if host.text then return host.text end
  local parts <const>, fields = {}, {}
  for name, value in next, host.fields do fields[name] = value end
  fields.round = fields.round and fields.round.number
  write(parts, { host.phase, host.lives, host.is_done, fields })
  if host.turn then
    parts[#parts + 1] = host.turn.name
    for _, answer in ipairs(host.turn.answers) do
      local mark <const> = answer.name == "lease" and "l" or answer.key == STATE and "s"
        or answer.name == "list" and "v" or ""
      write(parts, answer.values, mark)
    end
  end
  host.text = table.concat(parts)
  return host.text
end

local function text_of_data(data)
  if data.text then return data.text end
  local parts <const> = {}
  write(parts, data.keys)
  data.text = table.concat(parts)
  return data.text
end

-- The ranks of the marked numbers of a kind in a text, in their order.
local function ranks_of(text, mark)
  local list <const>, ranks = {}, {}
  for digits in text:gmatch("\1" .. mark .. "(%-?%d+)\2") do
    if not ranks[digits] then
      ranks[digits] = true
      list[#list + 1] = digits
    end
  end
  table.sort(list, function(x, y) return tonumber(x) < tonumber(y) end)
  for rank, digits in ipairs(list) do ranks[digits] = rank end
  return ranks
end

-- A text that two states have in common when they differ in nothing but names of versions, rounds
-- and leases.
return function(state)
  local parts <const> = { tostring(state.left) }
  for k, host in ipairs(state.hosts) do
    parts[k + 1] = text_of_host(host)
      .. tostring(host.fields.lease and state.data.leases[host.fields.lease] ~= nil)
  end
  parts[#parts + 1] = text_of_data(state.data)
  local text <const>, count = table.concat(parts, "|"), 0
  local ranks <const> = { v = ranks_of(text, "v"), r = ranks_of(text, "r"), l = {}, s = {} }
  return c.runtime.sha256 { (text:gsub("\1(%a)(%-?%d+)\2", function(mark, digits)
    if not ranks[mark][digits] then
      count = count + 1
      ranks[mark][digits] = count
    end
    return mark .. ranks[mark][digits] .. ";"
  end)) }
end
