--- stdlib/apps/plan/scaling.lua: steps on many numbers of ranks: `--simulate 8..4096`.
local measure = require "ltrain.apps.plan.measure"

local scaling = {}

local TOO_FEW <const> = "--simulate: on %d ranks a batch has %d samples, and %d on fewer ranks: "
  .. "the script has too few; x:expand(N, ...) of one sample takes no memory"

--- The numbers of ranks of "8..4096", each twice the one before, or "8,24,64"; nil of anything
--- else.
function scaling.parse(text)
  local list = {}
  local first, last = text:match "^(%d+)%.%.(%d+)$"
  first, last = math.tointeger(tonumber(first)), math.tointeger(tonumber(last))
  if first and last and first >= 1 and last >= first then
    local ranks = first
    while ranks <= last do list[#list + 1], ranks = ranks, 2 * ranks end
    return list
  end
  for part in (text .. ","):gmatch "([^,]*)," do
    local ranks = math.tointeger(tonumber(part:match "^%d+$"))
    if not ranks or ranks < 1 then return nil end
    list[#list + 1] = ranks
  end
  return list
end

--- What does not fit the machines: a message, or nil.
function scaling.wrong(list, per_node, hardware)
  for _, ranks in ipairs(list) do
    if ranks > per_node and ranks % per_node ~= 0 then
      return ("--simulate: %d ranks on machines of %d"):format(ranks, per_node)
    elseif ranks > per_node and not hardware.links.inter then
      return ("--simulate: %d ranks are on several machines of --devices %d: their links are "
        .. "needed, such as --link 'intra=450GB 3us, inter=100Gb 10us'"):format(ranks, per_node)
    end
  end
end

--- A list of { ranks =, nodes =, method =, threads = as of times.add, steps = for each row {
--- name =, seconds =, efficiency = of the time what a rank computes } }; nil and a message.
--- `rows`: of strategies.rows.
function scaling.run(list, rows, base, hardware)
  local found, samples = {}, nil
  for i, ranks in ipairs(list) do
    local per_node = math.min(base.per_node, ranks)
    found[i] = { ranks = ranks, nodes = ranks // per_node, steps = {} }
    for k, row in ipairs(rows) do
      local o = setmetatable({ ranks = ranks, per_node = per_node }, { __index = base })
      local step, message = measure.bytes(row, o)
      if not step then return nil, message end
      samples = samples or step.samples
      if step.samples ~= samples then return nil, TOO_FEW:format(ranks, step.samples, samples) end
      local ok
      ok, message = measure.add_times(step, row, o, hardware)
      if not ok then return nil, message end
      found[i].method, found[i].threads = step.method, step.threads
      found[i].steps[k] = { name = row.name, seconds = step.seconds,
        efficiency = step.computing / step.seconds }
    end
  end
  return found
end

return scaling
