-- tools/docs/xla_page.lua: the page of lt.xla.
local markdown = require "markdown"
local methods = require "methods"
local source = require "source"

return function(root)
  local file = source.read(root .. "stdlib/core/xla.lua")
  return { {
    file = "xla.md", title = "XLA devices", about = "lt.xla: devices of PJRT plugins, what was "
      .. "compiled for them and why",
    source = "stdlib/core/xla.lua",
    text = markdown.join { "# XLA devices", file.about, file.more, methods(file, "xla", "xla") },
  } }
end
