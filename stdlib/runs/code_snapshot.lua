--- stdlib/runs/code_snapshot.lua: saves the source of a run's script, and of the modules that it
--- loaded, to the folder code/ of the run.
--
-- The script has its name there, a module the path that its name stands for: a.b is a/b.lua.
local c = require "ltrain.c"

local code_snapshot = {}

code_snapshot.FOLDER = "code"

local MOST <const>, FILES <const> = 1 << 20, 100 -- bytes of a file, files

-- The script's own modules: a list of {name, path}. Those of the library, of C and of package.cpath
-- are left out, and so are those that are installed for all.
local function modules(package)
  local found, list = {}, {}
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

local function copy_of(module, path)
  local name = module:gsub("[^%w._-]", "_"):gsub("%.+", "/"):gsub("^/", "")
  if path:find "/init%.lua$" and not name:find "%f[%w]init$" then return name .. "/init.lua" end
  return name .. ".lua"
end

-- One that has the name of another gets a number.
local function free_name(name, taken)
  local one, k = name, 2
  while taken[one] do
    one, k = ("%s_%d.lua"):format(name:gsub("%.lua$", ""), k), k + 1
  end
  taken[one] = true
  return one
end

local function keep(folder, name, path)
  local text = c.io.kind(path) == "file" and c.io.read_file(path)
  if not text or #text > MOST then return end
  local copy = ("%s/%s/%s"):format(folder, code_snapshot.FOLDER, name)
  c.io.make_folder((copy:match "^(.*)/"))
  if c.io.kind(copy) and c.io.read_file(copy) == text then return end
  c.io.write_file(copy, text)
end

--- Copies them into the folder of a run; `script`: its path, or nil; `package`: the script's.
function code_snapshot.keep(folder, script, package)
  local taken = {}
  if script then keep(folder, free_name(script:match "[^/]*$", taken), script) end
  local function plain(path) return path and path:gsub("^%./", "") end
  for _, one in ipairs(modules(package)) do
    if plain(one[2]) ~= plain(script) then
      keep(folder, free_name(copy_of(one[1], one[2]), taken), one[2])
    end
  end
end

return code_snapshot
