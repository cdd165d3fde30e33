-- stdlib/core/library_modules.lua: the module names of the standard library: "ltrain.nn.Linear" for
-- nn/Linear.lua.

local c = require "ltrain.c"

local library_modules = {}

-- The folder in place of the chunks of this build, where LTRAIN_STDLIB is set; nil.
local function folder_of_environment()
  local folder <const> = c.runtime.getenv "LTRAIN_STDLIB"
  return folder ~= "" and folder or nil
end

local function add_folder(names, folder, prefix)
  for _, entry in ipairs(c.io.list_folder(folder) or {}) do
    local name <const> = entry:match "^([%w_]+)%.lua$"
    if name then
      names[#names + 1] = name == "init" and prefix or prefix .. "." .. name
    elseif c.io.kind(folder .. "/" .. entry) == "folder" then
      add_folder(names, folder .. "/" .. entry, prefix .. "." .. entry)
    end
  end
end

--- The names, sorted: of the files of LTRAIN_STDLIB where it is set, as `require` finds them then.
function library_modules.list()
  local folder <const> = folder_of_environment()
  if not folder then return c.runtime.stdlib() end
  local names <const> = {}
  add_folder(names, folder, "ltrain")
  table.sort(names)
  return names
end

--- Whether there is a file of that name, which is not a folder's.
function library_modules.has(name)
  local folder <const> = folder_of_environment()
  if not folder then return c.runtime.in_stdlib(name) end
  local path <const> = name:gsub("^ltrain%.", ""):gsub("%.", "/")
  return c.io.kind(("%s/%s.lua"):format(folder, path)) == "file"
end

return library_modules
