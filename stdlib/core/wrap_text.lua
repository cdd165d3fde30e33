--- stdlib/core/wrap_text.lua: wraps text between words, at the 80 columns of a terminal.

local WIDTH <const> = 80

local function columns(text) return utf8.len(text) or #text end

--- The words of a text in lines behind `indent`; the first line behind `first` (by default the
--- same). A word that is longer than a line stays whole.
return function(text, indent, first)
  local lines, line, width = {}, first or indent, columns(first or indent)
  local is_empty = true
  for word in text:gmatch "%S+" do
    if not is_empty and width + 1 + columns(word) > WIDTH then
      lines[#lines + 1] = line
      line, width, is_empty = indent, columns(indent), true
    end
    line = line .. (is_empty and "" or " ") .. word
    width, is_empty = width + (is_empty and 0 or 1) + columns(word), false
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end
