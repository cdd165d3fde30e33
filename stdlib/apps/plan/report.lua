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

-- Whether under some strategy ranks share samples: then steps are not of equally many.
local function shares_samples(found)
  for _, row in ipairs(found.rows) do
    if row.samples and row.data_ranks ~= found.ranks then return true end
  end
  return false
end

-- Of all ranks together in a second.
local function samples_text(row)
  if not row.samples then return "" end
  local rate = row.samples * row.data_ranks / row.seconds
  return (rate < 10 and "%.2f" or "%.0f"):format(rate)
end

local function table_of(found)
  local head = { "strategy", table.unpack(COLUMNS) }
  local counts_samples = found.hardware and shares_samples(found)
  if found.hardware then head[#head + 1] = "time" end
  if counts_samples then head[#head + 1] = "samples/s" end
  if found.limit then head[#head + 1] = "fits" end
  local rows = { head }
  for _, row in ipairs(found.rows) do
    local cells = { row.name }
    for _, name in ipairs(COLUMNS) do cells[#cells + 1] = sizes.text(row[name]) end
    if found.hardware then cells[#cells + 1] = sizes.time(row.seconds) end
    if counts_samples then cells[#cells + 1] = samples_text(row) end
    if found.limit then cells[#cells + 1] = row.peak <= found.limit and "yes" or "no" end
    rows[#rows + 1] = cells
  end
  return aligned(rows)
end

local function add(lines, ...) lines[#lines + 1] = (...):format(select(2, ...)) end

local function change(new, old) return ("%+.0f %%"):format((new - old) / old * 100) end

local function add_advice(lines, found)
  local chosen = found.chosen
  local fits = not found.limit or chosen.peak <= found.limit
  if found.limit then
    add(lines, fits and "strategy = \"%s\": fits in %s and %s" or
      "none fits in %2$s; \"%1$s\" needs least", chosen.name, sizes.text(found.limit),
      found.hardware and "is fastest" or "sends least")
  elseif found.hardware and #found.rows > 1 then
    add(lines, "strategy = \"%s\": is fastest", chosen.name)
  end
  if #found.options == 0 then return end
  add(lines, "options, with %s:", chosen.name)
  local rows = {}
  for i, option in ipairs(found.options) do
    rows[i] = { "  " .. option.text, sizes.text(option.peak), change(option.peak, chosen.peak) }
    if option.seconds then
      table.move({ sizes.time(option.seconds), change(option.seconds, chosen.seconds) }, 1, 2, 4,
        rows[i])
    end
    table.insert(rows[i], found.limit and not fits and option.fits and "fits" or "")
  end
  table.move(aligned(rows), 1, #rows, #lines + 1, lines)
end

local function link_text(link)
  return ("%s/s, %s"):format(sizes.text(link.bandwidth), sizes.time(link.latency))
end

-- What times come from.
local function hardware_text(hardware, method, threads)
  local links, source = hardware.links
  if method == "steps" then
    source = ("steps of one rank on this CPU, %d thread%s"):format(threads,
      threads == 1 and "" or "s")
  else
    source = ("the operations at %s FLOP/s and %s/s of memory%s"):format(
      sizes.count(hardware.rates.flops), sizes.text(hardware.rates.bandwidth),
      hardware.given and "" or ", measured on this CPU")
  end
  local moved = link_text(links.intra)
  if hardware.are_measured then
    moved = ("%s, measured between %d ranks here"):format(moved, links.ranks)
  elseif links.inter and links.inter ~= links.intra then
    moved = ("%s within and %s between machines"):format(moved, link_text(links.inter))
  end
  return ("time: %s; links: %s"):format(source, moved)
end

-- A row for each number of ranks.
local function scaling_text(found)
  local lines, rows = {}, { { "ranks", "nodes" } }
  add(lines, "%s: %s; time of a training step, and how much of it ranks compute", found.script,
    found.class_name)
  lines[2] = ""
  for i, at in ipairs(found.scaling) do
    rows[i + 1] = { ("%d"):format(at.ranks), ("%d"):format(at.nodes) }
    for k, step in ipairs(at.steps) do
      local column = 2 * k + 1
      rows[1][column], rows[1][column + 1] = step.name, ""
      rows[i + 1][column] = sizes.time(step.seconds)
      rows[i + 1][column + 1] = ("%.0f %%"):format(100 * step.efficiency)
    end
  end
  table.move(aligned(rows), 1, #rows, 3, lines)
  lines[#lines + 1] = ""
  local last = found.scaling[#found.scaling]
  lines[#lines + 1] = hardware_text(found.hardware, last.method, last.threads)
  return table.concat(lines, "\n") .. "\n"
end

--- The plan as text.
function report.text(found)
  if found.scaling then return scaling_text(found) end
  local lines = {}
  add(lines, "%s: %s on %d rank%s; bytes of each rank in a training step", found.script,
    found.class_name, found.ranks, found.ranks == 1 and "" or "s")
  if found.device == "cpu" then
    add(lines, "measured by steps on this CPU, because the script reads values: %s", found.why)
  end
  lines[#lines + 1] = ""
  table.move(table_of(found), 1, #found.rows + 1, #lines + 1, lines)
  lines[#lines + 1] = ""
  if found.hardware then
    lines[#lines + 1] = hardware_text(found.hardware, found.chosen.method, found.chosen.threads)
  end
  add_advice(lines, found)
  return table.concat(lines, "\n") .. "\n"
end

-- What times come from.
local function hardware_values(found)
  local hardware = found.hardware
  return hardware and { links = hardware.links, rates = hardware.rates }
end

--- The plan for JSON: numbers of bytes and seconds.
function report.values(found)
  local values = { script = found.script, ranks = found.ranks, ranks_per_node = found.per_node,
    memory = found.limit, device = found.device, hardware = hardware_values(found) }
  if found.scaling then
    values.ranks, values.scaling = nil, found.scaling
    return values
  end
  values.strategies, values.options, values.recommended = {}, {}, found.chosen.name
  for i, row in ipairs(found.rows) do
    local one = { name = row.name }
    for _, name in ipairs(COLUMNS) do one[name] = row[name] end
    one.collectives = traffic.by_kind(row.timeline)
    one.seconds, one.computing, one.method = row.seconds, row.computing, row.method
    one.bubble = row.bubble
    one.samples, one.data_ranks = row.samples, row.data_ranks
    if found.limit then one.fits = row.peak <= found.limit end
    values.strategies[i] = one
  end
  for i, option in ipairs(found.options) do
    values.options[i] = { option = option.text, peak = option.peak, seconds = option.seconds,
      fits = found.limit and option.fits or nil }
  end
  return values
end

return report
