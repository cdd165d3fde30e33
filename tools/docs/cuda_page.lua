-- tools/docs/cuda_page.lua: the page of lt.cuda.
local markdown = require "markdown"
local methods = require "methods"
local source = require "source"

-- The functions of a file that belong to one table.
local function of(file, owner)
  local list = {}
  for _, entry in ipairs(file.functions) do
    if entry.owner == owner then list[#list + 1] = entry end
  end
  return { functions = list }
end

return function(root)
  local function read(name) return source.read(root .. "stdlib/core/" .. name .. ".lua") end
  local file, streams, nvtx = read "cuda", read "cuda_streams", read "nvtx"
  return { {
    file = "cuda.md", title = "GPUs", about = "lt.cuda: which GPUs there are, their memory, "
      .. "streams, events, ranges",
    source = "stdlib/core/cuda.lua, cuda_streams.lua and nvtx.lua",
    text = markdown.join { "# GPUs", file.about, file.more, methods(file, "cuda", "cuda"),
      "## Streams and events", streams.about, streams.more,
      methods(of(streams, "Stream"), "stream"), methods(of(streams, "Event"), "event"),
      "## Ranges", nvtx.about, methods(nvtx, "nvtx", "nvtx") },
  } }
end
