-- tools/docs/cuda_page.lua: the page of lt.cuda.
local markdown = require "markdown"
local methods = require "methods"
local source = require "source"

return function(root)
  local file = source.read(root .. "stdlib/core/cuda.lua")
  return { {
    file = "cuda.md", title = "GPUs", about = "lt.cuda: which GPUs there are, their memory",
    source = "stdlib/core/cuda.lua",
    text = markdown.join { "# GPUs", file.about, file.more, methods(file, "cuda", "cuda") },
  } }
end
