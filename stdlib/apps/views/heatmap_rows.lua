--- stdlib/apps/views/heatmap_rows.lua: a matrix with names of rows and columns, in a terminal: its
--- values, on colours where there are some; shades alone where the values do not fit.
local pixel_text = require "ltrain.apps.views.pixel_text"

local LONGEST <const> = 16 -- letters of a name

local function length(text) return utf8.len(text) or #text end

local function shorten(label, most)
  if length(label) <= most then return label end
  return label:sub(1, utf8.offset(label, most) - 1) .. "."
end

local function left_of(text, width) return (" "):rep(width - length(text)) .. text end

-- A pixel of pixel_text.lua.
local function pixel_of(value, o)
  local mark = pixel_text.mark(value)
  if mark then return { mark = mark } end
  return { o.high > o.low and (value - o.low) / (o.high - o.low) or 0 }
end

local function row_names(o)
  local names, wide = {}, 0
  for i, label in ipairs(o.rows) do
    names[i] = shorten(label, LONGEST)
    wide = math.max(wide, length(names[i]))
  end
  return names, wide
end

-- How wide a cell is: its texts, and as much of the names of columns as fits.
local function cell_width(o, columns_left)
  local texts, names = 0, 0
  for _, row in ipairs(o.texts) do
    for _, text in ipairs(row) do texts = math.max(texts, length(text)) end
  end
  for _, label in ipairs(o.columns) do names = math.max(names, length(label)) end
  local most = columns_left // math.max(#o.columns, 1) - 2
  return texts <= most and math.min(math.max(texts, names), most) or nil
end

local function with_values(o, width, names, wide, look)
  local out, heads = {}, {}
  for k, label in ipairs(o.columns) do
    heads[k] = " " .. left_of(shorten(label, width), width) .. " "
  end
  out[1] = (" "):rep(wide + 1) .. table.concat(heads):gsub(" +$", "")
  for i, row in ipairs(o.texts) do
    local cells = {}
    for k, text in ipairs(row) do
      local said = " " .. left_of(text, width) .. " "
      cells[k] = look.colours
        and pixel_text.on_colour(said, pixel_of(o.cells[i][k], o), look.colours) or said
    end
    local line = left_of(names[i], wide) .. " " .. table.concat(cells)
    out[#out + 1] = look.colours and line or (line:gsub(" +$", ""))
  end
  return out
end

local function with_shades(o, names, wide, look)
  local out, pixels = {}, {}
  for i, row in ipairs(o.cells) do
    pixels[i] = {}
    for k, value in ipairs(row) do pixels[i][k] = pixel_of(value, o) end
  end
  for i, row in ipairs(pixel_text.rows(pixels, { utf8 = look.utf8 })) do
    out[i] = left_of(names[i], wide) .. " " .. row
  end
  return out
end

--- The rows of a heat map {cells =, texts =, rows =, columns =, low =, high =, x =, y =, title =};
--- look as of views/terminal.lua.
return function(o, look)
  local names, wide = row_names(o)
  local width = cell_width(o, look.width - wide - 1)
  local out = width and with_values(o, width, names, wide, look)
    or with_shades(o, names, wide, look)
  if o.x ~= "" or o.y ~= "" then
    local said = o.y ~= "" and ("rows: %s"):format(o.y) or nil
    out[#out + 1] = table.concat({ said or "columns: " .. o.x,
      said and o.x ~= "" and "columns: " .. o.x or nil }, ", ")
  end
  if o.title ~= "" then table.insert(out, 1, o.title) end
  return out
end
