-- tools/docs/part_pages.lua: pages of parts of `lt` that are a table of functions.
local markdown = require "markdown"
local methods = require "methods"
local source = require "source"

-- {file, title, about, source, name in calls, [source, heading and object of a class]}
local PARTS <const> = {
  { "onnx", "ONNX", "lt.onnx: models as files for other programs", "onnx/init.lua", "onnx" },
  { "csv", "Tables", "lt.csv: tables in text files", "files/csv.lua", "csv", "files/Table.lua",
    "Table", "t" },
  { "image", "Images", "lt.image: JPEG and PNG files, grids", "image/init.lua", "image" },
  { "boxes", "Boxes", "lt.boxes: overlaps, suppression, formats of boxes", "boxes/init.lua",
    "boxes" },
  { "json", "JSON", "lt.json: values as JSON, and files of them", "files/json.lua", "json" },
  { "numpy", "NumPy", "lt.numpy: arrays in the files of NumPy, and in files without a header",
    "files/numpy.lua", "numpy" },
  { "debugger", "Debugger", "lt.breakpoint", "apps/debugger/init.lua", "lt" },
  { "runs", "Runs", "lt.runs: reading the folders of runs", "runs/init.lua", "runs" },
}

local function page(root, part)
  local file_name <const>, title, about, path, name, class_path, class, object = table.unpack(part)
  local file <const> = source.read(root .. "stdlib/" .. path)
  local text, files = { "# " .. title, file.about, file.more, methods(file, name, name) },
    "stdlib/" .. path
  if class_path then
    local of <const> = source.read(root .. "stdlib/" .. class_path)
    files = files .. " and stdlib/" .. class_path
    for _, one in ipairs { "## " .. class, of.about, of.more, methods(of, object) } do
      text[#text + 1] = one
    end
  end
  return { file = file_name .. ".md", title = title, about = about, source = files,
           text = markdown.join(text) }
end

return function(root)
  local pages = {}
  for k, part in ipairs(PARTS) do pages[k] = page(root, part) end
  return pages
end
