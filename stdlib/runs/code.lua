--- stdlib/runs/code.lua: the text of a run's script, and of the modules that it has loaded, in the
--- folder code/ of the run: what was changed between two runs can be seen later.
local c = require "ltrain.c"

local code = {}

code.FOLDER = "code"
code.package = nil -- the script's `package`, where the command line runs one

local MOST <const>, FILES <const> = 1 << 20, 100 -- bytes of a file, files

-- The script's own modules: a list of {name, path}. Those of the library, of C and of package.cpath
-- are left out, and so are those that are installed for all.
local function modules()
  local package, found, list = code.package, {}, {}
  if not package then return found end
  for name in next, package.loaded do
    if type(name) == "string" and not name:find "^ltrain" then list[#list + 1] = name end
  end
  table.sort(list)
  for _, name in ipairs(list) do
    local ok, path = pcall(package.searchpath, name, package.path)
    if ok and path and not path:find "^/usr/" and #found < FILES then
      found[#found + 1] = { name, path }
    end
  end
  return found
end

local function keep(folder, name, path)
  local text = c.io.kind(path) == "file" and c.io.read_file(path)
  if not text or #text > MOST then return end
  c.io.make_folder(folder .. "/" .. code.FOLDER)
  local copy = ("%s/%s/%s"):format(folder, code.FOLDER, name)
  if c.io.kind(copy) and c.io.read_file(copy) == text then return end
  c.io.write_file(copy, text)
end

--- Copies them into the folder of a run; `script`: its path, or nil.
function code.keep(folder, script)
  if script then keep(folder, (script:match "[^/]*$"), script) end
  for _, one in ipairs(modules()) do
    if one[2] ~= script then keep(folder, one[1]:gsub("[^%w._-]", "_") .. ".lua", one[2]) end
  end
end

return code
