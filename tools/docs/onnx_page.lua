-- tools/docs/onnx_page.lua: the page of lt.onnx.
local markdown = require "markdown"
local methods = require "methods"
local source = require "source"

return function(root)
  local file <const> = source.read(root .. "stdlib/onnx/init.lua")
  return { {
    file = "onnx.md", title = "ONNX", about = "lt.onnx: models as files for other programs",
    source = "stdlib/onnx/init.lua",
    text = markdown.join { "# ONNX", file.about, file.more, methods(file, "onnx", "onnx") },
  } }
end
