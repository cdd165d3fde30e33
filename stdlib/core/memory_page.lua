-- stdlib/core/memory_page.lua: a memory snapshot as an HTML page: a bar for each segment with its
-- blocks, and the script lines that have most memory. It needs nothing but a browser.

local memory_page = {}

local STYLE <const> = [[
body { font: 14px system-ui, sans-serif; margin: 2em; max-width: 75em }
svg { width: 100%; height: 22px; display: block }
table { border-collapse: collapse; margin: 1em 0 }
td, th { text-align: left; padding: 2px 1em 2px 0 }
td.number { text-align: right }
.used { fill: #3b7dd8 } .unknown { fill: #9bb8dd } .pending { fill: #e0a030 }
.free { fill: #e4e4e4 } rect { stroke: #fff; stroke-width: 0.3 }
p.key span { padding: 0 .6em; margin-right: .3em }
]]

local function escape(text)
  return (tostring(text):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
    ["\""] = "&quot;" }))
end

local function mib(bytes) return ("%.2f MiB"):format(bytes / 2 ^ 20) end

local function class_of(block)
  if block.state == "inactive" then return "free" end
  if block.state == "active_pending_free" then return "pending" end
  return block.op and "used" or "unknown"
end

-- "softmax [8, 12] f32 at model.lua:23" of a block.
local function name_of(block)
  if class_of(block) == "free" then return "free" end
  if class_of(block) == "pending" then return "freed, in use on another stream" end
  if not block.op then return "tensors that were not recorded" end
  local text = block.op
  if block.shape then text = ("%s %s %s"):format(text, block.shape, block.dtype) end
  return block.line and text .. " at " .. block.line or text
end

local function bar(segment)
  local parts = {}
  for i, block in ipairs(segment.blocks) do
    parts[i] = ('<rect class="%s" x="%.4f" width="%.4f" y="0" height="10"><title>%s, %s</title>'
      .. "</rect>"):format(class_of(block),
      100 * (block.address - segment.address) / segment.total_size,
      100 * block.size / segment.total_size, escape(name_of(block)), mib(block.size))
  end
  return ('<tr><td>0x%x</td><td>%s</td><td class="number">%s</td><td class="number">%s</td>'
    .. '<td style="width: 60%%"><svg viewBox="0 0 100 10" preserveAspectRatio="none">%s</svg></td>'
    .. "</tr>"):format(segment.address, segment.segment_type, mib(segment.total_size),
    mib(segment.allocated_size), table.concat(parts))
end

-- Names of blocks in use with the most bytes: { name =, bytes =, count = }.
local function largest(segments)
  local of_name, list = {}, {}
  for _, segment in ipairs(segments) do
    for _, block in ipairs(segment.blocks) do
      if block.state == "active_allocated" then
        local name <const> = name_of(block)
        local entry = of_name[name]
        if not entry then
          entry = { name = name, bytes = 0, count = 0 }
          of_name[name], list[#list + 1] = entry, entry
        end
        entry.bytes, entry.count = entry.bytes + block.size, entry.count + 1
      end
    end
  end
  table.sort(list, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.name < b.name
  end)
  return list
end

local function rows(list)
  local text = {}
  for i, entry in ipairs(list) do
    if i > 100 then break end
    text[i] = ('<tr><td class="number">%s</td><td class="number">%d</td><td>%s</td></tr>'):format(
      mib(entry.bytes), entry.count, escape(entry.name))
  end
  return table.concat(text, "\n")
end

--- The text of the page of a snapshot of the device called `name`.
function memory_page.html(name, segments)
  local total, used, bars = 0, 0, {}
  for i, segment in ipairs(segments) do
    total, used = total + segment.total_size, used + segment.allocated_size
    bars[i] = bar(segment)
  end
  return table.concat({
    "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
    ("<title>Memory of %s</title><style>%s</style></head><body>"):format(escape(name), STYLE),
    ("<h1>Memory of %s</h1>"):format(escape(name)),
    ("<p>%s reserved in %d segments, %s in use.</p>"):format(mib(total), #segments, mib(used)),
    '<p class="key"><span style="background: #3b7dd8"></span>recorded tensors '
      .. '<span style="background: #9bb8dd"></span>other tensors '
      .. '<span style="background: #e0a030"></span>freed, in use on another stream '
      .. '<span style="background: #e4e4e4"></span>free. Blocks show what they are under the '
      .. "pointer.</p>",
    '<table style="width: 100%"><tr><th>segment</th><th>blocks</th><th>size</th><th>in use</th>'
      .. "<th></th></tr>",
    table.concat(bars, "\n"), "</table>",
    "<h2>Largest</h2><table><tr><th>in use</th><th>blocks</th><th>operation and line</th></tr>",
    rows(largest(segments)), "</table></body></html>\n",
  }, "\n")
end

return memory_page
