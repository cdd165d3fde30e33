-- stdlib/core/chunks.lua: the names of the library's files, "ltrain.nn.Linear" of nn/Linear.lua.

local c = require "ltrain.c"

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
return function()
  local folder <const> = c.runtime.getenv "LTRAIN_STDLIB"
  if not folder or folder == "" then return c.runtime.stdlib() end
  local names <const> = {}
  add_folder(names, folder, "ltrain")
  table.sort(names)
  return names
end
