-- tools/docs/source.lua: what the files of stdlib/ say of themselves, by their paths.
local parsed = require "ltrain.apps.prompt.doc_comments"

local source = { order = parsed.order }

--- What the file at `path` says, of its class for `n` dims (nil: of its own):
--- stdlib/apps/prompt/doc_comments.lua.
function source.read(path, n)
  local file <close> = assert(io.open(path, "rb"))
  local said = parsed.parse(file:read "a", n)
  said.path = path
  return said
end

function source.written(fn) return parsed.written(fn, debug.getupvalue) end

function source.options_of(fn) return parsed.options_of(fn, debug.getupvalue) end

return source
