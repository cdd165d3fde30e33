-- stdlib/files/yaml.lua: values of a text of YAML, for files of configuration.
--
-- libyaml reads the text; what its words mean follows jsonargparse, by which Lightning reads such
-- files: YAML 1.1, but that `true` and `false` alone are booleans, and 1e-3 is a number. A field of
-- null is absent. Anchors, aliases and merges (`<<`) are followed.

local c = require "ltrain.c"

local yaml = {}

local MOST_DEPTH <const> = 100

local WORDS <const> = { [""] = "null", ["~"] = "null", null = "null", Null = "null", NULL = "null",
  ["true"] = true, True = true, TRUE = true, ["false"] = false, False = false, FALSE = false,
  [".inf"] = math.huge, [".Inf"] = math.huge, [".INF"] = math.huge, ["+.inf"] = math.huge,
  ["-.inf"] = -math.huge, ["-.Inf"] = -math.huge, ["-.INF"] = -math.huge, [".nan"] = 0 / 0,
  [".NaN"] = 0 / 0, [".NAN"] = 0 / 0 }

local NULL <const> = setmetatable({}, { __name = "null" }) -- until its place is known

local TAGS <const> = { ["tag:yaml.org,2002:str"] = "text", ["tag:yaml.org,2002:map"] = "mapping",
  ["tag:yaml.org,2002:seq"] = "sequence", ["!"] = "text" }

-- A number, or nil.
local function number_of(text)
  local sign, digits = text:match "^([-+]?)([%d][%w_.+-]*)$"
  if not sign then
    sign, digits = text:match "^([-+]?)(%.%d[%w_.+-]*)$"
  end
  if not sign then return nil end
  digits = digits:gsub("_", "")
  local value
  if digits:find "^0[0-7]+$" then
    value = tonumber(digits, 8)
  elseif digits:find "^0[xX]%x+$" or digits:find "^%d+$" or digits:find "^%d*%.?%d*$"
    or digits:find "^%d*%.?%d*[eE][-+]?%d+$" then
    value = tonumber(digits)
  end
  return value and (sign == "-" and -value or value)
end

local function fail(event, text, ...)
  error({ message = ("line %d: "):format(event.line) .. text:format(...) }, 0)
end

-- What a scalar says: a string, number or boolean, or NULL.
local function scalar(event)
  local tag = event.tag
  if tag and TAGS[tag] ~= "text" then fail(event, "the tag %s is not known", tag) end
  if tag or not event.plain then return event.text end
  local word = WORDS[event.text]
  if word == "null" then return NULL end
  if word ~= nil then return word end
  return number_of(event.text) or event.text
end

local value_of

-- Fields of a mapping, or of a list of them, that it does not have itself.
local function merge(into, from, event)
  if type(from) ~= "table" or from == NULL then fail(event, "<< needs a mapping") end
  if from[1] ~= nil then
    for _, one in ipairs(from) do merge(into, one, event) end
    return
  end
  for key, value in next, from do
    if into[key] == nil then into[key] = value end
  end
end

local function mapping(state, event, depth)
  local value, merged, seen = {}, {}, {}
  if event.anchor then state.anchors[event.anchor] = value end
  while state[state.at].kind ~= "end" do
    local at = state[state.at]
    if at.kind ~= "scalar" then fail(at, "a name must be a word") end
    local key, is_merge = at.text, at.plain and at.text == "<<"
    state.at = state.at + 1
    local one = value_of(state, depth)
    if is_merge then
      merged[#merged + 1] = { one, at }
    elseif seen[key] then
      fail(at, "'%s' is there twice", key)
    elseif one ~= NULL then
      value[key] = one
    end
    seen[key] = true
  end
  for _, pair in ipairs(merged) do merge(value, pair[1], pair[2]) end
  return value
end

local function sequence(state, event, depth)
  local value = {}
  if event.anchor then state.anchors[event.anchor] = value end
  while state[state.at].kind ~= "end" do
    local at = state[state.at]
    local one = value_of(state, depth)
    if one == NULL then fail(at, "null in a list") end
    value[#value + 1] = one
  end
  return value
end

-- The value that begins at the next event.
function value_of(state, depth)
  local event = state[state.at]
  state.at = state.at + 1
  if depth > MOST_DEPTH then fail(event, "deeper than %d", MOST_DEPTH) end
  if event.kind == "alias" then
    local value = state.anchors[event.anchor]
    if value == nil then fail(event, "there is no anchor &%s", event.anchor) end
    return value
  elseif event.kind == "scalar" then
    local value = scalar(event)
    if event.anchor then state.anchors[event.anchor] = value end
    return value
  end
  if event.tag and TAGS[event.tag] ~= event.kind then
    fail(event, "the tag %s is not known", event.tag)
  end
  local value = (event.kind == "mapping" and mapping or sequence)(state, event, depth + 1)
  state.at = state.at + 1
  return value
end

--- The value of a text of one document; nil and what is wrong, with its line.
function yaml.decode(text)
  local state, wrong = c.io.yaml_events(text)
  if not state then return nil, wrong end
  if #state == 0 then return nil, "it is empty" end
  state.at, state.anchors = 2, {} -- behind the document's begin
  local ok, value = pcall(value_of, state, 1)
  if not ok then
    if type(value) ~= "table" then error(value, 0) end
    return nil, value.message
  end
  local after = state[state.at]
  if after then return nil, ("line %d: a second document"):format(after.line) end
  if value == NULL then return nil, "it is empty" end
  return value
end

return yaml
