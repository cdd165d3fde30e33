--- stdlib/apps/dashboard/listing.lua: the list of runs, filtered, sorted and cut.
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local json = require "ltrain.apps.dashboard.json"
local request_target = require "ltrain.apps.dashboard.request_target"

local listing = {}

local FIELDS <const> = { started = true, name = true, status = true, seconds = true, step = true,
  epoch = true }

-- All that the words of a filter are looked for in.
local function text_of(one)
  local parts = { one.name, one.status, one.error or "", one.problem or "", one.note or "" }
  table.move(one.tags or {}, 1, #(one.tags or {}), #parts + 1, parts)
  for name, value in next, one.hparams do
    parts[#parts + 1] = ("%s=%s"):format(name, tostring(value))
  end
  return table.concat(parts, "\n"):lower()
end

local function has_tag(one, wanted)
  for _, tag in ipairs(one.tags or {}) do
    if tag:lower() == wanted then return true end
  end
  return false
end

-- Whether a hyper-parameter has this value: the whole of it, numbers however they are written.
local function has_value(one, name, value)
  for key, field in next, one.hparams do
    key = key:lower()
    local is_name = key == name or key:sub(-#name - 1) == "." .. name
    if is_name and (tostring(field):lower() == value or tonumber(value) ~= nil
      and tonumber(field) == tonumber(value)) then
      return true
    end
  end
  return false
end

local function fits(one, words)
  if #words == 0 then return true end
  local text = text_of(one)
  for _, word in ipairs(words) do
    local name, value = word:match "^([^=]+)=(.+)$"
    if name and name ~= "tag" and not has_value(one, name, value) then return false end
    if name == "tag" and not has_tag(one, value) then return false end
    if not name and not text:find(word, 1, true) then return false end
  end
  return true
end

-- version_2 before version_10.
local function wide(text)
  return (text:gsub("%d+", function(digits) return ("%20s"):format(digits) end))
end

local function key_of(sort)
  local metric = sort:match "^metric:(.+)$"
  if metric then
    return function(one)
      local value = one.last[metric]
      return value == value and value or nil
    end
  elseif not FIELDS[sort] then
    error({ 400, "sort: must be started, name, status, seconds, step, epoch or metric:NAME" }, 0)
  end
  return function(one)
    local value = one[sort]
    return type(value) == "string" and wide(value) or value
  end
end

-- Those without a value come last, in either order.
local function sort_by(list, key, down)
  local keys, places = {}, {}
  for i, one in ipairs(list) do keys[one], places[one] = key(one), i end
  table.sort(list, function(a, b)
    local x, y = keys[a], keys[b]
    if x == y or type(x) ~= type(y) and x ~= nil and y ~= nil then return places[a] < places[b] end
    if x == nil or y == nil then return y == nil end
    if down then return x > y end
    return x < y
  end)
end

local function names_of(runs)
  local metrics, hparams = {}, {}
  local function add(seen, values)
    for name in next, values do
      if not seen[name] then
        seen[name] = true
        table.insert(seen, name)
      end
    end
  end
  for _, one in ipairs(runs) do
    add(metrics, one.last)
    add(hparams, one.hparams)
  end
  for _, seen in ipairs { metrics, hparams } do
    for name in next, seen do
      if type(name) == "string" then seen[name] = nil end
    end
    table.sort(seen)
  end
  return json.list(metrics), json.list(hparams)
end

--- GET /api/runs
function listing.answer(catalogue, query)
  local offset = request_target.integer(query, "offset", 0, 0, 1 << 40)
  local limit = request_target.integer(query, "limit", 100, 1, 1000)
  local key = key_of(request_target.text(query, "sort", "started"))
  local down = request_target.text(query, "order", "desc", { "asc", "desc" }) == "desc"
  local words, all, list, runs = {}, {}, {}, json.list {}
  for word in request_target.text(query, "filter", ""):lower():gmatch "%S+" do
    words[#words + 1] = word
  end
  for i, run in ipairs(catalogue.list) do
    all[i] = Catalogue.summary(run)
    if fits(all[i], words) then list[#list + 1] = all[i] end
  end
  sort_by(list, key, down)
  for i = offset + 1, math.min(offset + limit, #list) do runs[#runs + 1] = list[i] end
  local metrics, hparams = names_of(all)
  return { total = #all, matched = #list, offset = offset, runs = runs, metrics = metrics,
    hparams = hparams }
end

return listing
