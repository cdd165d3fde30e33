--- stdlib/apps/plan/report.lua: a plan as a table for readers, and as values for JSON.
local sizes = require "ltrain.apps.plan.sizes"
local traffic = require "ltrain.apps.plan.traffic"

local report = {}

local COLUMNS <const> = { "parameters", "gradients", "state", "activations", "temporaries", "peak",
  "sent" }

-- Columns as wide as what is in them, numbers to the right.
local function aligned(rows)
  local width, lines = {}, {}
  for _, row in ipairs(rows) do
    for k, cell in ipairs(row) do width[k] = math.max(width[k] or 0, #cell) end
  end
  for i, row in ipairs(rows) do
    local cells = {}
    for k, cell in ipairs(row) do
      local space = (" "):rep(width[k] - #cell)
      cells[k] = k == 1 and cell .. space or space .. cell
    end
    lines[i] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  return lines
end

local function table_of(found)
  local head = { "strategy", table.unpack(COLUMNS) }
  if found.limit then head[#head + 1] = "fits" end
  local rows = { head }
  for _, row in ipairs(found.rows) do
    local cells = { row.name }
    for _, name in ipairs(COLUMNS) do cells[#cells + 1] = sizes.text(row[name]) end
    if found.limit then cells[#cells + 1] = row.peak <= found.limit and "yes" or "no" end
    rows[#rows + 1] = cells
  end
  return aligned(rows)
end

local function add(lines, ...) lines[#lines + 1] = (...):format(select(2, ...)) end

local function add_advice(lines, found)
  local chosen = found.chosen
  local fits = not found.limit or chosen.peak <= found.limit
  if found.limit then
    add(lines, fits and "strategy = \"%s\": fits in %s and sends least" or
      "none fits in %2$s; \"%1$s\" needs least", chosen.name, sizes.text(found.limit))
  end
  if #found.options == 0 then return end
  add(lines, "options, with %s:", chosen.name)
  local rows = {}
  for i, option in ipairs(found.options) do
    local percent = (option.peak - chosen.peak) / chosen.peak * 100
    rows[i] = { "  " .. option.text, sizes.text(option.peak), ("%+.0f %%"):format(percent),
      found.limit and not fits and option.fits and "fits" or "" }
  end
  table.move(aligned(rows), 1, #rows, #lines + 1, lines)
end

--- The plan as text.
function report.text(found)
  local lines = {}
  add(lines, "%s: %s on %d rank%s; bytes of each rank in a training step", found.script,
    found.class_name, found.ranks, found.ranks == 1 and "" or "s")
  if found.device == "cpu" then
    add(lines, "measured by steps on this CPU, because the script reads values: %s", found.why)
  end
  lines[#lines + 1] = ""
  table.move(table_of(found), 1, #found.rows + 1, #lines + 1, lines)
  lines[#lines + 1] = ""
  add_advice(lines, found)
  return table.concat(lines, "\n") .. "\n"
end

--- The plan for JSON: numbers of bytes.
function report.values(found)
  local values = { script = found.script, ranks = found.ranks, ranks_per_node = found.per_node,
    memory = found.limit, device = found.device, strategies = {}, options = {},
    recommended = found.chosen.name }
  for i, row in ipairs(found.rows) do
    local one = { name = row.name }
    for _, name in ipairs(COLUMNS) do one[name] = row[name] end
    one.collectives = traffic.by_kind(row.timeline)
    if found.limit then one.fits = row.peak <= found.limit end
    values.strategies[i] = one
  end
  for i, option in ipairs(found.options) do
    values.options[i] = { option = option.text, peak = option.peak,
      fits = found.limit and option.fits or nil }
  end
  return values
end

return report
