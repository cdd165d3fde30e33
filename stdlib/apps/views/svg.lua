--- stdlib/apps/views/svg.lua: elements of an SVG, as lists of texts, and its colours.
local axis = require "ltrain.apps.views.axis"

local svg = {}

-- Colours that differ for the colour-blind (Okabe and Ito), on white and on black.
local COLOURS <const> = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
  "#888888" }

local DASHES <const> = { "7 4", "2 3", "9 3 2 3" }

local ESCAPES <const> = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

function svg.escape(text) return (text:gsub('[&<>"]', ESCAPES):gsub("%c", " ")) end

--- The colour of the k-th line.
function svg.colour(k) return COLOURS[(k - 1) % #COLOURS + 1] end

--- The attributes of its stroke: with more lines than colours they are broken in several ways.
function svg.stroke(k)
  local dash = DASHES[(k - 1) // #COLOURS % (#DASHES + 1)]
  return ('stroke="%s"%s'):format(svg.colour(k), dash and (' stroke-dasharray="%s"'):format(dash)
    or "")
end

function svg.element(out, format, ...) out[#out + 1] = format:format(...) end

--- A text; `more` (optional): attributes.
function svg.text(out, x, y, anchor, said, more)
  svg.element(out, '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>', x, y, anchor,
    more and " " .. more or "", svg.escape(said))
end

--- What is shown of a value on hover: all its digits.
function svg.hover(label, ...)
  local parts = {}
  for i, value in ipairs { ... } do
    local text = ("%.17g"):format(value)
    local short = ("%.15g"):format(value)
    parts[i] = tonumber(short) == value and short or text
  end
  local values = table.concat(parts, ", ")
  return ("<title>%s</title>"):format(svg.escape(label == "" and values
    or ("%s: %s"):format(label, values)))
end

--- Lines and texts of the ticks beside a plot; to_y: from a value to its place. box: {left, right,
--- top, bottom}.
function svg.y_axis(out, box, from, to, to_y, log)
  for _, tick in ipairs(axis.ticks(from, to, 5, log)) do
    local y = to_y(tick.at)
    svg.element(out, '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid%s"/>',
      tick.text and box.left or box.left - 4, y, tick.text and box.right or box.left, y,
      tick.text and "" or " minor")
    if tick.text then svg.text(out, box.left - 8, y + 4, "end", tick.text) end
  end
end

--- The same below it.
function svg.x_axis(out, box, from, to, to_x)
  for _, tick in ipairs(axis.ticks(from, to, 8)) do
    local x = to_x(tick.at)
    svg.element(out, '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid"/>', x, box.bottom,
      x, box.top)
    svg.text(out, x, box.bottom + 18, "middle", tick.text)
  end
end

--- Names of the axes.
function svg.names(out, box, x, y)
  svg.text(out, (box.left + box.right) / 2, box.bottom + 36, "middle", x)
  local at = (box.top + box.bottom) / 2
  if y and y ~= "" then
    svg.text(out, 14, at, "middle", y, ('transform="rotate(-90 14 %.1f)"'):format(at))
  end
end

return svg
