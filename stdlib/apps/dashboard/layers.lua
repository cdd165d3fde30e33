--- stdlib/apps/dashboard/layers.lua: statistics of a run's parameters (layers.jsonl, which the
--- callback LayerMonitor writes).
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local c = require "ltrain.c"
local complete_lines = require "ltrain.core.complete_lines"
local json = require "ltrain.apps.dashboard.json"
local request_target = require "ltrain.apps.dashboard.request_target"

local layers = {}

local PLAIN <const> = { plain = true }
local FIELDS <const> = { "mean", "std", "min", "max", "norm", "nonfinite" }
local HISTOGRAMS <const> = 50
local MOST_LINE <const> = 1 << 24

local function index(run)
  run.layer_lines = run.layer_lines or {}
  run.layers:poll(function(text, position)
    local taken = 0
    for line, after in complete_lines(text) do
      table.insert(run.layer_lines, { position + taken, #line })
      taken = after - 1
    end
    return taken
  end, function() run.layer_lines = {} end)
  return run.layer_lines
end

local function read_line(run, place)
  if place[2] > MOST_LINE then return nil end
  local text = Catalogue.read(run, "layers.jsonl", place[1], place[2])
  local value = text and c.io.json_decode(text, PLAIN)
  return type(value) == "table" and type(value.layers) == "table"
    and math.type(value.step) == "integer" and value or nil
end

local function new_layer(one)
  return { name = one.name, shape = json.list(type(one.shape) == "table" and one.shape or {}),
    step = json.list {}, histograms = json.list {} }
end

-- Statistics of the weight or the gradient, at a step that is the last of layer.step.
local function add(layer, of, values, step)
  if type(values) ~= "table" then return end
  layer[of] = layer[of] or {}
  for _, field in ipairs(FIELDS) do
    local list = layer[of][field] or json.list {}
    layer[of][field] = list
    while #list < #layer.step - 1 do list[#list + 1] = json.null end
    list[#layer.step] = values[field] == nil and json.null or values[field]
  end
  if type(values.edges) == "table" and type(values.counts) == "table" then
    table.insert(layer.histograms, { step = step, of = of, edges = json.list(values.edges),
      counts = json.list(values.counts) })
    if #layer.histograms > HISTOGRAMS then table.remove(layer.histograms, 1) end
  end
end

-- Lists that end before the last step are filled.
local function pad(layer)
  for _, of in ipairs { "weight", "grad" } do
    for _, list in next, layer[of] or {} do
      while #list < #layer.step do list[#list + 1] = json.null end
    end
  end
end

--- Whether there are any.
function layers.any(run) return #index(run) > 0 end

--- GET /api/run/ID/layers
function layers.answer(run, query)
  local points = request_target.integer(query, "points", 200, 2, 1000)
  local lines = index(run)
  local answer, by_name = { steps = json.list {}, layers = json.list {} }, {}
  local count = math.min(#lines, points)
  for i = 1, count do
    local at = count == 1 and 1 or (i - 1) * (#lines - 1) // (count - 1) + 1
    local value = read_line(run, lines[at])
    if value then table.insert(answer.steps, value.step) end
    for _, one in ipairs(value and value.layers or {}) do
      if type(one) == "table" and type(one.name) == "string" then
        local layer = by_name[one.name]
        if not layer then
          layer = new_layer(one)
          by_name[one.name] = layer
          table.insert(answer.layers, layer)
        end
        table.insert(layer.step, value.step)
        add(layer, "weight", one.weight, value.step)
        add(layer, "grad", one.grad, value.step)
        pad(layer)
      end
    end
  end
  return answer
end

return layers
